"""The OpenAPI 3.1 document, made from the routes themselves.

FastAPI writes paths, ids, answers and webhooks. It can't see what we read on our own, so the rest is read off each
route's dependencies: `Allow` gives the scopes and the 401 and 403, `QueryOf` the parameters and their 400, `JsonBody`
the request body and its 400, 413 and 415, the ids in the path their 404, and `once` the idempotency key. So nothing can
be forgotten; of refusals, whose examples stand here, a test sees to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from api.core import problems
from api.core.deferred import JsonBody, QueryOf
from api.core.dependencies import Allow
from api.core.idempotency import KEY_HEADER, KEY_PATTERN, REPLAYED_HEADER, is_idempotent
from api.core.in_turn import InTurn
from api.core.operations import EXAMPLE, REFUSALS
from api.core.schemas.common import Problem, Received
from api.core.schemas.examples import example, models_in
from api.core.schemas.files import FORM_SCHEMA
from api.core.schemas.rules import Rule
from api.core.uploads import FORM, FilesBody
from api.enrichment.schemas.corrections import FAULTS as CORRECTION_FAULTS

EXAMPLE_REQUEST_ID = "4f1c8f0e-8d0b-4b52-9b43-6b4f6c6a1f7e"
REF = "#/components/schemas/{model}"
NOT_A_FORM = "Request.MalformedForm"  # only where forms are taken

# Which 404 an id in the path may bring.
NOT_FOUND = {
    "customerId": "Customer.NotFound",
    "jobId": "Job.NotFound",
    "correctionId": "Correction.NotFound",
    "subscriptionId": "Webhook.SubscriptionNotFound",
    "deliveryId": "Webhook.DeliveryNotFound",
    "slug": "DecisionPolicy.NotFound",
    "evaluationId": "Evaluation.NotFound",
    "backtestId": "Backtest.NotFound",
    "simulationId": "Simulation.NotFound",
    "statementId": "Statement.NotFound",
    "transactionId": "Transaction.NotFound",
    "pageNumber": "Statement.PageNotFound",
    "rulesetId": "Ruleset.NotFound",
    "librarySlug": "Ruleset.NotFound",
    "matchId": "RuleMatch.NotFound",
}

# Code → status and a sentence, for every refusal that is no rule of a field.
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
    "DecisionPolicy.VersionRetired": (409, "A retired version can't be published again: save its content."),
    "DecisionPolicy.NotADraft": (409, "Only a draft can be the challenger of the published version."),
    "DecisionPolicy.ChallengerInputs": (422, "The published version doesn't declare these inputs: term."),
    "Evaluation.NotADecision": (409, "Only a decision can be overridden: no what-if, and no challenger's."),
    "DecisionPolicy.TooMany": (409, "A client may have at most 200 policies."),
    "DecisionPolicy.TooManyVersions": (409, "A policy may have at most 10,000 versions."),
    "Ruleset.NotFound": (404, "There is no such ruleset."),
    "Ruleset.Invalid": (400, "The ruleset has 2 faults."),
    "Ruleset.UnknownCustomer": (400, "The ruleset lists customers that don't exist."),
    "Ruleset.SlugTaken": (409, "There is a ruleset with this slug already."),
    "Ruleset.TooMany": (409, "A client may have 200 rulesets at most."),
    "Ruleset.Archived": (409, "The ruleset is archived."),
    "Ruleset.Corrupt": (500, "A ruleset's document was changed."),
    "RuleMatch.NotFound": (404, "There is no match with this id."),
    "RuleMatch.Corrupt": (500, "The record of match … was changed."),
    "Submission.WrongCount": (400, "1 to 50,000 transactions."),
    "Webhook.UrlNotHttps": (400, "webhookUrl must be an absolute https:// URL."),
    "Webhook.UrlForbidden": (400, "webhookUrl must not lead to a private or reserved address."),
    "Webhook.UnknownCustomer": (400, "Some customerIds are not known."),
    "Webhook.WrongCount": (400, "1 to 1,000 customerIds."),
    "Submission.Unfinished": (409, "The submission has not ended yet."),
    "Submission.Failed": (409, "The submission failed: it added no rows."),
    **{fault.code: (400, fault.message) for fault in CORRECTION_FAULTS},
    "Transaction.NotFound": (404, "The customer has no transaction with this id."),
    "Correction.TooMany": (409, "At most 1,000 corrections may be in force at once. Revoke some first."),
    "Attribute.InvalidName": (400, "A name is an ASCII letter and up to 63 more letters, digits, _, . or -."),
    "Attribute.InvalidCount": (400, "200 attributes at most."),
    "Attribute.TooMany": (409, "A customer may have 200 attributes at most."),
    "RelatedParty.TooMany": (400, "100 related parties at most."),
    "Report.FigureNotFound": (404, "There is no figure /… in this report."),
    "Report.VersionUnknown": (404, "The customer's transactions have no such version."),
    "Report.VersionExpired": (410, "This version of the customer's transactions is no longer stored."),
    "Report.RefreshRunning": (409, "A report refresh is already running for it."),
    "Webhook.DeliveryInFlight": (409, "The delivery is on its way already."),
    "Webhook.TooManySubscriptions": (409, "A client may have 1,000 webhook subscriptions at most."),
    "Webhook.TestUnderWay": (409, "The last test of this subscription has not ended yet."),
    "Webhook.SubscriptionDeleted": (409, "The delivery's subscription was deleted."),
    "Idempotency.InvalidKey": (400, "Idempotency-Key must be 1 to 255 visible ASCII characters, once."),
    "Idempotency.InFlight": (409, "A request with this Idempotency-Key is in progress: try again shortly."),
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


def _header(description: str, kind: str = "string", *, required: bool = False) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": {"type": kind}}


ON_EVERY_ANSWER = {
    "X-Request-Id": _header("The request's id.", required=True),
    "RateLimit": _header('What remains: `"key";r=599;t=60`, requests and seconds to their renewal.', required=True),
    "RateLimit-Policy": _header('What is allowed: `"key";q=600;w=60`, requests in seconds.', required=True),
}
IDEMPOTENCY_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "description": "A key of your choice, a UUID say. The same request with the same key within 24 hours is answered "
    "as it was the first time and does nothing again; a 429 or 5xx leaves the key free.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": f"^{KEY_PATTERN}$"},
}

# Id in a path → the operation and status whose answer holds it, and where in the answer.
GIVEN_BY = {
    "customerId": ("createCustomer", "201", "/data/customerId"),
    "jobId": ("submitTransactions", "202", "/data/jobId"),
    "correctionId": ("correctTransactions", "202", "/data/correctionId"),
    "subscriptionId": ("createSubscription", "201", "/data/webhookSubscriptionId"),
    "deliveryId": ("listDeliveries", "200", "/data/deliveries/0/deliveryId"),
    "backtestId": ("backtestDecisionPolicy", "202", "/data/jobId"),
    "simulationId": ("simulateRuleset", "202", "/data/jobId"),
    "evaluationId": ("evaluateDecisionPolicy", "200", "/data/evaluationId"),
    "statementId": ("listStatements", "200", "/data/statements/0/statementId"),
    "transactionId": ("listCustomerTransactions", "200", "/data/transactions/0/transactionId"),
    "pageNumber": ("getStatement", "200", "/data/firstPage"),
    "slug": ("saveDecisionPolicy", "201", "/data/slug"),
    "rulesetId": ("createRuleset", "201", "/data/rulesetId"),
    "librarySlug": ("listLibrary", "200", "/data/rulesets/0/slug"),
    "matchId": ("listMatches", "200", "/data/matches/0/matchId"),
}

Dependency = TypeVar("Dependency")


def document(app: FastAPI, description: str) -> dict[str, Any]:
    """The whole document, for `/openapi.json`."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=description,
        routes=app.routes,
        webhooks=app.webhooks.routes,
    )
    routes = [route for route in _routes(app) if route.include_in_schema]
    for route in routes:
        for method in route.methods or ():
            _complete(made["paths"][route.path_format][method.lower()], route)
    operations = [operation for methods in made["paths"].values() for operation in methods.values()]
    _link({operation["operationId"]: operation for operation in operations})
    for receiver in made["webhooks"].values():
        receiver["post"]["responses"] = {"2XX": {"description": "Any 2xx, within 30 seconds, means received."}}
    bodies = (model for route in routes for model in _bodies(route))
    made["components"]["schemas"] = _tidy(made["components"]["schemas"] | _schemas(bodies))
    return made


