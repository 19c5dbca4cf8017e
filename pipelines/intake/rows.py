"""Accept or reject submitted rows one by one: a bad row never causes a good one to be rejected.

`land_lines` turns lines of JSON into a frame of texts as sent. `validate` decides which rows are valid, vectorised over
all submissions of a batch, and says which field of each other row is wrong and why. Amounts are read from their digits
and are never floats.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO

import polars as pl

from pipelines.intake.as_sent import Digest, add_digests
from pipelines.intake.lines import FIELDS, NUMERIC_FIELDS, SENT
from pipelines.vocabulary import own_columns
from pipelines.vocabulary.schemas import ACCEPTED, LANDED, MONEY, REJECTED, TransactionStatus

_OF_LANDED = (*FIELDS, "malformed", "extra", "masked")
IN_LINES = pl.Schema({name: LANDED[name] for name in _OF_LANDED} | dict.fromkeys(SENT.values(), pl.String()))

MAX_DESCRIPTION = 1_000  # characters
MAX_TRANSACTION_ID = 128  # characters
MAX_INTEGER_DIGITS = 13  # |amount| < 10^13
FIRST_DATE = pl.date(1970, 1, 1)

# (?-u): \d is 0 to 9 only; without it, a regular expression also accepts other scripts' digits, which no cast reads.
_NUMBER = r"(?-u)^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$"
_DATE = r"(?-u)^\d{4}-\d{2}-\d{2}$"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_DATE_TIME = rf"(?-u)^\d{{4}}-\d{{2}}-\d{{2}}[Tt ]{_CLOCK}(?:[Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$"
_CONTROL = r"\p{Cc}"
# Members that are not of this API, but common in feeds: a row that they contradict must not be read without them. They
# are found in any case and with underscores; so are `type`, `currency` and `status`, if they are written otherwise.
_SIGNS = (
    *("direction", "baseType", "creditDebitIndicator", "debitCreditIndicator", "creditDebit", "debitCredit"),
    *("drCr", "crDr"),
)
_TYPES = ("transactionType", "type")  # may also say how a payment was made: `C` for a cheque
_DEBIT, _CREDIT = "debit|dbit|dr|db|d|out|outflow|outgoing", "credit|crdt|cr|c|in|inflow|incoming"
_CURRENCIES = ("currencyCode", "isoCurrencyCode", "unofficialCurrencyCode", "accountCurrency", "currency")
_STATUSES = ("pending", "isPending", "status", "transactionStatus", "postingStatus", "bookingStatus")
_NOT_POSTED = "true|pending|authori[sz]ed|processing|scheduled|hold|declined|failed|cancell?ed|rejected|denied|void"
_LARGEST_POWER = 40  # of ten, far beyond the largest amount; a larger one is too large, a smaller one zero
_LONGEST_EXPONENT = 9  # digits; only a text of a gigabyte could have enough zeros to balance a longer exponent
_TOO_LARGE = "9" * _LARGEST_POWER


@dataclass(frozen=True)
class Validated:
    """A batch's rows: `accepted` in schema ACCEPTED, `rejected` in schema REJECTED."""

    accepted: pl.LazyFrame
    rejected: pl.LazyFrame


def land_lines(lines: bytes, digest: Digest) -> pl.DataFrame:
    """Read the lines that `lines.as_lines` writes into a frame in schema LANDED, card and tax file numbers masked.

    Args:
        digest: applied to ids and descriptions as sent, where masking changes them.
    """
    read = pl.read_ndjson(BytesIO(lines), schema=IN_LINES).with_row_index("position")
    return add_digests(read, digest).select(LANDED.names())


def masked_warnings(landed: pl.DataFrame) -> Iterator[dict[str, str]]:
    """Yield a warning for the client if numbers were masked in rows."""
    if masked := landed["masked"].sum():
        yield {
            "code": "Transaction.MaskedNumber",
            "message": f"Rows with card or tax file numbers, which are masked wherever they are shown: {masked:,}. "
            "Rows are still distinguished by the numbers as sent.",
        }


