"""The lasting traits of a business: who it is, whom it pays, what it owes. Drawn before any money moves."""

from dataclasses import dataclass, replace
from random import Random

import msgspec
from stdnum.au import abn as australian_business_number

from pipelines.synthetic.businesses import risk
from pipelines.synthetic.businesses.borrowing import Borrowing, borrowings
from pipelines.synthetic.businesses.parties import brand, choose_name, counterparty, shop
from pipelines.synthetic.businesses.trades import Platform, Supply, Trade, trades
from pipelines.synthetic.world.blanks import digits, fill_in
from pipelines.synthetic.world.brands import available, canonical, select_allowed
from pipelines.synthetic.world.days import DAYS_PER_MONTH, Window, month_of
from pipelines.synthetic.world.merchants import (
    Bill,
    Processor,
    Spend,
    StateBodies,
    bills_by_family,
    card_merchant,
    merchants,
    water_bill,
)
from pipelines.synthetic.world.model import Condition, Latents, Lookalike, Movement, Part, Party, Role, Series
from pipelines.synthetic.world.names import (
    client_firm,
    names,
    payee,
    person,
    related_names,
    states_by_weight,
    trading_name,
)
from pipelines.synthetic.world.styles import BankStyle, bank_styles

_PERIODS = {1: "monthly", 3: "quarterly", 12: "yearly"}
_WEEKS = {1: "weekly", 2: "fortnightly", 4: "four_weekly"}
WITHHELD = 0.19  # share of gross pay that is withheld as tax
LEAD_DAYS = 5  # before the window, whose takings settle in it


@dataclass(frozen=True)
class Worker:
    party: Party
    weekly: int  # net pay in cents
    casual: bool  # paid by the hour


@dataclass(frozen=True)
class RegularBill:
    """A bill (or an income) with this business's own amount, reference and day of the month."""

    template: Movement  # on day 0
    wobble: float
    every: int  # months
    day_of_month: int
    phase: int
    weeks: int  # between payments, instead of months


@dataclass(frozen=True)
class Supplier:
    supply: Supply
    party: Party
    cents: int  # of a usual payment


@dataclass(frozen=True)
class Profile:
    abn: str
    name: str
    trade: Trade
    state: str
    bodies: StateBodies
    suburbs: tuple[str, ...]
    owner: str
    related: tuple[str, ...]
    turnover: int  # cents a usual month
    paces: tuple[float, ...]  # turnover of each day against a usual one, from LEAD_DAYS before the window
    latents: Latents
    condition: Condition
    part: Part | None
    bank: BankStyle
    second_bank: BankStyle | None
    roles: tuple[Role, ...]
    not_supplied: Role | None  # an account that the lender never gets to see
    overdraft: int  # cents
    card_limit: int  # cents
    opening: dict[Role, int]
    numbers: dict[Role, str]  # of the accounts
    processors: tuple[tuple[Processor, float], ...]  # with each one's share of the card takings
    platforms: tuple[Platform, ...]
    customers: tuple[Party, ...]
    staff: tuple[Worker, ...]
    pay_weeks: int
    pay_weekday: int
    monthly_super: bool
    suppliers: tuple[Supplier, ...]
    spends: tuple[tuple[Spend, tuple[Party, ...]], ...]
    bills: tuple[RegularBill, ...]
    borrowings: tuple[Borrowing, ...]
    super_fund: Party
    atm_a_month: float
    wagering: Party | None
    stream: str = ""  # seed of what `circumstances` draws, which fills in this field and all below
    applied_on: int = 0
    quiet: bool = False  # its trouble leaves no adverse rows
    lookalikes: frozenset[Lookalike] = frozenset()  # that it is disposed to; money or days may not allow them

    @property
    def distressed(self) -> bool:
        return self.condition in ("distressed", "failing")

    @property
    def weekly_gross(self) -> float:
        """Gross pay of all staff for a week, in cents."""
        return sum(worker.weekly for worker in self.staff) / (1 - WITHHELD)

    def has_plan(self) -> bool:
        """Return whether tax is paid off in instalments."""
        return any(borrowing.lender.product == "tax_payment_plan" for borrowing in self.borrowings)


