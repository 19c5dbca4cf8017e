"""Convert statements read from PDFs to rows. These are stored with their places on the pages, and are landed and
enriched like any others.

A row that another statement of the same submission already holds is stored, but not landed again.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid5

import polars as pl

from pipelines.intake.accounts import Account, identify
from pipelines.intake.as_sent import Digest, digest_descriptions
from pipelines.intake.masking import mask_text, masked_texts
from pipelines.intake.pdf.page.result import Box, Entry, Extraction, Refusal, Statement, refused_extraction
from pipelines.intake.rows import MAX_DESCRIPTION, MAX_INTEGER_DIGITS
from pipelines.vocabulary.schemas import LANDED, STATEMENT_COLUMNS, STATEMENT_ROWS

MAX_FILE_NAME = 255  # characters
_AMOUNT_END = Decimal(10) ** MAX_INTEGER_DIGITS  # amounts are less
_OF_ROW = {name: STATEMENT_COLUMNS[name] for name in ("statement_id", "statement_proved")}  # differ from row to row
_OF_ACCOUNT = pl.Schema({name: kind for name, kind in STATEMENT_COLUMNS.items() if name != "statement_proved"})
UNDESCRIBED = "(nothing printed)"  # because `validate` refuses a row without a description


def shown_name(name: str) -> str:
    """Return a file's name for display: no control characters, card and tax file numbers masked, at most
    MAX_FILE_NAME.
    """
    visible = "".join(character for character in name if not unicodedata.category(character).startswith("C"))
    return mask_text(visible).strip()[:MAX_FILE_NAME]


def statement_id(file_id: UUID, position: int) -> UUID:
    """Return the id of the statement at this position in the file. Reading the file again gives the same id."""
    return uuid5(file_id, str(position))


def in_currency(extraction: Extraction, currency: str) -> Extraction:
    """Return a file with only its statements in this currency; its message names the others' currencies.

    A statement that names no currency is assumed to be in this one. If no statement remains, the file is refused:
    amounts in two currencies are never combined.
    """
    own = tuple(statement for statement in extraction.statements if (statement.currency or currency) == currency)
    if len(own) == len(extraction.statements):
        return extraction
    stated = {statement.currency for statement in extraction.statements if statement.currency}
    message = f"Only {currency} is accepted: the file's money in {', '.join(sorted(stated - {currency}))} was left out."
    if not own:
        return refused_extraction(Refusal.UNSUPPORTED_CURRENCY, message, extraction.pages, extraction.signals)
    return replace(extraction, statements=own, message=message)


def fits(statement: Statement) -> bool:
    """Return whether all amounts are whole cents in the range that rows may have. If not, the statement was misread or
    manipulated.
    """
    amounts = (amount for entry in statement.entries for amount in (entry.amount, entry.balance))
    all_amounts = (*amounts, statement.opening_balance, statement.closing_balance, statement.credit_limit)
    return all(
        money.is_finite() and abs(money) < _AMOUNT_END and money == round(money, 2)
        for money in all_amounts
        if money is not None
    )


def masked_entries(statement: Statement) -> int:
    """Count the entries in which a card or tax file number is masked for display."""
    return sum(
        entry.description_digest is not None or mask_text(entry.description) != entry.description
        for entry in statement.entries
    )


def account_of(customer_id: UUID, statement: Statement, digest: Digest) -> Account:
    """Return the customer's account that a statement belongs to."""
    account, _ = identify(
        customer_id,
        account_name=statement.account_name,
        bsb=statement.bsb,
        account_number=statement.account_number,
        bank_name=statement.bank_name,
        account_type=statement.account_type,
        credit_limit=statement.credit_limit,
        digest=digest,
    )
    return account


def rows_of(statements: Mapping[UUID, Statement], repeated: Sequence[Collection[int]], digest: Digest) -> pl.DataFrame:
    """Return the statements' rows in schema STATEMENT_ROWS.

    Args:
        repeated: for each statement, its entries (from 0) that another of the statements already holds.
        digest: applied to descriptions as printed, where masking changes them.
    """
    frames = [_rows(number, statement) for number, statement in statements.items()]
    known = [
        index in already for statement, already in zip(statements.values(), repeated, strict=True)
        for index in range(len(statement.entries))
    ]  # fmt: skip
    lands = ~pl.col("known")
    return (
        pl.concat([pl.DataFrame(schema=STATEMENT_ROWS), *frames])
        .with_columns(pl.Series("known", known, pl.Boolean))
        .with_columns(position=pl.when(lands).then(lands.cum_sum() - 1).cast(pl.UInt32))
        .select(STATEMENT_ROWS.names())
        .pipe(_mask_descriptions, digest)
    )


