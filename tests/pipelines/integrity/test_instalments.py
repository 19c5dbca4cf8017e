"""Loan instalments with texts of monthly bills are found by their rhythm, or by texts that contradict each other."""

from collections.abc import Sequence

from pipelines.integrity import findings
from tests.pipelines.reports.completeness_examples import facts_of
from tests.pipelines.reports.examples import Row, row

DAYS = 400


def bills(size: str, parties: Sequence[str], every: int = 30, category: str = "software", start: int = 5) -> list[Row]:
    """Return equal payments, each to the next of the parties."""
    return [
        row(day, f"-{size}", kind=f"operating/{category}", counterparty_group=parties[nth % len(parties)])
        for nth, day in enumerate(range(start, DAYS, every))
    ]


def are_odd(*rows: Row) -> bool:
    takings = [row(day, "9000", kind="revenue/customer_transfer") for day in range(0, DAYS, 10)]
    given = sorted([*takings, *rows], key=lambda each: each["date"])
    return "instalments_reworded" in findings(facts_of(given, DAYS))["finding"].to_list()


def test_the_same_sum_every_week_is_odd_however_long_ago() -> None:
    assert are_odd(*bills("1730.98", ["a"], every=7)[:8])
    assert not are_odd(*bills("1730.98", ["a"]))


def test_a_few_names_of_other_categories_hide_no_rhythm() -> None:
    named = bills("1730.98", ["a"], every=7)
    other = [
        {**each, "category": "fitness", "category_group": "operating"} if nth % 3 == 0 else each
        for nth, each in enumerate(named)
    ]
    assert are_odd(*other)


def test_the_same_sum_each_month_to_changing_payees_is_odd() -> None:
    assert are_odd(*bills("1730.98", ["a", "b", "a", "c"]))
    assert not are_odd(*bills("1730.98", ["a", "a", "a", "a", "b"]))
    assert not are_odd(*bills("17.98", ["a", "b"]))


def test_the_same_sum_each_month_is_odd_beside_far_lower_bills_of_the_payee() -> None:
    assert are_odd(*bills("1730.98", ["a"]), *bills("89", ["a"], start=12))
    assert not are_odd(*bills("1730.98", ["a"]), *bills("890", ["a"], start=12))
    assert not are_odd(*bills("1730.98", ["a"]), *bills("89", ["b"], start=12))
    phones = {"category": "telecommunications"}
    assert not are_odd(*bills("1730.98", ["a"], **phones), *bills("89", ["a"], start=12, **phones))
