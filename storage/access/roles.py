"""Roles of users, and the scopes that each grants. A role grants everything that the roles before it grant."""

from enum import StrEnum
from types import MappingProxyType

from storage.access.keys import SCOPES


class Role(StrEnum):
    VIEWER = "viewer"  # reads customers, their reports and decisions
    ANALYST = "analyst"  # submits, corrects, decides by published policies, and drafts policies
    APPROVER = "approver"  # publishes and archives policies, overrides decisions, and writes rulesets
    ADMIN = "admin"  # everything, with users, keys and webhooks


_ADDED = {
    Role.VIEWER: (
        "customer:riskscore",
        "customer:reports",
        "customer:completeness",
        "transactions:aggregate",
        "decision-policies:read",
    ),
    Role.ANALYST: (
        "customer:attributes",
        "customer:work",
        "transactions:enrich",
        "transactions:extract",
        "decision-policies:evaluate",
        "decision-policies:write",
    ),
    Role.APPROVER: ("decision-policies:publish", "decision-policies:override", "monitoring:rules"),
    Role.ADMIN: SCOPES,
}


def _scopes_of(role: Role) -> frozenset[str]:
    roles = list(Role)
    return frozenset(scope for each in roles[: roles.index(role) + 1] for scope in _ADDED[each])


GRANTS = MappingProxyType({role: _scopes_of(role) for role in Role})
