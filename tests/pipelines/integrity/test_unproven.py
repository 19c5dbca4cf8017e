"""Accounts whose balances prove nothing after a silence, until a person resolves it."""

from datetime import timedelta

from pipelines.figures.facts import Facts
from pipelines.integrity import counts_unproven_until, findings, open_silences, reworded_customers, unproven_since
from tests.pipelines.integrity.test_findings import TODAY, context_with_resolution
from tests.pipelines.reports.completeness_examples import add_ids
from tests.pipelines.reports.examples import START, row, transactions


def test_balances_are_unproven_from_a_silence_on_until_a_person_resolves_it() -> None:
    days = [*range(100), *range(130, 230)]
    rows = [row(day, "-1", kind="cost_of_sales/suppliers") for day in days]
    silent = transactions(add_ids(rows)).collect()
    assert unproven_since(Facts(silent, TODAY))["unproven_since"].to_list() == [START + timedelta(days=130)]
    [found] = findings(Facts(silent, TODAY)).to_dicts()
    assert found["finding"] == "month_withheld"
    assert unproven_since(Facts(silent, TODAY, context_with_resolution(found["key"]))).is_empty()


def test_balances_after_a_silence_are_proven_if_the_account_was_hardly_used_before_it() -> None:
    rows = [row(day, "-1", kind="cost_of_sales/suppliers") for day in (0, *range(130, 230))]
    facts = Facts(transactions(add_ids(rows)).collect(), TODAY)
    assert unproven_since(facts).is_empty()
    assert open_silences(facts).select("silent_since", "date").rows() == [(START, START + timedelta(days=130))]
    [found] = findings(facts).to_dicts()
    assert found["finding"] == "month_withheld"
    assert open_silences(Facts(facts.transactions, TODAY, context_with_resolution(found["key"]))).is_empty()


def test_another_finding_at_the_row_after_a_resolved_silence_leaves_balances_proven() -> None:
    days = [*range(100), *range(130, 230)]
    texts = ["" if day == 130 else "Supplier" for day in days]
    rows = [
        row(day, "-1", kind="cost_of_sales/suppliers", description=text) for day, text in zip(days, texts, strict=True)
    ]
    silent = transactions(add_ids(rows)).collect()
    keys = {each["finding"]: each["key"] for each in findings(Facts(silent, TODAY)).to_dicts()}
    assert set(keys) == {"month_withheld", "texts_blanked"}
    assert unproven_since(Facts(silent, TODAY, context_with_resolution(keys["month_withheld"]))).is_empty()
    assert not unproven_since(Facts(silent, TODAY, context_with_resolution(keys["texts_blanked"]))).is_empty()


def test_balances_are_unproven_from_a_moved_receipt_on() -> None:
    posted = [(day, START + timedelta(days=day)) for day in range(80)]
    moved = (10, START + timedelta(days=70))
    rows = [
        row(day, "900", kind="revenue/customer_transfer", description=f"Deposit {printed:%d %b}")
        for day, printed in (*posted, moved)
    ]
    facts = Facts(transactions(add_ids(rows)).collect(), TODAY)
    assert findings(facts)["finding"].to_list() == ["receipts_moved"]
    assert unproven_since(facts)["unproven_since"].to_list() == [START + timedelta(days=10)]
    assert unproven_since(
        Facts(facts.transactions, TODAY, context_with_resolution(findings(facts)["key"].item()))
    ).is_empty()


def test_texts_of_a_customer_prove_nothing_until_a_person_explains_a_forged_one() -> None:
    bills = [row(day, "-400", kind="operating/software") for day in range(200, 300, 7)]
    facts = Facts(transactions(add_ids([row(0, "9000"), *bills])).collect(), TODAY)
    assert findings(facts)["finding"].to_list() == ["instalments_reworded"]
    assert reworded_customers(facts)["customer_number"].to_list() == [1]
    explained = Facts(facts.transactions, TODAY, context_with_resolution(findings(facts)["key"].item()))
    assert reworded_customers(explained).is_empty()


def two_accounts_with_odd_texts(count: int) -> Facts:
    """Return a business with two accounts whose bank writes capitals. In one, `count` rows from day 100 on do not."""
    usual = [
        row(day, "-100", kind="cost_of_sales/suppliers", description="PAYMENT TO SMITH", account_id=account)
        for account in (b"first", b"second")
        for day in range(400)
    ]
    odd = [
        row(100 + n, "-500", kind="cost_of_sales/suppliers", description="Jones Hardware", account_id=b"first")
        for n in range(count)
    ]
    return Facts(transactions(add_ids([row(0, "9000"), *usual, *odd])).collect(), TODAY)


def test_more_odd_texts_are_not_seen_less() -> None:
    found = {n: findings(two_accounts_with_odd_texts(n))["rows"].sum() for n in (1, 2, 4, 8)}
    assert found == {1: 0, 2: 2, 4: 4, 8: 8}


def test_bad_rows_of_an_account_with_odd_texts_are_not_counted_up_to_the_last_of_them() -> None:
    facts = two_accounts_with_odd_texts(3)
    [found] = findings(facts).to_dicts()
    assert found["finding"] == "texts_reworded"
    [account] = counts_unproven_until(facts).to_dicts()
    assert account["account_id"] == b"first"
    assert account["counts_unproven_until"] == START + timedelta(days=102)
    assert reworded_customers(facts).is_empty()
    explained = Facts(facts.transactions, TODAY, context_with_resolution(found["key"]))
    assert counts_unproven_until(explained).is_empty()


def test_bad_rows_are_not_counted_up_to_the_last_fee_without_a_returned_payment() -> None:
    fees = [row(day, "-15", kind="distress/dishonour_fee") for day in (10, 60)]
    facts = Facts(transactions(add_ids([row(0, "9000"), *fees, row(200, "-1")])).collect(), TODAY)
    assert findings(facts)["finding"].to_list() == ["dishonours_withheld"]
    assert counts_unproven_until(facts)["counts_unproven_until"].to_list() == [START + timedelta(days=60)]
    explained = Facts(facts.transactions, TODAY, context_with_resolution(findings(facts)["key"].item()))
    assert counts_unproven_until(explained).is_empty()
