"""Decide which accounts of a customer the rows of exports belong to.

Most exports don't name their account. Their rows then belong to the stored account that they overlap or continue, or
else to an account with the file's name. Otherwise the same rows would count twice, in two accounts. Accounts of
submissions that wait to be enriched count as stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl

from api.http.dependencies import Caller
from pipelines.intake.accounts import Account, Oddity, identify
from pipelines.intake.exports import Statement, are_same_account, name_accounts
from pipelines.intake.rows import read_date
from pipelines.vocabulary.schemas import SORT_KEY
from storage.customers.customers import Customer
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.jobs.jobs import Job

_ROW = ("date", "description", "amount", "balance")
_OF_ACCOUNT = tuple(field.name for field in fields(Account) if field.name != "identified")
_IDENTIFIED = "account_identified"


@dataclass(frozen=True)
class IdentifiedStatement:
    """A statement with its account, and warnings about how the account was found."""

    statement: Statement
    account: Account
    oddities: tuple[Oddity, ...]


@dataclass(frozen=True)
class _Known:
    """An account with its rows, stored or of one submission."""

    account: Account
    rows: Statement


def find_accounts(
    caller: Caller, customer: Customer, exports: Sequence[tuple[str, Statement]]
) -> list[IdentifiedStatement]:
    """Return the account of each statement.

    Args:
        exports: the statements of all files, each with its file's name.
    """
    named = name_accounts(exports)
    nameless = [each for each, (_, sent) in zip(named, exports, strict=True) if not sent.names_account]
    zone = caller.store.settings.timezone
    # Waiting submissions are read first: one that is stored in between is then in both lists, and not in neither.
    known = [*_read_waiting(caller, customer, zone), *_read_known(caller, customer)] if nameless else []
    names = {each.bank_name for each in nameless}
    compared = [_with_dates_of(zone, each) for each in nameless]
    found = {name: _find_known(known, [each for each in compared if each.bank_name == name]) for name in names}
    return [
        _identify_named(caller, customer, each)
        if sent.names_account
        else _identify_nameless(caller, customer, each, found)
        for each, (_, sent) in zip(named, exports, strict=True)
    ]


def _with_dates_of(zone: str, statement: Statement) -> Statement:
    """Return the statement with the dates that its rows will be stored with."""
    day = read_date("date", zone).dt.to_string("%Y-%m-%d")
    return replace(statement, rows=statement.rows.with_columns(date=pl.coalesce(day, "date")))


def _identify_named(caller: Caller, customer: Customer, statement: Statement) -> IdentifiedStatement:
    account, oddities = identify(
        customer.customer_id,
        account_name=statement.account_name,
        bsb=statement.bsb,
        account_number=statement.account_number,
        bank_name=statement.bank_name,
        account_type=statement.account_type,
        credit_limit=statement.credit_limit,
        digest=caller.store.vault.digest,
    )
    return IdentifiedStatement(statement, account, oddities)


def _identify_nameless(
    caller: Caller, customer: Customer, statement: Statement, found: Mapping[str | None, Account | None]
) -> IdentifiedStatement:
    known = found[statement.bank_name]
    if known is not None:
        message = "The file names no account: its rows belong to a stored account that they overlap or continue."
        return IdentifiedStatement(statement, known, (Oddity("Export.KnownAccount", message),))
    message = "The file names no account: its rows belong to an account with the file's name."
    named = _identify_named(caller, customer, statement)
    return replace(named, oddities=(*named.oddities, Oddity("Export.NamesNoAccount", message)))


def _read_known(caller: Caller, customer: Customer) -> Iterator[_Known]:
    """Yield the customer's accounts with their current transactions."""
    columns = (*dict.fromkeys((*_OF_ACCOUNT, _IDENTIFIED, *SORT_KEY, *_ROW)),)
    with caller.reading() as r:
        held = transactions.posted_or_pending(r, caller.store.lake, customer, columns).sort(SORT_KEY).collect()
    texts = held.with_columns(pl.col("date").dt.to_string("%Y-%m-%d"), pl.col("amount", "balance").cast(pl.String))
    for rows in texts.partition_by("account_id"):
        lines = pl.int_range(rows.height, dtype=pl.UInt32, eager=True)
        yield _Known(_account_of(rows.row(-1, named=True)), Statement(rows.select(_ROW), lines))


def _read_waiting(caller: Caller, customer: Customer, zone: str) -> Iterator[_Known]:
    """Yield the accounts of submissions that wait to be enriched, with their rows as sent."""
    with caller.reading() as r:
        waiting = jobs.find_waiting_feeds(r, customer.number)
    for job in waiting:
        path = caller.store.lake.verified_path(job.landing_path or "", job.landing_sha256 or b"")
        rows = pl.read_parquet(path, columns=[*_ROW])
        lines = pl.int_range(rows.height, dtype=pl.UInt32, eager=True)
        yield _Known(_account_sent(job), _with_dates_of(zone, Statement(rows.select(_ROW), lines)))


def _account_sent(job: Job) -> Account:
    """Return the account as it was identified when the submission was accepted."""
    sent = {field.name: (job.submission or {})[field.name] for field in fields(Account)}
    limit = None if sent["credit_limit"] is None else Decimal(sent["credit_limit"])
    return Account(**sent | {"account_id": UUID(sent["account_id"]), "credit_limit": limit})


def _account_of(row: Mapping[str, Any]) -> Account:
    described = {name: row[name] for name in _OF_ACCOUNT}
    return Account(**described | {"account_id": UUID(bytes=row["account_id"]), "identified": row[_IDENTIFIED]})


def _find_known(known: Sequence[_Known], statements: Sequence[Statement]) -> Account | None:
    """Return the only known account that matches any of the statements; None if none or several match."""
    same = {
        each.account.account_id: each.account
        for each in known
        if any(are_same_account(each.rows, replace(statement, customer=None)) for statement in statements)
    }
    return next(iter(same.values())) if len(same) == 1 else None
