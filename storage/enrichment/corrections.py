"""Corrections: a client's own categories and counterparties, used instead of those that enrichment found.

A correction applies to one customer, or to all customers of a client. Nothing is overwritten: a revoked one stays,
marked. Making or revoking one queues, in the same transaction, the jobs that enrich the customers again, so neither
happens without the other. A batch that is running without the change computes these customers again
(`storage.enrichment.commit`).

A client's rows are read before that transaction begins, because they may be many. Customers whose rows change in
between are enriched again in any case.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import accumulate, groupby
from typing import Any
from uuid import UUID, uuid4

import polars as pl
from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update

from pipelines.enrichment.counterparties.corrections import (
    MAX_WORDS,
    REACHED_BY,
    count_corrected_rows,
    count_rows_by_counterparty,
    find_changed_rows,
    key_of,
)
from pipelines.enrichment.knowledge import CORRECTIONS
from pipelines.vocabulary.errors import Conflict, NotFound
from pipelines.vocabulary.schemas import current
from storage.core.database import AnySelect, Reading, Writing
from storage.core.lake import Lake
from storage.core.models import Flow, corrections, customers
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer, record_knowledge_change, record_knowledge_change_for_all
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.jobs import jobs
from storage.jobs.jobs import Job

MAX_LIVE = 1_000  # corrections in force for one customer; the limit of client-wide ones is the same
MAX_EXAMPLES = 20
PART_ROWS = 200_000  # rows read together, to bound memory
_SHOWN = (*REACHED_BY, "date", "amount")


@dataclass(frozen=True)
class NewCorrection:
    """What to correct, and how. Exactly one of the first three fields is given, and a category, a name or both."""

    transaction_id: UUID | None = None
    counterparty: str | None = None
    words: str | None = None
    direction: str | None = None
    category: str | None = None
    counterparty_name: str | None = None
    client_wide: bool = False


@dataclass(frozen=True)
class Correction:
    """A correction as it was made, in the order of the table's columns."""

    number: int
    correction_id: UUID
    client_id: UUID
    customer_number: int | None  # null: it applies to all customers of the client
    transaction_id: UUID | None
    counterparty: str | None
    words: str | None
    counterparty_group: str | None
    direction: str | None
    category: str | None
    counterparty_name: str | None
    made_at: datetime
    made_by: str
    revoked_at: datetime | None
    revoked_by: str | None
    revoking_job: UUID | None

    @property
    def client_wide(self) -> bool:
        return self.customer_number is None


@dataclass(frozen=True)
class StoredRows:
    """Where the rows of some customers are stored, and the corrections of single transactions, read in one snapshot."""

    locations: Sequence[Location]
    single_corrections: pl.DataFrame  # CORRECTIONS of single transactions

    @property
    def versions(self) -> Mapping[int, int]:
        return {location.customer_number: location.data_version for location in self.locations}


@dataclass(frozen=True)
class CorrectedRow:
    """The columns of a row that corrections depend on."""

    direction: str
    counterparty: str | None
    clean_description: str | None


@dataclass(frozen=True)
class Reach:
    """What a correction changes in stored rows."""

    counterparty_group: str | None  # the group that the counterparty's name stands for
    customers: frozenset[int]  # customers with rows that it applies to
    decided: int  # rows that it applies to
    changed: int  # rows among these whose category or counterparty it changes
    by_category: Mapping[str, int]  # changed rows by their category now
    examples: Sequence[Mapping[str, Any]]  # of the changed rows, at most MAX_EXAMPLES


@dataclass(frozen=True)
class Similar:
    """A wider correction, of all rows that are similar to a single one, and what it would change."""

    correction: NewCorrection
    reach: Reach


def read_stored_rows(r: Reading, lake: Lake, customer: Customer, *, client_wide: bool) -> StoredRows:
    """Return where the rows are stored that a correction may change: the customer's, or those of its whole client.

    For a whole client, customers whose file is damaged are left out. Their jobs will report the damage.
    """
    locations = transactions.current_locations(r, [customer.number])
    if client_wide:
        locations, _ = transactions.separate_damaged(
            lake, transactions.current_locations_of_client(r, customer.client_id)
        )
    single = find_in_force(
        r, [location.customer_number for location in locations], corrections.c.transaction_id.is_not(None)
    )
    return StoredRows(locations, single)


