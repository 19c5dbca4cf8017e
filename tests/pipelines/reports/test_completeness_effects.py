"""A reason states by how many points the score rises if it is resolved, as supplying what it asks for does."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.figures.context import Context
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import (
    NOBODY_KNOWN,
    add_ids,
    completeness,
    daily,
    in_savings,
    score,
    some_of,
    statements,
)
from tests.pipelines.reports.examples import Row, add_balances, any_row, mark_balances, row


def effects(rows: Sequence[Row], as_of: int, context: Context = NOBODY_KNOWN) -> dict[str, Any]:
    """Return the effect of each reason by its code, and of all `Together`."""
    data = completeness(rows, as_of, context)
    alone = {each["code"].removeprefix("Completeness."): each["effect"] for each in data["reasons"]}
    together = data["resolvedTogether"]
    assert together["completenessScore"] == data["summary"]["completenessScore"] + together["effect"]
    return {**alone, "Together": together["effect"]}


def sound(days: Sequence[int] = range(-5, 366)) -> list[Row]:
    return add_ids(add_balances(daily(days)))


def shift_balances(rows: Sequence[Row], places: Sequence[int], cents: int) -> list[Row]:
    return [
        {**each, "balance": each["balance"] + sum(nth >= place for place in places) * Decimal(cents).scaleb(-2)}
        for nth, each in enumerate(rows)
    ]


def test_resolving_alone_has_the_stated_effect() -> None:
    whole = sound()
    without = [{**each, "balance": None} for each in whole]
    partly = [{**each, "balance": None} if 50 < nth < 90 else each for nth, each in enumerate(whole)]
    cases: dict[str, list[Row]] = {
        "BalanceBreaks": [*whole[:100], *whole[140:200], *whole[230:]],
        "Rounding": shift_balances(whole, (40, 90, 91), 2),
        "NoBalances": without,
        "PartialBalances": partly,
    }
    best = score(mark_balances(whole), 366)
    for code, rows in cases.items():
        found = effects(mark_balances(rows), 366)
        assert found[code] == best - score(mark_balances(rows), 366) > 0, code
        assert found["Together"] >= found[code], code


def test_supplying_the_rows_since_then_has_the_effect_of_stale() -> None:
    rows = sound(range(-5, 367))
    old = rows[:300]
    assert (
        effects(mark_balances(old), 366)["Stale"]
        == score(mark_balances(rows), 366) - score(mark_balances(old), 366)
        > 0
    )


def test_supplying_earlier_rows_has_the_effect_of_a_short_history() -> None:
    rows = sound(range(11, 101))
    short = rows[60:]
    found = effects(mark_balances(short), 101)
    assert found["ShortHistory"] == score(mark_balances(rows), 101) - score(mark_balances(short), 101) > 0


def test_supplying_the_unseen_days_has_the_effect_of_few_days_seen() -> None:
    rows = add_ids(daily(range(-5, 366)))
    assert effects(rows, 366).keys().isdisjoint({"FewDaysSeen"})
    holed = [*rows[:100], *rows[180:]]
    data = completeness(holed, 366)
    [reason] = [each for each in data["reasons"] if each["code"] == "Completeness.FewDaysSeen"]
    assert reason["message"] == "Only 298 of the last 365 days are seen."  # 80 are missing, 13 of them within limits
    assert reason["effect"] == score(rows, 366) - score(holed, 366) > 0


def test_supplying_a_silence_has_its_effect() -> None:
    rows = add_ids(daily(range(-5, 366)))
    holed = [*rows[:100], *rows[180:]]
    assert effects(holed, 366)["Silences"] == score(rows, 366) - score(holed, 366)


def test_many_rows_with_a_short_history_and_a_one_sided_transfer_have_effects() -> None:
    """Polars filters more than 16,384 rows in parts, and then fails on a condition that is a constant."""
    transfer = row(1, "-500", kind="transfer/own_transfer", clean_description="SAVER", other_account="4821")
    found = effects([transfer, *([row(2, "1")] * 16_384), row(3, "1")], 4)
    assert found["ShortHistory"] > 0


def test_the_other_side_of_transfers_has_the_effect_of_the_mentioned_account() -> None:
    details = {"kind": "transfer/own_transfer", "clean_description": "SAVER"}
    rows = add_balances(
        row(day, "10", **({**details, "other_account": "4821"} if day % 9 == 0 else {})) for day in range(-5, 366)
    )
    met = [{**each, "is_transfer": True} for each in rows]
    found = effects(mark_balances(add_ids(rows)), 366)
    expected = score(mark_balances(add_ids(met)), 366) - score(mark_balances(add_ids(rows)), 366)
    assert found["MentionedAccount"] == found["OneSidedTransfers"] == found["Together"] == expected > 0


def test_resolving_one_of_two_reasons_for_a_day_has_no_effect_alone() -> None:
    """The balances of a statement that does not reconcile prove nothing, even without breaks."""
    whole = sound()
    rows = [
        {**each, "statement_verdict": "unreconciled"} if 95 <= nth <= 145 else each
        for nth, each in enumerate(whole)
        if not 100 <= nth < 140
    ]
    found = effects(mark_balances(rows), 366)
    assert found["BalanceBreaks"] == 0
    best = score(mark_balances(whole), 366)
    assert found["Together"] == best - score(mark_balances(rows), 366)


def test_what_cannot_be_known_has_no_number() -> None:
    nothing = completeness([row(0, "5", status="pending")], 9)
    assert [each["effect"] for each in nothing["reasons"]] == [None]
    assert nothing["resolvedTogether"] == {"completenessScore": None, "effect": None}
    lender = row(365, "-7", kind="debt_service/term_loan_repayment", counterparty_name="Prospa")
    assert effects([*daily(range(-5, 366)), lender], 366)["UnsharedLender"] is None


@examples(6)
@given(statements(most_days=380), st.data())
def test_supplying_removed_days_has_the_effect_of_the_breaks(whole: list[Row], data: st.DataObject) -> None:
    """Where the first and the last day remain, and every removed day is one that nothing else leaves open."""
    whole = add_ids({**each, "kind": "unknown", "category": "unknown_debit"} for each in whole)
    first, last = whole[0]["date"], whole[-1]["date"]
    some = data.draw(some_of(whole, "date"))
    left = [each for each in whole if each in some or each["date"] in (first, last)]
    assume(len(left) < len(whole))
    found = effects(mark_balances(left), 380)
    assert found["BalanceBreaks"] == score(mark_balances(whole), 380) - score(mark_balances(left), 380)


@examples(6)
@given(st.lists(any_row(most_days=400), min_size=1, max_size=25), st.integers(0, 500))
def test_all_together_have_at_least_the_effect_of_each_alone(rows: list[Row], as_of: int) -> None:
    rows = [row(0, "5"), *rows]
    found = effects(rows, as_of)
    together = found.pop("Together")
    assert all(effect is None or 0 <= effect <= together for effect in found.values()), found
    assert score(rows, as_of) + together <= 100


def test_days_that_a_savings_account_gains_are_proven_if_all_is_resolved() -> None:
    rows = [row(day, "5") for day in (0, 7, 200)]
    found = effects(in_savings(rows), 250)
    assert found["Together"] >= found["FewDaysSeen"] > 0


@examples(3)
@given(statements(most_days=300), statements(most_days=300))
def test_another_account_lowers_no_score_that_resolving_reaches(main: list[Row], other: list[Row]) -> None:
    both = [*mark_balances(main), *mark_balances(in_savings(other))]
    data = completeness(both, 310)
    assert data["resolvedTogether"]["completenessScore"] >= data["summary"]["completenessScore"]