def validate(rows: pl.LazyFrame, timezone: str) -> Validated:
    """Accept or reject every row of a batch.

    Args:
        rows: SUBMISSION and LANDED columns; any number of submissions.
        timezone: in which a `Z` date-time and the time of receipt fall on a day.
    """
    read = rows.pipe(_read_values, timezone).pipe(_mark_conflicts).with_columns(fault=_first_fault())
    return Validated(
        accepted=read.filter(pl.col("fault").is_null()).match_to_schema(ACCEPTED, extra_columns="ignore"),
        rejected=read.filter(pl.col("fault").is_not_null()).pipe(_rejections),
    )


def _read_values(rows: pl.LazyFrame, timezone: str) -> pl.LazyFrame:
    """Read every field in its exact type, or null where its text can't be read; the texts remain as `sent_…`."""
    sent = rows.with_columns(_absent_if_empty(name) for name in FIELDS).rename(
        {name: f"sent_{name}" for name in FIELDS}
    )
    return sent.with_columns(
        date=read_date("sent_date", timezone),
        value_date=read_date("sent_valueDate", timezone),
        description=pl.col("sent_description"),
        description_digest=pl.col("descriptionDigest"),
        client_transaction_id=pl.col("sent_transactionId"),
        client_transaction_id_digest=pl.col("transactionIdDigest"),
        status=pl.col("sent_status").fill_null("posted").cast(TransactionStatus, strict=False),
        extra_in_lower_case=pl.col("extra").str.to_lowercase().str.replace_all("_", "", literal=True),
        own_columns=pl.col("extra").map_batches(own_columns.read_own_columns, return_dtype=pl.String()),
        latest_date=pl.col("received_at").dt.convert_time_zone(timezone).dt.date() + pl.duration(days=1),
        **_number_columns("amount"),
        **_number_columns("balance"),
    ).with_columns(amount=_signed_by_type())


def _absent_if_empty(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(pl.col(name))


def read_date(name: str, timezone: str) -> pl.Expr:
    """Read a date or the date of a date-time; for a date-time ending in Z, its date in the service's time zone."""
    text = pl.col(name)
    own = pl.when(text.str.contains(_DATE) | text.str.contains(_DATE_TIME)).then(text.str.head(10))
    clock = (
        text.str.head(19)
        .str.to_uppercase()
        .str.replace(" ", "T", literal=True)
        .str.replace(r"T(\d\d:\d\d)[Z.].*$", "T$1:00")
    )
    minute = pl.when(clock.str.len_chars() == 16).then(clock + ":00").otherwise(clock)
    universal = minute.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_zone="UTC")
    local = universal.dt.convert_time_zone(timezone).dt.date()
    ends_in_z = text.str.contains(_DATE_TIME) & text.str.contains(r"[Zz]$")
    return pl.when(ends_in_z).then(local).otherwise(own.str.to_date("%Y-%m-%d", strict=False))


def _number_columns(name: str) -> dict[str, pl.Expr]:
    """Read a number as exact money, with its faults: `name_unreadable`, `name_large`, `name_fine` (decimals)."""
    text = pl.col(f"sent_{name}")
    plain = pl.when(text.str.contains(_NUMBER)).then(text).map_batches(_without_exponents, return_dtype=pl.String())
    whole = plain.str.strip_prefix("-").str.extract(r"^0*(\d+)", 1).str.strip_chars_start("0")
    fraction = plain.str.extract(r"\.(\d+)$", 1).fill_null("").str.pad_end(8, "0")
    large = whole.str.len_chars() > MAX_INTEGER_DIGITS
    cents = pl.when(~large).then(whole + fraction.str.head(2)).cast(pl.Int64, strict=False)
    # In 10⁻⁸; further digits are dropped. A distance of less than 10⁻⁶ from a whole cent is the sender's float noise.
    rest = fraction.str.slice(2, 6).cast(pl.Int64, strict=False)
    rounded = cents + (rest > 999_900).cast(pl.Int64)
    sign = pl.when(plain.str.starts_with("-")).then(-1).otherwise(1)
    return {
        name: ((rounded * sign).cast(pl.Decimal(20, 2)) / 100).cast(MONEY, strict=False),
        f"{name}_unreadable": text.is_not_null() & plain.is_null(),
        f"{name}_large": large | (rounded >= 10 ** (MAX_INTEGER_DIGITS + 2)),
        f"{name}_fine": rest.is_between(100, 999_900),
    }


