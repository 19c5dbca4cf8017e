"""The ruleset document as a JSON Schema, for editors that complete and mark while one writes.

A schema tells the shape alone; `checking` finds the rest.
"""

from typing import Any

from pipelines.decisions.authoring.schema import of_document, text_of
from pipelines.monitoring.ruleset import Ruleset


def as_json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12."""
    says = "Rules that watch customers in life. See docs/how-to/monitoring.md."
    return of_document(Ruleset, "Monitoring ruleset", says)


def as_text() -> str:
    """The file `docs/reference/ruleset.schema.json`."""
    return text_of(as_json_schema())
