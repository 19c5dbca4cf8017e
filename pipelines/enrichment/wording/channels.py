"""Read the channel of a payment from the words that banks print at its beginning, and from other signs.

Most lines open with the bank's words for the payment rail ("Direct Debit 408812", "V1234 12/03", "Osko Payment to"),
here called the *rail*. It names the channel, contains the bank's own number of the payment, and says nothing about the
counterparty or the purpose. Lines that open with a name instead (cards at the Commonwealth Bank, direct entry at NAB)
name the channel further on.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import polars as pl

from pipelines.enrichment.wording.rails import load_openings
from pipelines.enrichment.wording.value_dates import WHEN
from pipelines.enrichment.wording.wording import EDGE, any_of
from pipelines.vocabulary.schemas import Channel

_AFTER = "[ :,-]*"  # what separates the rail from the rest
_WHEN = f"(?: ?{WHEN})?"
_TO = "(?: (?:TO|FROM)(?: PAYID [0-9X+]{6,14})?:?(?: OTHER BANK)?)?"
_NUMBER = f"(?: [A-Z]?[0-9]{{5,14}}{EDGE}| [0-9]{{4}}$)?"  # four digits only at the end: 1300 RUBBISH is a name
_DIRECT_ENTRY = f"(?: [0-9]{{6,10}}{EDGE})?"  # the direct entry user's id of six digits, or the bank's trace number
_RECEIPT = r"(?: - RECEIPT(?: NO\.?)? [0-9]{4,12})?"
_SCHEME = any_of(
    "VISA DEBIT",
    "VISA CREDIT",
    "VISA",
    "DEBIT MASTERCARD",
    "MASTERCARD",
    "DEBIT CARD",
    "CREDIT CARD",
    "DEBIT",
    "RETAIL",
)
_ITS_NUMBER = f"(?:(?: CARD| -) [0-9]{{4}}{EDGE})?"  # the card's last digits
_OVERSEAS = f"(?:[ -](?:INTERNATIONAL|O/SEAS|OVERSEAS|REFUND){EDGE})?"

# The openings of each channel. The first that fits at the start of a text counts, so the order matters. Those of banks
# abroad come after them (`rules/rails.yaml`).
RAILS: Sequence[tuple[str, str]] = (
    (
        "bpay",
        any_of(
            f"TFR WDL BPAY INTERNET{_WHEN}",
            "(?:WITHDRAWAL|DEPOSIT) (?:ONLINE|MOBILE) [0-9]{5,9} BPAY",
            f"(?:ANZ )?(?:INTERNET BANKING|M-BANKING|INTERNET) BPAY{_TO}",
            f"BILL PAYMENT [0-9]{{4,12}} BPAY{_TO}",
            "BPAY DEBIT(?: VIA [A-Z]{1,12})?",
            f"BPAY(?: BILL)? PAYMENT{_RECEIPT}{_TO}",
            f"BPAY(?: [0-9]{{3,7}}{EDGE}|{_TO})",
        ),
    ),
    (
        "npp",
        any_of(
            f"(?:DEPOSIT|WITHDRAWAL)-OSKO PAYMENT{_NUMBER}",
            "(?:[A-Z]{1,8} )?OSKO (?:PAYMENT|PMT|DEPOSIT|WITHDRAWAL|CREDIT|TRANSFER)" + f"{_WHEN}{_NUMBER}{_TO}",
            f"FAST (?:TRANSFER|PAYMENT){_TO}",
            f"NPP (?:INWARD |OUTWARD )?(?:PAYMENT|CREDIT|DEBIT|TRANSFER|RECEIPT){_NUMBER}{_TO}",
            f"PAYTO(?: PAYMENT| DEBIT)?{_TO}",
            "ANZ PLUS PAY (?:TO|FROM)",
            "PAYMENT (?:TO|FROM) PAYID",
            f"PAYID PAYMENT{_TO}",
        ),
    ),
    (
        "card",
        any_of(
            "V[0-9]{4} [0-9]{2}/[0-9]{2}(?: REFUND)?",
            f"{_SCHEME}(?: CARD)? (?:PURCHASE|REFUND)(?: -VISA)?{_OVERSEAS}{_ITS_NUMBER}{_WHEN}",
            "REFUND (?:PURCHASE|BY)",
            "CREDIT VOUCHER",
            "CARD (?:PURCHASE|PAYMENT(?: TO)?|TRANSACTION(?: OF)?(?: ISSUED BY)?)",
            "VISA-",
            "(?:ZELLER|AIRWALLEX|WISE) (?:DEBIT )?CARD",
            f"CHECK ?CARD(?: PURCHASE)?(?: [0-9]{{4}}{EDGE})?",
            f"(?:RECURRING )?(?:PURCHASE|PAYMENT) AUTHORIZED ON{_WHEN}",
            f"POS DEBIT{_WHEN}",
            f"POS (?:PURCHASE(?: SETTLEMENT)?|W/D|AUTHORISATION|REFUND){_WHEN}",
        ),
    ),
    (
        "eftpos",
        f"EFTPOS(?: (?:PURCHASE|TRANSACTION|DEBIT|WITHDRAWAL|REFUND|CREDIT|PUR|WDL))?(?: [0-9]{{6,8}}{EDGE})?{_WHEN}",
    ),
    (
        "direct_debit",
        any_of(
            f"(?:WITHDRAWAL-)?DIRECT DEBIT{_DIRECT_ENTRY}(?:(?: PAYMENT)? TO{EDGE})?",
            "PAYMENT BY AUTHORITY(?: TO)?",
            f"AUTOMATIC (?:DRAWING|DEBIT|PAYMENT){_DIRECT_ENTRY}",
            "DIRECT ENTRY DEBIT(?: ITEM)?(?: REF)?",
        ),
    ),
    (
        "direct_credit",
        any_of(
            f"DIRECT CREDIT{_DIRECT_ENTRY}",
            "DIRECT ENTRY CREDIT(?: ITEM)?(?: REF)?",
            "INTER-? ?BANK CREDIT",
            "AUTOMATIC CREDIT",
            f"SCT DEPOSIT{_WHEN}",
        ),
    ),
    (
        "international",
        any_of(
            f"(?:INWARD |OUTWARD |WITHDRAWAL |DEPOSIT )?TELEGRAPHIC TRANSFER{_NUMBER}",
            f"INTERNATIONAL (?:PAYMENT|MONEY TRANSFER|TRANSFER){_TO}",
        ),
    ),
    (
        "transfer",
        any_of(
            "(?:WITHDRAWAL|DEPOSIT) (?:ONLINE|MOBILE) [0-9]{5,9}(?: (?:PYMT|TFR))?",
            f"INTERNET (?:WITHDRAWAL|DEPOSIT|PAYMENT|EXTERNAL TFR|TRANSFER(?: CREDIT| DEBIT)?){_WHEN}{_TO}",
            "ONLINE [A-Z][0-9]{8,12}",
            "(?:ANZ )?(?:INTERNET BANKING|M-BANKING|MOBILE BANKING|PLUS) "
            f"(?:PAYMENT|FUNDS TFER(?: TRANSFER)?|TRANSFER){_NUMBER}{_TO}",
            f"E-BANKING (?:TFR|TRANSFER|PAYMENT){_NUMBER}{_TO}",
            f"PAY ANYONE{_NUMBER}{_TO}",
            f"INTERNAL TRANSFER{_RECEIPT}{_TO}",
            f"PERIODICAL PAYMENT(?: [0-9]{{4,12}}{EDGE})?{_TO}",
            f"(?:TRANSACTIVE )?RTGS(?: CREDIT| DEBIT| PAYMENT)?{_TO}",
            f"(?:SENT|RECEIVED) MONEY{_TO}",
            f"(?:TRANSACT )?(?:FUNDS )?(?:TRANSFER|TFR|TFER|PAYMENT){_NUMBER}{_TO}",
            "(?:ANZ PLUS )?(?:TO|FROM) ",
        ),
    ),
    ("direct_credit", f"DEPOSIT{_NUMBER}"),
)
_RAIL = "^" + any_of(*(openings for _, openings in RAILS)) + EDGE + _AFTER
_END = f"(?:{EDGE}| )"  # of an opening abroad; one that ends with a sign has no edge before the space
# Openings that look like a rail but say what the payment is (a fee, a settlement, a dishonour): they stay in the text.
_NOT_A_RAIL = "^" + any_of(
    "EFTPOS (?:MERCHANT|SETTL|DEP|FEE|RENTAL|CHARGEBACK|TERMINAL|MONTHLY|AUSTRALIA|PTY)",
    "DEPOSIT(?: -| AT)?[ -](?:CASH|COIN|CHE?Q|FEE|ATM|BOND|INTEREST|DISHONOUR|BOOK)",
    "DIRECT (?:DEBIT|CREDIT) (?:DISHONOU?R|REVERSAL|RETURN|REJECT|FEE)",
    "INTERNATIONAL (?:TRANSFER|PAYMENT|MONEY TRANSFER) FEE",
    "PAYMENT EXPRESS|TRANSFER (?:DUTY|MATE)",
    "(?:BPAY|OSKO|PAYID|TRANSFER|RTGS|BILL PAYMENT|PAYMENT|INTERNET PAYMENT) "
    "(?:FEE|RECEIVED|-|DISHONOU?R|REVERSAL|RETURN)",
    "(?:VISA|CARD|CREDIT CARD|DEBIT CARD|POS) (?:PAYMENT|PURCHASE)? ?(?:FEE|RECEIVED)",
    r"DD ?\*",  # DoorDash
)
# After a rail: no payment by it, but what the bank itself does.
_BY_THE_BANK = f"^(?:FEES?|CHARGES?|CHG|REJECT|DISHON|UNPAID|UNPD|RETURN|RTN|REVERS|INT(?:EREST)?{EDGE})"

_FEE_FOR = (
    "ACCOUNT|ACCT|SERVICE|SERVICING|SVC|PLAN|MONTHLY|TRANSACTION|TRANS?|TRANSFER|HONOUR|LATE|PAYMENT|OVERDRAWN?|OVERDRAFT|"
    "OVERLIMIT|LIMIT|ADVANCE|LINE|LOAN|APPROVAL|ACCESS|CONNECT|MERCHANT|BANK|CARD|ANNUAL|HANDLING|WITHDRAWAL|ADMIN|"
    "ESTABLISHMENT|DEP|UNPAID|TERMINAL"
)
# Signs of the channel where there is no rail. The first sign in the text counts; of two at one place, the first here.
SIGNS_OF_CHANNEL: Sequence[tuple[str, str]] = (
    (
        "fee",
        any_of(
            any_of(_FEE_FOR, "(?:DIRECT (?:DEBIT|CREDIT) |DD )?DISHONOU?R", "(?:ATM|COMMBIZ|COIN)(?: [A-Z]{1,12}){0,2}")
            + " FEES?",
            "ACCOUNT KEEPING",
        ),
    ),
    ("atm", "(?:REDI)?ATM|HANDYBANK"),
    ("interest", "INTEREST"),
    ("bpay", "(?:NETBANK |COMMBANK APP )?BPAY"),
    ("cheque", "(?:DEPOSIT )?(?:CHEQUES?|CHE?QS?)"),
    ("cash", "CASH (?:DEPOSIT|WITHDRAWAL|DEP|WDL)|OVER THE COUNTER|DEPOSIT(?:-| -)? ?CASH|(?:COUNTER|COIN) DEPOSIT"),
    ("npp", "OSKO|PAYID|PAYTO|NPP"),
    ("international", "SWIFT|TELEGRAPHIC TRANSFER|OVERSEAS (?:PAYMENT|TRANSFER)|CONVERTED"),
    ("direct_debit", "DIRECT DEBIT|EZIDEBIT|D/D$"),
    ("eftpos", "(?:EFTPOS|POS)$"),
    ("card", "VD[PC]$"),
    ("direct_credit", "DIRECT CREDIT|SALARY DEPOSIT"),
    (
        "transfer",
        any_of(
            *("NETBANK", "COMMBANK APP", "COMMBIZ", "LINKED ACC", "T(?:RANS)?FE?R", "ONLINE [A-Z][0-9]{8,12}"),
            *("PAYMENT RECEIVED", "PAYMENT,? ?-? THANK", "INTERNET PAYMENT"),
        ),
    ),
)
_SIGNS = EDGE + any_of(*(words for _, words in SIGNS_OF_CHANNEL)) + EDGE
_ADDRESSED = f"{EDGE}(?:PAYID|OSKO|PAYTO){EDGE}"

_NUMBERS = {name: number for number, name in enumerate(Channel.categories)}  # numbers are faster to compare than names


def extract_rail(text: pl.Expr) -> pl.Expr:
    """Return the opening of `text` that names the rail, with the separator after it; null where there is none."""
    may_have_one = ~text.str.contains(_NOT_A_RAIL)
    shared = pl.when(may_have_one).then(text.str.extract(_RAIL, 0))
    remaining = pl.when(may_have_one & shared.is_null()).then(
        text
    )  # fewer are searched for the rails of other countries
    abroad = remaining.str.extract(_rail_abroad(), 0)
    by_the_bank = remaining.str.strip_prefix(abroad).str.contains(_BY_THE_BANK)
    return pl.coalesce(shared, pl.when(~by_the_bank).then(abroad))


@cache
def _rail_abroad() -> str:
    return "^" + any_of(*(openings for _, openings in load_openings())) + _END + _AFTER


@cache
def number_of_rail() -> pl.Expr:
    """Return the number of the channel that the column `rail` names; null where there is no rail."""
    shared = _match_first(pl.col("rail"), RAILS, f"(?:{EDGE}|$)")
    remaining = pl.when(shared.is_null()).then("rail")
    return pl.coalesce(shared, _match_first(remaining, load_openings(), f"(?:{_END}|$)"))


def is_rail_of(*channels: str) -> pl.Expr:
    """Return whether the column `named` (of `number_of_rail`) is one of the channels."""
    return pl.col("named").is_in([_NUMBERS[channel] for channel in channels]).fill_null(value=False)


def add_channel(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add `channel`: named by the rail, else by a card's number or other words; `other` if there is no sign.

    Args:
        frame: columns `text`, `rail`, `named`, `by_card` (whether a card's number or a terminal's place is printed)
            and `abroad` (whether an amount in another currency is printed).
    """
    unnamed = pl.when(pl.col("named").is_null()).then("text")
    return (
        frame.with_columns(sign=unnamed.str.extract(_SIGNS, 0))
        .with_columns(read=_number_of_sign())
        .with_columns(found=_choose_channel())
        .with_columns(channel=_refine_transfers().cat.to(Channel))
    )


