"""How much of each figure rests on statements that don't reconcile, against sums in plain Python and lineage."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Sum, Trace, pointer, value_of
from pipelines.figures.unreconciled import share_lines
from pipelines.reports import REPORTS
from pipelines.reports.aggregate.cash_flow import CASH_FLOW
from pipelines.vocabulary.errors import NotFound
from tests.conftest import examples
from tests.pipelines.reports.examples import LOAN, Row, add_balances, any_row, facts, posted_rows, report, reports, row
from tests.pipelines.reports.test_aggregate import generate_rows

AS_OF = date(2027, 1, 1)
UNPROVED: Row = {"statement_verdict": "unreconciled", "statement_proved": False}
PROVED: Row = {"statement_verdict": "reconciled", "statement_proved": True}
SUMMARY = ("rows", "amount", "shareOfRows", "shareOfAmount")
Path = tuple[str, ...]
Bundle = dict[str, dict[str, Any]]


def shares_by_path(data: Mapping[str, Any]) -> dict[Path, Decimal]:
    """Return the report's shares, by the path of the figure."""
    return {
        (*(pointer(each["row"]) if each["row"] else ()), name): share
        for each in data["unreconciled"]["figures"]
        for name, share in each["shares"].items()
    }


def add_ids(rows: Iterable[Row]) -> list[Row]:
    return [{**each, "transaction_id": nth.to_bytes(16, "big")} for nth, each in enumerate(rows)]


def of_statements(rows: Iterable[Row], seed: int) -> list[Row]:
    """Give some rows a statement that proves them, some a statement that doesn't, and some none."""
    chance = Random(seed)
    return add_ids({**each, **chance.choice(({}, PROVED, UNPROVED))} for each in rows)


def round_share(share: Decimal) -> Decimal:
    return share.quantize(Decimal("0.0001"), ROUND_HALF_EVEN)


def test_a_figures_share_is_the_contribution_of_unreconciled_rows() -> None:
    sold = {"kind": "revenue/card_settlement"}
    rows = [row(0, "30", **sold, **UNPROVED), row(1, "70", **sold), row(2, "-20", **UNPROVED)]
    described = shares_by_path(report("aggregate", add_ids(rows), AS_OF))
    first = ("tables", "monthly_cash_flow", "values", "0")
    assert {path[-1]: str(share) for path, share in described.items() if path[:4] == first} == {
        "moneyIn": "0.3000",
        "moneyOut": "1.0000",
        "net": "0.4167",  # 50 of the 120 that moved
        "creditCount": "0.5000",
        "debitCount": "1.0000",
        "revenue": "0.3000",
    }


def test_every_report_states_the_share_of_unreconciled_rows() -> None:
    rows = add_ids([row(0, "30", **UNPROVED), row(1, "70"), row(2, "-20", **UNPROVED), row(3, "-80")])
    for kind in REPORTS:
        described = report(kind, rows, AS_OF)["unreconciled"]
        assert [described[name] for name in SUMMARY] == [2, 50, Decimal("0.5"), Decimal("0.25")]


def test_no_figure_has_a_share_without_unreconciled_rows() -> None:
    rows = add_ids([row(0, "30", **PROVED), row(1, "70"), row(2, "5", status="pending", **UNPROVED)])
    none = {"rows": 0, "amount": 0, "shareOfRows": 0, "shareOfAmount": 0, "figures": []}
    for kind in REPORTS:
        assert report(kind, rows, AS_OF)["unreconciled"] == none
        empty = report(kind, rows[2:], AS_OF)["unreconciled"]
        assert empty == {**none, "shareOfRows": None, "shareOfAmount": None}


def test_a_balance_rests_on_the_row_that_states_it() -> None:
    rows = add_balances([row(0, "5"), row(40, "5", **UNPROVED), row(80, "5")])
    described = shares_by_path(report("aggregate", add_ids(rows), AS_OF))
    closing = {
        path[3]: share for path, share in described.items() if path[1::3] == ("monthly_cash_flow", "closingBalance")
    }
    assert closing == {"1": 1}


def test_the_share_of_the_risk_figure_is_weighted_by_points() -> None:
    kinds = ("revenue/card_settlement", "cost_of_sales/suppliers", "debt_service/term_loan_repayment")
    taken = (row(nth, "90" if nth % 3 == 0 else "-20", kind=kinds[nth % 3]) for nth in range(240))
    data = report("risk", of_statements(add_balances(taken), seed=3), AS_OF)
    described = shares_by_path(data)
    weighed = whole = Decimal(0)
    for nth, driver in enumerate(data["drivers"]):
        if driver["reading"] is not None:
            whole += driver["maxPoints"]
            weighed += driver["maxPoints"] * described.get(("drivers", str(nth), "reading"), Decimal(0))
    assert abs(described["value",] - weighed / whole) <= Decimal("0.0001")
    assert len(described) > 5


# Cash flow, against loops over dicts


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    rows = draw(st.lists(any_row(90), max_size=12))
    return add_ids({**each, **draw(st.sampled_from(({}, PROVED, UNPROVED)))} for each in rows)


def shares_by_month(rows: list[Row]) -> dict[tuple[str, str], Decimal]:
    """Return the share of unreconciled rows in all contributions, by month and column; above zero."""
    part, whole = defaultdict[tuple[str, str], Decimal](Decimal), defaultdict[tuple[str, str], Decimal](Decimal)
    for each in posted_rows(rows):
        for name, size in _columns(each):
            place = f"{each['date']:%Y-%m-01}", name
            whole[place] += size
            part[place] += size if each.get("statement_verdict") == "unreconciled" else 0
    return {place: share for place, size in whole.items() if (share := round_share(part[place] / size))}


