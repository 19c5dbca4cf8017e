"""Health of the service as it is shown."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from api.core.schemas.common import PartView, View


class LiveView(View):
    status: Literal["live"]


class ReadyView(View):
    status: Literal["ready"]
    parts: Annotated[Mapping[str, PartView], Field(description="The parts that the service needs, by name.")]
