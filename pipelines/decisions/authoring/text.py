"""A policy's document as YAML, as authors edit it."""

import yaml

from pipelines.decisions.policy import Policy


def as_yaml(policy: Policy) -> str:
    """Return the document without the members that equal their defaults."""
    document = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
    return text
