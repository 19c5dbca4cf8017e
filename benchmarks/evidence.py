"""Measure what missing evidence does to the points and the rating: leaving evidence out must never help.

Rows are blanked as if their words had never been sent. Accounts and months are left out of the rows as sent, which are
then enriched and rated anew, with findings and all ceilings. The interval is compared with the value of all evidence,
and with a split-conformal interval, whose margins (in points per unknown point) are set so that it covers a share
COVERS.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from random import Random

import numpy as np
import polars as pl

from benchmarks.reports import renumber
from benchmarks.table import Row
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.risk.rating import add_interval, add_rating
from pipelines.risk_models.covered_days import find_stretches
from pipelines.risk_models.events import CEILINGS
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.trials.rating import rate_enriched
from pipelines.vocabulary.schemas import TRANSACTIONS

METRICS = [feature.metric for feature in DEFAULT.features]
COVERS = 0.88  # share of customers whose value the interval must contain, in each fifth of coverage
SLICE = 400  # customers scored at once
RATED_AT_ONCE = 80  # customers enriched and rated at once
_WORDS = (
    *("counterparty_name", "counterparty_kind", "counterparty_lender_id", "counterparty_group", "series_id"),
    *("facility_id", "other_account", "clean_description"),
)
# Blanking a row of these groups could hide an event, so `_path` blanks only other rows.
_EVENTS = ("distress", "high_risk")


def score(transactions: pl.DataFrame, until: date, expected: Expected = EVERYTHING) -> pl.DataFrame:
    """Return every customer's points, value, `covered`, `low` and `high`, by customer, before any ceiling."""
    numbers = transactions[BY_CUSTOMER].unique().sort()
    parts = [
        _score(
            transactions.filter(pl.col(BY_CUSTOMER).is_in(numbers[place : place + SLICE].implode())), until, expected
        )
        for place in range(0, len(numbers), SLICE)
    ]
    return pl.concat(parts).sort(BY_CUSTOMER)


def _score(transactions: pl.DataFrame, until: date, expected: Expected) -> pl.DataFrame:
    read = readings(Facts(transactions, until), METRICS, expected=expected)
    rated = add_rating(DEFAULT.score(read), DEFAULT, pl.DataFrame(schema=CEILINGS))
    shown = add_interval(rated, DEFAULT).select(BY_CUSTOMER, "points", "value", "covered", "low", "high")
    return shown.with_columns(pl.col("points", "value", "covered", "low", "high").cast(pl.Float64))


def blank_words(transactions: pl.DataFrame, which: pl.Expr) -> pl.DataFrame:
    """Return the rows without the words of some of them."""
    unknown = pl.when(pl.col("amount") > 0).then(pl.lit("unknown_credit")).otherwise(pl.lit("unknown_debit"))
    blank = {name: pl.when(which).then(None).otherwise(pl.col(name)) for name in _WORDS}
    return transactions.with_columns(
        description=pl.when(which).then(pl.lit("")).otherwise("description"),
        category=pl.when(which).then(unknown).otherwise("category"),
        category_group=pl.when(which).then(pl.lit("unknown")).otherwise("category_group"),
        flags=pl.when(which).then(pl.lit([], pl.List(pl.String))).otherwise("flags"),
        **blank,
    )


def without_balances(transactions: pl.DataFrame) -> pl.DataFrame:
    return transactions.with_columns(balance=pl.lit(None, transactions.schema["balance"]))


def without_low_balances(transactions: pl.DataFrame) -> pl.DataFrame:
    """Leave out the balances of each account that are below its median."""
    low = pl.col("balance") < pl.col("balance").median().over(BY_ACCOUNT)
    return transactions.with_columns(balance=pl.when(~low).then("balance"))


def rate_as_sent(accepted: pl.DataFrame, until: date) -> pl.DataFrame:
    """Return `customer_number, grade` of the reports, and whether rows are `mentioning` an account not supplied."""
    numbers = accepted[BY_CUSTOMER].unique().sort()
    parts = list[pl.DataFrame]()
    for place in range(0, len(numbers), RATED_AT_ONCE):
        chosen = accepted.filter(pl.col(BY_CUSTOMER).is_in(numbers[place : place + RATED_AT_ONCE].implode()))
        transactions = enrich(pl.DataFrame(schema=TRANSACTIONS), chosen).transactions.collect()
        rated = rate_enriched(transactions, until).select(BY_CUSTOMER, "grade")
        parts.append(rated.with_columns(mentioning=_mentioning(transactions, until)))
    return pl.concat(parts).sort(BY_CUSTOMER)


