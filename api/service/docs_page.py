"""The page of the API: every operation and model of the OpenAPI document, without a script."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from api.service.described import Data, fields, first_line, operations, tags, type_of
from pipelines.pages import Code, Column, Folded, Grid, Note, Opening, Page, Part, Section
from pipelines.vocabulary.codes import catalogue

JSON, PROBLEM = "application/json", "application/problem+json"
FIELDS = (Column("Field", "short"), Column("Type"), Column("Meaning", "prose"))
PARAMETERS = (Column("Parameter", "short"), Column("In", "short"), Column("Type"), Column("Meaning", "prose"))
REFUSALS = (Column("Status", "short"), Column("Code", "short"), Column("Meaning", "prose"))


def page(document: Data) -> Page:
    info = document["info"]
    conventions = (Note(_words(line.removeprefix("- "))) for line in info["description"].splitlines() if line)
    subjects = (
        Section(f"subject-{number}", tag, tuple(_operations(document, tag)))
        for number, tag in enumerate(tags(document))
    )
    models = Folded(tuple(_models(document["components"]["schemas"])))
    return Page(
        kind="API",
        title=info["title"],
        facts=(("Version", info["version"]), ("OpenAPI document", "/openapi.json")),
        notices=(),
        sections=(
            Section("conventions", "Conventions", tuple(conventions)),
            *subjects,
            Section("models", "Models", (models,)),
        ),
        footer="Made from the OpenAPI document of this service.",
    )


def _operations(document: Data, tag: str) -> Iterator[Part]:
    for method, path, operation in operations(document):
        if operation["tags"][0] == tag:
            yield Opening(f"{method} {path}", _words(first_line(operation)), tuple(_parts(method, path, operation)))


def _parts(method: str, path: str, operation: Data) -> Iterator[Part]:
    yield from (Note(_words(paragraph)) for paragraph in operation["description"].split("\n\n")[1:])
    if parameters := operation.get("parameters"):
        rows = [(each["name"], each["in"], _type(each["schema"]), _words(each["description"])) for each in parameters]
        yield Grid.of(f"Parameters of {method} {path}", PARAMETERS, rows)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield Note(f"Body, {media}: {_type(content['schema'])}")
    yield Code(f"Request of {method} {path}", _curl(method, path, operation))
    refusals = list[tuple[str, str, str]]()
    for status, response in operation["responses"].items():
        for media, content in response["content"].items():
            if media == PROBLEM:
                refusals += ((status, code, _words(catalogue()[code].meaning)) for code in content["examples"])
            elif media == JSON:
                yield Code(
                    f"Response {status} of {method} {path}: {_type(content['schema'])}", _as_json(content["example"])
                )
            else:
                yield Note(f"Response {status}: {media}")
    yield Grid.of(f"Refusals of {method} {path}", REFUSALS, refusals)


def _curl(method: str, path: str, operation: Data) -> str:
    """Write the request as a command; `$BASE_URL` and `$KEY` are the reader's."""
    lines = [f'curl -X {method} "$BASE_URL{path}"']
    if "security" in operation:
        lines.append('-H "x-api-key: $KEY"')
    if JSON in operation.get("requestBody", {}).get("content", {}):
        body = _as_json(operation["requestBody"]["content"][JSON]["example"])
        lines += [f"-H 'content-type: {JSON}'", f"-d {shlex.quote(body)}"]
    return " \\\n  ".join(lines)


def _models(schemas: Data) -> Iterator[Grid]:
    for name, schema in schemas.items():
        if schema.get("properties"):
            rows = [tuple(map(_words, row)) for row in fields(schema, link=False)]
            yield Grid.of(name, FIELDS, rows)
        else:
            yield Grid.of(name, FIELDS, [(name, _type(schema), _words(schema.get("description", "")))])


def _type(schema: Data) -> str:
    return _words(type_of(schema, link=False))


def _words(text: str) -> str:
    """Return Markdown of the document as plain text."""
    return text.replace("`", "")


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
