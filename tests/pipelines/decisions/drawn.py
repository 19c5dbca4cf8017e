"""Random policies and customers: every operator, nested; readings at, near and far from thresholds."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from pipelines.decisions.readings import Attribute, Value
from tests.pipelines.decisions.interpreter import Customer

Json = Any
NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
MISSING = 0.15
DEEPEST = 5
EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)

REGISTRY = ("complete_months", "days_behind", "history_days", "months_of_history", "revenue_90d")
OWN = ("own_sum", "own_spend")
METRICS = (*REGISTRY, *OWN)
METRIC_CAUSES = (
    *("no_transactions", "stale", "insufficient_history", "no_balances", "not_applicable"),
    *("division_by_zero", "overflow"),
)
DECIMALS, TEXTS, BOOLEANS = ("debt", "score", "rate", "age"), ("loan.purpose", "state"), ("hardship", "lodged")
KINDS = {
    **dict.fromkeys(DECIMALS, "decimal"),
    **dict.fromkeys(TEXTS, "string"),
    **dict.fromkeys(BOOLEANS, "boolean"),
}
WORDS = ("business", "Business", "consumer", "", "äöü", "NSW")
COMPARISONS = ("atLeast", "atMost", "moreThan", "lessThan", "equals", "differs")
OUTCOMES = ("proceed", "conditional", "blocked")

ANCHORS = tuple(
    map(
        Decimal,
        (
            *("0", "0", "1", "2", "3", "12", "100", "0.01", "0.1", "0.07", "0.005", "0.5", "1.1", "1.5", "2.675"),
            *("99.99", "100.01", "1234.56", "5000", "50000", "-0.01", "-100", "-5000.5", "0.33333333"),
            *("0.00000001", "0.00000003", "0.00000005", "-0.00000001", "-0.00000015", "0.99999999"),
        ),
    )
)
HUGE = tuple(
    map(
        Decimal,
        ("999999999999999.99999999", "-999999999999999", "500000000000000", "31622776.60168379", "31622777", "1e12"),
    )
)
THRESHOLD = Decimal(100)  # many readings are near it, and many rules compare with it
BRINK = "999999999999999"  # the largest whole number that a reading or a result can be
BEYOND = tuple(map(Decimal, ("1e15", "-1e15", "1e29", "999999999999999.999999996")))
BESIDE = tuple(map(Decimal, ("0", "0", "0.01", "-0.01", "0.004", "-0.004", "0.00000001", "-0.00000001")))


def number(chance: random.Random) -> Decimal:
    """Return a number at an anchor, near one, or anywhere; one in twenty is huge."""
    match chance.randrange(20):
        case 0:
            return chance.choice(HUGE)
        case 1 | 2 | 3 | 4:
            return Decimal(chance.randint(-(10**7), 10**8)).scaleb(-2)
        case 5 | 6:
            return Decimal(chance.randint(-(10**12), 10**13)).scaleb(-8)
        case _:
            return chance.choice(ANCHORS) + chance.choice(BESIDE)


def constant(chance: random.Random) -> str:
    return f"{number(chance):f}"


@dataclass
class Draft:
    """A document under construction. Parts may be repeated."""

    chance: random.Random
    numbers: list[Json] = field(default_factory=list)
    conditions: list[Json] = field(default_factory=list)

    def number(self, depth: int) -> Json:
        if self.numbers and self.chance.random() < 0.1:
            return self.chance.choice(self.numbers)
        drawn = self._number(depth)
        self.numbers.append(drawn)
        return drawn

    def _number(self, depth: int) -> Json:
        chance = self.chance
        if depth == 0 or chance.random() < 0.25:
            return constant(chance) if chance.random() < 0.4 else self._leaf(DECIMALS, with_metrics=True)
        match chance.choice(("add", "subtract", "multiply", "divide", "min", "max", "tiers")):
            case "tiers":
                return {"tiers": self._tiers(depth - 1)}
            case "divide":
                return {"divide": [self.number(depth - 1), self.number(depth - 1)]}
            case "add" if chance.random() < 0.1:
                return {"add": [self.number(depth - 1), BRINK, "1", f"-{BRINK}"]}
            case operator:
                return {operator: [self.number(depth - 1) for _ in range(chance.choice((2, 2, 3)))]}

    def _tiers(self, depth: int) -> Json:
        bounds = sorted({number(self.chance) for _ in range(self.chance.randint(1, 3))})
        return {
            "of": self.number(depth),
            "bands": [{"below": f"{bound:f}", "value": self.number(depth)} for bound in bounds],
            "otherwise": self.number(depth),
        }

    def condition(self, depth: int) -> Json:
        if self.conditions and self.chance.random() < 0.1:
            return self.chance.choice(self.conditions)
        drawn = self._condition(depth)
        self.conditions.append(drawn)
        return drawn

    def _condition(self, depth: int) -> Json:  # noqa: PLR0911  one return for each sort
        chance = self.chance
        sorts = ("comparison", "comparison", "comparison", "between", "oneOf", "isTrue", "isKnown")
        match chance.choice(sorts if depth == 0 else (*sorts, *("all", "any", "not") * 2)):
            case "comparison":
                return {chance.choice((*COMPARISONS, "equals")): self._two(depth)}
            case "between":
                return {"between": [self.number(min(depth, 1)) for _ in range(3)]}
            case "oneOf":
                texts = chance.sample(WORDS, chance.randint(1, 3))
                return {"oneOf": {"of": self._leaf(TEXTS), "texts": texts}}
            case "isTrue":
                return {"isTrue": self._leaf(BOOLEANS)}
            case "isKnown":
                kinds = chance.choice((DECIMALS, TEXTS, BOOLEANS))
                return {"isKnown": self._leaf(kinds, with_metrics=chance.random() < 0.5)}
            case "not":
                return {"not": self.condition(depth - 1)}
            case operator:
                return {operator: [self.condition(depth - 1) for _ in range(chance.randint(1, 3))]}

    def _two(self, depth: int) -> Json:
        """Return two operands; half of the pairs are equal or almost equal."""
        left = self.number(depth)
        match self.chance.randrange(10):
            case 0:
                return [left, left]
            case 1:
                return [{"add": [left, "500000000000000"]}, {"add": [left, "500000000000000.00000001"]}]
            case 2:
                return [{"multiply": [left, "0.1"]}, {"divide": [left, "10"]}]
            case 3 | 4:
                return [self._leaf(DECIMALS, with_metrics=True), str(THRESHOLD)]
            case _:
                return [left, self.number(min(depth, 2))]

    def _leaf(self, names: tuple[str, ...], *, with_metrics: bool = False) -> Json:
        if with_metrics and self.chance.random() < 0.5:
            return {"metric": self.chance.choice(METRICS)}
        return {self.chance.choice(("attribute", "attribute", "input")): self.chance.choice(names)}

    def steps(self) -> Json:
        return [
            {
                "name": f"Step {nth}",
                "outcome": self.chance.choice(OUTCOMES),
                "match": self.chance.choice(("any", "all")),
                "rules": [self._rule(f"R{nth}.{place}") for place in range(self.chance.randint(1, 3))],
            }
            for nth in range(self.chance.choice((0, 1, 2, 3, 4, 5)))
        ]

    def _rule(self, code: str) -> Json:
        return {
            "code": code,
            "message": f"Within {code}",
            "customerMessage": f"About {code}",
            "condition": self.condition(self.chance.randint(0, DEEPEST - 1)),
            "recommendedActions": self.chance.choice(([], ["Call"], ["Call", f"Look at {code}"])),
            "onUnavailable": self.chance.choice((*["indeterminate"] * 4, "matched", "notMatched")),
            "rank": self.chance.choice((1, 2, 100)),
        }

    def limit(self, product: str) -> Json:
        chance = self.chance
        return {
            "product": product,
            "outcomes": chance.sample(OUTCOMES, chance.choice((1, 2, 3, 3, 3))),
            "amount": self._worth_offering(self.number(chance.randint(0, 3))),
            "caps": [
                {
                    "code": f"C{nth}",
                    "message": "A ceiling",
                    "value": self._worth_offering(self.number(chance.randint(0, 2))),
                    "onUnavailable": chance.choice(("indeterminate", "ignore")),
                }
                for nth in range(chance.choice((0, 1, 2, 3)))
            ],
            "roundDownTo": chance.choice(("0.01", "0.05", "1", "33.33", "100", "250")),
            "minimum": chance.choice(("0", "0.01", "1", "100", "500")),
        }

    def _worth_offering(self, drawn: Json) -> Json:
        """Raise a number to the size of an offer: most drawn numbers are smaller."""
        return drawn if self.chance.random() < 0.3 else {"max": [drawn, constant(self.chance), constant(self.chance)]}


DEFAULT_REASON = {"code": "DEFAULT", "message": "No step matched.", "customerMessage": "We can't lend to you yet."}


def document(chance: random.Random) -> Json:
    draft = Draft(chance)
    products = ("term_loan", "overdraft", "advance")[: chance.randint(0, 3)]
    declared = [{"name": name, "kind": kind} for name, kind in KINDS.items()]
    outcome = chance.choice(OUTCOMES)
    return {
        "slug": "drawn",
        "name": "Drawn by chance",
        "defaultOutcome": outcome,
        "defaultReason": None if outcome == "proceed" else DEFAULT_REASON,
        "declaredInputs": declared,
        "attributes": declared,
        "metrics": [_own_metric(slug) for slug in OWN],
        "products": [{"slug": slug, "name": slug} for slug in products],
        "steps": draft.steps(),
        "limits": [draft.limit(product) for product in products],
        "indicators": [],
    }


def _own_metric(slug: str) -> Json:
    definitions = {
        "own_sum": {"source": "metrics", "operation": "add", "operands": ["history_days", "1"]},
        "own_spend": {"source": "transactions", "measure": "money_out", "aggregate": "sum"},
    }
    words = {"name": slug, "meaning": slug, "unit": "AUD", "format": "decimal", "direction": "neutral"}
    return {"slug": slug, "definition": definitions[slug], **words}


def customer(chance: random.Random) -> Customer:
    held = {name: _draw_attribute(chance, kind) for name, kind in KINDS.items()}
    return Customer(
        {slug: _metric(chance) for slug in METRICS},
        {name: each for name, each in held.items() if each is not None},
    )


def inputs(chance: random.Random) -> Mapping[str, Value]:
    return {name: value(chance, kind) for name, kind in KINDS.items()}


def _metric(chance: random.Random) -> Decimal | str:
    if chance.random() < MISSING:
        return chance.choice(METRIC_CAUSES)
    return _decimal(chance).quantize(Decimal("0.0001"), context=EXACT)


def _draw_attribute(chance: random.Random, kind: str) -> Attribute | None:
    if chance.random() < MISSING:
        other = chance.choice([each for each in ("decimal", "string", "boolean") if each != kind])
        expired = chance.choice((NOW, NOW - timedelta(seconds=1)))
        return chance.choice(
            (None, Attribute(None), Attribute(value(chance, other)), Attribute(value(chance, kind), expired))
        )
    return Attribute(value(chance, kind), chance.choice((None, NOW + timedelta(microseconds=1))))


def value(chance: random.Random, kind: str) -> Value:
    match kind:
        case "decimal":
            return _decimal(chance)
        case "string":
            return chance.choice(WORDS)
        case _:
            return chance.random() < 0.5


def _decimal(chance: random.Random) -> Decimal:
    """Return a decimal, sometimes with more places or larger than a policy's number may be."""
    match chance.randrange(40):
        case 0:
            return chance.choice(BEYOND)
        case 1:
            return EXACT.add(number(chance), Decimal("0.000000005"))
        case _:
            return number(chance)


def customers(chance: random.Random, count: int) -> Iterator[Customer]:
    return (customer(chance) for _ in range(count))