def measure(transactions: pl.DataFrame, accepted: pl.DataFrame, until: date, seed: int) -> Sequence[Row]:
    """Measure on the rows of a portfolio, all of whose accounts are supplied.

    Args:
        transactions: enriched and current.
        accepted: the same rows as sent (schema ACCEPTED).
    """
    whole, graded = score(transactions, until), rate_as_sent(accepted, until)
    fewer = rate_as_sent(without_an_account(accepted, seed), until)
    shorter = rate_as_sent(_without_a_month(accepted, until, seed), until)
    return [
        _more_points("without any words", whole, score(blank_words(transactions, pl.lit(value=True)), until)),
        _more_points("without any balance", whole, score(without_balances(transactions), until)),
        _more_points("without the lower half of balances", whole, score(without_low_balances(transactions), until)),
        _count_improved("an account left out that others mention", graded, fewer.filter("mentioning")),
        _count_improved("an account left out that nothing mentions", graded, fewer.filter(~pl.col("mentioning")), ""),
        _count_improved("a month left out between balances", graded, shorter),
        *_path(transactions, until, seed),
        *_interval(transactions, until, seed, whole),
    ]


def _more_points(name: str, whole: pl.DataFrame, less: pl.DataFrame) -> Row:
    more = (less["points"] - whole["points"]).to_numpy()
    return Row(f"{name}: customers with more points, largest gain", f"{(more > 0).sum()}, {more.max():.2f}", "0")


def _count_improved(name: str, whole: pl.DataFrame, less: pl.DataFrame, target: str = "≤ 0.5 %") -> Row:
    both = whole.join(less, on=BY_CUSTOMER, suffix="_less")
    better = both.filter(pl.col("grade_less").to_physical() < pl.col("grade").to_physical()).height
    bound = _upper_bound(better, both.height)
    return Row(f"{name}: ratings that improve", f"{better} of {both.height}, at most {bound:.2%}", target)


def _upper_bound(found: int, total: int) -> float:
    """Return the upper end of Wilson's 95 % interval of a share."""
    z, share = 1.96, found / total
    middle, spread = share + z * z / (2 * total), z * ((share * (1 - share) + z * z / (4 * total)) / total) ** 0.5
    return float((middle + spread) / (1 + z * z / total))


