"""Find the customer's own accounts that texts name by their last digits, including accounts that were not supplied.

Banks print the other side of a transfer as `xx4821`, or as the whole number with or without its BSB. An earlier step
has read these digits into `other_account`. They name an account whose number ends with them. If no supplied account
does, the customer has an account that was not supplied, which matters for the completeness report.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.transfers.banks import look_up_bank
from pipelines.vocabulary.schemas import current, most_frequent
from pipelines.vocabulary.taxonomy import TAXONOMY, TRANSFER

_SUM = pl.Decimal(38, 2)  # of a history, AUD
MENTIONED = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "masked_number": pl.String(),  # `xx` and up to four digits; null if texts print none
        "name": pl.String(),  # its most frequent name in texts
        "bank": pl.String(),  # by the BSB in texts (`banks`): evidence, not proof; null if texts print none
        "direction": pl.String(),  # `in`: money comes from there; `out`; `both`
        "count": pl.UInt32(),
        "total_in": _SUM,  # AUD that came from there, never negative
        "total_out": _SUM,  # AUD that went there, never negative
        "first_date": pl.Date(),
        "last_date": pl.Date(),
    }
)
SHOWN_DIGITS = 4
MIN_DIGITS = 3  # two digits fit too many accounts
_CARD_REPAYMENT = TAXONOMY.categories["card_repayment"]
# The payment's own number, after the name of the account: `TO VISA 8670 REFERENCE NO 76796904`.
_REFERENCE = r"(?i)[ ({-]+(?:ref|receipt)[a-z]*(?:[ .:#-]+(?:no|number))?[ .:#-]*[a-z0-9-]*[)}]?$"
# A transfer to an own card, named by its last digits: `TRANSFER 71Q4 CARD 9242`, `Internet Transfer to Card 7691`.
_OWN_CARD = (
    r"(?i)\b(?:tfr|transfer|payment)\b.*\b[a-z]*(?:card|visa)\b"
    r"[^0-9]*(?:[0-9]{4,6}[ -]?[x*][x* -]*)?([0-9]{4})$"  # a card's number is masked in its middle
)
# A transfer to an own account, named by the last digits of its number after words: `TFR WESTPAC BUS 3950`.
_OWN_ACCOUNT = r"(?i)\b(?:tfr|transfer)\b[^0-9]*[a-z][^0-9]*[ x*·]([0-9]{4})$"
_YEAR = "^20[0-9]{2}$"
# A text that has only these words names no account: a payment to anybody may begin with them.
_RAIL_WORDS = (
    r"(?i)\b(?:e-?banking|internet|online|mobile|phone|netbank|banking|electronic|funds?|transfer|transf|tfr|tfer|trf|"
    r"xfer|payment|pymt|debit|credit|deposit|withdrawal|to|from|in|out)\b"
)
GUESS = 0.8  # an answer of the model with less confidence is not evidence (our judgement)
_SET_BY_CLIENT = ("client_rule", "correction")  # the client knows whose account it is
_KINDS_OF_OTHERS = ("business", "government", "processor")  # kinds of counterparties that are not the customer itself
_NAME_HERE = ("customer_number", "account_id", "name")
_BSB = r"\b([0-9]{3}-?[0-9]{3}) ?[0-9]{5,10}\b"  # followed by an account's number


def list_accounts(rows: pl.DataFrame) -> pl.DataFrame:
    """List the customers' accounts: `customer_number`, `account_id`, and `account_digits`, BSB and number joined.

    For a masked number, `account_digits` is the visible end; null if fewer than MIN_DIGITS are known.
    """
    number = pl.col("account_number").str.replace_all(r"[\s-]", "")
    bsb = pl.col("bsb").str.replace_all(r"\D", "").fill_null("")
    end = pl.coalesce(bsb + number.str.extract(r"^(\d+)$"), number.str.extract(r"(\d+)$"))
    return (
        rows.group_by("customer_number", "account_id")
        .agg(pl.col("bsb", "account_number").drop_nulls().first())
        .select("customer_number", "account_id", account_digits=pl.when(end.str.len_chars() >= MIN_DIGITS).then(end))
    )


def add_named_account(rows: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """Add `named_account`, the id of the customer's account, other than the row's own, that the text names.

    It is null if the text names none, or if the numbers of several accounts end with its digits.

    Args:
        rows: with `customer_number`, `account_id` and `other_account`.
        accounts: from `list_accounts`.
    """
    key = ("customer_number", "account_id", "named")
    printed = rows.with_columns(named=_printed_digits())
    naming = printed.select(key).drop_nulls().unique()
    found = (
        naming.join(_last_digits(accounts, naming["named"]), on=("customer_number", "named"), suffix="_there")
        .filter(pl.col("account_id") != pl.col("account_id_there"))
        .group_by(key)
        .agg(named_account=pl.col("account_id_there").unique())
        .filter(pl.col("named_account").list.len() == 1)
        .with_columns(pl.col("named_account").list.first())
    )
    return printed.join(found, on=key, how="left", validate="m:1", maintain_order="left").drop("named")


def list_mentioned_accounts(rows: pl.DataFrame) -> pl.DataFrame:
    """List accounts that transfers mention and that were not supplied: MENTIONED, one row per account, sorted.

    Args:
        rows: enriched transactions (schema TRANSACTIONS).
    """
    found = find_mentions(rows).pipe(_group_by_account)
    return found.match_to_schema(MENTIONED).sort("customer_number", "masked_number", "name", nulls_last=True)


def find_mentions(rows: pl.DataFrame) -> pl.DataFrame:
    """Find the rows that mention an account that was not supplied.

    These are transfers between own accounts and card repayments whose other side was not found; payments with digits
    of an account but no named counterparty; and payments by transfer to an unknown counterparty. Digits of a supplied
    account don't count: there the other side is missing, not the account.

    Without digits, the name in the text identifies the account. That does not count if the text only says how the money
    moved, if it names somebody else, or if the model guessed the category, unless the client itself called it an own
    account. Nor does it count if the other side of at least half of the rows with that name is in supplied accounts.

    Returns:
        The rows with the account's `masked_number`, `bank` and `name`, and `place`, the name if there is no number.
        Number and place together identify an account.
    """
    one_sided = ~pl.col("is_transfer").fill_null(value=False)
    by_words = pl.col("category").is_in((TRANSFER.slug, _CARD_REPAYMENT.slug)).fill_null(value=False)
    to_nobody = pl.col("counterparty_name").is_null() | pl.col("counterparty_kind").is_null()
    digits = pl.col("other_account").is_not_null() | pl.col("description").str.contains("(?i)card|visa")
    candidates = rows.filter(current(), one_sided, by_words | (to_nobody & digits))
    with_digits = pl.col("named").is_not_null() & _names_account_number()
    mentions = candidates.with_columns(named=_digits_in_text(by_words)).filter(
        (by_words & _is_identified()) | with_digits
    )
    if mentions.is_empty():  # true for many customers
        return mentions.with_columns(
            pl.lit(None, pl.String).alias(name) for name in ("masked_number", "name", "bank", "place")
        )
    masked = pl.format("xx{}", pl.col("named").str.tail(SHOWN_DIGITS))
    return (
        mentions.pipe(_drop_digits_of_supplied, rows)
        .with_columns(
            masked_number=masked, name=_name_in_text(), bank=look_up_bank(pl.col("description").str.extract(_BSB))
        )
        .with_columns(place=pl.when(pl.col("masked_number").is_null()).then("name"))
        .pipe(_drop_names_of_supplied, rows)
    )


def _drop_digits_of_supplied(mentions: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    digits = mentions.drop_nulls("named")
    if digits.is_empty():  # true for most customers, and cutting their accounts' numbers still takes time
        return mentions
    numbers = rows.select("customer_number", "account_id", "bsb", "account_number")
    naming = numbers.join(digits, on="customer_number", how="semi")
    supplied = _last_digits(list_accounts(naming), digits["named"])
    return mentions.join(supplied, on=("customer_number", "named"), how="anti")


def _drop_names_of_supplied(mentions: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Drop mentions by name alone if at least as many rows with that name in the account have their other side."""
    lone = mentions.drop_nulls("place").group_by(_NAME_HERE).len("lone")
    if lone.is_empty():
        return mentions
    sides = rows.join(lone, on=_NAME_HERE[:2], how="semi").filter(current(), "is_transfer")
    found = sides.group_by(*_NAME_HERE[:2], name=_name_in_text()).len("found")
    of_supplied = lone.join(found, on=_NAME_HERE).filter(pl.col("found") >= pl.col("lone"))
    return mentions.join(of_supplied.with_columns(place="name"), on=(*_NAME_HERE, "place"), how="anti")


