"""The schema for editors and the program accept the same documents as well-formed."""

import json
import random
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest

from pipelines.decisions import examples
from pipelines.decisions.authoring.schema import as_json_schema, as_text
from pipelines.decisions.check.shape import parse_shape
from pipelines.decisions.policy import Policy
from pipelines.metrics import METRICS
from tests.conftest import times
from tests.pipelines.decisions import drawn
from tests.pipelines.decisions.mutilated import mutilate
from tests.pipelines.decisions.test_check import MISSHAPEN
from tests.root import ROOT

Json = Any
SCHEMA = jsonschema_rs.Draft202012Validator(as_json_schema())
EXAMPLES = examples.load()


def test_the_file_is_the_programs() -> None:
    file = ROOT / "docs" / "reference" / "policy.schema.json"
    assert file.read_text("utf-8") == as_text(), "run `make generated`"


def test_schema_is_valid() -> None:
    assert jsonschema_rs.meta.is_valid(as_json_schema())


@pytest.mark.parametrize("slug", sorted(EXAMPLES))
def test_example_is_well_formed(slug: str) -> None:
    assert list(SCHEMA.iter_errors(EXAMPLES[slug])) == []


def test_drawn_documents_are_well_formed() -> None:
    chance = random.Random(11)
    for _ in range(50):
        assert list(SCHEMA.iter_errors(drawn.document(chance))) == []


def is_json(document: Json) -> bool:
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("document", [document for document, _ in MISSHAPEN if is_json(document)])
def test_documents_refused_for_their_shape_are_not_well_formed(document: Json) -> None:
    policy, _ = parse_shape(document, Policy)
    assert SCHEMA.is_valid(document) == (policy is not None)


@pytest.mark.drawn
def test_mutilated_examples_are_well_formed_for_both_or_for_neither() -> None:
    chance = random.Random(12)
    refused = 0
    for _ in range(times(400)):
        document = deepcopy(chance.choice(list(EXAMPLES.values())))
        mutilate(document, chance)
        policy, faults = parse_shape(document, Policy)
        if not any(fault.code == "DecisionPolicy.InvalidValue" for fault in faults):  # of a validator of ours
            assert SCHEMA.is_valid(document) == (policy is not None), faults
            refused += policy is None
    assert refused > 130


def test_schema_lists_the_known_names() -> None:
    reference = as_json_schema()["$defs"]["MetricRef"]["properties"]["metric"]
    assert reference["anyOf"][0]["enum"] == sorted(METRICS)
    where = as_json_schema()["$defs"]["Where"]["properties"]
    assert "card_settlement" in where["categories"]["items"]["enum"]
