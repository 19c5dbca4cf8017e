"""Compute a customer's reports as of another day, as known at another time, or from an earlier version of its
transactions; and trace where a figure comes from.

Nothing is stored: each request computes from stored versions, unless this process still has the result in its memory
(`Cache`). The same version, formulas and day give the same bytes.
"""

import hashlib
import logging
import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Any

import msgspec
import polars as pl
from starlette.responses import Response

from api.core.derived import BYTES_PER_ROW, BYTES_PER_ROW_OF_DIFF
from api.core.recent import Recent
from api.http.dependencies import ROW_READER_SCOPES, Caller
from api.http.responses import encode, stream_list, totals
from api.intake import transactions_json
from api.reports.schemas.reports import Moment
from pipelines import metrics
from pipelines.figures.context import Context
from pipelines.figures.facts import Facts, select_as_known
from pipelines.figures.lineage import (
    CONTRIBUTIONS,
    Constant,
    Formula,
    Sum,
    Trace,
    find_input,
    no_figure,
    pointer,
    value_of,
)
from pipelines.metrics import Metrics
from pipelines.reports import REPORTS
from pipelines.reports.diff import ChangedFigure, ComparedHeadline, Diff, diff
from pipelines.reports.report_view import ReportView
from pipelines.vocabulary.errors import Gone, build_pointer
from pipelines.vocabulary.report_status import ReportStatus
from pipelines.vocabulary.schemas import TRANSACTIONS, posted
from storage.core.database import Reading
from storage.core.paging import Page, Paged
from storage.customers.customers import Customer
from storage.decisions import context
from storage.enrichment import category_models, corrections, own_rules, transactions
from storage.enrichment.transactions import Location
from storage.jobs import jobs
from storage.reports import reports

METRICS = "metrics"
DEFAULT_FIGURES = {  # by report; the figure to explain if none is named
    "completeness": "/summary/completenessScore",
    "risk": "/value",
    "aggregate": "/tables/monthly_cash_flow/values/0/revenue",
    METRICS: "/months_of_history",
}
MAX_CACHED = 150  # entries of each cache: three reports of 50 moments (our judgement); an entry may have some 400 kB
NO_ROWS = f"The transactions themselves are not shown: this key lacks the scope {' or '.join(ROW_READER_SCOPES)}."

log = logging.getLogger("tidemark.api")


@dataclass(frozen=True)
class State:
    """Everything that a customer's reports depend on besides the formulas. It is the key of the caches."""

    location: Location | None  # of immutable rows
    data_version: int
    known_seq: int | None
    as_of: date
    context: bytes  # digest


@dataclass(frozen=True)
class Basis:
    """The data that figures are computed from: a version of a customer's transactions, limited to rows received up to
    `known_seq`, as of a day.
    """

    location: Location | None
    data_version: int
    known_seq: int | None
    as_of: date
    context: Context

    @cached_property
    def state(self) -> State:
        # Equal contexts with rows in another order have different digests, which costs time only.
        digest = hashlib.sha256(pickle.dumps(self.context)).digest()
        return State(self.location, self.data_version, self.known_seq, self.as_of, digest)

    def facts(self, caller: Caller) -> Facts:
        if self.location is None:
            return Facts(pl.DataFrame(schema=TRANSACTIONS), self.as_of, self.context)
        rows = self.location.scan(caller.store.lake).collect()
        known = rows if self.known_seq is None else select_as_known(rows, self.known_seq)
        return Facts(known, self.as_of, self.context)


@dataclass(frozen=True)
class Cache:
    """What a process computed last for past moments: reports by state and kind, and comparisons of two states."""

    reports: Recent[tuple[State, str], ReportView] = field(default_factory=lambda: Recent(MAX_CACHED))
    diffs: Recent[tuple[State, State, tuple[str, ...]], Mapping[str, Any]] = field(
        default_factory=lambda: Recent(MAX_CACHED)
    )


def find_basis(r: Reading, caller: Caller, customer: Customer, moment: Moment, kind: str | None = None) -> Basis:
    """Return the basis for `moment`. If no moment is given and `kind` has a stored report, return that report's basis.

    Raises:
        Gone: the version is no longer stored and, with `known_at`, no other can replace it (`_find_version_at`).
        NotFound: there is no such version yet.
    """
    version, as_of = moment.data_version, moment.as_of
    stored = None if kind is None or moment.is_given else reports.read_bundle(r, customer).get(kind)
    if stored is not None and stored.data_json is not None:
        version, as_of = stored.data_version, stored.as_of
    data_version, now = customer.data_version if version is None else version, caller.now
    known_seq = None
    if moment.known_at is None:
        location = transactions.find_location(r, customer, version)
    else:
        data_version, now = (
            min(data_version, transactions.find_version_at(r, customer, moment.known_at)),
            moment.known_at,
        )
        location, known_seq = _find_version_at(r, customer, data_version, moment.known_at)
    day = as_of or caller.today
    zone = caller.store.settings.zone
    known = context.read(r, {customer.number: data_version}, now, day, zone, moment.known_at)
    return Basis(location, data_version, known_seq, day, known)