def draw_profile(rng: Random, days: Window, part: Part | None) -> tuple[Profile, Window]:
    """Draw a business and the days that it is seen. A start-up is seen only since it began."""
    latents = risk.draw_causes(rng)
    condition = risk.draw_condition(rng, latents)
    if condition == "start_up":
        days = Window(days.first + round((days.last - days.first) * rng.uniform(0.05, 0.6)), days.last)
    return profile_of(rng, days, part, latents, condition), days


def profile_of(
    rng: Random, days: Window, part: Part | None, latents: Latents, condition: Condition, ahead: int = 0
) -> Profile:
    """Draw a business with these causes.

    Args:
        ahead: days after the window for which the pace of trade is drawn, too.
    """
    trade, state, owner = rng.choice(trades()), rng.choice(states_by_weight()), person(rng)
    turnover = round(_log_uniform(rng, *trade.turnover)) * 100
    stressed = condition in ("distressed", "failing")
    roles, suburbs = _roles(rng), tuple(rng.sample(names().suburbs[state], 3))
    bank, other = rng.sample(usable_banks(part), 2)
    processors = _processors(rng, bank, part)
    platforms = tuple(select_allowed(trade.platforms, lambda platform: canonical(platform.name), part))
    name, abn = trading_name(rng, owner, trade.endings), make_abn(rng)
    return Profile(
        abn=abn,
        name=name,
        trade=trade,
        state=state,
        bodies=merchants().state_bodies[state],
        suburbs=suburbs,
        owner=owner,
        related=related_names(rng, owner, name, part),
        turnover=turnover,
        paces=_paces(rng, trade, latents, condition, days, ahead),
        latents=latents,
        condition=condition,
        part=part,
        bank=bank,
        second_bank=other if "second" in roles else None,
        roles=roles,
        not_supplied=rng.choice(roles[1:]) if len(roles) > 1 and rng.random() < 0.12 else None,
        overdraft=_overdraft(rng, turnover) if rng.random() < (0.6 if stressed else 0.12) else 0,
        card_limit=rng.choice((5_000, 8_000, 10_000, 15_000, 20_000)) * 100,
        opening=_opening(rng, turnover, latents, condition),
        numbers={role: digits(rng, (other if role == "second" else bank).account_digits) for role in roles},
        processors=processors,
        platforms=platforms,
        customers=_customers(rng, trade, part),
        staff=_staff(rng, trade, turnover),
        pay_weeks=rng.choice((1, 1, 2)),
        pay_weekday=rng.choice((1, 2, 3, 3)),
        monthly_super=rng.random() < 0.35,
        suppliers=_suppliers(rng, trade, turnover, latents, suburbs, part),
        spends=_spends(rng, trade, suburbs, part),
        bills=tuple(_bills(rng, trade, state, turnover, part)),
        borrowings=_borrowings(rng, turnover, latents, condition, days, processors, platforms, trade, abn, part),
        super_fund=_super_fund(rng, part),
        atm_a_month=rng.choice((0.0, 0.5, 1.5, 3.0)),
        wagering=_wagering(rng, latents, part),
    )


def _log_uniform(rng: Random, low: float, high: float) -> float:
    ratio: float = (high / low) ** rng.random()
    return low * ratio


def make_abn(rng: Random) -> str:
    """Return a random ABN with valid check digits."""
    body = digits(rng, 9)
    return str(australian_business_number.calc_check_digits(body)) + body


def usable_banks(part: Part | None) -> list[BankStyle]:
    """Return the banks that customers of a part of the portfolio may have."""
    return [style for style in bank_styles() if part is None or style.held_out == (part == "test")]


def _roles(rng: Random) -> tuple[Role, ...]:
    return ("main", *(role for role, chance in _CHANCE.items() if rng.random() < chance))


_CHANCE: dict[Role, float] = {"second": 0.35, "savings": 0.65, "tax": 0.25, "card": 0.55}


