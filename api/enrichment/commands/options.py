"""Options that commands share: a folder of own rules (`--rules`), and how many customers to compare (`--sample`)."""

from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from api.core.commands.console import complaint
from api.core.commands.files import text_of
from pipelines.enrichment.own_rules import MAX_CHARACTERS, MAX_FILES, OwnRules, parse_own_rules
from pipelines.vocabulary.rule_files import RuleError
from storage.core.logs import printable

RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules", metavar="FOLDER", help="A folder of your own rules and names, applied on top of the built-in ones."
    ),
]
ACTIVATING_SAMPLE = 200  # customers compared before an activation, unless the operator says how many (our judgement)
SampleOfActivation = Annotated[
    int,
    typer.Option("--sample", min=0, help="Show first what changes for this many customers. 0: activate at once."),
]
_PATTERNS = ("*.y*ml", "counterparties/*.y*ml", "patterns/*.y*ml")


def read_rules(folder: Path) -> OwnRules:
    """Read and check a folder of own rules. Faults are printed with file and line, and end the command."""
    found = chain.from_iterable(folder.glob(pattern) for pattern in _PATTERNS)
    files = {str(path.relative_to(folder)): path for path in islice(found, MAX_FILES + 1)}
    if not files:
        raise complaint(f"{folder} has no rules: there must be counterparties/*.yaml or patterns/*.yaml")
    try:
        return parse_own_rules({name: _text(path) for name, path in files.items()})
    except RuleError as error:
        *others, last = (printable(f"{folder}/{line}") for line in str(error).splitlines())
        for line in others:
            complaint(line)
        raise complaint(last) from None


def _text(path: Path) -> str:
    if path.stat().st_size > 4 * MAX_CHARACTERS:  # a character has at most four bytes
        raise complaint(f"{path}:1: the file has more than {MAX_CHARACTERS:,} characters: leave entries out")
    return text_of(path)