@cache
def _printed_digits() -> pl.Expr:
    digits = pl.col("other_account").str.extract(r"(\d+)$")
    return pl.when(digits.str.len_chars() >= MIN_DIGITS).then(digits)


def _digits_in_text(by_words: pl.Expr) -> pl.Expr:
    """Return the printed digits, or the last digits that the words before them show to be an account's."""
    text = _text_without_reference()
    account = text.str.extract(_OWN_ACCOUNT)
    between_own = by_words & ~account.str.contains(_YEAR)
    return pl.coalesce(_printed_digits(), text.str.extract(_OWN_CARD), pl.when(between_own).then(account))


@cache
def _text_without_reference() -> pl.Expr:
    return pl.col("description").str.replace(_REFERENCE, "")


@cache
def _is_identified() -> pl.Expr:
    """Return whether the account is identified: by its digits, by a name in the text, or by the client."""
    by_client = pl.col("category_source").is_in(_SET_BY_CLIENT).fill_null(value=False)
    called = _name_in_text().str.replace_all(_RAIL_WORDS, "").str.contains(r"\p{L}").fill_null(value=False)
    guessed = (pl.col("category_source") == "learned") & (pl.col("confidence") < GUESS)
    with_others = (pl.col("category") == TRANSFER.slug) & pl.col("counterparty_kind").is_in(_KINDS_OF_OTHERS)
    by_name = called & ~guessed.fill_null(value=False) & ~with_others.fill_null(value=False)
    return by_client | pl.col("named").is_not_null() | by_name


