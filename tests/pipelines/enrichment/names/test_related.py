"""Related parties are recognised by name or ABN in texts of their own customer; their money is never revenue."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.knowledge import RELATED_PARTIES
from pipelines.enrichment.names.related import mark_related_parties
from pipelines.vocabulary.taxonomy import GROUPS, TAXONOMY
from tests.pipelines.enrichment.examples import held_rows

JOHN = {"name": "John Smith", "role": "director"}
ROASTERS = {"name": "Harbour Roasters Pty Ltd", "abn": "51824753556", "role": "group_company"}
REVENUE = {slug for slug, category in TAXONOMY.categories.items() if category.group == "revenue"}


def declare(*parties: Mapping[str, Any]) -> pl.DataFrame:
    complete = [{"customer_number": 1, "abn": None, **party} for party in parties]
    return pl.DataFrame(complete, schema=RELATED_PARTIES)


def mark_one(description: str, *parties: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Mark one row of a customer with these parties."""
    row = {"description": description, "amount": Decimal(500), "category": "customer_transfer", **fields}
    group = GROUPS[str(row["category"])]
    return mark_related_parties(held_rows({"category_group": group, **row}), declare(*parties)).to_dicts()[0]


@pytest.mark.parametrize(
    "text",
    [
        "Transfer from JOHN SMITH",
        "Osko Payment Smith John 8812",
        "PAYMENT FROM J SMITH LOAN",
        "DEPOSIT MR J. SMITH",
        "deposit john smith",
        "ＪＯＨＮ ＳＭＩＴＨ",
    ],
)
def test_a_person_is_named_in_full_or_by_initial_and_surname(text: str) -> None:
    assert mark_one(text, JOHN)["related_party"] == "John Smith"


@pytest.mark.parametrize(
    "text", ["Transfer from JANE SMITH", "R SMITH", "JOHN SMITHSON", "SMITH", "JOHN BAKER", "AJ SMITH", "GOLDSMITH J"]
)
def test_other_people_with_the_surname_are_not_matched(text: str) -> None:
    row = mark_one(text, JOHN)
    assert row["related_party"] is None
    assert row["category"] == "customer_transfer"


def test_middle_names_may_be_left_out_or_cut_to_initials() -> None:
    declared_so = {"name": "Dr John Albert Smith", "role": "director"}
    for text in ("JOHN SMITH", "JOHN A SMITH", "J A SMITH", "SMITH JOHN ALBERT"):
        assert mark_one(text, declared_so)["related_party"] == "Dr John Albert Smith"


def test_accents_are_not_needed() -> None:
    party = {"name": "José Núñez", "role": "director"}
    assert mark_one("FROM JOSE NUNEZ", party)["related_party"] == "José Núñez"
    assert mark_one("FROM JOSÉ NÚÑEZ", party)["related_party"] == "José Núñez"


@pytest.mark.parametrize(
    "text",
    [
        "Direct Credit HARBOUR ROASTERS",
        "HARBOUR ROASTERS PTY LTD INV 12",
        "Harbour Roasters P/L",
        "Direct Credit 123456 HARBOUR ROASTE INV",
        "HARBOUR RO",
    ],
)
def test_a_company_is_named_without_its_legal_form_and_cut(text: str) -> None:
    row = mark_one(text, ROASTERS)
    assert row["related_party"] == "Harbour Roasters Pty Ltd"
    assert row["category"] == "related_entity"
    assert row["category_group"] == "transfer"


@pytest.mark.parametrize("text", ["HARBOUR R", "HARBOUR ROADHOUSE", "OLD HARBOUR", "HARBOUR", "ROASTERS"])
def test_shorter_parts_of_the_name_are_not_matched(text: str) -> None:
    assert mark_one(text, ROASTERS)["related_party"] is None


def test_abn_alone_is_matched() -> None:
    row = mark_one("TFR 51 824 753 556", ROASTERS, counterparty_abn="51824753556", amount=Decimal(-5))
    assert row["related_party"] == "Harbour Roasters Pty Ltd"
    assert row["category"] == "related_entity"
    assert row["category_basis"] == "ABN 51824753556"


def test_longest_name_wins() -> None:
    short, long = ({"name": name, "role": "group_company"} for name in ("Harbour Roasters", "Harbour Roasters North"))
    assert mark_one("HARBOUR ROASTERS NORTH PTY LTD", short, long)["related_party"] == "Harbour Roasters North"
    assert mark_one("HARBOUR ROASTERS SALES", short, long)["related_party"] == "Harbour Roasters"


def test_party_of_another_customer_is_not_matched() -> None:
    rows = held_rows({"description": "J SMITH"}, {"description": "J SMITH", "customer_number": 2})
    parties = pl.DataFrame([{"customer_number": 2, "abn": None, **JOHN}], schema=RELATED_PARTIES)
    assert mark_related_parties(rows, parties)["related_party"].to_list() == [None, "John Smith"]


