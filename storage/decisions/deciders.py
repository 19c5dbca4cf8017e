"""Read what decides on a client's customers: its published policies, with recorded inputs, and its active rulesets."""

from collections.abc import Mapping
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from pipelines.decisions import Attribute, plan_policy
from pipelines.decisions.backtest import recorded
from pipelines.monitoring import plan_rulesets
from pipelines.portfolio.impact import Deciders, TriedPolicy
from storage.core.database import Reading
from storage.decisions import backtests, context, policies
from storage.monitoring import attributes, rulesets


def read(
    r: Reading, client_id: UUID, versions: Mapping[int, int], now: datetime, as_of: date, zone: ZoneInfo
) -> Deciders:
    """Return what decides on these customers of one client now.

    Args:
        versions: customer number → data version.

    Raises:
        Corrupt: a stored policy or ruleset is damaged.
    """
    by_customer: dict[int, dict[str, Attribute]] = {number: {} for number in versions}
    for number, each in attributes.find_current(r, versions):
        by_customer[number][each.name] = Attribute(each.value, each.expires_at)
    active = rulesets.find_active(r, versions)
    return Deciders(
        now,
        context.read(r, versions, now, as_of, zone),
        by_customer,
        _read_policies(r, client_id, versions, now),
        plan_rulesets(rulesets.load_active(r, active)) if active else None,
    )


def _read_policies(r: Reading, client_id: UUID, customers: Mapping[int, int], now: datetime) -> list[TriedPolicy]:
    tried = []
    for stored, version in policies.find(r, client_id).items:
        records = backtests.latest_records(r, stored.policy_id, list(customers), now)
        decisions = {number: record for number, (record,) in records.items()}
        tried.append(TriedPolicy(stored.slug, plan_policy(version.policy), recorded.inputs_of(decisions)))
    return tried
