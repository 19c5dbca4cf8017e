"""Turn a name of the data files into a counterparty: a branch, a local firm or a person.

`~meals` stands for a made-up local firm of that kind, `{person}` for a made-up person, and `{firm} Imports` for a
made-up firm with this ending; `{suburb}` is filled in. Everything else is a brand. A business meets only brands and
firms that are allowed in its part of the portfolio, training or test (`brands.available`).
"""

from collections.abc import Sequence
from random import Random

from pipelines.synthetic.world.brands import available, canonical
from pipelines.synthetic.world.merchants import card_merchant
from pipelines.synthetic.world.model import Part, Party
from pipelines.synthetic.world.names import firm_in_suburb, firm_of_kind, local_firm, payee


def brand(name: str) -> str:
    """Return the canonical name of a listed name; empty for one that is made up."""
    return "" if name.startswith(("~", "{")) else canonical(name)


def counterparty(rng: Random, name: str, part: Part | None = None, code: str = "") -> Party:
    """Return whom a business pays or is paid by."""
    if name.startswith("{person}"):
        return payee(rng, code)
    if name.startswith("{firm}"):
        firm = firm_of_kind(rng, name.removeprefix("{firm}"), part)
        return Party(firm, code=code, brand=firm)
    if "{suburb}" in name:
        firm = firm_in_suburb(rng, name, part)
        return Party(firm, code=code, brand=firm if name.startswith("{") else canonical(name))
    if name.startswith("~"):
        firm = local_firm(rng, name[1:], part)
        return Party(firm, code=code, brand=firm)
    return Party(name, code=code, brand=canonical(name))


def shop(rng: Random, name: str, suburb: str, part: Part | None = None) -> Party:
    """Return a card terminal: a brand's branch or web shop, or a local firm's counter, mostly in capitals."""
    if not name.startswith(("~", "{")):
        return card_merchant(name, suburb)
    firm = counterparty(rng, name, part)
    return card_merchant(firm.name.upper() if rng.random() < 0.85 else firm.name, suburb, firm.brand)


def choose_name(rng: Random, names: Sequence[str], part: Part | None) -> str | None:
    """Choose one of the names that this part of the portfolio may meet; None if there is none."""
    open_to = available(names, brand, part)
    return rng.choice(open_to) if open_to else None
