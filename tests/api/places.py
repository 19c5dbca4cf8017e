"""All places where operations take an id, from the OpenAPI document."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.api.core.operations import Operation, document, list_operations

LISTS_OF = {"customerIds": "customerId", "customers": "customerId"}
ALSO_CALLED = {"before": "deliveryId", "assignee": "userId"}
Step = str | int


@dataclass(frozen=True)
class Place:
    """A place where an operation takes an id: in its path, in its query, or somewhere in its body."""

    operation: Operation
    within: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.operation} {self.within} {'/'.join(map(str, self.steps))}"

    @property
    def kind(self) -> str:
        """The kind of resource that the id names."""
        name = next(step for step in reversed(self.steps) if isinstance(step, str))
        return (LISTS_OF | ALSO_CALLED).get(name, name)


@cache
def places() -> tuple[Place, ...]:
    return tuple({str(place): place for operation in list_operations() for place in _places_of(operation)}.values())


def _places_of(operation: Operation) -> Iterator[Place]:
    for name in operation.ids:
        yield Place(operation, "path", (name,))
    for parameter in operation.documented.get("parameters", ()):
        if parameter["in"] == "query" and is_id(parameter["schema"]):
            yield Place(operation, "query", (parameter["name"],))
    if operation.has_body:
        content = operation.documented["requestBody"]["content"]["application/json"]
        for steps in ids_within(content["schema"]):
            yield Place(operation, "body", steps)


def ids_within(schema: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[tuple[Step, ...]]:
    """Yield the steps to each id in a document of this schema."""
    if (reference := schema.get("$ref")) is not None:
        if reference not in seen:
            yield from ids_within(document()["components"]["schemas"][reference.rpartition("/")[2]], seen | {reference})
        return
    if is_id(schema):
        yield ()
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from ids_within(option, seen)
    for name, member in schema.get("properties", {}).items():
        yield from ((name, *steps) for steps in ids_within(member, seen))
    if "items" in schema:
        yield from ((0, *steps) for steps in ids_within(schema["items"], seen))


def is_id(schema: Mapping[str, Any]) -> bool:
    return schema.get("format") == "uuid"


def example_with(operation: Operation, own: Mapping[str, str]) -> Any:
    """Return the documented body with these ids in all places that take one."""
    body = deepcopy(operation.example)
    for place in places():
        if place.operation == operation and place.within == "body":
            set_id(body, place, own[place.kind])
    return body


def set_id(given: Any, place: Place, an_id: str) -> None:
    """Set an id in a path, query or body; lists on the way are extended as needed."""
    found, steps = given, place.steps
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int) and len(found) <= step:
            found.append({})
        if following is None:
            found[step] = an_id
        elif isinstance(found, dict) and found.get(step) is None:
            found[step] = [] if isinstance(following, int) else {}
        found = found[step]
