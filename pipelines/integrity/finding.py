"""Findings: sets of rows that may make a business look better than it is, each with an honest explanation.

A finding is about a customer and, where it matters, one party or account. It never says that anybody did wrong. A
person can resolve it; then it is shown as resolved and changes nothing.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import polars as pl

from pipelines.figures.accounts import BALANCE
from pipelines.figures.facts import Facts
from pipelines.figures.mentions import mentions
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import dishonours, injections, instalments, moved, parts, repeated, texts, trips, withheld
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.rule_files import parse
from pipelines.vocabulary.schemas import MONEY, UUID
from pipelines.vocabulary.typed import convert

FILE = "findings.yaml"
KIND = "finding"  # the kind of resolutions of findings
# By code: what a detector reads, and the detector, which doesn't run if there is nothing to read. For most customers
# most detectors have nothing to read, and a query on an empty frame still takes time.
_DETECTORS: Mapping[str, tuple[Callable[[Facts], pl.DataFrame], Callable[[Facts], pl.LazyFrame]]] = {
    "own_transfer_as_revenue": (withheld.unmatched_transfers, withheld.disguised_transfers),
    "account_supplied_twice": (repeated.repeated_sources, repeated.repeated_rows),
    "borrowed_as_revenue": (injections.payment_streams, injections.disguised_loans),
    "round_trip": (trips.pairs, trips.round_trips),
    "round_trip_similar_name": (trips.pairs, trips.similar_trips),
    "round_trip_related": (trips.pairs, trips.related_trips),
    "round_trip_unnamed": (trips.pairs, trips.unnamed_trips),
    "round_trip_in_parts": (parts.matching_parts, parts.trips_in_parts),
    "invoice_circle": (trips.circle_turns, trips.circles),
    "month_end_parking": (trips.pairs, trips.parked_receipts),
    "last_minute_injection": (injections.sourced_receipts, injections.injected_receipts),
    "loans_stacked": (injections.new_loans, injections.stacked_loans),
    "rows_withheld": (withheld.balance_jumps, withheld.withheld_rows),
    "month_withheld": (withheld.silences, withheld.withheld_months),
    "account_withheld": (mentions, withheld.withheld_accounts),
    "dishonours_withheld": (dishonours.lonely_fees, dishonours.withheld_dishonours),
    "texts_blanked": (texts.odd_texts, texts.blanked_texts),
    "texts_reworded": (texts.odd_texts, texts.reworded_texts),
    "instalments_reworded": (instalments.odd_bills, instalments.reworded_instalments),
    "receipts_moved": (moved.moved_receipts, moved.moved_receipt_rows),
}
# One row per transaction of a finding. A transaction may be in several findings.
ROWS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "finding": pl.String(),  # a code of FILE
        "about": pl.String(),  # the party, account or source of money; null: no single one
        "transaction_id": UUID,
        "date": pl.Date(),
        "contribution": MONEY,  # to the finding's amount, AUD
        "left_out": MONEY,  # the part of the row's stated revenue that this finding leaves out
    }
)
FINDINGS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "finding": pl.String(),
        "about": pl.String(),
        "key": pl.String(),  # names the finding in a resolution; depends only on the code and the transactions
        "rows": pl.Int64(),
        "amount": BALANCE,
        "left_out": BALANCE,
        "first_date": pl.Date(),
        "last_date": pl.Date(),
        "resolved_on": pl.Date(),  # null: not resolved
        "resolution": pl.String(),  # the reason, as written by the person who resolved it
    }
)
_KEYED_ROWS = pl.Schema({**ROWS, **{name: FINDINGS[name] for name in ("key", "resolved_on", "resolution")}})
_FINDING = (BY_CUSTOMER, "finding", "about")
_DETECTED = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "finding": pl.String(),
        "about": pl.String(),
        "transaction_id": UUID,
        "cents": pl.Int64(),
    }
)
# Made once, because making an empty frame takes longer than many queries of a few rows.
_NO_ROWS, _NO_FINDINGS, _NONE_DETECTED = (each.to_frame() for each in (_KEYED_ROWS, FINDINGS, _DETECTED))


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding as FILE describes it."""

    name: str
    sentence: str
    honest: str
    excludes: bool
    undone: Literal["all", "account", "receipts", "transfers", "none"]


@cache
def load_descriptions() -> Mapping[str, Description]:
    """Return every finding's description by its code, in the order of FILE, which is the order of precedence."""
    text = files("pipelines.integrity").joinpath(FILE).read_text("utf-8")
    return convert(parse(text, FILE), dict[str, Description])


def findings(facts: Facts) -> pl.DataFrame:
    """Return every finding (schema FINDINGS), by customer and in the order of FILE."""
    return facts.cached(_findings)


def finding_rows(facts: Facts) -> pl.DataFrame:
    """Return the transactions behind the findings (schema ROWS), in the order of the findings and by date.

    A resolved finding leaves nothing out of revenue.
    """
    return facts.cached(_rows).select(ROWS.names())


