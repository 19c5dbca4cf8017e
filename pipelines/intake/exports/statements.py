"""Build statements, one per account of a file, whose rows `intake.rows.validate` accepts like those of a submission.

Values that can be read are rewritten in the API's notation; others are left as printed, for `validate` to refuse with
a reason. Rows are ordered from the oldest to the newest, however the file is sorted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Literal

import polars as pl

from pipelines.intake.as_sent import DIGESTS, Digest, mask_rows, temporary_digest
from pipelines.intake.exports.balances_and_totals import move_stated_balances, only_states_balance
from pipelines.intake.exports.columns import Columns
from pipelines.intake.exports.currency import named_currency, named_in, stated_beside, stated_in_heading
from pipelines.intake.exports.headings import roles_in, synonyms
from pipelines.intake.exports.layout import Layout
from pipelines.intake.exports.sheet import Sheet, refusal, transactions
from pipelines.intake.exports.signs import OF_ONE_ACCOUNT, Signs, balance_steps, decide_signs
from pipelines.intake.exports.statuses import (
    describe_unknown_statuses,
    fill_pending_sections,
    is_pending,
    moved_no_money,
)
from pipelines.intake.exports.values import (
    First,
    day,
    exact,
    has_short_year,
    is_ambiguous_day,
    may_group,
    money,
    needs_decimal_comma,
    needs_decimal_point,
    negate,
    read_distinct,
)
from pipelines.intake.lines import FIELDS
from pipelines.vocabulary.own_columns import PREFIX, normalise_heading
from pipelines.vocabulary.schemas import LANDED, SUBMISSION

# Rows that can't even be passed to `validate`, and why.
REFUSED = pl.Schema({"line": pl.UInt32(), "field": pl.String(), "code": pl.String(), "message": pl.String()})
# Lines that are not transactions, each with one of the reasons below.
NO_ROW = pl.Schema({"line": pl.UInt32(), "reason": pl.String()})
BLANK, PREAMBLE, STATES_BALANCE, STATES_TOTAL, NO_AMOUNT = (
    "blank",
    "before the rows",
    "with only a balance",
    "with a total",
    "without date and amount",
)

# Doubts about a row, from a CSV of `tidemark statements extract`. Only doubts are used: anybody may have written that a
# row is proved.
DOUBTED = pl.Schema({name: SUBMISSION[name] for name in ("statement_verdict", "statement_proved")})
_DOUBTS = ("partial", "unreconciled")

MASKED = (*FIELDS, "extra")  # columns of LANDED in which numbers are masked
NO_DESCRIPTION = "-"
_TYPE_WORDS = {
    r"(?i)(?:\b|_)(?:credit[ _-]?card|visa|mastercard|amex|american express)(?:\b|_)": "credit_card",
    r"(?i)(?:\b|_)(?:savings?|saver)(?:\b|_)": "savings",
    r"(?i)(?:\b|_)term[ _-]?deposit(?:\b|_)": "term_deposit",
    r"(?i)(?:\b|_)(?:loan|mortgage)(?:\b|_)": "loan",
}
# A debit card and an offset account hold money; lenders, brokers and applications only deal with loans and cards.
_OF_NO_TYPE = (
    r"(?i)(?:\b|_)(?:debit|offset|brokers?|broking|lawyers?|solutions|services|consult\w*|finance|lending|travel"
    r"|applications?|applicants?)(?:\b|_)"
)
# A company's name, or that of a file, may have words of a type. Only the name of a product says what its account is.
_COMPANY = r"(?i)(?:\b|_)(?:pty|ltd|limited|inc|llc|plc|trust|group)(?:\b|_)"
_PRODUCT = r"(?i)credit[ _-]?card|term[ _-]?deposit|(?:home|car|personal|business|equipment)[ _-]?loan|loan[ _-]?acc"
_BSB_AND_NUMBER = r"^([0-9]{3}-?[0-9]{3})[ /-]+([0-9xX*][0-9xX* -]{3,})$"
# Cells of lines that are not rows: `Account: 1234 5678`, `Online Saver 1234 5678`, `Account: Saver`, `Saver`. The first
# group is the account's number or name.
_DIGITS_OF_ACCOUNT = r"((?:[a-z]{2}[0-9]{2})?[0-9xX*][0-9xX* -]{2,}[0-9])"
_PRODUCT_WORDS = (
    r"(?:account|everyday|saver|savings?|transaction|cheque|offset|business|personal|online|bonus|access|complete|card"
    r"|credit|debit|visa|mastercard|platinum|gold|loan|home|term|deposit|investment|cash|smart|plus)"
)
_ACCOUNT_LABEL = r"(?:bank |cheque |savings )?(?:account|acct|a/c|iban)\b(?: (?:number|no\.?|num|id))?"
_IS_PRODUCT = r"(?:\w+ )*(?:everyday|saver|savings?|cheque|offset|visa|mastercard|\w+ (?:account|card|loan))\b"
_NAMES_ACCOUNT = (
    rf"(?i)^\W*{_ACCOUNT_LABEL}[^0-9a-z]*{_DIGITS_OF_ACCOUNT}",
    rf"(?i)^\W*(?:{_PRODUCT_WORDS} )+{_DIGITS_OF_ACCOUNT}\W*$",
    r"(?i)^\W*(?:account|acct|a/c)(?: (?:name|title))? ?[:=] ?([^\W\d].*)$",
    rf"(?i)^\W*((?={_IS_PRODUCT}){_PRODUCT_WORDS}(?: {_PRODUCT_WORDS})*)\W*$",
)
_ABOUT_ACCOUNT = rf"(?i)\b(?:{_ACCOUNT_LABEL}|saver|savings|wallet|card)\b"
_SHORTENED = r"^[0-9](?:\.[0-9]+)?[eE]\+[0-9]{2}$"
_NUMBER = r"^[0-9xX*][0-9xX* -]{2,}[0-9]$"
_ACCOUNT = ("customer", "bsb", "account_number", "account_name", "bank_name", "account_type")
_CARD_HEADINGS = r"(?i)^card(?: ?(?:no\.?|number|member|holder)|holder name)?$"
_CARD_NAME = r"(?i)(?<!debit)(?:^|[^a-z])cards?(?:[^a-z]|$)"
_DAY_ASSUMED = "No date shows whether the day or the month comes first: the day was assumed."
_THOUSANDS_ASSUMED = "No amount shows whether commas separate thousands or decimals: thousands were assumed."
_MARKS: tuple[Literal["."], Literal[","]] = (".", ",")
_AMOUNTS = ("amount", "debit", "credit", "balance")
_FAR_CLOSER = 4  # times; our judgement
_LONGEST_PAUSE = 31  # days between an export and the one that continues it; our judgement
# Two exports without balances are of one account if they share at least this many rows, and nearly all of their rows on
# the days that both cover. Our judgement: a single shared row is often a coincidence.
_MIN_SHARED = 3


@dataclass(frozen=True)
class Statement:
    """One account's rows of a file.

    `rows`: schema LANDED (from a CSV, also DOUBTED), oldest first. `lines`: the line on which each row begins (in JSON,
    the number of its item), from 1. Account fields are as in the file, null if absent. An account's label is stored as
    `bank_name`; `account_name` is the holder.
    """

    rows: pl.DataFrame
    lines: pl.Series
    customer: str | None = None
    account_name: str | None = None
    bsb: str | None = None
    account_number: str | None = None
    bank_name: str | None = None
    account_type: str | None = None
    credit_limit: Decimal | None = None
    account_key: str | None = None  # distinguishes accounts whose numbers are masked in the file

    @property
    def names_account(self) -> bool:
        return any((self.account_number, self.account_name, self.bank_name))


@dataclass(frozen=True)
class Contents:
    """The contents of a file.

    Each of its `lines` (in JSON, items) is a row of a statement, in `refused` (schema REFUSED: rows that belong to no
    statement), in `no_rows` (schema NO_ROW), or one of the `headings`. `signs`: the evidence for which amounts are
    money out. `notes`: decisions that are not obvious. `layout`: the file's columns; None for JSON.
    """

    statements: tuple[Statement, ...]
    refused: pl.DataFrame
    no_rows: pl.DataFrame
    headings: int
    lines: int
    signs: Signs
    notes: tuple[str, ...] = ()
    layout: Layout | None = None


def contents_of(
    sheet: Sheet, columns: Columns, name: str, digest: Digest | None = temporary_digest, customer: str | None = None
) -> Contents:
    """Return the contents of a sheet with known columns.

    Args:
        name: of the file; it may show the type of account.
        customer: only this customer's rows count for `signs` and `notes`; None: all rows.
        digest: applied to ids and descriptions where masking changes them. None: nothing is masked.

    Raises:
        InvalidRequest: a spreadsheet has shortened account numbers, so that several may look the same; or the file has
            several tables, with other columns or of other accounts.
    """
    preamble = sheet.cells.head(columns.preamble)
    body = sheet.cells.slice(columns.first_row)
    repeats_heading = _is_heading(body, columns)
    rows = body.filter(~repeats_heading).pipe(_select_roles, columns)
    if rows["account"].str.contains(_SHORTENED).any():
        raise refusal("ShortenedNumber", "has account numbers that a spreadsheet has shortened, such as 1.2E+11")
    first, dates_note = _find_order_of_dates(rows)
    is_ambiguous, thousands_note = _find_ambiguous(rows, columns)
    read = rows.pipe(_read_values, columns, is_ambiguous, first).with_columns(
        known_type=_known_type(_stated_type(name, preamble, columns)),
        asked_for=pl.lit(value=True) if customer is None else pl.col("customer").eq_missing(customer),
    )
    other = read.filter(_fault().is_null(), _is_footer(), ~pl.col("states_total"))["line"]
    _require_one_account(preamble, body.filter(_is_between(other, read)), columns)
    read = fill_pending_sections(read, pl.concat([preamble, body.filter(pl.col("line").is_in(other.implode()))]))
    sound = read.filter(_fault().is_null(), ~_is_footer(), ~pl.col("states_total"))
    split = "amount" not in columns.roles
    stated = decide_signs(sound.pipe(_oldest_first), declared=columns.sign, split=split)
    early = transactions(preamble)
    currency = _currency(columns, _named_currency(name, preamble, columns))
    no_rows = {
        BLANK: pl.Series(sheet.blank, dtype=pl.UInt32),
        PREAMBLE: preamble.filter(~pl.col("line").is_in(early["line"].implode()))["line"],
        STATES_BALANCE: sound.filter(only_states_balance())["line"],
        STATES_TOTAL: read.filter(_fault().is_null(), "states_total")["line"],
        NO_AMOUNT: other,
    }
    return Contents(
        statements=tuple(_statements(stated.rows.filter(~only_states_balance()).pipe(_land, currency, digest))),
        refused=pl.concat([_before_heading(early["line"]), read.filter(_fault().is_not_null()).pipe(_refusals)]),
        no_rows=_build_no_rows(no_rows),
        headings=(columns.heading is not None) + body.filter(repeats_heading).height,
        lines=sheet.cells.height + len(sheet.blank),
        signs=stated.signs,
        notes=tuple(
            note
            for note in (
                *(*columns.notes, dates_note, thousands_note),
                *(
                    _fees_note(read.filter("asked_for")),
                    describe_unknown_statuses(read.filter("asked_for")),
                    *stated.notes,
                ),
            )
            if note
        ),
        layout=columns.layout,
    )


def _build_no_rows(lines: Mapping[str, pl.Series]) -> pl.DataFrame:
    frames = [numbers.alias("line").to_frame().with_columns(reason=pl.lit(reason)) for reason, numbers in lines.items()]
    return pl.concat(frames).cast(NO_ROW).sort("line")


def _is_heading(body: pl.DataFrame, columns: Columns) -> pl.Series:
    """Return which lines repeat the heading, found where exports were concatenated.

    Raises:
        InvalidRequest: another heading gives the columns other roles.
    """
    dates = set(synonyms()["date"])
    cells = [pl.col(name).str.to_lowercase().is_in(dates) for name in body.columns[1:]]
    maybe = body.filter(pl.any_horizontal(pl.lit(value=False), *cells)) if columns.heading else body.clear()
    found = [(row.pop("line"), {name: text for name, text in row.items() if text}) for row in maybe.to_dicts()]
    headings = {line: roles_in(cells) for line, cells in found}
    own = roles_in(columns.heading or {})
    lines = [line for line, roles in headings.items() if "date" in roles and roles.keys() & _AMOUNTS]
    for line in lines:
        if headings[line] != own:
            raise refusal("SecondHeading", f"has another heading on line {line}, for other columns than the first one")
    return body["line"].is_in(lines)


def _is_between(lines: pl.Series, read: pl.DataFrame) -> pl.Expr:
    """Match those of the `lines` that a dated row follows. Lines after the last dated row are a footer."""
    return pl.col("line").is_in(lines.implode()) & (pl.col("line") < pl.lit(read.filter("is_dated")["line"]).max())


def _require_one_account(preamble: pl.DataFrame, between: pl.DataFrame, columns: Columns) -> None:
    """Raise if lines `between` the rows name another account than those above them (`Account: 1234 5678`, `Saver`)."""
    if columns.roles.keys() & {"account", "account_name"}:
        return
    above, below = (_accounts_named(lines) for lines in (preamble, between))
    known = {name for _, name in above or below[:1]}
    if other := next((line for line, name in below if name not in known), None):
        raise refusal("SeveralAccounts", f"names another account on line {other} than before it")


def _accounts_named(lines: pl.DataFrame) -> list[tuple[int, str]]:
    """Return the numbers and names of accounts in lines that are not rows, each with its line. A label may stand in a
    cell and its value in the next.
    """
    found: list[tuple[int, str]] = []
    for line, *cells in lines.iter_rows():
        texts = [cell for cell in cells if cell is not None]
        labelled = [f"{text.rstrip(': ')}: {value}" for text, value in pairwise(texts)]
        names = (re.match(shape, text) for text in (*texts, *labelled) for shape in _NAMES_ACCOUNT)
        found += [(line, re.sub(r"[^0-9a-z*]", "", name[1].lower())) for name in names if name]
    return found


def _select_roles(cells: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Select `line`, a column for each role (null if the file has none), `words`, and `surplus`: cells without a
    heading.
    """
    absent = pl.lit(None, pl.String)
    roles = {role: pl.col(columns.roles[role]) if role in columns.roles else absent for role in synonyms()}
    words = pl.concat_str(columns.texts, separator=" ", ignore_nulls=True) if columns.texts else absent
    named = columns.heading or {}
    last = max((cells.columns.index(column) for column in named), default=len(cells.columns))
    surplus = pl.any_horizontal(
        pl.lit(value=False), *(pl.col(name).is_not_null() for name in cells.columns[last + 1 :])
    )
    more = [pl.col(column).alias(text) for column, text in named.items() if normalise_heading(text).startswith(PREFIX)]
    extra = pl.struct(more).struct.json_encode() if more else absent
    return cells.select("line", **roles, words=words, surplus=surplus, extra=extra)


