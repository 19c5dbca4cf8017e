"""Backtests: what a portfolio job that compares versions of a policy is asked for, and the decisions it reads."""

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
from storage.core.models import evaluations
from storage.portfolio.portfolio_jobs import PortfolioJob

MOST_DAYS = 24

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


class Against(StrEnum):
    """What a version is compared with."""

    VERSION = "version"  # another version
    RECORDED = "recorded"  # what was decided: of each customer the last evaluation that was answered
    CHALLENGER = "challenger"  # what was decided, and what the version's shadow runs made of the same


class Knowledge(StrEnum):
    """Of past days, what is looked at."""

    NOW = "now"  # all that is known by now of the time up to the day
    THEN = "then"  # what had been received, and which attributes were set, by the end of the day


@dataclass(frozen=True)
class Request:
    """`customers` and `attributes` narrow the portfolio down: these ids (None: all), with these values now."""

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
    def of_json(cls, text: str) -> "Request":
        said = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        only, other = said["customers"], said["other_version"]
        return cls(
            Against(said["against"]),
            None if other is None else int(other),
            tuple(map(date.fromisoformat, said["days"])),
            Knowledge(said["knowledge"]),
            said["inputs"],
            None if only is None else tuple(map(UUID, only)),
            said["attributes"],
        )


def latest_records(
    r: Reading, job: PortfolioJob, customer_numbers: Sequence[int], by: datetime, *, shadows: bool
) -> dict[int, tuple[Recorded, ...]]:
    """Return each customer's last evaluation by the policy that was answered by a time, what-ifs left out.

    Args:
        shadows: only evaluations that the job's version was shadow-run on; that run's record is the second.
    """
    shadow = evaluations.alias("shadow")
    ran = (shadow.c.shadow_of == evaluations.c.evaluation_id) & (shadow.c.version == job.version)
    beside = evaluations.join(shadow, ran) if shadows else evaluations
    last = (
        select(func.max(evaluations.c.number))
        .select_from(beside)
        .where(
            evaluations.c.policy_id == job.subject_id,
            evaluations.c.customer_number.in_(list(customer_numbers)),
            evaluations.c.shadow_of.is_(None),
            evaluations.c.what_if.is_(False),
            evaluations.c.at <= by,
        )
        .group_by(evaluations.c.customer_number)
    )
    columns = [evaluations.c.customer_number, evaluations.c.record, *([shadow.c.record] if shadows else [])]
    query = select(*columns).select_from(beside).where(evaluations.c.number.in_(last))
    return {number: tuple(map(Recorded.of, records)) for number, *records in r.execute(query)}
