"""Made-up people, places and firms. Only well-known merchants elsewhere in this package are real.

Two thirds of local firms say in their name what they do; the others are families, places and invented words, as on
real statements, where a name alone often tells nothing.
"""

from collections.abc import Callable
from random import Random

from pipelines.synthetic.world.brands import is_held_out
from pipelines.synthetic.world.model import Part, Party

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
    *("Harpreet", "Giulia", "Tuan", "Bridget", "Omar", "Kirra", "Marcus", "Yasmin", "Declan", "Ngoc", "Peta", "Arjun"),
    *("Tegan", "Stavros", "Mia", "Jarrah", "Lachlan", "Noor", "Caitlin", "Hamish", "Xin", "Rebecca", "Paolo", "Tahlia"),
)
_FAMILY = (
    *("Nguyen", "Smith", "Patel", "Jones", "Williams", "Chen", "Singh", "Brown", "Taylor", "Papadopoulos"),
    *("Wilson", "Rossi", "Kelly", "Tran", "Anderson", "Haddad", "Martin", "Wong", "Thompson", "O'Brien"),
    *("Kowalski", "Ferrari", "Murphy", "Lee", "Campbell", "Kaur", "Mitchell", "Hughes", "Russo", "Fraser"),
    *("Hassan", "Cooper", "Bianchi", "Walker", "Dang", "Robertson", "Silva", "McKenzie", "Ali", "Stewart"),
    *("Harrison", "Vella", "Zhang", "Doyle", "Gupta", "Marinos", "Barker", "Sharma", "Lim", "Petrov", "Costa", "Reid"),
    *("Van Dyk", "Costello", "Abdi", "Hoang", "Muller", "Fitzgerald", "Tupou", "De Luca", "Byrne", "Ng", "Watts"),
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


# What local firms call themselves by what they sell.
_TRADE_WORDS: dict[str, tuple[str, ...]] = {
    "accountants": ("Accountants", "Partners", "Business Advisory", "Tax & Accounting", "Bookkeeping"),
    "cleaning": ("Cleaning", "Cleaning Services", "Property Services", "Window Cleaning"),
    "education": ("Training", "Training Academy", "Institute", "Skills"),
    "equipment": ("Equipment", "Office Furniture", "Computers", "Catering Equipment", "Shopfitters"),
    "equipment_hire": ("Hire", "Plant Hire", "Party Hire", "Equipment Hire"),
    "freight": ("Couriers", "Transport", "Freight", "Express"),
    "groceries": ("Supermarket", "Grocer", "Food Hall", "Convenience"),
    "health": ("Pharmacy", "Medical Centre", "Physio", "Chemist", "Optical"),
    "labour_hire": ("Recruitment", "Labour Hire", "Personnel", "Staffing", "Workforce"),
    "lawyers": ("Lawyers", "Legal", "Solicitors", "Conveyancing"),
    "materials": ("Timber", "Hardware", "Steel", "Building Supplies", "Tiles", "Paint Place"),
    "meals": ("Cafe", "Espresso Bar", "Thai", "Noodle House", "Bakery", "Pizzeria", "Hotel", "Kebabs", "Sushi"),
    "office_supplies": ("Stationery", "Office Supplies", "Newsagency", "Ink & Toner"),
    "parking": ("Car Park", "Parking"),
    "printing": ("Printing", "Signs", "Print & Design", "Signage", "Packaging"),
    "property": ("Property Trust", "Real Estate", "Commercial", "Properties", "Property Management"),
    "repairs": ("Refrigeration", "Electrical", "Plumbing", "Air Conditioning", "Locksmiths", "Maintenance"),
    "security": ("Security", "Alarms", "Locksmiths"),
    "storage": ("Self Storage", "Storage", "Warehousing"),
    "strata": ("Strata", "Strata Management", "Body Corporate Services"),
    "suppliers": ("Wholesale", "Trading", "Imports", "Distributors", "Supply Co", "Provedore", "Agencies"),
    "travel": ("Motel", "Motor Inn", "Apartments", "Cabs", "Hotel"),
    "vehicle_maintenance": ("Auto Repairs", "Mechanical", "Tyres", "Smash Repairs", "Auto Electrical", "Truck Repairs"),
    "waste": ("Skip Bins", "Waste", "Recycling"),
}
_PLAIN = (
    "Group",
    "Enterprises",
    "Holdings",
    "& Sons",
    "& Co",
    "Pty Ltd",
    "Bros",
    "Services",
    "Investments",
    "Family Trust",
)
_SYLLABLES = (
    "ar",
    "bel",
    "cor",
    "da",
    "el",
    "fin",
    "ka",
    "lo",
    "mar",
    "ni",
    "or",
    "pra",
    "quo",
    "ri",
    "sta",
    "tor",
    "vi",
    "ze",
)
_STREETS = ("Church", "George", "High", "King", "Market", "Queen", "Railway", "Station", "Victoria", "York")


def person(rng: Random) -> str:
    return f"{rng.choice(_GIVEN)} {rng.choice(_FAMILY)}"


def payee(rng: Random, code: str = "") -> Party:
    """A person, in the way that this person's bank gives the name."""
    name = person(rng)
    given, _, family = name.partition(" ")
    printed = rng.choice(
        (
            name,
            name,
            name,
            f"{given[0]} {family}",
            name.upper(),
            f"{family} {given}",
            f"{given[0]} & {rng.choice(_GIVEN)[0]} {family}",
        )
    )
    return Party(printed, code=code, brand=name, person=True)


def trading_name(rng: Random, owner: str, endings: tuple[str, ...]) -> str:
    """A firm's name in the ways small firms choose one: the owner's family name, or something local."""
    family = owner.rsplit(maxsplit=1)[-1]
    first = rng.choice((rng.choice(_FIRST), rng.choice(_FIRST), family))
    return f"{first} {rng.choice(endings)}"


def client_firm(rng: Random, part: Part | None = None) -> str:
    """A firm that buys from small businesses."""
    return not_held_out(part, lambda: f"{_owner_or_place(rng)} {rng.choice(_CLIENT_KINDS)}")


def firm_of_kind(rng: Random, kind: str, part: Part | None = None) -> str:
    """A firm whose name ends in what it does, such as ` Wholesale`."""
    return not_held_out(part, lambda: f"{_owner_or_place(rng)}{kind}")


def firm_in_suburb(rng: Random, name: str, part: Part | None = None) -> str:
    """`{suburb} Fruit Barn` with a suburb, of whatever state."""
    states = tuple(SUBURBS)
    return not_held_out(part, lambda: name.replace("{suburb}", rng.choice(SUBURBS[rng.choice(states)]).title()))


def _owner_or_place(rng: Random) -> str:
    return rng.choice((rng.choice(_FIRST), rng.choice(_FAMILY)))


def local_firm(rng: Random, kind: str, part: Part | None = None) -> str:
    """A firm that small businesses buy from: `kind` is one of the trade words' keys."""
    return not_held_out(part, lambda: _local_firm(rng, kind))


def related_names(rng: Random, owner: str, firm: str, part: Part | None = None) -> tuple[str, ...]:
    """The companies and trusts beside a business; most owners have one or two."""
    family, first = owner.rsplit(maxsplit=1)[-1], firm.split(maxsplit=1)[0]
    usual = (
        f"{family} Family Trust",
        f"{first} Holdings",
        f"{family} Property Holdings",
        f"{family} Superannuation Fund",
    )
    chosen = rng.sample(usual, rng.choice((0, 1, 1, 2)))
    return tuple(name for name in chosen if part != "train" or not is_held_out(name))


def _local_firm(rng: Random, kind: str) -> str:
    words = _TRADE_WORDS[kind] if rng.random() < 2 / 3 else _PLAIN
    return f"{_first_word(rng)} {rng.choice(words)}"


def _first_word(rng: Random) -> str:
    how = rng.random()
    if how < 0.35:
        return rng.choice(_FIRST)
    if how < 0.65:
        return rng.choice(_FAMILY)
    if how < 0.75:
        return f"{rng.choice(_STREETS)} Street"
    if how < 0.85:
        return f"{rng.choice(_GIVEN)}'s"
    return "".join(rng.sample(_SYLLABLES, rng.choice((2, 3)))).capitalize()


def not_held_out(part: Part | None, make: Callable[[], str]) -> str:
    """Made again until the name is not held out, where training is all it may be used for."""
    while is_held_out(name := make()) and part == "train":
        pass
    return name
