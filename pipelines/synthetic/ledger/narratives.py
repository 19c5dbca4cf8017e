"""Print a movement in its bank's wording, filled in and cut to the width of the bank's export."""

from collections.abc import Mapping
from datetime import date
from functools import cache
from random import Random

from pipelines.synthetic.world.blanks import Blanks
from pipelines.synthetic.world.model import LedgerEntry, Party
from pipelines.synthetic.world.styles import BankStyle


class Teller:
    """Writes the lines of one account's statement."""

    def __init__(self, style: BankStyle, rng: Random, state: str, card: str) -> None:
        self._style, self._rng, self._state = style, rng, state
        self._fields = Blanks(rng, {"card": card})

    def narrative(self, entry: LedgerEntry) -> str:
        """Return a line's text as this bank would print it."""
        movement, fields = entry.movement, self._fields
        party = movement.party
        fields["party"], fields["place"], fields["code"] = party.name, party.place, party.code
        fields["ref"], fields["region"] = movement.reference, party.region or self._state
        if entry.other:
            fields["other4"], fields["other9"] = entry.other[-4:], entry.other
        if movement.rail.endswith("_foreign"):
            fields["usd"] = _in_us_dollars(movement.cents)
        wording = _wording(self._style.wordings[movement.rail], party, self._rng)
        if "{d" in wording:
            fields.update(_value_dates(movement.day - movement.day % 3))  # up to two days before it is posted
        text = " ".join(wording.format_map(fields).split())
        return _as_exported(text, self._style)


def _as_exported(text: str, style: BankStyle) -> str:
    """Return the text as the bank exports it: cut to its width, in capitals if the bank writes them."""
    text = text.replace("¤", " ")  # stands for a blank in a column of fixed width, because other blanks are merged
    if style.width:
        text = text[: style.width]
    text = text.rstrip(" -·,/")
    return text.upper() if style.capitals else text


def _wording(wordings: tuple[str, ...], party: Party, rng: Random) -> str:
    """Choose a wording: always the same for a party with a name, a random one for movements without a name."""
    if party.name:
        return wordings[(len(party.name) + len(party.place)) % len(wordings)]
    return rng.choice(wordings)


def _in_us_dollars(cents: int) -> str:
    """Write cents of AUD as US dollars, at a constant rate of 0.65. Real rates would add nothing that is measured."""
    us = abs(cents) * 65 // 100
    return f"{us // 100}.{us % 100:02}"


@cache
def _value_dates(day: int) -> Mapping[str, object]:
    when = date.fromordinal(day)
    return {
        "dmy": f"{when:%d/%m/%Y}",
        "dm": f"{when:%d/%m}",
        "d_mon_y": f"{when:%d %b %Y}".upper(),
        "ddmon": f"{when:%d%b}",
        "ddmonyy": f"{when:%d%b%y}".upper(),
    }
