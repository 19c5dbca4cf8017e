"""Starter set of attributes: documented names, so that policies use the same ones. Other names may be used, too."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated

from pydantic import Field, TypeAdapter

from pipelines.decisions.policy import Kind, Name
from pipelines.metrics.definition import Strict
from pipelines.vocabulary.rule_files import parse

_FILE = "starter_attributes.yaml"


class StarterAttribute(Strict):
    """A documented attribute. `settle`: where a value comes from. `holds`: days that evidence usually holds (`30d`)."""

    name: Name
    kind: Kind
    meaning: Annotated[str, Field(min_length=1, max_length=500)]
    settle: Annotated[str, Field(min_length=1, max_length=500)]
    holds: Annotated[str, Field(pattern=r"^[0-9]{1,4}d$")]
    personal: bool = False


def _load() -> tuple[StarterAttribute, ...]:
    text = files("pipelines.decisions").joinpath(_FILE).read_text("utf-8")
    return TypeAdapter(tuple[StarterAttribute, ...]).validate_python(parse(text, _FILE))


ATTRIBUTES: Mapping[str, StarterAttribute] = {each.name: each for each in _load()}
