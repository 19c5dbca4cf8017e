"""Complete the OpenAPI 3.1 document that FastAPI generates.

FastAPI generates paths, parameters, bodies, responses and webhooks from the routes' signatures and decorators. This
module adds headers, examples, links between operations, and the errors that can be inferred from a signature:

    `Allow`              401, 403
    an id in the path    404
    a query              400
    a body               400, 413, 415
    an idempotency key   its own codes
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from fastapi.utils import deep_dict_update
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.routing import BaseRoute

from api.core.schemas.common import Problem
from api.core.schemas.examples import example, models_in
from api.core.schemas.rules import Rule
from api.http import problems
from api.http.dependencies import Allow
from api.http.documented import refuses
from api.http.idempotency import REPLAYED_HEADER
from api.http.route import Route
from api.http.uploads import FORM
from pipelines.vocabulary.codes import catalogue
from pipelines.vocabulary.errors import Fault

REF = "#/components/schemas/{model}"
ALWAYS = ("Request.HeadTooLarge", "Service.Failure", "Service.Unavailable", "Service.Busy")
WITH_KEY = (
    *("Authentication.InvalidKey", "Authorization.MissingScope"),
    *("Authentication.RateLimited", "Request.RateLimited", "Service.TookTooLong"),
)
# Request codes that an operation with a JSON body can't respond with: forms, unknown paths, and interrupted bodies.
NOT_OF_JSON_BODIES = ("Request.MalformedForm", "Request.MethodNotAllowed", "Request.UnknownPath", "Request.Incomplete")


def _header(description: str, kind: str = "string", *, required: bool = False) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": {"type": kind}}


ON_EVERY_ANSWER = {
    "X-Request-Id": _header("Id of the request.", required=True),
    "RateLimit": _header('Requests left, and seconds until the limit renews: `"key";r=599;t=60`.', required=True),
    "RateLimit-Policy": _header('The limit as requests per number of seconds: `"key";q=600;w=60`.', required=True),
}


def document(
    title: str, version: str, description: str, routes: Sequence[BaseRoute], webhooks: Sequence[BaseRoute]
) -> dict[str, Any]:
    """Return the whole document, for `/openapi.json`."""
    result = get_openapi(title=title, version=version, description=description, routes=routes, webhooks=webhooks)
    documented: dict[str, tuple[dict[str, Any], APIRoute]] = {}
    for route in _select_documented(routes):
        for method in route.methods or ():
            operation = result["paths"][route.path_format][method.lower()]
            documented[operation["operationId"]] = operation, route
            _complete(operation, route)
    _link(documented)
    for receiver in result["webhooks"].values():
        receiver["post"]["responses"] = {"2XX": {"description": "Any 2xx within 30 seconds counts as received."}}
    keyed = (route for _, route in documented.values() if isinstance(route, Route))
    result["components"]["schemas"] = _tidy(result["components"]["schemas"] | _exact_schemas(keyed))
    return result


def _select_documented(routes: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    for context in iter_route_contexts(routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            yield route


def _exact_schemas(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the schemas of problems, which FastAPI omits, and of bodies, whose bounds it would turn into floats."""
    bodies = (route.body_model for route in routes)
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(body, "validation") for body in bodies if body is not None]
    _, definitions = models_json_schema([*models, (Problem, "serialization")], ref_template=REF)
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _tidy(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Remove FastAPI's own error schemas, which this API never uses, and titles that repeat a property's name."""
    shown = {name: schemas[name] for name in sorted(schemas) if name not in ("HTTPValidationError", "ValidationError")}
    for schema in shown.values():
        for member in schema.get("properties", {}).values():
            member.pop("title", None)
    return shown


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """Add to an operation what FastAPI doesn't know."""
    if "application/json" in operation["responses"].get("422", {}).get("content", {}):  # FastAPI's own
        del operation["responses"]["422"]
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
    idempotent = isinstance(route, Route) and route.is_idempotent
    codes: list[str | Fault] = [*ALWAYS]
    if isinstance(route, Route):
        _complete_request(operation, route)
        codes += _codes(route)
    deep_dict_update(operation["responses"], {str(status): each for status, each in refuses(*codes).items()})
    operation["responses"] = dict(sorted(operation["responses"].items()))
    for status, response in operation["responses"].items():
        if problems.MEDIA_TYPE in response["content"]:
            response["content"][problems.MEDIA_TYPE]["schema"] = {"$ref": REF.format(model="Problem")}
        else:
            _give_example(response["content"], route, int(status))
        response["description"] = HTTPStatus(int(status)).phrase
        response["headers"] = _headers(HTTPStatus(int(status)), replayed=idempotent and int(status) < 300)


def _tidy_parameter(parameter: dict[str, Any]) -> None:
    """Move the description that a rule puts into a parameter's schema to the parameter itself."""
    schema = parameter["schema"]
    schema.pop("title", None)
    if schema.get("default", ...) is None:
        del schema["default"]
    if "description" in schema:
        parameter["description"] = schema.pop("description")


def _complete_request(operation: dict[str, Any], route: Route) -> None:
    [allow] = route.dependencies_of(Allow)
    operation["description"] += f"\n\nScope: {' or '.join(f'`{scope}`' for scope in allow.scopes)}."
    if (model := route.body_model) is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = example(model)
        if route.files is not None:
            operation["requestBody"]["content"][FORM] = {"schema": route.files.accepted.form}


def _give_example(content: dict[str, Any], route: APIRoute, status: int) -> None:
    """Add the example of the status's model (a variant, if `documented.shows` names one) or of the response class."""
    model = route.responses.get(status, {}).get("model", route.response_model)
    for shown in content.values():
        if model is not None:
            data = next(models_in(model.model_fields["data"].annotation))
            shown["example"] = {"data": example(data, shown.get("example")), "message": None}
        elif hasattr(route.response_class, "EXAMPLE"):
            shown["example"] = route.response_class.EXAMPLE


def _headers(status: HTTPStatus, *, replayed: bool) -> dict[str, Any]:
    headers = dict(ON_EVERY_ANSWER)
    if replayed:
        headers[REPLAYED_HEADER] = _header("`true` if this is the stored response to an earlier request.")
    if status in (HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
        headers["Location"] = _header("Path of the new resource, job or approval.")
    if status == HTTPStatus.ACCEPTED:
        headers["Retry-After"] = _header("Seconds to wait before the first poll.", "integer")
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = _header("How to authenticate.")
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers["Retry-After"] = _header("Seconds to wait before trying again.", "integer")
    return headers


def _codes(route: Route) -> list[str | Fault]:
    """Return all error codes that can be inferred from the route's signature."""
    codes: list[str | Fault] = [*WITH_KEY, *(each.not_found for each in route.path_resources)]
    if any(allow.needs_policies for allow in route.dependencies_of(Allow)):
        codes.append("DecisionPolicy.NotEnabled")
    if route.is_idempotent:
        codes += ["Idempotency.InvalidKey", "Idempotency.InFlight", "Idempotency.KeyReused"]
    if route.body_model is not None:
        codes += [code for code in catalogue() if code.startswith("Request.") and code not in NOT_OF_JSON_BODIES]
        codes += _rules(route.body_model)
    for model in route.query_models:
        codes += _rules(model)
    return codes


def _rules(model: type[BaseModel]) -> Iterator[Fault]:
    """Yield the errors that fields of the model and of its nested models can cause."""
    for field in model.model_fields.values():
        yield from (Fault("", rule.code, rule.sentence) for rule in field.metadata if isinstance(rule, Rule))
        for inner in models_in(field.annotation):
            yield from _rules(inner)


def _link(documented: Mapping[str, tuple[dict[str, Any], APIRoute]]) -> None:
    """Link each response that contains an id to all operations that take it."""
    for name, (_, route) in documented.items():
        named = route.path_resources if isinstance(route, Route) else []
        for each, parameter in zip(named, route.dependant.path_params, strict=True):
            operation, status, pointer = each.given_by
            link = {"operationId": name, "parameters": {parameter.alias: f"$response.body#{pointer}"}}
            documented[operation][0]["responses"][status].setdefault("links", {})[name] = link
