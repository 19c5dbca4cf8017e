"""The banks' side: post planned movements day by day, and refuse what an account can't pay.

A shortage is met as small firms meet it: from savings, the group's pool or the credit card, else from the owner, and in
distress often not at all. Then a direct debit is dishonoured, and payments that can wait are not made. Wages are the
last to wait: the owner of a business in trouble lends money for them until the owner's own money is gone; then they are
paid a week late or not at all. So dishonours and missed wages follow from a lack of money and are not drawn at random.
Balances are whole cents: each is the one before plus the amount.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.world.days import Window, next_business_day
from pipelines.synthetic.world.model import NOBODY, Condition, LedgerEntry, Movement, Party, Role, Series
from pipelines.synthetic.world.typed_texts import typed_out, words

DEBITED_BY_OTHERS = ("direct_debit", "loan_repayment")
MUST_BE_PAID = ("wages", "bas", "bank_fees", "interest_charged", "garnishee", "overdrawn_fee")
LEAVES_AFTER = 3  # missed payments of wages; then the worker has left
# The money of the most prudent owner, in months of turnover.
MONTHS_OWNED: dict[Condition, float] = {"sound": 12, "start_up": 12, "distressed": 1.2, "failing": 0.5}
DEBITED_AGAIN = 0.55  # share of dishonoured instalments that the lender tries again
_RANK = {"direct_credit": 0, "direct_debit": 1}  # overnight files are posted before the day's own payments


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
        self.owner = Party(profile.owner, brand=profile.owner, person=True)
        self.rows: dict[Role, list[LedgerEntry]] = {role: [] for role in profile.roles}
        self.balances: dict[Role, int] = {role: profile.opening[role] for role in profile.roles}
        self.owed: dict[int, int] = {}  # cents, by facility; no entry before money is drawn
        self.withheld: Counter[int] = Counter()  # from takings, by facility
        self.held = 0  # cents that belong to others
        self.pooled = 0  # cents that the related company holds for this one
        self.short_on = 0  # the day whose debits come while the money is in savings
        self.missed: Counter[Party] = Counter()  # payments of wages that were not made, by worker
        self._lent_by_owner = 0
        self.unpaid_since: dict[int, int] = {}  # day of the first instalment missed since the last one paid
        self._borrowings = {borrowing.number: borrowing for borrowing in profile.borrowings}
        for borrowing in profile.borrowings:
            if borrowing.to_repay and (borrowing.drawn < window.first or not borrowing.funded_here):
                self.owed[borrowing.number] = max(0, borrowing.to_repay - borrowing.paid_before(window.first))
        self.owed_before = dict(self.owed)  # at the window's start, or at the facility's start if it paid out elsewhere
        self._pairs = 0
        self._arriving: defaultdict[int, list[Leg]] = defaultdict(list)
        self._returning: defaultdict[int, list[Movement]] = defaultdict(list)
        self._retries: defaultdict[int, list[Movement]] = defaultdict(list)

    def post_day(self, day: int, movements: Iterable[Movement]) -> None:
        for leg in self._arriving.pop(day, ()):
            self._post(leg.movement, leg.pair, leg.other)
        for returned in self._returning.pop(day, ()):
            self._return(returned)
        for movement in self._retries.pop(day, ()):
            self.post(movement)
        for movement in movements:
            self.post(movement)

    def post(self, movement: Movement) -> None:
        """Post a movement, or what happens instead if the account can't pay it."""
        if movement.role == "card" or movement.facility:
            movement = self._as_owed(self._within_card_limit(movement))
        if not movement.cents or self._has_left(movement):
            return
        if movement.category == "bas" and movement.cents < 0:
            self._bring_back_savings(movement.day, -movement.cents)
        if movement.role != "main" or movement.cents >= 0 or self._affordable(movement):
            self._post(movement)
            self._foreign_fee(movement)
        elif movement.rail in DEBITED_BY_OTHERS and not self.profile.quiet:
            self._dishonour(movement)
        elif movement.category == "wages":
            self._pay_late(movement)
        elif movement.facility:
            self.unpaid_since.setdefault(movement.facility, movement.day)

    def transfer(self, day: int, source: Role, target: Role, cents: int, series: Series | None = None) -> bool:
        """Move money between own accounts, if it arrives within the window. Direct entry takes a business day."""
        elsewhere = "second" in (source, target)
        instant = not elsewhere or self.rng.random() < 0.4
        arrives = day if instant else next_business_day(day + 1)
        if cents <= 0 or arrives not in self.window:
            return False
        self._pairs += 1
        out_rail, in_rail, category = _transfer_terms(source, target, elsewhere)
        party = Party(self.profile.name)
        sent = Movement(
            day, -cents, out_rail, party, "", "own_transfer" if source == "card" else category, source, series
        )
        received = Leg(
            Movement(arrives, cents, in_rail, party, "", category, target, series),
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
        """Return what the trading account can still pay, overdraft included (cents)."""
        return self.balances["main"] + self.profile.overdraft

    def _as_owed(self, movement: Movement) -> Movement:
        """Limit a repayment to what is owed, and let a renewal pay out the facility before it."""
        number = movement.facility
        if movement.owed < 0 and movement.cents < 0 and movement.category != "returned_payment":
            owed = self.owed.get(number, 0)
            return movement if owed >= -movement.owed else movement._replace(cents=-owed, owed=-owed)
        renewed = self._borrowings[number].renews if movement.owed > 0 and number else 0
        if not renewed:
            return movement
        paid_out = min(self.owed.get(renewed, 0), movement.cents * 9 // 10)  # the lender waives the rest
        self.owed[renewed] = 0
        self.unpaid_since.pop(renewed, None)
        return movement._replace(cents=movement.cents - paid_out)

    def _post(self, movement: Movement, pair: int | None = None, other: str = "") -> None:
        if movement.facility:
            self._owe(movement)
        else:
            self.held += movement.owed
        balance = self.balances[movement.role] + movement.cents
        self.balances[movement.role] = balance
        self.rows[movement.role].append(LedgerEntry(movement, balance, pair, other))

    def _owe(self, movement: Movement) -> None:
        number = movement.facility
        self.owed[number] = self.owed.get(number, 0) + movement.owed
        if movement.owed < 0 < movement.cents:
            self.withheld[number] -= movement.owed
        if movement.owed < 0:
            self.unpaid_since.pop(number, None)

    def _within_card_limit(self, movement: Movement) -> Movement:
        """Move a purchase over the credit card's limit to the debit card."""
        over = movement.role == "card" and movement.cents + self.balances["card"] < -self.profile.card_limit
        if not over or not movement.rail.startswith("purchase"):
            return movement
        return movement._replace(role="main", rail=movement.rail.replace("purchase", "card"))

    def _affordable(self, movement: Movement) -> bool:
        """Return whether the money is there, or can be found."""
        short = -movement.cents - self.headroom()
        if movement.day == self.short_on and movement.rail in DEBITED_BY_OTHERS:
            return short <= 0
        return (
            short <= 0
            or self._from_savings(movement.day, short)
            or self._from_pool(movement.day, short)
            or self._from_card(movement.day, short)
            or self._from_owner(movement, short)
        )

    def _from_card(self, day: int, short: int) -> bool:
        """Take cash from the credit card. It is expensive, so only businesses in distress do so."""
        cents = _round_up(short, 10_000)
        available = self.profile.card_limit + self.balances.get("card", -self.profile.card_limit)
        if not self.profile.distressed or cents > available or self.rng.random() < 0.6:
            return False
        return self.transfer(day, "card", "main", cents)

    def _from_savings(self, day: int, short: int) -> bool:
        cents = _round_up(short, 50_000)
        enough = "savings" in self.balances and self.balances["savings"] >= cents
        return enough and self.transfer(day, "savings", "main", cents)

    def _from_pool(self, day: int, short: int) -> bool:
        cents = _round_up(short, 100_000)
        if self.pooled < cents:
            return False
        self._pool(day, -cents)
        return True

    def sweep(self, day: int, retained: int) -> None:
        """Send the related company what exceeds the balance to be retained, in whole thousands."""
        cents = (self.balances["main"] - retained) // 100_000 * 100_000
        if cents > 0:
            self._pool(day, cents)

    def _pool(self, day: int, cents: int) -> None:
        self.pooled += cents
        name = self.profile.related[0]
        rail = "osko_out" if cents > 0 else "osko_in"
        reference = typed_out(self.rng, words().pooling)
        movement = Movement(day, -cents, rail, Party(name, brand=name), reference, "related_entity")
        self._post(movement._replace(lookalike="cash_pooling"))

    def _bring_back_savings(self, day: int, cents: int) -> None:
        """Bring back money that was put aside for tax, from savings or from an account of its own."""
        aside: Role = "tax" if "tax" in self.balances else "savings"
        if aside in self.balances and self.balances[aside] >= _round_up(cents, 10_000):
            self.transfer(day, aside, "main", _round_up(cents, 10_000), Series("kept for tax", "quarterly"))

    def _from_owner(self, movement: Movement, short: int) -> bool:
        """Lend the owner's money: the prudent do for a sound business, and all do for wages and tax."""
        willing = 0.05 if self.profile.distressed else 0.45 + 0.5 * self.profile.latents.prudence
        if movement.category not in MUST_BE_PAID and self.rng.random() >= willing:
            return False
        cents = _round_up(short, 200_000)
        if movement.category == "wages" and self._lent_by_owner + cents > self._means_of_owner():
            return False
        self._lent_by_owner += cents
        reference = typed_out(self.rng, words().director_loan)
        self._post(Movement(movement.day, cents, "osko_in", self.owner, reference, "director_loan_in"))
        return True

    def _means_of_owner(self) -> float:
        """Return how many cents the owner can lend. The prudent have more; trouble has already cost money."""
        return self.profile.turnover * self.profile.latents.prudence * MONTHS_OWNED[self.profile.condition]

    def _has_left(self, movement: Movement) -> bool:
        return movement.category == "wages" and self.missed[movement.party] >= LEAVES_AFTER

    def _pay_late(self, movement: Movement) -> None:
        """Plan wages a week later; they are missed if the money is not there then either."""
        day = movement.day + 7
        if movement.series is not None and day in self.window:
            self._retries[day].append(movement._replace(day=day, series=None))
        else:
            self.missed[movement.party] += 1

    def _dishonour(self, movement: Movement) -> None:
        """Post the debit, its return on the same day or the next, and the bank's fee."""
        if movement.day == self.short_on:
            movement = movement._replace(lookalike="timing_dishonour")
        since = self.unpaid_since.get(movement.facility, movement.day)
        self._post(movement)
        bank = self.profile.bank
        day = next_business_day(movement.day + 1) if bank.returns_next_day else movement.day
        returned = movement._replace(
            day=day,
            cents=-movement.cents,
            rail="returned_debit",
            category="returned_payment",
            owed=-movement.owed,
            series=None,
        )
        if movement.facility:
            self.unpaid_since[movement.facility] = since
        if day == movement.day:
            self._return(returned)
        else:
            self._returning[day].append(returned)
        self._debit_again(movement)

    def _return(self, returned: Movement) -> None:
        self._post(returned)
        fee = self.profile.bank.dishonour_fee
        if fee:
            charged = Movement(returned.day, -fee, "dishonour_fee", NOBODY, "", "dishonour_fee")
            self._post(charged._replace(lookalike=returned.lookalike))

    def _debit_again(self, movement: Movement) -> None:
        """Plan a second try a few days later: for a lender's debit (at times with a fee) or one missed by mistake."""
        day = next_business_day(movement.day + 3)
        if movement.lookalike == "timing_dishonour":
            self._retries[day].append(movement._replace(day=day, series=None))
            return
        if not movement.facility or movement.series is None or self.rng.random() >= DEBITED_AGAIN:
            return
        self._retries[day].append(movement._replace(day=day, series=None))
        if movement.rail == "direct_debit" and self.rng.random() < 0.3:
            fee = movement._replace(day=day, cents=-3_500, reference="DISHONOUR FEE", category="late_fee")
            self._retries[day].append(fee._replace(series=None, facility=0, owed=0))

    def _foreign_fee(self, movement: Movement) -> None:
        foreign = movement.rail in ("card_foreign", "purchase_foreign")
        if foreign and self.profile.bank.wordings["foreign_fee"]:
            fee = max(1, -movement.cents * 3 // 100)
            series = movement.series and movement.series._replace(name=f"fee on {movement.series.name}")
            self._post(Movement(movement.day, -fee, "foreign_fee", NOBODY, "", "bank_fees", movement.role, series))


def _transfer_terms(source: Role, target: Role, elsewhere: bool) -> tuple[str, str, str]:
    """Return the rails of the two legs, and their category."""
    if source == "card":
        return "card_advance", "card_advance_received", "card_advance"
    if target == "card":
        return "card_payment", "card_payment_received", "card_repayment"
    if elsewhere:
        return "own_out_elsewhere", "own_in_elsewhere", "own_transfer"
    return "own_out", "own_in", "own_transfer"


def _round_up(cents: int, step: int) -> int:
    return -(-cents // step) * step


def in_posting_order(movements: Iterable[Movement]) -> dict[int, list[Movement]]:
    """Group movements by day. Within a day, overnight credits come first, then overnight debits, then the rest."""
    days: defaultdict[int, list[Movement]] = defaultdict(list)
    for movement in movements:
        days[movement.day].append(movement)
    for planned in days.values():
        planned.sort(key=lambda movement: _RANK.get(movement.rail, 2))
    return days
