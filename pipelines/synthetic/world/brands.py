"""Canonical names, and which of them are held out of training.

Lists print a name as statements do (`OPTUS BILLING`, `FACEBK *{a10}`); people say it otherwise. Where the spoken
name isn't the printed one in title case without its legal form, it stands here. A fifth of the brands and two whole
banks' wordings are held out: a model must not have met them before it is measured on them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from typing import TypeVar

from pipelines.synthetic.world.model import Part

HELD_OUT_STYLES = frozenset({"Bank of Queensland", "HSBC"})
"""Banks whose wordings neither rules nor training may learn from."""

_Thing = TypeVar("_Thing")

# The spoken name for printed ones, by what is printed before the first random number.
_SPOKEN: dict[str, tuple[str, ...]] = {
    "7-Eleven": ("7-ELEVEN",),
    "Access Canberra": ("ACCESS CANBERRA",),
    "Accor": ("ACCOR HOTELS",),
    "ACT Revenue Office": ("ACT REVENUE", "ACT GOVT RATES"),
    "Adobe": ("ADOBE *ACROPRO SUBS",),
    "ADT Security": ("ADT SECURITY",),
    "AGL": ("AGL SALES P/L",),
    "Airbnb": ("AIRBNB *", "AIRBNB PAYMENTS"),
    "ALDI": ("ALDI STORES",),
    "Alibaba": ("ALIBABA.COM SINGAPORE",),
    "Allianz": ("ALLIANZ INS", "ALLIANZ AUST CLAIMS"),
    "Allianz Workers Compensation": ("ALLIANZ WORKERS",),
    "Amazon": ("AMAZON AU", "AMAZON WEB SERVICES", "AMZN MKTP AU"),
    "American Express": ("AMERICAN EXPRESS", "AMEX AU BUSINESS"),
    "Ampol": ("AMPOL FOODARY", "AMPOLCARD"),
    "ANZ": ("ANZ WORLDLINE",),
    "Apple": ("APPLE STORE R",),
    "ASIC": ("ASIC",),
    "AusIndustry": ("AUSINDUSTRY",),
    "Aussie Broadband": ("AUSSIE BROADBAND",),
    "Austrade": ("EMDG AUSTRADE",),
    "Australia Post": ("AUSTRALIA POST", "AUST POST MYPOST"),
    "Australian Institute of Management": ("AUST INST OF MGMT",),
    "Australian Taxation Office": ("TAX OFFICE PAYMENTS", "ATO"),
    "AustralianSuper": ("AUSTRALIANSUPER",),
    "Bank of Queensland": ("BOQ MERCHANT",),
    "Bankwest": ("BANKWEST MERCH",),
    "Baycorp": ("BAYCORP COLLECTN",),
    "BCS Strata": ("BCS STRATA MGMT",),
    "Bendigo Bank": ("BENDIGO MERCHANT",),
    "bet365": ("BET365",),
    "BetR": ("BETR",),
    "BHP": ("BHP GROUP DIV",),
    "BINGO Industries": ("BINGO INDUSTRIES",),
    "BioPak": ("BIOPAK PTY LTD",),
    "Bizcap": ("BIZCAP AU PTY LTD",),
    "BizCover": ("BIZCOVER PTY LTD",),
    "BizPay": ("BIZPAY GROUP LIM",),
    "BlueBet": ("BLUEBET",),
    "Bob Jane T-Marts": ("BOB JANE T-MARTS",),
    "BOC": ("BOC LIMITED",),
    "Booking.com": ("BOOKING.COM", "BOOKING.COM BV"),
    "Boral": ("BORAL CONSTRUCTION",),
    "BP": ("BP EXPRESS", "BP FUEL CARD"),
    "BPSL": ("BPSL LIQUIDATION",),
    "Brewed Online": ("BREWED ONLINE",),
    "BTC Markets": ("BTC MARKETS",),
    "Bunnings": ("BUNNINGS",),
    "Business Queensland": ("BUSINESS QLD GRANT",),
    "Business Victoria": ("BUS VICTORIA GRANT",),
    "Canva": ("CANVA* I0",),
    "Cash Converters": ("CASH CONVERTERS PF",),
    "CBRE": ("CBRE PTY LTD TRUST",),
    "CelloPark": ("CELLOPARK",),
    "CGU": ("CGU INSURANCE",),
    "CGU Workers Compensation": ("CGU WORKERS COMP",),
    "Child Support Agency": ("CHILD SUPPORT AGY",),
    "Cleanaway": ("CLEANAWAY OPERATIO", "CLEANAWAY SKIPS"),
    "CoinSpot": ("COINSPOT", "CASA*COINSPOT"),
    "Colliers": ("COLLIERS INTL",),
    "Commonwealth Bank": ("CBA POS",),
    "Countrywide Food Service": ("COUNTRYWIDE REBATE",),
    "CPA Australia": ("CPA AUSTRALIA",),
    "Credit Corp": ("CREDIT CORP SVCS",),
    "Department of Transport WA": ("DEPT TRANSPORT WA",),
    "Deputy": ("DEPUTEC PTY LTD",),
    "DEWR": ("DEWR APPRENTICE",),
    "DiDi": ("DIDI RIDES",),
    "DoorDash": ("DOORDASH TECH",),
    "Dropbox": ("DROPBOX*",),
    "E-Toll": ("E-TOLL",),
    "EastLink": ("EASTLINK",),
    "EasyPark": ("EASYPARK",),
    "eBay": ("EBAY MARKETPLACES", "EBAY COMMERCE AU"),
    "EnergyAustralia": ("ENERGYAUSTRALIA",),
    "Etsy": ("ETSY PAYMENTS",),
    "Facebook": ("FACEBK *",),
    "Fallon Refrigeration": ("FALLON REFRIG",),
    "Fines Enforcement WA": ("FINES ENFORCE WA",),
    "Flexi Commercial": ("FLEXICOMMERCIAL",),
    "Fred Hollows Foundation": ("FRED HOLLOWS FDN",),
    "Fresha": ("FRESHA PAYMENTS",),
    "Fundo": ("FUNDO BUSINESS",),
    "FundTap": ("FUNDTAP",),
    "GetCapital": ("GETCAPITAL AUST",),
    "GIO": ("AAI LIMITED GIO",),
    "GIO Workers Compensation": ("GIO WORKERS COMP",),
    "GoCardless": ("GOCARDLESS LTD",),
    "GoDaddy": ("DNH*GODADDY.COM",),
    "Google": ("GOOGLE *WORKSPACE", "GOOGLE*ADS", "GOOGLE *CLOUD"),
    "GraysOnline": ("GRAYSONLINE",),
    "Great Southern Bank": ("GSB MERCHANT",),
    "Grenke": ("GRENKE LEASING",),
    "Harvey Norman": ("HARVEY NORMAN AV/IT",),
    "Henry Schein": ("HENRY SCHEIN HALAS",),
    "HIA": ("HIA LIMITED",),
    "HICAPS": ("HICAPS",),
    "hipages": ("HIPAGES GROUP",),
    "HSBC": ("HSBC MERCHANT",),
    "Hungry Jack's": ("HUNGRY JACKS",),
    "icare": ("ICARE WORKERS INS",),
    "iiNet": ("IINET",),
    "IKEA": ("IKEA",),
    "ING": ("ING MERCHANT",),
    "IQumulate": ("IQUMULATE PF",),
    "Jani-King": ("JANI-KING AUST",),
    "JB Hi-Fi": ("JB HI-FI",),
    "Jim's Cleaning": ("JIMS CLEANING",),
    "KFC": ("KFC",),
    "Knight Frank": ("KNIGHT FRANK AUST",),
    "L'Oreal": ("L'OREAL AUSTRALIA",),
    "Ladbrokes": ("LADBROKES.COM.AU",),
    "Les Mills": ("LES MILLS ASIA PAC",),
    "LexisNexis": ("LEXISNEXIS PTY LTD",),
    "Lightspeed": ("LIGHTSPEED POS",),
    "LinkedIn": ("LINKEDIN",),
    "Linkt": ("LINKT", "LINKT TOLLING"),
    "Lion": ("LION DAIRY DRINKS",),
    "LJ Hooker": ("LJ HOOKER COMMERC", "LJ HOOKER RENTALS"),
    "Lumi": ("LUMI FINANCE", "LUMI LOC"),
    "Macquarie": ("MACQUARIE EFTPOS", "MACQUARIE LEASING"),
    "McDonald's": ("MCDONALDS",),
    "me&u": ("ME&U AUSTRALIA",),
    "Medibank": ("MEDIBANK PRIVATE",),
    "Medicare": ("MCARE BENEFITS",),
    "Menulog": ("MENULOG PTY LTD",),
    "Metcash": ("METCASH TRADING",),
    "Microsoft": ("MSFT * E0400", "MICROSOFT*365"),
    "Mindbody": ("MINDBODY PAYMENTS",),
    "Mitre 10": ("MITRE 10 TRADE",),
    "Modern Teaching Aids": ("MODERN TEACHING AI",),
    "Monetary Penalties Tasmania": ("MON PENALTIES TAS",),
    "Moula": ("MOULA MONEY",),
    "MYOB": ("MYOB AUSTRALIA",),
    "NAB": ("NAB MERCHANT SET",),
    "NDIS": ("NDIS",),
    "Nissan Financial Services": ("NISSAN FINANCIAL",),
    "NRMA": ("NRMA INSURANCE", "NRMA CLAIMS"),
    "Nutrien Ag Solutions": ("NUTRIEN AG SOLUTIO",),
    "Octet": ("OCTET FINANCE",),
    "Officeworks": ("OFFICEWORKS 0",),
    "OFX": ("OFX PAYMENTS",),
    "OnDeck": ("ONDECK CAPITAL AUS",),
    "OpenAI": ("OPENAI *CHATGPT SUBSCR",),
    "Optus": ("OPTUS BILLING",),
    "PayPal": ("PAYPAL AUSTRALIA", "PAYPAL WORKING CAP"),
    "Pepper Money": ("PEPPER ASSET FIN", "PEPPER MONEY HL"),
    "PFD Food Services": ("PFD FOOD SERVICES",),
    "PointsBet": ("POINTSBET",),
    "Precision Clearing": ("PRECISION CH",),
    "Prospa": ("PROSPA ADVANCE", "PROSPA LOC"),
    "Qantas": ("QANTAS AIRWAYS",),
    "QBE": ("QBE INSURANCE", "QBE CLAIMS"),
    "QRIDA": ("QRIDA",),
    "Queensland Health": ("QLD HEALTH",),
    "Queensland Revenue Office": ("QLD REVENUE OFFICE",),
    "QuickPortfolios": ("INTUIT QBOOKS ONLINE",),
    "QuickSuper": ("QUICKSUPER",),
    "RAA": ("RAA GRANTS",),
    "Ray White": ("RAY WHITE COMMERC",),
    "Recoveriescorp": ("RECOVERIESCORP",),
    "Reece": ("REECE PLUMBING", "REECE PTY LTD"),
    "Repco": ("REPCO TRADE",),
    "ReturnToWorkSA": ("RETURNTOWORKSA",),
    "Revenue NSW": ("REVENUE NSW", "REVENUE NSW FINES"),
    "RevenueSA": ("REVENUESA", "SA FINES UNIT"),
    "RevenueWA": ("REVENUEWA",),
    "SA Water": ("SA WATER",),
    "Salvation Army": ("SALVATION ARMY",),
    "ScotPac": ("SCOTTISH PACIFIC",),
    "ServiceM8": ("SERVICEM8",),
    "Services Australia": ("SERVICES AUSTRALIA",),
    "Shell": ("SHELL REDDY EXP", "SHELL COLES EXP"),
    "Shift": ("SHIFT FINANCIAL",),
    "Shopify": ("SHOPIFY", "SHOPIFY*", "SHOPIFY CAPITAL"),
    "SIMPRO": ("SIMPRO SOFTWARE",),
    "Skillshare": ("SKILLSHARE.COM",),
    "Slack": ("SLACK T",),
    "SPER": ("SPER QLD",),
    "Square": ("SQUARE AU PTY LTD", "SQUARE LOANS"),
    "St.George": ("ST GEORGE MERCHANT",),
    "StarTrack": ("STARTRACK EXPRESS",),
    "State Emergency Service": ("STATE EMERG SVC",),
    "State Revenue Office Tasmania": ("SRO TASMANIA",),
    "State Revenue Office Victoria": ("SRO VICTORIA",),
    "Stripe": ("STRIPE", "STRIPE CAPITAL"),
    "Suncorp": ("SUNCORP MERCHANT",),
    "SuperChoice": ("SUPERCHOICE P/L",),
    "TAB": ("TAB LIMITED",),
    "TasWater": ("TASWATER",),
    "Team Medical Supplies": ("TEAM MEDICAL SUPP",),
    "Telstra": ("TELSTRA", "TELSTRA DIV"),
    "TerryWhite Chemmart": ("TERRYWHITE CHEMMART",),
    "TikTok": ("TIKTOK ADS",),
    "Toyota Finance": ("TOYOTA FINANCE AU",),
    "TPG": ("TPG INTERNET",),
    "TradePlus24": ("TRADEPLUS24",),
    "Transport and Main Roads": ("TMR QLD REGO",),
    "Tyro": ("TYRO PAYMENTS", "TYRO BUSINESS LOAN", "TYRO FEES"),
    "Uber": ("UBER *TRIP",),
    "Uber Eats": ("UBER BV",),
    "Udemy": ("UDEMY ONLINE COURSES",),
    "Upwork": ("UPWORK -",),
    "Vanguard": ("VANGUARD AUS SHARE",),
    "Veolia": ("VEOLIA ENVIRONMENT",),
    "VicRoads": ("VICROADS",),
    "Virgin Australia": ("VIRGIN AUSTRALIA",),
    "Viva Energy": ("VIVA ENERGY AUST",),
    "Volkswagen Financial Services": ("VOLKSWAGEN FIN SE",),
    "Westpac": ("WESTPAC MERCHANT",),
    "Wise": ("WISE AUSTRALIA",),
    "Woolworths": ("WOOLWORTHS", "WOOLWORTHS GROUP"),
    "WorkCover Queensland": ("WORKCOVER QLD",),
    "WorkPac": ("WORKPAC PTY LTD",),
    "WorkSafe Victoria": ("WORKSAFE VICTORIA",),
    "Worrells": ("WORRELLS TRUST ACC",),
    "Xero": ("XERO AUSTRALIA PTY LTD",),
    "Xplor": ("XPLOR SOFTWARE",),
    "Zeller": ("ZELLER", "ZELLER MERCHANT"),
    "Zip": ("ZIPMONEY PAYMENTS", "ZIP BUSINESS PTY"),
    "Zoom": ("ZOOM.US",),
    "Zurich": ("ZURICH AUST INS",),
}
_BY_PRINTED = {printed: spoken for spoken, names in _SPOKEN.items() for printed in names}
_LEGAL_FORMS = frozenset({"AU", "AUST", "AUSTRALIA", "GROUP", "INC", "LIMITED", "LTD", "P/L", "PTY"})
_SMALL_WORDS = frozenset({"AND", "FOR", "OF", "THE"})
_ABBREVIATIONS = frozenset(
    {"ACCC", "AMP", "APRA", "BMW", "CPA", "DHL", "EG", "GPC", "GWM", "HCF", "IGA", "KKR", "MGA", "MLC", "NIB", "OOH"}
    | {"ACT", "NSW", "NT", "OTR", "PF", "QLD", "SA", "SV", "TAFE", "TAS", "VIC", "WA"}
    | {"RAC", "RACQ", "RACV", "RSPCA", "TNT", "UNICEF", "UPS", "WFI"}
)

# Without them there is no paying tax, water or a court: they can't be left out of any business's life.
IRREPLACEABLE = frozenset(
    {"Australian Taxation Office", "ASIC", "Medicare", "NDIS", "Services Australia"}
    | {"Sydney Water", "Yarra Valley Water", "Urban Utilities", "Water Corporation", "SA Water", "TasWater"}
    | {"Icon Water", "Revenue NSW", "State Revenue Office Victoria", "Queensland Revenue Office", "RevenueWA"}
    | {"RevenueSA", "State Revenue Office Tasmania", "ACT Revenue Office", "Service NSW", "VicRoads"}
    | {"Transport and Main Roads", "Department of Transport WA", "Service SA", "Service Tasmania"}
    | {"Fines Victoria", "Fines Enforcement WA", "SPER", "Monetary Penalties Tasmania", "City of Parramatta"}
    | {"City of Yarra", "Gold Coast Council", "City of Stirling", "City of Unley", "Hobart City Council"}
    | {"Access Canberra", "icare", "WorkSafe Victoria", "WorkCover Queensland", "ReturnToWorkSA"}
    | {"GIO Workers Compensation", "CGU Workers Compensation", "Allianz Workers Compensation"}
)


@cache
def canonical(printed: str) -> str:
    """The name that people say for what a statement prints; random numbers in it are left out."""
    stem = printed.partition("{")[0].strip(" -")
    return _BY_PRINTED.get(stem) or _BY_PRINTED.get(stem.rstrip("*")) or _titled(stem)


def _titled(printed: str) -> str:
    """Title case without the legal form; small words and abbreviations stay as they are."""
    if not printed:
        return ""
    first, *others = printed.split()
    words = [first, *(word for word in others if word.upper() not in _LEGAL_FORMS)]
    return " ".join(_cased(word, at) for at, word in enumerate(words))


def _cased(word: str, at: int) -> str:
    if word in _ABBREVIATIONS or not word.isupper():
        return word
    return word.lower() if at and word in _SMALL_WORDS else word.capitalize()


@cache
def is_held_out(brand: str) -> bool:
    """Whether a canonical name is of the fifth that training must not see: the same in every process and version."""
    if not brand or brand in IRREPLACEABLE:
        return False
    return int.from_bytes(sha256(brand.casefold().encode()).digest()[:4]) % 5 == 0


def allowed(things: Sequence[_Thing], brand: Callable[[_Thing], str], part: Part | None) -> Sequence[_Thing]:
    """Those that businesses of a part of the portfolio may meet: in training possibly none of them."""
    if part != "train":
        return things
    return [thing for thing in things if not is_held_out(brand(thing))]


def available(things: Sequence[_Thing], brand: Callable[[_Thing], str], part: Part | None) -> Sequence[_Thing]:
    """Those of a choice of one: as `allowed`, but for a test what is held out wherever the choice has any."""
    if part != "test":
        return allowed(things, brand, part)
    return [thing for thing in things if is_held_out(brand(thing))] or things
