"""What a description tells besides whom it is about: taken out of the text, and kept in fields of its own.

Banks write the way a payment took into the same text as its purpose: the rail, a card, a date, a receipt, the
terminal's suburb, an amount in another currency. `details` finds each and leaves the rest as the clean description:
whom the payment is with, and what for. Words that a person typed stay; numbers that tell one payment from the next
become the reference. In doubt a word stays: a number too many is read past, half a name misleads.

Texts are worked on by columns, in four steps: what a label of its own marks is cut wherever it stands, then the rail
at the start, then codes, dates and the place from what is left. Noise is cut with the space before it.
"""

import polars as pl

from pipelines.enrichment.wording.channels import add_channel, extract_rail, is_rail_of, number_of_rail
from pipelines.enrichment.wording.foreign import AROUND, FOREIGN, extract_foreign, parse_amount, parse_currency
from pipelines.enrichment.wording.places import extract_place, format_location
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
        "stated_day": pl.Int8(),  # of the value date as printed; see `effective_date`
        "stated_month": pl.Int8(),
        "stated_year": pl.Int32(),  # null where none is printed
        "foreign_amount": MONEY,
        "foreign_currency": pl.String(),
        "other_account": pl.String(),
    }
)
_SLICE = 131_072  # texts worked on at a time: slices keep every core busy, and their columns near it

# Zero-width and bidirectional signs are not seen, so not read. Typographic dashes and quotes read as the plain ones.
_UNSEEN = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_TYPOGRAPHIC = {"\u2010-\u2015\u2212": "-", "\u2018\u2019\u02bc\u00b4": "'", "\u201c\u201d": '"'}

_MASKED = "[X*]{2,12}[ -]?[0-9]{3,4}"
# Bendigo breaks the number before its last digit.
_CARD = f"{EDGE}CARD" + any_of(
    rf"(?: NO\.?| NUMBER| ENDING(?: IN)?)?:? (?:[0-9]{{4,6}})?{_MASKED}(?: [0-9]{EDGE})?",
    rf"(?: NO\.?| NUMBER| ENDING(?: IN)?)?:? [0-9]{{4}}{EDGE}",
)
_RECEIPT = rf"{EDGE}(?:RECEIPT(?: NO\.?)? |REF\.)[0-9]{{4,12}}{EDGE}"
_BY_BANK_APP = f"(?:NETBANK|COMMBANK APP|COMMBIZ)(?: BPAY(?: [0-9]{{3,7}})?)?{EDGE}"  # with the biller's code
_INVOICE = (
    f"{EDGE}INV"
    + any_of(r"(?:OICE)?S?(?: (?:NO\.?|NUMBER|NUM))?[ :#.-]{1,3}(?:[A-Z]{1,4}-?)?[0-9][0-9A-Z/-]{0,14}", "[0-9]{1,14}")
    + f"(?: [0-9]{{3,8}}{EDGE}){{0,3}}{EDGE}"
)
_TRANSFER = "(?:TRANSFER|TFR|TFER|REDRAW|PAYMENT)(?: [0-9]{4,12})? (?:TO|FROM)(?: [A-Z]{1,12}){0,4}"
_ACCOUNT = EDGE + any_of(
    f"{_TRANSFER} (?:X{{2,9}}[0-9]{{3,4}}|[0-9]{{3}}-?[0-9]{{3}} [0-9]{{5,10}}|ENDING [0-9]{{4}}){EDGE}",
    # Through the bank's own pages no card pays: the masked number is the account's.
    f"INTERN(?:ET|AL) (?:TRANSFER|WITHDRAWAL|DEPOSIT) (?:.{{1,40}} )?X{{2,9}}[0-9]{{3,4}}{EDGE}",
    f"(?:TO|FROM) [0-9]{{6,17}}{EDGE}",
    f"(?:TO|FROM|TFR|LINKED ACC TRNS) X{{2,9}}[0-9]{{3,4}}{EDGE}",
)
# A number of five or more digits, with the letters around it; or letters and digits in four or more turns.
_CODE = EDGE + any_of(
    f"(?:[A-Z]{{1,10}}-){{0,2}}(?:[0-9]{{0,3}}[A-Z]{{1,4}}-?)?[0-9]{{5,24}}[A-Z]{{0,3}}(?:-[0-9A-Z]{{1,9}}){{0,3}}{EDGE}",
    f"(?:[A-Z]{{2,10}}-)?[0-9]?[A-Z]{{1,4}}[0-9]{{1,12}}[A-Z]{{1,9}}[0-9][A-Z0-9]{{2,20}}{EDGE}",
)
_DIGITS = f"#?[0-9]{{7,24}}{EDGE}"  # at the end of a longer word
# The bank's own number within the rail. The six digits of a direct entry are the user's, not the payment's.
_BANK_NUMBER = any_of(
    f"(?:ONLINE|MOBILE|PAYMENT|TRANSFER|TFR|TFER|ANYONE|DEBIT|DEPOSIT) [A-Z]?[0-9]{{4,14}}{EDGE}",
    f"DIRECT (?:DEBIT|CREDIT) [0-9]{{7,10}}{EDGE}",
)

