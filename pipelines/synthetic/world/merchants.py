"""Who small businesses pay, and how it prints: recurring bills, card spending, card processors, the state's bodies.

The names are those that Australian statements show, because recognising them is what the portfolio exercises; the
relations, amounts and references are invented. Amounts are dollars; `{n7}` is a random number (`blanks`), `~meals` a
made-up local firm of that kind and `{person}` somebody (`parties`).
"""

from typing import NamedTuple

from pipelines.synthetic.world.brands import canonical
from pipelines.synthetic.world.model import Party


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
    weeks: int = 0  # paid every so many weeks instead
    incoming: bool = False


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
    category: str = "card_settlement"


PROCESSORS = (
    Processor("TYRO PAYMENTS", "TYRO SETTLEMENT", 0.013, False, "439310"),
    Processor("SQUARE AU PTY LTD", "T{n1}{a12}", 0.016, True, "519311"),
    Processor("STRIPE", "STRIPE-{a10}", 0.0175, True, "507352", "platform_payout"),
    Processor("ZELLER", "ZELLER SETTLE {n4}", 0.014, False, "528881"),
    Processor("SHIFT4 PAYMENTS", "SETTLEMENT {n6}", 0.0155, False, "512004"),
    Processor("LIVE PAYMENTS", "LIVE EFTPOS {n7}", 0.0145, False, "441208"),
    Processor("SMARTPAY AUST", "SMARTPAY {n6}", 0.015, False, "490217"),
    Processor("WINDCAVE PTY LTD", "WC{n9}", 0.0165, True, "466031"),
    Processor("ADYEN AUSTRALIA", "TX{n10}XT", 0.0135, True, "533812"),
    Processor("MINT PAYMENTS", "MINT {n8}", 0.019, False, "421745"),
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
            Bill("~accountants", "pay_anyone", "INV {n4}", "professional_fees", 660, 2400, 0.25, 3),
            Bill("~accountants", "direct_debit", "EZIDEBIT {n8}", "professional_fees", 165, 495, code="342203"),
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
    (
        0.3,
        (
            Bill("~cleaning", "osko_out", "clean {n3}", "cleaning", 90, 380, weeks=1),
            Bill("~cleaning", "pay_anyone", "INV {n4}", "cleaning", 160, 520, weeks=2),
            Bill("JIMS CLEANING", "direct_debit", "{n7}", "cleaning", 120, 410, code="361187"),
            Bill("JANI-KING AUST", "direct_debit", "JK{n6}", "cleaning", 280, 900, code="409921"),
        ),
    ),
    (
        0.12,
        (
            Bill("KENNARDS STORAGE", "direct_debit", "{n7}", "storage", 140, 420, code="291044"),
            Bill("NATIONAL STORAGE", "direct_debit", "NS{n7}", "storage", 130, 460, code="387215"),
            Bill("STORAGE KING", "card", "", "storage", 120, 390),
            Bill("~storage", "pay_anyone", "unit {n2}", "storage", 110, 380),
        ),
    ),
    (
        0.14,
        (
            Bill("~strata", "bpay", "{n10}", "strata", 420, 1900, 0, 3, code="96503"),
            Bill("WHITTLES STRATA", "bpay", "{n9}", "strata", 450, 1750, 0, 3, code="74625"),
            Bill("BCS STRATA MGMT", "bpay", "{n9}", "strata", 480, 2100, 0, 3, code="96503"),
        ),
    ),
    (
        0.22,
        (
            Bill("WORLD VISION", "direct_debit", "{n8}", "donations", 48, 96, code="061117"),
            Bill("RED CROSS", "direct_debit", "{n8}", "donations", 25, 80, code="211907"),
            Bill("CANTEEN", "direct_debit", "CT{n6}", "donations", 20, 60, code="330715"),
            Bill("RSPCA", "direct_debit", "{n7}", "donations", 20, 75, code="180329"),
            Bill("FRED HOLLOWS FDN", "card", "", "donations", 25, 100),
            Bill("SALVATION ARMY", "card", "", "donations", 20, 150),
        ),
    ),
    (
        0.2,
        (
            Bill("CPA AUSTRALIA", "card", "", "education", 690, 780, 0, 12),
            Bill("MASTER BUILDERS", "direct_debit", "MB{n6}", "education", 80, 160, code="310664"),
            Bill("HIA LIMITED", "direct_debit", "{n7}", "education", 70, 140, code="318820"),
            Bill("AUST INST OF MGMT", "card", "", "education", 290, 900, 0.3, 3),
            Bill("SKILLSHARE.COM", "card_foreign", "", "education", 20, 46),
        ),
    ),
    (
        0.16,
        (
            Bill("EMPLOYSURE", "direct_debit", "ES{n7}", "professional_fees", 180, 520, code="447120"),
            Bill("~lawyers", "pay_anyone", "matter {n5}", "professional_fees", 440, 2600, 0.5, 3),
        ),
    ),
    (
        0.3,
        (
            Bill("DEPUTEC PTY LTD", "card", "", "software", 45, 190, 0.1),
            Bill("LIGHTSPEED POS", "direct_debit", "LS{n7}", "software", 99, 289, code="478210"),
            Bill("SERVICEM8", "card", "", "software", 29, 149),
            Bill("SIMPRO SOFTWARE", "direct_debit", "SIM{n6}", "software", 180, 620, code="401166"),
            Bill("TANDA", "direct_debit", "TANDA {n6}", "software", 60, 240, 0.1, code="489004"),
            Bill("DNH*GODADDY.COM", "card", "", "software", 18, 60),
            Bill("AMAZON WEB SERVICES", "card", "", "software", 30, 400, 0.2),
            Bill("SLACK T{a8}", "card_foreign", "", "software", 20, 140),
        ),
    ),
    (
        0.3,
        (
            Bill("VODAFONE AUST", "direct_debit", "{n9}", "telecommunications", 55, 190, 0.05, code="032911"),
            Bill("IINET", "direct_debit", "{n8}", "telecommunications", 75, 105, code="210447"),
            Bill("SUPERLOOP", "card", "", "telecommunications", 79, 109),
            Bill("VONEX LTD", "direct_debit", "VX{n6}", "telecommunications", 60, 210, 0.05, code="431209"),
        ),
    ),
    (
        0.25,
        (
            Bill("RED ENERGY", "bpay", "{n9}", "utilities", 240, 1300, 0.2, 3, code="29793"),
            Bill("ELGAS LTD", "direct_debit", "{n8}", "utilities", 120, 620, 0.2, code="079022"),
            Bill("POWERSHOP AUST", "direct_debit", "{n8}", "utilities", 180, 720, 0.15, code="427733"),
        ),
    ),
)
# Money that comes in regularly beside trade; few businesses have one of these.
INCOME_FAMILIES: tuple[tuple[float, tuple[Bill, ...]], ...] = (
    (
        0.07,
        (
            Bill("{person}", "osko_in", "rent", "rent_received", 340, 720, weeks=1, incoming=True),
            Bill("{person}", "direct_credit", "RENT UNIT {n1}", "rent_received", 800, 2600, incoming=True),
            Bill("~property", "direct_credit", "RENT DISB {n5}", "rent_received", 900, 3400, 0.06, incoming=True),
            Bill("LJ HOOKER RENTALS", "direct_credit", "OWN{n5}", "rent_received", 1100, 3100, 0.06, incoming=True),
        ),
    ),
    (
        0.06,
        (
            Bill(
                "WOOLWORTHS GROUP",
                "direct_credit",
                "SALARY {n6}",
                "salary_received",
                1300,
                2400,
                weeks=2,
                incoming=True,
            ),
            Bill("QLD HEALTH", "direct_credit", "{n8} PAY", "salary_received", 1500, 3100, 0.1, weeks=2, incoming=True),
            Bill(
                "DEPT OF EDUCATION", "direct_credit", "SAL {n7}", "salary_received", 1900, 3300, weeks=2, incoming=True
            ),
            Bill(
                "SERCO AUSTRALIA", "direct_credit", "WAGES {n5}", "salary_received", 1400, 2600, weeks=2, incoming=True
            ),
        ),
    ),
    (
        0.07,
        (
            Bill(
                "TELSTRA DIV", "direct_credit", "APR{n2}/00{n8}", "dividend_received", 60, 700, 0.15, 12, incoming=True
            ),
            Bill(
                "BHP GROUP DIV", "direct_credit", "AI{n3}/00{n8}", "dividend_received", 120, 900, 0.2, 12, incoming=True
            ),
            Bill(
                "WESFARMERS LTD",
                "direct_credit",
                "FIN{n2}/00{n8}",
                "dividend_received",
                90,
                800,
                0.2,
                12,
                incoming=True,
            ),
            Bill(
                "VANGUARD AUS SHARE",
                "direct_credit",
                "VAS PAYMENT {n5}",
                "dividend_received",
                80,
                900,
                0.25,
                3,
                incoming=True,
            ),
        ),
    ),
    (
        0.08,
        (
            Bill(
                "CAPRICORN SOCIETY",
                "direct_credit",
                "TRADE REBATE {n4}",
                "supplier_rebate",
                120,
                1600,
                0.4,
                3,
                incoming=True,
            ),
            Bill(
                "METCASH TRADING",
                "direct_credit",
                "VOL REBATE {n5}",
                "supplier_rebate",
                180,
                2400,
                0.4,
                3,
                incoming=True,
            ),
            Bill("~suppliers", "direct_credit", "REBATE QTR {n4}", "supplier_rebate", 90, 1400, 0.4, 3, incoming=True),
            Bill("COUNTRYWIDE REBATE", "direct_credit", "CFR{n5}", "supplier_rebate", 110, 1200, 0.4, 3, incoming=True),
        ),
    ),
)

