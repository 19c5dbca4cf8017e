"""Lists of transactions: the contract's fields, order, pages, cursors, filters and totals, in bounded memory."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import hypothesis.strategies as st
import jsonschema_rs
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

from api.core.derived import ConcurrencyLimit
from api.core.limits import Requester
from api.core.schemas.examples import example
from api.intake.cursors import cursor_text
from api.intake.routes.transactions import hold_memory
from api.intake.schemas.transactions import TransactionView
from api.intake.transactions_json import as_json
from pipelines.vocabulary.errors import Unavailable
from pipelines.vocabulary.schemas import LANDED, TRANSACTIONS
from storage.core.store import Store
from storage.enrichment import transactions
from storage.enrichment.client_listing import Cursor
from storage.jobs import jobs
from tests.api.conftest import ITEM, Client
from tests.api.worker import end_submissions

JOB, ACCOUNT, CUSTOMER = uuid4(), uuid4(), uuid4()
BASE: dict[str, Any] = dict.fromkeys(TRANSACTIONS) | {
    "customer_number": 7,
    "job_id": JOB.bytes,
    "account_id": ACCOUNT.bytes,
    "account_type": "transaction",
    "transaction_id": uuid4().bytes,
    "date": date(2026, 6, 1),
    "description": "COFFEE",
    "clean_description": "COFFEE",
    "amount": Decimal("-4.50"),
    "status": "posted",
    "direction": "debit",
    "channel": "card",
    "category": "meals",
    "category_group": "operations",
    "category_source": "pattern",
    "confidence": 0.9,
    "is_transfer": False,
    "flags": [],
    "revision": 1,
    "enrichment_version": 1,
}


def show_row(**fields: Any) -> dict[str, Any]:
    """Return one row as the API shows it, with numbers as exact decimals."""
    frame = pl.DataFrame([BASE | fields], schema=TRANSACTIONS)
    found: dict[str, Any] = json.loads(as_json(frame, {7: CUSTOMER}), parse_float=Decimal)
    return found


def test_a_row_has_the_contracts_fields_in_their_order() -> None:
    assert list(show_row()) == list(example(TransactionView))
    assert list(show_row()["account"]) == list(example(TransactionView)["account"])
    assert list(show_row()["counterparty"]) == list(example(TransactionView)["counterparty"])


def test_what_a_submission_may_leave_out_is_documented_as_null() -> None:
    schema = jsonschema_rs.Draft202012Validator(TransactionView.model_json_schema(mode="serialization"))
    row = show_row(account_type=None, alternatives=[], intermediaries=[])
    assert [fault.message for fault in schema.iter_errors({**row, "amount": float(row["amount"])})] == []


def test_ids_are_uuids_and_the_account_number_is_masked() -> None:
    pair = uuid4()
    row = show_row(account_number="1234-5678", transfer_pair_id=pair.bytes)
    assert (row["customerId"], row["jobId"], row["account"]["accountId"]) == (str(CUSTOMER), str(JOB), str(ACCOUNT))
    assert row["transferPairId"] == str(pair)
    assert row["account"]["accountNumberMasked"] == "xxxx5678"


def test_money_has_two_decimals() -> None:
    frame = pl.DataFrame([BASE | {"amount": Decimal("-1000"), "balance": Decimal("0.1")}], schema=TRANSACTIONS)
    text = as_json(frame, {7: CUSTOMER})
    assert b'"amount":-1000.00,' in text
    assert b'"balance":0.10,' in text


def test_text_that_looks_like_money_stays_text() -> None:
    tricky = '"amount":"1.00"'
    row = show_row(description=tricky, clean_description='x","balance":"2.00', flags=["amount", '"amount":"3.00"'])
    assert (row["description"], row["cleanDescription"]) == (tricky, 'x","balance":"2.00')
    assert row["flags"] == ["amount", '"amount":"3.00"']


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "description": st.text(),
                "account_name": st.none() | st.text(),
                "counterparty_name": st.none() | st.text(),
                "flags": st.lists(st.text(), max_size=3),
                "amount": st.decimals("-9999999999999", "9999999999999", places=2),
                "balance": st.none() | st.decimals("-9999999999999", "9999999999999", places=2),
                "confidence": st.floats(0, 1),
                "date": st.dates(date(1970, 1, 1), date(2100, 1, 1)),
                "balance_verified": st.none() | st.booleans(),
                "transaction_id": st.uuids().map(lambda found: found.bytes),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_rows_equal_those_of_a_plain_loop(rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame([BASE | row for row in rows], schema=TRANSACTIONS)
    found = json.loads(b"[" + as_json(frame, {7: CUSTOMER}) + b"]", parse_float=Decimal)
    for row, read in zip(rows, found, strict=True):
        assert read["description"] == row["description"]
        assert read["account"]["accountName"] == row["account_name"]
        assert read["counterparty"]["name"] == row["counterparty_name"]
        assert read["flags"] == row["flags"]
        assert (read["amount"], read["balance"]) == (row["amount"], row["balance"])
        assert float(read["confidence"]) == row["confidence"]
        assert read["date"] == row["date"].isoformat()
        assert read["balanceVerified"] == row["balance_verified"]
        assert UUID(read["transactionId"]).bytes == row["transaction_id"]


def test_a_submission_is_stored_in_its_landing_file_before_it_is_accepted(store: Store, client: Client) -> None:
    item = ITEM | {"amount": "0.10", "memo": "tea", "description": "card 4111 1111 1111 1111"}
    answer = client.post(f"/v1/customer/{client.new_customer()}/transactions", {"transactions": [item, ITEM]})
    job_id = answer.json()["data"]["jobId"]
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/jobs/{job_id}/status"
    assert int(answer.headers["Retry-After"]) >= 1
    with store.db.reading() as r:
        job = jobs.get(r, client.client_id, UUID(job_id))
    path = f"landing/{datetime.now(UTC):%Y-%m-%d}/{job_id}.parquet"
    assert job.landing_path == path
    landed = pl.read_parquet(store.lake.verified_path(path, job.landing_sha256 or b""))
    assert landed.schema == LANDED
    assert landed["amount"].to_list() == ["0.10", "-4.5"]
    assert landed["description"][0] == "card 411111xxxxxx1111"
    assert "tea" in landed["extra"][0]


def test_appended_submissions_are_marked(store: Store, client: Client) -> None:
    job_id = client.submit_transactions(client.new_customer(), mode="append")
    with store.db.reading() as r:
        submission = jobs.get(r, client.client_id, UUID(job_id)).submission or {}
    assert submission["appended"] is True


def test_transactions_are_listed_by_date_and_page(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    job_id = client.submit_transactions(customer_id)
    end_submissions(store, [{"date": date(2026, 6, day)} for day in (3, 1, 2)])
    path = f"/v1/customer/{customer_id}/transactions"
    whole = client.get(path).json()["data"]
    assert [row["date"] for row in whole["transactions"]] == ["2026-06-01", "2026-06-02", "2026-06-03"]
    assert (whole["totalCount"], whole["currentPage"], whole["pageSize"], whole["totalPages"]) == (3, None, 3, 1)
    second = client.get(f"{path}?page=2&count=2").json()["data"]
    assert [row["date"] for row in second["transactions"]] == ["2026-06-03"]
    assert client.get(f"{path}?jobId={job_id}").json()["data"]["totalCount"] == 3
    assert {row["customerId"] for row in whole["transactions"]} == {customer_id}


def test_superseded_rows_are_not_listed(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, [{}, {"superseded_seq": 9}])
    assert len(client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]) == 1


def test_the_list_of_all_transactions_has_only_the_clients_customers(
    store: Store, client: Client, other_client: Client
) -> None:
    mine = [client.new_customer(), client.new_customer()]
    for owner, customer_id in [(client, mine[0]), (client, mine[1]), (other_client, other_client.new_customer())]:
        owner.submit_transactions(customer_id)
    end_submissions(store, [{"date": date(2026, 6, 2)}, {"date": date(2026, 6, 1)}])
    data = client.get("/v1/transactions").json()["data"]
    assert data["totalCount"] == 4
    assert [row["date"] for row in data["transactions"]] == ["2026-06-01"] * 2 + ["2026-06-02"] * 2
    assert {row["customerId"] for row in data["transactions"]} == set(mine)


def test_pages_and_a_cursor_show_all_of_the_clients_transactions(store: Store, client: Client) -> None:
    for _ in range(3):
        client.submit_transactions(client.new_customer())
    end_submissions(store, [{"position": position} for position in range(3)])
    everything = client.get("/v1/transactions").json()["data"]
    assert everything["totalCount"] == len(everything["transactions"]) >= 9
    paged = [client.get(f"/v1/transactions?page={page}&count=4").json()["data"] for page in (1, 2, 3)]
    assert [row for page in paged for row in page["transactions"]] == everything["transactions"][:12]
    assert all("nextCursor" not in page for page in (everything, *paged))
    walked, cursor = [], ""
    while cursor is not None:
        data = client.get(f"/v1/transactions?count=4&cursor={cursor}").json()["data"]
        assert (data["totalCount"], data["currentPage"], data["pageSize"]) == (everything["totalCount"], None, 4)
        walked, cursor = walked + data["transactions"], data["nextCursor"]
    assert walked == everything["transactions"]


def test_a_cursor_is_an_answers_or_empty_and_replaces_the_page(client: Client) -> None:
    largest = cursor_text(Cursor(99_999, 2**63 - 1, 2**63 - 1, 2**63 - 1, bytes(16)))
    assert client.get(f"/v1/transactions?cursor={largest}").json()["data"]["transactions"] == []
    far = cursor_text(Cursor(10**6))
    for query in ("cursor=x", "cursor=%3D", "cursor=&cursor=", "cursor=&page=1", "cursor=" + 90 * "A", f"cursor={far}"):
        answer = client.get(f"/v1/transactions?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "Pagination.InvalidCursor"), query


def test_a_filter_by_job_accepts_only_jobs_of_the_customer(client: Client, other_client: Client) -> None:
    first, second = client.new_customer(), client.new_customer()
    for job_id in (
        str(uuid4()),
        client.submit_transactions(second),
        other_client.submit_transactions(other_client.new_customer()),
    ):
        answer = client.get(f"/v1/customer/{first}/transactions?jobId={job_id}")
        assert (answer.status_code, answer.json()["code"]) == (404, "Job.NotFound")
    answer = client.get(f"/v1/customer/{first}/transactions?jobId=x")
    assert (answer.status_code, answer.json()["code"]) == (400, "Transaction.InvalidJobId")


def test_long_lists_are_sent_completely(store: Store, client: Client) -> None:
    client.submit_transactions(client.new_customer())
    end_submissions(store)  # whatever other tests left in the queue
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, [{"position": position} for position in range(12_000)])
    data = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]
    assert len({row["transactionId"] for row in data["transactions"]}) == data["totalCount"] == 12_000


def test_a_damaged_file_is_a_problem_and_never_wrong_data(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    newest = max((store.lake.root / "segments").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-1])
    answer = client.get(f"/v1/customer/{customer_id}/transactions")
    assert (answer.status_code, answer.json()["code"]) == (500, "Lake.ChecksumMismatch")


def test_a_list_reserves_memory_until_its_last_slice_or_a_disconnect() -> None:
    limit = ConcurrencyLimit(10)
    requester = Requester("client", "key")
    caller: Any = SimpleNamespace(
        requester=requester, request=SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(memory=limit)))
    )
    for read_to_the_end in (True, False):
        slices = hold_memory(caller, 6, iter([b"one", b"two"]))
        assert next(slices) == b"one"
        with pytest.raises(Unavailable), limit.reserve(requester, 6):
            pass
        if read_to_the_end:
            assert list(slices) == [b"two"]
        else:
            slices.close()
        with limit.reserve(requester, 10):
            pass


def test_transactions_have_totals(store: Store, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tests/pipelines/figures/test_row_filter.py` has every filter."""
    monkeypatch.setattr(transactions, "PART_ROWS", 2)
    customer_id = client.new_customer()
    job_id = client.submit_transactions(customer_id)
    amounts = ("100.10", "-0.01", "-99.99", "100.20", "-7.00")
    rows = [
        {"amount": Decimal(amount), "date": date(2026, 6, day), "flags": ["cash"] if day == 3 else []}
        for day, amount in enumerate(amounts, 1)
    ]
    end_submissions(store, rows)
    path = f"/v1/customer/{customer_id}/transactions"
    whole = client.get(path).json()["data"]
    ids = [each["transactionId"] for each in whole["transactions"]]
    found = {
        "": ([0, 1, 2, 3, 4], ["200.30", "107.00", "93.30"]),
        f"jobId={job_id}": ([0, 1, 2, 3, 4], ["200.30", "107.00", "93.30"]),
        "from=2026-06-02&to=2026-06-04": ([1, 2, 3], ["100.20", "100.00", "0.20"]),
        "minAmount=99.99": ([0, 2, 3], ["200.30", "99.99", "100.31"]),
        "maxAmount=7&text=coff": ([1, 4], ["0.00", "7.01", "-7.01"]),
        f"flag=cash&jobId={job_id}": ([2], ["0.00", "99.99", "-99.99"]),
        "category=rent": ([], ["0.00", "0.00", "0.00"]),
        f"transactionIds={ids[4]},{ids[0]},{uuid4()}": ([0, 4], ["100.10", "7.00", "93.10"]),
    }
    for query, (right, totals) in found.items():
        for paging in ("", "&page=1&count=2", "&page=1&count=2&sort=-date"):
            answer = client.get(f"{path}?{query}{paging}")
            data = json.loads(answer.text, parse_float=Decimal)["data"]
            ordered = right[::-1] if "sort" in paging else right
            shown = ordered[:2] if paging else ordered
            assert [each["transactionId"] for each in data["transactions"]] == [
                whole["transactions"][nth]["transactionId"] for nth in shown
            ]
            assert data["totalCount"] == len(right)
            assert [data["totals"][name] for name in ("moneyIn", "moneyOut", "net")] == [*map(Decimal, totals)], query
    assert client.get(f"/v1/customer/{client.new_customer()}/transactions?text=x").json()["data"]["totalCount"] == 0


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("from=1.6.2026", "Transaction.InvalidDay"),
        ("to=2026-06-31", "Transaction.InvalidDay"),
        ("text=", "Transaction.InvalidText"),
        ("category=a&category=b", "Transaction.InvalidCategory"),
        ("accountId=1", "Transaction.InvalidAccountId"),
        ("direction=in", "Transaction.InvalidDirection"),
        ("status=done", "Transaction.InvalidRowStatus"),
        ("minAmount=-1", "Transaction.InvalidAmount"),
        ("sort=amount", "Transaction.InvalidSort"),
        ("maxAmount=0.001", "Transaction.InvalidAmount"),
        ("flag=red", "Transaction.InvalidFlag"),
        ("transactionId=1", "Transaction.InvalidId"),
        ("transactionIds=", "Transaction.InvalidIds"),
        (f"transactionIds={UUID(int=1)},x", "Transaction.InvalidIds"),
        (f"transactionIds={UUID(int=1)},{UUID(int=1)}", "Transaction.InvalidIds"),
        (f"transactionIds={','.join(str(UUID(int=n)) for n in range(101))}", "Transaction.InvalidIds"),
    ],
)
def test_malformed_filters_are_refused(client: Client, query: str, code: str) -> None:
    answer = client.get(f"/v1/customer/{client.new_customer()}/transactions?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