def _routes(app: FastAPI) -> Iterator[APIRoute]:
    for context in iter_route_contexts(app.routes):
        if isinstance(context.original_route, APIRoute):
            yield context.original_route


def _given(route: APIRoute, kind: type[Dependency]) -> list[Dependency]:
    """The route's dependencies of one kind."""
    return [needed.call for needed in route.dependant.dependencies if isinstance(needed.call, kind)]


def _bodies(route: APIRoute) -> list[type[Received]]:
    """The models of JSON that the route reads."""
    as_json = [body.model for body in _given(route, JsonBody)]
    return [*as_json, *(body.model for body in _given(route, FilesBody))]


def _schemas(bodies: Iterable[type[Received]]) -> dict[str, Any]:
    """Of what is received and of problems: FastAPI sees neither."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(body, "validation") for body in bodies]
    _, definitions = models_json_schema([*models, (Problem, "serialization")], ref_template=REF)
    found: dict[str, Any] = definitions["$defs"]
    return found


def _tidy(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Without FastAPI's own errors, which never happen here, and without titles that repeat a property's name."""
    shown = {name: schemas[name] for name in sorted(schemas) if name not in ("HTTPValidationError", "ValidationError")}
    for schema in shown.values():
        for member in schema.get("properties", {}).values():
            member.pop("title", None)
    return shown


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """Add to an operation what only its route's dependencies know."""
    operation["responses"].pop("422", None)
    shown = _example(route)
    for status, response in operation["responses"].items():
        _describe_success(response, HTTPStatus(int(status)), shown)
    for query in _given(route, QueryOf):
        operation.setdefault("parameters", []).extend(_parameters(query.model))
    for body in _given(route, JsonBody):
        operation["requestBody"] = _request_body(body.model)
    for files in _given(route, FilesBody):
        operation["requestBody"] = _request_body(files.model)
        operation["requestBody"]["content"][FORM] = {"schema": FORM_SCHEMA}
    if is_idempotent(route.endpoint):
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
        for status in operation["responses"]:
            operation["responses"][status]["headers"][REPLAYED_HEADER] = _header(
                "`true` when this was answered before."
            )
    for allow in _given(route, Allow):
        operation["description"] += f"\n\nScope: {' or '.join(f'`{scope}`' for scope in allow.scopes)}."
    operation["responses"] |= _refusals(_codes(operation.pop(REFUSALS), route))
    operation.pop(EXAMPLE, None)