def _stated_type(name: str, preamble: pl.DataFrame, columns: Columns) -> str | None:
    """Return the type of account by the file's name, the lines before its heading or headings that only cards have."""
    before = [cell for cells in preamble.drop("line").iter_rows() for cell in cells if cell is not None]
    headings = (columns.heading or {}).values()
    is_card = any(re.match(_CARD_HEADINGS, heading) for heading in headings) or (
        re.search(_CARD_NAME, name) and not _is_no_type(name)
    )
    stated = (_type_of_file(name), *map(_type_in, before))
    return next(filter(None, stated), "credit_card" if is_card else None)


def _known_type(stated: str | None) -> pl.Expr:
    """Return the type of account that its own columns name, else its file."""
    own = ("account_type", "account_name", "account")
    return pl.coalesce(*(_type_of(pl.col(name)) for name in own), pl.lit(stated, pl.String))


def _find_order_of_dates(rows: pl.DataFrame) -> tuple[First, str]:
    """Return how dates in numbers begin in this file, and a note: with the day, unless dates prove that it is the month
    and none disproves it, or the two digits of the year fit far better.
    """
    text = pl.col("date")
    numbered = rows.filter(is_ambiguous_day(text)).select(
        "date", "line", as_day=day(text).is_not_null(), as_month=day(text, First.MONTH).is_not_null()
    )
    if _begin_with_short_year(numbered):
        return First.SHORT_YEAR, f"Dates were read with the year first, such as {numbered['date'][0]}."
    as_day, as_month = pl.col("as_day"), pl.col("as_month")
    proofs = numbered.filter(as_month & ~as_day)
    if proofs.is_empty():
        return First.DAY, _DAY_ASSUMED if not numbered.is_empty() and numbered.filter(~as_month).is_empty() else ""
    proof = f"{proofs['date'][0]} on line {proofs['line'][0]}"
    if numbered.filter(as_day & ~as_month).is_empty():
        return First.MONTH, f"Dates were read with the month first: {proof} is not a date otherwise."
    return First.DAY, f"Dates were read with the day first, though {proof} is a date only with the month first."