# Cut before the rail is looked for: what may stand inside it, and what must not be taken for a code.
_LABELLED = any_of(
    r"(?:^| )(?:- |\()?"
    + any_of(
        f"(?:VISA |DEBIT )?{_CARD}",
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
    )
    + r"\)?",
    r" ?\(REF\.[0-9]{4,12}\)",
)
# Cut from what follows the rail; of a longer word, only its digits.
_NOISE = any_of(
    "(?:^| )[(#:*-]?"
    + any_of(
        _INVOICE,
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
_LOOSE = " -,:;\\/#*("  # signs that mean nothing at either end


def read_details(texts: pl.Series) -> pl.DataFrame:
    """What each text tells: one row a text, in their order, columns DETAILS.

    Args:
        texts: distinct descriptions as `matching_text` writes them (compatibility form, upper case, single spaces).

    Returns:
        `clean_description` is never empty: where a text holds nothing but noise, it stays whole. `foreign_amount` is
        as printed and positive, in `foreign_currency` (ISO 4217). `other_account` holds the last four digits of the
        account that the text names as the other side.
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
        .select(
            "clean_description",
            "channel",
            _reference(),
            format_location(pl.col("place")).alias("location"),
            _last_four(pl.coalesce("card", pl.col("rail").str.extract("^V[0-9]{4}", 0))).alias("card_last_four"),
            "stated_day",
            "stated_month",
            "stated_year",
            parse_amount(pl.col("foreign")).alias("foreign_amount"),
            parse_currency(pl.col("foreign")).alias("foreign_currency"),
            _last_four(pl.coalesce("account", pl.when(_between_own()).then("code"))).alias("other_account"),
        )
    )


def _make_readable(texts: pl.Series) -> pl.Series:
    """Without signs that are not seen, and with typographic ones as plain ones. Few texts hold any."""
    unusual = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    seen = texts.gather(unusual).str.replace_all(f"[{_UNSEEN}]", "")
    for signs, plain in _TYPOGRAPHIC.items():
        seen = seen.str.replace_all(f"[{signs}]", plain)
    return texts.clone().scatter(unusual, seen)


def _add_account(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The other side's account, before its masked number is read as a card's."""
    naming = pl.when(pl.col("account").is_not_null()).then("text")
    return frame.with_columns(account=pl.col("text").str.extract(_ACCOUNT, 0)).with_columns(
        text=pl.coalesce(naming.str.replace(f" X{{2,9}}[0-9]{{3,4}}{EDGE}", ""), "text")
    )


def _add_labelled(frame: pl.LazyFrame) -> pl.LazyFrame:
    """What a word or a form of its own marks, wherever it stands; and, as `bare`, the text without it."""
    marked = pl.when(pl.col("bare").str.len_bytes() < pl.col("text").str.len_bytes()).then("text")
    return (
        frame.with_columns(bare=pl.col("text").str.replace_all(_LABELLED, ""))
        .with_columns(marked=marked)
        .with_columns(
            card=pl.col("marked").str.extract(_CARD, 0),
            value_date=pl.col("marked").str.extract(VALUE_DATE, 0),
            receipt=pl.col("marked").str.extract(_RECEIPT, 0),
            foreign=extract_foreign(pl.col("marked")),
        )
    )


def _split_rail(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The rail, and the rest: without the number of the other side's account where it follows."""
    rest = pl.col("bare").str.strip_prefix(pl.col("rail").fill_null(""))
    number = pl.col("account").str.extract("[0-9]{6,17}$", 0).fill_null("")
    return frame.with_columns(rail=extract_rail(pl.col("bare"))).with_columns(
        rest=rest.str.strip_prefix(number), named=number_of_rail(pl.col("rail"))
    )


def _add_remainder(frame: pl.LazyFrame) -> pl.LazyFrame:
    """What is left as `kept` when codes, dates and the terminal's place are taken off the rest."""
    rest = pl.col("rest")
    return (
        frame.with_columns(
            code=rest.str.extract(any_of(_CODE, _DIGITS), 0),
            invoice=rest.str.extract(_INVOICE, 0),
            remainder=rest.str.replace_all(_NOISE, "").str.strip_chars(_LOOSE),
            abroad=pl.col("foreign").is_not_null(),
        )
        .with_columns(place=extract_place(pl.col("remainder"), _by_card(), pl.col("abroad")))
        .with_columns(
            remainder=pl.col("remainder").str.strip_suffix(pl.col("place").fill_null("")).str.strip_chars(_LOOSE),
            by_card=pl.col("card").is_not_null() | pl.col("place").is_not_null(),
        )
    )


def _by_card() -> pl.Expr:
    """A card is named, or its rail; or the merchant is written as acquirers do (`SQ *CAFE`). NAB prints no country."""
    of_nab = pl.col("rail").str.contains("^V[0-9]")
    starred = pl.col("rest").str.contains("*", literal=True)
    return pl.col("card").is_not_null() | (is_rail_of("card", "eftpos") & ~of_nab) | starred


def _reference() -> pl.Expr:
    """What a person numbered, before what a biller or a merchant did, before the bank's own number."""
    of_account = pl.col("account").str.contains(pl.col("code"), literal=True).fill_null(value=False)
    code = pl.when(~of_account & ~_between_own()).then(pl.col("code").str.strip_prefix("#"))
    by_bank = pl.coalesce("receipt", pl.col("rail").str.extract(_BANK_NUMBER, 0)).str.extract("[A-Z]?[0-9]+$", 0)
    return pl.coalesce("invoice", code, by_bank).alias("reference")


def _between_own() -> pl.Expr:
    """ING names the account by its number, as others do a biller's."""
    return pl.col("rail").str.starts_with("INTERNAL TRANSFER").fill_null(value=False)


def _last_four(number: pl.Expr) -> pl.Expr:
    return number.str.replace_all(" ", "", literal=True).str.extract("[0-9]{3,4}$", 0)


def _fill_empty(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Where nothing was kept, the rail's own words; where there are none, the whole text."""
    empty = pl.col("remainder").str.len_bytes() < 2
    words = pl.when(empty).then("rail").str.extract("^[A-Z /-]*[A-Z]", 0).str.replace(" (?:TO|FROM)$", "")
    said = pl.when(pl.col("words").str.len_bytes() > 1).then("words")
    return frame.with_columns(words=words).with_columns(
        clean_description=pl.when(empty).then(pl.coalesce(said, "whole")).otherwise("remainder")
    )
