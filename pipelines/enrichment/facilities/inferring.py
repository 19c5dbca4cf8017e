"""Infer facilities from what payments do, whoever the lender is: money comes in, and debits pay it back.

A **dealing** is all payments of a customer that share a party, or a number (of a mandate or contract) printed in both
the credit and the debits. It is debt if a credit is followed by at least MIN_DEBITS debits that repay it and not much
more: regular ones of one amount that can do so in time, or ones that are each the same share of the takings since the
debit before. Advances on invoices are repaid one by one: a debit with the number of a credit is the same small factor
larger, at least MIN_DEBITS times. That both sides share a party or a number distinguishes debt from a rent after a
deposit, or wages after a customer's payment. Equal payments to a tax office, a month or less apart, pay off a debt:
activity statements differ from month to month.

Otherwise categories that corrections, lists or words decided are never overruled, but the model's are. What is
inferred exists only in the list of facilities: the rows keep their category and `facility_id`, so no metric, event,
score, rule or policy can read it.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl

from pipelines.enrichment.facilities.joining import FUNDING_TO_REPAYMENT_DAYS, find_streams, join_facilities
from pipelines.enrichment.facilities.products import credit_product
from pipelines.enrichment.matching.reversals import pair_returns, party
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.plans import AS_WRITTEN, collect

# MIN_DEBITS and MAX_REPAID define a facility; the other numbers are our judgement.
MIN_DEBITS, MAX_REPAID = 4, 1.6  # MAX_REPAID: repaid ÷ funded
MIN_FUNDING = 300.0  # AUD
LARGEST_INSTALMENT = 0.4  # of what was funded: MAX_REPAID in MIN_DEBITS payments
LEVEL_SHARE = 0.6  # share of the debits that must have the amount of a stream
LONGEST_TERM_DAYS, LONGEST_MONTHLY_DAYS = 7 * 365, 30 * 365  # in which the debits must be able to repay the credit
ADVANCED_FOR = (5, 120)  # days from an advance on an invoice to its repayment
ADVANCE_FACTOR = (1.003, 1.15)  # repayment ÷ advance
CONTRACT, INVOICE = r"\d{5,}", r"\d{4,}"  # numbers: shorter ones are dates and cards
TAX_CATEGORIES = ("bas", "payg_instalment")  # what a payment to a tax office is, unless its words say more
MAX_PRINTED = 4  # rows on a side that print an invoice's number: a number on more is the customer's or the funder's
MAX_STREAMS = 50  # of a dealing: a lender's debits have few amounts, and each is compared with every credit
CARD_TAKINGS = ("card_settlement", "platform_payout")
TAKINGS_SHARE = (0.03, 0.6)  # that a lender takes, of takings
SHARE_TOLERANCE = 0.01  # of the usual share: it is computed to the cent, from takings that may not all be shown
ALIKE_SHARE = 0.75  # share of the debits that must be within this tolerance
SAME_SIZE_SHARE = 0.5  # from this share of debits of the same size on, nothing shows that they follow the takings
MONTH_DAYS = 33  # most days between the instalments of a plan: instalments of income tax are quarterly
MONTHLY_SHARE = 0.7  # share of the gaps between instalments that must not be longer than MONTH_DAYS
SURE = 0.9  # confidence from which a category is not overruled
GUESSED_BY = ("learned", "fallback")
_DEALING = ("customer_number", "lender")
_BORROWED = ("row", *_DEALING, "product", "date", "transaction_id", "size", "funds")


def add_inferred(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `facility_id` of rows of inferred facilities, and add `inferred_product` and `is_inferred`.

    `inferred_product`: of rows that behave like a facility's and are not named as such. `is_inferred`: no row of the
    facility had a `facility_id`. A facility that words or lists name keeps its id and product, and rows that behave as
    a part of it are added. One that only the model recognised keeps its id; behaviour says what product it is.

    Args:
        posted_rows: posted rows of whole customers, with `facility_id` filled (schema TRANSACTIONS).
    """
    numbered = posted_rows.with_row_index("row")
    inferred = _infer_facilities(numbered)
    if inferred.is_empty():  # true of many customers
        return posted_rows.with_columns(inferred_product=pl.lit(None, pl.String()), is_inferred=pl.lit(value=False))
    members = _merge_known(numbered, inferred)
    bounced = pair_returns(numbered.filter(_is_return() | pl.col("row").is_in(members["row"].implode())))
    returns = bounced.join(members, left_on="opened", right_on="row").select("inferred_id", row="closed")
    every = pl.concat([members, returns], how="diagonal")
    return (
        add_by_row(posted_rows, every)
        .with_columns(
            pl.col("is_inferred").fill_null(value=False), facility_id=pl.coalesce("inferred_id", "facility_id")
        )
        .drop("inferred_id")
    )


