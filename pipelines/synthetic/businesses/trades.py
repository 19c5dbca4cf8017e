"""How each trade earns, when, and what it spends (`trades.yaml`). Shares are of monthly turnover incl. GST."""

from functools import cache

from pipelines.synthetic.data_files import Record, load_named
from pipelines.synthetic.world.merchants import Spend, merchants


class Platform(Record, frozen=True):
    """A marketplace or payment platform that pays out what customers paid it, less its cut."""

    name: str
    reference: str
    weekday: int  # of its payouts, 0 is Monday
    category: str = "platform_payout"
    code: str = ""


class Supply(Record, frozen=True):
    """A regular supplier."""

    name: str  # `{suburb}` becomes a local name (`parties` has the others)
    rail: str
    reference: str
    weight: float  # among the trade's suppliers
    times: float  # paid a month
    category: str = "suppliers"
    code: str = ""


class Trade(Record, frozen=True):
    slug: str
    endings: tuple[str, ...]  # of trading names
    turnover: tuple[int, int]  # dollars a month
    weekdays: tuple[float, ...]  # weights of Monday to Sunday in takings
    season: tuple[float, ...]  # factors of January to December
    card: float  # share of turnover taken by card
    cash: float  # banked in cash
    platform: float
    invoice: float
    invoice_size: tuple[int, int]  # dollars
    supplies: float  # share of turnover spent on suppliers
    suppliers: tuple[Supply, ...]
    wages: float  # share of turnover paid net to staff
    rent: tuple[int, int]  # dollars a month; (0, 0) works from home
    taxed: float  # GST collected less GST paid, as a share of turnover
    platforms: tuple[Platform, ...] = ()
    shared_spends: tuple[str, ...] = ()  # keys of `merchants`
    spends: tuple[Spend, ...] = ()

    def every_spend(self) -> tuple[Spend, ...]:
        return (*(merchants().shared_spends[name] for name in self.shared_spends), *self.spends)


@cache
def trades() -> tuple[Trade, ...]:
    return load_named("trades.yaml", Trade, "slug")
