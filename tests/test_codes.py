"""The catalogue of error codes has every code that the code base can give, and none that it can't."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from pipelines.intake.pdf.page.result import Refusal
from pipelines.vocabulary.codes import CORRECT_DOCUMENT, catalogue
from pipelines.vocabulary.errors import TidemarkError
from tests.api.core.operations import list_operations
from tests.root import ROOT

Nodes = tuple[ast.AST, ...]

CODE = re.compile(r"[A-Z][A-Za-z]+\.[A-Z][A-Za-z]+")
REASON = re.compile(r"[A-Z][A-Za-z]+")
LAYERS = ("api", "assets", "isolation", "pipelines", "storage")
# A prefix of field names; a reason of a report, as an example; an action of the audit trail, as a constant.
NOT_CODES = {"Submission.Invalid", "Risk.Uncalibrated", "User.Erased"}
PREFIX = "DecisionPolicy.Unknown"  # what is unknown follows
DATA = ("pipelines/synthetic/", "pipelines/enrichment/", "pipelines/intake/layouts")  # brands look like codes
REPORTS = "pipelines/reports/"  # reasons in reports: docs/explanation/completeness.md and risk.md list them
# Functions that are called with actions of the audit trail.
AUDITED = {"audit", "append", "_audit", "_change_state", "_note", "_set_archived", "Refusal"}
# Functions that put an area before the reason that they are called with.
AREAS = {
    "pipelines/vocabulary/strict_json.py": ({"_refuse"}, "Request"),
    "pipelines/intake/exports/": ({"refusal"}, "Export"),
    "pipelines/decisions/check/": ({"finding", "_refusal", "_write_problem"}, "DecisionPolicy"),
    "pipelines/monitoring/": ({"finding"}, "Ruleset"),
}


REFUSALS = {"Statement." + "".join(word.capitalize() for word in refusal.split("_")) for refusal in Refusal}


@cache
def modules() -> Sequence[tuple[str, Nodes]]:
    """Return the path of each module, and all nodes of its syntax tree."""
    paths = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), tuple(ast.walk(ast.parse(path.read_text())))) for path in paths]


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    yield from (each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str))


def texts_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the texts of nodes and of all that is below them."""
    yield from (text for node in nodes for text in texts(ast.walk(node)))


def audited_actions(nodes: Nodes) -> set[str]:
    """Return actions of the audit trail, which have the form of codes: in calls, or in a table called `AUDITED`."""
    calls = (node for node in nodes if isinstance(node, ast.Call) and name_of(node) in AUDITED)
    tables = (node for node in nodes if isinstance(node, ast.Assign) and is_called(node.targets[0], "AUDITED"))
    arguments = [argument for call in calls for argument in call.args] + [table.value for table in tables]
    return set(texts_in(arguments))


def is_called(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def codes_in(path: str, nodes: Nodes) -> Iterator[str]:
    """Yield codes: those that are literals, and those that a helper completes from a reason."""
    audited = audited_actions(nodes)
    if not path.startswith((REPORTS, *DATA)) or "report_view" in path:
        yield from (text for text in texts(nodes) if CODE.fullmatch(text) and text not in audited | NOT_CODES)
    for place, (helpers, area) in AREAS.items():
        if path.startswith(place):
            yield from (f"{area}.{reason}" for reason in completed_reasons(nodes, helpers) if REASON.fullmatch(reason))


def completed_reasons(nodes: Nodes, helpers: set[str]) -> Iterator[str]:
    """Yield the reasons that helpers complete, and those that are returned with a message to be completed."""
    for node in nodes:
        if isinstance(node, ast.Call) and name_of(node) in helpers:
            yield from texts_in(node.args)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            yield from texts_in(node.value.elts[:1])


def test_every_code_is_in_the_catalogue() -> None:
    found = {code: path for path, nodes in modules() for code in codes_in(path, nodes)}
    assert {code: path for code, path in found.items() if code not in {PREFIX, *catalogue()}} == {}


def test_every_documented_problem_is_in_the_catalogue_with_its_status() -> None:
    examples = [
        example["value"]
        for operation in list_operations()
        for response in operation.documented["responses"].values()
        for example in response["content"].get("application/problem+json", {}).get("examples", {}).values()
    ]
    shown = {example["code"]: example["status"] for example in examples}
    assert {code: status for code, status in shown.items() if catalogue()[code].status != status} == {}


def test_every_refusal_of_a_file_is_in_the_catalogue() -> None:
    assert catalogue().keys() >= REFUSALS


def test_every_code_of_the_catalogue_is_in_the_code() -> None:
    """A code is written in full, or only as the reason or value from which a helper makes it."""
    all_texts = {text for _, nodes in modules() for text in texts(nodes)}
    fields = {code for operation in list_operations() for code in CODE.findall(str(operation.documented["responses"]))}
    strange = [
        name
        for name, code in catalogue().items()
        if name not in all_texts | REFUSALS | fields
        and not (
            name.partition(".")[2].removeprefix("Unknown").lower() in all_texts and code.remedy == CORRECT_DOCUMENT
        )
        and name.partition(".")[2] not in all_texts
    ]
    assert strange == []


def test_the_catalogue_reads_well() -> None:
    statuses = {kind.status for kind in TidemarkError.__subclasses__()} | {405, 408}
    for code in catalogue().values():
        assert code.status in statuses | {None}, code.name
        assert code.meaning.endswith("."), code.name
        assert code.remedy.endswith("."), code.name
