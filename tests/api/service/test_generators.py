"""The OpenAPI document has what generators of clients stumble over in no place."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.api.core.operations import document, list_operations

# `clients/openapi-python-client.yaml` tells openapi-python-client how to read a picture.
MEDIA_TYPES = {
    "application/json",
    "application/problem+json",
    "application/octet-stream",
    "application/pdf",
    "image/png",
    "multipart/form-data",
    "text/html",
    "text/plain",
}


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["schemas"]
    return found


def inner_schemas(place: str, schema: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and all schemas in it, each with the name that a generator would make for it."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for name, member in schema.get("properties", {}).items():
        yield from inner_schemas(f"{place}_{name}", member)
    for word in ("items", "additionalProperties"):
        yield from inner_schemas(f"{place}_{word}", schema.get(word))
    for word in ("anyOf", "oneOf", "allOf"):
        for number, member in enumerate(schema.get(word, ())):
            yield from inner_schemas(f"{place}_type_{number}", member)


def all_schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in schemas().items():
        yield from inner_schemas(name, schema)
    for operation in list_operations():
        for parameter in operation.documented.get("parameters", ()):
            yield from inner_schemas(f"{operation}_{parameter['name']}", parameter["schema"])
        for answer in (*operation.documented["responses"].values(), operation.documented.get("requestBody", {})):
            for content in answer.get("content", {}).values():
                yield from inner_schemas(str(operation), content.get("schema"))


def colliding(names: Iterable[str]) -> list[set[str]]:
    """Return the names that differ only in case and punctuation, which generators make one class of."""
    by_class = defaultdict(set[str])
    for name in names:
        by_class[re.sub("[^a-z0-9]", "", name.lower())].add(name)
    return [each for each in by_class.values() if len(each) > 1]


def test_every_array_has_items() -> None:
    assert [name for name, schema in all_schemas() if "array" in schema.get("type", ()) and "items" not in schema] == []


def test_no_two_classes_have_the_same_name() -> None:
    own_classes = ("properties", "enum")
    inner = [name for name, schema in all_schemas() if any(word in schema for word in own_classes)]
    assert colliding({*schemas(), *inner}) == []


def test_no_two_operations_have_the_same_name() -> None:
    names = [operation.documented["operationId"] for operation in list_operations()]
    assert len(set(names)) == len(names)
    assert colliding(names) == []


def test_every_media_type_is_known_to_generators() -> None:
    contents = [
        answer.get("content", {})
        for operation in list_operations()
        for answer in (*operation.documented["responses"].values(), operation.documented.get("requestBody", {}))
    ]
    assert {media for content in contents for media in content} == MEDIA_TYPES