def _without_exponents(texts: pl.Series) -> pl.Series:
    """Rewrite numbers in plain notation. Few have exponents, so only the distinct ones that do are rewritten."""
    exponential = texts.filter(texts.str.contains("[eE]")).unique()
    plain = pl.Series([_plain(text) for text in exponential], dtype=pl.String)
    return texts.replace(exponential, plain) if len(exponential) else texts


def _plain(text: str) -> str:
    """Write a number without its exponent: exactly, unless it is far too large, practically zero or longer than any
    amount.
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"
    size = exponent.lstrip("+-0") or "0"
    if len(size) > _LONGEST_EXPONENT:
        return "0" if exponent.startswith("-") else _TOO_LARGE
    # The power of ten of the first digit.
    first = len(digits) - len(fraction) - 1 + int(size) * (-1 if exponent.startswith("-") else 1)
    if first > _LARGEST_POWER:
        return _TOO_LARGE
    digits = digits[: 2 * _LARGEST_POWER]
    sign = "-" if mantissa.startswith("-") else ""
    return "0" if first < -_LARGEST_POWER else f"{Decimal(f'{sign}{digits}e{first - len(digits) + 1}'):f}"


def _signed_by_type() -> pl.Expr:
    """Negate a positive amount with `type` debit: it is money out."""
    out = (pl.col("sent_type") == "debit") & (pl.col("amount") > 0)
    return pl.when(out).then(-pl.col("amount")).otherwise(pl.col("amount")).cast(MONEY)


def _mark_conflicts(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add `conflicting`: whether a row of the same submission has the same transactionId and different content."""
    content = pl.struct("date", "value_date", "description", "description_digest", "amount", "balance", "status")
    several = content.n_unique().over("job_id", "client_transaction_id", "client_transaction_id_digest") > 1
    return rows.with_columns(conflicting=pl.col("client_transaction_id").is_not_null() & several)


@dataclass(frozen=True)
class _Fault:
    """One possible fault of a row; `holds` is true for rows that have it."""

    field: str
    code: str
    message: str
    holds: pl.Expr


def _type_faults(fields: Iterable[str]) -> list[_Fault]:
    return [
        _Fault(
            name,
            "Transaction.WrongType",
            f"{name} must be text{' or a number' if name in NUMERIC_FIELDS else ''}.",
            pl.col("malformed").list.contains(name),
        )
        for name in fields
    ]


def _dates(field: str, column: str) -> list[_Fault]:
    date, sent = pl.col(column), pl.col(f"sent_{field}")
    return [
        _Fault(
            field,
            "Transaction.InvalidDate",
            f"{field} must be a date (YYYY-MM-DD).",
            sent.is_not_null() & date.is_null(),
        ),
        _Fault(field, "Transaction.DateTooEarly", f"{field} is before 1970.", date < FIRST_DATE),
        _Fault(
            field,
            "Transaction.DateInFuture",
            f"{field} is more than a day after receipt.",
            date > pl.col("latest_date"),
        ),
    ]


def _numbers(field: str) -> list[_Fault]:
    return [
        _Fault(field, "Transaction.InvalidNumber", f"{field} must be a number.", pl.col(f"{field}_unreadable")),
        _Fault(field, "Transaction.NumberTooLarge", f"{field} is 10^13 or more.", pl.col(f"{field}_large")),
        _Fault(field, "Transaction.TooManyDecimals", f"{field} has more than two decimals.", pl.col(f"{field}_fine")),
    ]


