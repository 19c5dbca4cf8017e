"""The share of a metric's value that rests on unreconciled statements, compared with sums in plain Python."""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from pipelines.metrics import METRICS, unreconciled
from pipelines.metrics.definition import EVERY_ROW, Arithmetic, Balances, Groups, Transactions, Where, Window
from tests.pipelines.metrics.customers import START, customer, facts
from tests.pipelines.metrics.oracle import Customer, is_unreconciled

AS_OF = START + timedelta(days=500)
ROWS_AGGREGATES = {"count", "distinct", "days_since"}


def sums_behind(slug: str) -> Iterator[tuple[Where, str, Window, bool]]:
    """Yield filter, measure and window of everything behind a metric, and whether its rows are counted."""
    match METRICS[slug].definition:
        case Arithmetic(inputs=inputs):
            for each in inputs:
                yield from sums_behind(each)
        case Transactions() as each:
            for where in (each.where, *([] if each.of is None else [each.of])):
                yield where, each.measure, each.window, each.measure == "rows" or each.aggregate in ROWS_AGGREGATES
        case Groups(source=source, where=where, window=window):
            key = "facility" if source == "facilities" else "recurring"
            yield where.model_copy(update={key: True}), "amount", window, True
        case Balances(window=window):
            yield EVERY_ROW, "amount", window, True


def expected_share(one: Customer, slug: str) -> Decimal | None:
    part, whole = defaultdict[bool, Decimal](Decimal), defaultdict[bool, Decimal](Decimal)
    for where, measure, window, counts in dict.fromkeys(sums_behind(slug)):
        for row, value in one.matching_rows(where, measure, window):
            size = Decimal(1) if counts else abs(value)
            whole[counts] += size
            part[counts] += size if is_unreconciled(row) else 0
    shares = [part[counts] / size for counts, size in whole.items() if size]
    return max(shares).quantize(Decimal("0.0001"), ROUND_HALF_EVEN) if shares else None


def test_the_share_of_every_metric_agrees_with_plain_python() -> None:
    for seed in range(3):
        rows = customer(random.Random(seed), rows=60, most=(300, 9_000_00, 10**15 - 1)[seed])
        one = Customer(rows, AS_OF, METRICS)
        [figures] = unreconciled.shares(facts(rows, AS_OF), list(METRICS)).to_dicts()
        assert {slug: figures[slug] for slug in METRICS} == {slug: expected_share(one, slug) for slug in METRICS}


def test_shares_are_explained_by_rows() -> None:
    one = facts(customer(random.Random(1), rows=60), AS_OF)
    slugs = ["revenue_180d", "debt_service_to_revenue_180d", "buffer_days_180d", "accounts_180d", "history_days"]
    [figures] = unreconciled.shares(one, slugs).to_dicts()
    for slug in slugs:
        assert unreconciled.explain(one, slug).value == figures[slug]
    assert figures["history_days"] is None


def test_a_customer_without_rows_has_no_shares() -> None:
    pending = customer(random.Random(1))[0] | {"status": "pending"}
    [figures] = unreconciled.shares(facts([pending], AS_OF), ["revenue_90d"]).to_dicts()
    assert figures == {"customer_number": 1, "revenue_90d": None}
