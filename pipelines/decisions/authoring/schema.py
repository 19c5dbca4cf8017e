"""JSON Schema of policies and other documents, for editors that complete and validate while an author writes.

A schema describes only the shape; `check` finds the other faults.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from pipelines.decisions.policy import Condition, Number, Policy
from pipelines.enrichment.flags import FLAGS
from pipelines.metrics import METRICS
from pipelines.metrics.definition import DECIMAL, Strict
from pipelines.vocabulary.schemas import ACCOUNT_TYPES, Channel, CounterpartyKind
from pipelines.vocabulary.taxonomy import TAXONOMY

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Data = dict[str, Any]


def as_json_schema() -> Data:
    """Return the JSON Schema (2020-12) of policies."""
    description = "Rules that decide, in order, and limits that are offered. See docs/how-to/policies.md."
    return document_schema(Policy, "Decision policy", description)


def as_text() -> str:
    """Return the text of the file `docs/reference/policy.schema.json`."""
    return text_of(as_json_schema())


def document_schema(model: type[Strict], title: str, description: str) -> Data:
    """Return the JSON Schema of any document that uses numbers and conditions of policies."""
    written = _simplify(model.model_json_schema(by_alias=True))
    definitions = {name: _add_allowed_values(name, each) for name, each in written.pop("$defs").items()}
    shared = {name: {"oneOf": _simplify(forms)} for name, forms in _SHARED.items()}
    return {
        "$schema": DIALECT,
        **written,
        "title": title,
        "description": description,
        "$defs": {**definitions, **shared},
    }


def text_of(schema: Data) -> str:
    """Return a schema as a file's text."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


_FORMS: Mapping[str, Any] = {"Number": Number, "Condition": Condition}
_SHARED: Mapping[str, list[Data]] = {name: TypeAdapter(form).json_schema()["oneOf"] for name, form in _FORMS.items()}


def _simplify(schema: Any) -> Any:
    """Simplify pydantic's schema: no titles made from names, descriptions on one line, shared forms defined once."""
    match schema:
        case {"oneOf": forms, **others} if forms in _SHARED.values():
            name = next(name for name, each in _SHARED.items() if each == forms)
            return {"$ref": f"#/$defs/{name}", **_simplify(others)}
        case {"title": str(), **others}:
            return _simplify(others)
        case dict():
            return {
                name: _unwrap_description(name, _simplify(each))
                for name, each in schema.items()
                if name != "discriminator"
            }
        case list():
            return [_simplify(each) for each in schema]
        case _:
            return schema


def _unwrap_description(name: str, value: Any) -> Any:
    return " ".join(value.split()) if name == "description" and isinstance(value, str) else value


# Lists of allowed values, which the models don't contain


def _add_allowed_values(name: str, definition: Data) -> Data:
    fields = {field: _add_to_field(name, field, schema) for field, schema in definition["properties"].items()}
    return {**definition, "properties": fields}


def _add_to_field(model: str, field: str, schema: Data) -> Data:
    if field in _AMOUNTS.get(model, ()):
        return {**schema, "anyOf": [_SIZE if model == "Where" else _DECIMAL, {"type": "null"}]}
    if field == "metric" or (model, field) == ("BaselineMetric", "of"):
        return {**schema, "anyOf": [{"enum": sorted(METRICS)}, {"pattern": schema["pattern"]}]}
    if model == "Where" and field in _LISTED:
        return {**schema, "items": {"enum": _LISTED[field]}}
    return schema


_AMOUNTS: Mapping[str, tuple[str, ...]] = {
    "Where": ("atLeast", "atMost"),
    "Transactions": ("below",),
    "Balances": ("threshold",),
}
_DECIMAL = {"type": "string", "pattern": f"^{DECIMAL.pattern}$"}
_SIZE = {"type": "string", "pattern": f"^{DECIMAL.pattern.removeprefix('-?')}$"}
_LISTED: Mapping[str, list[str]] = {
    "categories": list(TAXONOMY.categories),
    "notCategories": list(TAXONOMY.categories),
    "groups": list(TAXONOMY.groups),
    "counterpartyKinds": CounterpartyKind.categories.to_list(),
    "channels": Channel.categories.to_list(),
    "flags": list(FLAGS),
    "notFlags": list(FLAGS),
    "accountTypes": list(ACCOUNT_TYPES),
}