def _texts(field: str, column: str, longest: int) -> list[_Fault]:
    text = pl.col(column)
    return [
        _Fault(
            field,
            "Transaction.TextTooLong",
            f"{field} is longer than {longest:,} characters.",
            text.str.len_chars() > longest,
        ),
        _Fault(field, "Transaction.ControlCharacter", f"{field} has a control character.", text.str.contains(_CONTROL)),
    ]


def _foreign_signs() -> list[_Fault]:
    amount = pl.col("amount")
    return [
        _Fault(
            name,
            "Transaction.ContradictorySign",
            f"{name} contradicts the sign of the amount: negative is money out, or send the side as type.",
            (_has_word(name, debit) & (amount > 0)) | (_has_word(name, credit) & (amount < 0)),
        )
        for names, debit, credit in ((_SIGNS, _DEBIT, _CREDIT), (_TYPES, "debit|dbit", "credit|crdt"))
        for name in names
    ]


def _foreign_currencies() -> list[_Fault]:
    return [
        _Fault(
            name,
            "Transaction.UnsupportedCurrency",
            f"{name} must be AUD.",
            _has_word(name, "[a-z]{3}") & ~_has_word(name, "aud"),
        )
        for name in _CURRENCIES
    ]


def _foreign_statuses() -> list[_Fault]:
    return [
        _Fault(
            name,
            "Transaction.InvalidStatus",
            f"{name} says that the row is not posted: send pending rows with the status pending, and no others.",
            _has_word(name, _NOT_POSTED) & (pl.col("status") == "posted"),
        )
        for name in _STATUSES
    ]


def _has_word(name: str, words: str) -> pl.Expr:
    """Return whether a member among `extra` is one of the words, in any case."""
    return pl.col("extra_in_lower_case").str.contains(rf'"{name.lower()}": "?(?:{words})"?[,}}]').fill_null(value=False)


def _missing(field: str) -> _Fault:
    return _Fault(field, "Transaction.Missing", f"{field} is missing.", pl.col(f"sent_{field}").is_null())


# A row is rejected for the first of these faults that it has.
FAULTS: Sequence[_Fault] = (
    *_type_faults(FIELDS),
    _missing("date"),
    *_dates("date", "date"),
    _missing("description"),
    *_texts("description", "description", MAX_DESCRIPTION),
    _missing("amount"),
    *_numbers("amount"),
    _Fault(
        "type",
        "Transaction.InvalidType",
        "type must be debit or credit.",
        ~pl.col("sent_type").is_in(["debit", "credit"]),
    ),
    _Fault(
        "type",
        "Transaction.ContradictorySign",
        "A negative amount can't be a credit.",
        (pl.col("sent_type") == "credit") & (pl.col("amount") < 0),
    ),
    *_foreign_signs(),
    *_numbers("balance"),
    *_texts("transactionId", "client_transaction_id", MAX_TRANSACTION_ID),
    _Fault("currency", "Transaction.UnsupportedCurrency", "currency must be AUD.", pl.col("sent_currency") != "AUD"),
    *_foreign_currencies(),
    *_dates("valueDate", "value_date"),
    *_texts(own_columns.PREFIX, "own_columns", own_columns.LONGEST),
    _Fault("status", "Transaction.InvalidStatus", "status must be posted or pending.", pl.col("status").is_null()),
    *_foreign_statuses(),
    _Fault(
        "transactionId",
        "Transaction.IdConflict",
        "The submission has this transactionId more than once, with different content.",
        pl.col("conflicting"),
    ),
)


def _first_fault() -> pl.Expr:
    return pl.coalesce(pl.when(fault.holds).then(pl.lit(index, pl.Int32())) for index, fault in enumerate(FAULTS))


def _rejections(rows: pl.LazyFrame) -> pl.LazyFrame:
    reasons = pl.LazyFrame(
        {
            "fault": pl.Series(range(len(FAULTS)), dtype=pl.Int32),
            "field": [fault.field for fault in FAULTS],
            "code": [fault.code for fault in FAULTS],
            "message": [fault.message for fault in FAULTS],
        }
    )
    return rows.join(reasons, on="fault", validate="m:1").select(REJECTED.names()).sort("job_id", "position")