def measure_reach(lake: Lake, stored_rows: StoredRows, new: NewCorrection) -> Reach:
    """Return what the correction would do to rows as they are stored."""
    group = None if new.counterparty is None else _find_group(lake, stored_rows, new.counterparty)
    by_customer, by_category, decided = Counter[int](), Counter[str](), 0
    examples: list[Mapping[str, Any]] = []
    for rows in _read_in_parts(lake, stored_rows.locations, _SHOWN):
        found = find_changed_rows(
            rows, _new_as_frame(new, group, rows["customer_number"].unique()), stored_rows.single_corrections
        )
        changed = found.filter("changes")
        by_customer.update(dict(found.group_by("customer_number").len().rows()))
        by_category.update(dict(changed.group_by("category").len().rows()))
        decided += found.height
        examples += changed.head(MAX_EXAMPLES - len(examples)).to_dicts()
    return Reach(group, frozenset(by_customer), decided, by_category.total(), by_category, examples)


def find_row(lake: Lake, stored_rows: StoredRows, transaction_id: UUID) -> CorrectedRow | None:
    """Return what corrections of a transaction depend on; None if there is no transaction with this id."""
    has_id = pl.col("transaction_id") == transaction_id.bytes
    columns = ("direction", "counterparty_name", "clean_description")
    parts = _read_in_parts(lake, stored_rows.locations, ("transaction_id", *columns))
    found = (rows.filter(has_id).select(columns) for rows in parts)
    return next((CorrectedRow(*rows.row(0)) for rows in found if not rows.is_empty()), None)


def suggest_similar(lake: Lake, stored_rows: StoredRows, new: NewCorrection, row: CorrectedRow) -> Similar | None:
    """Suggest the same correction for all rows that are similar to a single one, and return what it would change.

    Rows are similar if they have the same direction and the same counterparty or, without one, the same words. Return
    None if no other row is similar.
    """
    words = None if row.counterparty else " ".join(key_of(row.clean_description or "").split(" ")[:MAX_WORDS])
    if not (row.counterparty or words):
        return None
    wider = replace(new, transaction_id=None, counterparty=row.counterparty, words=words, direction=row.direction)
    numbers = pl.Series("customer_number", [location.customer_number for location in stored_rows.locations], pl.Int64)
    # The correction of the single row still decides that row. So the wider correction doesn't reach it.
    single_corrections = pl.concat([stored_rows.single_corrections, _new_as_frame(new, None, numbers)])
    reached = measure_reach(lake, replace(stored_rows, single_corrections=single_corrections), wider)
    return Similar(wider, reached) if reached.decided else None


def make(
    w: Writing, customer: Customer, new: NewCorrection, found_rows: tuple[StoredRows, Reach], who: str, now: datetime
) -> tuple[Correction, Job]:
    """Make a correction. Return it, and the customer's job that applies it.

    If it equals the last one in force, no second one is made.

    Raises:
        Conflict: too many corrections are in force already.
    """
    _change_knowledge(w, customer, client_wide=new.client_wide)
    row = _columns(customer, new, found_rows[1].counterparty_group)
    last = _last_live(w, customer)
    if last is None or any(getattr(last, name) != value for name, value in row.items()):
        _require_below_limit(w, customer, client_wide=new.client_wide)
        row |= {"correction_id": uuid4(), "made_at": now, "made_by": who}
        w.execute(insert(corrections).values(row))
        last = get(w, customer, row["correction_id"])
    return last, _queue(w, customer, found_rows[0] if new.client_wide else None, found_rows[1].customers, now)


def revoke(
    w: Writing,
    customer: Customer,
    correction: Correction,
    found_rows: tuple[StoredRows, frozenset[int]] | None,
    who: str,
    now: datetime,
) -> Job:
    """Revoke a correction. Repeating it returns the same job.

    Args:
        found_rows: for a client-wide correction, the rows that were read, and the customers with rows that it decides.
    """
    stored_rows, affected = found_rows or (None, ())
    _change_knowledge(w, customer, client_wide=correction.client_wide)
    stored = get(w, customer, correction.correction_id)
    if stored.revoking_job is not None:
        return jobs.get(w, customer.client_id, stored.revoking_job)
    job = _queue(w, customer, stored_rows, affected, now)
    revoked = {"revoked_at": now, "revoked_by": who, "revoking_job": job.job_id}
    w.execute(update(corrections).where(corrections.c.number == stored.number).values(revoked))
    return job