def without_an_account(accepted: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the rows of the customers with several accounts, each without a random one."""
    accounts = accepted.select(BY_CUSTOMER, "account_id").unique().sort(pl.all())
    several = accounts.filter(pl.len().over(BY_CUSTOMER) > 1).sample(fraction=1, shuffle=True, seed=seed)
    left_out = several.unique(BY_CUSTOMER, keep="first", maintain_order=True)
    return accepted.join(left_out, on=BY_CUSTOMER, how="semi").join(
        left_out, on=[BY_CUSTOMER, "account_id"], how="anti"
    )


def _mentioning(transactions: pl.DataFrame, until: date) -> pl.Expr:
    """Match customers whose transactions mention an account that is not supplied."""
    stretches = find_stretches(Facts(transactions, until))
    of_mentions = (pl.col("what") == "unsupplied") & pl.col("is_mentioned")
    return pl.col(BY_CUSTOMER).is_in(stretches.filter(of_mentions)[BY_CUSTOMER].implode())


def _without_a_month(accepted: pl.DataFrame, until: date, seed: int) -> pl.DataFrame:
    """Leave 30 days out of all accounts of each customer, somewhere in the last 180."""
    draws = Random(seed)
    starts = {number: draws.randrange(5, 150) for number in accepted[BY_CUSTOMER].unique().sort()}
    ago = (pl.lit(until) - pl.col("date")).dt.total_days()
    since = ago - pl.col(BY_CUSTOMER).replace_strict(starts, return_dtype=pl.Int64)
    return accepted.filter(~since.is_between(0, 29))


def _path(transactions: pl.DataFrame, until: date, seed: int) -> Iterator[Row]:
    """Blank row after row in random order, measured at random places of the path."""
    draws = Random(seed)
    numbers = transactions[BY_CUSTOMER].unique().sort().to_list()
    pieces, places = list[pl.DataFrame](), list[tuple[int, float, int]]()
    for customer in draws.sample(numbers, min(40, len(numbers))):
        rows = transactions.filter(pl.col(BY_CUSTOMER) == customer)
        quiet = (
            rows.select(pl.int_range(pl.len()).filter(~pl.col("category_group").is_in(_EVENTS))).to_series().to_list()
        )
        draws.shuffle(quiet)
        for blank in (0, *sorted(draws.sample(range(1, len(quiet)), 20)), len(quiet)):
            for more in (0, 1) if 0 < blank < len(quiet) else (0,):
                which = pl.int_range(pl.len()).is_in(quiet[: blank + more])
                pieces.append(renumber(blank_words(rows, which), len(places)))
                places.append((customer, blank / len(quiet), more))
    points = score(pl.concat(pieces), until)["points"]
    path = pl.DataFrame(places, schema=["customer", "at", "more"], orient="row").with_columns(points=points)
    steps = np.abs((path["points"] - path["points"].shift(1)).filter(path["more"] == 1).to_numpy())
    yield Row("largest change by one blanked row", f"{steps.max():.2f} of {steps.size} steps", "≤ 5")
    yield Row("steps that change the points by more than 2", f"{(steps > 2).mean():.2%}", "≤ 0.1 %")
    ends = path.filter(pl.col("more") == 0).with_columns(
        line=pl.col("points").first().over("customer") * (1 - pl.col("at"))
        + pl.col("points").last().over("customer") * pl.col("at")
    )
    off = (
        ends.with_columns(tenth=(pl.col("at") * 10).floor())
        .group_by("tenth")
        .agg((pl.col("points") - pl.col("line")).mean())
    )
    yield Row("mean path off the straight line, at most", f"{off['points'].abs().max():.2f}", "≤ 5")


def _interval(transactions: pl.DataFrame, until: date, seed: int, whole: pl.DataFrame) -> Iterator[Row]:
    """Compare the interval of customers who lack a random share of their words with the value of all evidence."""
    draws = Random(seed)
    shares = {number: draws.random() for number in whole[BY_CUSTOMER]}
    chance = pl.col(BY_CUSTOMER).replace_strict(shares, return_dtype=pl.Float64)
    number = (pl.int_range(pl.len()).hash(seed) % 10_000).cast(pl.Float64) / 10_000
    less = score(blank_words(transactions, number < chance), until)
    both = less.join(whole.select(BY_CUSTOMER, truth="value", full="points"), on=BY_CUSTOMER).sort("covered")
    within = ((both["truth"] >= both["low"]) & (both["truth"] <= both["high"])).to_numpy()
    fifths = np.array_split(within, 5)
    yield Row("interval contains the value of all evidence, by fifths of coverage",
              ", ".join(f"{each.mean():.1%}" for each in fifths), f"≥ {COVERS:.0%}")  # fmt: skip
    width = (both["high"] - both["low"]).mean()
    conformal = _conformal_width(both, draws)
    yield Row("mean width, beside a split-conformal interval", f"{width:.4f}, {conformal:.4f}", "≤ 1.2 times")


def _conformal_width(both: pl.DataFrame, draws: Random) -> float:
    """Return the mean width of split-conformal intervals that cover COVERS: half of the customers set the margins.

    The score is the distance between the points of all evidence and the middle, per unknown point.
    """
    order = list(range(both.height))
    draws.shuffle(order)
    calibrating, rest = both[order[::2]], both[order[1::2]]
    gained = (calibrating["full"] - calibrating["points"]) / (100 * (1 - calibrating["covered"]) + 1)
    low, high = np.quantile(gained.to_numpy(), [(1 - COVERS) / 2, (1 + COVERS) / 2])
    unknown = 100 * (1 - rest["covered"]) + 1
    ends = [_values(rest["points"] + share * unknown) for share in (low, high)]
    return float(np.mean(ends[0] - ends[1]))


def _values(points: pl.Series) -> np.ndarray:
    odds = 2 ** ((float(DEFAULT.link.even) - points.to_numpy()) / float(DEFAULT.link.doubling))
    return odds / (1 + odds)
