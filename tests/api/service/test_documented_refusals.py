"""Every error that is raised deliberately is in the catalogue of codes, with its status."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.vocabulary import errors
from pipelines.vocabulary.codes import catalogue
from pipelines.vocabulary.errors import TidemarkError

# Areas of codes that occur only on the command line.
OPERATORS = {
    *("Backup", "Browser", "Client", "File", "Home", "Key", "Labels", "Lease", "Listen", "Model"),
    *("OwnRules", "Risk", "RiskModel"),
}
NOT_ANSWERED = {"Lake.RowsMismatch", "Vault.CannotOpen"}  # raised in compaction and in the delivery loop
PACKAGES = [Path(name) for name in ("pipelines", "storage", "api")]
STATUS = {
    name: error.status
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, TidemarkError) and error is not TidemarkError
}
RAISING = re.compile(rf"\b({'|'.join(STATUS)})\(")  # most files raise nothing, and parsing takes seconds


def find_refusals() -> Iterator[tuple[str, int, str]]:
    """Yield code, status and place of every refusal whose code is a literal in the source."""
    for file in (file for package in PACKAGES for file in sorted(package.rglob("*.py"))):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if RAISING.search(text) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in STATUS:
                match node.args:
                    case [ast.Constant(value=str(code)), *_] if code.partition(".")[0] not in OPERATORS:
                        yield code, STATUS[node.func.id], f"{file}:{node.lineno}"


def test_a_refusal_is_documented(subtests: pytest.Subtests) -> None:
    found = sorted(set(find_refusals()))
    assert len({code for code, _, _ in found}) > 50
    for code, status, place in found:
        with subtests.test(code, place=place):
            assert code in NOT_ANSWERED or catalogue()[code].status == status
