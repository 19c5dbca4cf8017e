"""The request of a backtest, which is a portfolio job, and the recorded decisions that it reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import msgspec
from sqlalchemy import func, select

from pipelines.decisions import Recorded, Value
from storage.core.database import Reading
from storage.core.json_member import json_member
from storage.core.models import evaluations, jobs, portfolio_jobs

MAX_DAYS = 24

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


class Against(StrEnum):
    """What a version is compared with."""

    VERSION = "version"  # another version
    RECORDED = "recorded"  # each customer's last decision
    CHALLENGER = "challenger"  # each customer's last decision that the version shadowed as the challenger


class Knowledge(StrEnum):
    """Which data are used for a past day."""

    NOW = "now"  # everything known now about the time up to the day
    THEN = "then"  # only what was received, and the attributes set, by the end of the day


@dataclass(frozen=True)
class Request:
    """The request of a backtest.

    It covers all customers, or `customers`; of these, only those who have all `attributes` with these values now.
    """

    against: Against
    other_version: int | None
    days: tuple[date, ...]
    knowledge: Knowledge
    inputs: Mapping[str, Value]
    customers: tuple[UUID, ...] | None = None
    attributes: Mapping[str, Value] | None = None

    def as_json(self) -> str:
        return _encode(vars(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "Request":
        fields = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        only, other = fields["customers"], fields["other_version"]
        return cls(
            Against(fields["against"]),
            None if other is None else int(other),
            tuple(map(date.fromisoformat, fields["days"])),
            Knowledge(fields["knowledge"]),
            fields["inputs"],
            None if only is None else tuple(map(UUID, only)),
            fields["attributes"],
        )


def latest_of_version(r: Reading, policy_id: UUID, version: int) -> UUID | None:
    """Return the id of the policy's newest finished backtest in which this version decided, on either side."""
    against = json_member(portfolio_jobs.c.request, "against")
    other = json_member(portfolio_jobs.c.request, "other_version")
    query = (
        select(portfolio_jobs.c.job_id)
        .join_from(portfolio_jobs, jobs)
        .where(
            portfolio_jobs.c.subject_id == policy_id,
            portfolio_jobs.c.result.is_not(None),
            against != Against.CHALLENGER,  # compares recorded decisions only
            (portfolio_jobs.c.version == version) | (other == str(version)),
        )
        .order_by(jobs.c.received_seq.desc())
        .limit(1)
    )
    return r.execute(query).scalar_one_or_none()


def latest_records(
    r: Reading, policy_id: UUID, customer_numbers: Sequence[int], until: datetime, challenger: int | None = None
) -> dict[int, tuple[Recorded, ...]]:
    """Return the record of each customer's last decision by the policy up to a time, without what-ifs.

    Args:
        challenger: consider only evaluations that this version shadowed as the challenger; add the challenger's record
            as the second of each pair.
    """
    shadow = evaluations.alias("shadow")
    shadows = challenger is not None
    ran = (shadow.c.shadow_of == evaluations.c.evaluation_id) & (shadow.c.version == challenger)
    beside = evaluations.join(shadow, ran) if shadows else evaluations
    last = (
        select(func.max(evaluations.c.number))
        .select_from(beside)
        .where(
            evaluations.c.policy_id == policy_id,
            evaluations.c.customer_number.in_(list(customer_numbers)),
            evaluations.c.shadow_of.is_(None),
            evaluations.c.what_if.is_(False),
            evaluations.c.at <= until,
        )
        .group_by(evaluations.c.customer_number)
    )
    columns = [evaluations.c.customer_number, evaluations.c.record, *([shadow.c.record] if shadows else [])]
    query = select(*columns).select_from(beside).where(evaluations.c.number.in_(last))
    return {number: tuple(map(Recorded.of, records)) for number, *records in r.execute(query)}
