"""Check a policy before it is saved, for the API and commands: first all faults, then unacknowledged warnings."""

from collections.abc import Callable, Sequence

from pipelines.decisions import Policy
from pipelines.decisions.check import CheckedPolicy, Finding
from pipelines.pages.wording import quantity
from pipelines.vocabulary.errors import Fault, InvalidRequest


def require_valid(checked: CheckedPolicy, slug: str | None = None) -> Policy:
    """Return the policy of a checked document.

    Args:
        slug: the slug that the document must have.

    Raises:
        InvalidRequest: the document has faults; all are listed.
    """
    faults = [*checked.faults, *_slug_faults(checked.policy, slug)]
    if faults or checked.policy is None:
        raise _refusal("DecisionPolicy.Invalid", f"The policy has {quantity(len(faults), 'fault')}.", faults)
    return checked.policy


def require_acknowledged(warnings: Sequence[Finding], accepts: Callable[[Finding], bool]) -> None:
    """Raise InvalidRequest with the warnings that are not accepted, if there are any."""
    unaccepted = [each for each in warnings if not accepts(each)]
    if unaccepted:
        detail = f"The policy has {quantity(len(unaccepted), 'warning')} to acknowledge by code and pointer."
        raise _refusal("DecisionPolicy.WarningsNotAcknowledged", detail, unaccepted)


def as_records(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [{"pointer": each.pointer, "code": each.code, "message": each.message} for each in findings]


def _slug_faults(policy: Policy | None, slug: str | None) -> list[Fault]:
    if policy is not None and slug is not None and policy.slug != slug:
        return [Fault("/slug", "DecisionPolicy.SlugMismatch", "The document's slug is not the one in the path.")]
    return []


def _refusal(code: str, detail: str, findings: Sequence[Finding]) -> InvalidRequest:
    return InvalidRequest(code, detail, tuple(findings))
