"""Requests for actions that need a second person or key, as they are shown and decided."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import (
    Rule,
    choice_parameter,
    distinct,
    identifier_parameter,
    masked_text,
    one_of,
    or_null,
    required_text,
)
from storage.access.approvals import REQUIRABLE
from storage.core.models import ApprovalKind, ApprovalStatus

MAX_REASON = 2_000  # characters


class ApprovalView(View):
    """A requested action, and what became of the request."""

    approval_id: UUID
    kind: ApprovalKind = Field(
        description="publish: a version of a decision policy; override: a decision; activate: a ruleset, created or "
        "replaced; lift: the requirement of an approval, for some of these."
    )
    status: ApprovalStatus = Field(
        description="superseded: by a later request for the same subject; withdrawn: by the requester."
    )
    subject: Mapping[str, str] = Field(
        description="Ids by name: `policyId` and `slug`; `evaluationId` and `customerId`; or `rulesetId` (absent for a "
        "new one) and `slug`; none for `lift`."
    )
    request: Any = Field(
        description="What is done on approval: `version` is published; `outcome`, `reason` and `decidedBy` override; "
        "`document` is the ruleset, and `replaces` the version it replaces, null for a new one; `actions` need an "
        "approval from then on, instead of `replaces`."
    )
    requested_by: str = Field(description="Id of the person or API key. `GET /v1/actors` has names.")
    requested_at: datetime
    decided_by: str | None = Field(description="Who approved, declined or withdrew it, or sent the later request.")
    decided_at: datetime | None = Field(description="Null while it is pending.")
    reason: str | None = Field(description="Why it was declined.")


class ApprovalListView(Counts):
    approvals: list[ApprovalView] = Field(description="Newest first.")


class ApprovalsQuery(Paging):
    kind: Annotated[
        ApprovalKind | None,
        choice_parameter("kind", "Approval.InvalidKind", ApprovalKind, "Only requests for this kind of action."),
    ] = None
    status: Annotated[
        ApprovalStatus | None,
        choice_parameter("status", "Approval.InvalidStatus", ApprovalStatus, "Only requests in this status."),
    ] = None
    evaluation_id: Annotated[
        UUID | None,
        identifier_parameter("evaluationId", "Approval.InvalidEvaluation", "Only requests to override this decision."),
    ] = None


def _actions(value: Any) -> list[ApprovalKind]:
    named = list[str]() if value == [] else distinct(one_of(*REQUIRABLE), len(REQUIRABLE))(value)
    return [kind for kind in REQUIRABLE if kind in named]


_ACTIONS_SCHEMA = {
    "type": "array",
    "items": {"type": "string", "enum": list(REQUIRABLE)},
    "maxItems": len(REQUIRABLE),
    "uniqueItems": True,
}


class SentFourEyes(Received):
    actions: Annotated[
        list[ApprovalKind],
        Rule(
            _actions,
            "FourEyes.InvalidActions",
            f"actions must be a list of distinct actions of {', '.join(REQUIRABLE)}.",
            {**_ACTIONS_SCHEMA, "description": "All actions that need an approval from now on."},
        ),
    ]
    replaces: Annotated[
        list[ApprovalKind] | None,
        Rule(
            or_null(_actions),
            "FourEyes.InvalidActions",
            f"replaces must be null or a list of distinct actions of {', '.join(REQUIRABLE)}.",
            {
                "anyOf": [_ACTIONS_SCHEMA, {"type": "null"}],
                "description": "The actions that need an approval now; if others do, nothing is changed. Without "
                "it, what others have changed since the setting was read may be lost.",
            },
        ),
    ] = None


class FourEyesView(View):
    actions: Sequence[ApprovalKind] = Field(description="The actions that another person or key must approve.")


class SentDecline(Received):
    reason: Annotated[
        str,
        required_text(
            "reason", "Approval.InvalidReason", MAX_REASON, "Why it is declined, in your words.", parse=masked_text
        ),
    ]