WATER = {
    "NSW": Bill("SYDNEY WATER", "bpay", "{n10}", "utilities", 190, 640, 0.1, 3, code="45435"),
    "VIC": Bill("YARRA VALLEY WATER", "bpay", "{n11}", "utilities", 210, 700, 0.1, 3, code="344366"),
    "QLD": Bill("URBAN UTILITIES", "bpay", "{n11}", "utilities", 230, 690, 0.1, 3, code="112144"),
    "WA": Bill("WATER CORPORATION", "bpay", "{n10}", "utilities", 240, 620, 0.1, 3, code="8805"),
    "SA": Bill("SA WATER", "bpay", "{n10}", "utilities", 210, 610, 0.1, 3, code="8888"),
    "TAS": Bill("TASWATER", "bpay", "{n9}", "utilities", 260, 520, 0.1, 3, code="19745"),
    "ACT": Bill("ICON WATER", "bpay", "{n9}", "utilities", 220, 540, 0.1, 3, code="45419"),
}
AGENTS = ("RAY WHITE COMMERC", "LJ HOOKER COMMERC", "COLLIERS INTL", "KNIGHT FRANK AUST", "CBRE PTY LTD TRUST")

FUEL = Spend(
    (
        "BP EXPRESS {n4}",
        "AMPOL FOODARY {n4}",
        "7-ELEVEN {n4}",
        "SHELL REDDY EXP {n4}",
        "UNITED PETROLEUM",
        "METRO PETROLEUM",
        *("LIBERTY OIL {n3}", "PUMA ENERGY {n3}", "OTR {n3}", "EG AMPOL {n5}"),
    ),
    "fuel",
    (2, 5),
    55,
    140,
)
EVERYDAY = (
    FUEL,
    Spend(
        ("OFFICEWORKS 0{n3}", "OFFICEWORKS 0{n3}", "WINC AUSTRALIA", "~office_supplies"),
        "office_supplies",
        (0.4, 2),
        18,
        320,
    ),
    Spend(("AUSTRALIA POST {n6}", "AUSTRALIA POST {n6}", "AUST POST MYPOST"), "postage", (0.3, 2), 9, 75),
    Spend(
        ("WOOLWORTHS {n4}", "COLES {n4}", "ALDI STORES", "IGA {n4}", "COSTCO {n4}", "~groceries"),
        "groceries",
        (0.5, 3),
        12,
        160,
    ),
    Spend(("LINKT {n3}", "EASTLINK {n5}", "E-TOLL {n6}"), "tolls", (0, 1.2), 25, 60),
    Spend(("SECURE PARKING", "WILSON PARKING {a3}{n3}", "CELLOPARK", "EASYPARK", "~parking"), "parking", (0, 2), 8, 45),
    Spend(("UBER *TRIP", "DIDI RIDES", "13CABS {n5}", "OLA CABS"), "travel", (0, 2), 14, 68),
    Spend(("QANTAS AIRWAYS {n4}", "VIRGIN AUSTRALIA", "JETSTAR {a6}", "REX AIRLINES"), "travel", (0, 0.25), 180, 920),
    Spend(("IBIS HOTELS", "ACCOR HOTELS", "BOOKING.COM", "AIRBNB * {a10}", "~travel"), "travel", (0, 0.4), 120, 640),
    Spend(
        (
            "GUZMAN Y GOMEZ",
            "SUSHI HUB",
            "THE COFFEE EMPORIUM",
            "MCDONALDS {n3}",
            "KFC {n3}",
            "GRILL'D {n3}",
            "SUBWAY {n5}",
            *("HUNGRY JACKS {n3}", "ZAMBRERO", "MUFFIN BREAK", "~meals", "~meals", "~meals", "~meals"),
        ),
        "meals",
        (0.5, 4),
        9,
        64,
    ),
    Spend(("FACEBK *{a10}", "TIKTOK ADS {n6}"), "advertising", (0, 2.5), 40, 380),
    Spend(("GOOGLE*ADS{n10}", "YELLOW PAGES", "LOCALSEARCH"), "advertising", (0, 1.5), 100, 650),
    Spend(
        ("JB HI-FI {n3}", "HARVEY NORMAN AV/IT", "THE GOOD GUYS", "APPLE STORE R{n3}", "IKEA {n3}", "~equipment"),
        "equipment",
        (0, 0.25),
        90,
        1900,
    ),
    Spend(
        ("VISTAPRINT AUSTRALIA", "SNAP PRINTING {n3}", "MOO PRINT", "~printing", "~printing"),
        "printing",
        (0, 0.6),
        35,
        640,
    ),
    Spend(("SEEK LIMITED", "INDEED AU", "JORA", "~labour_hire"), "recruitment", (0, 0.25), 60, 420),
    Spend(
        ("CHEMIST WAREHOUSE {n3}", "PRICELINE PHARMACY", "TERRYWHITE CHEMMART", "SPECSAVERS", "~health"),
        "health",
        (0, 0.8),
        9,
        140,
    ),
    Spend(
        (
            "SUPERCHEAP AUTO {n4}",
            "REPCO",
            "ULTRA TUNE",
            "KMART TYRE & AUTO",
            "~vehicle_maintenance",
            "~vehicle_maintenance",
        ),
        "vehicle_maintenance",
        (0, 0.6),
        30,
        780,
    ),
    Spend(("~repairs", "~repairs", "FALLON REFRIG"), "repairs", (0, 0.5), 95, 1200),
    Spend(
        ("KENNARDS HIRE", "COATES HIRE {n4}", "TUTT BRYANT HIRE", "~equipment_hire"),
        "equipment_hire",
        (0, 0.4),
        60,
        740,
    ),
    Spend(("~waste", "CLEANAWAY SKIPS", "BINGO INDUSTRIES"), "waste", (0, 0.2), 180, 620),
    Spend(("UDEMY ONLINE COURSES", "TAFE DIGITAL", "~education"), "education", (0, 0.2), 25, 680),
)
HARDWARE = Spend(
    ("BUNNINGS {n3}000", "TOTAL TOOLS", "REECE PLUMBING {n4}", "SYDNEY TOOLS", "DAHLSENS", "~materials", "~materials"),
    "materials",
    (3, 9),
    22,
    480,
)