@cache
def _names_account_number() -> pl.Expr:
    """Return whether the digits are an account's number rather than part of a counterparty's name."""
    by_transfer = (pl.col("channel") == "transfer") | _text_without_reference().str.contains(_OWN_CARD)
    return pl.col("counterparty_name").is_null() | by_transfer.fill_null(value=False)


@cache
def _name_in_text() -> pl.Expr:
    return pl.coalesce("counterparty_name", "clean_description", "description")


def _last_digits(accounts: pl.DataFrame, digits: pl.Series) -> pl.DataFrame:
    """Cut account numbers to every length that texts print: `customer_number`, `account_id`, `named`.

    So accounts are found by equality, however many accounts there are and however many digits texts print.
    """
    lengths = digits.str.len_chars().unique().alias("length")
    return (
        accounts.drop_nulls()
        .join(lengths.to_frame(), how="cross")
        .filter(pl.col("account_digits").str.len_chars() >= pl.col("length"))
        .select("customer_number", "account_id", named=pl.col("account_digits").str.tail(pl.col("length")))
        .unique()
    )


def _group_by_account(mentions: pl.DataFrame) -> pl.DataFrame:
    amount = pl.col("amount")
    went, came = (amount < 0).any(), (amount > 0).any()
    return (
        mentions.group_by("customer_number", "masked_number", "place")
        .agg(
            name=most_frequent("name"),
            bank=most_frequent("bank"),
            direction=pl.when(went & came).then(pl.lit("both")).when(went).then(pl.lit("out")).otherwise(pl.lit("in")),
            count=pl.len(),
            total_in=amount.filter(amount > 0).sum(),
            total_out=-amount.filter(amount < 0).sum(),
            first_date=pl.col("date").min(),
            last_date=pl.col("date").max(),
        )
        .drop("place")
    )
