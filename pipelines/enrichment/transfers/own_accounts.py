"""The customer's own accounts as texts name them, by their last digits, and those named that nobody supplied.

Banks print the other side of a transfer as `xx4821`, or as the whole number with or without its BSB; a step before this
one has read such digits into `other_account`. They name an account whose number ends with them. Where they end the
number of none that was supplied, there is an account more than the statements show: evidence for completeness.
"""

import polars as pl

from pipelines.enrichment.transfers.banks import bank_of_bsb
from pipelines.vocabulary.schemas import current
from pipelines.vocabulary.taxonomy import TAXONOMY, TRANSFER

_SUM = pl.Decimal(38, 2)  # of a history, AUD
MENTIONED = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "masked_number": pl.String(),  # `xx` and up to four digits; null where texts give none
        "name": pl.String(),  # what texts call it most often
        "bank": pl.String(),  # whose BSB texts print: evidence, no proof (`banks`); null where they print none
        "direction": pl.String(),  # `in`: money comes from there; `out`; `both`
        "count": pl.UInt32(),
        "total_in": _SUM,  # AUD that came from there, never negative
        "total_out": _SUM,  # AUD that went there, never negative
        "first_date": pl.Date(),
        "last_date": pl.Date(),
    }
)
SHOWN_DIGITS = 4
FEWEST_DIGITS = 3  # two digits name too much
_CARD_REPAYMENT = TAXONOMY.categories["card_repayment"]
# Behind what is named, the payment's own number: `TO VISA 8670 REFERENCE NO 76796904`.
_REFERENCE = r"(?i)[ ({-]+(?:ref|receipt)[a-z]*(?:[ .:#-]+(?:no|number))?[ .:#-]*[a-z0-9-]*[)}]?$"
# A transfer to the own card, by its last digits: `TRANSFER 71Q4 CARD 9242`, `Internet Transfer to Card 7691`.
_OWN_CARD = (
    r"(?i)\b(?:tfr|transfer|payment)\b.*\b[a-z]*(?:card|visa)\b"
    r"[^0-9]*(?:[0-9]{4,6}[ -]?[x*][x* -]*)?([0-9]{4})$"  # a card's number is masked in its middle
)
# A transfer between own accounts, by the last digits of a number behind words: `TFR WESTPAC BUS 3950`.
_OWN_ACCOUNT = r"(?i)\b(?:tfr|transfer)\b[^0-9]*[a-z][^0-9]*[ x*·]([0-9]{4})$"
_YEAR = "^20[0-9]{2}$"
# Of a text that says nothing else, no account is known: the same words stand before a payment to anybody.
_RAIL_WORDS = (
    r"(?i)\b(?:e-?banking|internet|online|mobile|phone|netbank|banking|electronic|funds?|transfer|transf|tfr|tfer|trf|"
    r"xfer|payment|pymt|debit|credit|deposit|withdrawal|to|from|in|out)\b"
)
GUESS = 0.8  # what the model says with less is no evidence
_SET_BY_CLIENT = ("client_rule", "correction")  # who says so knows whose account it is
_KINDS_OF_OTHERS = ("business", "government", "processor")  # kinds of counterparties that are no account of one's own
_NAME_HERE = ("customer_number", "account_id", "name")
_BSB = r"\b([0-9]{3}-?[0-9]{3}) ?[0-9]{5,10}\b"  # before an account's number


def list_accounts(rows: pl.DataFrame) -> pl.DataFrame:
    """The customers' accounts: `customer_number`, `account_id`, and `account_digits`, BSB and number as one run.

    Of a masked number it is the unmasked end; null where less than FEWEST_DIGITS are known.
    """
    number = pl.col("account_number").str.replace_all(r"[\s-]", "")
    bsb = pl.col("bsb").str.replace_all(r"\D", "").fill_null("")
    end = pl.coalesce(bsb + number.str.extract(r"^(\d+)$"), number.str.extract(r"(\d+)$"))
    return (
        rows.group_by("customer_number", "account_id")
        .agg(pl.col("bsb", "account_number").drop_nulls().first())
        .select("customer_number", "account_id", account_digits=pl.when(end.str.len_chars() >= FEWEST_DIGITS).then(end))
    )


