"""What happens now and then: claims, grants, machines sold, chargebacks, fines, bad cheques, money sent home.

One table of occasions, each with whom it happens to and how often a year. What recurs on fixed days is a bill
(`merchants`), what follows from the balance is the ledger's.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from pipelines.synthetic.businesses.parties import choice, met, shop
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.world.blanks import filled
from pipelines.synthetic.world.days import Window, next_business_day
from pipelines.synthetic.world.model import Movement, Party, Role, Series
from pipelines.synthetic.world.wear import spoken

DAYS_A_YEAR = 365.25


def troubled(profile: Profile) -> bool:
    return profile.distressed


def failing(profile: Profile) -> bool:
    return profile.condition == "failing"


def starting(profile: Profile) -> bool:
    return profile.condition == "start_up"


def employer(profile: Profile) -> bool:
    return bool(profile.staff)


def card_seller(profile: Profile) -> bool:
    return profile.trade.card + profile.trade.platform > 0.4


def invoicing(profile: Profile) -> bool:
    return profile.trade.invoice > 0.5


def careless(profile: Profile) -> bool:
    return profile.latents.prudence < 0.5


def holds_card(profile: Profile) -> bool:
    return "card" in profile.roles


class Occasion(NamedTuple):
    category: str
    sign: int
    rail: str
    names: tuple[str, ...]  # as in `parties`; "" is nobody
    references: tuple[str, ...]
    a_year: float
    low: int  # dollars
    high: int
    who: Callable[[Profile], bool] | None = None  # everyone
    round_to: int = 1  # cents
    role: Role = "main"


OCCASIONS = (
    Occasion(
        "insurance_payout",
        1,
        "direct_credit",
        ("QBE CLAIMS", "ALLIANZ AUST CLAIMS", "AAI LIMITED GIO", "CGU INSURANCE", "NRMA CLAIMS", "ZURICH AUST INS"),
        ("CLM {n9}", "CLAIM {n8}", "CLAIM PMT {n6}"),
        0.12,
        900,
        24_000,
    ),
    Occasion(
        "grant",
        1,
        "direct_credit",
        ("DEWR APPRENTICE", "SERVICE NSW", "BUS VICTORIA GRANT", "QRIDA", "AUSINDUSTRY", "EMDG AUSTRADE", "RAA GRANTS"),
        ("GRANT {n7}", "SB REBATE {n5}", "INCENTIVE {n6}"),
        0.12,
        500,
        15_000,
        round_to=50_000,
    ),
    Occasion(
        "grant",
        1,
        "direct_credit",
        ("BUSINESS QLD GRANT", "SBSS GRANTS"),
        ("START UP {n5}",),
        0.5,
        1_000,
        10_000,
        starting,
        50_000,
    ),
    Occasion(
        "asset_sale",
        1,
        "direct_credit",
        ("PICKLES AUCTIONS", "MANHEIM PTY LTD", "GRAYSONLINE", "SLATTERY AUCTIONS", "RITCHIE BROS AUST"),
        ("PROCEEDS LOT {n4}", "NET PROCEEDS {n5}", "SALE {n6}"),
        0.1,
        1_800,
        38_000,
    ),
    Occasion(
        "asset_sale",
        1,
        "osko_in",
        ("{person}",),
        ("sale of ute", "for the trailer", "old oven", "forklift purchase", "hilux payment"),
        0.12,
        600,
        19_000,
        round_to=10_000,
    ),
    Occasion(
        "asset_sale",
        1,
        "osko_in",
        ("{person}", "~equipment"),
        ("plant and equip", "fit out sale"),
        0.8,
        2_000,
        22_000,
        failing,
        50_000,
    ),
    Occasion(
        "owner_contribution",
        1,
        "osko_in",
        ("{owner}",),
        ("capital", "Owner funds in", "start up capital", "equity"),
        0.08,
        2_000,
        20_000,
        round_to=100_000,
    ),
    Occasion(
        "owner_contribution",
        1,
        "osko_in",
        ("{owner}",),
        ("start up capital", "Capital intro", "seed money"),
        2.5,
        5_000,
        40_000,
        starting,
        100_000,
    ),
    Occasion(
        "director_loan_in",
        1,
        "osko_in",
        ("{owner}",),
        ("Directors loan", "loan from director", "Dir loan"),
        0.15,
        2_000,
        30_000,
        round_to=50_000,
    ),
    Occasion(
        "director_loan_out",
        -1,
        "osko_out",
        ("{owner}",),
        ("Dir loan repayment", "repay directors loan", "Loan back to owner"),
        0.35,
        500,
        9_000,
        round_to=10_000,
    ),
    Occasion(
        "dividend_paid",
        -1,
        "osko_out",
        ("{owner}",),
        ("Dividend", "interim dividend", "div FY", "Final dividend"),
        0.25,
        3_000,
        26_000,
        round_to=100_000,
    ),
    Occasion(
        "reimbursement",
        -1,
        "osko_out",
        ("{person}",),
        ("Reimburse fuel", "expense claim", "reimb parts", "Reimbursement"),
        2.2,
        18,
        420,
        employer,
    ),
    Occasion(
        "related_entity",
        -1,
        "osko_out",
        ("{related}",),
        ("mgmt fee", "loan", "Intercompany", "transfer to trust", "interco"),
        2.5,
        1_000,
        14_000,
        round_to=50_000,
    ),
    Occasion(
        "related_entity",
        1,
        "osko_in",
        ("{related}",),
        ("loan", "Intercompany", "interco funding", "mgmt fee"),
        1.6,
        1_000,
        16_000,
        round_to=50_000,
    ),
    Occasion("chargeback", -1, "chargeback", ("",), ("",), 1.1, 28, 640, card_seller),
    Occasion(
        "chargeback",
        -1,
        "direct_debit",
        ("STRIPE", "TYRO PAYMENTS", "PAYPAL AUSTRALIA", "SQUARE AU PTY LTD"),
        ("CHARGEBACK {n6}", "DISPUTE {a8}"),
        0.6,
        28,
        640,
        card_seller,
    ),
    Occasion("dishonoured_receipt", -1, "cheque_dishonoured", ("",), ("",), 0.25, 320, 4_800, invoicing),
    Occasion(
        "dishonoured_receipt",
        -1,
        "direct_debit",
        ("EZIDEBIT P/L", "DEBITSUCCESS", "GOCARDLESS LTD"),
        ("FAILED PMT {n6}", "DISHONOURED {n6}"),
        0.35,
        30,
        480,
        card_seller,
    ),
    Occasion(
        "refund_received",
        1,
        "card_refund",
        ("BUNNINGS {n3}000", "OFFICEWORKS 0{n3}", "JB HI-FI {n3}", "~suppliers"),
        ("",),
        1.3,
        15,
        620,
    ),
    Occasion(
        "refund_received",
        1,
        "direct_credit",
        ("REECE PTY LTD", "AGL SALES P/L", "TELSTRA", "~suppliers"),
        ("REFUND {n6}", "CREDIT REFUND"),
        0.5,
        40,
        1_900,
    ),
    Occasion("fines", -1, "bpay", ("{fines}",), ("{n10}",), 0.5, 120, 690),
    Occasion("vehicle_registration", -1, "bpay", ("{registration}",), ("{n9}",), 0.9, 340, 1_400),
    Occasion("land_tax_and_rates", -1, "bpay", ("{council}",), ("{n9}", "RATES {n7}"), 0.7, 380, 1_700),
    Occasion("land_tax_and_rates", -1, "bpay", ("{revenue}",), ("LAND TAX {n7}",), 0.08, 900, 7_800),
    Occasion(
        "workers_compensation", -1, "bpay", ("{compensation}",), ("{n9}", "WC POLICY {n7}"), 1.6, 280, 3_400, employer
    ),
    Occasion(
        "donations",
        -1,
        "osko_out",
        ("LOCAL SURF CLUB", "STATE EMERG SVC", "~education"),
        ("donation", "sponsorship", "raffle donation"),
        0.5,
        50,
        1_000,
        round_to=5_000,
    ),
    Occasion(
        "overseas_remittance",
        -1,
        "sent_abroad",
        (
            "GUANGZHOU HUAYI CO",
            "MARIA SANTOS MANILA",
            "LEEDS TEXTILES LTD",
            "SHENZHEN BOYU TECH",
            "PT SUMBER JAYA",
            "NGUYEN THI HOA",
        ),
        ("",),
        0.5,
        600,
        14_000,
    ),
    Occasion(
        "overseas_remittance",
        -1,
        "osko_out",
        ("WISE AUSTRALIA", "OFX PAYMENTS", "REMITLY AU", "WESTERN UNION", "INSTAREM"),
        ("P{n8}", "mum", "family support", "USD INV {n4}"),
        0.8,
        300,
        7_800,
    ),
    Occasion(
        "crypto",
        -1,
        "osko_out",
        ("COINSPOT", "SWYFTX PTY LTD", "BTC MARKETS", "COINBASE AUSTRALIA", "INDEPENDENT RESERVE"),
        ("{a8}", "btc", "deposit"),
        1.6,
        100,
        4_000,
        careless,
        5_000,
    ),
    Occasion(
        "crypto",
        1,
        "osko_in",
        ("COINSPOT", "SWYFTX PTY LTD", "BTC MARKETS", "DIGITAL SURGE"),
        ("withdrawal", "AUD wdl {n6}"),
        0.5,
        200,
        4_800,
        careless,
    ),
    Occasion(
        "debt_collector",
        -1,
        "direct_debit",
        (
            "BAYCORP COLLECTN",
            "PANTHERA FINANCE",
            "CREDIT CORP SVCS",
            "PIONEER CREDIT",
            "COLLECTION HOUSE",
            "RECOVERIESCORP",
        ),
        ("{n8}", "ARRGMT {n6}"),
        3.0,
        60,
        900,
        troubled,
    ),
    Occasion(
        "late_fee",
        -1,
        "direct_debit",
        ("TELSTRA", "REECE PTY LTD", "ORIGIN ENERGY", "TOYOTA FINANCE AU"),
        ("LATE FEE {n5}", "LATE PMT FEE"),
        1.8,
        12,
        60,
        troubled,
    ),
    Occasion("late_fee", -1, "late_fee", ("",), ("",), 0.5, 15, 40, holds_card, 500, "card"),
    Occasion("overdrawn_fee", -1, "overdrawn_fee", ("",), ("",), 2.2, 10, 20, troubled, 500),
    Occasion(
        "garnishee",
        -1,
        "garnishee",
        ("ATO", "LOCAL COURT", "SHERIFFS OFFICE", "CHILD SUPPORT AGY"),
        ("{n8}", "S260-5 {n6}"),
        1.6,
        700,
        15_000,
        failing,
    ),
    Occasion("garnishee", -1, "garnishee", ("CHILD SUPPORT AGY", "LOCAL COURT"), ("{n8}",), 0.3, 200, 1_400, troubled),
    Occasion(
        "insolvency",
        -1,
        "pay_anyone",
        ("WORRELLS TRUST ACC", "SV PARTNERS", "JIRSCH SUTHERLAND", "FOX SYMES", "COR CORDIS"),
        ("SBR plan pmt", "DOCA contribution", "Part 9 {n6}"),
        2.0,
        400,
        4_800,
        failing,
        5_000,
    ),
    Occasion(
        "insolvency",
        1,
        "direct_credit",
        ("BPSL LIQUIDATION", "JIRSCH SUTHERLAND", "HAMILTON MURPHY"),
        ("FINAL DIV {n4}", "CREDITOR DIV"),
        0.04,
        90,
        2_400,
    ),
    Occasion("unknown_credit", 1, "vague_in", ("",), ("",), 1.6, 40, 4_400),
    Occasion("unknown_debit", -1, "vague_out", ("",), ("",), 1.8, 30, 3_600),
)


def occasions(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    for occasion in OCCASIONS:
        if occasion.who is None or occasion.who(profile):
            yield from _happenings(occasion, profile, window, rng)
    yield from _payroll_tax(profile, window, rng)


def _happenings(occasion: Occasion, profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    day: float = window.first
    while (day := day + rng.expovariate(occasion.a_year / DAYS_A_YEAR)) <= window.last:
        party = _party(occasion, profile, rng)
        booked = next_business_day(int(day))
        if party is None or booked not in window:
            return
        reference = filled(rng, rng.choice(occasion.references))
        if occasion.rail in _TYPED:
            reference = spoken(rng, (reference,))
        cents = _amount(occasion, rng)
        if cents:
            yield Movement(booked, cents, occasion.rail, party, reference, occasion.category, occasion.role)


_TYPED = ("osko_in", "osko_out", "pay_anyone")


def _amount(occasion: Occasion, rng: Random) -> int:
    dollars: float = occasion.low * (occasion.high / occasion.low) ** rng.random()
    step = occasion.round_to
    return occasion.sign * max(step, round(dollars * 100 / step) * step)


def _party(occasion: Occasion, profile: Profile, rng: Random) -> Party | None:
    """Whom it happens with; None when this business has nobody of the kind."""
    name = choice(rng, occasion.names, profile.part)
    if name == "{owner}":
        return Party(profile.owner, brand=profile.owner, person=True)
    if name == "{related}":
        related = rng.choice(profile.related) if profile.related else None
        return Party(related, brand=related) if related else None
    if name in _BODIES:
        return met(rng, getattr(profile.bodies, name.strip("{}")), None, "")
    if not name:
        return Party("", profile.suburbs[0]) if name == "" else None
    if occasion.rail.startswith("card"):
        party = shop(rng, name, profile.suburbs[0], profile.part)
        return party._replace(name=filled(rng, party.name))
    return met(rng, name, profile.part)


_BODIES = frozenset({"{revenue}", "{registration}", "{fines}", "{compensation}", "{council}"})


def _payroll_tax(profile: Profile, window: Window, rng: Random) -> Iterator[Movement]:
    """A state's tax on a large payroll, monthly; here from eight people on, so that the portfolio has some."""
    weekly = sum(worker.weekly for worker in profile.staff)
    if len(profile.staff) < 8:
        return
    office = met(rng, profile.bodies.revenue)
    for day in window.monthly(7):
        cents = -round(weekly / 0.81 * 52 / 12 * 0.0485 * rng.uniform(0.1, 0.35))
        reference, series = f"PAYROLL TAX {profile.abn[-8:]}", Series("payroll tax", "monthly")
        yield Movement(day, cents, "bpay", office, reference, "payroll_tax", series=series)
