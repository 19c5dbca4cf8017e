"""Recurring series, facilities and mentioned accounts over HTTP: items as of a plain loop, in bounded memory."""

import json
import re
import resource
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal

from api.core.derived import (
    BYTES_PER_ROW_OF_DIFF,
    FACILITIES,
    MAX_BYTES,
    MENTIONED_ACCOUNTS,
    SERIES,
    ConcurrencyLimit,
    Derived,
)
from api.core.limits import Requester
from api.core.schemas.common import View
from api.core.schemas.examples import example
from api.reports.schemas.derived import FacilityView, MentionedAccountView, SeriesView
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.facilities import FACILITIES as FACILITIES_SCHEMA
from pipelines.enrichment.recurrence import SERIES as SERIES_SCHEMA
from pipelines.enrichment.transfers.own_accounts import MENTIONED
from pipelines.synthetic import business, frames
from pipelines.vocabulary.errors import Unavailable
from pipelines.vocabulary.schemas import MONEY, TRANSACTIONS
from storage.core.paging import Page
from storage.core.settings import Settings
from storage.core.store import Store
from tests.api.conftest import Client, answering, new_client
from tests.api.worker import end_submissions
from tests.conftest import open_store
from tests.pipelines.enrichment.examples import accepted_rows, held_rows

parametrize = pytest.mark.parametrize
UNTIL = date(2025, 6, 30)
PATHS = {"series": "series", "facilities": "facilities", "mentioned-accounts": "mentionedAccounts"}
EACH = [SERIES, FACILITIES, MENTIONED_ACCOUNTS]
SCHEMAS = {"series": SERIES_SCHEMA, "facilities": FACILITIES_SCHEMA, "mentionedAccounts": MENTIONED}
VIEWS: Mapping[str, type[View]] = {
    "series": SeriesView,
    "facilities": FacilityView,
    "mentionedAccounts": MentionedAccountView,
}
ONE, OTHER = Requester("one", "key"), Requester("other", "key")
each_list = parametrize("what", EACH, ids=lambda what: what.name)


def rent(month: int, **fields: Any) -> dict[str, Any]:
    words = {"description": "HARBOUR TRUST RENT", "clean_description": "HARBOUR TRUST", "channel": "direct_debit"}
    whom = {"counterparty_name": "Harbour Trust", "counterparty_group": "harbour trust", "category": "rent"}
    return {"date": date(2025, month, 3), "amount": Decimal("-2200.10"), **words, **whom, **fields}


def repayment(day: date, **fields: Any) -> dict[str, Any]:
    lent = {"category": "term_loan_repayment", "category_group": "debt_service", "facility_id": b"f" * 16}
    lender = {"counterparty_name": "Lumi", "counterparty_lender_id": "lumi", "counterparty_kind": "lender"}
    return {"date": day, "amount": Decimal("-250.05"), **lent, **lender, **fields}


def transfer_to(digits: str, **fields: Any) -> dict[str, Any]:
    return {"category": "own_transfer", "other_account": digits, "clean_description": "SAVER", **fields}


def show_items(what: Derived, found: pl.DataFrame, page: Page | None = None) -> list[dict[str, Any]]:
    """Return items as the API shows them, with numbers as exact decimals."""
    text = b"[" + b",".join(what.as_json(found, page)) + b"]"
    read: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)
    return read


@pytest.fixture
def brought(store: Store, client: Client) -> str:
    """A customer with rent, a loan, a transfer to another account, and some rows that don't count."""
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(
        store,
        [
            *(rent(month) for month in range(1, 9)),
            *(repayment(date(2025, month, 17)) for month in range(1, 7)),
            transfer_to("4821", date=date(2025, 8, 1)),
            transfer_to("4821", date=date(2025, 8, 5), amount=Decimal("20.00"), direction="credit"),
            transfer_to("9999", superseded_seq=9),
            transfer_to("8888", status="pending"),
            repayment(date(2025, 7, 17), superseded_seq=9),
        ],
    )
    return customer_id


def test_series_are_listed(client: Client, brought: str) -> None:
    data = client.get(f"/v1/customer/{brought}/series").json()["data"]
    [rents] = [one for one in data["series"] if one["category"] == "rent"]
    reported = {"period": "monthly", "direction": "debit", "status": "active", "occurrences": 8, "missedDates": []}
    assert {name: rents[name] for name in reported} == reported
    assert rents["counterparty"] == {"name": "Harbour Trust", "kind": None, "group": "harbour trust"}
    assert (rents["firstDate"], rents["lastDate"]) == ("2025-01-03", "2025-08-03")
    assert (rents["usualAmount"], rents["nextExpectedAmount"]) == (-2200.1, -2200.1)
    rows = client.get(f"/v1/customer/{brought}/transactions").json()["data"]["transactions"]
    assert {row["account"]["accountId"] for row in rows} == {rents["accountId"]}


