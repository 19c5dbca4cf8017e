"""Convert statements to submissions, as the service would store them if a lender had sent each one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

import polars as pl

from pipelines.intake.accounts import identify
from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.exports.statements import DOUBTED, Statement
from pipelines.vocabulary.schemas import LANDED, SUBMISSION

_OF_ROW = pl.Schema({**LANDED, **DOUBTED})
_CUSTOMERS = UUID("6f1c9f0e-2a57-4c0b-9d5e-8b1f5d1f7a10")  # namespace in which customers' ids are derived from names


@dataclass(frozen=True)
class Submitted:
    """Submissions made from statements.

    `rows`: SUBMISSION and LANDED; `job_id` is the statement's number (see `statement_number`). `customers`: names by
    number; None if the file names no customer.
    """

    rows: pl.LazyFrame
    customers: Mapping[int, str | None]


def as_submission(statements: Sequence[Statement], received_at: datetime) -> Submitted:
    """Return the rows of all statements, as if they had been sent in the order of their first dates."""
    names = dict.fromkeys(statement.customer for statement in statements)
    numbers = {name: number for number, name in enumerate(names, start=1)}
    first_dates = [str(statement.rows["date"].min() or "") for statement in statements]
    earliest_first = sorted(range(len(first_dates)), key=first_dates.__getitem__)
    order = {number: seq for seq, number in enumerate(earliest_first)}
    contexts = pl.DataFrame(
        [
            _context(statement, numbers[statement.customer], number, order[number], received_at)
            for number, statement in enumerate(statements)
        ],
        schema=SUBMISSION,
    )
    rows = pl.concat(
        [
            pl.DataFrame(schema={"job_id": SUBMISSION["job_id"], **_OF_ROW}),
            *(
                statement.rows.match_to_schema(_OF_ROW, missing_columns="insert").select(
                    pl.lit(job_id(number)).alias("job_id"), *_OF_ROW.names()
                )
                for number, statement in enumerate(statements)
            ),
        ]
    )
    joined = contexts.drop(*DOUBTED).lazy().join(rows.lazy(), on="job_id", validate="1:m", maintain_order="left_right")
    return Submitted(
        joined.select(*SUBMISSION.names(), *LANDED.names()), {number: name for name, number in numbers.items()}
    )


def job_id(statement_number: int) -> bytes:
    return UUID(int=statement_number).bytes


def statement_number(job: bytes) -> int:
    return UUID(bytes=job).int


def _context(
    statement: Statement, customer_number: int, number: int, received_seq: int, received_at: datetime
) -> dict[str, object]:
    customer_id = uuid5(_CUSTOMERS, statement.customer or "")
    account, _ = identify(
        customer_id,
        account_name=statement.account_name,
        bsb=statement.bsb,
        account_number=statement.account_number,
        bank_name=statement.bank_name,
        account_type=statement.account_type,
        credit_limit=statement.credit_limit,
        digest=temporary_digest,
    )
    account_id = uuid5(customer_id, statement.account_key) if statement.account_key else account.account_id
    return {
        "customer_number": customer_number,
        "job_id": job_id(number),
        "received_seq": received_seq,
        "received_at": received_at,
        "appended": False,
        "account_id": account_id.bytes,
        "account_identified": account.identified,
        "account_name": account.account_name,
        "bsb": account.bsb,
        "account_number": account.account_number,
        "bank_name": account.bank_name,
        "account_type": account.account_type,
        "account_type_text": account.account_type_text,
        "credit_limit": account.credit_limit,
        "statement_id": None,
    }