def _columns(each: Row) -> Iterator[tuple[str, Decimal]]:
    size, side = abs(each["amount"]), "In" if each["amount"] > 0 else "Out"
    if not size:
        return
    if each["is_transfer"] or each["category_group"] == "transfer":
        yield f"transfers{side}", size
        return
    yield f"money{side}", size
    yield "net", size
    yield "creditCount" if side == "In" else "debitCount", Decimal(1)
    if each["category_group"] == "revenue":
        yield "revenue", size


FLOWS = {"moneyIn", "moneyOut", "net", "transfersIn", "transfersOut", "creditCount", "debitCount", "revenue"}


@examples(7)
@given(some_rows())
def test_shares_of_cash_flow_agree_with_plain_python(rows: list[Row]) -> None:
    one = facts(rows, AS_OF)
    made = CASH_FLOW.rows(one)
    months = CASH_FLOW.sort_rows(made).collect()["month"].to_list()
    lines = [text for each in share_lines(one, [(CASH_FLOW, made, "/{}")]) for text in each["line"]]
    described = {
        (str(months[int(each["row"][1:])]), name): share
        for each in (json.loads(text, parse_float=Decimal) for text in lines)
        for name, share in each["shares"].items()
        if name in FLOWS
    }
    assert described == shares_by_month(rows)


# Every figure, against its lineage


def contributions_by_row(traced: Trace) -> dict[bytes, Decimal]:
    """Return what each row contributes to a sum, signs left out."""
    found = defaultdict[bytes, Decimal](Decimal)
    if isinstance(traced, Sum):
        for transaction_id, contribution in traced.contributions.iter_rows():
            found[transaction_id] += abs(contribution)
    return found


def figures(node: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all numbers, with tables by their id."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            if name != "unreconciled":
                yield from figures(value, (*path, name))
    elif isinstance(node, list):
        for nth, value in enumerate(node):
            yield from figures(value, (*path, value["id"] if path == ("tables",) else str(nth)))
    elif isinstance(node, int | Decimal) and not isinstance(node, bool):
        yield path


@pytest.fixture(scope="module")
def customer() -> Facts:
    loan = {"account_id": LOAN, "account_type": "loan", "balance": Decimal(-900)}
    rows = [*generate_rows(Random(2), 50), row(0, "-100", **loan), row(30, "-100", **loan)]
    return facts(of_statements(rows, seed=2), AS_OF)


@pytest.fixture(scope="module")
def bundle(customer: Facts) -> Bundle:
    """Return the customer's reports as printed."""
    return {kind: json.loads(each.compute(customer)["data"][0], parse_float=Decimal) for kind, each in REPORTS.items()}


def some(paths: Iterable[Path], most: int) -> list[Path]:
    every = list(paths)
    return Random(1).sample(every, min(most, len(every)))


@pytest.mark.parametrize("kind", ["completeness", "aggregate"])
def test_every_sum_has_the_share_that_its_lineage_gives(customer: Facts, bundle: Bundle, kind: str) -> None:
    data = bundle[kind]
    described, such = shares_by_path(data), set(customer.rows.filter("is_unreconciled")["transaction_id"])
    checked = 0
    for path in some(figures(data), 150):
        sizes = contributions_by_row(REPORTS[kind].explain(customer, data, path))
        if sizes:
            part = sum(size for transaction_id, size in sizes.items() if transaction_id in such)
            assert described.get(path, Decimal(0)) == round_share(part / Decimal(sum(sizes.values()))), path
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("kind", list(REPORTS))
def test_every_share_is_explained_by_rows(customer: Facts, bundle: Bundle, kind: str) -> None:
    data = bundle[kind]
    described: dict[Path, Decimal] = {
        ("unreconciled", "figures", str(nth), "shares", name): share
        for nth, each in enumerate(data["unreconciled"]["figures"])
        for name, share in each["shares"].items()
    }
    assert described
    for path in some(described, 40):
        assert value_of(REPORTS[kind].explain(customer, data, path)) == described[path], path
    for name in SUMMARY:
        assert value_of(REPORTS[kind].explain(customer, data, ("unreconciled", name))) == data["unreconciled"][name]


def test_an_unlisted_share_is_not_found(customer: Facts, bundle: Bundle) -> None:
    nowhere = ("figures", "99999", "shares", "moneyIn"), ("figures", "0", "shares", "nothing"), ("figures",), ()
    for kind, data in bundle.items():
        for path in nowhere:
            with pytest.raises(NotFound):
                REPORTS[kind].explain(customer, data, ("unreconciled", *path))


def test_customers_together_have_the_same_shares_as_alone() -> None:
    each = {1: of_statements(generate_rows(Random(1), 6), 1), 2: add_ids([row(0, "1")])}
    ids = {number: bytes([number]) * 8 for number in each}
    together = [
        {**line, "customer_number": number, "transaction_id": ids[number] + line["transaction_id"][8:]}
        for number, rows in each.items()
        for line in rows
    ]
    for kind in REPORTS:
        for number, data in reports(kind, together, AS_OF):
            assert data == report(kind, [line for line in together if line["customer_number"] == number], AS_OF)
