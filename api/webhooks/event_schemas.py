"""JSON Schemas of the event types, from the models of the OpenAPI document.

`make generated` writes them to `docs/reference/events/*.schema.json`. Payloads may gain fields without notice, so no
schema forbids other fields.
"""

import json
from typing import Any

from api.webhooks.events import DESCRIPTIONS, EVENTS
from pipelines.webhooks.events import EventType

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def as_json_schema(event_type: EventType) -> dict[str, Any]:
    """Return an event type's JSON Schema 2020-12, with an example."""
    schema = _without_titles(EVENTS[event_type].model_json_schema())
    head = {"$schema": DIALECT, "title": event_type.value, "description": DESCRIPTIONS[event_type]}
    return head | {name: each for name, each in schema.items() if name not in head}


def files() -> dict[str, str]:
    """Return the text of every file, by its name."""
    return {f"{event_type}.schema.json": as_text(event_type) for event_type in EVENTS}


def as_text(event_type: EventType) -> str:
    return json.dumps(as_json_schema(event_type), indent=1, ensure_ascii=False) + "\n"


def _without_titles(schema: Any) -> Any:
    """Remove the titles that pydantic makes from names."""
    match schema:
        case {"title": str(), **others}:
            return _without_titles(others)
        case dict():
            return {name: _without_titles(each) for name, each in schema.items()}
        case list():
            return [_without_titles(each) for each in schema]
        case _:
            return schema
