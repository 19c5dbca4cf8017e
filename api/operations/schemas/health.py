"""Health of the service as it is shown."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from api.core.schemas.common import PartView, View


class LiveView(View):
    status: Literal["live"] = Field(description="The process answers. Its database and other parts are not checked.")


class ReadyView(View):
    status: Literal["ready"] = Field(description="All parts work. Otherwise the response is a problem.")
    parts: Annotated[Mapping[str, PartView], Field(description="The parts that the service needs, by name.")]