def _example(route: APIRoute) -> object:
    """Return the example of the route's successes: of its model, or the text that the route gives."""
    written: str | None = (route.openapi_extra or {}).get(EXAMPLE)
    answers = [response["model"] for response in route.responses.values()]
    if not answers:
        return written
    data = next(models_in(answers[0].model_fields["data"].annotation))
    return {"data": example(data, written), "message": None}


def _describe_success(response: dict[str, Any], status: HTTPStatus, shown: object) -> None:
    response["description"] = status.phrase
    for content in response["content"].values():
        if shown is not None:
            content["example"] = shown
    response["headers"] = dict(ON_EVERY_ANSWER)
    if status in (HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
        response["headers"]["Location"] = _header("Where the new thing, or the work on it, is found.")
    if status == HTTPStatus.ACCEPTED:
        response["headers"]["Retry-After"] = _header("Seconds after which a look is worth it.", "integer")


def _parameters(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Query parameters, from the model that reads them."""
    for name, schema in model.model_json_schema(ref_template=REF)["properties"].items():
        shown = {key: value for key, value in schema.items() if key not in ("title", "description", "default")}
        yield {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema["description"],
            "schema": shown if schema.get("default") is None else shown | {"default": schema["default"]},
        }


def _request_body(model: type[Received]) -> dict[str, Any]:
    return {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": REF.format(model=model.__name__)}, "example": example(model)}
        },
    }


def _codes(special: Iterable[str], route: APIRoute) -> Iterator[tuple[int, str, str]]:
    """(status, code, sentence) of every refusal that the route may give."""
    codes = ["Request.HeadTooLarge", "Service.Failure", "Service.Unavailable", "Service.Busy", *special]
    codes += [NOT_FOUND[parameter.alias] for parameter in route.dependant.path_params]
    if _given(route, Allow):
        codes += ["Authentication.InvalidKey", "Authorization.MissingScope"]
        codes += ["Authentication.RateLimited", "Request.RateLimited"]
    if isinstance(route, InTurn):
        codes += ["Service.TookTooLong"]
    if is_idempotent(route.endpoint):
        codes += ["Idempotency.InvalidKey", "Idempotency.InFlight", "Idempotency.KeyReused"]
    for model in _bodies(route):
        codes += [code for code in KNOWN if code.startswith("Request.") and code != NOT_A_FORM]
        yield from _rules(model)
    for query in _given(route, QueryOf):
        yield from _rules(query.model)
    for code in codes:
        status, sentence = KNOWN[code]
        yield status, code, sentence


def _rules(model: type[BaseModel]) -> Iterator[tuple[int, str, str]]:
    """Of the model's fields, and of models inside it."""
    for field in model.model_fields.values():
        yield from ((400, rule.code, rule.sentence) for rule in field.metadata if isinstance(rule, Rule))
        for inner in models_in(field.annotation):
            yield from _rules(inner)


def _link(operations: Mapping[str, dict[str, Any]]) -> None:
    """Lead from each answer that holds an id to every operation about it."""
    for name, operation in operations.items():
        for parameter in (given for given in operation.get("parameters", ()) if given["in"] == "path"):
            giver, status, pointer = GIVEN_BY[parameter["name"]]
            link = {"operationId": name, "parameters": {parameter["name"]: f"$response.body#{pointer}"}}
            operations[giver]["responses"][status].setdefault("links", {})[name] = link


def _refusals(codes: Iterable[tuple[int, str, str]]) -> dict[str, Any]:
    """Responses by status, each with an example per code."""
    found: dict[str, Any] = {}
    for status, code, sentence in sorted(codes):
        response = found.setdefault(str(status), _problem(status))
        example = {"value": problems.body(status, code, sentence, EXAMPLE_REQUEST_ID)}
        response["content"][problems.MEDIA_TYPE]["examples"][code] = example
    return found


def _problem(status: int) -> dict[str, Any]:
    headers = dict(ON_EVERY_ANSWER)
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = _header("How to authenticate.")
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers["Retry-After"] = _header("Seconds after which a new try is worth it.", "integer")
    content: dict[str, Any] = {"schema": {"$ref": REF.format(model="Problem")}, "examples": {}}
    return {
        "description": HTTPStatus(status).phrase,
        "headers": headers,
        "content": {problems.MEDIA_TYPE: content},
    }
