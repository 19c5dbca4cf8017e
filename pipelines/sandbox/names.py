"""Made-up people, places and firms. Only well-known merchants elsewhere in this package are real."""

from random import Random

SUBURBS = {
    "NSW": ("ALEXANDRIA", "PARRAMATTA", "PENRITH", "NEWTOWN", "BROOKVALE", "WOLLONGONG", "CASTLE HILL", "GOSFORD"),
    "VIC": ("RICHMOND", "DANDENONG", "FOOTSCRAY", "BRUNSWICK", "GEELONG", "BOX HILL", "FRANKSTON", "PRESTON"),
    "QLD": ("FORTITUDE VALLEY", "SOUTHPORT", "CHERMSIDE", "IPSWICH", "TOOWOOMBA", "NOOSAVILLE", "CAIRNS"),
    "WA": ("SUBIACO", "FREMANTLE", "JOONDALUP", "CANNINGTON", "OSBORNE PARK", "MANDURAH"),
    "SA": ("NORWOOD", "GLENELG", "SALISBURY", "UNLEY", "MARION", "MOUNT BARKER"),
    "TAS": ("HOBART", "LAUNCESTON", "KINGSTON", "DEVONPORT"),
    "ACT": ("FYSHWICK", "BELCONNEN", "BRADDON", "TUGGERANONG"),
}
STATES = ("NSW",) * 32 + ("VIC",) * 26 + ("QLD",) * 21 + ("WA",) * 11 + ("SA",) * 7 + ("TAS",) * 2 + ("ACT",)

_GIVEN = (
    *("Sarah", "Michael", "Priya", "Daniel", "Linh", "Jessica", "Ahmed", "Emma", "Matthew", "Chloe", "Wei"),
    *("Thomas", "Olivia", "Raj", "Hannah", "Luca", "Grace", "Joshua", "Mei", "Nicholas", "Fatima", "Benjamin"),
    *("Isabella", "Liam", "Sophie", "Dimitri", "Charlotte", "Jack", "Ana", "Ethan", "Zoe", "Sione", "Ruby"),
)
_FAMILY = (
    *("Nguyen", "Smith", "Patel", "Jones", "Williams", "Chen", "Singh", "Brown", "Taylor", "Papadopoulos"),
    *("Wilson", "Rossi", "Kelly", "Tran", "Anderson", "Haddad", "Martin", "Wong", "Thompson", "O'Brien"),
    *("Kowalski", "Ferrari", "Murphy", "Lee", "Campbell", "Kaur", "Mitchell", "Hughes", "Russo", "Fraser"),
    *("Hassan", "Cooper", "Bianchi", "Walker", "Dang", "Robertson", "Silva", "McKenzie", "Ali", "Stewart"),
)
_FIRST = (
    *("Blue Gum", "Southern Cross", "Banksia", "Harbour", "Wattle", "Ironbark", "Coastal", "Redgum", "Summit"),
    *("Golden Wattle", "Northside", "Bayside", "Riverbend", "Kookaburra", "Jacaranda", "Parkview", "Magpie"),
    *("Stringybark", "Sandstone", "Eastern", "Lighthouse", "Waratah", "Westgate", "Highland", "Pelican"),
)
_CLIENT_KINDS = (
    *("Constructions", "Property Group", "Strata Management", "Logistics", "Holdings", "Developments", "Homes"),
    *("Dental", "Early Learning", "Engineering", "Foods", "Retail Group", "Real Estate", "Manufacturing"),
    *("Medical Centre", "Hotels", "Motors", "Consulting", "Joinery", "Landscapes"),
)


def person(rng: Random) -> str:
    return f"{rng.choice(_GIVEN)} {rng.choice(_FAMILY)}"


def trading_name(rng: Random, owner: str, endings: tuple[str, ...]) -> str:
    """A firm's name in the ways small firms choose one: the owner's family name, or something local."""
    family = owner.rsplit(maxsplit=1)[-1]
    first = rng.choice((rng.choice(_FIRST), rng.choice(_FIRST), family))
    return f"{first} {rng.choice(endings)}"


def client_firm(rng: Random) -> str:
    return f"{rng.choice((rng.choice(_FIRST), rng.choice(_FAMILY)))} {rng.choice(_CLIENT_KINDS)}"
