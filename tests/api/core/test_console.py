"""Records are printed as they come, in parts, and the output doesn't show where parts begin."""

import json
from collections.abc import Iterator

import pytest

from api.core.commands import console
from api.core.commands.console import print_records


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "RECORDS_AT_ONCE", 2)


def records(count: int) -> Iterator[dict[str, object]]:
    return ({"number": number, "text": f'"{number}"'} for number in range(count))


@pytest.mark.parametrize("count", range(6))
def test_json_is_one_array_on_one_line(capsys: pytest.CaptureFixture[str], count: int) -> None:
    print_records(records(count), as_json=True, empty="")
    printed = capsys.readouterr().out
    assert json.loads(printed) == list(records(count))
    assert printed.index("\n") == len(printed) - 1


def test_a_table_has_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(records(5), as_json=False, empty="nothing", columns=["number"])
    lines = capsys.readouterr().out.split()
    assert [line for line in lines if line != "number"] == ["0", "1", "2", "3", "4"]
    print_records(records(0), as_json=False, empty="nothing")
    assert capsys.readouterr().out == "nothing\n"
