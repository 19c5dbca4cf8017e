"""Movements that depend on balances: drawings, money put aside, card repayments, interest and fees.

They depend on the balance of the day, so they are decided while the ledger grows and can't be planned before.
"""

from random import Random

from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.ledger.ledger import Ledger
from pipelines.synthetic.world.days import Window
from pipelines.synthetic.world.model import NOBODY, Movement, Role, Series
from pipelines.synthetic.world.typed_texts import typed_out, words

# Yearly interest in basis points on positive and on negative balances.
CREDIT_RATE: dict[Role, int] = {"main": 0, "second": 0, "savings": 310, "tax": 280, "card": 0}
DEBIT_RATE: dict[Role, int] = {"main": 1_090, "second": 0, "savings": 0, "tax": 0, "card": 1_899}


class Habits:
    """A business's regular days, and the interest accrued since the last month end."""

    def __init__(self, profile: Profile, window: Window, rng: Random) -> None:
        self._profile = profile
        living = rng.uniform(0.011, 0.024) * (1.3 - 0.5 * profile.latents.prudence)
        self._drawing = max(20_000, round(profile.turnover * living / 5_000) * 5_000)
        self._words = rng.choice(words().drawings)
        self._drawing_days = frozenset(window.weekly(profile.pay_weekday + 1))
        # On holidays, too: people sweep whenever they do their accounts.
        self._sweep_days = frozenset(window.weekdays(rng.choice((4, 4, 5, 0))))
        self._aside_days = frozenset(window.monthly(rng.randrange(4, 12)))
        self._card_days = frozenset(window.monthly(rng.randrange(12, 24)))
        self._month_ends = frozenset(window.month_ends())
        self._pays_card_in_full = not profile.distressed and rng.random() < 0.7
        self._statement_balance = 0  # cents owed on the day of the credit card's last statement
        self._accrued: dict[Role, int] = dict.fromkeys(profile.roles, 0)
        self._fees: dict[Role, int] = {"main": rng.choice((1_000, 1_000, 1_500, 2_200)), "second": 1_000}

    def follow(self, day: int, ledger: Ledger) -> None:
        """Post the movements that are due at the end of a day, and accrue the day's interest."""
        if day in self._sweep_days:
            self._sweep(day, ledger)
        if day in self._aside_days:
            self._share_profit(day, ledger)
            self._put_aside(day, ledger)
        if day in self._drawing_days:
            self._draw(day, ledger)
        if day in self._card_days:
            self._repay_card(day, ledger)
        self._accrue(ledger)
        if day in self._month_ends:
            self._close_month(day, ledger)

    def _draw(self, day: int, ledger: Ledger) -> None:
        """Pay the owner's weekly living, less when little is left."""
        left = ledger.headroom() - self._profile.turnover // 40
        cents = self._drawing if left > self._drawing else left // 10_000 * 10_000
        if cents > 0:
            reference = typed_out(ledger.rng, self._words)
            self._pay_owner(day, ledger, cents, reference, Series("drawings", "weekly"))

    def _share_profit(self, day: int, ledger: Ledger) -> None:
        """Pay the owner a part of what exceeds six tenths of a month's turnover."""
        spare = ledger.balances["main"] - self._profile.turnover * 6 // 10
        retains = self._profile.distressed or "lasting_equity" in self._profile.lookalikes
        if spare > 200_000 and not retains:
            cents = spare * 6 // 10 // 50_000 * 50_000 or 50_000
            self._pay_owner(day, ledger, cents, "Distribution", Series("distribution", "monthly"))

    def _pay_owner(self, day: int, ledger: Ledger, cents: int, reference: str, series: Series) -> None:
        ledger.post(Movement(day, -cents, "osko_out", ledger.owner, reference, "owner_drawings", series=series))

    def _put_aside(self, day: int, ledger: Ledger) -> None:
        """Move a round tenth of turnover to savings, when the trading account can spare it."""
        cents = self._profile.turnover // 10 // 50_000 * 50_000
        aside: Role = "tax" if "tax" in ledger.balances else "savings"
        if aside in ledger.balances and ledger.balances["main"] > 4 * cents:
            ledger.transfer(day, "main", aside, cents, Series("aside", "monthly"))
        if aside == "tax" and "savings" in ledger.balances and ledger.balances["main"] > 8 * cents:
            ledger.transfer(day, "main", "savings", cents, Series("saved", "monthly"))

    def _sweep(self, day: int, ledger: Ledger) -> None:
        """Move payouts from the other bank to the trading account, in whole hundreds."""
        cents = (ledger.balances.get("second", 0) - 30_000) // 10_000 * 10_000
        if cents > 0:
            ledger.transfer(day, "second", "main", cents, Series("sweep", "weekly"))

    def _repay_card(self, day: int, ledger: Ledger) -> None:
        owed = min(self._statement_balance, -ledger.balances.get("card", 0))
        cents = owed if self._pays_card_in_full else max(owed // 20, min(owed, 10_000))
        if 0 < cents <= ledger.headroom():
            ledger.transfer(day, "main", "card", cents, Series("card", "monthly"))

    def _accrue(self, ledger: Ledger) -> None:
        for role, balance in ledger.balances.items():
            rate = CREDIT_RATE[role] if balance > 0 else DEBIT_RATE[role]
            self._accrued[role] += balance * rate

    def _close_month(self, day: int, ledger: Ledger) -> None:
        """Post interest on daily balances to the cent, account fees, and the credit card's statement."""
        for role in ledger.balances:
            interest = _interest_cents(self._accrued[role])
            self._accrued[role] = 0
            if interest and not (role == "card" and self._pays_card_in_full):
                ledger.post(_interest(day, role, interest))
            if role in self._fees:
                fee = -self._fees[role]
                series = Series("account fee", "monthly")
                ledger.post(Movement(day, fee, "account_fee", NOBODY, "", "bank_fees", role, series))
        self._statement_balance = max(0, -ledger.balances.get("card", 0))


def _interest_cents(accrued: int) -> int:
    """Return cents of interest from a sum of daily cents × basis points, cut towards zero."""
    cents = abs(accrued) // (365 * 10_000)
    return cents if accrued > 0 else -cents


def _interest(day: int, role: Role, cents: int) -> Movement:
    if cents > 0:
        series = Series("interest paid", "monthly")
        return Movement(day, cents, "interest_paid", NOBODY, "", "interest_received", role, series)
    rail = "card_interest" if role == "card" else "interest_charged"
    series = Series("interest charged", "monthly")
    return Movement(day, cents, rail, NOBODY, "", "interest_charged", role, series)
