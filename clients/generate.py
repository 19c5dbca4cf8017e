"""Generate the parts of both client libraries that follow from the OpenAPI document (`make generated`, `make clients`).

    python -m clients.generate build/clients

This writes the models and operations of the Python client into `clients/python/tidemark_client/`. For the TypeScript
client it writes `src/operations.ts` (the paths that take idempotency keys, and the query parameters of each GET) and,
into the target folder, `successes.json`: the document without error responses, headers and examples, from which
openapi-typescript makes types that are a quarter as long.

The models of the Python client are types alone: at run time a response is its JSON, so new fields and values that the
service adds later pass through.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from keyword import iskeyword
from pathlib import Path
from typing import Any, cast

from api.http.idempotency import KEY_HEADER
from api.service.app import create_app
from api.service.described import Data, operations
from storage.core.store import Store

PACKAGE = Path(__file__).parent / "python" / "tidemark_client"
TYPESCRIPT = Path(__file__).parent / "typescript" / "src"
NOTICE = "Made from the OpenAPI document by `make generated`: don't edit."
PLAIN = {"string": "str", "integer": "int", "boolean": "bool", "null": "None"}
# The client parses numbers exactly. In requests it also takes floats, which callers have. A model that is used in
# requests and in responses has the type of requests.
RECEIVED_NUMBER, SENT_NUMBER = "Decimal | int", "Decimal | float"
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
JSON = "application/json"
IMPORTED_NAMES = "PagedRequest, Request, path_part"


def main(target: Path) -> None:
    document = openapi_document()
    target.mkdir(parents=True, exist_ok=True)
    (target / "successes.json").write_text(json.dumps(without_error_responses(document)), "utf-8")
    for name, text in modules(document).items():
        (PACKAGE / name).write_text(text, "utf-8")
    (TYPESCRIPT / "operations.ts").write_text(_typescript_operations(document), "utf-8")


def openapi_document() -> dict[str, Any]:
    """Return the document as the service sends it, with a model `Event` for any of the events."""
    document: dict[str, Any] = json.loads(json.dumps(create_app(cast(Store, None)).openapi()))
    events = [event["post"]["requestBody"]["content"][JSON]["schema"] for event in document["webhooks"].values()]
    document["components"]["schemas"]["Event"] = {"oneOf": events}
    return document


def modules(document: Data) -> dict[str, str]:
    """Return the text of each module that is generated, by its name."""
    return {
        "models.py": format_code(_models(document)),
        "operations.py": format_code(_operations(document)),
    }


def format_code(lines: Iterable[str]) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PACKAGE / "generated.py"), "-"]
    return subprocess.run(ruff, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True).stdout


def without_error_responses(document: Data) -> dict[str, Any]:
    """Return the document without headers, examples, links and webhooks.

    All error responses of an operation are replaced by one default response, a Problem.
    """
    shortened = deepcopy(dict(document))
    del shortened["webhooks"]
    for operation in (each for methods in shortened["paths"].values() for each in methods.values()):
        responses = {
            status: {"description": "", "content": content} for status, content in successes(operation).items()
        }
        cast("dict[str, Any]", operation)["responses"] = {
            **responses,
            "default": {"description": "A problem.", "content": PROBLEM},
        }
    return shortened


def takes_idempotency_key(operation: Data) -> bool:
    return any(parameter["name"] == KEY_HEADER for parameter in operation.get("parameters", ()))


def successes(operation: Data) -> dict[str, dict[str, Any]]:
    """Return the schemas of an operation's successes: by status, then by media type."""
    return {
        status: {media: {"schema": content["schema"]} for media, content in response["content"].items()}
        for status, response in operation["responses"].items()
        if status.startswith("2")
    }


