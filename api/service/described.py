"""The OpenAPI document in words, for the page of the API and for the pages of docs/reference/."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Data = Mapping[str, Any]


def operations(document: Data) -> Iterator[tuple[str, str, Data]]:
    """Yield method, path and operation of each operation."""
    for path, methods in document["paths"].items():
        yield from ((method.upper(), path, operation) for method, operation in methods.items())


def tags(document: Data) -> list[str]:
    return list(dict.fromkeys(operation["tags"][0] for _, _, operation in operations(document)))


def first_line(operation: Data) -> str:
    return str(operation["description"]).split("\n\n", 1)[0]


def fields(schema: Data, *, link: bool = True) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each member of an object."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        optional = "" if name in required else " (optional)"
        yield f"`{name}`{optional}", type_of(field, link=link), field.get("description", "")


def type_of(schema: Data, *, link: bool = True) -> str:
    """Describe a JSON Schema in a few words, as Markdown."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](models.md#{name.lower()})" if link else name
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(type_of(each, link=link) for each in schema[key]))
    if "const" in schema or "enum" in schema:
        return values(schema.get("enum") or [schema["const"]])
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}), link=link)}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def values(listed: Iterable[object]) -> str:
    """List JSON values as Markdown: a text without its quotes unless it is empty, everything else as JSON writes it."""
    return ", ".join(f"`{value if isinstance(value, str) and value else json.dumps(value)}`" for value in listed)
