"""The examples in the OpenAPI document: they fit their schemas and each other, and no entry in a file is unused."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel

from api.core.schemas import examples
from api.core.schemas.common import View
from api.core.schemas.examples import example
from api.service import app
from tests.api.core.operations import document, list_operations
from tests.root import ROOT

FILES = {path.relative_to(ROOT): json.loads(path.read_text("utf-8")) for path in (ROOT / "api").rglob("*.json")}
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SAME_ID_AS = {"customers": "customerId", "id": "rulesetId", "matchId": "eventId", "withdraws": "jobId", "who": "setBy"}
# How many different ids the examples use, where it is more than one: a job for each flow, the events of a job and of a
# rule, the products of a loan and of an overdraft, the requester and the approver of an action.
DISTINCT_IDS = {"jobId": 6, "eventId": 2, "productId": 2, "setBy": 2}


class Inner(View):
    code: str


class Outer(View):
    inner_code: Inner | None
    note: str | None = None


def find_examples() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every body in JSON that has an example, with its schema, by a name for the subtest."""
    for operation in list_operations():
        bodies = {
            "request": operation.documented.get("requestBody", {"content": {}}),
            **operation.documented["responses"],
        }
        for name, body in bodies.items():
            if "example" in body["content"].get("application/json", {}):
                yield f"{operation} {name}", body["content"]["application/json"]


def test_every_example_fits_its_schema(subtests: pytest.Subtests) -> None:
    bodies = dict(find_examples())
    assert len(bodies) > 80
    for name, body in bodies.items():
        with subtests.test(name):
            schema = body["schema"] | {"components": document()["components"]}
            jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(body["example"])


def test_every_entry_is_part_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[tuple[str, str]] = set()
    entry = examples._entry

    def record(model: type[BaseModel], name: str) -> Any:
        used.add((model.__module__, name))
        return entry(model, name)

    monkeypatch.setattr(examples, "_entry", record)
    app._document.__wrapped__(is_sandbox=True)  # without the cache: another test may have made the document
    written = {(".".join(path.with_suffix("").parts), name) for path, entries in FILES.items() for name in entries}
    assert len(written) > 100
    assert written - used == set()


def find_ids(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every UUID in an example, by what it identifies."""
    match value:
        case dict():
            for member, inner in value.items():
                yield from find_ids(inner, member)
        case list():
            for item in value:
                yield from find_ids(item, name)
        case str() if re.fullmatch(UUID, value):
            singular = re.sub("Ids$", "Id", name)
            yield SAME_ID_AS.get(singular, re.sub("^[a-z]+By$", "setBy", singular)), value


def test_all_examples_use_the_same_ids_for_the_same_things() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for name, value in find_ids(list(FILES.values())):
        found[name].add(value)
    assert {name: len(values) for name, values in found.items() if len(values) > 1} == DISTINCT_IDS


def test_a_required_member_without_an_example_is_an_error() -> None:
    with pytest.raises(LookupError):
        example(Outer)
