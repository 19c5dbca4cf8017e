"""How each bank words a movement on its statements (`banks.yaml`, which explains the texts)."""

from collections.abc import Mapping
from functools import cache

from msgspec.structs import replace

from pipelines.synthetic.data_files import Record, load_named
from pipelines.vocabulary.rule_files import RuleError

FILE = "banks.yaml"


class BankStyle(Record, frozen=True):
    name: str
    bsb_prefix: str
    account_digits: int
    wordings: Mapping[str, tuple[str, ...]]  # by rail; empty where the bank prints no such row
    merchant_name: str = ""  # as its own card terminals' settlements print it
    capitals: bool = False
    gives_ids: bool = False  # its feed has a transaction id
    dishonour_fee: int = 0  # cents; some banks charge none
    width: int = 0  # characters of a narrative that its export keeps; 0: all
    returns_next_day: bool = False  # a refused debit comes back on the following business day
    held_out: bool = False  # neither rules nor training may learn from its wordings
    worded_like: str = ""  # the bank whose wordings apply to rails that have none here


@cache
def bank_styles() -> tuple[BankStyle, ...]:
    """Return the styles of all banks.

    Raises:
        RuleError: a bank has no wording for a rail that another bank has.
    """
    given = load_named(FILE, BankStyle, "name")
    wordings = {style.name: style.wordings for style in given}
    complete = [replace(style, wordings={**wordings.get(style.worded_like, {}), **style.wordings}) for style in given]
    rails = {rail for style in complete for rail in style.wordings}
    for style in complete:
        if missing := rails - style.wordings.keys():
            raise RuleError(f"{FILE}: {style.name} has no wording for {', '.join(sorted(missing))}")
    return tuple(complete)


def style_of(bank: str) -> BankStyle:
    return next(style for style in bank_styles() if style.name == bank)


@cache
def held_out_banks() -> frozenset[str]:
    """Return the names of the banks whose wordings neither rules nor training may learn from."""
    return frozenset(style.name for style in bank_styles() if style.held_out)
