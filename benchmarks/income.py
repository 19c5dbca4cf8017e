"""Measure regular income on people whose payers and wordings are held out, and false alarms on businesses.

A true payer is found if a reported payer has at least half of its payments. A reported payer is right if at least half
of its payments are of one true payer. The truth says who pays, what kind of income it is, and how many due dates went
unpaid.
"""

from collections.abc import Iterable, Sequence
from datetime import date

import polars as pl

from benchmarks.accepted import accept_all
from benchmarks.calibration import measure_calibration
from benchmarks.table import Row
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.income import KINDS, PAYER, PROBABILITIES
from pipelines.figures.facts import Facts
from pipelines.figures.income import income_rows, regular_payers
from pipelines.synthetic import Business, Part, Person, people, portfolio
from pipelines.synthetic.frames import incomes
from pipelines.vocabulary.schemas import TRANSACTIONS

TITLE = "How well regular income is recognised"
PEOPLE, BUSINESSES, MONTHS, SEED, UNTIL = 800, 100, 12, 20_261_102, date(2026, 10, 31)
ABOUT = (
    f"{PEOPLE:,} synthetic people over {MONTHS} months, with payers, wordings and banks that occur in no other part of "
    "the portfolio. The evidence and its weights are our judgement. They were written after looking at people of the "
    "other parts, but the author also wrote the generator and knew which kinds were confused here. The sharpness of "
    "the probabilities was fitted on people of a third part, with other payers and wordings. "
    f"False alarms are counted on {BUSINESSES} synthetic businesses, which receive no wages, benefits or pensions "
    "unless the truth says so. After a first run on these people, one rule was added: a credit whose text has only an "
    "account number is no income."
)
_TRUE = ("customer_number", "true_counterparty")
_PAY = ("wages", "benefit", "pension")


def measure() -> Sequence[Row]:
    return [*measure_people("test"), *measure_businesses("test")]


def measure_people(part: Part) -> list[Row]:
    """Measure people of a part: `test` for the table, `train` while weights are chosen."""
    facts, payments = generate_people(part, PEOPLE, SEED)
    found = match_payers(facts, payments)
    right = found.filter("is_right")
    return [
        *_measure_recall(payments, right),
        *_measure_precision(found),
        *_measure_kinds(right),
        *_tabulate_probability(found),
    ]


def generate_people(part: Part, count: int, seed: int) -> tuple[Facts, pl.DataFrame]:
    """Return the facts of synthetic people, and all payments of their true payers with kind and missed due dates."""
    made = list(people(count, MONTHS, seed, UNTIL, part))
    true = pl.concat(incomes(number, one) for number, one in enumerate(made, start=1))
    facts, truth = _facts(made)
    return facts, _label(truth, true)


def measure_businesses(part: Part) -> list[Row]:
    """Count businesses with a payer that probably pays wages, a benefit or a pension."""
    facts, truth = _facts(portfolio(BUSINESSES, MONTHS, SEED, UNTIL, part=part))
    salaries = truth.filter(pl.col("true_category") == "salary_received").select("customer_number").unique()
    pays = regular_payers(facts).filter(pl.sum_horizontal(PROBABILITIES[kind] for kind in _PAY) >= 0.5)
    wrong = pays.join(salaries, on="customer_number", how="anti")["customer_number"].n_unique()
    usual = regular_payers(facts).group_by("kind").len().sort("len", descending=True)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in usual.rows())
    return [
        Row(
            "businesses without a salary that seem to have wages, benefit or pension",
            f"{wrong / BUSINESSES:.3f}",
            "≤ 0.02",
        ),
        Row(f"businesses: regular payers, of {BUSINESSES} businesses, by likeliest kind", kinds),
    ]


def _facts(made: Iterable[Business | Person]) -> tuple[Facts, pl.DataFrame]:
    """Return the facts of enriched rows, and the truth by transaction."""
    rows = accept_all(made)
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), rows.select(pl.exclude("^true_.*$"))).transactions.collect()
    sent = ("received_seq", "position")
    truth = enriched.select(*sent, "transaction_id", "series_id").join(
        rows.select("customer_number", *sent, "amount", "true_counterparty", "true_category"), on=sent, validate="1:1"
    )
    return Facts(enriched, UNTIL), truth


def _label(truth: pl.DataFrame, true: pl.DataFrame) -> pl.DataFrame:
    """Return all payments of true payers, with their true kind and missed due dates."""
    payers = true.select(
        pl.col("customer").cast(pl.Int64).alias("customer_number"),
        true_counterparty="payer",
        true_kind="kind",
        true_period="period",
        due_paid="payments",
        missed="missed",
    ).unique(_TRUE, keep="first", maintain_order=True)  # two jobs with one employer
    return truth.filter(pl.col("amount") > 0).join(payers, on=_TRUE, validate="m:1")