def get(r: Reading, customer: Customer, correction_id: UUID) -> Correction:
    """Return a correction of the customer or of all its client's customers.

    Raises:
        NotFound: unknown, or of another customer or client.
    """
    query = select(corrections).where(_applies_to(customer), corrections.c.correction_id == correction_id)
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Correction.NotFound", "There is no correction with this id.")
    return Correction(*row)


def find(r: Reading, customer: Customer, page: Page | None = None) -> Paged[Correction]:
    """Return the corrections of the customer and of all its client's customers, revoked or not, newest first."""
    query = _newest_first(customer)
    return Paged([Correction(*row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def was_changed_since(r: Reading, customer: Customer, moment: datetime) -> bool:
    """Return whether a correction that applies to the customer was made or revoked after a time."""
    later = or_(corrections.c.made_at > moment, corrections.c.revoked_at > moment)
    return r.execute(select(corrections.c.number).where(_applies_to(customer), later).limit(1)).first() is not None


def count_decided_rows(lake: Lake, stored_rows: StoredRows) -> Mapping[UUID, int]:
    """Return how many rows each correction decides now, by its id."""
    found = Counter[UUID]()
    for rows in _read_in_parts(lake, stored_rows.locations, ("category_basis",)):
        found.update({UUID(text): rows_ for text, rows_ in count_corrected_rows(rows).rows()})
    return found


def find_decided_customers(lake: Lake, stored_rows: StoredRows, correction: Correction) -> frozenset[int]:
    """Return the customers with rows that the correction decides now."""
    named = pl.col("category_basis").str.contains(str(correction.correction_id), literal=True)
    parts = _read_in_parts(lake, stored_rows.locations, ("customer_number", "category_basis"))
    return frozenset(number for rows in parts for number in rows.filter(named)["customer_number"].unique())


def find_in_force(r: Reading, customer_numbers: Iterable[int], *conditions: ColumnElement[bool]) -> pl.DataFrame:
    """Return the corrections in force for these customers, as CORRECTIONS: a client-wide one has a row per customer."""
    numbers = list(customer_numbers)
    in_force = and_(corrections.c.revoked_at.is_(None), *conditions)
    own = select(corrections).where(in_force, corrections.c.customer_number.in_(numbers))
    owners = select(customers.c.number, customers.c.client_id).where(customers.c.number.in_(numbers))
    client_ids = pl.DataFrame(
        [(row.number, row.client_id.bytes) for row in r.execute(owners)],
        schema={"customer_number": pl.Int64, "client_id": pl.Binary},
        orient="row",
    )
    wide = select(corrections).where(
        in_force,
        corrections.c.customer_number.is_(None),
        corrections.c.client_id.in_(UUID(bytes=each) for each in client_ids["client_id"].unique()),
    )
    client_wide = _as_frame(Correction(*row) for row in r.execute(wide)).drop("customer_number")
    return pl.concat(
        [
            _as_frame(Correction(*row) for row in r.execute(own)).select(CORRECTIONS.names()),
            client_ids.join(client_wide, on="client_id").select(CORRECTIONS.names()),
        ]
    )


def _as_frame(found: Iterable[Correction]) -> pl.DataFrame:
    """Return CORRECTIONS with the client's id."""
    rows = [
        {
            **asdict(each),
            "client_id": each.client_id.bytes,
            "correction_id": each.correction_id.bytes,
            "position": each.number,
            "transaction_id": each.transaction_id and each.transaction_id.bytes,
        }
        for each in found
    ]
    return pl.DataFrame(rows, schema={**CORRECTIONS, "client_id": pl.Binary()})


def _new_as_frame(new: NewCorrection, group: str | None, customer_numbers: pl.Series) -> pl.DataFrame:
    """Return a correction that is not made yet, as CORRECTIONS."""
    columns = {
        "correction_id": bytes(16),
        "position": 0,
        "transaction_id": new.transaction_id and new.transaction_id.bytes,
        "counterparty_group": group,
        "words": new.words,
        "direction": new.direction,
        "category": new.category,
        "counterparty_name": new.counterparty_name,
    }
    schema = {name: kind for name, kind in CORRECTIONS.items() if name != "customer_number"}
    customers_of_new = pl.DataFrame({"customer_number": customer_numbers})
    return customers_of_new.join(pl.DataFrame([columns], schema=schema), how="cross").select(CORRECTIONS.names())


def _find_group(lake: Lake, stored_rows: StoredRows, counterparty: str) -> str:
    """Return the group of the counterparty that stored rows show under this name, else the name itself."""
    key, groups = key_of(counterparty), Counter[str]()
    for rows in _read_in_parts(lake, stored_rows.locations, ("counterparty_group", "counterparty_name")):
        groups.update(dict(count_rows_by_counterparty(rows, key).rows()))
    return key if key in groups or not groups else groups.most_common(1)[0][0]


def _read_in_parts(lake: Lake, locations: Sequence[Location], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the customers' current rows in parts that fit into memory."""
    for location in (location for location in locations if location.row_count > PART_ROWS):
        for start in range(0, location.row_count, PART_ROWS):
            yield location.scan(lake).slice(start, PART_ROWS).filter(current()).select(columns).collect()
    small = sorted(
        (location for location in locations if location.row_count <= PART_ROWS), key=lambda location: location.path
    )
    ends = accumulate(location.row_count for location in small)
    for _, part in groupby(zip(ends, small, strict=True), key=lambda pair: pair[0] // PART_ROWS):
        yield transactions.scan(lake, [location for _, location in part]).filter(current()).select(columns).collect()


def _change_knowledge(w: Writing, customer: Customer, *, client_wide: bool) -> None:
    """Advance the knowledge version. Others who change what is known about the customer wait for this transaction."""
    if client_wide:
        record_knowledge_change_for_all(w, customer.client_id)
    else:
        record_knowledge_change(w, customer)


def _queue(
    w: Writing, customer: Customer, stored_rows: StoredRows | None, affected: Iterable[int], now: datetime
) -> Job:
    """Queue the customer's job, and for a client-wide correction those of other customers that it may affect."""
    job = jobs.request_recomputation(w, customer, Flow.CORRECTION, now)
    if stored_rows is not None:
        others = frozenset(affected) | _changed_since(w, customer.client_id, stored_rows.versions)
        jobs.request_recomputations(w, customer.client_id, others - {customer.number}, Flow.CORRECTION, now)
    return job


def _changed_since(w: Writing, client_id: UUID, versions: Mapping[int, int]) -> frozenset[int]:
    """Return the client's customers whose data version is not the one that was read."""
    query = select(customers.c.number, customers.c.data_version).where(customers.c.client_id == client_id)
    return frozenset(number for number, version in w.execute(query) if version != versions.get(number, 0))


def _columns(customer: Customer, new: NewCorrection, group: str | None) -> dict[str, Any]:
    columns = {name: value for name, value in asdict(new).items() if name != "client_wide"}
    owner = {"client_id": customer.client_id, "customer_number": None if new.client_wide else customer.number}
    return columns | owner | {"counterparty_group": group}


def _applies_to(customer: Customer) -> ColumnElement[bool]:
    is_for_it = or_(corrections.c.customer_number == customer.number, corrections.c.customer_number.is_(None))
    return and_(corrections.c.client_id == customer.client_id, is_for_it)


def _newest_first(customer: Customer) -> AnySelect:
    return select(corrections).where(_applies_to(customer)).order_by(corrections.c.number.desc())


def _last_live(r: Reading, customer: Customer) -> Correction | None:
    row = r.execute(_newest_first(customer).where(corrections.c.revoked_at.is_(None)).limit(1)).first()
    return None if row is None else Correction(*row)


def _require_below_limit(r: Reading, customer: Customer, *, client_wide: bool) -> None:
    number = None if client_wide else customer.number  # `== None` becomes IS NULL
    query = select(func.count()).where(
        corrections.c.client_id == customer.client_id,
        corrections.c.customer_number == number,
        corrections.c.revoked_at.is_(None),
    )
    if r.execute(query).scalar_one() >= MAX_LIVE:
        says = f"At most {MAX_LIVE:,} corrections may be in force at once. Revoke some first."
        raise Conflict("Correction.TooMany", says)