@pytest.mark.parametrize(
    ("text", "amount", "before", "after"),
    [
        ("J SMITH", 500, "customer_transfer", "owner_contribution"),
        ("J SMITH CAPITAL", 500, "customer_transfer", "owner_contribution"),
        ("J SMITH LOAN TO COMPANY", 500, "customer_transfer", "director_loan_in"),
        ("DEPOSIT J SMITH RETURNED", 500, "returned_payment", "returned_payment"),
        ("J SMITH", -500, "unknown_debit", "owner_drawings"),
        ("J SMITH DRAWINGS", -500, "suppliers", "owner_drawings"),
        ("J SMITH DIV FY26 DIVIDEND", -500, "unknown_debit", "dividend_paid"),
        ("J SMITH LOAN REPAYMENT", -500, "term_loan_repayment", "director_loan_out"),
        ("J SMITH WAGES", -500, "unknown_debit", "wages"),
        ("PAYROLL J SMITH", -500, "wages", "wages"),
        ("J SMITH FUEL REIMBURSEMENT", -500, "reimbursement", "reimbursement"),
        ("J SMITH RENT SHOP 4", -500, "rent", "rent"),
    ],
)
def test_category_of_a_payment_with_an_owner(text: str, amount: int, before: str, after: str) -> None:
    row = mark_one(text, JOHN, amount=Decimal(amount), category=before)
    assert row["category"] == after
    assert row["category_group"] == GROUPS[after]


@pytest.mark.parametrize("source", ["correction", "client_rule"])
def test_category_set_by_the_client_stays(source: str) -> None:
    row = mark_one("J SMITH INVOICE 12", JOHN, category_source=source)
    assert row["related_party"] == "John Smith"
    assert row["category"] == "customer_transfer"


@pytest.mark.parametrize(
    "fields",
    [
        {"counterparty_kind": "government", "counterparty_name": "Australian Taxation Office", "category": "bas"},
        {"counterparty_kind": "business", "counterparty_name": "AustralianSuper", "category": "superannuation"},
        {"counterparty_kind": "own", "category": "own_transfer"},
    ],
)
def test_payment_to_others_that_mentions_the_party_keeps_its_category(fields: dict[str, Any]) -> None:
    row = mark_one("BPAY REF JOHN SMITH", JOHN, amount=Decimal(-500), **fields)
    assert row["related_party"] == "John Smith"
    assert row["category"] == fields["category"]


def test_merchant_with_the_name_is_not_the_party() -> None:
    assert mark_one("J SMITH BUTCHERS CARD XX1234", JOHN, channel="card", amount=Decimal(-9))["related_party"] is None


def test_without_declared_parties_nothing_changes() -> None:
    row = mark_one("J SMITH")
    assert row["related_party"] is None
    assert row["category"] == "customer_transfer"


def test_mark_is_removed_with_the_declaration() -> None:
    assert mark_one("J SMITH", related_party="John Smith")["related_party"] is None
    assert mark_one("J SMITH", ROASTERS, related_party="John Smith")["related_party"] is None


names = st.sampled_from(
    ["John Smith", "Harbour Roasters Pty Ltd", "J", "Ab", "(((", "李雷", "Smith Family Trust", "\u200b"]
)
texts = st.lists(
    st.sampled_from(["JOHN", "SMITH", "J", "HARBOUR", "ROAST", "LOAN", "INV", "(", "TRUST", "FAMILY", "李雷"])
)
categories = st.sampled_from(sorted(TAXONOMY.categories))
lines = st.tuples(texts, st.sampled_from([-100, 0, 100]), categories)


@given(st.lists(lines, max_size=6), st.lists(names, max_size=4))
def test_money_from_a_related_party_is_never_revenue_and_no_row_is_lost(
    some: list[tuple[list[str], int, str]], parties: list[str]
) -> None:
    rows = [
        {"description": " ".join(text) or "-", "amount": Decimal(amount), "category": category}
        for text, amount, category in some
    ]
    found = mark_related_parties(held_rows(*rows), declare(*({"name": name, "role": "director"} for name in parties)))
    assert found["position"].to_list() == list(range(len(rows)))
    with_party = found.filter(pl.col("related_party").is_not_null(), pl.col("amount") > 0)
    assert REVENUE.isdisjoint(with_party["category"])
    retained = found.filter(pl.col("related_party").is_null())
    assert retained["category"].to_list() == [rows[position]["category"] for position in retained["position"]]


@pytest.mark.slow
def test_thousands_of_parties_over_many_rows_take_seconds() -> None:
    parties = pl.DataFrame(
        [
            {"customer_number": n, "name": f"Company {n:05} Holdings", "abn": None, "role": "group_company"}
            for n in range(5_000)
        ],
        schema=RELATED_PARTIES,
    )
    rows = held_rows({"description": "X"})
    many = pl.concat([rows] * 100_000).with_columns(
        position=pl.int_range(pl.len(), dtype=pl.UInt32),
        customer_number=pl.int_range(pl.len()) % 5_000,
        description=pl.format("PAYMENT COMPANY {} HOLD", (pl.int_range(pl.len()) % 7_000).cast(pl.String).str.zfill(5)),
    )
    found = mark_related_parties(many, parties)
    expected = (pl.int_range(pl.len()) % 5_000) == (pl.int_range(pl.len()) % 7_000)
    assert found["related_party"].is_not_null().to_list() == many.select(expected).to_series().to_list()


def test_number_in_a_name_distinguishes_it() -> None:
    company = {"name": "360 Holdings Pty Ltd", "role": "group_company"}
    named = {"counterparty_name": "360 Holdings", "counterparty_kind": "business"}
    row = mark_one("TRANSFER TO 360 HOLDINGS", company, **named)
    assert (row["related_party"], row["category"]) == ("360 Holdings Pty Ltd", "related_entity")
    assert mark_one("TRANSFER TO 410 HOLDINGS", company)["related_party"] is None