def _begin_with_short_year(dates: pl.DataFrame) -> bool:
    """Return whether all dates have a year of two digits and, with the year first, lie far closer together.

    With the day last, each further day of a month would be another year.
    """
    text = pl.col("date")
    if dates.is_empty() or not dates.select(has_short_year(text).all()).item():
        return False
    read = dates.select(**{first.name: day(text, first).str.to_date(strict=False) for first in First})
    whole = [first for first in First if read[first.name].null_count() == 0]
    days = read.select(pl.all().max().sub(pl.all().min()).dt.total_days()).row(0, named=True)
    spans = {first: int(days[first.name]) for first in whole}
    others = [span for first, span in spans.items() if first is not First.SHORT_YEAR]
    return First.SHORT_YEAR in spans and all(spans[First.SHORT_YEAR] * _FAR_CLOSER < span for span in others)


def _read_values(rows: pl.DataFrame, columns: Columns, is_ambiguous: pl.Expr, first: First) -> pl.DataFrame:
    """Rewrite dates and amounts in the API's notation where they can be read. `both`: debit and credit are filled."""
    plain = {name: money(pl.col(name), decimal_comma=columns.decimal_comma) for name in _AMOUNTS}
    read = rows.with_columns(
        plain_date=day(pl.col("date"), first),
        plain_fee=money(pl.col("fee"), decimal_comma=columns.decimal_comma),
        **{f"plain_{name}": expression for name, expression in plain.items()},
    )
    debit, credit = (_nonzero_digits(f"plain_{name}") for name in ("debit", "credit"))
    in_two = _split_amount(
        debit_negative=_mostly_negative(read["plain_debit"]), credit_negative=_mostly_negative(read["plain_credit"])
    )
    return read.with_columns(
        date=pl.coalesce("plain_date", "date"),
        value_date=day(pl.col("value_date"), first),
        is_dated=pl.col("plain_date").is_not_null(),
        amount=pl.coalesce("plain_amount", "amount", in_two),
        balance=pl.coalesce("plain_balance", "balance"),
        printed="amount",
        printed_balance="balance",
        stated_currency=pl.coalesce(*(stated_beside(pl.col(name)) for name in ("amount", "debit", "credit"))),
        both=(debit.is_not_null() & credit.is_not_null()),
        ambiguous=is_ambiguous,
    ).pipe(move_stated_balances)


