"""A child reads an export like this process would; one that exceeds its limits makes the file unreadable."""

from dataclasses import replace

import pytest

import isolation
from isolation.limits import EXPORTS, MIB
from pipelines.intake.exports import read, statements_of
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.schemas import LANDED

ROWS = "".join(f'{1 + n % 28:02}/07/2025,"ROW, {n} café",{n}.10,062-000\n' for n in range(3_000))
EXPORT = f"Date,Description,Amount,BSB\n{ROWS}01/08/2025,SURPLUS,1.00,062-000,3\n".encode()


def test_a_child_reads_like_this_process() -> None:
    found, expected = isolation.read_export("a.csv", EXPORT), read("a.csv", EXPORT)
    [statement] = statements_of(found.rows, lambda _: b"")
    assert statement.rows.equals(expected.statements[0].rows.select(LANDED.names()))
    assert statement.lines.equals(expected.statements[0].lines)
    assert statement.bsb == expected.statements[0].bsb == "062-000"
    assert [(each.line, each.code, each.message) for each in found.refused] == [
        (line, code, message) for line, _, code, message in expected.refused.iter_rows()
    ]
    assert found.notes == expected.notes


def test_an_unreadable_export_is_refused(subtests: pytest.Subtests) -> None:
    limits = {
        "Export.Empty": (b"", EXPORTS),
        "Export.LimitsExceeded": (EXPORT, replace(EXPORTS, memory_bytes=16 * MIB)),
    }
    for code, (content, within) in limits.items():
        with subtests.test(code), pytest.raises(InvalidRequest) as refused:
            isolation.read_export("a.csv", content, within)
        assert refused.value.code == code
