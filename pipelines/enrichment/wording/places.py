"""Read the place of a terminal: suburb, state and country, at the end of the text of a card payment.

The state and country after it show that a place was printed. Most places are one word. In most others, one of the two
words (`_BEFORE`, `_AFTER`) is typical of places. Terminals cut names short (KEILOR DOWN, NARELLAN V).

A town without a state is read as a place only beside a card, and only if it is listed (`rules/towns.yaml`): people have
such names, too (LINCOLN, HAMILTON). After OF, THE or FOR it belongs to the name (TASTE OF LONDON).
"""

from collections.abc import Mapping
from functools import cache

import polars as pl

from pipelines.enrichment.wording.wording import EDGE, any_of
from pipelines.vocabulary.rule_files import load_rules

TOWNS_FILE = "towns.yaml"

_CUT_SHORT: Mapping[str, str] = {"NS": "NSW", "VI": "VIC", "QL": "QLD", "TA": "TAS", "AC": "ACT"}
_STATE = any_of("NSW", "VIC", "QLD", "SA", "WA", "TAS", "NT", "ACT", *_CUT_SHORT)
_COUNTRY = any_of(
    "AUS?|USA?|SGP?|IRL?|IE|GBR?|UK|NZL?|CAN|HKG?|DEU|FRA|NLD?|JPN|CHN?|IND|THA|MYS|IDN|PHL|ESP|ITA|CHE|SWE",
    "DNK|LUX?|EST|CYP|MLT|ISR|ARE|ZAF?",
)
_UNMISTAKABLE = any_of(  # American states and Canadian provinces that are not words
    "AK|AZ|AR|CA|CT|DC|FL|GA|IA|IL|KS|KY|MI|MN|MO|MT|NC|ND|NE|NH|NJ|NM|NV|NY|RI|SC|SD|TN|TX|UT|VA|VT|WA|WI|WV|WY",
    "AB|BC|MB|NB|NL|NS|PE|QC|SK",
)
_AMERICAN_STATES = any_of(_UNMISTAKABLE, "AL|CO|DE|HI|ID|IN|LA|MA|MD|ME|MS|OH|OK|ON|OR|PA")
_BEFORE = any_of(
    "NORTH|SOUTH|EAST|WEST|UPPER|LOWER|OLD|ST|SAINT|PORT|MOUNT|MT|LAKE|POINT|PT|GLEN|CAPE|FORT|GREAT",
    "TEA TREE|EIGHT|CHIPPING|SAN|SANTA|LOS|LAS|HONG|KUALA|PALO|MENLO|TEL",
)
_NEW = "NEW (?:YORK|FARM|TOWN|NORFOLK|LAMBTON|GISBORNE|DELHI)"  # FOREVER NEW is a shop
_AFTER = any_of(
    "NORTH|SOUTH|EAST|WEST|NTH|STH|HILLS?|HIL|HEIGHTS?|HTS|PARK|BEACH|CREEK|BAY|VALLEY|VALE|POINT|JUNC|JUNCTION",
    "HEADS?|HDS|WATERS?|GARDENS?|LAKES?|MEADOWS?|SPRINGS?|ISLAND|GROVE|RIDGE|PONDS?|GULLY|CROSS|CROSSING",
    "HARBOUR|COVE|PARADISE|CITY|COAST|PLAINS?|FLAT|FIELDS?|WHARF|QUAY|NEST|FOREST|DOWNS?|MARSH|ROCKS?|RIVER",
    "BRIDGE|WAGGA|WOY|WARREN|VISTA|WHY|END|VA",
    "[A-Z]",  # a word that the terminal cut to one letter
)
_PLACE = any_of(_NEW, f"(?:{_BEFORE} )?[A-Z][A-Z'-]{{2,18}}(?: {_AFTER})?")
_GAP = r"[ ,\\]{1,3}"  # ANZ writes a backslash before the place

