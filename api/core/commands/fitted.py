"""Warnings about fitted models."""

from collections.abc import Mapping
from typing import Any

from api.core.commands.console import warn
from pipelines.vocabulary.taxonomy import describe_other_version


def warn_of_taxonomy(model: object, facts: Mapping[str, Any]) -> None:
    """Print a warning if the facts of a model state another version of the taxonomy than the present one."""
    if difference := describe_other_version(facts):
        warn(f"model {model}: {difference}")