def _paces(
    rng: Random, trade: Trade, latents: Latents, condition: Condition, days: Window, ahead: int
) -> tuple[float, ...]:
    """Return each day's turnover against a usual one: season, trend, good and bad months, and the shock."""
    first, length = days.first - LEAD_DAYS, days.last - days.first + 1 + LEAD_DAYS
    decline_from = length - LEAD_DAYS - min(length * 0.8, rng.uniform(150, 400))
    trend = _trend(rng, latents, condition)
    shocked = latents.shock_at * length
    recovered = shocked + latents.shock_months * DAYS_PER_MONTH
    months = [rng.lognormvariate(-0.5 * (latents.volatility / 2) ** 2, latents.volatility / 2) for _ in range(40)]
    paces = []
    for at in range(length + ahead):
        since = max(0.0, at - decline_from) if condition in ("distressed", "failing") else at
        pace = trade.season[month_of(first + at) - 1] * (1 + trend) ** (since / DAYS_PER_MONTH) * months[at // 30 % 40]
        paces.append(pace * (1 - latents.shock if shocked <= at < recovered else 1))
    return tuple(paces)


def _trend(rng: Random, latents: Latents, condition: Condition) -> float:
    """Return the growth of turnover a month."""
    if condition == "failing":
        return rng.uniform(-0.13, -0.07)
    if condition == "distressed":
        return rng.uniform(-0.06, -0.025)
    if condition == "start_up":
        return rng.uniform(0.01, 0.06)
    return min(0.014, max(-0.012, 0.003 + 0.004 * latents.strength + rng.gauss(0, 0.003)))


def _overdraft(rng: Random, turnover: int) -> int:
    return max(500_000, round(turnover * rng.uniform(0.1, 0.3) / 500_000) * 500_000)


def _opening(rng: Random, turnover: int, latents: Latents, condition: Condition) -> dict[Role, int]:
    """Return opening balances. Prudent owners keep more of a month's turnover; a start-up has almost nothing yet."""
    share = (0.1 + 0.9 * latents.prudence) * rng.uniform(0.5, 1.1)
    share *= {"distressed": 0.35, "failing": 0.2, "start_up": 0.05, "sound": 1.0}[condition]
    return {
        "main": round(turnover * share),
        "second": round(turnover * rng.uniform(0.01, 0.06)),
        "savings": round(turnover * share * rng.uniform(0.05, 1.0)),
        "tax": round(turnover * 0.1 * share),
        "card": -rng.randrange(20_000, 180_000),
    }


def _processors(rng: Random, bank: BankStyle, part: Part | None) -> tuple[tuple[Processor, float], ...]:
    """Return who settles the card takings, with shares. The bank's own terminals are likelier than any one other."""
    known = merchants()
    own = msgspec.structs.replace(known.bank_terminal, name=bank.merchant_name, merges_weekend=rng.random() < 0.3)
    offers = (*known.processors, own, own, own) if bank.merchant_name else known.processors
    usual = rng.choice(available(offers, lambda processor: canonical(processor.name), part))
    amex = select_allowed((known.amex,), lambda processor: canonical(processor.name), part)
    if usual is own and amex and rng.random() < 0.6:
        return (usual, 0.9), (known.amex, 0.1)
    return ((usual, 1.0),)


def _customers(rng: Random, trade: Trade, part: Part | None) -> tuple[Party, ...]:
    firms = trade.invoice_size[1] > 3_000
    return tuple(_customer(rng, firms * 0.75, part) for _ in range(24))


def _customer(rng: Random, firms: float, part: Part | None) -> Party:
    code = digits(rng, 6)
    if rng.random() >= firms:
        return payee(rng, code)
    name = client_firm(rng, part)
    return Party(name if rng.random() < 0.7 else f"{name} Pty Ltd", code=code, brand=name)


def _staff(rng: Random, trade: Trade, turnover: int) -> tuple[Worker, ...]:
    weekly = turnover * trade.wages * 12 / 52
    heads = min(round(weekly / 92_000), 9)
    return tuple(
        Worker(payee(rng), round(weekly / heads * rng.uniform(0.7, 1.3)), rng.random() < 0.5) for _ in range(heads)
    )


def _suppliers(
    rng: Random, trade: Trade, turnover: int, latents: Latents, suburbs: tuple[str, ...], part: Part | None
) -> tuple[Supplier, ...]:
    """Choose suppliers. The stronger the business, the less of its turnover it spends on them."""
    offers = select_allowed(trade.suppliers, lambda supply: brand(supply.name), part)
    chosen = [supply for supply in offers if rng.random() < 0.8] or list(offers[:2])
    margin = min(1.25, max(0.8, 1 - 0.07 * latents.strength))
    weights = sum(supply.weight for supply in chosen)
    return tuple(
        Supplier(
            supply,
            _supplier_party(rng, supply, suburbs, part),
            round(turnover * trade.supplies * margin * supply.weight / weights / supply.times),
        )
        for supply in chosen
    )


def _supplier_party(rng: Random, supply: Supply, suburbs: tuple[str, ...], part: Part | None) -> Party:
    if supply.rail.startswith("card"):
        return shop(rng, supply.name, suburbs[0], part)
    return counterparty(rng, supply.name, part, supply.code)


def _spends(
    rng: Random, trade: Trade, suburbs: tuple[str, ...], part: Part | None
) -> tuple[tuple[Spend, tuple[Party, ...]], ...]:
    own = trade.every_spend()
    own_categories = {spend.category for spend in own}
    usual = (merchants().shared_spends["fuel"], *merchants().everyday_spends)
    everyday = [spend for spend in usual if spend.category not in own_categories and rng.random() < 0.75]
    shops = ((spend, _shops(rng, spend, suburbs, part)) for spend in (*own, *everyday))
    return tuple((spend, near) for spend, near in shops if near)


def _shops(rng: Random, spend: Spend, suburbs: tuple[str, ...], part: Part | None) -> tuple[Party, ...]:
    """Return the few branches that a business goes to. A web merchant's reference changes with every charge."""
    chosen = ((choose_name(rng, spend.shops, part), suburb) for suburb in suburbs)
    near = [shop(rng, name, suburb, part) for name, suburb in chosen if name is not None]
    return tuple(party if party.region else party._replace(name=fill_in(rng, party.name)) for party in near)


def _bills(rng: Random, trade: Trade, state: str, turnover: int, part: Part | None) -> list[RegularBill]:
    known = bills_by_family()
    families = [known[family] for family, chance in merchants().bill_families.items() if rng.random() < chance]
    offers = [available(family, lambda bill: brand(bill.name), part) for family in families]
    chosen = [rng.choice(family) for family in offers if family]
    size = min(1.4, max(0.5, turnover / 8_000_000))
    bills = [_regular_bill(rng, bill, size if bill.wobble else 1, part) for bill in (*chosen, water_bill(state))]
    if trade.rent[1] and rng.random() < 0.9:
        low, high = max(trade.rent[0], 900), trade.rent[1]
        agent = choose_name(rng, (*merchants().agents, "~property", "~property", "~property"), part) or "~property"
        reference = rng.choice(("RENT {a3}{n4}", "rent", "{n5}"))
        rent = Bill(name=agent, rail="pay_anyone", reference=reference, category="rent", low=low, high=high)
        bills.append(replace(_regular_bill(rng, rent, size, part), day_of_month=1))
    return bills


def _regular_bill(rng: Random, bill: Bill, size: float, part: Part | None) -> RegularBill:
    cents = round(rng.uniform(bill.low, bill.high) * size * 100)
    by_card = bill.rail.startswith("card")
    party = shop(rng, bill.name, "SYDNEY", part) if by_card else counterparty(rng, bill.name, part, bill.code)
    period = _WEEKS[bill.weeks] if bill.weeks else _PERIODS[bill.every]
    movement = Movement(
        0,
        cents if bill.incoming else -cents,
        bill.rail,
        party,
        fill_in(rng, bill.reference),
        bill.category,
        series=Series(f"{bill.category} {party.name}", period),
    )
    return RegularBill(movement, bill.wobble, bill.every, rng.randrange(1, 29), rng.randrange(12), bill.weeks)


def _borrowings(
    rng: Random,
    turnover: int,
    latents: Latents,
    condition: Condition,
    days: Window,
    processors: tuple[tuple[Processor, float], ...],
    platforms: tuple[Platform, ...],
    trade: Trade,
    abn: str,
    part: Part | None,
) -> tuple[Borrowing, ...]:
    settled_by = [canonical(processor.name) for processor, _ in processors if trade.card > 0.3]
    settled_by += [canonical(platform.name) for platform in platforms]
    invoices = trade.invoice > 0.5
    return tuple(borrowings(rng, turnover, latents.leverage, condition, days, tuple(settled_by), invoices, abn, part))


def _super_fund(rng: Random, part: Part | None) -> Party:
    fund = rng.choice(available(merchants().super_funds, lambda fund: canonical(fund.name), part))
    return fund.party(canonical(fund.name))


def _wagering(rng: Random, latents: Latents, part: Part | None) -> Party | None:
    """Return where the owner bets from the business account, or None. The less prudent bet more often."""
    name = choose_name(rng, merchants().wagering, part)
    if name is None or rng.random() >= 0.22 * (1 - latents.prudence) ** 1.2:
        return None
    return card_merchant(name, "DARWIN")
