"""Example documents of the models, read from the JSON file beside each module: `jobs.json` belongs to `jobs.py`.

A file maps the name of a model to its example. The example leaves out members that a base class's example has, and
required members whose own model has an example, alone or in a list. `Model.variant` holds what differs in another
example of the same model. The files are read when the OpenAPI document is built, not when the service starts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel


def example(model: type[BaseModel], variant: str | None = None) -> Any:
    """Return a model's example as parsed JSON, members in the order of the model's fields.

    Raises:
        LookupError: A required member has no example.
    """
    own = _entry(model, model.__name__)
    if isinstance(own, list):
        return own
    stated: dict[str, Any] = {}
    for base in (base for base in reversed(model.__mro__) if issubclass(base, BaseModel)):
        stated |= _entry(base, base.__name__)
    if variant is not None:
        stated |= _entry(model, f"{model.__name__}.{variant}")
    members: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        alias = field.serialization_alias or to_camel(name)
        if alias in stated:
            members[alias] = stated[alias]
        elif field.is_required() and not field.exclude:
            members[alias] = _member(field.annotation)
    return members | stated


def show_example(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add a model's example to its JSON Schema, as pydantic's `json_schema_extra`."""
    schema["examples"] = [example(model)]


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield every model that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def _member(annotation: Any) -> Any:
    """Return the example of the model that an annotation names first, in a list where the annotation is a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return example(annotation)
    if not (parts := get_args(annotation)):
        raise LookupError(annotation)
    first = _member(parts[0])
    return [first] if get_origin(annotation) in (list, Sequence) else first


def _entry(model: type[BaseModel], name: str) -> Any:
    return _file(model.__module__).get(name, {})


@cache
def _file(module: str) -> Mapping[str, Any]:
    package, _, name = module.rpartition(".")
    file = files(package) / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