def _fees_note(read: pl.DataFrame) -> str:
    """Return a note if the file has a column of fees: only a balance shows whether amounts include them."""
    has_fees = read["plain_fee"].str.contains("[1-9]").any()
    return (
        "The file has fees in a column of their own: amounts are as printed, with or without them." if has_fees else ""
    )


def _find_ambiguous(rows: pl.DataFrame, columns: Columns) -> tuple[pl.Expr, str]:
    """Return what matches rows with an amount whose point or comma may separate thousands or decimals (`1.500`,
    `1,500`), and a note if a comma's meaning was assumed.

    A point is a decimal point if other amounts show that the file has such points. A comma separates thousands, as is
    usual in Australia, unless other amounts show that the file has both kinds of decimals.
    """
    amounts = [pl.col(name) for name in _AMOUNTS]
    by_point, by_comma = (pl.any_horizontal(may_group(each, mark) for each in amounts) for mark in _MARKS)
    if columns.decimal_comma or not rows.select((by_point | by_comma).any()).item():
        return pl.lit(value=False), ""
    points, commas = (
        rows.select(pl.any_horizontal(needs(each).any() for each in amounts)).item()
        for needs in (needs_decimal_point, needs_decimal_comma)
    )
    is_assumed = not points and not commas and rows.select(by_comma.any()).item()
    is_ambiguous = (by_point & pl.lit(value=not points)) | (by_comma & pl.lit(value=bool(commas)))
    return is_ambiguous, _THOUSANDS_ASSUMED if is_assumed else ""


