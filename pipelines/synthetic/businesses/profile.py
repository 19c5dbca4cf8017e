"""One business's lasting traits: who it is, whom it pays, what it owes. Drawn once, before any money moves."""

from dataclasses import dataclass, replace
from random import Random

from stdnum.au import abn as australian_business_number

from pipelines.synthetic.businesses import risk
from pipelines.synthetic.businesses.borrowing import Borrowing, borrowings
from pipelines.synthetic.businesses.parties import brand, choice, met, shop
from pipelines.synthetic.businesses.trades import TRADES, Platform, Supply, Trade
from pipelines.synthetic.world.blanks import digits, filled
from pipelines.synthetic.world.brands import HELD_OUT_STYLES, allowed, available, canonical
from pipelines.synthetic.world.days import Window, month_of
from pipelines.synthetic.world.merchants import (
    AGENTS,
    AMEX,
    BANK_TERMINAL,
    BILL_FAMILIES,
    EVERYDAY,
    INCOME_FAMILIES,
    PROCESSORS,
    STATE_BODIES,
    SUPER_FUNDS,
    WAGERING,
    WATER,
    Bill,
    Processor,
    Spend,
    State,
    terminal,
)
from pipelines.synthetic.world.model import Condition, Latents, Movement, Part, Party, Role, Series
from pipelines.synthetic.world.names import STATES, SUBURBS, client_firm, payee, person, related_names, trading_name
from pipelines.synthetic.world.styles import STYLES, BankStyle

_PERIODS = {1: "monthly", 3: "quarterly", 12: "yearly"}
_WEEKS = {1: "weekly", 2: "fortnightly", 4: "four_weekly"}
LEAD_DAYS = 5  # before the window, whose takings settle in it


@dataclass(frozen=True)
class Worker:
    party: Party
    weekly: int  # net pay in cents
    casual: bool  # paid by the hour


@dataclass(frozen=True)
class RegularBill:
    """A bill (or an income) with this business's own amount, reference and day of the month."""

    template: Movement  # its day is 0
    wobble: float
    every: int  # months
    day_of_month: int
    phase: int
    weeks: int  # between payments, where it isn't months


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
    bodies: State
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

    @property
    def distressed(self) -> bool:
        return self.condition in ("distressed", "failing")

    def has_plan(self) -> bool:
        """Whether tax is paid off in instalments."""
        return any(one.lender.product == "tax_payment_plan" for one in self.borrowings)


def drawn(rng: Random, days: Window, part: Part | None) -> tuple[Profile, Window]:
    """A business out of nothing but `rng`, and the days it is seen: of a start-up only those since it began."""
    latents = risk.causes(rng)
    condition = risk.condition(rng, latents)
    if condition == "start_up":
        days = Window(days.first + round((days.last - days.first) * rng.uniform(0.05, 0.6)), days.last)
    return _profile(rng, days, part, latents, condition), days


