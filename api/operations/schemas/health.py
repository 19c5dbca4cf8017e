"""How the service says that it is well."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api.core.schemas.common import PartView, View


class LiveView(View):
    EXAMPLE: ClassVar = {"status": "live"}

    status: Literal["live"]


class ReadyView(View):
    EXAMPLE: ClassVar = {
        "status": "ready",
        "parts": {
            name: {"ok": True, "reason": None}
            for name in ("database", "dispatcher", "worker", "automation", "lake", "disk")
        },
    }

    status: Literal["ready"]
    parts: Annotated[Mapping[str, PartView], Field(description="What the service needs, by name.")]
