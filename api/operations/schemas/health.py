"""How the service says that it is well."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from api.core.schemas.common import PartView, View


class LiveView(View):
    status: Literal["live"]


class ReadyView(View):
    status: Literal["ready"]
    parts: Annotated[Mapping[str, PartView], Field(description="What the service needs, by name.")]
