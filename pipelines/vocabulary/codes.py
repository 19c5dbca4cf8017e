"""The catalogue of error codes: what each means and what to do, from `codes.yaml`.

The API serves it under `/docs/errors/`, which is where the `type` of a problem document leads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pipelines.vocabulary import rule_files

FILE = "codes.yaml"
WHERE: Mapping[str, str] = {
    "problems": "A problem document",
    "fields": "A problem document, as its code or in its `errors`: a field with a wrong value",
    "documents": "In `errors` or `warnings`: a policy or ruleset with a fault",
    "policies_or_rulesets": "In `errors` or `warnings`: a policy or ruleset with a fault",
    "evaluations": "The response of an evaluation: a value that it could not use",
    "rows": "In the `errors` of a job: a row that was not accepted",
    "jobs": "In the `error` or the `warnings` of a job, or in a member of the reports",
    "exports": "The command line; the `files` and `errors` of an upload, or the `warnings` of its jobs",
    "commands": "The command line, or the log of background work",
}
CORRECT_FIELD = "Correct the field that `pointer` names; the API reference says what it takes."
CORRECT_DOCUMENT = "Correct the document where `pointer` points; the message has the details."


@dataclass(frozen=True)
class Code:
    """An error code. `status` is that of its problem documents; None if the code occurs only elsewhere (`where`)."""

    name: str
    where: str
    status: int | None
    meaning: str
    remedy: str


@cache
def catalogue() -> Mapping[str, Code]:
    """Return every code by its name, in alphabetical order."""
    sections = rule_files.parse(files("pipelines.vocabulary").joinpath(FILE).read_text("utf-8"), FILE)
    codes = (code for section, entries in sections.items() for code in _codes(section, entries))
    return {code.name: code for code in sorted(codes, key=lambda code: code.name)}


def _codes(section: str, entries: Mapping[str, Any]) -> Iterator[Code]:
    for name, entry in entries.items():
        match section:
            case "problems":
                yield Code(name, WHERE[section], *entry)
            case "fields":
                yield Code(name, WHERE[section], 400, entry, CORRECT_FIELD)
            case "documents":
                for area in ("DecisionPolicy", "Ruleset"):
                    yield Code(f"{area}.{name}", WHERE[section], None, entry, CORRECT_DOCUMENT)
            case "policies_or_rulesets":
                yield Code(name, WHERE[section], None, entry, CORRECT_DOCUMENT)
            case _:
                yield Code(name, WHERE[section], None, *entry)
