"""Try manipulations on customers: rate each customer untouched and manipulated, in slices of bounded size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

import polars as pl

from pipelines.attacks.attack import Attack, Manipulation
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.trials.rating import RATED, rate
from pipelines.trials.subjects import Subject, as_accepted

MAX_ROWS = 100_000  # rated together, in about half a gigabyte
UNTOUCHED = ""

# One row per customer, untouched, and per customer and manipulation that changed its ledger.
TRIED = pl.Schema(
    {
        "subject": pl.UInt32(),  # its index
        "manipulation": pl.String(),  # slug, or UNTOUCHED
        "has_evidence": pl.Boolean(),  # whether the ledger has evidence of the attack; null without an attack
        "defaults": pl.Boolean(),  # whether the customer defaulted later; null if unknown
        "lacks_account": pl.Boolean(),
        **{name: kind for name, kind in RATED.items() if name != "customer_number"},
    }
)
_NUMBERED = {"customer_number": pl.Int64(), **{name: TRIED[name] for name in list(TRIED)[:5]}}


class Copy(NamedTuple):
    """A customer's ledger, changed or not, that is rated as of a day."""

    number: int  # unique in the trial
    subject: int
    manipulation: str
    has_evidence: bool | None
    defaults: bool | None
    lacks_account: bool
    as_of: date
    rows: pl.DataFrame  # schema ACCEPTED


def choose_in_turn(manipulations: Sequence[Manipulation], each: int | None) -> Callable[[int], Sequence[Manipulation]]:
    """Return a function that chooses the manipulations to try on a customer, by the customer's index.

    They are chosen in turn, so that all are tried on equally many customers.

    Args:
        each: how many are tried on one customer; all if None.
    """
    count = len(manipulations)
    if each is None or each >= count:
        return lambda _: manipulations
    return lambda place: [manipulations[(place * each + nth) % count] for nth in range(each)]


def try_manipulations(
    subjects: Iterable[Subject],
    chosen: Callable[[int], Sequence[Manipulation]],
    seed: int,
    expected: Expected = EVERYTHING,
    most_rows: int = MAX_ROWS,
) -> pl.DataFrame:
    """Return the ratings (schema TRIED) of all customers, untouched and changed.

    If a manipulation can't change a customer, the result has no row for the two.

    Args:
        subjects: read one at a time, so that a portfolio of any size can be tried.
        chosen: returns the manipulations to try on a customer, by its index.
        expected: the evidence expected of all customers.
        most_rows: rated together, unless one copy alone has more.
    """
    copies = _copies(subjects, chosen, seed)
    parts = [_rate_part(part, expected) for part in _slices(copies, most_rows)]
    return pl.concat([pl.DataFrame(schema=TRIED), *parts])


def _copies(subjects: Iterable[Subject], chosen: Callable[[int], Sequence[Manipulation]], seed: int) -> Iterator[Copy]:
    number = 0
    for place, subject in enumerate(subjects):
        for slug, has_evidence, ledger in _change_ledgers(place, subject, chosen(place), seed):
            number += 1
            rows = as_accepted(number, ledger, subject.accounts)
            about = number, place, slug, has_evidence, subject.defaults, subject.lacks_account
            yield Copy(*about, subject.applicant.applied_on, rows)


def _change_ledgers(
    place: int, subject: Subject, manipulations: Sequence[Manipulation], seed: int
) -> Iterator[tuple[str, bool | None, pl.DataFrame]]:
    untouched = subject.applicant.ledger
    yield UNTOUCHED, None, untouched
    for each in manipulations:
        changed = each.apply(subject.applicant, f"{seed}/{place}")
        has_evidence = each.leaves_evidence(untouched, changed) if isinstance(each, Attack) else None
        if changed.height and not changed.drop("touch").equals(untouched.drop("touch")):
            yield each.slug, has_evidence, changed


def _slices(copies: Iterable[Copy], most_rows: int) -> Iterator[list[Copy]]:
    """Yield copies with the same day, of at most `most_rows` rows together unless it is a single copy.

    Customers apply on different days, so the copies of each day are collected. If all have too many rows together,
    the day with the most is yielded.
    """
    waiting: dict[date, list[Copy]] = {}
    for copy in copies:
        while waiting and sum(map(_count_rows, waiting.values())) + copy.rows.height > most_rows:
            yield waiting.pop(max(waiting, key=lambda day: _count_rows(waiting[day])))
        waiting.setdefault(copy.as_of, []).append(copy)
    yield from waiting.values()


def _count_rows(part: Sequence[Copy]) -> int:
    return sum(copy.rows.height for copy in part)


def _rate_part(part: Sequence[Copy], expected: Expected) -> pl.DataFrame:
    about = pl.DataFrame([copy[:6] for copy in part], schema=_NUMBERED, orient="row")
    ratings = rate(pl.concat([copy.rows for copy in part]), part[0].as_of, expected)
    joined = about.join(ratings, on="customer_number", how="left", validate="1:1", maintain_order="left")
    return joined.select(pl.col(name).cast(kind) for name, kind in TRIED.items())
