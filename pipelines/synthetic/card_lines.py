"""Lines of bank statements that print a listed name, made from the lists of names themselves.

They teach and measure what the words of a name say about its trade, for names in no list. A line is cut at 12 to 22
letters as banks cut names, and has a terminal's place, a shop's number or a processor in a style that the name's hash
chooses. So the same name always gives the same lines.

Names with the same first word are a family. A fifth of the families is held out (`world.brands.is_held_out`): a model
must not have met them before it is measured on them. Nor must it have met the brands that the portfolio holds out.
"""

from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256

import polars as pl

from pipelines.enrichment.counterparties import lists
from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.wording.phrases import bare_words
from pipelines.synthetic.world.brands import is_held_out
from pipelines.vocabulary.schemas import MONEY

FIRST_DAY = date(2024, 7, 1)
WIDTHS = (12, 16, 18, 20, 22)  # letters that banks leave of a name
STYLES = (
    "VISA PURCHASE {name} {town} {state} AU",
    "EFTPOS PURCHASE {name} {town}",
    "CHECKCARD 0412 {name} {town} {state}",
    "{name} {number} {town} {state}",
    "SQ *{name} {town} {state}",
    "TST* {name}",
    "DIRECT DEBIT {name} {number}",
    "CARD PAYMENT TO {name}",
)
TOWNS = (
    *("NEWTOWN NSW", "GEELONG VIC", "CAIRNS QLD", "HOBART TAS", "DALLAS TX", "SPOKANE WA", "TAMPA FL", "RENO NV"),
    *("OTTAWA ON", "DENVER CO", "BOISE ID", "AKRON OH", "LEEDS GB", "CORK IE", "DURBAN ZA", "NELSON NZ"),
)


def family_of(name: str) -> str:
    """Return the first word of a name without THE: all names with it are held out together."""
    first, *others = name.upper().replace("'", "").split() or [""]
    return (others[0] if first == "THE" and others else first).casefold()


def lists_without_held_out() -> Lists:
    """Return the lists without the names of held-out families."""
    return lists.load_without(_is_held_out)


def no_lists() -> Lists:
    """Return lists without any name."""
    return lists.load_without(lambda _: True)


def card_lines(*, held_out: bool) -> pl.DataFrame:
    """Return a line for each listed name with a category of payments to it.

    Args:
        held_out: whether to take the families that are held out, or all others.

    Returns:
        `date`, `description`, `amount` (AUD, below 0) and `label`, in the order of the names.
    """
    schema = {"date": pl.Date(), "description": pl.String(), "amount": MONEY, "label": pl.String()}
    is_chosen = _is_held_out if held_out else _may_be_learned
    chosen = [(printed, label) for name, printed, label in lists.businesses() if is_chosen(name) and is_chosen(printed)]
    names = pl.DataFrame(sorted(set(chosen)), {"name": pl.String(), "label": pl.String()}, orient="row")
    plain = names.select(bare_words(pl.col("name").str.to_uppercase()), "label").unique("name", maintain_order=True)
    return pl.DataFrame([_line(name, label) for name, label in plain.rows()], schema, orient="row")


def _is_held_out(name: str) -> bool:
    return is_held_out(family_of(name))


def _may_be_learned(name: str) -> bool:
    """Return whether neither the family nor a brand that the name begins with is held out."""
    words = name.split()
    beginnings = (" ".join(words[:length]) for length in range(1, len(words) + 1))
    return not _is_held_out(name) and not any(map(is_held_out, beginnings))


def _line(name: str, label: str) -> tuple[date, str, Decimal, str]:
    drawn = int.from_bytes(sha256(name.encode()).digest()[:8])
    drawn, style = divmod(drawn, len(STYLES))
    drawn, width = divmod(drawn, len(WIDTHS))
    drawn, place = divmod(drawn, len(TOWNS))
    drawn, number = divmod(drawn, 9_000)
    town, state = TOWNS[place].split()
    cut = name[: WIDTHS[width]].strip()
    text = STYLES[style].format(name=cut, town=town, state=state, number=number + 1_000)
    return FIRST_DAY + timedelta(drawn % 365), text, Decimal(-400 - drawn % 18_000) / 100, label