@cache
def _number_of_sign() -> pl.Expr:
    return _match_first(pl.col("sign"), SIGNS_OF_CHANNEL, "$")


def _match_first(text: pl.Expr, wordings: Iterable[tuple[str, str]], end: str) -> pl.Expr:
    """Return the number of the first channel whose wording `text` starts with."""
    return pl.coalesce(
        pl.when(text.str.contains(f"^(?:{wording}){end}")).then(_number(channel)) for channel, wording in wordings
    )


@cache
def _choose_channel() -> pl.Expr:
    """Choose the channel. A card's number counts more than words, except words for cash, an ATM or a fee."""
    stronger = pl.col("read").is_in([_NUMBERS[name] for name in ("atm", "cash", "fee")]).fill_null(value=False)
    card = pl.when("by_card", ~stronger).then(_number("card"))
    foreign_card = pl.when("abroad").then(_number("card"))
    return pl.coalesce("named", card, "read", foreign_card, _number("other"))


@cache
def _refine_transfers() -> pl.Expr:
    """Change transfers to `npp` if their text names a service of the New Payments Platform."""
    transfers = pl.when(pl.col("found") == _NUMBERS["transfer"]).then("text")
    npp = pl.when(transfers.str.contains(_ADDRESSED)).then(_number("npp"))
    return pl.coalesce(npp, "found")


def _number(channel: str) -> pl.Expr:
    return pl.lit(_NUMBERS[channel], pl.UInt8)
