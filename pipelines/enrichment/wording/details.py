"""Split descriptions into fields and a clean description.

Banks print how a payment was made into the same text as its purpose: the rail, a card, a date, a receipt, the
terminal's suburb, an amount in another currency. `read_details` moves each into its own field. The rest is the clean
description: the counterparty and the purpose. Words that a person typed stay, and numbers that distinguish one payment
from the next become the reference. When in doubt, keep a word: a superfluous number does less harm than half a name.

Texts are processed by column: first, everything with a label of its own is cut, wherever it is; then the rail at the
start; then codes, dates and the place. Each cut includes the space before it.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.wording.channels import add_channel, extract_rail, is_rail_of, number_of_rail
from pipelines.enrichment.wording.foreign import AROUND, FOREIGN, extract_foreign, parse_amount, parse_currency
from pipelines.enrichment.wording.places import PHONE, extract_place, format_location
from pipelines.enrichment.wording.rails import load_cuts, load_glued
from pipelines.enrichment.wording.value_dates import CLOCK, UNLABELLED, VALUE_DATE, add_stated_day
from pipelines.enrichment.wording.wording import EDGE, any_of
from pipelines.vocabulary.schemas import MONEY, Channel

DETAILS = pl.Schema(
    {
        "clean_description": pl.String(),
        "channel": Channel,
        "reference": pl.String(),
        "location": pl.String(),
        "card_last_four": pl.String(),
        "stated_day": pl.Int8(),  # of the value date as printed; see `add_effective_date`
        "stated_month": pl.Int8(),
        "stated_year": pl.Int32(),  # null where none is printed
        "foreign_amount": MONEY,
        "foreign_currency": pl.String(),
        "other_account": pl.String(),
    }
)
_SLICE = 131_072  # texts at a time: small enough for the processor's cache, with enough slices for every core

# Zero-width and bidirectional marks are removed. Typographic dashes and quotes are replaced by plain ones.
_UNSEEN = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_TYPOGRAPHIC = {"\u2010-\u2015\u2212": "-", "\u2018\u2019\u02bc\u00b4": "'", "\u201c\u201d": '"'}

_MASKED = "[X*]{2,12}[ -]?[0-9]{3,4}"
# Bendigo breaks the number before its last digit.
_CARD = f"{EDGE}CARD" + any_of(
    rf"(?: NO\.?| NUMBER| ENDING(?: IN)?)?:? (?:[0-9]{{4,6}})?{_MASKED}(?: [0-9]{EDGE})?",
    rf"(?: NO\.?| NUMBER| ENDING(?: IN)?)?:? [0-9]{{4}}{EDGE}",
)
_CARD_OF_LLOYDS = f"CD [0-9]{{4}}{EDGE}"
_RECEIPT = rf"{EDGE}(?:RECEIPT(?: NO\.?)? |REF\.)[0-9]{{4,12}}{EDGE}"
_BY_BANK_APP = f"(?:NETBANK|COMMBANK APP|COMMBIZ)(?: BPAY(?: [0-9]{{3,7}})?)?{EDGE}"  # with the biller's code
_GLUED_PHONE = f"([A-Z]{{3}})({PHONE})"  # of America: CONSOLIDATED COMMUNICATIO844-968-7224
_INVOICE = (
    f"{EDGE}INV"
    + any_of(r"(?:OICE)?S?(?: (?:NO\.?|NUMBER|NUM))?[ :#.-]{1,3}(?:[A-Z]{1,4}-?)?[0-9][0-9A-Z/-]{0,14}", "[0-9]{1,14}")
    + f"(?: [0-9]{{3,8}}{EDGE}){{0,3}}{EDGE}"
)
_TRANSFER = "(?:TRANSFER|TFR|TFER|REDRAW|PAYMENT)(?: [0-9]{4,12})? (?:TO|FROM)(?: [A-Z]{1,12}){0,4}"
_ACCOUNT = EDGE + any_of(
    f"{_TRANSFER} (?:X{{2,9}}[0-9]{{3,4}}|[0-9]{{3}}-?[0-9]{{3}} [0-9]{{5,10}}|ENDING [0-9]{{4}}){EDGE}",
    # Payments from internet banking are never by card, so a masked number there is an account's.
    f"INTERN(?:ET|AL) (?:TRANSFER|WITHDRAWAL|DEPOSIT) (?:.{{1,40}} )?X{{2,9}}[0-9]{{3,4}}{EDGE}",
    f"(?:TO|FROM) [0-9]{{6,17}}{EDGE}",
    f"(?:TO|FROM|TFR|LINKED ACC TRNS) X{{2,9}}[0-9]{{3,4}}{EDGE}",
)
# A number of five or more digits, with the letters around it; or letters and digits that alternate four times or more.
_CODE = EDGE + any_of(
    f"(?:[A-Z]{{1,10}}-){{0,2}}(?:[0-9]{{0,3}}[A-Z]{{1,4}}-?)?[0-9]{{5,24}}[A-Z]{{0,3}}(?:-[0-9A-Z]{{1,9}}){{0,3}}{EDGE}",
    f"(?:[A-Z]{{2,10}}-)?[0-9]?[A-Z]{{1,4}}[0-9]{{1,12}}[A-Z]{{1,9}}[0-9][A-Z0-9]{{2,20}}{EDGE}",
)
_DIGITS = f"#?[0-9]{{7,24}}{EDGE}"  # at the end of a longer word
# The bank's own number within the rail. Six digits after direct entry are the user's id, not the payment's number.
_BANK_NUMBER = any_of(
    f"(?:ONLINE|MOBILE|PAYMENT|TRANSFER|TFR|TFER|ANYONE|DEBIT|DEPOSIT) [A-Z]?[0-9]{{4,14}}{EDGE}",
    f"DIRECT (?:DEBIT|CREDIT) [0-9]{{7,10}}{EDGE}",
)

# Cut from what follows the rail. Of a longer word, only the digits at its end are cut.
_NOISE = any_of(
    "(?:^| )[(#:*-]?"
    + any_of(
        _INVOICE,
        PHONE,
        rf"(?:BWA )?REF(?:ERENCE)?(?: NO\.?| NUMBER)?[ :.#]{{1,2}}[A-Z]{{0,8}}-?[0-9]{{4,20}}{EDGE}",
        "REF:",
        f"BPAY(?: TO)?{EDGE}",
        f"(?:REC|MID|TID|AUTH|TRACE) [0-9]{{5,12}}{EDGE}",
        f"DIRECT DEBIT [0-9]{{6}}{EDGE}",
        f"ONLINE [A-Z][0-9]{{8,12}}{EDGE}",
        f"ENDING [0-9]{{4}}{EDGE}",
        f"LINKED ACC TRNS X{{2,9}}[0-9]{{4}}{EDGE}",
        f"[0-9]{{3}}-[0-9]{{3}}(?: [0-9]{{5,10}})?{EDGE}",
        f"(?:[0-9]{{4,6}})?{_MASKED}{EDGE}",
        r"\{[^}]{0,80}\}",
        UNLABELLED,
        _CODE,
    )
    + r"\)?",
    _DIGITS,
)
_LOOSE = " -,:;\\/#*("  # signs that mean nothing at either end of a text


def read_details(texts: pl.Series) -> pl.DataFrame:
    """Read the fields of each text: one row per text, in the same order, columns DETAILS.

    Args:
        texts: distinct descriptions from `matching_text` (compatibility form, upper case, single spaces).

    Returns:
        `clean_description` is never empty: a text with nothing but noise stays whole. `foreign_amount` is as printed
        and positive, in `foreign_currency` (ISO 4217). `other_account` has the last four digits of the account that the
        text names as the other side.
    """
    slices = (texts.slice(start, _SLICE) for start in range(0, max(len(texts), 1), _SLICE))
    return pl.concat(pl.collect_all([_read_slice(part) for part in slices], engine="in-memory"), rechunk=True)


def _read_slice(texts: pl.Series) -> pl.LazyFrame:
    return (
        pl.LazyFrame({"whole": texts, "text": _make_readable(texts)}, {"whole": pl.String, "text": pl.String})
        .pipe(_add_account)
        .pipe(_add_labelled)
        .pipe(_split_rail)
        .pipe(_add_remainder)
        .pipe(add_channel)
        .pipe(add_stated_day)
        .pipe(_fill_empty)
        .select(_details())
    )


@cache
def _details() -> list[pl.Expr]:
    """Return the columns DETAILS."""
    return [
        pl.col("clean_description", "channel"),
        _reference(),
        format_location(pl.col("place")).alias("location"),
        _last_four(pl.coalesce("card", pl.col("rail").str.extract(f"^V?[0-9]{{4}}{EDGE}", 0))).alias("card_last_four"),
        pl.col("stated_day", "stated_month", "stated_year"),
        parse_amount(pl.col("foreign")).alias("foreign_amount"),
        parse_currency(pl.col("foreign")).alias("foreign_currency"),
        _last_four(pl.coalesce("account", pl.when(_is_between_own()).then("code"))).alias("other_account"),
    ]


def _make_readable(texts: pl.Series) -> pl.Series:
    """Remove invisible marks, replace typographic signs by plain ones, and separate a telephone number from a name.

    Only the few texts that have such are touched.
    """
    unusual = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    seen = texts.gather(unusual).str.replace_all(f"[{_UNSEEN}]", "")
    for signs, plain in _TYPOGRAPHIC.items():
        seen = seen.str.replace_all(f"[{signs}]", plain)
    plain_texts = texts.clone().scatter(unusual, seen)
    glued = plain_texts.str.contains(_GLUED_PHONE).arg_true()
    return plain_texts.scatter(glued, plain_texts.gather(glued).str.replace(_GLUED_PHONE, "$1 $2"))


def _add_account(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add the other side's account, and cut its masked number from the text, so that it is not read as a card's."""
    naming = pl.when(pl.col("account").is_not_null()).then("text")
    return frame.with_columns(account=pl.col("text").str.extract(_ACCOUNT, 0)).with_columns(
        text=pl.coalesce(naming.str.replace(f" X{{2,9}}[0-9]{{3,4}}{EDGE}", ""), "text")
    )