# Clearing houses; the code is their direct-entry user id.
SUPER_FUNDS = (
    Party("SUPERCHOICE P/L", code="342811"),
    Party("QUICKSUPER", code="317911"),
    Party("PRECISION CH", code="428114"),
    Party("AUSTRALIANSUPER", code="213909"),
    Party("SBSCH", code="281804"),
    Party("BEAM WAGES SUPER", code="441926"),
    Party("HOSTPLUS", code="229013"),
    Party("CBUS SUPER", code="171128"),
)
TAX_REFUNDS = Party("ATO", code="012721")
# Where web merchants and head offices bill from: place and state or country, by the name's first word.
HEAD_OFFICES = {
    "ADOBE": ("SYDNEY", "NSW"),
    "AIRBNB": ("SURRY HILLS", "NSW"),
    "AMAZON": ("SYDNEY", "NSW"),
    "BOOKING.COM": ("SYDNEY", "NSW"),
    "CASA*COINSPOT": ("MELBOURNE", "VIC"),
    "DEPUTEC": ("SYDNEY", "NSW"),
    "DNH*GODADDY.COM": ("SYDNEY", "NSW"),
    "EASYPARK": ("SYDNEY", "NSW"),
    "SEEK": ("CREMORNE", "VIC"),
    "SERVICEM8": ("DARWIN", "NT"),
    "SKILLSHARE.COM": ("NEW YORK", "US"),
    "SLACK": ("DUBLIN", "IE"),
    "UDEMY": ("SAN FRANCISCO", "US"),
    "VISTAPRINT": ("DERRIMUT", "VIC"),
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
WAGERING = (
    *(
        "SPORTSBET",
        "LADBROKES.COM.AU",
        "TAB LIMITED",
        "BET365",
        "POINTSBET",
        "NEDS.COM.AU",
        "UNIBET",
        "BETR",
        "BLUEBET",
    ),
    *("CROWN MELBOURNE", "THE STAR SYDNEY"),
)


class State(NamedTuple):
    """The bodies that a business in this state can't choose."""

    revenue: str  # payroll and land tax
    registration: str
    fines: str
    compensation: str
    council: str


STATE_BODIES = {
    "NSW": State("REVENUE NSW", "SERVICE NSW", "REVENUE NSW FINES", "ICARE WORKERS INS", "CITY OF PARRAMATTA"),
    "VIC": State("SRO VICTORIA", "VICROADS", "FINES VICTORIA", "WORKSAFE VICTORIA", "CITY OF YARRA"),
    "QLD": State("QLD REVENUE OFFICE", "TMR QLD REGO", "SPER QLD", "WORKCOVER QLD", "GOLD COAST COUNCIL"),
    "WA": State("REVENUEWA", "DEPT TRANSPORT WA", "FINES ENFORCE WA", "CGU WORKERS COMP", "CITY OF STIRLING"),
    "SA": State("REVENUESA", "SERVICE SA", "SA FINES UNIT", "RETURNTOWORKSA", "CITY OF UNLEY"),
    "TAS": State("SRO TASMANIA", "SERVICE TASMANIA", "MON PENALTIES TAS", "GIO WORKERS COMP", "HOBART CITY COUNCIL"),
    "ACT": State("ACT REVENUE", "ACCESS CANBERRA", "ACCESS CANBERRA", "ALLIANZ WORKERS", "ACT GOVT RATES"),
}


def terminal(name: str, suburb: str, brand: str = "") -> Party:
    """A card merchant where it bills from: its head office, or the suburb's branch."""
    start = name.split("{", maxsplit=1)[0].split(maxsplit=1)[0]
    place, region = HEAD_OFFICES.get(start, (suburb, ""))
    return Party(name, place, region, brand=brand or canonical(name))
