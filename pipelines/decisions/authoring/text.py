"""The document of a policy or a ruleset as YAML, as authors edit it."""

import yaml
from pydantic import BaseModel


def as_yaml(model: BaseModel) -> str:
    """Return the document without the members that equal their defaults."""
    document = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
    return text