# Only terminals print state and country together. A country alone, or a state alone, may also end a person's own words.
_BY_ITSELF = rf"{_GAP}{_PLACE},? {_STATE},? ?AUS?$"
_BY_ITSELF_ABROAD = rf"{_GAP}{_PLACE},? (?:GBR?|IRL|NZL|ZAF)$"  # codes that nobody writes; UK, IE and NZ end names, too
_BESIDE_A_CARD = rf"(?:{_GAP}{_PLACE},?)?(?: (?:{_STATE}|{_AMERICAN_STATES}),?)?(?: {_COUNTRY}){{1,2}}$"
_BESIDE_FOREIGN_MONEY = rf"{_GAP}{_PLACE},? (?:CA|NY)$"
# CO ends names of companies. Truist prints the card's last digits behind the state.
_BESIDE_A_CARD_IN_AMERICA = rf"{_GAP}{_PLACE},? {_AMERICAN_STATES.replace('|CO|', '|')}(?: [0-9]{{4}})?$"
_WITH_COUNTRY = f"{any_of(_STATE, _AMERICAN_STATES)} (?:USA?|CAN|AUS?)"
# At the end of a text. A state that is a word, too (ME, IN, ACT), needs a country after it.
TOWN_AND_STATE = rf" [A-Z][A-Z'-]{{2,18}} {any_of(_WITH_COUNTRY, 'NSW|VIC|QLD|TAS', _UNMISTAKABLE)}$"
# WHATABURGER 612 DALLAS TX; DUNKIN #337163 Q35 SWISSVALE PA; MCDONALD'S F1882 BOISE ID
_SHOPS_NUMBER = any_of(" #?[0-9]{2,6}(?: Q[0-9]{1,2})?", "[A-Z] [A-Z]-?[0-9]{3,5}")
_BEHIND_A_SHOPS_NUMBER = rf"{_SHOPS_NUMBER}({_GAP}{_PLACE},? {_AMERICAN_STATES}(?: {any_of('USA?', 'CAN?')})?)$"
PHONE = f"[0-9]{{3}}-[0-9]{{3}}-?[0-9]{{4}}{EDGE}"  # of America
_BEHIND_A_PHONE = f"(?:{PHONE}|[0-9]{{10}})( {_AMERICAN_STATES}(?: USA?)?)$"
_SLASHED = (
    rf"{_GAP}{_PLACE}{any_of(f' /{_AMERICAN_STATES}(?: USA?)?', f'/{_AMERICAN_STATES} USA?')}$"  # PLYMOUTH /MA US
)
_FULL_COLUMN = r"[A-Z][A-Z '.-]{11}[A-Z]"  # a town of 13 letters leaves no space before the state: ST PETERSBURGFL
_GLUED = rf"[0-9]({_FULL_COLUMN}{_AMERICAN_STATES})$"  # only right after a number, as CAIRNS ends in a state, too
_GLUED_BESIDE_A_CARD = rf"[0-9]( {_FULL_COLUMN}{_UNMISTAKABLE})$"  # MECHANICAL ends in one that is no sign
# A place and nothing else. CA may be a country after a shop's name (NETFLIX CA).
_ONLY_A_PLACE = rf"^{_PLACE} {any_of(_UNMISTAKABLE.replace('|CA|', '|'), 'PA')}$"
# Neither a card nor a number shows the terminal: only states that nobody writes otherwise, unlike WA, SC, CT or CA.
_WITHOUT_A_CARD = (
    rf"^[A-Z][A-Z '&.-]*?( (?:{_BEFORE} )?[A-Z]{{4,18}}(?: {_AFTER})? (?:"
    "AK|AZ|DC|FL|GA|IA|IL|KS|KY|MI|MN|MO|MT|NC|ND|NH|NJ|NM|NV|NY|PA|RI|SD|TN|TX|UT|VA|VT|WI|WV|WY))$"
)
_WORDS, _NAMES = "name_words.yaml", ("given_names.yaml", "surnames.yaml")
# Suburbs are too many to be listed; these endings are typical of places, and of few other words.
_LIKE_A_PLACE = (
    "[A-Z]{2,12}(?:VILLE|TOWN|BURGH|BURY|BOROUGH|MOUTH|HURST|WICH|CHESTER|CASTER|MINSTER|SHIRE|HAVEN|FIELD|DALE)"
)


@cache
def any_town() -> str:
    """Return a pattern for the name of a listed town."""
    towns = {town.replace("-", " ") for listed in load_rules(TOWNS_FILE).values() for town in listed.split()}
    return any_of(*sorted(towns, key=lambda town: (-len(town), town)))


