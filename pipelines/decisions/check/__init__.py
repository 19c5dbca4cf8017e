"""Whether a policy may be saved: every fault of a document at once, each with where it stands and in words; and the
warnings that have to be acknowledged.

    bounds      no larger than it may be, before anything is built of it
    files       from text to plain data
    shape       read strictly
    references  names that stand twice, or for nothing
    ranges      what can never be, or always is (`truth`, of `spans` of values; `folding`: what constants come to)
    leniency    where less data gives more

A fault of one sort hides none of another, apart from the bounds, and from what would follow from a wrong kind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from pipelines.decisions.check import leniency, ranges, references
from pipelines.decisions.check.bounds import beyond_bounds
from pipelines.decisions.check.files import document_in
from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.check.shape import plain, shaped
from pipelines.decisions.plan import Plan
from pipelines.decisions.policy import Policy

__all__ = ["Checked", "Finding", "ranges", "read", "read_text", "references", "unreached"]

MOST_FAULTS = 1_000  # told at once: a document with more is none
CALCULATING = ("steps", "limits")  # where numbers and conditions stand


@dataclass(frozen=True)
class Checked:
    """`policy`: None while there is any fault. `warnings`: each is acknowledged by its code and pointer."""

    policy: Policy | None
    faults: list[Finding]
    warnings: list[Finding]


def read(document: object) -> Checked:
    """A document as plain data, from JSON (`strict_json` or the standard library's) or YAML."""
    if beyond := beyond_bounds(document, CALCULATING):
        return Checked(None, [beyond], [])
    given = plain(document)
    policy, misshapen = shaped(given, Policy)
    dangling = list(islice(references.found(given), MOST_FAULTS))
    astray = references.of_wrong_kind(dangling)
    faults = in_order([*misshapen, *dangling, *ranges.found(given, astray)])[:MOST_FAULTS]
    own = [] if policy is None else [*leniency.warned(policy), *_unpriced(policy)]
    return Checked(None if faults else policy, faults, in_order([*own, *ranges.warned(given, astray)]))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By where they stand, each once."""
    return sorted(dict.fromkeys(findings), key=lambda each: (_place(each.pointer), each.code))


def _place(pointer: str) -> list[tuple[int, str]]:
    return [(int(step), "") if step.isdecimal() else (-1, step) for step in pointer.split("/")]


def _unpriced(policy: Policy) -> Iterable[Finding]:
    priced = {limit.product for limit in policy.limits}
    for nth, product in enumerate(policy.products):
        if product.slug not in priced:
            says = "No limit is computed for this product: no answer will name it."
            yield finding(f"/products/{nth}", "ProductWithoutLimit", says)


def read_text(text: str, yaml: bool) -> Checked:
    """A file's text, as YAML or JSON."""
    document, unreadable = document_in(text, yaml)
    return Checked(None, [unreadable], []) if unreadable else read(document)


# The portfolio


def unreached(plan: Plan, reached: Mapping[int, int], customers: int) -> list[Finding]:
    """Steps that no customer has ever reached; none are named while there are no customers.

    Args:
        reached: how many customers reached the step, by its number from 0.
        customers: how many there are in the portfolio.
    """
    says = f"Of {customers:,} customers in the portfolio none has ever reached this step."
    never = [nth for nth in range(len(plan.steps)) if customers and not reached.get(nth)]
    return [finding(f"/steps/{nth}", "StepNeverReached", says) for nth in never]
