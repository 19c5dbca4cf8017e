"""A simulation agrees with evaluating every single day."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.facts import Facts
from pipelines.figures.tallies import Tallies
from pipelines.monitoring import (
    Ruleset,
    VersionedRuleset,
    check_document,
    observe_customers,
    plan_rulesets,
    simulation,
    snapshots,
)
from pipelines.monitoring.simulation import MAX_FIRINGS, Simulation, merge, simulate
from pipelines.monitoring.snapshots import AttributeChange, AttributeHistories, Day, attribute_at
from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS
from tests.conftest import examples
from tests.pipelines.metrics.customers import START, Row, customer

encode = msgspec.json.Encoder(decimal_format="number").encode
RULESET_ID = UUID(int=7)
RULES: Mapping[str, Any] = {
    "SUM": {"lessThan": [{"metric": "net_30d"}, "0"]},
    "TYPED": {"lessThan": [{"metric": "of_savings_30d"}, "0"]},
    "SHARE": {"moreThan": [{"metric": "wages_share"}, "0.1"]},
    "QUIET": {"atLeast": [{"metric": "days_since_card"}, "9"]},
    "PAYERS": {"atLeast": [{"metric": "payers_60d"}, "3"]},
    "LOW": {"lessThan": [{"metric": "lowest_20d"}, "500"]},
    "MONTH": {"lessThan": [{"metric": "mean_month"}, "2000"]},
    "STALE": {"moreThan": [{"metric": "behind"}, "6"]},
    "DOWN": {"lessThan": [{"metric": "then_30d"}, {"metric": "net_30d"}]},
    "SCORE": {"lessThan": [{"attribute": "score"}, "500"]},
    "EITHER": {"any": [{"isTrue": {"attribute": "flag"}}, {"lessThan": [{"metric": "fresh_net"}, "0"]}]},
}
METRICS: Sequence[Mapping[str, Any]] = [
    {"slug": "net_30d", "definition": {"source": "transactions", "window": {"days": 30}, "aggregate": "sum"}},
    {
        "slug": "of_savings_30d",
        "definition": {
            "source": "transactions",
            "where": {"accountTypes": ["savings", "credit_card"]},
            "window": {"days": 30},
            "aggregate": "sum",
        },
    },
    {
        "slug": "wages_share",
        "historyDays": 10,
        "definition": {
            "source": "transactions",
            "where": {"categories": ["wages"]},
            "of": {},
            "measure": "rows",
            "window": {"days": 45},
            "aggregate": "share",
        },
    },
    {
        "slug": "days_since_card",
        "definition": {"source": "transactions", "where": {"channels": ["card"]}, "aggregate": "days_since"},
    },
    {
        "slug": "payers_60d",
        "definition": {
            "source": "transactions",
            "by": "counterparty",
            "window": {"days": 60, "offset": 3},
            "aggregate": "distinct",
        },
    },
    {"slug": "lowest_20d", "definition": {"source": "balances", "window": {"days": 20}, "aggregate": "min"}},
    {
        "slug": "mean_month",
        "definition": {"source": "transactions", "window": {"months": 2}, "aggregate": "monthly_mean"},
    },
    {"slug": "behind", "definition": {"source": "history", "figure": "days_behind"}},
    {
        "slug": "fresh_net",
        "freshDays": 4,
        "definition": {"source": "transactions", "window": {"days": 14}, "aggregate": "sum"},
    },
]
WORDS = {"name": "Name", "meaning": "Meaning", "unit": "count", "format": "decimal", "direction": "neutral"}
BASELINES: Sequence[Any] = ({"date": "2024-05-20"}, {"attribute": "begun"})


def ruleset(codes: Sequence[str], **also: Any) -> Ruleset:
    read = {code: msgspec.json.encode(RULES[code]).decode() for code in codes}
    document = {
        "slug": "some",
        "name": "Some",
        "attributes": [
            {"name": "score", "kind": "decimal"},
            {"name": "flag", "kind": "boolean"},
            {"name": "begun", "kind": "string"},
            {"name": "mute", "kind": "boolean"},
        ],
        "metrics": [{**WORDS, **each} for each in METRICS],
        "baseline": {"since": BASELINES[0], "metrics": [{"slug": "then_30d", "of": "net_30d"}]},
        "rules": [{"code": code, "message": code, "condition": msgspec.json.decode(read[code])} for code in codes],
        **also,
    }
    found = check_document(document)
    assert found.ruleset is not None, found.faults
    return found.ruleset


def days(first: date, count: int) -> list[Day]:
    """Return days that end at 14:00 UTC, as days of eastern Australia do."""
    every = (first + timedelta(days=nth) for nth in range(count))
    return [Day(day, datetime.combine(day, time(14), UTC)) for day in every]


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TRANSACTIONS).sort(SORT_KEY)


# The oracle: every day evaluated alone, and a state for each customer and rule


@dataclass
class Expected:
    """The firings by customer, day and rule, each with its readings; and for each rule and month the days on which it
    was evaluated, true and unknown, and the causes.
    """

    fired: list[tuple[int, date, str]] = field(default_factory=list)
    read: dict[tuple[int, date, str], Any] = field(default_factory=dict)
    days: dict[tuple[date, str], list[int]] = field(default_factory=dict)
    causes: dict[tuple[str, str, str, str, date], int] = field(default_factory=dict)


def expected_result(of: Ruleset, rows: pl.DataFrame, past: AttributeHistories, every: Sequence[Day]) -> Expected:
    plan = plan_rulesets([VersionedRuleset(RULESET_ID, 1, of, None)])
    found, state = Expected(), dict[tuple[int, str], date]()
    repeats = {rule.code: rule.repeat_after_days for rule in of.rules}
    for day in every:
        by_then = rows.filter(pl.col("date") <= day.date)
        posted = by_then.filter(pl.col("superseded_seq").is_null(), pl.col("status") == "posted")
        numbers = posted["customer_number"].unique().to_list()
        known = by_then.filter(pl.col("customer_number").is_in(numbers))
        stated = {
            number: {name: attribute_at(changes, day.at) for name, changes in past.get(number, {}).items()}
            for number in numbers
        }
        seen = observe_customers(plan, Facts(known, day.date), stated, day.at)
        month = day.date.replace(day=1)
        for number, _, rule, holds in seen.outcomes.iter_rows():
            counts = found.days.setdefault((month, rule), [0, 0, 0])
            for nth, applies in enumerate((True, holds is True, holds is None)):
                counts[nth] += applies
            last = state.get((number, rule))
            repeat_days = repeats[rule]
            again = last is not None and repeat_days is not None and (day.date - last).days >= repeat_days
            if holds is False:
                state.pop((number, rule), None)
            elif holds and (last is None or again):
                state[number, rule] = day.date
                found.fired.append((number, day.date, rule))
                found.read[number, day.date, rule] = seen.describe_firings(number, RULESET_ID, [rule])["rules"][0][
                    "read"
                ]
        for _, _, rule, kind, name, cause in seen.causes.iter_rows():
            key = (rule, kind, name, cause, month)
            found.causes[key] = found.causes.get(key, 0) + 1
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[Ruleset, pl.DataFrame, AttributeHistories, list[Day]]:
    chance = random.Random(draw(st.integers(0, 2**32)))
    codes = draw(st.lists(st.sampled_from(list(RULES)), min_size=1, max_size=4, unique=True))
    also: dict[str, Any] = {
        "baseline": {"since": chance.choice(BASELINES), "metrics": [{"slug": "then_30d", "of": "net_30d"}]}
    }
    if chance.random() < 0.3:
        also["mutedWhile"] = {"isTrue": {"attribute": "mute"}}
    if chance.random() < 0.3:
        also["appliesTo"] = {"where": {"moreThan": [{"attribute": "score"}, "100"]}}
    of = ruleset(codes, **also)
    rules = [each.model_copy(update={"repeat_after_days": chance.choice((None, 1, 5, 12))}) for each in of.rules]
    of = of.model_copy(update={"rules": tuple(rules)})
    first = START + timedelta(days=chance.randint(100, 160))
    every = days(first, chance.randint(1, 45))
    numbers = range(1, chance.randint(2, 4))
    rows = [
        row
        for number in numbers
        for row in customer(chance, number, rows=chance.choice((1, 5, 60)), days=chance.choice((40, 150, 200)))
    ]
    return of, frame(rows), {number: draw_changes(chance, every) for number in numbers}, every


def draw_changes(chance: random.Random, every: Sequence[Day]) -> dict[str, list[AttributeChange]]:
    values: dict[str, Any] = {
        "score": lambda: Decimal(chance.choice((50, 400, 700))),
        "flag": lambda: chance.choice((True, False)),
        "begun": lambda: chance.choice((str(chance.choice(every).date), "2024-01-30", "soon")),
        "mute": lambda: chance.choice((True, False)),
    }
    chosen = [name for name in values if chance.random() < 0.8]
    return {name: changes(chance, every, values[name]) for name in chosen}


def changes(chance: random.Random, every: Sequence[Day], value: Any) -> list[AttributeChange]:
    def moment() -> datetime:
        """Draw a time near the days, sometimes exactly at the end of one."""
        after = timedelta(days=chance.randint(-3, 10), hours=chance.choice((0, 0, 5, 23)))
        return chance.choice(every).at + after

    times = sorted({moment() for _ in range(chance.randint(1, 4))})
    return [
        AttributeChange(time_, None if chance.random() < 0.2 else value(), moment() if chance.random() < 0.4 else None)
        for time_ in times
    ]


def run(
    of: Ruleset, rows: pl.DataFrame, past: AttributeHistories, every: Sequence[Day]
) -> tuple[Tallies, pl.DataFrame]:
    parts = list(simulate(Simulation(RULESET_ID, of, every), rows, past, MAX_FIRINGS))
    firings = pl.concat([pl.DataFrame(schema=simulation.FIRINGS), *(part.firings for part in parts)])
    return merge(part.tallies for part in parts), firings


@pytest.mark.service  # evaluates every day alone, for each example
@examples(2)
@given(cases(), st.sampled_from((1, 300, snapshots.SNAPSHOT_ROWS)), st.sampled_from((1, 40, simulation.MAX_SNAPSHOTS)))
def test_simulation_agrees_with_every_day_evaluated_alone(
    case: tuple[Ruleset, pl.DataFrame, AttributeHistories, list[Day]], snapshot_rows: int, most_snapshots: int
) -> None:
    of, rows, past, every = case
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(snapshots, "SNAPSHOT_ROWS", snapshot_rows)
        patched.setattr(simulation, "MAX_SNAPSHOTS", most_snapshots)
        tallies, firings = run(of, rows, past, every)
    wanted = expected_result(of, rows, past, every)
    found = list(firings.select("customer_number", "date", "rule").iter_rows())
    order = [rule.code for rule in of.rules]
    assert found == sorted(wanted.fired, key=lambda each: (*each[:2], order.index(each[2])))
    for number, day, rule, read in firings.iter_rows():
        assert read == encode(wanted.read[number, day, rule]).decode()
    counted = {(month, rule): list(counts) for month, rule, *counts in tallies["days"].iter_rows()}
    assert counted == wanted.days
    causes = {(*key, month): count for *key, month, count in tallies["causes"].iter_rows()}
    assert causes == wanted.causes


def test_a_snapshot_has_only_rows_within_reach_and_one_balance_per_day() -> None:
    """Otherwise all 400,000 rows of a customer would be read for every day of the simulation."""
    rows = [
        {**row, "date": START + timedelta(days=nth // 10)}
        for nth, row in enumerate(customer(random.Random(1), rows=900))
    ]
    plain = Facts(frame(rows), START + timedelta(days=89))
    last = pl.DataFrame({"snapshot": [0], "customer_number": [1], "date": [START + timedelta(days=89)]})
    seen = snapshots.FactsOfDays(plain, last, reach=7)
    assert seen.rows.height == plain.rows.filter(pl.col("date") >= START + timedelta(days=82)).height
    assert seen.closings.drop("customer_number").equals(plain.closings.drop("customer_number"))
    assert snapshots.FactsOfDays(plain, last).rows.height == plain.rows.height
