"""The option `--expects`: which evidence is expected of all customers of a file, read and written as names."""

from typing import Annotated

import typer

from pipelines.scorecards.expected import NAMES, Expected


def parse_expected(text: str) -> Expected:
    """Return the evidence that the text names, separated by commas.

    Raises:
        typer.BadParameter: a name is unknown, or there is none: nobody could earn points if nothing were expected.
    """
    try:
        expected = Expected.of(name.strip() for name in text.split(",") if name.strip())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if not expected.names:
        raise typer.BadParameter(f"name at least one of {', '.join(NAMES)}")
    return expected


def describe_expected(expected: Expected) -> str:
    """Return the names of the expected evidence, or `nothing`."""
    return ", ".join(expected.names) or "nothing"


Expects = Annotated[
    Expected | None,
    typer.Option(
        "--expects",
        parser=parse_expected,
        metavar="NAME,…",
        help=f"Evidence expected of all customers of the file, separated by commas: {', '.join(NAMES)}. "
        "Default: the evidence that most of the file has.",
    ),
]