def _split_amount(*, debit_negative: bool, credit_negative: bool) -> pl.Expr:
    """Return the amount of a row with a debit and a credit column. Zero counts as empty. A text that can't be read
    becomes the amount, for `validate` to refuse.

    Args:
        debit_negative: most debits have a minus, as they do in many exports.
        credit_negative: most credits have one, as they do in ledgers.
    """
    debit, credit = _nonzero_digits("plain_debit"), _nonzero_digits("plain_credit")
    unparsed = (pl.when(pl.col(f"plain_{name}").is_null()).then(pl.col(name)) for name in ("debit", "credit"))
    out = debit if debit_negative else negate(debit)
    received = negate(credit) if credit_negative else credit
    return pl.coalesce(*unparsed, out, received, "plain_debit", "plain_credit")


def _nonzero_digits(name: str) -> pl.Expr:
    """Return plain digits that are not zero, else null."""
    return pl.when(pl.col(name).str.contains("[1-9]")).then(pl.col(name))


def _mostly_negative(plain: pl.Series) -> bool:
    """Return whether most amounts have a minus. Zero counts as empty: banks print it on the rows of the other side."""
    moved = plain.filter(plain.str.contains("[1-9]"))
    return 2 * int(moved.str.starts_with("-").sum()) > len(moved)


