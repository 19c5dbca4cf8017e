"""Who small businesses pay, and how it prints: recurring bills, card spending, lenders, card processors.

The names are those that Australian statements show, because recognising them is what the book exercises; the
relations, amounts and references are invented. Amounts are dollars; `{n7}` is a random number (`blanks`).
"""

from typing import NamedTuple

from pipelines.sandbox.model import Party


class Bill(NamedTuple):
    """A recurring payment whose amount is chosen once and then wobbles by a few per cent."""

    name: str
    rail: str
    reference: str
    category: str
    low: int
    high: int
    wobble: float = 0.0
    every: int = 1  # months
    code: str = ""


class Spend(NamedTuple):
    """Irregular purchases by card, at a few shops near the business or from web merchants (`HEAD_OFFICES`)."""

    shops: tuple[str, ...]
    category: str
    a_month: tuple[float, float]
    low: int
    high: int


class Processor(NamedTuple):
    """Who settles card takings, in what wording and for which fee."""

    name: str
    reference: str
    fee: float  # share of the takings kept back
    merges_weekend: bool
    code: str = ""


class Lender(NamedTuple):
    name: str
    reference: str
    rail: str
    funding: str  # category of the money coming in
    repayment: str  # category of the money going back
    factor: float  # repaid over lent
    payments: int
    cadence: str  # daily (business days) or weekly
    code: str


PROCESSORS = (
    Processor("TYRO PAYMENTS", "TYRO SETTLEMENT", 0.013, False, "439310"),
    Processor("SQUARE AU PTY LTD", "T{n1}{a12}", 0.016, True, "519311"),
    Processor("STRIPE", "STRIPE-{a10}", 0.0175, True, "507352"),
    Processor("ZELLER", "ZELLER SETTLE {n4}", 0.014, False, "528881"),
)
AMEX = Processor("AMERICAN EXPRESS", "AMEX SETTL 98{n8}", 0.018, True, "219120")
BANK_TERMINAL = Processor("", "MERCH {n8}", 0.0, False)  # gross: the bank bills the fee each month

# One bill is drawn from each family (none when the draw says so): family, chance of having one.
BILL_FAMILIES: tuple[tuple[float, tuple[Bill, ...]], ...] = (
    (
        0.9,
        (
            Bill("TELSTRA", "direct_debit", "{n10}", "telecommunications", 79, 320, 0.06, code="000605"),
            Bill("OPTUS BILLING", "direct_debit", "{n9}", "telecommunications", 65, 240, 0.05, code="036123"),
            Bill("TPG INTERNET", "direct_debit", "{n8}", "telecommunications", 70, 110, code="160344"),
            Bill("AUSSIE BROADBAND", "direct_debit", "ABB{n7}", "telecommunications", 79, 129, code="419187"),
        ),
    ),
    (
        0.85,
        (
            Bill("AGL SALES P/L", "direct_debit", "{n10}", "utilities", 280, 1900, 0.2, 1, code="040404"),
            Bill("ORIGIN ENERGY", "bpay", "{n10}", "utilities", 320, 2400, 0.2, 3, code="130112"),
            Bill("ENERGYAUSTRALIA", "bpay", "{n10}", "utilities", 300, 2200, 0.2, 3, code="93377"),
            Bill("ALINTA ENERGY", "direct_debit", "{n9}", "utilities", 260, 1600, 0.15, 1, code="218830"),
        ),
    ),
    (
        0.9,
        (
            Bill("QBE INSURANCE", "direct_debit", "{n9}BPK", "insurance", 110, 620, code="000876"),
            Bill("ALLIANZ INS", "direct_debit", "{n2}-{n7}", "insurance", 95, 540, code="002105"),
            Bill("BIZCOVER PTY LTD", "direct_debit", "BC{n8}", "insurance", 60, 380, code="491823"),
            Bill("CGU INSURANCE", "direct_debit", "{n2}T{n7}", "insurance", 120, 700, code="023113"),
            Bill("IQUMULATE PF", "direct_debit", "{n7}", "insurance", 210, 1150, code="402861"),
        ),
    ),
    (
        0.9,
        (
            Bill("XERO AUSTRALIA PTY LTD", "card", "", "software", 62, 115),
            Bill("INTUIT QBOOKS ONLINE", "card", "", "software", 40, 80),
            Bill("MYOB AUSTRALIA", "direct_debit", "{n9}", "software", 55, 140, code="148112"),
        ),
    ),
    (
        0.5,
        (
            Bill("MSFT * E0400{a6}", "card", "", "software", 22, 190),
            Bill("GOOGLE *WORKSPACE", "card", "", "software", 25, 170),
        ),
    ),
    (
        0.35,
        (
            Bill("ADOBE *ACROPRO SUBS", "card", "", "software", 24, 82),
            Bill("CANVA* I0{n4}-{n8}", "card", "", "software", 18, 40),
            Bill("DROPBOX*{a10}", "card_foreign", "", "software", 19, 60),
            Bill("OPENAI *CHATGPT SUBSCR", "card_foreign", "", "software", 31, 64),
        ),
    ),
    (
        0.5,
        (
            Bill("CLEANAWAY OPERATIO", "direct_debit", "{n8}", "waste", 85, 460, 0.05, code="370014"),
            Bill("VEOLIA ENVIRONMENT", "direct_debit", "{n7}", "waste", 80, 420, 0.05, code="252121"),
        ),
    ),
    (
        0.6,
        (
            Bill("{accountant}", "pay_anyone", "INV {n4}", "professional_fees", 660, 2400, 0.25, 3),
            Bill("{accountant}", "direct_debit", "EZIDEBIT {n8}", "professional_fees", 165, 495, code="342203"),
        ),
    ),
    (
        0.35,
        (
            Bill("ADT SECURITY", "direct_debit", "{n8}", "security", 45, 110, code="182041"),
            Bill("WILSON SECURITY", "direct_debit", "WS{n6}", "security", 60, 180, code="219044"),
        ),
    ),
    (0.5, (Bill("ASIC", "bpay", "229{n10}", "government_fees", 310, 329, 0, 12, code="17301"),)),
)

