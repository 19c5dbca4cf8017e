"""The letter to an applicant, as a page and as PDF."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.http.dependencies import Allow, Caller, EvaluationId
from api.http.documented import Page, Pdf, refuses, sends
from api.http.route import Route
from api.reports import browser
from pipelines.decisions import INDETERMINATE, Recorded
from pipelines.decisions.letter import About, letter
from pipelines.decisions.policy import Outcome
from pipelines.pages import CONTENT_POLICY
from pipelines.vocabulary.errors import Conflict
from storage.access import keys
from storage.decisions import evaluations, policies

router = APIRouter(route_class=Route, prefix="/v1/evaluations/{evaluationId}", tags=["Decisions"])
Evaluator = Annotated[Caller, Depends(Allow("decision-policies:evaluate"))]
REFUSED = ("Evaluation.NotADecision", "Evaluation.Indeterminate", "Evaluation.Corrupt")


@router.get("/letter.html", response_class=Page, responses=refuses(*REFUSED))
def get_letter(caller: Evaluator, evaluation_id: EvaluationId) -> Response:
    """Read the letter that tells the applicant the outcome: a printable page with the policy's messages for customers.

    After an override, the letter has the outcome that the person decided. If the policy's outcome was another one, its
    reasons are left out. What-ifs, a challenger's evaluations and indeterminate outcomes have no letter.
    """
    return Page(_letter(caller, evaluation_id), headers={"Content-Security-Policy": CONTENT_POLICY})


@router.get(
    "/letter.pdf", response_class=Pdf, responses=sends(Pdf) | refuses(*REFUSED, "Browser.Missing", "Browser.Failed")
)
def get_letter_as_pdf(caller: Evaluator, evaluation_id: EvaluationId) -> Response:
    """Read the letter as PDF. The service needs an installed Chromium or Chrome for it."""
    return Pdf(browser.print_in_turn(caller, _letter(caller, evaluation_id)))


def _letter(caller: Caller, evaluation_id: str) -> str:
    with caller.reading() as r:
        found = caller.evaluation(r, evaluation_id)
        evaluations.require_decision(found)
        if (found.overridden_outcome or found.outcome) == INDETERMINATE:
            raise Conflict("Evaluation.Indeterminate", "An indeterminate outcome is not a decision to write about.")
        recorded = Recorded.of(evaluations.read_record(r, found))
        version = policies.version(r, policies.get_of_any_client(r, found.policy_id), found.version)
        decided_at = max([found.at, *(each.at for each in evaluations.overrides_of(r, found))])
        customer = caller.customer(r, str(found.customer_id))
        lender = keys.get_client(r, caller.client_id).name
    on = decided_at.astimezone(caller.store.settings.zone).date()
    about = About(lender, customer.name, customer.abn, customer.reference, on)
    return letter(recorded.content["answer"], version.policy, cast("Outcome | None", found.overridden_outcome), about)
