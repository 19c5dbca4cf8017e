"""The banks' side: books planned movements day by day, and refuses what an account can't carry.

A shortage is met as small firms meet it: from savings, else from the owner, and in distress often not at all.
Then a direct debit is dishonoured and what could wait is not paid. So dishonours follow from money running out,
not from a dice roll beside it. Balances are integers of cents and chain by construction.
"""

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from pipelines.sandbox.days import Window, next_business_day
from pipelines.sandbox.model import Booked, Movement, Party, Role
from pipelines.sandbox.profile import Profile

DEBITED_BY_OTHERS = ("direct_debit", "loan_repayment")
MUST_BE_PAID = ("wages", "bas", "bank_fees", "interest_charged")
_RANK = {"direct_credit": 0, "direct_debit": 1}  # overnight files are booked before the day's own payments


class Leg(NamedTuple):
    """The receiving side of an own transfer, on its way."""

    movement: Movement
    pair: int
    other: str


class Ledger:
    """Every account of one business, growing row by row."""

    def __init__(self, profile: Profile, window: Window, rng: Random) -> None:
        self.profile = profile
        self.window = window
        self.rng = rng
        self.rows: dict[Role, list[Booked]] = {role: [] for role in profile.roles}
        self.balances: dict[Role, int] = {role: profile.opening[role] for role in profile.roles}
        self._pairs = 0
        self._arriving: defaultdict[int, list[Leg]] = defaultdict(list)

    def book_day(self, day: int, movements: Iterable[Movement]) -> None:
        for leg in self._arriving.pop(day, ()):
            self._post(leg.movement, leg.pair, leg.other)
        for movement in movements:
            self.book(movement)

    def book(self, movement: Movement) -> None:
        """Post the movement, or what happens instead when the account can't carry it."""
        movement = self._within_card_limit(movement)
        if movement.category == "bas" and movement.cents < 0:
            self._bring_back_savings(movement.day, -movement.cents)
        if movement.role != "main" or movement.cents >= 0 or self._affordable(movement):
            self._post(movement)
            self._foreign_fee(movement)
        elif movement.rail in DEBITED_BY_OTHERS:
            self._dishonour(movement)

    def transfer(self, day: int, source: Role, target: Role, cents: int) -> bool:
        """Move money between own accounts; to another bank by direct entry it arrives a business day later."""
        elsewhere = "second" in (source, target)
        instant = not elsewhere or self.rng.random() < 0.4
        arrives = day if instant else next_business_day(day + 1)
        if cents <= 0 or arrives not in self.window:
            return False
        self._pairs += 1
        out_rail, in_rail, category = _transfer_terms(target, elsewhere)
        party = Party(self.profile.name)
        sent = Movement(day, -cents, out_rail, party, "", category, source)
        received = Leg(
            Movement(arrives, cents, in_rail, party, "", category, target),
            self._pairs,
            self.profile.numbers[source],
        )
        self._post(sent, self._pairs, self.profile.numbers[target])
        if arrives == day:
            self._post(*received)
        else:
            self._arriving[arrives].append(received)
        return True

    def headroom(self) -> int:
        """What the trading account can still pay, overdraft included."""
        return self.balances["main"] + self.profile.overdraft

    def _post(self, movement: Movement, pair: int | None = None, other: str = "") -> None:
        balance = self.balances[movement.role] + movement.cents
        self.balances[movement.role] = balance
        self.rows[movement.role].append(Booked(movement, balance, pair, other))

    def _within_card_limit(self, movement: Movement) -> Movement:
        """A purchase over the credit card's limit goes on the debit card."""
        over = movement.role == "card" and movement.cents + self.balances["card"] < -self.profile.card_limit
        if not over or not movement.rail.startswith("purchase"):
            return movement
        return movement._replace(role="main", rail=movement.rail.replace("purchase", "card"))

    def _affordable(self, movement: Movement) -> bool:
        """Whether the money is there, or can be found."""
        short = -movement.cents - self.headroom()
        return short <= 0 or self._from_savings(movement.day, short) or self._from_owner(movement, short)

    def _from_savings(self, day: int, short: int) -> bool:
        cents = _rounded_up(short, 50_000)
        enough = "savings" in self.balances and self.balances["savings"] >= cents
        return enough and self.transfer(day, "savings", "main", cents)

    def _bring_back_savings(self, day: int, cents: int) -> None:
        """Tax was put aside to be paid from savings."""
        if "savings" in self.balances and self.balances["savings"] >= _rounded_up(cents, 10_000):
            self.transfer(day, "savings", "main", _rounded_up(cents, 10_000))

    def _from_owner(self, movement: Movement, short: int) -> bool:
        """Owners lend to a sound business, and to pay wages and tax even to a failing one."""
        willing = 0.0 if self.profile.distressed else 0.9
        if movement.category not in MUST_BE_PAID and self.rng.random() >= willing:
            return False
        owner = Party(self.profile.owner)
        cents = _rounded_up(short, 200_000)
        self._post(Movement(movement.day, cents, "osko_in", owner, "Loan to business", "director_loan_in"))
        return True

    def _dishonour(self, movement: Movement) -> None:
        """The debit, its return on the same day, and most banks' fee."""
        self._post(movement)
        returned = movement._replace(cents=-movement.cents, rail="returned_debit", category="returned_payment")
        self._post(returned)
        fee = self.profile.bank.dishonour_fee
        if fee:
            self._post(Movement(movement.day, -fee, "dishonour_fee", Party(""), "", "dishonour_fee"))

    def _foreign_fee(self, movement: Movement) -> None:
        foreign = movement.rail in ("card_foreign", "purchase_foreign")
        if foreign and self.profile.bank.wordings["foreign_fee"]:
            fee = max(1, -movement.cents * 3 // 100)
            self._post(Movement(movement.day, -fee, "foreign_fee", Party(""), "", "bank_fees", movement.role))


def _transfer_terms(target: Role, elsewhere: bool) -> tuple[str, str, str]:
    """Rails of the two legs, and their category."""
    if target == "card":
        return "card_payment", "card_payment_received", "card_repayment"
    if elsewhere:
        return "own_out_elsewhere", "own_in_elsewhere", "own_transfer"
    return "own_out", "own_in", "own_transfer"


def _rounded_up(cents: int, step: int) -> int:
    return -(-cents // step) * step


def in_booking_order(movements: Iterable[Movement]) -> dict[int, list[Movement]]:
    """Movements by day; within a day overnight credits, overnight debits, then the rest as planned."""
    days: defaultdict[int, list[Movement]] = defaultdict(list)
    for movement in movements:
        days[movement.day].append(movement)
    for planned in days.values():
        planned.sort(key=lambda movement: _RANK.get(movement.rail, 2))
    return days