WATER = {
    "NSW": Bill("SYDNEY WATER", "bpay", "{n10}", "utilities", 190, 640, 0.1, 3, code="45435"),
    "VIC": Bill("YARRA VALLEY WATER", "bpay", "{n11}", "utilities", 210, 700, 0.1, 3, code="344366"),
    "QLD": Bill("URBAN UTILITIES", "bpay", "{n11}", "utilities", 230, 690, 0.1, 3, code="112144"),
    "WA": Bill("WATER CORPORATION", "bpay", "{n10}", "utilities", 240, 620, 0.1, 2, code="8805"),
    "SA": Bill("SA WATER", "bpay", "{n10}", "utilities", 210, 610, 0.1, 3, code="8888"),
    "TAS": Bill("TASWATER", "bpay", "{n9}", "utilities", 260, 520, 0.1, 3, code="19745"),
    "ACT": Bill("ICON WATER", "bpay", "{n9}", "utilities", 220, 540, 0.1, 3, code="45419"),
}
AGENTS = ("RAY WHITE COMMERC", "LJ HOOKER COMMERC", "COLLIERS INTL", "KNIGHT FRANK AUST", "CBRE PTY LTD TRUST")

FUEL = Spend(
    ("BP EXPRESS {n4}", "AMPOL FOODARY {n4}", "7-ELEVEN {n4}", "SHELL REDDY EXP {n4}"), "fuel", (2, 5), 55, 140
)
EVERYDAY = (
    FUEL,
    Spend(("OFFICEWORKS 0{n3}",), "office_supplies", (0.4, 2), 18, 320),
    Spend(("AUSTRALIA POST {n6}",), "postage", (0.3, 2), 9, 75),
    Spend(("WOOLWORTHS {n4}", "COLES {n4}", "ALDI STORES"), "groceries", (0.5, 3), 12, 160),
    Spend(("LINKT {n3}",), "tolls", (0, 1.2), 25, 60),
    Spend(("SECURE PARKING", "WILSON PARKING {a3}{n3}"), "parking", (0, 2), 8, 45),
    Spend(("UBER *TRIP",), "travel", (0, 2), 14, 68),
    Spend(("QANTAS AIRWAYS {n4}", "VIRGIN AUSTRALIA"), "travel", (0, 0.25), 180, 920),
    Spend(("GUZMAN Y GOMEZ", "SUSHI HUB", "THE COFFEE EMPORIUM"), "meals", (0.5, 4), 9, 64),
    Spend(("FACEBK *{a10}",), "advertising", (0, 2.5), 40, 380),
    Spend(("GOOGLE*ADS{n10}",), "advertising", (0, 1.5), 100, 650),
    Spend(("JB HI-FI {n3}", "HARVEY NORMAN AV/IT"), "equipment", (0, 0.25), 90, 1900),
)
HARDWARE = Spend(("BUNNINGS {n3}000", "TOTAL TOOLS", "REECE PLUMBING {n4}"), "materials", (3, 9), 22, 480)

