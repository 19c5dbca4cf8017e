"""The schema for editors and the program accept the same documents as well-formed."""

import random
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest

from pipelines.decisions.check.shape import parse_shape
from pipelines.metrics import METRICS
from pipelines.monitoring.ruleset import Ruleset
from pipelines.monitoring.schema import as_json_schema, as_text
from tests.pipelines.decisions.mutilated import mutilate
from tests.pipelines.monitoring import drawn
from tests.pipelines.monitoring.test_checking import SOUND
from tests.root import ROOT

Json = Any
SCHEMA = jsonschema_rs.Draft202012Validator(as_json_schema())
BEYOND_SHAPE = {
    "DecisionPolicy.InvalidValue",
    "DecisionPolicy.NotAnId",
}  # days and ids: JSON Schema doesn't enforce formats


def test_the_file_is_the_programs() -> None:
    file = ROOT / "docs" / "reference" / "ruleset.schema.json"
    assert file.read_text("utf-8") == as_text(), "run `make generated`"


def test_schema_is_valid() -> None:
    assert jsonschema_rs.meta.is_valid(as_json_schema())


@pytest.mark.parametrize("document", SOUND)
def test_sound_documents_are_well_formed(document: Json) -> None:
    assert list(SCHEMA.iter_errors(document)) == []


def test_drawn_documents_are_well_formed() -> None:
    chance = random.Random(11)
    for _ in range(30):
        assert list(SCHEMA.iter_errors(drawn.ruleset(chance, "drawn", 4).document)) == []


def test_mutilated_documents_are_well_formed_for_both_or_for_neither() -> None:
    chance = random.Random(12)
    refused = 0
    for _ in range(800):
        document = deepcopy(chance.choice(SOUND))
        mutilate(document, chance)
        ruleset, faults = parse_shape(document, Ruleset)
        if not BEYOND_SHAPE & {fault.code for fault in faults}:
            assert SCHEMA.is_valid(document) == (ruleset is not None), (document, faults)
            refused += ruleset is None
    assert refused > 300


def test_schema_lists_the_metrics() -> None:
    definitions = as_json_schema()["$defs"]
    for model, field in (("MetricRef", "metric"), ("BaselineMetric", "of")):
        assert definitions[model]["properties"][field]["anyOf"][0]["enum"] == sorted(METRICS)
