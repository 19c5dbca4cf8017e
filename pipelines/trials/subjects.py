"""The customers of a trial: for each, the ledger as an attacker sees it, and what is known of its accounts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import polars as pl

from pipelines.attacks.attack import Applicant
from pipelines.attacks.ledger import as_ledger
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.intake.accounts import identify
from pipelines.intake.as_sent import temporary_digest
from pipelines.risk_models.expecting import decide_expected_evidence
from pipelines.risk_models.files import accepted_rows, as_submission
from pipelines.scorecards.expected import Expected
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS


class Details(NamedTuple):
    """What a client states of an account besides its number, bank and type."""

    name: str | None = None
    bsb: str | None = None
    credit_limit: Decimal | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """A customer of a trial.

    `accounts`: by account number. `defaults`: whether the customer defaulted later; None if unknown. `lacks_account`:
    whether one of the customer's accounts is known to be missing from the ledger.
    """

    name: str
    applicant: Applicant
    accounts: Mapping[str, Details] = field(default_factory=dict)
    defaults: bool | None = None
    lacks_account: bool = False


def subjects_of_files(rows: pl.DataFrame, cases: pl.DataFrame) -> tuple[list[Subject], Expected]:
    """Return the customers of two CSV files, and the evidence that `decide_expected_evidence` expects of all of them.

    Attacks choose rows by their categories and counterparties, which are those that enrichment finds for the untouched
    rows.

    Args:
        rows: of `files.parse_transactions`.
        cases: `case, customer, as_of, defaulted`; cases without rows are left out.
    """
    accepted = accepted_rows(rows, cases)
    meaning = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect()
    read = meaning.select("position", "category", case="customer_number", counterparty="counterparty_name")
    placed = rows.with_row_index("position").join(read, on="position", how="inner", maintain_order="left")
    by_case = placed.sort("position").partition_by("case", as_dict=True)
    subjects = [
        Subject(customer, Applicant(as_ledger(by_case[case,]), as_of), {}, None if bad is None else bool(bad))
        for case, customer, as_of, bad in cases.select("case", "customer", "as_of", "defaulted").iter_rows()
        if (case,) in by_case
    ]
    last: date = cases["as_of"].max()  # pyrefly: ignore[bad-assignment]
    return subjects, decide_expected_evidence(Facts(meaning, last))


def cases_without_outcomes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `case, customer, as_of, defaulted`: every customer on the day of its last row."""
    last = rows.group_by("customer", maintain_order=True).agg(as_of=pl.col("date").max())
    return last.with_row_index("case", offset=1).with_columns(
        pl.col("case").cast(pl.Int64), defaulted=pl.lit(None, pl.Int8)
    )


def as_accepted(number: int, ledger: pl.DataFrame, accounts: Mapping[str, Details]) -> pl.DataFrame:
    """Return a ledger as rows that are ready for enrichment (schema ACCEPTED), as one submission."""
    known = ledger.unique("account", maintain_order=True).select("account", "account_type", "bank").iter_rows()
    described = [
        _account(number, account, kind, bank, accounts.get(account, Details())) for account, kind, bank in known
    ]
    rows = ledger.with_row_index("position").rename({"bank": "bank_name"}).drop("account_type")
    accounts_ = pl.DataFrame(described, schema=_ACCOUNT)
    placed = rows.join(accounts_, on="account", how="left", validate="m:1", maintain_order="left")
    return as_submission(placed.with_columns(customer_number=pl.lit(number, pl.Int64)))


_ACCOUNT = pl.Schema(
    {
        "account": pl.String(),
        **{
            name: ACCEPTED[name]
            for name in ("account_id", "account_name", "bsb", "account_number", "account_type", "credit_limit")
        },
    }
)


def _account(
    number: int, account: str, account_type: str | None, bank: str | None, details: Details
) -> dict[str, object]:
    identified, _ = identify(
        UUID(int=number),
        account_name=details.name,
        bsb=details.bsb,
        account_number=account,
        bank_name=bank,
        account_type=account_type,
        credit_limit=details.credit_limit,
        digest=temporary_digest,
    )
    return {
        "account": account,
        "account_id": identified.account_id.bytes,
        "account_name": identified.account_name,
        "bsb": identified.bsb,
        "account_number": identified.account_number,
        "account_type": identified.account_type,
        "credit_limit": identified.credit_limit,
    }
