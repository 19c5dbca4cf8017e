"""One business's lasting traits: who it is, whom it pays, what it owes. Drawn once, before any money moves."""

from dataclasses import dataclass, replace
from random import Random

from stdnum.au import abn as australian_business_number

from pipelines.sandbox.blanks import digits, filled
from pipelines.sandbox.merchants import (
    ADVANCES,
    AGENTS,
    AMEX,
    ASSET_FINANCE,
    BANK_TERMINAL,
    BILL_FAMILIES,
    EVERYDAY,
    PROCESSORS,
    SUPER_FUNDS,
    WAGERING,
    WATER,
    Bill,
    Lender,
    Processor,
    Spend,
    terminal,
)
from pipelines.sandbox.model import Movement, Party, Role
from pipelines.sandbox.names import STATES, SUBURBS, client_firm, person, trading_name
from pipelines.sandbox.narratives import STYLES, BankStyle
from pipelines.sandbox.trades import TRADES, Supply, Trade


@dataclass(frozen=True)
class Worker:
    name: str
    weekly: int  # net pay in cents
    casual: bool  # paid by the hour


@dataclass(frozen=True)
class Standing:
    """A bill with this business's own amount, reference and day of the month."""

    template: Movement  # its day is 0
    wobble: float
    every: int  # months
    day_of_month: int
    phase: int


@dataclass(frozen=True)
class Supplier:
    supply: Supply
    party: Party
    cents: int  # of a usual payment


@dataclass(frozen=True)
class Facility:
    """Money borrowed: drawn some way into the window (0–1), or before it."""

    lender: Lender
    cents: int
    drawn_at: float
    reference: str


@dataclass(frozen=True)
class Profile:
    abn: str
    name: str
    trade: Trade
    state: str
    suburbs: tuple[str, ...]
    owner: str
    turnover: int  # cents a usual month
    trend: float  # growth of turnover a month
    distressed: bool
    bank: BankStyle
    second_bank: BankStyle | None
    roles: tuple[Role, ...]
    overdraft: int  # cents
    card_limit: int  # cents
    opening: dict[Role, int]
    numbers: dict[Role, str]  # of the accounts
    processors: tuple[tuple[Processor, float], ...]  # with each one's share of the card takings
    customers: tuple[Party, ...]
    staff: tuple[Worker, ...]
    pay_weeks: int
    pay_weekday: int
    monthly_super: bool
    suppliers: tuple[Supplier, ...]
    spends: tuple[tuple[Spend, tuple[Party, ...]], ...]
    bills: tuple[Standing, ...]
    facilities: tuple[Facility, ...]
    super_fund: Party
    atm_a_month: float
    wagering: Party | None


def drawn(rng: Random) -> Profile:
    """A business out of nothing but `rng`. One in six is in distress: costs stay while its turnover falls."""
    trade = rng.choice(TRADES)
    state = rng.choice(STATES)
    owner = person(rng)
    turnover = round(_log_uniform(rng, *trade.turnover)) * 100
    distressed = rng.random() < 1 / 6
    roles = _roles(rng)
    bank, other = rng.sample(STYLES, 2)
    suburbs = tuple(rng.sample(SUBURBS[state], 3))
    return Profile(
        abn=_abn(rng),
        name=trading_name(rng, owner, trade.endings),
        trade=trade,
        state=state,
        suburbs=suburbs,
        owner=owner,
        turnover=turnover,
        trend=rng.uniform(-0.06, -0.025) if distressed else rng.uniform(-0.004, 0.012),
        distressed=distressed,
        bank=bank,
        second_bank=other if "second" in roles else None,
        roles=roles,
        overdraft=_overdraft(rng, turnover) if distressed or rng.random() < 0.12 else 0,
        card_limit=rng.choice((5_000, 8_000, 10_000, 15_000, 20_000)) * 100,
        opening=_opening(rng, turnover, distressed),
        numbers={role: digits(rng, (other if role == "second" else bank).account_digits) for role in roles},
        processors=_processors(rng, bank),
        customers=_customers(rng, trade),
        staff=_staff(rng, trade, turnover),
        pay_weeks=rng.choice((1, 1, 2)),
        pay_weekday=rng.choice((1, 2, 3, 3)),
        monthly_super=rng.random() < 0.35,
        suppliers=_suppliers(rng, trade, turnover, suburbs),
        spends=_spends(rng, trade, suburbs),
        bills=tuple(_bills(rng, trade, state, turnover)),
        facilities=tuple(_facilities(rng, turnover, distressed)),
        super_fund=rng.choice(SUPER_FUNDS),
        atm_a_month=rng.choice((0.0, 0.5, 1.5, 3.0)),
        wagering=terminal(rng.choice(WAGERING), "DARWIN") if rng.random() < (0.2 if distressed else 0.04) else None,
    )


def _log_uniform(rng: Random, low: float, high: float) -> float:
    ratio: float = (high / low) ** rng.random()
    return low * ratio


def _abn(rng: Random) -> str:
    body = digits(rng, 9)
    return str(australian_business_number.calc_check_digits(body)) + body


def _roles(rng: Random) -> tuple[Role, ...]:
    extra: list[Role] = [role for role in ("second", "savings", "card") if rng.random() < _CHANCE[role]]
    return ("main", *(extra or ["savings"]))


_CHANCE: dict[Role, float] = {"second": 0.35, "savings": 0.65, "card": 0.55}


def _overdraft(rng: Random, turnover: int) -> int:
    return max(500_000, round(turnover * rng.uniform(0.1, 0.3) / 500_000) * 500_000)


