"""The trades of the book: how each earns, when, and what it spends. Shares are of monthly turnover incl. GST."""

from dataclasses import dataclass
from typing import NamedTuple

from pipelines.synthetic.world.merchants import FUEL, HARDWARE, Spend


class Platform(NamedTuple):
    """A marketplace or payment platform that pays out what customers paid it, less its cut."""

    name: str
    reference: str
    weekday: int
    category: str = "platform_payout"
    code: str = ""
    fee: float = 0.0  # share of the sales kept back


class Supply(NamedTuple):
    """A regular supplier: its weight among the trade's suppliers and how often it is paid a month."""

    name: str  # `{suburb}` becomes a local name (`parties` has the others)
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
        Supply("BREWED ONLINE", "direct_debit", "BO{n6}", 0.8, 2.1, code="407730"),
        Supply("~suppliers", "pay_anyone", "inv {n5}", 1, 4.3),
        Supply("ME&U AUSTRALIA", "direct_debit", "MEU FEES {n5}", 0.15, 1, "platform_fees", "519870"),
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
        Supply("{person}", "osko_out", "inv {n3}", 2.5, 2.2, "subcontractors"),
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
        Supply("AUST POST MYPOST", "direct_debit", "{n10}", 1.4, 4.3, "postage", "372015"),
        Supply("SENDLE PTY LTD", "card", "", 0.5, 4.3, "freight"),
        Supply("SHOPIFY* {n9}", "card_foreign", "", 0.12, 1, "software"),
        Supply("EBAY COMMERCE AU", "card", "", 0.3, 1, "platform_fees"),
        Supply("ETSY PAYMENTS", "direct_debit", "ETSY FEES {n6}", 0.15, 1, "platform_fees", "447102"),
        Supply("DHL EXPRESS", "direct_debit", "{n9}", 0.8, 2, "freight", "281190"),
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
        Supply("CORE WORKFORCE", "direct_debit", "CW{n6}", 0.8, 4.3, "labour_hire", "420713"),
        Supply("{person}", "osko_out", "RCTI {n4}", 2.5, 3, "subcontractors"),
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
        Supply("{person}", "osko_out", "Invoice {n4}", 3, 1.6, "subcontractors"),
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
        Supply("{person}", "osko_out", "Inv {n4}", 4, 3, "subcontractors"),
        Supply("{person}", "pay_anyone", "{n5}", 3, 2, "subcontractors"),
        Supply("BORAL CONSTRUCTION", "direct_debit", "{n8}", 2, 1.2, code="031144"),
        Supply("MITRE 10 TRADE", "pay_anyone", "ACC {n5}", 2.5, 1.5),
        Supply("KENNARDS HIRE", "direct_debit", "{n7}", 0.8, 2, "equipment_hire", "065112"),
        Supply("~labour_hire", "pay_anyone", "TS {n5}", 1.2, 4.3, "labour_hire"),
        Supply("{firm} Skip Bins", "card", "", 0.4, 1.3, "waste"),
    ),
    platforms=(),
    wages=0.17,
    rent=(0, 2_600),
    taxed=0.035,
    spends=(HARDWARE, FUEL),
)
GYM = Trade(
    "gym",
    ("Fitness", "Strength", "Pilates", "Yoga", "Martial Arts"),
    (16_000, 75_000),
    (0.18, 0.17, 0.17, 0.16, 0.14, 0.1, 0.08),
    (1.12, 1.08, 1.0, 0.98, 0.98, 0.94, 0.96, 0.99, 1.02, 1.02, 0.98, 0.9),
    card=0.14,
    cash=0.01,
    platform=0.8,
    invoice=0.05,
    invoice_size=(60, 900),
    supplies=0.08,
    suppliers=(
        Supply("LES MILLS ASIA PAC", "direct_debit", "LM{n7}", 1, 1, "software", "391108"),
        Supply("{person}", "osko_out", "classes {n3}", 3, 4.3, "subcontractors"),
        Supply("LIFE FITNESS AUST", "pay_anyone", "INV {n6}", 0.7, 0.4, "equipment"),
        Supply("~suppliers", "pay_anyone", "INV {n5}", 1, 1),
    ),
    platforms=(
        Platform("EZIDEBIT P/L", "EZI{n8}", 1, "subscription_receipt", "342203"),
        Platform("DEBITSUCCESS", "DS{n9}", 3, "subscription_receipt", "178230"),
        Platform("GOCARDLESS LTD", "GYM-{a6}", 2, "subscription_receipt", "507919"),
        Platform("MINDBODY PAYMENTS", "MB{n8}", 4, "subscription_receipt", "520017"),
    ),
    wages=0.3,
    rent=(3_400, 11_000),
    taxed=0.06,
)
MECHANIC = Trade(
    "mechanic",
    ("Auto Repairs", "Mechanical", "Tyres", "Auto Centre", "Smash Repairs"),
    (28_000, 120_000),
    _WEEKDAYS,
    (0.9, 1.0, 1.02, 0.98, 1.02, 1.03, 1.0, 1.0, 1.0, 1.02, 1.04, 1.02),
    card=0.66,
    cash=0.05,
    platform=0.0,
    invoice=0.29,
    invoice_size=(140, 3_800),
    supplies=0.38,
    suppliers=(
        Supply("BURSON AUTO PARTS", "direct_debit", "{n8}", 3, 4.3, code="040988"),
        Supply("CAPRICORN SOCIETY", "direct_debit", "CAP{n6}", 4, 1, code="087741"),
        Supply("REPCO TRADE", "direct_debit", "{n7}", 2, 2.1, code="041120"),
        Supply("TYREPLUS WHOLESALE", "pay_anyone", "INV {n6}", 1.5, 2),
        Supply("BOC LIMITED", "direct_debit", "{n9}", 0.2, 1, code="012205"),
        Supply("~suppliers", "pay_anyone", "{n5}", 1, 2),
    ),
    platforms=(),
    wages=0.24,
    rent=(2_400, 7_200),
    taxed=0.055,
    spends=(FUEL,),
)
SALON = Trade(
    "salon",
    ("Hair", "Hair Studio", "Barbers", "Beauty", "Nails & Beauty", "Day Spa"),
    (12_000, 52_000),
    (0.02, 0.14, 0.16, 0.2, 0.22, 0.24, 0.02),
    (0.95, 0.94, 1.0, 0.98, 1.0, 0.97, 0.95, 0.97, 1.0, 1.04, 1.08, 1.22),
    card=0.84,
    cash=0.12,
    platform=0.04,
    invoice=0.0,
    invoice_size=(40, 300),
    supplies=0.14,
    suppliers=(
        Supply("OZ HAIR & BEAUTY", "card", "", 1.5, 2),
        Supply("SALON SUPPORT", "pay_anyone", "INV {n5}", 2, 1.4),
        Supply("L'OREAL AUSTRALIA", "direct_debit", "{n8}", 2, 1, code="288120"),
        Supply("~suppliers", "osko_out", "stock {n3}", 1, 1.5),
    ),
    platforms=(
        Platform("AFTERPAY", "AFTERPAY {n8}", 1, code="421077"),
        Platform("FRESHA PAYMENTS", "FRESHA {a7}", 3, code="533106"),
    ),
    wages=0.34,
    rent=(1_900, 5_600),
    taxed=0.065,
)
LANDSCAPER = Trade(
    "landscaper",
    ("Landscapes", "Gardens", "Tree Services", "Lawn & Garden", "Pools"),
    (14_000, 85_000),
    _WEEKDAYS,
    (1.1, 1.12, 1.1, 1.0, 0.82, 0.6, 0.58, 0.72, 1.05, 1.25, 1.35, 1.31),
    card=0.08,
    cash=0.03,
    platform=0.0,
    invoice=0.89,
    invoice_size=(120, 9_800),
    supplies=0.3,
    suppliers=(
        Supply("~materials", "pay_anyone", "acc {n4}", 3, 3),
        Supply("FLOWER POWER {n3}", "card", "", 1, 2.5, "materials"),
        Supply("{person}", "osko_out", "Inv {n3}", 2, 3, "subcontractors"),
        Supply("COATES HIRE", "direct_debit", "{n8}", 0.8, 1.2, "equipment_hire", "063377"),
        Supply("WORKPAC PTY LTD", "direct_debit", "WP{n6}", 0.8, 2.1, "labour_hire", "318472"),
    ),
    platforms=(),
    wages=0.24,
    rent=(0, 1_800),
    taxed=0.05,
    spends=(HARDWARE, FUEL, Spend(("AIRTASKER", "HIPAGES GROUP", "ONEFLARE"), "advertising", (0.2, 1.2), 30, 290)),
)
HOLIDAY = Trade(
    "holiday_trade",
    ("Ice Creamery", "Surf School", "Dive Charters", "Ski Hire", "Caravan Park", "Kayak Tours"),
    (12_000, 90_000),
    (0.1, 0.09, 0.09, 0.11, 0.16, 0.24, 0.21),
    (2.2, 1.5, 1.1, 1.4, 0.45, 0.4, 0.6, 0.35, 0.7, 0.95, 0.95, 1.4),
    card=0.72,
    cash=0.1,
    platform=0.16,
    invoice=0.02,
    invoice_size=(90, 1_800),
    supplies=0.22,
    suppliers=(
        Supply("~suppliers", "pay_anyone", "INV {n4}", 3, 3),
        Supply("PETERS ICE CREAM", "direct_debit", "{n7}", 2, 2.1, code="270118"),
        Supply("~equipment_hire", "osko_out", "hire {n3}", 1, 1, "equipment_hire"),
    ),
    platforms=(
        Platform("AIRBNB PAYMENTS", "G-{a10}", 2, code="458820"),
        Platform("BOOKING.COM BV", "NO.{a10}", 4, code="513990"),
        Platform("REZDY PTY LTD", "RZ{n7}", 1, code="509316"),
    ),
    wages=0.26,
    rent=(1_500, 5_200),
    taxed=0.055,
)
FARM = Trade(
    "farm",
    ("Pastoral", "Orchards", "Farms", "Produce", "Vineyards", "Honey"),
    (24_000, 160_000),
    _WEEKDAYS,
    (1.5, 1.4, 1.3, 1.2, 0.9, 0.7, 0.6, 0.6, 0.7, 0.8, 1.0, 1.3),
    card=0.04,
    cash=0.02,
    platform=0.0,
    invoice=0.94,
    invoice_size=(1_400, 26_000),
    supplies=0.42,
    suppliers=(
        Supply("NUTRIEN AG SOLUTIO", "direct_debit", "{n8}", 3, 1.2, code="037714"),
        Supply("ELDERS RURAL", "pay_anyone", "ACC {n6}", 2, 1),
        Supply("{firm} Stockfeeds", "pay_anyone", "INV {n4}", 2, 1.5),
        Supply("{person}", "osko_out", "shearing {n2}", 1, 0.7, "subcontractors"),
        Supply("MADEC LABOUR HIRE", "direct_debit", "MDC{n5}", 1, 2.1, "labour_hire", "387402"),
        Supply("~freight", "pay_anyone", "cartage {n4}", 1, 1.3, "freight"),
    ),
    platforms=(),
    wages=0.14,
    rent=(0, 3_000),
    taxed=0.02,
    spends=(FUEL, HARDWARE),
)
CHILDCARE = Trade(
    "childcare",
    ("Early Learning", "Kids", "Childcare", "Kindergarten"),
    (48_000, 180_000),
    _WEEKDAYS,
    (0.88, 1.02, 1.03, 0.98, 1.02, 1.02, 1.0, 1.02, 1.02, 1.02, 1.03, 0.96),
    card=0.02,
    cash=0.0,
    platform=0.93,
    invoice=0.05,
    invoice_size=(120, 900),
    supplies=0.09,
    suppliers=(
        Supply("MODERN TEACHING AI", "pay_anyone", "INV{n6}", 1.5, 1.2),
        Supply("PFD FOOD SERVICES", "direct_debit", "PFD{n6}", 2, 4.3, code="063519"),
        Supply("RANDSTAD P/L", "direct_debit", "RS{n7}", 1.5, 4.3, "labour_hire", "266940"),
        Supply("XPLOR SOFTWARE", "direct_debit", "XP{n6}", 0.4, 1, "software", "430187"),
    ),
    platforms=(
        Platform("SERVICES AUSTRALIA", "CCS {n9}", 1, "government_receipt", "180068"),
        Platform("DEBITSUCCESS", "DS{n9}", 3, "subscription_receipt", "178230"),
        Platform("EZIDEBIT P/L", "EZI{n8}", 4, "subscription_receipt", "342203"),
    ),
    wages=0.42,
    rent=(5_200, 16_000),
    taxed=0.0,
)
TRADES = (
    *(CAFE, PLUMBER, RETAILER, ECOMMERCE, TRANSPORT, PROFESSIONAL, CLINIC, BUILDER),
    *(GYM, MECHANIC, SALON, LANDSCAPER, HOLIDAY, FARM, CHILDCARE),
)