def _mask_descriptions(rows: pl.DataFrame, digest: Digest) -> pl.DataFrame:
    """Mask descriptions and fill their digests. One that was masked at an earlier reading keeps its digest."""
    changed = masked_texts(rows["description"])
    fresh = digest_descriptions(rows["description"], changed, digest)
    return rows.with_columns(
        pl.col("description").replace(changed), description_digest=pl.coalesce("description_digest", fresh)
    )


def _rows(statement_id: UUID, statement: Statement) -> pl.DataFrame:
    entries = statement.entries
    facts = ("date", "value_date", "description", "description_digest", "amount", "balance", "balance_printed")
    facts += ("proved", "currency")
    columns = {name: [getattr(entry, name) for entry in entries] for name in facts}
    boxes = [[vars(box) for box in entry.boxes] for entry in entries]
    frame = pl.DataFrame(
        {
            "statement_id": [statement_id.bytes] * len(entries),
            "row": range(1, len(entries) + 1),
            "position": [None] * len(entries),
            **columns,
            "boxes": boxes,
        },
        schema=STATEMENT_ROWS,
    )
    return frame.with_columns(description=_printed_description())


def _printed_description() -> pl.Expr:
    """Return the printed description as one line, cut to the length that rows may have."""
    line = pl.col("description").str.replace_all(r"\p{Cc}+", " ").str.strip_chars().str.head(MAX_DESCRIPTION)
    return pl.when(line != "").then(line).otherwise(pl.lit(UNDESCRIBED))


def land_statement_rows(
    rows: pl.DataFrame, accounts: Mapping[UUID, Account], statements: Mapping[UUID, Statement]
) -> pl.DataFrame:
    """Return the rows (STATEMENT_ROWS) that land, each with its account, in schema LANDED and STATEMENT_COLUMNS."""
    of_statements = pl.DataFrame(
        [_account_fields(number, account, statements[number]) for number, account in accounts.items()],
        schema=_OF_ACCOUNT,
    )
    return (
        rows.filter(pl.col("position").is_not_null())
        .select(
            pl.col("statement_id", "position", "description"),
            pl.col("date").dt.to_string("%Y-%m-%d"),
            valueDate=pl.col("value_date").dt.to_string("%Y-%m-%d"),
            amount=pl.col("amount").cast(pl.String),
            balance=pl.col("balance").cast(pl.String),
            malformed=pl.lit([], LANDED["malformed"]),
            statement_proved="proved",
            currency="currency",
            masked=pl.col("description_digest").is_not_null(),
            descriptionDigest="description_digest",
        )
        .match_to_schema({**LANDED, **_OF_ROW}, missing_columns="insert")
        .join(of_statements, on="statement_id", how="left", validate="m:1", maintain_order="left")
        .select(*LANDED.names(), *STATEMENT_COLUMNS.names())
    )


def _account_fields(statement_id: UUID, account: Account, statement: Statement) -> dict[str, object]:
    described = {**vars(account), "account_id": account.account_id.bytes, "account_identified": account.identified}
    return {name: described.get(name) for name in _OF_ACCOUNT.names()} | {
        "statement_id": statement_id.bytes,
        "statement_verdict": statement.verdict.value,
    }


def entries_of(rows: pl.DataFrame) -> tuple[Entry, ...]:
    """Return the entries of one statement from its rows in STATEMENT_ROWS."""
    return tuple(
        _entry(**row) for row in rows.sort("row").drop("statement_id", "row", "position").iter_rows(named=True)
    )


def _entry(boxes: Sequence[Mapping[str, Any]], proved: bool | None, **rest: Any) -> Entry:
    return Entry(boxes=tuple(Box(**box) for box in boxes), proved=bool(proved), **rest)