def _typescript_operations(document: Data) -> str:
    """Return `operations.ts`: what the TypeScript client needs to know of operations besides their types."""
    keyed = [path for _, path, operation in operations(document) if takes_idempotency_key(operation)]
    queries = {path: list(_query(operation)) for method, path, operation in operations(document) if method == "GET"}
    return "\n".join(
        (
            f"/** The paths whose POST honours `{KEY_HEADER}`. */",
            f"export const KEYED = new Set({json.dumps(keyed, indent=2)});",
            "/** The parameters of each GET. */",
            f"export const QUERIES: Record<string, readonly string[]> = {json.dumps(queries, indent=2)};\n",
        )
    )


def _query(operation: Data) -> dict[str, Data]:
    return {each["name"]: each for each in operation.get("parameters", ()) if each["in"] == "query"}


# Models


def _models(document: Data) -> Iterator[str]:
    schemas: Data = document["components"]["schemas"]
    sent = _names(schemas, [each["requestBody"] for _, _, each in operations(document) if "requestBody" in each])
    received = _names(schemas, [_response_schema(document, operation) for _, _, operation in operations(document)])
    yield from ('"""The models of the API, as types of JSON.', "", NOTICE, '"""', "")
    yield from ("from __future__ import annotations", "")
    yield from ("from decimal import Decimal", "from typing import Any, Literal, NotRequired, TypedDict", "")
    classes, aliases = list[str](), list[str]()
    for name in sorted(sent | received | {"Event"} | _names(schemas, [schemas["Event"], PROBLEM])):
        writer = _TypeWriter(SENT_NUMBER if name in sent else RECEIVED_NUMBER)
        type_ = writer.type_of(schemas[name], name)
        classes += writer.classes
        if type_ != name:
            aliases.append(f"{name} = {type_}")
    yield from (*classes, *aliases)


def _response_schema(document: Data, operation: Data) -> Data:
    """Return the schema of `data` in an operation's first success, or of the whole response if it isn't JSON.

    A success has one media type; with several, this raises ValueError.
    """
    ((media, content),) = next(iter(successes(operation).values())).items()
    if media != JSON:
        return cast(Data, content["schema"])
    return cast(Data, document["components"]["schemas"][_name(content["schema"])]["properties"]["data"])


def _names(schemas: Data, used: Iterable[Any]) -> set[str]:
    """Return the names of all models that `used` refers to, directly or through other models."""
    names, pending = set[str](), list(used)
    while pending:
        new = set(re.findall("'#/components/schemas/([^']+)'", str(pending.pop()))) - names
        names |= new
        pending += [schemas[name] for name in new]
    return names


def _name(reference: Data) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


class _TypeWriter:
    """Writes the type of a schema, and declares classes for the objects in it."""

    def __init__(self, number: str) -> None:
        self.classes: list[str] = []
        self._plain = PLAIN | {"number": number}

    def type_of(self, schema: Data, name: str) -> str:
        """Return a type; `name` is that of the class if the schema is an object with members."""
        if "$ref" in schema:
            return _name(schema)
        if "const" in schema or "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema.get('enum', [schema.get('const')]))}]"
        if "properties" in schema:
            self._declare(name, schema)
            return name
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return _union(self.type_of(choice, f"{name}{number or ''}") for number, choice in enumerate(choices))
        kinds = schema.get("type", ())
        return _union(self._plain_type(schema, kind, name) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def _plain_type(self, schema: Data, kind: str, name: str) -> str:
        if kind == "array":
            return f"list[{self.type_of(schema['items'], f'{name}Item')}]"
        if kind == "object":
            values = schema.get("additionalProperties", True)
            return f"dict[str, {'Any' if values is True else self.type_of(values, f'{name}Value')}]"
        return "bytes" if schema.get("format") == "binary" else self._plain[kind]

    def _declare(self, name: str, schema: Data) -> None:
        required = schema.get("required", ())
        members = {}
        for member, described in schema["properties"].items():
            type_ = self.type_of(described, name + member[0].upper() + member[1:])
            members[member] = type_ if member in required else f"NotRequired[{type_}]"
        if any(map(iskeyword, members)):
            fields = ", ".join(f"{member!r}: {type_!r}" for member, type_ in members.items())
            self.classes.append(f"{name} = TypedDict({name!r}, {{{fields}}})")
        else:
            body = [_docstring(schema["description"])] if "description" in schema else []
            body += [f"{member}: {type_}" for member, type_ in members.items()]
            self.classes.append(_indent(f"class {name}(TypedDict):", body))


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types)) or "Any"


