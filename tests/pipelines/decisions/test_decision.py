"""Records of decisions: the same bytes in every process; a replay that differs says which part changed."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.decisions import decision
from pipelines.decisions.decision import Case, Decision, Part, PlannedPolicy, Recorded, StatedAttribute
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute
from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS, cause_of
from tests.pipelines.metrics.customers import customer, facts

AS_OF = date(2025, 9, 1)
NOW = datetime(2025, 9, 1, 3, 0, 0, 123456, tzinfo=UTC)
SLUGS = sorted(METRICS)
parametrize = pytest.mark.parametrize


def document(threshold: str = "100") -> dict[str, Any]:
    """Return a policy that reads every third metric, an attribute and an input, and shows other metrics."""
    rules = [
        {
            "code": f"R{nth}",
            "message": f"Rule {nth}",
            "customerMessage": f"Reason {nth}",
            "condition": {"moreThan": [{"multiply": [{"metric": slug}, "1.1"]}, threshold]},
            "onUnavailable": "notMatched",
        }
        for nth, slug in enumerate(SLUGS[::3])
    ]
    return {
        "slug": "all",
        "name": "All",
        "defaultOutcome": "proceed",
        "declaredInputs": [{"name": "amount", "kind": "decimal"}, {"name": "purpose", "kind": "string"}],
        "attributes": [{"name": "score", "kind": "decimal"}, {"name": "hardship", "kind": "boolean"}],
        "products": [{"slug": "loan", "name": "Loan"}],
        "steps": [
            {"name": "Any", "outcome": "conditional", "rules": rules},
            {
                "name": "Hardship",
                "outcome": "blocked",
                "rules": [
                    {
                        "code": "H",
                        "message": "m",
                        "customerMessage": "c",
                        "condition": {"isTrue": {"attribute": "hardship"}},
                    }
                ],
            },
        ],
        "limits": [{"product": "loan", "amount": {"min": [{"input": "amount"}, {"attribute": "score"}]}}],
        "indicators": [{"metric": slug} for slug in SLUGS[1::3][:50]],
    }


PLANNED = PlannedPolicy.of(Policy.model_validate(document()))


def facts_of_customer(number: int, rows: int = 300) -> Facts:
    return facts(customer(random.Random(number), number, rows=rows), AS_OF)


def case(number: int = 1, **changes: Any) -> Case:
    made = Case(
        evaluation_id=UUID(int=1),
        customer_id=UUID(int=2),
        customer_number=number,
        policy_id=UUID(int=3),
        policy_version=4,
        data_version=5,
        as_of=AS_OF,
        at=NOW,
        inputs={"amount": Decimal("12345.67"), "purpose": "stöck"},
        attributes={
            "score": StatedAttribute(Attribute(Decimal("684.10"), NOW.replace(year=2026)), "bureau", AS_OF, NOW, "key"),
            "hardship": StatedAttribute(Attribute(value=False, source="overridden")),
        },
        pending_jobs=(UUID(int=6),),
        what_if=True,
    )
    return replace(made, **changes)


def decide(number: int = 1) -> Decision:
    return decision.decide(
        PLANNED, case(number), decision.compute_figures(facts_of_customer(number), PLANNED.plan, [number])
    )


def test_customers_decided_one_by_one_have_the_same_figures() -> None:
    numbers = range(1, 6)
    rows = pl.concat([facts_of_customer(number).transactions for number in numbers])
    together = decision.compute_figures(Facts(rows, AS_OF), PLANNED.plan, [*numbers, 9])
    alone = [decision.compute_figures(facts_of_customer(number), PLANNED.plan, [number]) for number in numbers]
    assert together.head(5).equals(pl.concat(alone))
    assert together["customer_number"].to_list() == [*numbers, 9]


def test_a_customer_without_rows_has_a_row_of_causes() -> None:
    nobody = Facts(facts_of_customer(1).transactions.clear(), AS_OF)
    found = decision.compute_figures(nobody, PLANNED.plan, [7])
    assert found["customer_number"].to_list() == [7]
    causes = found.select(cause_of(slug) for slug in PLANNED.plan.metrics).row(0)
    assert set(causes) == {"no_transactions"}
    assert decision.decide(PLANNED, case(7), found).outcome == "proceed"  # every rule counts as not matched


def test_a_policy_that_reads_no_metric_needs_no_facts() -> None:
    planned = PlannedPolicy.of(Policy.model_validate({"slug": "p", "name": "P", "defaultOutcome": "blocked"}))
    figures = decision.compute_figures(Facts(facts_of_customer(1).transactions.clear(), AS_OF), planned.plan, [7])
    assert decision.decide(planned, case(7, inputs={}, attributes={}), figures).outcome == "blocked"


def test_case_can_be_read_from_its_record() -> None:
    record = decide().record
    assert Recorded.of(record).case(1) == case()
    nothing = case(attributes={"score": StatedAttribute(Attribute(None, source="overridden"))}, pending_jobs=())
    figures = decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])
    assert Recorded.of(decision.decide(PLANNED, nothing, figures).record).case(1) == nothing


def test_recorded_figures_equal_the_figures() -> None:
    figures = decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])
    again = Recorded.of(decide().record).figures(1, PLANNED.plan)
    assert again is not None
    assert again.select(sorted(again.columns)).rows() == figures.select(sorted(figures.columns)).rows()


def test_a_record_is_json_with_its_keys_in_order_and_every_digit() -> None:
    text = decide().record.decode()
    assert '"amount":12345.67' in text
    content = json.loads(text, parse_float=str, parse_int=str)
    assert list(content) == sorted(content)
    assert content["case"]["attributes"]["score"]["value"] == "684.10"


# Replay


def replay(
    earlier: bytes, *, planned: PlannedPolicy = PLANNED, figures: pl.DataFrame | None
) -> tuple[bool, tuple[Part, ...]]:
    found = decision.replay(planned, earlier, 1, figures)
    assert found.reproduced == (found.record == earlier)
    return found.reproduced, found.differs


def test_the_same_figures_and_policy_give_the_same_bytes() -> None:
    assert replay(decide().record, figures=decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])) == (
        True,
        (),
    )


def test_recorded_figures_are_used_if_the_data_are_no_longer_stored() -> None:
    found = decision.replay(PLANNED, decide().record, 1, None)
    assert (found.reproduced, found.differs) == (True, ())
    assert "no longer stored" in found.notes[0]


def test_changed_data_are_reported() -> None:
    other = decision.compute_figures(facts(customer(random.Random(99), 1, rows=200), AS_OF), PLANNED.plan, [1])
    assert replay(decide().record, figures=other) == (False, ("data",))


def test_changed_policy_is_reported() -> None:
    planned = PlannedPolicy.of(Policy.model_validate(document("200")))
    figures = decision.compute_figures(facts_of_customer(1), planned.plan, [1])
    assert replay(decide().record, planned=planned, figures=figures) == (False, ("policy",))


@parametrize("name", ["engineVersion", "metricsVersion", "recordVersion"])
def test_changed_engine_is_reported(name: str) -> None:
    content = json.loads(decide().record)
    earlier = decide().record.replace(f'"{name}":{content[name]}'.encode(), f'"{name}":0'.encode())
    assert earlier != decide().record
    assert replay(earlier, figures=decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])) == (
        False,
        ("engine",),
    )


def test_changed_metric_definitions_count_as_the_engine() -> None:
    earlier = decide().record.replace(PLANNED.metrics_fingerprint.encode(), b"0" * 64)
    assert replay(earlier, figures=decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])) == (
        False,
        ("engine",),
    )


def test_unexplained_difference_counts_as_the_engine() -> None:
    earlier = decide().record.replace(b'"outcome":"', b'"outcome":"x')
    assert replay(earlier, figures=decision.compute_figures(facts_of_customer(1), PLANNED.plan, [1])) == (
        False,
        ("engine",),
    )


def test_figures_that_the_policy_no_longer_reads_are_reported() -> None:
    fewer = document() | {"indicators": []}
    planned = PlannedPolicy.of(Policy.model_validate(fewer))
    found = decision.replay(planned, decide().record, 1, None)
    assert (found.reproduced, found.differs, found.record) == (False, ("policy",), b"")
    assert len(found.notes) == 2


PRINTED = """
import sys
from hashlib import sha256
from tests.pipelines.decisions.test_decision import decide
print(*(sha256(decide(number).record).hexdigest() for number in (1, 2, 3)))
"""


@pytest.mark.service  # starts other processes
def test_bytes_are_the_same_for_all_threads_and_hash_seeds() -> None:
    here = " ".join(sha256(decide(number).record).hexdigest() for number in (1, 2, 3))
    for threads, seed in (("1", "0"), ("4", "4242")):
        environment = os.environ | {"POLARS_MAX_THREADS": threads, "PYTHONHASHSEED": seed}
        there = subprocess.run(
            [sys.executable, "-c", PRINTED], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        assert there.stdout.strip() == here, (threads, seed)