def _is_footer() -> pl.Expr:
    """Match rows with neither a date nor an amount."""
    return pl.col("amount").is_null() & ~pl.col("is_dated")


def _fault() -> pl.Expr:
    """Return the code of the reason why a row can't be passed to `validate`, or null."""
    return pl.coalesce(
        pl.when("surplus").then(pl.lit("Export.SurplusCells")),
        pl.when("both").then(pl.lit("Export.DebitAndCredit")),
        pl.when("ambiguous").then(pl.lit("Export.AmbiguousAmount")),
        pl.when(moved_no_money()).then(pl.lit("Export.NoMoneyMoved")),
    )


def _before_heading(lines: pl.Series) -> pl.DataFrame:
    message = "The line is before the heading, which may not apply to it."
    refusal = {"field": pl.lit("line"), "code": pl.lit("Export.BeforeHeading"), "message": pl.lit(message)}
    return lines.to_frame("line").with_columns(**refusal).cast(REFUSED)


def _refusals(rows: pl.DataFrame) -> pl.DataFrame:
    messages = {
        "Export.SurplusCells": "The line has more columns than the heading: a text with a comma in it needs quotes.",
        "Export.DebitAndCredit": "Debit and credit are both filled.",
        "Export.AmbiguousAmount": "Its point or comma may separate thousands or decimals: the file doesn't show which.",
        "Export.NoMoneyMoved": "Its status says that no money was moved.",
    }
    refusals = rows.select("line", field=pl.lit("amount"), code=_fault())
    return refusals.with_columns(message=pl.col("code").replace_strict(messages, return_dtype=pl.String))