def _opening(rng: Random, turnover: int, distressed: bool) -> dict[Role, int]:
    share = rng.uniform(0.05, 0.2) if distressed else rng.uniform(0.3, 0.8)
    return {
        "main": round(turnover * share),
        "second": round(turnover * rng.uniform(0.01, 0.06)),
        "savings": round(turnover * rng.uniform(0.01, 0.08 if distressed else 0.7)),
        "card": -rng.randrange(20_000, 180_000),
    }


def _processors(rng: Random, bank: BankStyle) -> tuple[tuple[Processor, float], ...]:
    terminal = BANK_TERMINAL._replace(name=bank.merchant_name, merges_weekend=rng.random() < 0.3)
    usual = rng.choice((*PROCESSORS, terminal))
    if usual is terminal and rng.random() < 0.6:
        return (usual, 0.9), (AMEX, 0.1)
    return ((usual, 1.0),)


def _customers(rng: Random, trade: Trade) -> tuple[Party, ...]:
    firms = trade.invoice_size[1] > 3_000
    return tuple(
        Party(client_firm(rng) if rng.random() < firms * 0.75 else person(rng), code=digits(rng, 6)) for _ in range(24)
    )


def _staff(rng: Random, trade: Trade, turnover: int) -> tuple[Worker, ...]:
    weekly = turnover * trade.wages * 12 / 52
    heads = min(round(weekly / 92_000), 9)
    return tuple(
        Worker(person(rng), round(weekly / heads * rng.uniform(0.7, 1.3)), rng.random() < 0.5) for _ in range(heads)
    )


def _suppliers(rng: Random, trade: Trade, turnover: int, suburbs: tuple[str, ...]) -> tuple[Supplier, ...]:
    chosen = [supply for supply in trade.suppliers if rng.random() < 0.8] or list(trade.suppliers[:2])
    budget = turnover * trade.supplies
    weights = sum(supply.weight for supply in chosen)
    return tuple(
        Supplier(
            supply,
            _supplier_party(rng, supply, suburbs),
            round(budget * supply.weight / weights / supply.times),
        )
        for supply in chosen
    )


def _supplier_party(rng: Random, supply: Supply, suburbs: tuple[str, ...]) -> Party:
    local = {"suburb": suburbs[0].title(), "firm": client_firm(rng).rsplit(" ", 1)[0], "subcontractor": person(rng)}
    name = supply.name
    for blank, value in local.items():
        name = name.replace("{" + blank + "}", value)
    return terminal(name, suburbs[0]) if supply.rail.startswith("card") else Party(name, code=supply.code)


def _spends(rng: Random, trade: Trade, suburbs: tuple[str, ...]) -> tuple[tuple[Spend, tuple[Party, ...]], ...]:
    own_categories = {spend.category for spend in trade.spends}
    everyday = [spend for spend in EVERYDAY if spend.category not in own_categories and rng.random() < 0.75]
    return tuple((spend, _shops(rng, spend, suburbs)) for spend in (*trade.spends, *everyday))


def _shops(rng: Random, spend: Spend, suburbs: tuple[str, ...]) -> tuple[Party, ...]:
    """The few branches a business goes to; a web merchant's reference is left to change with every charge."""
    near = (terminal(rng.choice(spend.shops), suburb) for suburb in suburbs)
    return tuple(shop if shop.region else shop._replace(name=filled(rng, shop.name)) for shop in near)


def _bills(rng: Random, trade: Trade, state: str, turnover: int) -> list[Standing]:
    chosen = [rng.choice(family) for chance, family in BILL_FAMILIES if rng.random() < chance]
    size = min(1.4, max(0.5, turnover / 8_000_000))
    standing = [_standing(rng, bill, size if bill.wobble else 1) for bill in (*chosen, WATER[state])]
    if trade.rent[1] and rng.random() < 0.9:
        low, high = max(trade.rent[0], 900), trade.rent[1]
        rent = Bill(rng.choice(AGENTS), "pay_anyone", "RENT {a3}{n4}", "rent", low, high)
        standing.append(replace(_standing(rng, rent, size), day_of_month=1))
    if rng.random() < 0.45:
        name = rng.choice(ASSET_FINANCE)
        lease = Bill(name, "direct_debit", "{n10}", "asset_finance_repayment", 480, 1650, code=digits(rng, 6))
        standing.append(_standing(rng, lease, 1))
    if rng.random() < 0.2:
        loan = Bill("", "loan_repayment", "{n9}", "term_loan_repayment", 650, 3400)
        standing.append(_standing(rng, loan, size))
    return standing


def _standing(rng: Random, bill: Bill, size: float) -> Standing:
    name = bill.name.replace("{accountant}", f"{person(rng).split()[1]} & Co Accountants")
    cents = -round(rng.uniform(bill.low, bill.high) * size * 100)
    party = terminal(name, "SYDNEY") if bill.rail.startswith("card") else Party(name, code=bill.code)
    movement = Movement(0, cents, bill.rail, party, filled(rng, bill.reference), bill.category)
    return Standing(movement, bill.wobble, bill.every, rng.randrange(1, 29), rng.randrange(12))


def _facilities(rng: Random, turnover: int, distressed: bool) -> list[Facility]:
    """A cash advance or instalment loan for most businesses in distress, sometimes stacked; for few others."""
    count = rng.choice((0, 1, 1, 2)) if distressed else int(rng.random() < 0.15)
    return [
        Facility(
            lender,
            max(500_000, round(turnover * rng.uniform(0.3, 0.8) / 500_000) * 500_000),
            rng.uniform(-0.3, 0.7),
            filled(rng, lender.reference),
        )
        for lender in rng.sample(ADVANCES, count)
    ]
