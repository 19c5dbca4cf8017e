"""The trades of the book: how each earns, when, and what it spends. Shares are of monthly turnover incl. GST."""

from dataclasses import dataclass
from typing import NamedTuple

from pipelines.sandbox.merchants import FUEL, HARDWARE, Spend


class Platform(NamedTuple):
    """A marketplace or payment platform that pays out what customers paid it, less its cut."""

    name: str
    reference: str
    weekday: int
    category: str = "platform_payout"
    code: str = ""


class Supply(NamedTuple):
    """A regular supplier: its weight among the trade's suppliers and how often it is paid a month."""

    name: str  # `{suburb}` becomes a local name
    rail: str
    reference: str
    weight: float
    times: float
    category: str = "suppliers"
    code: str = ""


@dataclass(frozen=True)
class Trade:
    slug: str
    endings: tuple[str, ...]  # of trading names
    turnover: tuple[int, int]  # dollars a month
    weekdays: tuple[float, ...]  # weight of Monday … Sunday in takings
    season: tuple[float, ...]  # factor of January … December
    card: float  # share of turnover taken by card
    cash: float  # banked in cash
    platform: float
    invoice: float
    invoice_size: tuple[int, int]  # dollars
    supplies: float  # share of turnover spent on suppliers
    suppliers: tuple[Supply, ...]
    platforms: tuple[Platform, ...]
    wages: float  # share of turnover paid net to staff
    rent: tuple[int, int]  # dollars a month; (0, 0) works from home
    taxed: float  # GST collected less GST paid, as a share of turnover
    spends: tuple[Spend, ...] = ()


_RETAIL_YEAR = (0.93, 0.86, 0.93, 0.95, 0.98, 0.98, 0.95, 0.94, 0.97, 1.02, 1.14, 1.35)
_OFFICE_YEAR = (0.68, 0.98, 1.05, 0.95, 1.05, 1.2, 0.97, 1.0, 1.02, 1.04, 1.06, 1.0)
_BUILDING_YEAR = (0.62, 1.0, 1.06, 0.95, 1.04, 1.06, 1.0, 1.03, 1.04, 1.06, 1.1, 1.04)
_OPEN_DAILY = (0.1, 0.11, 0.13, 0.14, 0.18, 0.2, 0.14)
_WEEKDAYS = (0.2, 0.2, 0.2, 0.2, 0.2, 0.0, 0.0)