def open_rows(facts: Facts) -> pl.DataFrame:
    """Return `finding_rows` of the findings that nobody resolved."""
    return facts.cached(_rows).filter(pl.col("resolved_on").is_null()).select(ROWS.names())


def excluding_rows(facts: Facts) -> pl.DataFrame:
    """Return `finding_rows` of the kinds of findings that leave receipts out of revenue.

    Whoever needs only these saves the time of all other detectors.
    """
    return facts.cached(_excluding_rows).select(ROWS.names())


def _findings(facts: Facts) -> pl.DataFrame:
    if facts.cached(_rows).is_empty():
        return _NO_FINDINGS
    summed = (
        facts.cached(_rows)
        .group_by(_FINDING, maintain_order=True)
        .agg(
            pl.col("key", "resolved_on", "resolution").first(),
            rows=pl.len(),
            amount=pl.col("contribution").sum(),
            left_out=pl.col("left_out").sum(),
            first_date=pl.col("date").min(),
            last_date=pl.col("date").max(),
        )
    )
    return summed.select(pl.col(name).cast(kind) for name, kind in FINDINGS.items())


def make_key(code: str, transaction_ids: list[bytes]) -> str:
    """Return the key of a finding or an event: 32 hexadecimal digits, which don't depend on the order of its rows."""
    ids = b"".join(sorted(transaction_ids))
    return hashlib.blake2b(code.encode() + b"\0" + ids, digest_size=16).hexdigest()


def _rows(facts: Facts) -> pl.DataFrame:
    """Return the rows of all findings (schema _KEYED_ROWS)."""
    return pl.concat([facts.cached(_excluding_rows), facts.cached(_other_rows)]).sort(_order())


def _excluding_rows(facts: Facts) -> pl.DataFrame:
    return _find_rows(facts, excludes=True)


def _other_rows(facts: Facts) -> pl.DataFrame:
    return _find_rows(facts, excludes=False)


def _find_rows(facts: Facts, *, excludes: bool) -> pl.DataFrame:
    """Return the rows of the kinds of findings that leave receipts out of revenue, or of the other kinds.

    Their schema is _KEYED_ROWS; they are in the order of FILE.
    """
    detected = _detect(facts, [code for code, each in load_descriptions().items() if each.excludes == excludes])
    if detected.is_empty():  # true for most customers
        return _NO_ROWS
    known = facts.rows.lazy().select("transaction_id", "date", "amount", "is_revenue")
    rows = known.join(detected.lazy(), on="transaction_id", how="inner", validate="1:m").pipe(collect)
    counts = pl.col("is_revenue") & pl.col("resolved_on").is_null() & excludes
    # A receipt in several findings is left out of revenue once, by the first of them.
    is_first = counts & (counts.cum_sum().over("transaction_id") == 1)
    return (
        rows.lazy()
        .join(_keys(facts, rows).lazy(), on=_FINDING, how="left", nulls_equal=True, validate="m:1")
        .sort(_order())
        .with_columns(
            contribution=pl.col("cents").cast(pl.Decimal(38, 2)) / 100,
            left_out=pl.when(is_first).then("amount").otherwise(pl.lit(0, MONEY)),
        )
        .select(pl.col(name).cast(kind) for name, kind in _KEYED_ROWS.items())
        .pipe(collect)
    )


def _order() -> list[pl.Expr]:
    codes = list(load_descriptions())
    order = pl.col("finding").replace_strict(codes, range(len(codes)), return_dtype=pl.Int32)
    return [pl.col(BY_CUSTOMER), order, pl.col("about").fill_null(""), pl.col("date"), pl.col("transaction_id")]


def _keys(facts: Facts, rows: pl.DataFrame) -> pl.DataFrame:
    """Return each finding's `key`, and when and why it was resolved."""
    grouped = rows.group_by(_FINDING, maintain_order=True).agg("transaction_id")
    keys = [make_key(code, ids) for code, ids in grouped.select("finding", "transaction_id").iter_rows()]
    of_findings = facts.context.resolutions.filter(pl.col("kind") == KIND)
    resolutions = of_findings.select(BY_CUSTOMER, "key", "resolved_on", resolution="reason")
    return (
        grouped.drop("transaction_id")
        .with_columns(key=pl.Series(keys, dtype=pl.String))
        .join(resolutions, on=[BY_CUSTOMER, "key"], how="left", validate="m:1", maintain_order="left")
    )


def _detect(facts: Facts, codes: Sequence[str]) -> pl.DataFrame:
    """Run the detectors of these findings that have something to read, and return their rows (schema _DETECTED), each
    once.
    """
    detected = list[pl.LazyFrame]()
    for code in codes:
        read, detect = _DETECTORS[code]
        if not facts.cached(read).is_empty():
            detected.append(detect(facts).with_columns(finding=pl.lit(code)).select(_DETECTED.names()))
    if not detected:
        return _NONE_DETECTED
    keys = [*_FINDING, "transaction_id"]
    return pl.concat(detected).unique(keys, keep="first", maintain_order=True).pipe(collect)