def _oldest_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Reverse the rows of each account whose newest rows come first. Where dates don't decide, balances do; where
    neither does, the other accounts of the file.
    """
    day_of = pl.when("is_dated").then(pl.col("date").str.head(10))
    before = day_of.shift(1).over(OF_ONE_ACCOUNT)
    size = exact(pl.col("amount")).abs()
    votes = rows.select(
        *OF_ONE_ACCOUNT,
        by_date=(before > day_of).cast(pl.Int64) - (before < day_of).cast(pl.Int64),
        by_balance=(balance_steps(-1).abs() == size).cast(pl.Int64) - (balance_steps(1).abs() == size).cast(pl.Int64),
    )
    all_votes = [pl.col(name).sum() for name in ("by_date", "by_balance")]
    own_votes = [vote.over(OF_ONE_ACCOUNT) for vote in all_votes]
    first_vote = pl.coalesce(pl.when(vote != 0).then(vote) for vote in (*own_votes, *all_votes)).fill_null(0)
    is_newest_first = votes.select(first_vote > 0).to_series()
    place = pl.col("place").cast(pl.Int64)
    mirrored = (place.min() + place.max()).over(OF_ONE_ACCOUNT) - place
    numbered = rows.with_row_index("place")
    return numbered.sort(pl.when(is_newest_first).then(mirrored).otherwise(place), maintain_order=True).drop("place")


def _land(rows: pl.DataFrame, currency: pl.Expr, digest: Digest | None) -> pl.DataFrame:
    """Return the account's fields, `line`, LANDED without the position, and DOUBTED; card and tax file numbers are
    masked, unless `digest` is None.
    """
    account = pl.col("account")
    of_branch = account.str.contains(_BSB_AND_NUMBER)
    is_number = account.str.contains(_NUMBER)
    label = pl.when(~is_number & ~of_branch).then(account)
    absent = pl.lit(None, pl.String)
    landed = rows.select(
        "line",
        "customer",
        bsb=pl.coalesce("bsb", account.str.extract(_BSB_AND_NUMBER, 1)),
        account_number=pl.when(of_branch).then(account.str.extract(_BSB_AND_NUMBER, 2)).when(is_number).then(account),
        account_name="account_name",
        bank_name=label,
        account_type=pl.coalesce(
            _type_of(pl.col("account_type")), "account_type", _type_of(pl.col("account_name")), _type_of(label)
        ),
        date="date",
        description=_description(),
        amount="amount",
        type=absent,
        balance="balance",
        transactionId="transaction_id",
        currency=currency,
        valueDate="value_date",
        status=pl.when(is_pending()).then(pl.lit("pending")),
        malformed=pl.lit([], LANDED["malformed"]),
        extra="extra",
        **_doubt_columns(),
    )
    # A repeated id identifies no row. Rows without an id don't matter, but `is_unique` takes nulls for repeated values.
    identifies = (pl.col("transactionId").is_unique() | pl.col("transactionId").is_null()).all().over(_ACCOUNT)
    with_unique_ids = landed.with_columns(transactionId=pl.when(identifies & ~_are_numbered()).then("transactionId"))
    if digest is None:
        absent_digests = {name: pl.lit(None, pl.Binary) for name in DIGESTS}
        return with_unique_ids.with_columns(masked=pl.lit(value=False), **absent_digests)
    return mask_rows(with_unique_ids, MASKED, digest)


def _are_numbered() -> pl.Expr:
    """Return whether ids only number the file's rows: 1, 2, 3 … The next export would begin at 1 again, and its rows
    would replace this one's.
    """
    number = pl.col("transactionId").cast(pl.Int64, strict=False)
    counted = (number.max() - number.min() + 1 == number.n_unique()) & (number.null_count() == 0)
    return ((number.min() <= 1) & counted).fill_null(value=False)


def _doubt_columns() -> dict[str, pl.Expr]:
    verdict, proved = (pl.col(name).str.to_lowercase() for name in ("statement_verdict", "statement_proved"))
    doubted = verdict.is_in(_DOUBTS) & (proved == "no")
    return {
        "statement_verdict": pl.when(doubted).then(verdict),
        "statement_proved": pl.when(doubted).then(pl.lit(value=False)),
    }


def _currency(columns: Columns, named: str | None) -> pl.Expr:
    """Return the currency that a row's column or its amount states, else the one that its account's name or the file
    (`named`) has, or null.
    """
    if columns.currency is not None:
        return pl.coalesce("stated_currency", pl.lit(columns.currency))
    accounts = (named_currency(pl.col(name)) for name in ("account", "account_name"))
    return pl.coalesce(pl.col("currency").str.to_uppercase(), "stated_currency", *accounts, pl.lit(named, pl.String))


def _named_currency(name: str, preamble: pl.DataFrame, columns: Columns) -> str | None:
    """Return the currency in the heading of the balances, in a line before it about the account, or in the file's
    name.
    """
    heading = (columns.heading or {}).get(columns.roles.get("balance", ""), "")
    lines = (" ".join(filter(None, cells)) for cells in preamble.drop("line").iter_rows())
    about_account = [line for line in lines if re.search(_ABOUT_ACCOUNT, line)]
    return stated_in_heading(heading) or named_in([*about_account, name])


def _type_of(words: pl.Expr) -> pl.Expr:
    """Return the type of account that the words name, or null, which means a transaction account."""
    return read_distinct(words, _read_types, None)


def _read_types(names: pl.DataFrame, _option: None) -> pl.Series:
    words = pl.col("text")
    named = pl.coalesce(pl.when(words.str.contains(shape)).then(pl.lit(kind)) for shape, kind in _TYPE_WORDS.items())
    is_no_type = words.str.contains(_OF_NO_TYPE) | (words.str.contains(_COMPANY) & ~words.str.contains(_PRODUCT))
    return names.select(pl.when(~is_no_type).then(named)).to_series()


def _description() -> pl.Expr:
    """Return the printed description in one line, with the payee in front if it has its own column."""
    printed, payee = pl.coalesce("description", "words"), pl.col("payee")
    names_payee = printed.str.to_lowercase().str.contains(payee.str.to_lowercase(), literal=True).fill_null(value=False)
    stated = pl.concat_str(pl.when(~names_payee).then(payee), printed, separator=" ", ignore_nulls=True)
    one_line = stated.str.replace_all(r"\s+", " ").str.strip_chars()
    return pl.coalesce(pl.when(one_line != "").then(one_line), "kind", pl.lit(NO_DESCRIPTION))


def _statements(landed: pl.DataFrame) -> Iterator[Statement]:
    """Yield a statement for each account that the rows name, in the file's order."""
    for key, rows in landed.partition_by(_ACCOUNT, as_dict=True, include_key=False).items():
        numbered = rows.with_row_index("position")
        yield Statement(
            rows=numbered.select(*LANDED.names(), *DOUBTED.names()).cast({**LANDED, **DOUBTED}),
            lines=numbered["line"],
            **dict(zip(_ACCOUNT, key, strict=True)),
        )


