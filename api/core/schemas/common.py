"""What requests and answers have in common: names in camelCase, the envelope, pages."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.rules import Parameter, whole
from pipelines.vocabulary.errors import Fault
from storage.core.paging import Page

DEFAULT_COUNT = 20
MAX_COUNT = 1_000
MAX_PAGE = 1_000_000_000


class Received(BaseModel):
    """Something a caller sends. Unknown fields are ignored, and named in the answer's message."""

    model_config = ConfigDict(defer_build=True, alias_generator=to_camel, extra="ignore", frozen=True)
    EXAMPLE: ClassVar[Mapping[str, Any]]


class View(BaseModel):
    """Something a caller is shown, made from a record of storage."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        defer_build=True,
        from_attributes=True,
        frozen=True,
    )
    EXAMPLE: ClassVar[Mapping[str, Any]]

    @classmethod
    def of(cls, record: object) -> Self:
        return cls.model_validate(record)


class NoteView(View):
    """A warning or an error in a stable code and in words."""

    code: str
    message: str


class PartView(View):
    """Something that the service needs."""

    ok: bool
    reason: str | None = Field(None, description="What is wrong.")


class Problem(View):
    """The body of every answer that is not a success, as RFC 9457 has it."""

    type: str = Field(description="The page about the code, relative to this service.")
    title: str = Field(description="Belongs to the status.")
    status: int
    detail: str
    code: str = Field(description="Stable: decide by this one.")
    request_id: str = Field(description="Equals the header X-Request-Id; in a replayed answer, that of the first.")
    errors: Sequence[Fault] | None = Field(None, description="Everything wrong with the request, at most 100.")
    parts: Mapping[str, PartView] | None = Field(None, description="Of Service.NotReady: each part, well or not.")


class Envelope(View):
    """Every success: `data` beside `message`, a remark for people or null."""

    message: str | None


class Counts(View):
    """What every list says about itself."""

    EXAMPLE: ClassVar = {"totalCount": 1, "currentPage": None, "pageSize": 1, "totalPages": 1}

    total_count: int = Field(description="Items over all pages.")
    current_page: int | None = Field(description="Null when no page was asked for.")
    page_size: int = Field(description="`count`, or without a page the number returned.")
    total_pages: int


PageParameter = Annotated[
    int | None,
    Parameter(
        whole(1, MAX_PAGE),
        "Pagination.InvalidPage",
        "page must be a whole number from 1, given once.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "description": "Page to return, from 1."},
    ),
]


class Paging(Received):
    """`page` and `count`: without a page everything is returned, and `count` is checked and ignored."""

    page: PageParameter = None
    count: Annotated[
        int,
        Parameter(
            whole(1, MAX_COUNT),
            "Pagination.InvalidCount",
            f"count must be a whole number from 1 to {MAX_COUNT:,}, given once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "Items on a page."},
        ),
    ] = DEFAULT_COUNT

    def asked(self) -> Page | None:
        """The page to return, or None for everything."""
        return None if self.page is None else Page(self.page, self.count)