def test_facilities_are_derived_from_posted_rows_only(client: Client, brought: str) -> None:
    [loan] = client.get(f"/v1/customer/{brought}/facilities").json()["data"]["facilities"]
    reported = {"lenderName": "Lumi", "lenderId": "lumi", "product": "term_loan", "frequency": "monthly"}
    assert {name: loan[name] for name in reported} == reported
    assert loan["facilityId"] == str(UUID(bytes=b"f" * 16))
    assert (loan["repaymentCount"], loan["repaidTotal"], loan["lastRepaymentDate"]) == (6, 1500.3, "2025-06-17")
    [account_id] = loan["accountIds"]
    assert str(UUID(account_id)) == account_id


def test_mentioned_accounts_are_derived_from_posted_rows_only(client: Client, brought: str) -> None:
    data = client.get(f"/v1/customer/{brought}/mentioned-accounts").json()["data"]
    assert data["mentionedAccounts"] == [
        {
            "accountNumberMasked": "xxxx4821",
            "name": "SAVER",
            "bankName": None,
            "direction": "both",
            "transactionCount": 2,
            "totalIn": 20,
            "totalOut": 4.5,
            "firstDate": "2025-08-01",
            "lastDate": "2025-08-05",
        }
    ]


@parametrize(("path", "name"), PATHS.items())
def test_lists_are_empty_without_transactions(client: Client, path: str, name: str) -> None:
    data = client.get(f"/v1/customer/{client.new_customer()}/{path}").json()["data"]
    assert data == {name: [], "totalCount": 0, "currentPage": None, "pageSize": 0, "totalPages": 0}
    data = client.get(f"/v1/customer/{client.new_customer()}/{path}?page=2&count=5").json()["data"]
    assert data == {name: [], "totalCount": 0, "currentPage": 2, "pageSize": 5, "totalPages": 0}


def test_pages_together_are_the_whole_list(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, [transfer_to(str(number)) for number in (4444, 2222, 5555, 1111, 3333)])
    path = f"/v1/customer/{customer_id}/mentioned-accounts"
    pages = [client.get(f"{path}?page={number}&count=2").json()["data"] for number in (1, 2, 3, 4)]
    assert [(page["totalCount"], page["currentPage"], page["totalPages"]) for page in pages] == [
        (5, number, 3) for number in (1, 2, 3, 4)
    ]
    numbers = [[one["accountNumberMasked"][4:] for one in page["mentionedAccounts"]] for page in pages]
    assert numbers == [["1111", "2222"], ["3333", "4444"], ["5555"], []]