def _find_version_at(
    r: Reading, customer: Customer, data_version: int, moment: datetime
) -> tuple[Location | None, int | None]:
    """Return where the version that was current at a time is stored.

    If it is no longer stored, return the current version and the last job whose rows had been received by then. The
    current version has today's enrichment of these rows, so it can replace the old one only if the client has changed
    no corrections, model or own rules since.

    Raises:
        Gone: the version is no longer stored, and one of these was changed since.
    """
    try:
        return transactions.find_location(r, customer, data_version), None
    except Gone:
        chosen = (each.was_changed_since(r, customer.client_id, moment) for each in (category_models, own_rules))
        if corrections.was_changed_since(r, customer, moment) or any(chosen):
            raise
    return transactions.find_location(r, customer), jobs.find_last_received(r, customer, moment)


def decision_basis(
    r: Reading, caller: Caller, customer: Customer, data_version: int, as_of: date, at: datetime
) -> Basis:
    """Return the basis of an evaluation or a match made at a time. Its context has only what metrics read.

    Raises:
        Gone: the version is no longer stored.
    """
    location = transactions.find_location(r, customer, data_version)
    known = context.read_for_metrics(r, [customer.number], caller.store.settings.zone, at)
    return Basis(location, data_version, None, as_of, known)


def read_reports(caller: Caller, customer: Customer, basis: Basis) -> dict[str, ReportView]:
    """Return the three reports of a moment. If one can't be computed, the others are still returned."""
    cached = {kind: find_cache(caller).reports.find((basis.state, kind)) for kind in REPORTS}
    found = {kind: report for kind, report in cached.items() if report is not None}
    if len(found) == len(REPORTS):
        return found
    with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW):
        facts = basis.facts(caller)
        return {kind: found.get(kind) or _compute_or_fail(kind, facts, basis, find_cache(caller)) for kind in REPORTS}


def _compute_or_fail(kind: str, facts: Facts, basis: Basis, cache: Cache) -> ReportView:
    try:
        return compute_report(kind, facts, basis, cache)
    except (Exception, pl.exceptions.PanicException) as error:
        log.error("a replayed %s report failed: %s", kind, type(error).__name__)
        return ReportView(ReportStatus.PENDING, failed=True)


def compute_report(kind: str, facts: Facts, basis: Basis, cache: Cache) -> ReportView:
    """Return one report of a moment, from the cache if it is there."""

    def compute() -> ReportView:
        text = REPORTS[kind].compute_text(facts)
        if text is None:
            return ReportView(ReportStatus.PENDING)
        return ReportView(
            status=ReportStatus.READY,
            as_of=facts.as_of,
            data_through=facts.history["data_through"].max(),  # pyrefly: ignore[bad-argument-type]  # a column of dates
            data_version=basis.data_version,
            report_version=REPORTS[kind].version,
            data_json=text,
        )

    return cache.reports.get((basis.state, kind), compute)


def trace_figure(kind: str, facts: Facts, figure: str, basis: Basis, cache: Cache) -> Trace:
    """Return the lineage of one customer's figure.

    Raises:
        NotFound: there is no such report or figure, or it has no value.
    """
    if kind == METRICS:
        return trace_metric(figure, facts, metrics.METRICS)
    return REPORTS[kind].trace(
        facts, pointer(figure), lambda facts: compute_report(kind, facts, basis, cache).data_json
    )


def find_cache(caller: Caller) -> Cache:
    cache: Cache = caller.request.app.state.replays
    return cache


def trace_metric(figure: str, facts: Facts, registry: Metrics) -> Trace:
    """Return the lineage of a metric of `registry`, for one customer.

    Raises:
        NotFound: there is no such metric, or it has no such input.
    """
    slug, *inputs = pointer(figure)
    if slug not in registry:
        raise no_figure([slug])
    return find_input(metrics.explain(facts, slug, registry), inputs)


