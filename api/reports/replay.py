"""A customer's reports as of another day, from what was known by another time, or from an earlier version of its
transactions; and where a figure comes from.

Nothing of it is stored: it is computed from kept versions when it is asked for. The same version, formulas and day
give the same bytes.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
from starlette.responses import Response

from api.http.answers import streamed, totals
from api.http.dependencies import READING_ROWS, Caller
from api.intake import transactions_json
from api.reports.schemas.reports import Moment
from pipelines import metrics
from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.facts import Facts, as_known
from pipelines.figures.lineage import CONTRIBUTIONS, Constant, Formula, Sum, Trace, below, no_figure, pointer, value_of
from pipelines.metrics import Metrics
from pipelines.reports import REPORTS
from pipelines.reports.report_view import ReportStatus, ReportView
from pipelines.vocabulary.errors import Gone
from pipelines.vocabulary.schemas import TRANSACTIONS, posted
from storage.core.database import Reading
from storage.core.paging import Page, Paged
from storage.customers.customers import Customer
from storage.decisions import context
from storage.enrichment import corrections, transactions
from storage.enrichment.transactions import Location
from storage.jobs import jobs
from storage.reports import reports

METRICS = "metrics"
HEADLINES = {  # what can be explained, and the figure that is when none is named
    "completeness": "/summary/completenessScore",
    "risk": "/value",
    "aggregate": "/tables/monthly_cash_flow/values/0/revenue",
    METRICS: "/months_of_history",
}
NO_ROWS = f"The transactions themselves are not shown: this key lacks the scope {' or '.join(READING_ROWS)}."

log = logging.getLogger("tidemark.api")


@dataclass(frozen=True)
class Then:
    """What is looked at: which version of a customer's transactions, known until when, as of which day."""

    place: Location | None
    data_version: int
    known_seq: int | None
    as_of: date
    context: Context

    def facts(self, caller: Caller) -> Facts:
        if self.place is None:
            return Facts(pl.DataFrame(schema=TRANSACTIONS), self.as_of, self.context)
        rows = self.place.scan(caller.store.lake).collect()
        known = rows if self.known_seq is None else as_known(rows, self.known_seq)
        return Facts(known, self.as_of, self.context)


def then(r: Reading, caller: Caller, customer: Customer, moment: Moment, kind: str | None = None) -> Then:
    """What `moment` asks for. Where it asks for nothing and `kind` has a stored report: what that report shows.

    Raises:
        Gone: the version is kept no longer; of a time, only if what is kept can't tell what was known then.
        NotFound: there was no such version yet.
    """
    version, as_of = moment.data_version, moment.as_of
    stored = None if kind is None or moment.is_given else reports.bundle(r, customer).get(kind)
    if stored is not None and stored.data_json is not None:
        version, as_of = stored.data_version, stored.as_of
    data_version, now = customer.data_version if version is None else version, caller.now
    known_seq = None
    if moment.known_at is None:
        place = transactions.place_of(r, customer, version)
    else:
        data_version, now = min(data_version, transactions.version_at(r, customer, moment.known_at)), moment.known_at
        place, known_seq = _known(r, customer, data_version, moment.known_at)
    day = as_of or caller.today
    known = context.read(r, {customer.number: data_version}, now, day)
    return Then(place, data_version, known_seq, day, known)


def _known(r: Reading, customer: Customer, data_version: int, moment: datetime) -> tuple[Location | None, int | None]:
    """Where the version in force at a time lies, which knows no more than was known then.

    Once it is kept no longer: where the current one lies, of which the rows received by then count, up to that job. It
    says of them what is said today; so it can stand for the other only while the client's own words are the same.

    Raises:
        Gone: the version is kept no longer, and corrections were made or revoked since.
    """
    try:
        return transactions.place_of(r, customer, data_version), None
    except Gone:
        if corrections.changed_since(r, customer, moment):
            raise
    return transactions.place_of(r, customer), jobs.last_received(r, customer, moment)


def when_decided(r: Reading, customer: Customer, data_version: int, as_of: date) -> Then:
    """What an evaluation or a rule looked at: metrics are worked out of transactions alone.

    Raises:
        Gone: the version is kept no longer.
    """
    place = transactions.place_of(r, customer, data_version)
    return Then(place, data_version, None, as_of, NO_CONTEXT)


def bundle(facts: Facts, data_version: int) -> Mapping[str, ReportView]:
    """The three reports of one customer, each on its own: one that can't be computed leaves the others."""
    return {kind: _view(kind, facts, data_version) for kind in REPORTS}


