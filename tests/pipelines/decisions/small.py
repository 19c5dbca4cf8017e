"""Small policies, each with one customer: readable examples for tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipelines.decisions import readings
from pipelines.decisions.answer import build_answer, build_trace
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value
from pipelines.decisions.unsettled import Row
from tests.pipelines.decisions.comparing import metrics_of
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.decisions.interpreter import Customer, Json

NOBODY: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Evaluation:
    row: Row
    answer: Json
    trace: Json

    @property
    def verdict(self) -> Json:
        return self.answer["verdict"]


def policy(**given: Any) -> Policy:
    return Policy.model_validate({"slug": "small", "name": "Small", "defaultOutcome": "proceed", **given})


def step(*rules: Json, **given: Any) -> Json:
    return {"name": "Knock-outs", "outcome": "blocked", "rules": rules, **given}


def rule(condition: Json, code: str = "R", **given: Any) -> Json:
    words = {"message": f"{code} holds.", "customerMessage": f"We found {code}."}
    return {"code": code, "condition": condition, **words, **given}


def declare(**kinds: str) -> Json:
    return [{"name": name, "kind": kind} for name, kind in kinds.items()]


def evaluation(
    policy: Policy,
    metrics: Mapping[str, Decimal | str] = NOBODY,
    attributes: Mapping[str, Attribute] = NOBODY,
    inputs: Mapping[str, Value] = NOBODY,
) -> Evaluation:
    """Evaluate one customer. `metrics`: values, or causes why there is none."""
    plan = plan_policy(policy)
    shown = metrics_of([Customer(metrics, attributes)])
    row = evaluate_plan(plan, readings.read_leaves(plan, shown, {0: attributes}, inputs, NOW)).row(0, named=True)
    return Evaluation(row, build_answer(plan, row, attributes, shown.row(0, named=True)), build_trace(plan, row))


def value_of(number: Json, **attributes: Value) -> tuple[Decimal | None, str | None]:
    """Return a number's value, and the cause if it has none. It reads only attributes."""
    kinds = declare(**dict.fromkeys(attributes, "decimal"))
    small = policy(attributes=kinds, steps=[step(rule({"atLeast": [number, "0"]}))])
    held = {name: Attribute(value) for name, value in attributes.items()}
    tree = evaluation(small, attributes=held).trace["steps"][0]["rules"][0]["condition"]["of"][0]
    return tree["value"], tree.get("cause")