@cache
def any_place_word() -> str:
    """Return a pattern for a word of the places that terminals print: a town or a word like one, a state, a country."""
    around = any_of(_BEFORE, "CENTRAL|CENTRE|CBD|CITY|BEACH|HEIGHTS|JUNCTION")
    return any_of(any_town(), _LIKE_A_PLACE, around, _STATE, _AMERICAN_STATES, _COUNTRY)


@cache
def _town_beside_a_card() -> str:
    state = any_of(_STATE, _AMERICAN_STATES)
    return rf"(?:^|{_GAP}(?:(?:{_BEFORE}|AUS?) )?){EDGE}{any_town()}(?:,? {state})?(?: {_COUNTRY}){{0,2}}$"


@cache
def _town_of_a_name() -> str:
    joining = any_of("OF|THE|FOR|AT|IN|ON|BY|AND|DE|VISIT|GREATER|&|-")
    return rf"(?:^| ){joining} {any_town()}$"


@cache
def _listed_words(*files: str) -> list[str]:
    listed = (text for file in files for text in load_rules(file).values())
    return sorted({word for text in listed for word in text.split()})


def _town_on_rail(text: pl.Expr) -> pl.Expr:
    town = text.str.extract(_town_beside_a_card(), 0)
    ending = pl.when(town.is_not_null()).then(text)  # few texts are searched again
    return pl.when(~ending.str.contains(_town_of_a_name())).then(town)


def _place_without_card(text: pl.Expr) -> pl.Expr:
    """Return the place at the end of a text that shows no card, unless it may be a name: COOK DALLAS TX, LAW PA."""
    place = text.str.extract(_WITHOUT_A_CARD, 1)
    is_word = place.str.extract("([A-Z]+) [A-Z]+$").is_in(_listed_words(_WORDS, *_NAMES))
    begun = pl.when(place.is_not_null()).then(text).str.extract("^[A-Z'-]+", 0)
    return pl.when(~is_word & ~begun.is_in(_listed_words(*_NAMES))).then(place)


def extract_place(
    text: pl.Expr, numbered: pl.Expr, by_card: pl.Expr, abroad: pl.Expr, on_rail: pl.Expr, bare: pl.Expr
) -> pl.Expr:
    """Return the end of `text` with the place of a terminal, as printed; null where there is none.

    Args:
        numbered: the same text before codes were cut from it, among them a shop's number.
        by_card: whether a card's number or rail is printed as well, but for a rail that is printed without a country.
        abroad: whether an amount in another currency is printed as well.
        on_rail: whether a card's number or any rail of cards is printed as well.
        bare: whether neither a rail nor a number is printed.
    """
    return pl.coalesce(
        text.str.extract(_BY_ITSELF, 0),
        text.str.extract(_BY_ITSELF_ABROAD, 0),
        text.str.extract(_SLASHED, 0),
        _town_on_rail(pl.when(on_rail).then(text)),
        pl.when(by_card | abroad).then(text).str.extract(_BESIDE_A_CARD, 0),
        pl.when(by_card).then(text).str.extract(_BESIDE_A_CARD_IN_AMERICA, 0),
        pl.when(abroad).then(text).str.extract(_BESIDE_FOREIGN_MONEY, 0),
        numbered.str.extract(_BEHIND_A_SHOPS_NUMBER, 1),
        numbered.str.extract(_BEHIND_A_PHONE, 1),
        text.str.extract(_GLUED, 1),
        pl.when(by_card).then(text).str.extract(_GLUED_BESIDE_A_CARD, 1),
        pl.when(by_card).then(text).str.extract(_ONLY_A_PLACE, 0),
        _place_without_card(pl.when(bare).then(text)),
    )


def format_location(place: pl.Expr) -> pl.Expr:
    """Return the printed place without Australia's name, and with the state in full after a space."""
    plain = place.str.strip_chars(" ,\\").str.replace("^AUS? |,? ?AUS?$| [0-9]{4}$", "")
    plain = plain.str.replace(rf"^({_FULL_COLUMN})({_AMERICAN_STATES})$", "$1 $2").str.replace(" ?/", " ")
    for cut, state in _CUT_SHORT.items():
        plain = plain.str.replace(f" {cut}$", f" {state}")
    return pl.when(plain != "").then(plain)
