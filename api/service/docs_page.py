"""The pages of the API, one for each subject: every operation and model of the OpenAPI document, without a script."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from api.service.described import Data, fields, first_line, operations, tags, type_of
from pipelines.pages import Code, Column, Folded, Grid, Note, Opening, Page, Part, Point, Points, Section
from pipelines.vocabulary.codes import catalogue

JSON, PROBLEM = "application/json", "application/problem+json"
FIELDS = (Column("Field", "short"), Column("Type"), Column("Meaning", "prose"))
PARAMETERS = (Column("Parameter", "short"), Column("In", "short"), Column("Type"), Column("Meaning", "prose"))
REFUSALS = (Column("Status", "short"), Column("Code", "short"), Column("Meaning", "prose"))


DOCS = "/docs"


def index_page(document: Data) -> Page:
    """Return the page of conventions, which lists all operations, and has the models of several subjects."""
    info = document["info"]
    paragraphs = re.split(r"\n+- ", info["description"].strip())
    conventions = (Note(_words(" ".join(paragraph.split()))) for paragraph in paragraphs)
    return Page(
        kind="API",
        title=info["title"],
        facts=(("Version", info["version"]), ("OpenAPI document", "/openapi.json")),
        notices=(),
        sections=(
            Section("conventions", "Conventions", tuple(conventions)),
            Section("operations", "Operations", tuple(_list_operations(document, tag) for tag in tags(document))),
            Section("models", "Models of several subjects, and events", (_fold(document, _common_models(document)),)),
        ),
        footer="Made from the OpenAPI document of this service.",
    )


def subject_pages(document: Data) -> Mapping[str, Page]:
    """Return a page for each subject by its address: its operations, and the models that no other subject uses."""
    common = _common_models(document)
    return {
        _address(tag): Page(
            kind="API",
            title=tag,
            facts=(("Version", document["info"]["version"]),),
            notices=(),
            sections=(
                Section("operations", "Operations", tuple(_operations(document, tag))),
                Section("models", "Models", (_fold(document, _models_of(document, tag) - common),)),
                Section(
                    "more",
                    "More",
                    (Points("", (Point("All operations, and the models of several subjects", link=DOCS),)),),
                ),
            ),
            footer="Made from the OpenAPI document of this service.",
        )
        for tag in tags(document)
    }


def _address(tag: str) -> str:
    return f"{DOCS}/{tag.lower().replace(' ', '-')}"


def _list_operations(document: Data, tag: str) -> Points:
    listed = (
        Point(f"{method} {path}: {_words(first_line(operation))}", link=_address(tag))
        for method, path, operation in operations(document)
        if operation["tags"][0] == tag
    )
    return Points(tag, tuple(listed))


def _common_models(document: Data) -> set[str]:
    """Return the models that several subjects use, and those that none does: events."""
    uses = Counter(name for tag in tags(document) for name in _models_of(document, tag))
    return {name for name in document["components"]["schemas"] if uses[name] != 1}


def _models_of(document: Data, tag: str) -> set[str]:
    """Return the models of a subject's operations, and those that these consist of."""
    schemas = document["components"]["schemas"]
    used = set[str]()
    found = _references([operation for _, _, operation in operations(document) if operation["tags"][0] == tag])
    while found:
        used |= found
        found = _references([schemas[name] for name in found]) - used
    return used


def _references(part: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(part)))


def _fold(document: Data, names: set[str]) -> Folded:
    schemas = document["components"]["schemas"]
    return Folded(tuple(_models({name: schema for name, schema in schemas.items() if name in names})))


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