def _is_return() -> pl.Expr:
    return ((pl.col("category") == "returned_payment") & (pl.col("amount") > 0)).fill_null(value=False)


def _merge_known(numbered: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `inferred_id`, `inferred_product` and `is_inferred` of the rows that change."""
    held = pl.col("facility_id").is_not_null()
    read = numbered.lazy().select("row", "facility_id", named=held & ~_is_guess(), known=credit_product())
    joined = members.lazy().join(read, on="row", validate="1:1").pipe(collect)
    of_known = (
        joined.lazy()
        .group_by("member_of")
        .agg(
            named_id=pl.col("facility_id").filter("named").mode().sort().first(),
            named_product=pl.col("known").filter("named").mode().sort().first(),
            held_id=pl.col("facility_id").drop_nulls().mode().sort().first(),
            held=held.sum(),
        )
        .sort("held", "member_of", descending=[True, False])
    )
    first = pl.when(pl.col("held_id").is_first_distinct()).then("held_id")  # several may be parts of what was held
    ids = of_known.with_columns(
        inferred_id=pl.coalesce("named_id", first, "member_of"), is_inferred=pl.col("held") == 0
    )
    return (
        joined.lazy()
        .filter(~pl.col("named"))
        .join(ids, on="member_of", validate="m:1")
        .select("row", "inferred_id", "is_inferred", inferred_product=pl.coalesce("named_product", "product"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _infer_facilities(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `member_of` (the facility's id) and `product` of the rows that fund and repay inferred facilities.

    Args:
        posted_rows: rows with their number in `row` (UInt32).
    """
    payments = _select_payments(posted_rows)
    candidates = payments.filter("is_candidate")
    advances = _find_advances(candidates)
    dealt = _find_dealings(candidates.join(advances, on="row", how="anti") if advances.height else candidates)
    loans = _find_loans(dealt)
    sharing = _find_takings_shares(dealt.join(loans, on="row", how="anti") if loans.height else dealt, posted_rows)
    kinds = (loans, sharing, advances, _find_tax_plans(payments.filter("to_tax_office")))
    found = [each.select(_BORROWED) for each in kinds if each.height]
    if not found:
        return posted_rows.clear().select("row", member_of="facility_id", product=pl.lit(None, pl.String()))
    borrowed = (
        pl.concat(found)
        .sort("customer_number", "date", "transaction_id")
        .rename({"row": "place"})
        .with_row_index("row")
    )
    members = borrowed.join(join_facilities(borrowed.drop("place")), on="row", validate="1:1")
    return members.select("product", row="place", member_of="facility_id")


@cache
def _is_guess() -> pl.Expr:
    """Return whether neither corrections, nor lists, nor words decided the category with confidence."""
    guessed = pl.col("category_source").cast(pl.String).is_in(GUESSED_BY) | (pl.col("confidence") < SURE)
    return guessed.fill_null(value=False)


def _select_payments(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Select payments that may belong to a loan or advance (`is_candidate`), or go to a tax office (`to_tax_office`).

    Added are their `size`, whether they could be funding (`funds`), and the customer's last day (`through`).
    """
    return (
        posted_rows.lazy()
        .select(
            *("row", "customer_number", "date", "transaction_id", "description", "is_transfer"),
            size=pl.col("amount").abs(),
            funds=pl.col("amount") > 0,
            party=party(),
            through=pl.col("date").max().over("customer_number"),
            is_candidate=~_is_return() & (_is_guess() | credit_product().is_not_null()),
            to_tax_office=(pl.col("category").is_in(TAX_CATEGORIES) & (pl.col("amount") < 0)).fill_null(value=False),
        )
        .filter(pl.col("is_transfer").ne_missing(True), pl.col("is_candidate") | pl.col("to_tax_office"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _find_tax_plans(to_office: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of plans with a tax office that no words name; each amount is a plan of its own.

    An instalment may be missed. Tax withheld from constant wages is equal only in two months of a quarter.

    Args:
        to_office: payments to tax offices, from `_select_payments`.
    """
    if to_office.height < MIN_DEBITS:  # true of many customers, as in the functions below
        return to_office.clear()
    paid = to_office.with_columns(lender="tax " + pl.col("size").cast(pl.String))
    soon = pl.col("date").unique().sort().diff().dt.total_days() <= MONTH_DAYS
    plans = paid.group_by(_DEALING).agg(days=pl.col("date").n_unique(), monthly=soon.mean())
    equal = plans.filter(pl.col("days") >= MIN_DEBITS, pl.col("monthly") >= MONTHLY_SHARE)
    return paid.join(equal, on=_DEALING, how="semi").with_columns(product=pl.lit("tax_payment_plan"))


# -- loans, repaid by equal debits -----------------------------------------------------------------------------------


def _find_dealings(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dealings with credits and at least MIN_DEBITS debits; `lender` is the dealing's number."""
    shared = _find_shared_keys(candidates)
    return candidates.clear() if shared.is_empty() else candidates.join(_join_keys(shared), on="row", validate="1:1")


def _find_shared_keys(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `key`, the number of a party or of a printed number, where it is on both sides.

    A number printed beside several parties belongs to the customer or the bank, not to a contract. Two are allowed,
    because banks word the party of a credit and of a debit differently.
    """
    known = candidates.lazy().select("row", "customer_number", "funds", "party")
    named = known.with_columns(key="p " + pl.col("party"))
    numbered = known.with_columns(key=candidates["description"].str.extract_all(CONTRACT).list.unique()).explode("key")
    return (
        pl.concat([named, numbered])
        .drop_nulls("key")
        .group_by("customer_number", "key")
        .agg("row", credits=pl.col("funds").sum(), parties=pl.col("party").drop_nulls().n_unique())
        .filter(pl.col("credits") > 0, pl.col("parties") <= 2)
        .filter(pl.col("row").list.len() - pl.col("credits") >= MIN_DEBITS)
        .sort("customer_number", "key")
        .with_row_index("number")
        .select("row", key="number")
        .explode("row")
        .pipe(collect)
    )


def _join_keys(shared: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `lender`, the number of the rows and keys that are connected."""
    from scipy.sparse import coo_array, csgraph  # noqa: PLC0415  # slow to import, and few processes infer

    rows, keys = (shared[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("row", "key"))
    size = int(max(rows.max(initial=-1), keys.max(initial=-1))) + 1
    edges = coo_array((np.ones(len(rows), np.int8), (rows, size + keys)), shape=(2 * size, 2 * size))
    _, groups = csgraph.connected_components(edges, directed=False)
    return shared.select("row", lender=pl.Series(groups[rows]).cast(pl.String)).unique("row")


def _find_loans(dealt: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the dealings that are debt, with their `product`."""
    if dealt.is_empty():
        return dealt
    streams = find_streams(dealt.filter(~pl.col("funds")).with_columns(product=pl.lit("")))
    begun = dealt.clear() if streams.is_empty() else _select_funded_streams(dealt, streams)
    if begun.is_empty():
        return dealt.clear()
    every = dealt.lazy()
    funded = begun.lazy()
    since = every.join(funded.select(*_DEALING, "drawn"), on=_DEALING).filter(pl.col("date") >= pl.col("drawn"))
    amounts = streams.lazy().select(*_DEALING, "size", is_level=True)
    out, size = ~pl.col("funds"), pl.col("size")
    is_level = pl.col("is_level").fill_null(value=False)
    sums = (
        since.join(amounts, on=[*_DEALING, "size"], how="left", validate="m:1")
        .group_by(_DEALING)
        .agg(
            repaid=size.filter(out).sum().cast(pl.Float64),
            lent=size.filter("funds").sum().cast(pl.Float64),
            debits=out.sum(),
            silent=(pl.col("through") - pl.col("date").filter(out).max()).dt.total_days().first(),
            draws=pl.col("funds").sum(),
            level=is_level.filter(out).mean(),
            amounts=pl.col("size").filter(out, is_level).n_unique(),
        )
        .filter(
            pl.col("repaid") <= MAX_REPAID * pl.col("lent"),
            pl.col("level") >= LEVEL_SHARE,
            pl.col("debits") >= 2 * pl.col("draws"),
        )
    )
    described = funded.join(sums, on=_DEALING, validate="1:1").with_columns(mean_gap=_mean_gap())
    loans = described.select(*_DEALING, product=_likeliest_product())
    return every.join(loans, on=_DEALING, validate="m:1").collect(engine="in-memory", optimizations=AS_WRITTEN)


def _select_funded_streams(dealt: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
    """Return each dealing's first credit that is followed soon by a stream that can repay it, with the stream."""
    fundings = (
        dealt.lazy().filter(pl.col("funds")).select(*_DEALING, drawn="date", funding=pl.col("size").cast(pl.Float64))
    )
    after = (pl.col("first") - pl.col("drawn")).dt.total_days()
    longest = pl.when(_mean_gap() > 25).then(LONGEST_MONTHLY_DAYS).otherwise(LONGEST_TERM_DAYS)
    return (
        streams.lazy()
        .filter(pl.col("days") >= MIN_DEBITS, pl.len().over(_DEALING) <= MAX_STREAMS)
        .select(*_DEALING, "first", "last", "days", instalment=pl.col("size").cast(pl.Float64))
        .join(fundings, on=_DEALING)
        .filter(
            after.is_between(0, FUNDING_TO_REPAYMENT_DAYS),
            pl.col("funding") >= MIN_FUNDING,
            pl.col("instalment") <= LARGEST_INSTALMENT * pl.col("funding"),
            pl.col("instalment") * longest / _mean_gap() >= pl.col("funding"),
        )
        .sort(*_DEALING, "drawn", "first", "instalment")
        .unique(_DEALING, keep="first", maintain_order=True)
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _mean_gap() -> pl.Expr:
    """Return the mean days between the debits of a stream."""
    return (pl.col("last") - pl.col("first")).dt.total_days() / (pl.col("days") - 1)


@cache
def _likeliest_product() -> pl.Expr:
    """Return the likeliest product, by the draws, the rhythm, and how fast the debits repay the funding.

    Loans run for a year or longer; advances, credit for purchases and payday credit for months. Loans repaid over five
    years are for vehicles and equipment, longer ones for property. Payday credit is at most AUD 5,000 by law (National
    Consumer Credit Protection Act 2009). The other bounds are our judgement.
    """
    gap, share = pl.col("mean_gap"), pl.col("instalment") / pl.col("funding")
    a_year = share * 365 / gap
    quick = a_year > 1.7
    factor, ended = pl.col("repaid") / pl.col("lent"), pl.col("silent") > 2 * gap
    without_interest = ended & factor.is_between(0.98, 1.001)
    costly = (factor > 1.2) | ~ended & (pl.col("funding") <= 2_000)
    return (
        pl.when((pl.col("draws") > pl.col("amounts")) | without_interest)
        .then(pl.lit("line_of_credit"))
        .when(gap < 4)
        .then(pl.lit("cash_advance"))
        .when((share > 0.08) & (gap < 20) & costly & (pl.col("funding") <= 5_000))
        .then(pl.lit("payday_credit"))
        .when(share > 0.08)
        .then(pl.lit("trade_credit"))
        .when((gap < 10) & quick)
        .then(pl.lit("cash_advance"))
        .when((gap > 25) & (share < 0.012))
        .then(pl.lit("mortgage"))
        .when((gap > 25) & (share < 0.0215))
        .then(pl.lit("asset_finance"))
        .otherwise(pl.lit("term_loan"))
    )


# -- cash advances, repaid by a share of the takings -----------------------------------------------------------------


def _find_takings_shares(dealt: pl.DataFrame, posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dealings whose debits are one share of the customer's takings, with their `product`.

    A dealing begins with its credit: a supplier, a franchisor or an acquirer takes its share before it pays anything.
    """
    if dealt.is_empty():
        return dealt
    day, funds, size = pl.col("date"), pl.col("funds"), pl.col("size").cast(pl.Float64)
    drawn, first = day.filter("funds").min(), day.filter(~funds).min()
    sums = dealt.group_by(_DEALING).agg(
        days=day.filter(~funds).n_unique(),
        draws=funds.sum(),
        lent=size.filter("funds").sum(),
        repaid=size.filter(~funds).sum(),
        after=(first - drawn).dt.total_days(),
    )
    funded = sums.filter(
        pl.col("days") > MIN_DEBITS,  # what the first debit is a share of is not known
        pl.col("days") >= 2 * pl.col("draws"),
        pl.col("lent") >= MIN_FUNDING,
        pl.col("repaid") <= MAX_REPAID * pl.col("lent"),
        pl.col("after").is_between(0, FUNDING_TO_REPAYMENT_DAYS),
    ).select(_DEALING)
    if funded.is_empty():  # true of many customers
        return dealt.clear()
    debits = dealt.filter(~funds).join(funded, on=_DEALING).group_by(*_DEALING, "date").agg(pl.col("size").sum())
    sharing = [_select_alike(debits, taken, lag) for taken in _sum_takings(posted_rows) for lag in (0, 1)]
    return dealt.join(pl.concat(sharing), on=_DEALING, how="semi").with_columns(product=pl.lit("cash_advance"))


def _sum_takings(posted_rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield running sums of card takings, and of all: `customer_number`, `date`, and `taken` up to the day's end."""
    revenue = posted_rows.filter(
        pl.col("category_group") == "revenue", pl.col("amount") > 0, pl.col("is_transfer").ne_missing(True)
    )
    for takings in (revenue.filter(pl.col("category").is_in(CARD_TAKINGS)), revenue):
        by_day = takings.group_by("customer_number", "date").agg(taken=pl.col("amount").cast(pl.Float64).sum())
        yield by_day.sort("customer_number", "date").with_columns(pl.col("taken").cum_sum().over("customer_number"))


def _select_alike(debits: pl.DataFrame, taken: pl.DataFrame, lag: int) -> pl.DataFrame:
    """Return the dealings most of whose debits (`alike`, 0–1) are one share of the takings since the debit before.

    Args:
        debits: of dealings, one row for each day.
        taken: from `_sum_takings`.
        lag: days from the takings to the debit.
    """
    until = debits.with_columns(until=pl.col("date") - pl.duration(days=lag)).sort("until")
    known = until.join_asof(
        taken.sort("date"), left_on="until", right_on="date", by="customer_number", check_sortedness=False
    ).sort(*_DEALING, "until")
    since = pl.col("taken").diff().over(_DEALING)
    size, share = pl.col("size").cast(pl.Float64), pl.col("share")
    return (
        known.with_columns(share=pl.when(since > 0).then(size / since))
        .group_by(_DEALING)
        .agg(
            usual=share.median(),
            alike=_is_usual(share).sum() / (pl.len() - 1),
            same_size=_is_usual(size).mean(),
        )
        .filter(
            pl.col("usual").is_between(*TAKINGS_SHARE),
            pl.col("alike") >= ALIKE_SHARE,
            pl.col("same_size") < SAME_SIZE_SHARE,
        )
    )


def _is_usual(value: pl.Expr) -> pl.Expr:
    return (value / value.median() - 1).abs() <= SHARE_TOLERANCE


# -- advances on invoices, repaid one by one -------------------------------------------------------------------------


def _find_advances(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of advances on invoices, those not yet repaid included.

    `lender` stands for the funder, as far as it is named, and the factor by which its repayments are larger.
    """
    repaid = _pair_advances(candidates)
    if repaid.is_empty():
        return candidates.clear()
    sides = [repaid.select("lender", row=side) for side in ("row", "row_back")]
    members = pl.concat([*sides, _find_open_advances(candidates, repaid)])
    return candidates.join(members, on="row", validate="1:1").with_columns(product=pl.lit("invoice_finance"))


def _pair_advances(candidates: pl.DataFrame) -> pl.DataFrame:
    """Pair credits (`row`) with later, slightly larger debits that print the same number (`row_back`)."""
    number = pl.col("description").str.extract_all(INVOICE).list.unique()
    printed = pl.len().over("customer_number", "number", "funds")
    every = candidates.lazy().select("row", "customer_number", "date", "size", "funds", "party", number=number)
    numbered = every.explode("number").drop_nulls("number").filter(printed <= MAX_PRINTED)
    advanced = numbered.filter(pl.col("funds"), pl.col("size") >= MIN_FUNDING)
    days = (pl.col("date_back") - pl.col("date")).dt.total_days()
    factor = pl.col("size_back").cast(pl.Float64) / pl.col("size").cast(pl.Float64)
    name = pl.format("{} x {}", pl.col("party").fill_null(""), (factor * 1000).round())
    paired = (
        advanced.join(numbered.filter(~pl.col("funds")), on=["customer_number", "number"], suffix="_back")
        .filter(days.is_between(*ADVANCED_FOR), factor.is_between(*ADVANCE_FACTOR))
        .pipe(collect)
    )
    if paired.height < MIN_DEBITS:
        return paired.clear()
    return (
        paired.lazy()
        .select("row", "row_back", "customer_number", lender=name)
        .sort("row", "row_back")
        .unique("row", keep="first", maintain_order=True)
        .unique("row_back", keep="first", maintain_order=True)
        .filter(pl.len().over(_DEALING) >= MIN_DEBITS)
        .pipe(collect)
    )


def _find_open_advances(candidates: pl.DataFrame, repaid: pl.DataFrame) -> pl.DataFrame:
    """Return `lender` and `row` of recent credits that are worded like a funder's repaid advances, but for the numbers.

    They may be advances that are not yet repaid.
    """
    worded = candidates.filter("funds").with_columns(wording=pl.col("description").str.replace_all(r"\d", ""))
    alike = ("customer_number", "wording")
    repaid_ones = worded.join(repaid.select("row", "lender"), on="row").sort("row")
    known = repaid_ones.unique(alike, keep="first", maintain_order=True)
    recent = (pl.col("through") - pl.col("date")).dt.total_days() <= ADVANCED_FOR[1]
    unpaid = worded.filter(recent).join(repaid, on="row", how="anti")
    return unpaid.join(known.select(*alike, "lender"), on=alike, validate="m:1").select("lender", "row")