def match_payers(facts: Facts, payments: pl.DataFrame) -> pl.DataFrame:
    """Return the payers found, each with the true payer of most of its payments, and whether that is right."""
    paid = income_rows(facts).join(
        payments.select("transaction_id", *_TRUE[1:], "true_kind"), on="transaction_id", how="left"
    )
    counted = paid.group_by(*PAYER, *_TRUE[1:], "true_kind").agg(same=pl.len())
    best = counted.sort("same", *_TRUE[1:], nulls_last=True).unique(PAYER, keep="last", maintain_order=True)
    sizes = paid.group_by(PAYER).agg(payments=pl.len())
    known = pl.col("true_kind").is_not_null()
    found = regular_payers(facts).join(best, on=PAYER, validate="1:1").join(sizes, on=PAYER, validate="1:1")
    return found.with_columns(
        is_right=known & (pl.col("same") * 2 >= pl.col("payments")),
        is_kind=(pl.col("kind") == pl.col("true_kind")).fill_null(value=False),
        confidence=pl.max_horizontal(PROBABILITIES.values()),
    )


def _measure_recall(payments: pl.DataFrame, right: pl.DataFrame) -> list[Row]:
    payers = _judge_true_payers(payments, right)
    irregular, missed = pl.col("true_period") == "irregular", pl.col("missed") / (pl.col("missed") + pl.col("due_paid"))
    groups = {
        "every due date paid": ~irregular & (missed == 0),
        "less than a quarter missed": ~irregular & (missed > 0) & (missed < 0.25),
        "a quarter or more missed": ~irregular & (missed >= 0.25),
        "without due dates": irregular,
    }
    rows = [_recall(f"regular payers, {what}", payers.filter(group)) for what, group in groups.items()]
    return [
        *rows,
        *(_recall(f"regular payers of {kind}", payers.filter(pl.col("true_kind") == kind)) for kind in KINDS),
    ]


def _judge_true_payers(payments: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Return the true payers, each with whether it is found, and whether one series has at least half its payments."""
    whole = payments.group_by(_TRUE).agg(
        pl.col("true_kind", "true_period", "missed", "due_paid").first(), payments=pl.len()
    )
    in_series = (
        payments.drop_nulls("series_id").group_by(*_TRUE, "series_id").len().group_by(_TRUE).agg(pl.col("len").max())
    )
    most = right.group_by(_TRUE).agg(pl.col("same").max())
    total = pl.col("payments")
    return (
        whole.join(in_series, on=_TRUE, how="left", validate="1:1")
        .join(most, on=_TRUE, how="left", validate="1:1")
        .with_columns(
            is_found=(pl.col("same") * 2 >= total).fill_null(value=False),
            is_series=(pl.col("len") * 2 >= total).fill_null(value=False),
        )
    )


def _recall(what: str, payers: pl.DataFrame) -> Row:
    shares = payers.select(pl.col("is_found", "is_series").mean()).row(0)
    return Row(f"{what}: recall; of strict series; payers", f"{shares[0]:.3f}; {shares[1]:.3f}; {payers.height:,}")


def _measure_precision(found: pl.DataFrame) -> list[Row]:
    pay = found.filter(pl.sum_horizontal(PROBABILITIES[kind] for kind in _PAY) >= 0.5)
    is_pay = (pl.col("true_kind").is_in(_PAY) & pl.col("is_right")).fill_null(value=False)
    return [
        Row(f"precision of {found.height:,} payers found", f"{found['is_right'].mean():.3f}", "≥ 0.9"),
        Row("precision of wages, benefits and pensions together", f"{pay.select(is_pay.mean()).item():.3f}", "≥ 0.95"),
    ]


def _measure_kinds(right: pl.DataFrame) -> list[Row]:
    each = [(kind, right.filter(pl.col("true_kind") == kind)) for kind in KINDS]
    return [
        Row(f"kind is right, of {right.height:,} payers found", f"{right['is_kind'].mean():.3f}", "≥ 0.85"),
        *(Row(f"kind is right, {kind}, of {rows.height:,}", f"{rows['is_kind'].mean():.3f}") for kind, rows in each),
    ]


def _tabulate_probability(found: pl.DataFrame) -> list[Row]:
    """Return how often the likeliest kind is right, in bins. For payments that are no income, only `regular` is."""
    right = found.select(pl.col("is_kind") | (~pl.col("is_right") & (pl.col("kind") == "regular"))).to_series()
    return measure_calibration("probability of the likeliest kind", found["confidence"], right, "payers")