def _add_labelled(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add the fields that a label or a typical form marks anywhere in the text, and `bare`, the text without them."""
    marked = pl.when(pl.col("bare").str.len_bytes() < pl.col("text").str.len_bytes()).then("text")
    return (
        frame.with_columns(bare=pl.col("text").str.replace_all(_pattern_to_cut(), ""))
        .with_columns(marked=marked)
        .with_columns(
            card=pl.col("marked").str.extract(any_of(_CARD, EDGE + _CARD_OF_LLOYDS), 0),
            value_date=pl.col("marked").str.extract(VALUE_DATE, 0),
            receipt=pl.col("marked").str.extract(_RECEIPT, 0),
            foreign=extract_foreign(pl.col("marked")),
        )
    )


@cache
def _pattern_to_cut() -> str:
    """Return a pattern for what is cut before the rail is searched for.

    It may occur inside the rail, or must not be taken for a code.
    """
    return any_of(
        r"(?:^| )(?:- |\()?"
        + any_of(
            f"(?:VISA |DEBIT )?{any_of(_CARD, _CARD_OF_LLOYDS)}",
            VALUE_DATE,
            _RECEIPT,
            f"TIME {CLOCK}{EDGE}",
            FOREIGN,
            AROUND,
            f"(?:TO )?PAYID PHONE(?: FROM)?{EDGE}",
            f"VIA PAYID{EDGE}",
            f"PAYID [0-9X+]{{8,14}}{EDGE}",
            "TAP AND PAY",
            "E2E REF NOTPROVIDED",
            _BY_BANK_APP,
            load_cuts(),
        )
        + r"\)?",
        r" ?\(REF\.[0-9]{4,12}\)",
        load_glued(),
    )


def _split_rail(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Split `bare` into `rail` and `rest`. If the other side's account number begins the rest, it is removed."""
    rest = pl.col("bare").str.strip_prefix(pl.col("rail").fill_null(""))
    number = pl.col("account").str.extract("[0-9]{6,17}$", 0).fill_null("")
    return frame.with_columns(rail=extract_rail(pl.col("bare"))).with_columns(
        rest=rest.str.strip_prefix(number), named=number_of_rail()
    )


def _add_remainder(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add the code, invoice and place, and `remainder`: the rest without them and without dates."""
    rest = pl.col("rest")
    return (
        frame.with_columns(
            code=rest.str.extract(any_of(_CODE, _DIGITS), 0),
            invoice=rest.str.extract(_INVOICE, 0),
            remainder=rest.str.replace_all(_NOISE, "").str.strip_chars(_LOOSE),
            abroad=pl.col("foreign").is_not_null(),
        )
        .with_columns(
            place=extract_place(pl.col("remainder"), rest, _by_card(), pl.col("abroad"), _on_rail(), _is_bare())
        )
        .with_columns(
            remainder=pl.col("remainder").str.strip_suffix(pl.col("place").fill_null("")).str.strip_chars(_LOOSE),
            by_card=pl.col("card").is_not_null() | pl.col("place").is_not_null(),
        )
    )


@cache
def _by_card() -> pl.Expr:
    """Return whether a card or its rail is named, or the merchant is printed as acquirers do (`SQ *CAFE`).

    NAB's card rail (V1234) does not count, because NAB prints no country after the place.
    """
    of_nab = pl.col("rail").str.contains("^V[0-9]")
    starred = pl.col("rest").str.contains("*", literal=True)
    return pl.col("card").is_not_null() | (is_rail_of("card", "eftpos") & ~of_nab) | starred


@cache
def _on_rail() -> pl.Expr:
    """Return whether a card or any rail of cards is named."""
    return pl.col("card").is_not_null() | is_rail_of("card", "eftpos")


@cache
def _is_bare() -> pl.Expr:
    """Return whether the text has neither a rail nor any number."""
    return pl.col("rail").is_null() & ~pl.col("whole").str.contains("[0-9]")


@cache
def _reference() -> pl.Expr:
    """Return the reference: an invoice's number, else a biller's or merchant's code, else the bank's own number."""
    of_account = pl.col("account").str.contains(pl.col("code"), literal=True).fill_null(value=False)
    code = pl.when(~of_account & ~_is_between_own()).then(pl.col("code").str.strip_prefix("#"))
    by_bank = pl.coalesce("receipt", pl.col("rail").str.extract(_BANK_NUMBER, 0)).str.extract("[A-Z]?[0-9]+$", 0)
    return pl.coalesce("invoice", code, by_bank).alias("reference")


@cache
def _is_between_own() -> pl.Expr:
    """Return whether the code in the text is an account: ING prints it as other banks print a biller's code."""
    return pl.col("rail").str.starts_with("INTERNAL TRANSFER").fill_null(value=False)


def _last_four(number: pl.Expr) -> pl.Expr:
    return number.str.replace_all(" ", "", literal=True).str.extract("[0-9]{3,4}$", 0)


def _fill_empty(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Fill an empty clean description with the rail's words, or with the whole text if there are none.

    Where only a place follows the rail, the word CARD stands for it: some rails look like a name (DEB, CNC).
    """
    empty = pl.col("remainder").str.len_bytes() < 2
    words = pl.when(empty).then("rail").str.extract(f"^[A-Z /-]*[A-Z]{EDGE}", 0).str.replace(" (?:TO|FROM)$", "")
    instead = (
        pl.when(pl.col("place").is_not_null())
        .then(pl.lit("CARD"))
        .when(pl.col("words").str.len_bytes() > 1)
        .then("words")
    )
    return frame.with_columns(words=words).with_columns(
        clean_description=pl.when(empty).then(pl.coalesce(instead, "whole")).otherwise("remainder")
    )