@parametrize("path", PATHS)
def test_a_damaged_file_is_a_problem_and_never_wrong_data(store: Store, client: Client, path: str) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    newest = max((store.lake.root / "segments").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-1])
    answer = client.get(f"/v1/customer/{customer_id}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (500, "Lake.ChecksumMismatch")


@parametrize(("zone", "repayments"), [("Pacific/Kiritimati", 2), ("Etc/GMT+12", 1)])
def test_facilities_are_as_of_the_services_own_day(tmp_path: Path, zone: str, repayments: int) -> None:
    """Use two zones whose dates always differ."""
    latest = datetime.now(UTC).astimezone(ZoneInfo("Pacific/Kiritimati")).date()
    store = open_store(Settings(home=tmp_path / "home", timezone=zone))
    with answering(store) as url:
        client = new_client(store, url)
        customer_id = client.new_customer()
        client.submit_transactions(customer_id)
        end_submissions(store, [repayment(latest - timedelta(days=7)), repayment(latest)])
        [loan] = client.get(f"/v1/customer/{customer_id}/facilities").json()["data"]["facilities"]
    store.close()
    assert loan["repaymentCount"] == repayments


@pytest.fixture(scope="module")
def enriched_year() -> pl.DataFrame:
    """A year of some businesses, enriched; one account of each is left out, so that the others mention it."""
    parts = []
    for number in (2, 7, 8):
        made = business(number, 12, seed=7, until=UNTIL)
        accounts = frames.accounts(number, made).select("account_number", "bsb")
        bsbs = accounts.head(max(1, accounts.height - 1))
        sent = frames.transactions(number, made).join(bsbs, on="account_number", validate="m:1")
        rows = sent.select("date", "description", "amount", "account_number", "bsb").to_dicts()
        whose = [
            {"customer_number": number, "received_seq": number, "account_id": row["account_number"].encode().ljust(16)}
            for row in rows
        ]
        parts.append(accepted_rows(*(row | who for row, who in zip(rows, whose, strict=True))))
    return enrich(pl.DataFrame(schema=TRANSACTIONS), pl.concat(parts)).transactions.collect()


@each_list
def test_computing_from_the_read_columns_gives_the_same_items(enriched_year: pl.DataFrame, what: Derived) -> None:
    whole = what.compute(enriched_year, UNTIL)
    assert not whole.is_empty()
    assert_frame_equal(what.compute(enriched_year.select(what.columns), UNTIL), whole)


@each_list
def test_every_read_column_is_needed(what: Derived) -> None:
    repayments = (repayment(date(2025, month, 17)) for month in range(1, 7))
    unseen = {"category": "cash_advance_funding", "category_group": "debt_inflow", "amount": Decimal(900)}
    advance = repayment(date(2025, 1, 6), facility_id=b"g" * 16, **unseen)
    rows = held_rows(rent(1), rent(2), transfer_to("5678"), *repayments, advance)
    for column in what.columns:
        with pytest.raises(pl.exceptions.ColumnNotFoundError):
            what.compute(rows.drop(column), UNTIL)


@each_list
def test_items_match_their_documentation(enriched_year: pl.DataFrame, what: Derived) -> None:
    view = VIEWS[what.name]
    for item in show_items(what, what.compute(enriched_year, UNTIL)):
        read = view.model_validate(by_field(item)).model_dump(by_alias=True)
        assert list(item) == list(read) == list(example(view))


def by_field(shown: Any) -> Any:
    """Rename the fields of an item to those of our models."""
    match shown:
        case dict():
            return {FIELDS.get(name, snake(name)): by_field(each) for name, each in shown.items()}
        case list():
            return [by_field(each) for each in shown]
    return shown


FIELDS = {"from": "from_"}  # `from` is a keyword of Python


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@parametrize("view", VIEWS.values())
def test_every_member_is_described_and_has_an_example(view: type[View]) -> None:
    reported = view.model_json_schema(mode="serialization")
    assert view.model_validate(by_field(example(view)))
    assert list(reported["properties"]) == list(example(view))
    for name, member in reported["properties"].items():
        assert member.get("description") or "$ref" in member, name


MONEYS = st.decimals("-9999999999999999", "9999999999999999", places=2)
TRICKY = st.text() | st.sampled_from(['"from":"1.00"', 'x","totalIn":"2.00', '{"to":"3.00"}', "\\", "\x00"])


SCALARS: Mapping[pl.DataType, st.SearchStrategy[Any]] = {
    pl.Binary(): st.binary(min_size=16, max_size=16),
    pl.Boolean(): st.booleans(),
    pl.Date(): st.dates(date(1970, 1, 1), date(2100, 1, 1)),
    pl.Float64(): st.floats(0, 1),
    pl.Int64(): st.integers(0, 1_000_000),
    pl.String(): TRICKY,
    pl.UInt32(): st.integers(0, 1_000_000),
}


def value(kind: Any) -> st.SearchStrategy[Any]:
    """Generate values that a column of this type may have."""
    match kind:
        case pl.List(inner=inner):
            return st.lists(value(inner), max_size=3)
        case pl.Struct(fields=fields):
            return st.fixed_dictionaries({field.name: value(field.dtype) for field in fields})
        case pl.Decimal():
            return MONEYS
        case pl.Enum(categories=values):
            return st.sampled_from(values.to_list())
    return SCALARS[kind]


def plain(value: Any, decimals: int) -> Any:
    """Return the JSON value that a plain loop would write."""
    match value:
        case bytes():
            return str(UUID(bytes=value))
        case date():
            return value.isoformat()
        case float():
            return pytest.approx(Decimal(value), abs=Decimal(10) ** -decimals)
        case dict():
            return {name: plain(each, decimals) for name, each in value.items()}
        case list():
            return [plain(each, decimals) for each in value]
    return value


RENAMED = {
    "next_date": "nextExpectedDate",
    "next_amount": "nextExpectedAmount",
    "next_expected": "nextExpectedDate",
    "first_repayment": "firstRepaymentDate",
    "last_repayment": "lastRepaymentDate",
    "count": "transactionCount",
    "bank": "bankName",
}
NOT_SHOWN = ("customer_number", "yearly_rate", "grown_balance")  # the last two: what an estimate is made from


def plain_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item that a plain loop would make of a row."""
    item = {
        RENAMED.get(name, camel(name)): plain(each, 2 if name == "repayment_spread" else 4)
        for name, each in row.items()
        if name not in NOT_SHOWN
    }
    if "counterparty_name" in row:
        parts = {name: item.pop(f"counterparty{name.capitalize()}") for name in ("name", "kind", "group")}
        item["counterparty"] = parts
    if "masked_number" in row:
        masked = item.pop("maskedNumber")
        item["accountNumberMasked"] = None if masked is None else f"xx{masked}"
    return item


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


NULLABLE = {"counterparty_name", "lender_name", "funding_amount", "renewed_by", "next_amount", "withheld_share", "name"}


@each_list
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_items_equal_those_of_a_plain_loop(what: Derived, data: st.DataObject) -> None:
    schema = SCHEMAS[what.name]
    columns = {name: value(kind) for name, kind in schema.items()}
    columns |= {name: st.none() | columns[name] for name in NULLABLE & columns.keys()}
    if what is MENTIONED_ACCOUNTS:
        columns["masked_number"] = st.none() | st.from_regex(r"xx[0-9]{3,4}", fullmatch=True)
    rows = data.draw(st.lists(st.fixed_dictionaries(columns), max_size=4))
    page = data.draw(st.none() | st.builds(Page, st.integers(1, 3), st.integers(1, 3)))
    asked = rows if page is None else rows[page.offset : page.offset + page.count]
    assert show_items(what, pl.DataFrame(rows, schema=schema), page) == [plain_item(row) for row in asked]


def test_money_is_a_number_with_two_decimals() -> None:
    rows = held_rows(transfer_to("5678", amount=Decimal("0.10")), transfer_to("5678", amount=Decimal(-1000)))
    text = b"".join(MENTIONED_ACCOUNTS.as_json(MENTIONED_ACCOUNTS.compute(rows, UNTIL), None))
    assert b'"totalIn":0.10,"totalOut":1000.00,' in text


@each_list
def test_amounts_at_both_ends_of_the_range_are_summed_exactly(what: Derived) -> None:
    most = Decimal("9999999999999.99")
    rows = [repayment(date(2025, month, 17), amount=-most) for month in range(1, 13)]
    rows += [transfer_to("5678", amount=sign * most) for sign in (1, 1, -1)]
    found = show_items(what, what.compute(held_rows(*rows), UNTIL + timedelta(days=400)))
    if what is FACILITIES:
        assert found[0]["repaidTotal"] == 12 * most
    if what is MENTIONED_ACCOUNTS:
        assert (found[0]["totalIn"], found[0]["totalOut"]) == (2 * most, most)
    if what is SERIES:
        assert found[0]["usualAmount"] == -most


def test_rows_beyond_the_limit_are_refused_until_other_requests_end() -> None:
    limit = ConcurrencyLimit(100)
    with limit.reserve(ONE, 30):
        with pytest.raises(Unavailable, match="busy"), limit.reserve(ONE, 27):
            pass
        with limit.reserve(ONE, 26):
            pass
    with limit.reserve(ONE, 56):
        pass


def test_one_client_can_only_take_its_share_of_the_limit() -> None:
    limit = ConcurrencyLimit(100)
    with limit.reserve(ONE, 56), limit.reserve(OTHER, 20), pytest.raises(Unavailable), limit.reserve(ONE, 1):
        pass


def test_a_diff_counts_against_the_limit_by_its_memory_not_its_rows() -> None:
    """A regression: eight requests with 200,000 rows each took 3.3 GB, and all were admitted."""
    limit, diff = ConcurrencyLimit(MAX_BYTES), 150_000 * BYTES_PER_ROW_OF_DIFF
    with limit.reserve(ONE, diff), limit.reserve(OTHER, diff), pytest.raises(Unavailable), limit.reserve(ONE, 6 * diff):
        pass


def test_a_failed_request_releases_its_share_of_the_limit() -> None:
    limit = ConcurrencyLimit(10)
    with pytest.raises(ZeroDivisionError), limit.reserve(ONE, 10):
        raise ZeroDivisionError
    with limit.reserve(ONE, 10):
        pass


def test_a_request_larger_than_the_limit_is_admitted_alone() -> None:
    limit = ConcurrencyLimit(10)
    with limit.reserve(ONE, 11), pytest.raises(Unavailable), limit.reserve(ONE, 1):
        pass
    with limit.reserve(ONE, 1), pytest.raises(Unavailable), limit.reserve(ONE, 11):
        pass


@pytest.mark.slow
@each_list
def test_two_million_rows_of_one_customer_fit_in_memory(what: Derived) -> None:
    nth = pl.int_range(pl.len())
    many = pl.concat([held_rows(*[transfer_to("5678")] * 1000)] * 2000).with_columns(
        date=pl.date(2000, 1, 1) + pl.duration(days=nth // 200),
        amount=(-(nth % 1000 + 1)).cast(MONEY),
        category=pl.when(nth % 2 == 0).then(pl.lit("term_loan_repayment")).otherwise("category"),
        clean_description=pl.format("PARTY {}", nth % 20_000),
        position=nth.cast(pl.UInt32),
        facility_id=pl.lit(b"f" * 16),
    )
    before = peak_mib()
    assert what.compute(many.select(what.columns), date(2030, 1, 1)).schema == SCHEMAS[what.name]
    assert peak_mib() - before < 1536


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
