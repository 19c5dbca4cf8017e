"""Actions on decisions that may need an approval: publish a version, override a decision."""

from api.http.dependencies import Caller
from storage.access.approvals import Approval
from storage.core.database import Writing
from storage.decisions import evaluations, policies
from storage.decisions.evaluations import Evaluation, Override
from storage.decisions.policies import PolicyVersion, StoredPolicy


def publish(caller: Caller, w: Writing, stored: StoredPolicy, number: int | None) -> PolicyVersion:
    """Publish a version of a policy, by default the newest."""
    version = policies.publish(w, stored, number, caller.who, caller.now)
    if version.published_at == caller.now:
        caller.audit(w, "Policy.Published", policyId=stored.policy_id, version=str(version.version))
    return version


def override(
    caller: Caller, w: Writing, evaluation: Evaluation, outcome: str, reason: str, decided_by: str
) -> Override:
    """Override the outcome of an evaluation."""
    stored = evaluations.add_override(w, evaluation, outcome, reason, decided_by, caller.who, caller.now)
    caller.audit(w, "Decision.Overridden", evaluationId=evaluation.evaluation_id)
    return stored


def perform_publication(caller: Caller, w: Writing, approved: Approval) -> None:
    publish(caller, w, caller.policy(w, approved.subject["slug"]), approved.request["version"])


def perform_override(caller: Caller, w: Writing, approved: Approval) -> None:
    requested = approved.request
    evaluation = caller.evaluation(w, approved.subject["evaluationId"])
    override(caller, w, evaluation, requested["outcome"], requested["reason"], requested["decidedBy"])
