"""What FastAPI's decorators are given to document an operation's answers: examples, and the refusals that only it has.

The refusals that follow from a route's signature (401, 403, 404 of ids, 400 of fields, …) are added to the document by
`api.service.openapi`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fastapi.utils import deep_dict_update
from pydantic import BaseModel, create_model
from starlette.responses import HTMLResponse, Response

from api.core.schemas.common import Envelope, View
from api.http import problems
from pipelines.vocabulary.errors import Fault

Responses = dict[int | str, dict[str, Any]]
DAMAGED_FILE: Final = ("Lake.ChecksumMismatch", "Lake.FileUnreadable")  # what reading from the lake may end in
EXAMPLE_REQUEST_ID = "4f1c8f0e-8d0b-4b52-9b43-6b4f6c6a1f7e"

# Every public code but those of fields, which stand in their rules: its status, and a sentence as an example.
KNOWN: Mapping[str, tuple[int, str]] = {
    "Authentication.InvalidKey": (401, "A valid API key is needed in the x-api-key header."),
    "Authentication.RateLimited": (429, "Too many wrong keys came from this address."),
    "Authorization.MissingScope": (403, "This key lacks the scope: customer:reports."),
    "Customer.NotFound": (404, "There is no customer with this id."),
    "Job.NotFound": (404, "There is no job with this id."),
    "Correction.NotFound": (404, "There is no correction with this id."),
    "Statement.NotFound": (404, "There is no statement with this id."),
    "Statement.PageNotFound": (404, "The statement's file has no such page."),
    "Statement.RowNotFound": (404, "There is no such row of the statement on this page."),
    "Statement.PageLocked": (409, "The file opens with a password only, and that was not kept."),
    "Statement.PageNotDrawn": (409, "The page can't be drawn within the limits."),
    "Statement.NotPdf": (400, "No file is a PDF."),
    "Statement.WrongCount": (400, "1 to 20 files."),
    "Statement.TooManyParts": (400, "A form may have 60 parts at most."),
    "Statement.PasswordsDontMatch": (400, "Give one password for all files, or one for each."),
    "Statement.InvalidPassword": (400, "password is UTF-8 text of at most 1024 bytes."),
    "Statement.FileTooLarge": (413, "A file may have 26,214,400 bytes at most."),
    "Request.MalformedForm": (400, "The body is not multipart/form-data."),
    "Transaction.NoSource": (404, "The transaction was not read from a PDF."),
    "Webhook.SubscriptionNotFound": (404, "There is no webhook subscription with this id."),
    "Webhook.DeliveryNotFound": (404, "There is no delivery with this id."),
    "Webhook.EventNotFound": (404, "There is no event with this id."),
    "DecisionPolicy.NotEnabled": (404, "Decision policies are not enabled for this client."),
    "DecisionPolicy.NotFound": (404, "There is no decision policy with this slug."),
    "DecisionPolicy.VersionNotFound": (404, "The decision policy has no such version."),
    "DecisionPolicy.Invalid": (400, "The policy has 2 faults."),
    "DecisionPolicy.WarningsNotAcknowledged": (400, "The policy has 1 warning to acknowledge by code and pointer."),
    "DecisionPolicy.MissingInputs": (400, "Not every declared input is given."),
    "DecisionPolicy.UnknownInputs": (400, "Inputs are given that the policy doesn't declare."),
    "DecisionPolicy.InvalidInputs": (400, "A value is not of its kind."),
    "DecisionPolicy.UnknownNumber": (400, "One metric, attribute or input that the policy counts with."),
    "DecisionPolicy.SameNumber": (400, "Across and down are two different numbers."),
    "Backtest.NotFound": (404, "There is no backtest with this id."),
    "Backtest.Unfinished": (409, "The backtest has come to no result: see its job."),
    "Backtest.SameVersion": (400, "A version is compared with another one."),
    "Backtest.UnknownCustomer": (400, "Some customers are not known."),
    "Backtest.InvalidFilter": (400, "A value to filter by is no attribute's value."),
    "Backtest.DayToCome": (400, "A day is later than today."),
    "Backtest.CustomerTwice": (400, "A customer has one outcome."),
    "Simulation.NotFound": (404, "There is no simulation with this id."),
    "Simulation.Unfinished": (409, "The simulation has come to no result: see its job."),
    "Simulation.DayToCome": (400, "The last day is later than today."),
    "Simulation.InvalidDays": (400, "The first day is later than the last."),
    "Simulation.TooManyDays": (400, "At most 24 months are simulated."),
    "Simulation.UnknownCustomer": (400, "Some customers are not known."),
    "Evaluation.NotFound": (404, "There is no evaluation with this id."),
    "Evaluation.Corrupt": (500, "The record of evaluation … was changed."),
    "DecisionPolicy.Archived": (409, "The decision policy is archived."),
    "DecisionPolicy.VersionRetired": (409, "A retired version is not published again: save its content."),
    "DecisionPolicy.NotADraft": (409, "Only a draft can be the challenger of the published version."),
    "DecisionPolicy.ChallengerInputs": (422, "The published version doesn't declare these inputs: term."),
    "Evaluation.NotADecision": (409, "Only a decision is overridden: not a what-if, nor a challenger's."),
    "DecisionPolicy.TooMany": (409, "A client may have 200 policies at most."),
    "DecisionPolicy.TooManyVersions": (409, "A policy may have 10,000 versions at most."),
    "Ruleset.NotFound": (404, "There is no such ruleset."),
    "Ruleset.Invalid": (400, "The ruleset has 2 faults."),
    "Ruleset.UnknownCustomer": (400, "The ruleset lists customers that don't exist."),
    "Ruleset.SlugTaken": (409, "There is a ruleset with this slug already."),
    "Ruleset.TooMany": (409, "A client may have 200 rulesets at most."),
    "Ruleset.Archived": (409, "The ruleset is archived."),
    "Ruleset.Corrupt": (500, "A ruleset is not what was written."),
    "RuleMatch.NotFound": (404, "There is no match with this id."),
    "RuleMatch.Corrupt": (500, "The record of match … was changed."),
    "Submission.WrongCount": (400, "1 to 50,000 transactions."),
    "Webhook.UrlNotHttps": (400, "webhookUrl must be an absolute https:// URL."),
    "Webhook.UrlForbidden": (400, "webhookUrl must not lead to a private or reserved address."),
    "Webhook.UnknownCustomer": (400, "Some customerIds are not known."),
    "Webhook.WrongCount": (400, "1 to 1,000 customerIds."),
    "Submission.Unfinished": (409, "The submission has not ended yet."),
    "Submission.Failed": (409, "The submission failed: nothing of it was kept."),
    "Transaction.NotFound": (404, "The customer has no transaction with this id."),
    "Correction.TooMany": (409, "1,000 corrections may hold at once. Revoke some first."),
    "Attribute.InvalidName": (400, "A name is an ASCII letter and up to 63 more letters, digits, _, . or -."),
    "Attribute.InvalidCount": (400, "200 attributes at most."),
    "Attribute.TooMany": (409, "A customer may have 200 attributes at most."),
    "RelatedParty.TooMany": (400, "100 related parties at most."),
    "Report.FigureNotFound": (404, "There is no figure /… in this report."),
    "Report.VersionUnknown": (404, "The customer's transactions have no such version."),
    "Report.VersionExpired": (410, "This version of the customer's transactions is kept no longer."),
    "Report.RefreshRunning": (409, "A report refresh is already running for it."),
    "Webhook.DeliveryInFlight": (409, "The delivery is on its way already."),
    "Webhook.TooManySubscriptions": (409, "A client may have 1,000 webhook subscriptions at most."),
    "Webhook.TestUnderWay": (409, "The last test of this subscription has not ended yet."),
    "Webhook.SubscriptionDeleted": (409, "The delivery's subscription was deleted."),
    "Idempotency.InvalidKey": (400, "Idempotency-Key must be 1 to 255 visible ASCII characters, once."),
    "Idempotency.InFlight": (409, "A request with this Idempotency-Key is being worked on."),
    "Idempotency.SecretNotReplayable": (409, "This created a subscription. Its secret is shown once: rotate it."),
    "Idempotency.KeyReused": (422, "This Idempotency-Key was sent with another request."),
    "Report.NoEnrichedTransactions": (422, "The customer has no enriched transactions."),
    "Request.EmptyBody": (400, "The request has no body."),
    "Request.NotUtf8": (400, "The body is not UTF-8."),
    "Request.MalformedJson": (400, "The body is not one valid JSON document."),
    "Request.DuplicateKey": (400, "An object names a member twice."),
    "Request.NullCharacter": (400, "A text holds the character NUL."),
    "Request.LoneSurrogate": (400, "A text holds half of a surrogate pair."),
    "Request.TooDeep": (400, "The body is nested too deeply."),
    "Request.TooManyValues": (400, "The body holds more than 2,000,000 values, or without rows more than 700,000."),
    "Request.TooManyDigits": (400, "A number has more than 4,300 digits."),
    "Request.NotAnObject": (400, "The body must be a JSON object."),
    "Request.Missing": (400, "The field is needed."),
    "Request.WrongType": (400, "The value has the wrong JSON type."),
    "Request.Invalid": (400, "Several things are wrong with the request."),
    "Request.Malformed": (400, "This is not a request in HTTP/1.1."),
    "Request.TooSlow": (408, "The request's body took too long."),
    "Request.TooLarge": (413, "A JSON body may have 36,700,160 bytes at most."),
    "Request.NotJson": (415, "The body must be application/json in UTF-8."),
    "Request.EncodedBody": (415, "The body must not be compressed."),
    "Request.RateLimited": (429, "This key has asked too often."),
    "Request.HeadTooLarge": (431, "Address and headers may have 65,536 bytes at most."),
    "Lake.ChecksumMismatch": (500, "The data file transactions/… is not what was written."),
    "Lake.FileUnreadable": (500, "The data file transactions/… can't be read."),
    "Service.Failure": (500, "Something failed inside the service."),
    "Service.Unavailable": (503, "A store is not available. Try again."),
    "Service.Busy": (503, "The service is busy. Try again."),
    "Service.TookTooLong": (503, "The answer took too long to work out."),
    "Service.NotReady": (503, "Not ready: dispatcher, worker."),
}


@cache
def enveloped(model: type[View]) -> type[BaseModel]:
    """Return the model of an answer whose `data` is `model`."""
    return create_model(f"{model.__name__.removesuffix('View')}Answer", __base__=Envelope, data=(model, ...))


def refuses(*codes: str | Fault) -> Responses:
    """Return the `responses` of problems, each with an example of its code; a fault's is a 400 in its words."""
    found: Responses = {}
    for each in codes:
        code, status, sentence = (each.code, 400, each.message) if isinstance(each, Fault) else (each, *KNOWN[each])
        shown = {code: {"value": problems.body(status, code, sentence, EXAMPLE_REQUEST_ID)}}
        deep_dict_update(found.setdefault(status, {}), {"content": {problems.MEDIA_TYPE: {"examples": shown}}})
    return found


def shows(status: int, variant: str) -> Responses:
    """Return the `responses` of a success whose example is a variant of its model's (`api.core.schemas.examples`)."""
    return {status: {"content": {"application/json": {"example": variant}}}}


class Page(HTMLResponse):
    """A page for people."""

    EXAMPLE = "<!doctype html>"


class Metrics(Response):
    """Text for Prometheus."""

    media_type = "text/plain"
    EXAMPLE = 'tidemark_webhook_deliveries{state="due"} 2.0\n'


class Picture(Response):
    media_type = "image/png"