def _view(kind: str, facts: Facts, data_version: int) -> ReportView:
    report = REPORTS[kind]
    try:
        texts = report.compute(facts)["data"]
    except (Exception, pl.exceptions.PanicException) as error:
        log.error("a replayed %s report failed: %s", kind, type(error).__name__)
        return ReportView(ReportStatus.PENDING, failed=True)
    if not len(texts):
        return ReportView(ReportStatus.PENDING)
    return ReportView(
        status=ReportStatus.READY,
        as_of=facts.as_of,
        data_through=facts.history["data_through"].max(),  # pyrefly: ignore[bad-argument-type]  # a column of dates
        data_version=data_version,
        report_version=report.version,
        data_json=texts[0],
    )


def report_data(kind: str, facts: Facts) -> Mapping[str, Any]:
    """The report's data, with numbers as decimals; empty where there is nothing to report on."""
    texts = REPORTS[kind].compute(facts)["data"]
    found: dict[str, Any] = json.loads(texts[0], parse_float=Decimal) if len(texts) else {}
    return found


def traced(kind: str, facts: Facts, figure: str) -> Trace:
    """The lineage of a figure of one customer.

    Raises:
        NotFound: there is no such report or figure, or it has no value.
    """
    if kind == METRICS:
        return traced_metric(figure, facts, metrics.METRICS)
    path = pointer(figure)
    try:
        return REPORTS[kind].explain(facts, report_data(kind, facts), path)
    except (KeyError, IndexError, ValueError):
        raise no_figure(path) from None


def traced_metric(figure: str, facts: Facts, of: Metrics) -> Trace:
    """The lineage of one of these metrics, for one customer.

    Raises:
        NotFound: there is no such metric, or it is not made of such an input.
    """
    slug, *inputs = pointer(figure)
    if slug not in of:
        raise no_figure([slug])
    return below(metrics.explain(facts, slug, of), inputs)


def described(kind: str, figure: str, found: Trace, then_: Then) -> dict[str, Any]:
    """The figure and what it is made of, as the answer says it."""
    is_sum = isinstance(found, Sum)
    inputs: Mapping[str, Trace | Constant] = {} if isinstance(found, Sum) else found.inputs
    return {
        "kind": kind,
        "figure": figure,
        "value": value_of(found),
        "by": "sum" if is_sum else "formula",
        "words": None if isinstance(found, Sum) else found.words,
        "inputs": [
            {
                "name": name,
                "value": value_of(each),
                "figure": f"{figure}/{_escaped(name)}" if isinstance(each, Sum | Formula) else None,
            }
            for name, each in inputs.items()
        ],
        "total": value_of(found) if is_sum else None,
        "asOf": then_.as_of,
        "dataVersion": then_.data_version,
        "reportVersion": REPORTS[kind].version if kind in REPORTS else metrics.VERSION,
    }


def behind(found: Trace, facts: Facts) -> pl.DataFrame:
    """The transactions behind a figure, by date: TRANSACTIONS and `contribution` (null under a formula)."""
    frames = [each.contributions for each in _sums(found)]
    all_of_them = pl.concat([pl.DataFrame(schema=CONTRIBUTIONS), *frames])
    by_transaction = all_of_them.group_by("transaction_id").agg(pl.col("contribution").sum())
    if isinstance(found, Formula):
        by_transaction = by_transaction.with_columns(contribution=pl.lit(None, CONTRIBUTIONS["contribution"]))
    return facts.transactions.filter(posted()).join(
        by_transaction, on="transaction_id", how="inner", maintain_order="left"
    )


def _sums(found: Trace) -> Iterator[Sum]:
    if isinstance(found, Sum):
        yield found
    else:
        for each in found.inputs.values():
            if isinstance(each, Sum | Formula):
                yield from _sums(each)


def lineage(
    caller: Caller,
    kind: str,
    figure: str,
    found: Trace,
    facts: Facts,
    then_: Then,
    customer: Customer,
    page: Page | None,
) -> Response:
    """The answer: the figure, what it is made of, and a page of the transactions behind it.

    Whoever may not read transactions is told how many there are, and no more.
    """
    rows = behind(found, facts)
    counts = totals(Paged(range(rows.height), rows.height, page))
    head = {**described(kind, figure, found, then_), **counts}
    if not caller.may_read_rows:
        return streamed("transactions", head, (), NO_ROWS)
    return streamed("transactions", head, as_json(rows, customer, page))


def as_json(rows: pl.DataFrame, customer: Customer, page: Page | None) -> Sequence[bytes]:
    """The page of `behind`'s rows, as JSON objects joined by commas."""
    asked = rows if page is None else rows.slice(page.offset, page.count)
    ids = {customer.number: customer.customer_id}
    return [transactions_json.as_json(asked, ids, also=(pl.col("contribution"),))] if asked.height else []


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