CAFE = Trade(
    "cafe",
    ("Espresso", "Cafe", "Coffee House", "Kitchen", "Bakehouse"),
    (32_000, 95_000),
    (0.11, 0.12, 0.13, 0.14, 0.15, 0.2, 0.15),
    (0.92, 0.98, 1.0, 1.0, 1.0, 0.98, 0.97, 1.0, 1.02, 1.04, 1.05, 1.04),
    card=0.82,
    cash=0.06,
    platform=0.1,
    invoice=0.02,
    invoice_size=(120, 900),
    supplies=0.36,
    suppliers=(
        Supply("BIDFOOD AUSTRALIA", "direct_debit", "{n7}", 3, 4.3, code="182512"),
        Supply("PFD FOOD SERVICES", "direct_debit", "PFD{n6}", 2.5, 4.3, code="063519"),
        Supply("CAMPOS COFFEE", "pay_anyone", "INV {n6}", 2, 2.1),
        Supply("{suburb} Fruit Barn", "osko_out", "Inv {n4}", 2, 6),
        Supply("Bakers Delight {suburb}", "osko_out", "bread {n3}", 1, 4.3),
        Supply("LION DAIRY DRINKS", "direct_debit", "{n8}", 1, 4.3, code="301923"),
        Supply("BIOPAK PTY LTD", "pay_anyone", "SI-{n6}", 0.6, 1),
    ),
    platforms=(
        Platform("UBER BV", "UBER EATS {a6}", 1, code="513275"),
        Platform("DOORDASH TECH", "DOORDASH {n7}", 3, code="531807"),
        Platform("MENULOG PTY LTD", "MENULOG {n6}", 2, code="342019"),
    ),
    wages=0.26,
    rent=(2_900, 7_500),
    taxed=0.055,
    spends=(Spend(("WOOLWORTHS {n4}", "COLES {n4}", "ALDI STORES"), "suppliers", (3, 9), 14, 190),),
)
PLUMBER = Trade(
    "plumber",
    ("Plumbing", "Plumbing & Gas", "Electrical", "Electrical Services", "Air & Electrical"),
    (26_000, 110_000),
    _WEEKDAYS,
    (0.82, 1.0, 1.03, 0.97, 1.04, 1.06, 1.05, 1.02, 1.0, 1.02, 1.04, 1.0),
    card=0.18,
    cash=0.02,
    platform=0.0,
    invoice=0.8,
    invoice_size=(180, 4_800),
    supplies=0.3,
    suppliers=(
        Supply("REECE PTY LTD", "direct_debit", "{n8}", 4, 2, code="041502"),
        Supply("TRADELINK P/L", "bpay", "{n10}", 2, 1, code="23796"),
        Supply("MIDDY'S ELECTRICAL", "pay_anyone", "ACC {n6}", 2, 1.2),
        Supply("REXEL ELECTRICAL", "direct_debit", "{n7}", 1.5, 1, code="298114"),
        Supply("{subcontractor}", "osko_out", "inv {n3}", 2.5, 2.2, "subcontractors"),
    ),
    platforms=(),
    wages=0.24,
    rent=(0, 2_400),
    taxed=0.06,
    spends=(HARDWARE, FUEL, Spend(("HIPAGES GROUP",), "advertising", (0.3, 1.5), 110, 420)),
)
RETAILER = Trade(
    "retailer",
    ("Homewares", "Shoes", "Gifts", "Boutique", "Cycles", "Books", "Nursery"),
    (28_000, 140_000),
    _OPEN_DAILY,
    _RETAIL_YEAR,
    card=0.86,
    cash=0.06,
    platform=0.06,
    invoice=0.02,
    invoice_size=(150, 1_900),
    supplies=0.5,
    suppliers=(
        Supply("{firm} Wholesale", "pay_anyone", "INV-{n5}", 3, 2.2),
        Supply("{firm} Imports", "osko_out", "PO {n4}", 2.5, 1.6),
        Supply("{firm} Distributors", "pay_anyone", "{n6}", 2, 1.8),
        Supply("ALIBABA.COM SINGAPORE", "card_foreign", "", 1, 0.7),
        Supply("STARTRACK EXPRESS", "direct_debit", "{n8}", 0.5, 2, "freight", "303905"),
    ),
    platforms=(
        Platform("AFTERPAY", "AFTERPAY {n8}", 1, code="421077"),
        Platform("ZIPMONEY PAYMENTS", "ZIP{n8}", 3, code="497415"),
    ),
    wages=0.16,
    rent=(3_200, 9_800),
    taxed=0.035,
)
ECOMMERCE = Trade(
    "ecommerce",
    ("Online", "Living", "Apparel", "Outdoors", "Supplements", "Pet Co"),
    (14_000, 160_000),
    (0.16, 0.15, 0.14, 0.14, 0.13, 0.13, 0.15),
    (0.9, 0.84, 0.9, 0.92, 0.97, 1.0, 0.95, 0.94, 0.97, 1.02, 1.38, 1.21),
    card=0.45,
    cash=0.0,
    platform=0.53,
    invoice=0.02,
    invoice_size=(90, 1_500),
    supplies=0.48,
    suppliers=(
        Supply("{firm} Wholesale", "pay_anyone", "INV-{n5}", 2, 1.4),
        Supply("ALIBABA.COM SINGAPORE", "card_foreign", "", 3, 1.6),
        Supply("WISE AUSTRALIA", "osko_out", "P{n8}", 2, 0.9),
        Supply("AUST POST MYPOST", "direct_debit", "{n10}", 1.4, 4.3, "freight", "372015"),
        Supply("SENDLE PTY LTD", "card", "", 0.5, 4.3, "freight"),
        Supply("SHOPIFY* {n9}", "card_foreign", "", 0.12, 1, "software"),
    ),
    platforms=(
        Platform("SHOPIFY", "SHOPIFY {a10}", 0, code="507394"),
        Platform("SHOPIFY", "SHOPIFY {a10}", 2, code="507394"),
        Platform("PAYPAL AUSTRALIA", "10{n11}", 4, code="310003"),
        Platform("EBAY MARKETPLACES", "P*{n10}", 1, code="485205"),
        Platform("AMAZON AU", "{a14}", 3, code="458106"),
        Platform("AFTERPAY", "AFTERPAY {n8}", 1, code="421077"),
    ),
    wages=0.1,
    rent=(0, 2_800),
    taxed=0.035,
    spends=(
        Spend(("FACEBK *{a10}",), "advertising", (3, 9), 60, 750),
        Spend(("GOOGLE*ADS{n10}",), "advertising", (1, 3), 150, 900),
        Spend(("KLAVIYO INC", "MAILCHIMP"), "software", (0.7, 1.3), 40, 260),
    ),
)
TRANSPORT = Trade(
    "transport",
    ("Transport", "Haulage", "Couriers", "Logistics", "Removals"),
    (38_000, 190_000),
    _WEEKDAYS,
    (0.85, 0.95, 1.0, 0.96, 1.0, 1.02, 0.98, 1.0, 1.0, 1.05, 1.12, 1.14),
    card=0.03,
    cash=0.0,
    platform=0.0,
    invoice=0.97,
    invoice_size=(900, 14_000),
    supplies=0.32,
    suppliers=(
        Supply("VIVA ENERGY AUST", "direct_debit", "SHELLCARD{n7}", 4, 2.1, "fuel", "317204"),
        Supply("BP FUEL CARD", "direct_debit", "{n10}", 2.5, 2.1, "fuel", "040117"),
        Supply("LINKT TOLLING", "direct_debit", "{n10}", 1, 3, "tolls", "302915"),
        Supply("BOB JANE T-MARTS", "card", "", 0.7, 0.6, "vehicle_maintenance"),
        Supply("{firm} Truck Repairs", "pay_anyone", "INV {n5}", 1, 0.8, "vehicle_maintenance"),
        Supply("{subcontractor}", "osko_out", "RCTI {n4}", 2.5, 3, "subcontractors"),
    ),
    platforms=(),
    wages=0.25,
    rent=(0, 3_800),
    taxed=0.05,
    spends=(FUEL, Spend(("SUPERCHEAP AUTO {n4}", "REPCO"), "vehicle_maintenance", (0.5, 2), 25, 340)),
)
PROFESSIONAL = Trade(
    "professional_services",
    ("Consulting", "Advisory", "Legal", "Design Studio", "Engineering", "Bookkeeping"),
    (18_000, 120_000),
    _WEEKDAYS,
    _OFFICE_YEAR,
    card=0.12,
    cash=0.0,
    platform=0.0,
    invoice=0.88,
    invoice_size=(330, 9_900),
    supplies=0.1,
    suppliers=(
        Supply("{subcontractor}", "osko_out", "Invoice {n4}", 3, 1.6, "subcontractors"),
        Supply("UPWORK -{n9}REF", "card_foreign", "", 1, 1.1, "subcontractors"),
        Supply("LEXISNEXIS PTY LTD", "pay_anyone", "{n8}", 0.8, 1, "software"),
    ),
    platforms=(),
    wages=0.36,
    rent=(0, 4_600),
    taxed=0.075,
    spends=(Spend(("LINKEDIN {n9}", "ZOOM.US"), "software", (0.6, 1.6), 22, 140),),
)
CLINIC = Trade(
    "health_clinic",
    ("Physiotherapy", "Dental Care", "Family Practice", "Podiatry", "Chiropractic", "Psychology"),
    (36_000, 150_000),
    (0.2, 0.2, 0.2, 0.19, 0.16, 0.05, 0.0),
    (0.8, 1.0, 1.04, 0.96, 1.03, 1.04, 1.0, 1.03, 1.02, 1.04, 1.05, 0.95),
    card=0.52,
    cash=0.01,
    platform=0.32,
    invoice=0.15,
    invoice_size=(90, 1_400),
    supplies=0.11,
    suppliers=(
        Supply("HENRY SCHEIN HALAS", "direct_debit", "{n7}", 2.5, 1.5, code="331044"),
        Supply("TEAM MEDICAL SUPP", "pay_anyone", "SI{n7}", 2, 1.3),
        Supply("CLINIKO", "card", "", 0.5, 1, "software"),
        Supply("{firm} Laboratories", "pay_anyone", "STMT {n4}", 2, 1),
    ),
    platforms=(
        Platform("HICAPS", "HICAPS{n8}", 0, "card_settlement", "213806"),
        Platform("MCARE BENEFITS", "{n9} SVHM", 1, "government_receipt", "180068"),
        Platform("MEDIBANK PRIVATE", "HB{n8}", 3, "card_settlement", "317266"),
        Platform("NDIS", "PR{n9}", 4, "government_receipt", "192038"),
    ),
    wages=0.38,
    rent=(2_600, 8_800),
    taxed=0.005,
)
BUILDER = Trade(
    "builder",
    ("Constructions", "Building Group", "Carpentry", "Homes", "Renovations", "Roofing"),
    (55_000, 320_000),
    _WEEKDAYS,
    _BUILDING_YEAR,
    card=0.0,
    cash=0.0,
    platform=0.0,
    invoice=1.0,
    invoice_size=(3_500, 48_000),
    supplies=0.56,
    suppliers=(
        Supply("{subcontractor}", "osko_out", "Inv {n4}", 4, 3, "subcontractors"),
        Supply("{subcontractor}", "pay_anyone", "{n5}", 3, 2, "subcontractors"),
        Supply("BORAL CONSTRUCTION", "direct_debit", "{n8}", 2, 1.2, code="031144"),
        Supply("MITRE 10 TRADE", "pay_anyone", "ACC {n5}", 2.5, 1.5),
        Supply("KENNARDS HIRE", "direct_debit", "{n7}", 0.8, 2, "equipment_hire", "065112"),
        Supply("{firm} Skip Bins", "card", "", 0.4, 1.3, "waste"),
    ),
    platforms=(),
    wages=0.17,
    rent=(0, 2_600),
    taxed=0.035,
    spends=(HARDWARE, FUEL),
)
TRADES = (CAFE, PLUMBER, RETAILER, ECOMMERCE, TRANSPORT, PROFESSIONAL, CLINIC, BUILDER)