def describe_trace(kind: str, figure: str, trace: Trace, basis: Basis) -> dict[str, Any]:
    """Return the public fields of a figure and its inputs."""
    is_sum = isinstance(trace, Sum)
    inputs: Mapping[str, Trace | Constant] = {} if isinstance(trace, Sum) else trace.inputs
    return {
        "kind": kind,
        "figure": figure,
        "value": value_of(trace),
        "format": trace.format,
        "by": "sum" if is_sum else "formula",
        "words": None if isinstance(trace, Sum) else trace.words,
        "inputs": [
            {
                "name": name,
                "value": value_of(each),
                "format": each.format if isinstance(each, Sum | Formula) else None,
                "figure": figure + build_pointer([name]) if isinstance(each, Sum | Formula) else None,
            }
            for name, each in inputs.items()
        ],
        "total": value_of(trace) if is_sum else None,
        "asOf": basis.as_of,
        "dataVersion": basis.data_version,
        "reportVersion": REPORTS[kind].version if kind in REPORTS else metrics.VERSION,
    }


def compare(
    caller: Caller, customer: Customer, earlier: Basis, later: Basis, kinds: Collection[str]
) -> Mapping[str, Any]:
    """Return the public fields of the comparison of two moments' reports of these kinds."""
    cache = find_cache(caller)

    def read_text(kind: str, facts: Facts) -> str | None:
        basis = earlier if facts.context is earlier.context else later
        return compute_report(kind, facts, basis, cache).data_json

    def compute() -> Mapping[str, Any]:
        with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW_OF_DIFF):
            return describe_diff(diff(earlier.facts(caller), later.facts(caller), kinds, read_text))

    return cache.diffs.get((earlier.state, later.state, tuple(kinds)), compute)


def describe_diff(found: Diff) -> dict[str, Any]:
    """Return the public fields of a comparison."""
    return {
        "rowsDatedBetween": found.rows_dated_between,
        "rowsAdded": found.rows_added,
        "rowsGone": found.rows_gone,
        "rowsCorrected": found.rows_corrected,
        "rowsReenriched": found.rows_reenriched,
        "headlines": [{"name": each.name, **_describe_compared(each)} for each in found.headlines],
        "figures": msgspec.Raw(
            encode([_describe_changed(each) for each in found.figures])
        ),  # bytes: there may be thousands
    }


def _describe_changed(each: ChangedFigure) -> dict[str, Any]:
    return {**_describe_compared(each), "key": each.key, "causes": each.causes}


def _describe_compared(each: ChangedFigure | ComparedHeadline) -> dict[str, Any]:
    return {
        "report": each.report,
        "figure": each.figure,
        "fromFigure": each.figure_before,
        "from": each.before,
        "to": each.after,
    }


def contributing_rows(trace: Trace, facts: Facts) -> pl.DataFrame:
    """Return the transactions behind a figure, oldest first: TRANSACTIONS and `contribution` (null under a formula)."""
    frames = [each.contributions for each in _sums(trace)]
    contributions = pl.concat([pl.DataFrame(schema=CONTRIBUTIONS), *frames])
    by_transaction = contributions.group_by("transaction_id").agg(pl.col("contribution").sum())
    if isinstance(trace, Formula):
        by_transaction = by_transaction.with_columns(contribution=pl.lit(None, CONTRIBUTIONS["contribution"]))
    return facts.transactions.filter(posted()).join(
        by_transaction, on="transaction_id", how="inner", maintain_order="left"
    )


def _sums(trace: Trace) -> Iterator[Sum]:
    if isinstance(trace, Sum):
        yield trace
    else:
        for each in trace.inputs.values():
            if isinstance(each, Sum | Formula):
                yield from _sums(each)


def respond_lineage(
    caller: Caller,
    kind: str,
    figure: str,
    trace: Trace,
    facts: Facts,
    basis: Basis,
    customer: Customer,
    page: Page | None,
) -> Response:
    """Respond with a figure, its inputs, and a page of the transactions behind it.

    A caller that may not read transactions gets only their number.
    """
    rows = contributing_rows(trace, facts)
    counts = totals(Paged(range(rows.height), rows.height, page))
    head = {**describe_trace(kind, figure, trace, basis), **counts}
    if not caller.may_read_rows:
        return stream_list("transactions", head, (), NO_ROWS)
    return stream_list("transactions", head, as_json(rows, customer, page))


def as_json(rows: pl.DataFrame, customer: Customer, page: Page | None) -> Sequence[bytes]:
    """Return a page of `contributing_rows` as JSON objects joined by commas."""
    selected = rows if page is None else rows.slice(page.offset, page.count)
    ids = {customer.number: customer.customer_id}
    return [transactions_json.as_json(selected, ids, also=(pl.col("contribution"),))] if selected.height else []
