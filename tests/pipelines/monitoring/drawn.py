"""Random rulesets and customers.

Rulesets share names on purpose: the same slug stands for different metrics, the same attribute is declared with
different kinds, and equal definitions have different slugs.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from pipelines.decisions.readings import Attribute
from tests.pipelines.decisions import drawn
from tests.pipelines.decisions.drawn import NOW, Draft

Json = Any
Metric = tuple[str, str | None]  # what it is computed from, and since when: these identify it
REGISTRY = ("days_behind", "history_days", "revenue_90d")
DEFINITIONS: Mapping[str, Json] = {
    "spend": {"source": "transactions", "measure": "money_out", "aggregate": "sum"},
    "receipts": {"source": "transactions", "measure": "money_in", "aggregate": "sum"},
    "rows": {"source": "transactions", "aggregate": "count"},
}
OWN_SLUGS = ("own_a", "own_b")
STARTS = ("started", "renewed")  # attributes that hold a day
KINDS = {**drawn.KINDS, **dict.fromkeys(STARTS, "string")}
SOMETIMES = {"age": "string", "state": "boolean"}  # kinds that some rulesets declare instead of those in KINDS


@dataclass(frozen=True)
class DrawnRuleset:
    """A ruleset, and the definition of each of its metrics, by slug. `listed`: the customers that it lists."""

    document: Json
    metrics: Mapping[str, Metric]
    listed: frozenset[int] | None


@dataclass(frozen=True)
class DrawnCustomer:
    """A customer. `metrics`: values, or causes why there is none."""

    metrics: Mapping[Metric, Decimal | str]
    attributes: Mapping[str, Attribute]


@dataclass
class RulesetDraft(Draft):
    """A ruleset under construction. `kinds`: kinds of attributes by name; `metrics`: slugs, empty in a scope."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    slugs: Sequence[str] = ()

    def _leaf(self, names: tuple[str, ...], *, with_metrics: bool = False) -> Json:
        if with_metrics and self.slugs and self.chance.random() < 0.6:
            return {"metric": self.chance.choice(self.slugs)}
        kind = drawn.KINDS[names[0]]
        return {"attribute": self.chance.choice([name for name, each in self.kinds.items() if each == kind])}


def ruleset(chance: random.Random, slug: str, customers: int) -> DrawnRuleset:
    kinds = KINDS | {name: kind for name, kind in SOMETIMES.items() if chance.random() < 0.4}
    own = dict(zip(OWN_SLUGS, chance.sample(list(DEFINITIONS), len(OWN_SLUGS)), strict=True))
    computed_from = {**{name: name for name in REGISTRY}, **own}
    metrics: dict[str, Metric] = {name: (of, None) for name, of in computed_from.items()}
    baseline = _baseline(chance, list(metrics)) if chance.random() < 0.6 else None
    if baseline is not None:
        (since,) = baseline["since"].values()
        metrics |= {each["slug"]: (metrics[each["of"]][0], since) for each in baseline["metrics"]}
    rules, scope = RulesetDraft(chance, kinds=kinds, slugs=list(metrics)), RulesetDraft(chance, kinds=kinds)
    listed = frozenset(chance.sample(range(customers), customers // 2)) if chance.random() < 0.3 else None
    applies = chance.choice(("all", {"where": scope.condition(chance.randint(0, 2))}))
    document = {
        "slug": slug,
        "name": slug,
        "appliesTo": applies if listed is None else {"customers": [str(uuid4())]},
        "mutedWhile": scope.condition(chance.randint(0, 1)) if chance.random() < 0.5 else None,
        "attributes": [{"name": name, "kind": kind} for name, kind in kinds.items()],
        "metrics": [own_metric(name, of) for name, of in own.items()],
        "baseline": baseline,
        "rules": [_rule(chance, rules, code) for code in chance.sample("ABCDEF", chance.randint(1, 4))],
    }
    return DrawnRuleset(document, metrics, listed)


def own_metric(slug: str, of: str) -> Json:
    words = {"name": slug, "meaning": of, "unit": "AUD", "format": "decimal", "direction": "neutral"}
    return {"slug": slug, "definition": DEFINITIONS[of], **words}


def _baseline(chance: random.Random, slugs: Sequence[str]) -> Json:
    since = chance.choice(({"date": "2026-03-01"}, {"date": "2026-06-30"}, *({"attribute": name} for name in STARTS)))
    of = chance.sample(slugs, chance.randint(1, 2))
    return {"since": since, "metrics": [{"slug": f"then_{nth}", "of": each} for nth, each in enumerate(of)]}


def _rule(chance: random.Random, draft: Draft, code: str) -> Json:
    return {
        "code": code,
        "message": f"{code} holds.",
        "severity": chance.choice(("info", "warning", "critical")),
        "condition": draft.condition(chance.randint(0, drawn.DEEPEST - 1)),
        "repeatAfterDays": chance.choice((None, 1, 30)),
        "recommendedActions": chance.choice(([], ["Call."])),
    }


def customers(chance: random.Random, count: int, rulesets: Sequence[DrawnRuleset]) -> list[DrawnCustomer]:
    """Draw customers. Each metric has one value or cause, whatever rulesets call it."""
    read = dict.fromkeys(metric for each in rulesets for metric in each.metrics.values())
    plain = list(drawn.customers(chance, count))
    return [
        DrawnCustomer({metric: _outcome(chance) for metric in read}, _draw_attributes(chance, each.attributes))
        for each in plain
    ]


def _outcome(chance: random.Random) -> Decimal | str:
    if chance.random() < drawn.MISSING:
        return chance.choice(drawn.METRIC_CAUSES)
    return drawn.number(chance).quantize(Decimal("0.0001"), context=drawn.EXACT)


def _draw_attributes(chance: random.Random, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Draw attributes; some have the kind that another ruleset declares under the same name."""
    odd = {name: Attribute(drawn.value(chance, kind)) for name, kind in SOMETIMES.items() if chance.random() < 0.3}
    return {**attributes, **odd, **{name: _start(chance) for name in STARTS}}


def _start(chance: random.Random) -> Attribute:
    """Draw a baseline's day, sometimes an invalid one."""
    if chance.random() < 0.7:
        return Attribute((date(2026, 11, 20) - timedelta(days=chance.randint(-2, 400))).isoformat())
    expired = Attribute("2026-03-01", NOW)
    texts = ("", "2026-02-30", "20260301", "1 March 2026", "2026-3-1", "2026-03-01T00:00:00", "٢٠٢٦-٠٣-٠١")
    return chance.choice((Attribute(None), Attribute(Decimal(1)), expired, *map(Attribute, texts)))