def _profile(rng: Random, days: Window, part: Part | None, latents: Latents, condition: Condition) -> Profile:
    trade, state, owner = rng.choice(TRADES), rng.choice(STATES), person(rng)
    turnover = round(_log_uniform(rng, *trade.turnover)) * 100
    stressed = condition in ("distressed", "failing")
    roles, suburbs = _roles(rng), tuple(rng.sample(SUBURBS[state], 3))
    bank, other = rng.sample(_banks(part), 2)
    processors = _processors(rng, bank, part)
    platforms = tuple(allowed(trade.platforms, lambda platform: canonical(platform.name), part))
    name, abn = trading_name(rng, owner, trade.endings), _abn(rng)
    return Profile(
        abn=abn,
        name=name,
        trade=trade,
        state=state,
        bodies=STATE_BODIES[state],
        suburbs=suburbs,
        owner=owner,
        related=related_names(rng, owner, name, part),
        turnover=turnover,
        paces=_paces(rng, trade, latents, condition, days),
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


def _abn(rng: Random) -> str:
    body = digits(rng, 9)
    return str(australian_business_number.calc_check_digits(body)) + body


def _banks(part: Part | None) -> list[BankStyle]:
    return [style for style in STYLES if part is None or (style.name in HELD_OUT_STYLES) == (part == "test")]


def _roles(rng: Random) -> tuple[Role, ...]:
    return ("main", *(role for role, chance in _CHANCE.items() if rng.random() < chance))


_CHANCE: dict[Role, float] = {"second": 0.35, "savings": 0.65, "tax": 0.25, "card": 0.55}


def _paces(rng: Random, trade: Trade, latents: Latents, condition: Condition, days: Window) -> tuple[float, ...]:
    """Season, growth or decline, good and bad months, and what the shock takes away."""
    first, length = days.first - LEAD_DAYS, days.last - days.first + 1 + LEAD_DAYS
    decline_from = length - LEAD_DAYS - min(length * 0.8, rng.uniform(150, 400))
    trend = _trend(rng, latents, condition)
    shocked = latents.shock_at * length
    recovered = shocked + latents.shock_months * 30.4
    months = [rng.lognormvariate(-0.5 * (latents.volatility / 2) ** 2, latents.volatility / 2) for _ in range(40)]
    paces = []
    for at in range(length):
        since = max(0.0, at - decline_from) if condition in ("distressed", "failing") else at
        pace = trade.season[month_of(first + at) - 1] * (1 + trend) ** (since / 30.4) * months[at // 30 % 40]
        paces.append(pace * (1 - latents.shock if shocked <= at < recovered else 1))
    return tuple(paces)


def _trend(rng: Random, latents: Latents, condition: Condition) -> float:
    """Growth of turnover a month."""
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
    """Prudent owners keep more of a month's turnover; a start-up has next to nothing yet."""
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
    own = BANK_TERMINAL._replace(name=bank.merchant_name, merges_weekend=rng.random() < 0.3)
    offers = (*PROCESSORS, own, own, own) if bank.merchant_name else PROCESSORS
    usual = rng.choice(available(offers, lambda processor: canonical(processor.name), part))
    amex = allowed((AMEX,), lambda processor: canonical(processor.name), part)
    if usual is own and amex and rng.random() < 0.6:
        return (usual, 0.9), (AMEX, 0.1)
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
    """The stronger the business, the less of its turnover it must give to suppliers."""
    offers = allowed(trade.suppliers, lambda supply: brand(supply.name), part)
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
    return met(rng, supply.name, part, supply.code)


def _spends(
    rng: Random, trade: Trade, suburbs: tuple[str, ...], part: Part | None
) -> tuple[tuple[Spend, tuple[Party, ...]], ...]:
    own_categories = {spend.category for spend in trade.spends}
    everyday = [spend for spend in EVERYDAY if spend.category not in own_categories and rng.random() < 0.75]
    shops = ((spend, _shops(rng, spend, suburbs, part)) for spend in (*trade.spends, *everyday))
    return tuple((spend, near) for spend, near in shops if near)


def _shops(rng: Random, spend: Spend, suburbs: tuple[str, ...], part: Part | None) -> tuple[Party, ...]:
    """The few branches a business goes to; a web merchant's reference is left to change with every charge."""
    chosen = ((choice(rng, spend.shops, part), suburb) for suburb in suburbs)
    near = [shop(rng, name, suburb, part) for name, suburb in chosen if name is not None]
    return tuple(one if one.region else one._replace(name=filled(rng, one.name)) for one in near)


def _bills(rng: Random, trade: Trade, state: str, turnover: int, part: Part | None) -> list[RegularBill]:
    families = [family for chance, family in (*BILL_FAMILIES, *INCOME_FAMILIES) if rng.random() < chance]
    offers = [available(family, lambda bill: brand(bill.name), part) for family in families]
    chosen = [rng.choice(family) for family in offers if family]
    size = min(1.4, max(0.5, turnover / 8_000_000))
    bill = [_regular_bill(rng, bill, size if bill.wobble else 1, part) for bill in (*chosen, WATER[state])]
    if trade.rent[1] and rng.random() < 0.9:
        low, high = max(trade.rent[0], 900), trade.rent[1]
        agent = choice(rng, (*AGENTS, "~property", "~property", "~property"), part) or "~property"
        rent = Bill(agent, "pay_anyone", rng.choice(("RENT {a3}{n4}", "rent", "{n5}")), "rent", low, high)
        bill.append(replace(_regular_bill(rng, rent, size, part), day_of_month=1))
    return bill


def _regular_bill(rng: Random, bill: Bill, size: float, part: Part | None) -> RegularBill:
    cents = round(rng.uniform(bill.low, bill.high) * size * 100)
    by_card = bill.rail.startswith("card")
    party = shop(rng, bill.name, "SYDNEY", part) if by_card else met(rng, bill.name, part, bill.code)
    period = _WEEKS[bill.weeks] if bill.weeks else _PERIODS[bill.every]
    movement = Movement(
        0,
        cents if bill.incoming else -cents,
        bill.rail,
        party,
        filled(rng, bill.reference),
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
    fund = rng.choice(available(SUPER_FUNDS, lambda party: canonical(party.name), part))
    return fund._replace(brand=canonical(fund.name))


def _wagering(rng: Random, latents: Latents, part: Part | None) -> Party | None:
    """The less prudent the owner, the likelier bets are placed from the business account."""
    name = choice(rng, WAGERING, part)
    if name is None or rng.random() >= 0.22 * (1 - latents.prudence) ** 1.2:
        return None
    return terminal(name, "DARWIN")
