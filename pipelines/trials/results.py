"""Summarise a trial: how often each attack improves a result, and how often attacks and lookalikes are noticed.

An attack *improves* a result if it yields a better grade, a value lower by WORTH_VALUE or more, a limit higher by
WORTH_LIMIT per cent or more, or a more favourable verdict than for the same customer untouched. Customers who are rated
A untouched have nothing to gain and are left out of these shares. An attack is *noticed* where there is a finding or a
reason that the untouched customer doesn't have, or a worse grade.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from pipelines.attacks.attack import Attack, Lookalike, Manipulation
from pipelines.scorecards import measures
from pipelines.trials.trial import UNTOUCHED

WORTH_VALUE = 0.005  # of the estimated probability of default (our judgement)
WORTH_LIMIT = 2  # per cent (our judgement)
BEST = "A"
GOOD = ("A", "B")
_MISSING_ACCOUNT = "account_withheld"
_IMPROVES = ("grade", "value", "limit", "verdict")


def report(tried: pl.DataFrame, manipulations: Sequence[Manipulation]) -> dict[str, Any]:
    """Return what a trial (schema TRIED) of these manipulations shows, as data for JSON."""
    return {
        "untouched": summarise_untouched(tried),
        "attacks": summarise_attacks(tried, [each for each in manipulations if isinstance(each, Attack)]),
        "lookalikes": summarise_lookalikes(tried, [each for each in manipulations if isinstance(each, Lookalike)]),
    }


def summarise_attacks(tried: pl.DataFrame, attacks: Iterable[Attack]) -> list[dict[str, Any]]:
    """Return for each attack: `customers` that it changed, and shares of them; None if there is no such customer.

    Customers not rated A untouched (`belowBest`): the shares with an improved `grade`, `value`, `limit` and `verdict`.
    Those of them where evidence remains (`belowBestShown`): the share with a better grade (`gradeShown`). All customers
    where evidence remains (`withEvidence`): the shares `noticed`, and `found` by a new finding.
    """
    compared = _compare_with_untouched(tried)
    return [
        {**_describe_manipulation(each), "detectability": each.detectability, **_summarise_attack(compared, each.slug)}
        for each in attacks
    ]


def summarise_lookalikes(tried: pl.DataFrame, lookalikes: Iterable[Lookalike]) -> list[dict[str, Any]]:
    """Return for each lookalike: `customers` that it changed, and shares of them; None if there is no such customer.

    `found`: with a new finding, a false alarm; `newReason`: with a new reason; `worse`: with a worse grade.
    """
    compared = _compare_with_untouched(tried)
    return [
        {**_describe_manipulation(each), "resembles": each.resembles, **_summarise_lookalike(compared, each.slug)}
        for each in lookalikes
    ]


def summarise_untouched(tried: pl.DataFrame) -> dict[str, Any]:
    """Return figures of the untouched customers: the shares rated A or B, with any finding, and with each finding.

    `auc`: of the value as a forecast of defaults; None where outcomes are unknown or all the same. `falseAlarm`: the
    share with a finding, unless an account is missing and the finding says so.
    """
    untouched = tried.filter(pl.col("manipulation") == UNTOUCHED)
    each = untouched.explode("findings").group_by("findings").agg(pl.col("subject").n_unique()).drop_nulls()
    return {
        "customers": untouched.height,
        "auc": _auc(untouched.drop_nulls("defaults")),
        "good": _share(untouched, pl.col("grade").is_in(GOOD)),
        "found": _share(untouched, pl.col("findings").list.len() > 0),
        "falseAlarm": _share(untouched, _false_alarms().list.len() > 0),
        "foundOf": {code: count / untouched.height for code, count in each.sort("findings").iter_rows()},
    }


def _false_alarms() -> pl.Expr:
    missing = pl.lit([_MISSING_ACCOUNT])
    return pl.when("lacks_account").then(pl.col("findings").list.set_difference(missing)).otherwise("findings")


def _auc(with_outcome: pl.DataFrame) -> float | None:
    if with_outcome["defaults"].n_unique() < 2:
        return None
    return float(measures.auc(with_outcome["defaults"].cast(pl.Int8).to_numpy(), with_outcome["value"].to_numpy()))


def _describe_manipulation(each: Attack | Lookalike) -> Mapping[str, Any]:
    return {"slug": each.slug, "heldOut": each.held_out}


def _compare_with_untouched(tried: pl.DataFrame) -> pl.DataFrame:
    """Return for each changed copy what is better, worse or new compared with the same customer untouched."""
    untouched = tried.filter(pl.col("manipulation") == UNTOUCHED).select("subject", *_RESULTS)
    changed = tried.filter(pl.col("manipulation") != UNTOUCHED)
    both = changed.join(untouched, on="subject", how="left", validate="m:1", suffix="_before")
    return both.select(
        "manipulation",
        "has_evidence",
        grade=_rank("grade") < _rank("grade_before"),
        value=pl.col("value_before") - pl.col("value") >= WORTH_VALUE - 1e-9,
        limit=_is_higher("limit"),
        verdict=_rank("verdict") < _rank("verdict_before"),
        is_worse=_rank("grade") > _rank("grade_before"),
        is_below_best=pl.col("grade_before") != BEST,
        has_finding=_has_new("findings"),
        has_code=_has_new("codes"),
    )


_RESULTS = ("grade", "value", "limit", "verdict", "findings", "codes")


def _rank(column: str) -> pl.Expr:
    return pl.col(column).to_physical()


def _is_higher(column: str) -> pl.Expr:
    before = pl.col(f"{column}_before")
    more = pl.col(column) - before
    return (more > 0) & (more * 100 >= before * WORTH_LIMIT)


def _has_new(column: str) -> pl.Expr:
    return pl.col(column).list.set_difference(f"{column}_before").list.len() > 0


def _summarise_attack(compared: pl.DataFrame, slug: str) -> dict[str, Any]:
    changed = compared.filter(pl.col("manipulation") == slug)
    below_best, shown = changed.filter("is_below_best"), changed.filter("has_evidence")
    return {
        "customers": changed.height,
        "belowBest": below_best.height,
        **{name: _share(below_best, pl.col(name)) for name in _IMPROVES},
        "belowBestShown": below_best.filter("has_evidence").height,
        "gradeShown": _share(below_best.filter("has_evidence"), pl.col("grade")),
        "withEvidence": shown.height,
        "noticed": _share(shown, pl.any_horizontal("has_finding", "has_code", "is_worse")),
        "found": _share(shown, pl.col("has_finding")),
    }


def _summarise_lookalike(compared: pl.DataFrame, slug: str) -> dict[str, Any]:
    carriers = compared.filter(pl.col("manipulation") == slug)
    return {
        "customers": carriers.height,
        "found": _share(carriers, pl.col("has_finding")),
        "newReason": _share(carriers, pl.col("has_code")),
        "worse": _share(carriers, pl.col("is_worse")),
    }


def _share(rows: pl.DataFrame, which: pl.Expr) -> float | None:
    """Return the share of the rows for which this is true; unknown counts as false."""
    return None if rows.is_empty() else float(rows.select(which.fill_null(value=False).mean()).item())