# Operations


def _operations(document: Data) -> Iterator[str]:
    yield from (
        '"""A function for each operation of the API, which returns a request to send.',
        "",
        NOTICE,
        '"""',
        "",
    )
    yield from ("from __future__ import annotations", "", "from typing import Literal", "")
    yield from ("from tidemark_client import models", f"from tidemark_client.requests import {IMPORTED_NAMES}", "")
    for method, path, operation in operations(document):
        yield _function(document, method, path, operation)


def _function(document: Data, method: str, path: str, operation: Data) -> str:
    """Write the function of an operation: ids and body by position, the query by name."""
    parameters = operation.get("parameters", ())
    query = {name: _parameter(each) for name, each in _query(operation).items()}
    positional = [f"{_snake(each['name'])}: str" for each in parameters if each["in"] == "path"]
    request_arguments = [f'"{method}"', _path(path)]
    if "requestBody" in operation:
        positional.append(f"body: {_type_in_module(operation['requestBody']['content'][JSON]['schema'])}")
    keywords = ["*", *(f"{_snake(name)}: {type_} = None" for name, type_ in query.items())] if query else []
    if query:
        request_arguments.append(f"query={{{', '.join(f'{name!r}: {_snake(name)}' for name in query)}}}")
    if "requestBody" in operation:
        request_arguments.append("body=body")
    if takes_idempotency_key(operation):
        request_arguments.append("takes_idempotency_key=True")
    received = _response_schema(document, operation)
    returned = f"Request[{_type_in_module(received)}]"
    lists = _lists(document, received)
    if "page" in query and lists:
        items = lists[-1]  # the paged list is declared last
        returned = f"PagedRequest[{_type_in_module(received)}, {_type_in_module(items[1])}]"
        request_arguments.append(f"items={items[0]!r}")
    description = operation["description"].partition("\n\nScope: ")[0]
    body = [_docstring(description), f"return {returned.partition('[')[0]}({', '.join(request_arguments)})"]
    arguments = ", ".join([*positional, *keywords])
    return _indent(f"def {_snake(operation['operationId'])}({arguments}) -> {returned}:", body)


def _path(template: str) -> str:
    """Write a path whose ids are parameters of the function."""
    path = re.sub("{(.+?)}", lambda match: f"{{path_part({_snake(match[1])})}}", template)
    return f'f"{path}"' if path != template else f'"{template}"'


def _parameter(parameter: Data) -> str:
    return f"{_type_in_module(parameter['schema'])} | None"


def _type_in_module(schema: Data) -> str:
    return f"models.{_name(schema)}" if "$ref" in schema else _TypeWriter(RECEIVED_NUMBER).type_of(schema, "")


def _lists(document: Data, received: Data) -> list[tuple[str, Data]]:
    """Return the members of a response that are lists, each with the schema of its items."""
    members = document["components"]["schemas"][_name(received)]["properties"] if "$ref" in received else {}
    return [(name, member["items"]) for name, member in members.items() if member.get("type") == "array"]


def _snake(name: str) -> str:
    snake = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{snake}_" if iskeyword(snake) else snake


def _docstring(text: str) -> str:
    return f'"""{text}"""' if "\n" not in text else f'"""{text}\n"""'


def _indent(head: str, body: Iterable[str]) -> str:
    return "\n".join([head, *(f"    {line}" for each in body for line in each.split("\n"))])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
