"""The content of `people.yaml`, and who may pay whom in a part of a portfolio."""

from functools import cache
from random import Random
from typing import Generic, TypeVar

from pipelines.synthetic.data_files import Record, load
from pipelines.synthetic.world.merchants import Spend
from pipelines.synthetic.world.model import Part, Party
from pipelines.synthetic.world.names import firm_of_kind, local_firm, names

_Thing = TypeVar("_Thing")


class Parts(Record, Generic[_Thing], frozen=True):
    """Things of three parts: people for testing and people for calibration meet those of their own part only."""

    known: tuple[_Thing, ...]
    held_out: tuple[_Thing, ...]
    calibration: tuple[_Thing, ...]

    def of(self, part: Part | None) -> tuple[_Thing, ...]:
        return {"test": self.held_out, "calibration": self.calibration}.get(part or "train", self.known)


class Agency(Record, frozen=True):
    """Who pays by direct entry under its own user id, and the texts of its payments."""

    name: str
    code: str
    texts: tuple[str, ...]


class Situations(Record, frozen=True):
    """The content of `people.yaml`, which explains the fields."""

    situations: dict[str, int]
    employers: Parts[str]
    small_employers: float
    households: float
    wages: Parts[str]
    casual_wages: Parts[str]
    benefits: Parts[Agency]
    age_pensions: Parts[Agency]
    super_pensions: Parts[Agency]
    property_managers: Parts[str]
    managers_rent: Parts[str]
    tenants_rent: Parts[str]
    invoices: Parts[str]
    family: Parts[str]
    maintenance: Agency
    investments: Parts[Agency]
    occasional: tuple[str, ...]
    spending: tuple[Spend, ...]


@cache
def situations() -> Situations:
    return load("people.yaml", Situations)


def employer(rng: Random, part: Part | None) -> Party:
    """Return a well-known employer, or a small firm with a made-up name."""
    if rng.random() < situations().small_employers:
        return _firm(local_firm(rng, rng.choice(tuple(names().trade_endings)), part))
    name = rng.choice(situations().employers.of(part))
    return Party(name, code=_user_id(rng), brand=name.title())


def property_manager(rng: Random, part: Part | None) -> Party:
    kind = rng.choice(situations().property_managers.of(part))
    return _firm(firm_of_kind(rng, f" {kind}", part))


def client(rng: Random, part: Part | None) -> Party:
    """Return a firm that buys the work of a contractor."""
    return _firm(firm_of_kind(rng, f" {rng.choice(names().client_kinds)}", part))


def agency_party(agency: Agency) -> Party:
    return Party(agency.name, code=agency.code, brand=agency.name.title())


def _firm(name: str) -> Party:
    return Party(name.upper(), code="", brand=name)


def _user_id(rng: Random) -> str:
    return str(rng.randrange(100_000, 600_000))