ADVANCES = (
    Lender(
        "BIZCAP AU PTY LTD",
        "BC{n6}",
        "direct_debit",
        "cash_advance_funding",
        "cash_advance_repayment",
        1.32,
        110,
        "daily",
        "513044",
    ),
    Lender(
        "PROSPA ADVANCE",
        "PRO{n8}",
        "direct_debit",
        "cash_advance_funding",
        "cash_advance_repayment",
        1.24,
        250,
        "daily",
        "471833",
    ),
    Lender(
        "CAPIFY AUSTRALIA",
        "CPFY{n6}",
        "direct_debit",
        "cash_advance_funding",
        "cash_advance_repayment",
        1.29,
        170,
        "daily",
        "408127",
    ),
    Lender(
        "LUMI FINANCE",
        "LUMI{n7}",
        "direct_debit",
        "term_loan_funding",
        "term_loan_repayment",
        1.19,
        52,
        "weekly",
        "529903",
    ),
    Lender(
        "MOULA MONEY",
        "ML{n7}",
        "direct_debit",
        "term_loan_funding",
        "term_loan_repayment",
        1.17,
        52,
        "weekly",
        "481266",
    ),
)
ASSET_FINANCE = (
    "TOYOTA FINANCE AU",
    "MACQUARIE LEASING",
    "METRO FINANCE",
    "NISSAN FINANCIAL",
    "VOLKSWAGEN FIN SE",
    "PEPPER ASSET FIN",
)
# Clearing houses; the code is their direct-entry user id.
SUPER_FUNDS = (
    Party("SUPERCHOICE P/L", code="342811"),
    Party("QUICKSUPER", code="317911"),
    Party("PRECISION CH", code="428114"),
    Party("AUSTRALIANSUPER", code="213909"),
)
TAX_OFFICE = Party("TAX OFFICE PAYMENTS", code="75556")
TAX_REFUNDS = Party("ATO", code="012721")
# Where web merchants and head offices bill from: place and state or country, by the name's first word.
HEAD_OFFICES = {
    "ADOBE": ("SYDNEY", "NSW"),
    "ALIBABA.COM": ("SINGAPORE", "SG"),
    "BET365": ("DARWIN", "NT"),
    "CANVA*": ("SURRY HILLS", "NSW"),
    "CLINIKO": ("MELBOURNE", "VIC"),
    "DROPBOX*": ("DB.TT/CCHELP", "IE"),
    "FACEBK": ("SYDNEY", "NSW"),
    "GOOGLE": ("SYDNEY", "NSW"),
    "GOOGLE*ADS": ("SYDNEY", "NSW"),
    "HIPAGES": ("SYDNEY", "NSW"),
    "INTUIT": ("SYDNEY", "NSW"),
    "KLAVIYO": ("BOSTON", "US"),
    "LADBROKES.COM.AU": ("BRISBANE", "QLD"),
    "LINKEDIN": ("SYDNEY", "NSW"),
    "LINKT": ("MELBOURNE", "VIC"),
    "MAILCHIMP": ("ATLANTA", "US"),
    "MSFT": ("SYDNEY", "NSW"),
    "OPENAI": ("SAN FRANCISCO", "US"),
    "QANTAS": ("MASCOT", "NSW"),
    "SENDLE": ("SYDNEY", "NSW"),
    "SHOPIFY*": ("SINGAPORE", "SG"),
    "SPORTSBET": ("MELBOURNE", "VIC"),
    "TAB": ("SYDNEY", "NSW"),
    "UBER": ("SYDNEY", "NSW"),
    "UPWORK": ("SAN FRANCISCO", "US"),
    "VIRGIN": ("SOUTH BRISBANE", "QLD"),
    "XERO": ("HAWTHORN", "VIC"),
    "ZOOM.US": ("SAN JOSE", "US"),
}
FOREIGN = frozenset({"IE", "SG", "US"})  # whose charges are in US dollars
WAGERING = ("SPORTSBET", "LADBROKES.COM.AU", "TAB LIMITED", "BET365")


def terminal(name: str, suburb: str) -> Party:
    """A card merchant where it bills from: its head office, or the suburb's branch."""
    start = name.split("{", maxsplit=1)[0].split(maxsplit=1)[0]
    place, region = HEAD_OFFICES.get(start, (suburb, ""))
    return Party(name, place, region)