def name_accounts(statements: Sequence[tuple[str, Statement]]) -> tuple[Statement, ...]:
    """Give every statement an account. `statements` are those of several files, each with its file's name.

    An export that doesn't name its account gets the name of its file. Exports of the same account get the same name,
    the first one's. The name may show the account's type.
    """
    groups: list[list[int]] = []
    for number, (_, statement) in enumerate(statements):
        if statement.names_account:
            continue
        same = [
            group for group in groups if any(are_same_account(statements[member][1], statement) for member in group)
        ]
        groups = [group for group in groups if group not in same] + [
            sorted([*(member for group in same for member in group), number])
        ]
    names = {number: statements[group[0]][0] for group in groups for number in group}
    return tuple(
        replace(statement, bank_name=names[number], account_type=statement.account_type or _type_of_file(names[number]))
        if number in names
        else statement
        for number, (_, statement) in enumerate(statements)
    )


def _type_in(name: str) -> str | None:
    if _is_no_type(name):
        return None
    return next((kind for shape, kind in _TYPE_WORDS.items() if re.search(shape, name)), None)


def _is_no_type(name: str) -> bool:
    return bool(re.search(_OF_NO_TYPE, name)) or (bool(re.search(_COMPANY, name)) and not re.search(_PRODUCT, name))


def _type_of_file(name: str) -> str | None:
    """Return the type that a file's name names. `Loan` alone is rather what the file is for."""
    found = _type_in(name)
    return found if found != "loan" or re.search(_PRODUCT, name) else None


def are_same_account(one: Statement, other: Statement) -> bool:
    """Return whether two exports that don't name their account are of the same one: they share a row including its
    balance, or one's first balance follows from the other's last, or, without balances, they agree on the days that
    both cover.
    """
    if one.customer != other.customer:
        return False
    first, second = sorted((_comparable(statement) for statement in (one, other)), key=_first_date)
    if first.is_empty() or second.is_empty():
        return False
    stated = [rows.drop_nulls("balance") for rows in (first, second)]
    if any(rows.is_empty() for rows in stated):
        return _agree(first, second)
    shared = stated[0].join(stated[1], on=("date", "description", "amount", "balance"), how="semi")
    return not shared.is_empty() or _continues(first, second)


def _first_date(rows: pl.DataFrame) -> date:
    first = rows["date"].min()
    return first if isinstance(first, date) else date.max


def _comparable(statement: Statement) -> pl.DataFrame:
    """Return the rows that have a date and an amount other than zero, in exact types."""
    day = pl.col("date").str.head(10).str.to_date("%Y-%m-%d", strict=False)
    rows = statement.rows.select(
        "description", date=day, amount=exact(pl.col("amount")), balance=exact(pl.col("balance"))
    )
    return rows.filter(pl.col("date").is_not_null(), pl.col("amount") != 0)


def _continues(earlier: pl.DataFrame, later: pl.DataFrame) -> bool:
    last, first = earlier.row(-1, named=True), later.row(0, named=True)
    pause = (first["date"] - last["date"]).days
    follows = None not in (last["balance"], first["balance"]) and last["balance"] + first["amount"] == first["balance"]
    return follows and 0 <= pause <= _LONGEST_PAUSE


def _agree(first: pl.DataFrame, second: pl.DataFrame) -> bool:
    """Return whether nine in ten rows of each are in the other, on the days that both cover."""
    days = [rows.select(opens=pl.col("date").min(), ends=pl.col("date").max()) for rows in (first, second)]
    both = pl.concat(days).select(pl.col("opens").max(), pl.col("ends").min()).row(0)
    one, other = (rows.filter(pl.col("date").is_between(*both)) for rows in (first, second))
    key = ("date", "description", "amount")
    shared = min(one.join(other, on=key, how="semi").height, other.join(one, on=key, how="semi").height)
    return shared >= _MIN_SHARED and 10 * shared >= 9 * max(one.height, other.height)
