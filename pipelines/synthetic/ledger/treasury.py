"""Movements by owners that depend on the day's balance and look worse than they are (`circumstances`).

A debit is refused on a morning when the money was in savings, and is paid at the next attempt. Companies of the same
owner pool their cash: each week one sends the other what it does not need, and gets it back when it is short of money.
"""

from collections.abc import Mapping
from random import Random

from pipelines.synthetic.businesses.circumstances import stream_of
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.ledger.ledger import DEBITED_BY_OTHERS, Ledger
from pipelines.synthetic.world.days import Window
from pipelines.synthetic.world.model import Movement

SMALLEST_FORGOTTEN = 5_000  # the smallest debit, in cents, that the owner may forget


class Treasury:
    """An owner's mistake about a balance, and the days of sweeps."""

    def __init__(self, profile: Profile, window: Window, planned: Mapping[int, list[Movement]]) -> None:
        rng = stream_of(profile, "cash_pooling")
        pools = "cash_pooling" in profile.lookalikes
        self._sweep_days = frozenset(window.weekly(rng.randrange(5)) if pools else ())
        self._retained = round(profile.turnover * rng.uniform(0.15, 0.4))
        mistakes = "timing_dishonour" in profile.lookalikes
        self._mistake = _mistaken_debit(window, planned, stream_of(profile, "timing_dishonour")) if mistakes else None
        self._moved = 0

    def follow(self, day: int, ledger: Ledger) -> None:
        """Post what the owner moves at the end of a day."""
        if day in self._sweep_days:
            ledger.sweep(day, self._retained)
        if self._mistake and day == self._mistake.day - 1:
            self._move_too_much(day, ledger, self._mistake)
        if self._moved and self._mistake and day == self._mistake.day:
            ledger.transfer(day, "savings", "main", min(self._moved, ledger.balances["savings"]))

    def _move_too_much(self, day: int, ledger: Ledger, debit: Movement) -> None:
        """Move to savings what the next morning's debit needs."""
        cents = ledger.headroom() + debit.cents // 3
        if cents > 0 and ledger.transfer(day, "main", "savings", cents):
            self._moved = cents
            ledger.short_on = debit.day


def _mistaken_debit(window: Window, planned: Mapping[int, list[Movement]], rng: Random) -> Movement | None:
    """Choose a debit of the trading account, and let that day's debits come before its credits."""
    debits = [each for day, rows in planned.items() if day - 1 in window for each in rows if _can_be_refused(each)]
    if not debits:
        return None
    debit = rng.choice(debits)
    planned[debit.day].sort(key=lambda movement: movement.rail not in DEBITED_BY_OTHERS)
    return debit


def _can_be_refused(movement: Movement) -> bool:
    debited = movement.rail in DEBITED_BY_OTHERS and movement.role == "main"
    return debited and movement.series is not None and movement.cents <= -SMALLEST_FORGOTTEN
