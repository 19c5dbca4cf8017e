"""Folders of own rules as commands read them: one line for each fault, and what is no rule is left alone."""

from pathlib import Path

import pytest
import typer

from api.enrichment.commands.options import read_rules
from pipelines.vocabulary.errors import Unprocessable

NAMES = "fuel:\n  Zorbly: [ZORBLY]\n"


def folder(tmp_path: Path, **files: str) -> Path:
    """Write files; `__` in their names stands for `/`."""
    for name, text in files.items():
        path = tmp_path / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def read_refusal(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(typer.Exit) as ended:
        read_rules(folder)
    assert ended.value.exit_code == 1
    return capsys.readouterr().err.splitlines()


def test_rules_are_read_and_other_files_left_alone(tmp_path: Path) -> None:
    of = folder(tmp_path, counterparties__mine=NAMES)
    (of / "README.md").write_text("what these are")
    (of / ".git").mkdir()
    assert [party.name for party in read_rules(of).parties] == ["Zorbly"]


def test_each_fault_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = folder(tmp_path, counterparties__mine=f"feul:\n  Zorbly: [ZORBLY]\n{NAMES}")
    lines = read_refusal(of, capsys)
    assert lines[0] == f"tidemark: {of}/counterparties/mine.yaml:1: there is no purpose feul: did you mean fuel?"
    assert [line.split(":")[2] for line in lines] == ["1", "4"]


def test_a_folder_without_rules_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for of in (tmp_path, tmp_path / "missing"):
        [line] = read_refusal(of, capsys)
        assert "has no rules" in line


def test_a_wrong_name_is_refused_and_not_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = folder(tmp_path, counterparties__mine=NAMES, patterns__decisve="- {}")
    (of / "counterparties" / "more.yml").write_text(NAMES)
    lines = read_refusal(of, capsys)
    assert [line.split(":")[1].rsplit("/", 1)[1] for line in lines] == ["more.yml", "decisve.yaml"]


def test_huge_and_binary_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = folder(tmp_path, counterparties__mine="#" * 8_000_001)
    [line] = read_refusal(of, capsys)
    assert "mine.yaml:1: the file has more than 2,000,000 characters" in line
    (of / "counterparties" / "mine.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(Unprocessable, match="not text in UTF-8"):
        read_rules(of)