def add_named_account(rows: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """`named_account` filled: the id of the customer's account, other than the row's own, that the text names.

    Null where the text names none, or the numbers of several end with its digits.

    Args:
        rows: with `customer_number`, `account_id` and `other_account`.
        accounts: as `accounts_of` gives them.
    """
    key = ("customer_number", "account_id", "named")
    said = rows.with_columns(named=_printed_digits())
    naming = said.select(key).drop_nulls().unique()
    found = (
        naming.join(_last_digits(accounts, naming["named"]), on=("customer_number", "named"), suffix="_there")
        .filter(pl.col("account_id") != pl.col("account_id_there"))
        .group_by(key)
        .agg(named_account=pl.col("account_id_there").unique())
        .filter(pl.col("named_account").list.len() == 1)
        .with_columns(pl.col("named_account").list.first())
    )
    return said.join(found, on=key, how="left", validate="m:1", maintain_order="left").drop("named")


def mentioned_accounts(rows: pl.DataFrame) -> pl.DataFrame:
    """Accounts that transfers speak of and that were not supplied: MENTIONED, one row an account, sorted.

    Args:
        rows: enriched transactions (schema TRANSACTIONS).
    """
    found = find_mentions(rows).pipe(_group_by_account)
    return found.match_to_schema(MENTIONED).sort("customer_number", "masked_number", "name", nulls_last=True)


def find_mentions(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that speak of an account that was not supplied, with its `masked_number`, its `bank` and the `name` that
    the text calls it by; and `place`, that name where no number is known: number and place tell accounts apart.

    A transfer between own accounts or a repayment of the own card whose other side was not found; or a payment with
    nobody named but an account's digits, or by transfer with nobody known. Where the digits are those of a supplied
    account, it is not counted: the other side is missing there, not the account. Without digits, what the text calls it
    stands for the account; not where it says only how the money went, where it names somebody else or the model merely
    guessed, unless the client itself said that it went to an account of its own; and not where most that is called so
    was found in supplied accounts.
    """
    one_sided = ~pl.col("is_transfer").fill_null(value=False)
    by_words = pl.col("category").is_in((TRANSFER.slug, _CARD_REPAYMENT.slug)).fill_null(value=False)
    to_nobody = pl.col("counterparty_name").is_null() | pl.col("counterparty_kind").is_null()
    digits = pl.col("other_account").is_not_null() | pl.col("description").str.contains("(?i)card|visa")
    speaking = rows.filter(current(), one_sided, by_words | (to_nobody & digits))
    with_digits = pl.col("named").is_not_null() & _names_account_number()
    said = speaking.with_columns(named=_digits_in_text(by_words)).filter((by_words & _is_identified()) | with_digits)
    numbers = rows.select("customer_number", "account_id", "bsb", "account_number")
    naming = numbers.join(said.drop_nulls("named"), on="customer_number", how="semi")
    supplied = _last_digits(list_accounts(naming), said["named"].drop_nulls())
    masked = pl.format("xx{}", pl.col("named").str.tail(SHOWN_DIGITS))
    return (
        said.join(supplied, on=("customer_number", "named"), how="anti")
        .with_columns(
            masked_number=masked, name=_name_in_text(), bank=bank_of_bsb(pl.col("description").str.extract(_BSB))
        )
        .with_columns(place=pl.when(pl.col("masked_number").is_null()).then("name"))
        .pipe(_drop_names_of_supplied, rows)
    )


def _drop_names_of_supplied(mentions: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Without those by name alone of which the account's other rows, as many or more, have their other side."""
    lone = mentions.drop_nulls("place").group_by(_NAME_HERE).len("lone")
    sides = rows.join(lone, on=_NAME_HERE[:2], how="semi").filter(current(), "is_transfer")
    found = sides.group_by(*_NAME_HERE[:2], name=_name_in_text()).len("found")
    of_supplied = lone.join(found, on=_NAME_HERE).filter(pl.col("found") >= pl.col("lone"))
    return mentions.join(of_supplied.with_columns(place="name"), on=(*_NAME_HERE, "place"), how="anti")


def _printed_digits() -> pl.Expr:
    digits = pl.col("other_account").str.extract(r"(\d+)$")
    return pl.when(digits.str.len_chars() >= FEWEST_DIGITS).then(digits)


def _digits_in_text(by_words: pl.Expr) -> pl.Expr:
    """Also the last digits that only the words before them tell from a reference."""
    text = _text_without_reference()
    account = text.str.extract(_OWN_ACCOUNT)
    between_own = by_words & ~account.str.contains(_YEAR)
    return pl.coalesce(_printed_digits(), text.str.extract(_OWN_CARD), pl.when(between_own).then(account))


def _text_without_reference() -> pl.Expr:
    return pl.col("description").str.replace(_REFERENCE, "")


def _is_identified() -> pl.Expr:
    """Whether anything tells the account from others: its digits, what the text calls it, or what the client said."""
    by_client = pl.col("category_source").is_in(_SET_BY_CLIENT).fill_null(value=False)
    called = _name_in_text().str.replace_all(_RAIL_WORDS, "").str.contains(r"\p{L}").fill_null(value=False)
    guessed = (pl.col("category_source") == "learned") & (pl.col("confidence") < GUESS)
    with_others = (pl.col("category") == TRANSFER.slug) & pl.col("counterparty_kind").is_in(_KINDS_OF_OTHERS)
    by_name = called & ~guessed.fill_null(value=False) & ~with_others.fill_null(value=False)
    return by_client | pl.col("named").is_not_null() | by_name


def _names_account_number() -> pl.Expr:
    """Whether what is named, of somebody unknown, is an account's number rather than part of a name."""
    by_transfer = (pl.col("channel") == "transfer") | _text_without_reference().str.contains(_OWN_CARD)
    return pl.col("counterparty_name").is_null() | by_transfer.fill_null(value=False)


def _name_in_text() -> pl.Expr:
    return pl.coalesce("counterparty_name", "clean_description", "description")


def _most_frequent(said: pl.Expr) -> pl.Expr:
    """Of values that are said equally often, the first in the alphabet."""
    return said.drop_nulls().sort().mode(maintain_order=True).first()


def _last_digits(accounts: pl.DataFrame, digits: pl.Series) -> pl.DataFrame:
    """The accounts' numbers cut to as many last digits as texts print: `customer_number`, `account_id`, `named`.

    So an account is found by equality, however many accounts there are and however many digits are named.
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
            name=_most_frequent(pl.col("name")),
            bank=_most_frequent(pl.col("bank")),
            direction=pl.when(went & came).then(pl.lit("both")).when(went).then(pl.lit("out")).otherwise(pl.lit("in")),
            count=pl.len(),
            total_in=amount.filter(amount > 0).sum(),
            total_out=-amount.filter(amount < 0).sum(),
            first_date=pl.col("date").min(),
            last_date=pl.col("date").max(),
        )
        .drop("place")
    )
