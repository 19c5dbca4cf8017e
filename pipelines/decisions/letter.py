"""The letter to an applicant: the outcome in plain words, the reasons as the policy words them for customers, and the
amounts that are offered.

It contains nothing that is meant for the lender's staff: no codes, metrics, rules or reasons of an override.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipelines.decisions.policy import Outcome, Policy
from pipelines.pages import Grid, Page, Paragraph, Part, Point, Points, Section, number_columns, render
from pipelines.pages.wording import abn, day, money

DECISIONS: Mapping[str, str] = {
    "proceed": "We have approved your application.",
    "conditional": "We have not made a final decision on your application. Someone will look at it and contact you.",
    "blocked": "We are not able to approve your application.",
}
OFFERS: Mapping[str, tuple[str, str]] = {  # heading and words
    "proceed": ("What we offer", "You can borrow up to these amounts. The terms follow separately."),
    "conditional": (
        "What we could offer",
        "If we approve your application, you can borrow up to these amounts. The terms follow separately.",
    ),
}


@dataclass(frozen=True)
class About:
    """Who writes to whom, and when the decision was made. `reference`: the lender's own reference."""

    lender: str
    name: str | None
    abn: str
    reference: str | None
    on: date


def letter(answer: Mapping[str, Any], policy: Policy, overridden: Outcome | None, about: About) -> str:
    """Return the letter, a whole HTML document.

    Args:
        answer: the evaluation's, as recorded; its outcome is not indeterminate unless it was overridden.
        policy: the version that was evaluated.
        overridden: the outcome that a person decided instead, if one did.
    """
    return render(letter_content(answer, policy, overridden, about))


def letter_content(answer: Mapping[str, Any], policy: Policy, overridden: Outcome | None, about: About) -> Page:
    outcome = overridden or answer["verdict"]["outcome"]
    addressee = (("To", about.name), ("ABN", abn(about.abn)), ("Reference", about.reference), ("Date", day(about.on)))
    heading, words = OFFERS.get(outcome, ("", ""))
    sections = (
        Section("decision", "Our decision", (Paragraph(DECISIONS[outcome]),)),
        Section("reasons", "Main reasons", tuple(_reasons(answer["verdict"], outcome))),
        Section("offer", heading, tuple(_offer(answer, policy, outcome, words))),
    )
    return Page(
        about.lender,
        "Your application",
        tuple((label, value) for label, value in addressee if value),
        (),
        tuple(section for section in sections if section.parts),
        f"If you would like to know more about this decision, or if it rests on something that is wrong, contact "
        f"{about.lender}.",
    )


def _reasons(verdict: Mapping[str, Any], outcome: str) -> Iterator[Part]:
    """Yield the principal reasons. They explain the policy's own outcome, not what a person decided instead."""
    if outcome == verdict["outcome"] and verdict["principalReasons"]:
        yield Points("", tuple(Point(each) for each in verdict["principalReasons"]))


def _offer(answer: Mapping[str, Any], policy: Policy, outcome: str, words: str) -> Iterator[Part]:
    """Yield the amounts above zero of the products that the policy offers with this outcome."""
    offered = {limit.product for limit in policy.limits if outcome in limit.outcomes}
    products = {each["productId"]: each["name"] for each in answer["products"] if each["slug"] in offered}
    rows = [
        [products[limit["productId"]], money(limit["amount"])]
        for limit in answer["computedLimits"]
        if limit["productId"] in products and limit.get("amount")
    ]
    if rows and words:
        yield Paragraph(words)
        yield Grid.of("Amounts", ["Product", *number_columns("Up to")], rows)
