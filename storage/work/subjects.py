"""What the ids of audit entries stand for: all of a kind by one query."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, case, select

from storage.core.database import AnyRow, AnySelect, Reading
from storage.core.json_member import json_member
from storage.core.models import (
    PolicyState,
    customers,
    evaluations,
    monitoring_ruleset_versions,
    monitoring_rulesets,
    policies,
    policy_versions,
    rule_matches,
    subscriptions,
)
from storage.work.items import DECIDED_BY, FIRED_BY, POLICY_NAME, RULESET_NAME


def find(r: Reading, client_id: UUID, name: str, ids: Iterable[UUID]) -> Sequence[AnyRow]:
    """Return the `id` of what the client has of a kind, with what it is called by. Unknown ids are left out.

    customerId: `name`, `abn`; rulesetId: `name`; subscriptionId: `event_type`, `webhook_url`; evaluationId:
    `policy_name`, `outcome`; matchId: `ruleset_name`, `customer_name`; policyId: `name` (of the published version, or
    else the newest), `slug`.
    """
    an_id, owner, query = _KINDS[name]
    return r.execute(query.add_columns(an_id.label("id")).where(owner == client_id, an_id.in_(list(ids)))).all()


_newest = policy_versions.alias()
_SHOWN_VERSION = (
    select(_newest.c.version)
    .where(_newest.c.policy_id == policies.c.policy_id)
    .order_by(case((_newest.c.state == PolicyState.PUBLISHED, 0), else_=1), _newest.c.version.desc())
    .limit(1)
    .scalar_subquery()
)
_KINDS: Final[Mapping[str, tuple[ColumnElement[UUID], ColumnElement[UUID], AnySelect]]] = MappingProxyType(
    {  # by the name of the id: the id, the client that owns it, and what is shown
        "customerId": (customers.c.customer_id, customers.c.client_id, select(customers.c.name, customers.c.abn)),
        "rulesetId": (
            monitoring_rulesets.c.ruleset_id,
            monitoring_rulesets.c.client_id,
            select(monitoring_rulesets.c.name),
        ),
        "subscriptionId": (
            subscriptions.c.subscription_id,
            subscriptions.c.client_id,
            select(subscriptions.c.event_type, subscriptions.c.webhook_url),
        ),
        "evaluationId": (
            evaluations.c.evaluation_id,
            evaluations.c.client_id,
            select(POLICY_NAME.label("policy_name"), evaluations.c.outcome).join_from(
                evaluations, policy_versions, DECIDED_BY
            ),
        ),
        "matchId": (
            rule_matches.c.match_id,
            rule_matches.c.client_id,
            select(RULESET_NAME.label("ruleset_name"), customers.c.name.label("customer_name"))
            .join_from(rule_matches, customers, customers.c.number == rule_matches.c.customer_number)
            .join(monitoring_ruleset_versions, FIRED_BY),
        ),
        "policyId": (
            policies.c.policy_id,
            policies.c.client_id,
            select(json_member(policy_versions.c.document, "name").label("name"), policies.c.slug)
            .join_from(policies, policy_versions, policy_versions.c.policy_id == policies.c.policy_id)
            .where(policy_versions.c.version == _SHOWN_VERSION),
        ),
    }
)
