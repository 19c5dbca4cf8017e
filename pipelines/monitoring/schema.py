"""JSON Schema of rulesets, for editors that complete and validate while an author writes.

A schema describes only the shape; `checking` finds the other faults.
"""

from typing import Any

from pipelines.decisions.authoring.schema import document_schema, text_of
from pipelines.monitoring.ruleset import Ruleset


def as_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of rulesets."""
    return document_schema(
        Ruleset, "Monitoring ruleset", "Rules that watch current customers. See docs/how-to/monitoring.md."
    )


def as_text() -> str:
    """Return the text of the file `docs/reference/ruleset.schema.json`."""
    return text_of(as_json_schema())
