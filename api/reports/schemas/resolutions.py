"""Resolutions of findings and events as they are sent and shown."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Rule, masked_text, one_of, or_null
from storage.reports.resolutions import KINDS

MAX_REASON = 1_000  # characters
_KEY = re.compile(r"[0-9a-f]{32}")
_KIND_MEANING = "finding: one of the risk report's `integrity.findings`; event: one of its `events`."


def _key(given: Any) -> str:
    if not isinstance(given, str) or not _KEY.fullmatch(given):
        raise ValueError
    return given


class SentResolution(Received):
    """Resolves a finding or an event of the risk report; with `reason: null`, revokes its resolution."""

    kind: Annotated[
        str,
        Rule(
            one_of(*KINDS),
            "Resolution.InvalidKind",
            f"kind must be {' or '.join(KINDS)}.",
            {"type": "string", "enum": list(KINDS), "description": _KIND_MEANING},
        ),
    ]
    key: Annotated[
        str,
        Rule(
            _key,
            "Resolution.InvalidKey",
            "key must be the 32 hexadecimal digits that the risk report shows with the finding or event.",
            {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "As the risk report shows it."},
        ),
    ]
    reason: Annotated[
        str | None,
        Rule(
            or_null(masked_text(MAX_REASON)),
            "Resolution.InvalidReason",
            f"reason must be text of 1 to {MAX_REASON:,} characters, or null.",
            {
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": MAX_REASON,
                "description": "The explanation, in your words. Null revokes the resolution.",
            },
        ),
    ]


class ResolutionView(View):
    kind: str = Field(description=_KIND_MEANING)
    key: str = Field(description="As the risk report shows it with the finding or event.")
    reason: str | None = Field(description="Null: the resolution was revoked.")
    date_made: datetime = Field(
        validation_alias="made_at", description="When it was resolved, or its resolution was revoked."
    )
    made_by: str = Field(description="Id of the user or the API key.")


class ResolutionsView(View):
    resolutions: Sequence[ResolutionView] = Field(description="Those in force, oldest first.")


class ResolutionHistoryView(Counts):
    resolutions: Sequence[ResolutionView] = Field(description="Those in force, oldest first.")
    history: Sequence[ResolutionView] = Field(description="Every resolution and revocation, newest first.")
