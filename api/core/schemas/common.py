"""Base models of requests and responses: names in camelCase, the envelope, problems, pages."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, get_origin

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.rules import whole_parameter
from pipelines.vocabulary.errors import Fault
from storage.core.paging import Page

DEFAULT_COUNT = 20
MAX_COUNT = 1_000
MAX_PAGE = 1_000_000_000


class Received(BaseModel):
    """The base class of request bodies. Unknown fields are ignored, and named in the response's message."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)
    ROWS: ClassVar[str | None] = None  # the member of a body that is a list of transactions


class View(BaseModel):
    """The base class of responses, made from a record of storage."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        defer_build=True,
        from_attributes=True,
        frozen=True,
    )

    @classmethod
    def of(cls, record: object) -> Self:
        return cls.model_validate(record)


def add_document_fields(
    schema: dict[str, Any], document: type[BaseModel], description: str, kinds: Mapping[str, Any]
) -> None:
    """Add a document's fields to a body's JSON Schema, only with their JSON types, because another model checks them.

    `kinds` gives the type of fields that are neither text nor a list.
    """
    for name, field in document.model_fields.items():
        alias = field.alias or name
        kind = kinds.get(alias) or ("array" if get_origin(field.annotation) is tuple else "string")
        schema["properties"][alias] = {"type": kind, "description": description}
        if kind == "array":
            schema["properties"][alias]["items"] = {}
    schema["additionalProperties"] = False


class NoteView(View):
    """A warning or an error: a stable code and a message."""

    code: str = Field(description="Stable: programs should branch on this.")
    message: str = Field(description="For people.")


class PartView(View):
    """The state of a part that the service needs."""

    ok: bool = Field(description="False: the service is not ready because of it.")
    reason: str | None = Field(None, description="What is wrong.")


class Problem(View):
    """The body of every response that is not a success, as in RFC 9457."""

    type: str = Field(description="The page about the code, relative to this service.")
    title: str = Field(description="Title of the status.")
    status: int = Field(description="Equals the HTTP status.")
    detail: str = Field(description="What is wrong, for people.")
    code: str = Field(description="Stable: programs should branch on this.")
    request_id: str = Field(description="The header X-Request-Id; in a replayed response, that of the first request.")
    errors: Sequence[Fault] | None = Field(None, description="Every fault of the request, at most 100.")
    parts: Mapping[str, PartView] | None = Field(None, description="For Service.NotReady: the state of each part.")


class Envelope(View):
    """The body of every success: `data`, and `message`, a remark for people or null."""

    message: str | None = Field(description="A remark for people; null if there is none.")


class Counts(View):
    """The counts of every list."""

    total_count: int = Field(description="Items on all pages.")
    current_page: int | None = Field(description="Null when no page was requested.")
    page_size: int = Field(description="`count`; without a page, the number of items returned.")
    total_pages: int = Field(description="1 without a page; 0 if there are no items.")


PageParameter = Annotated[
    int | None,
    whole_parameter(
        "page", "Pagination.InvalidPage", 1, MAX_PAGE, "Page to return, from 1. Without it, everything is returned."
    ),
]


class Paging(Received):
    """`page` and `count`. Without a page everything is returned; `count` is then checked and ignored."""

    page: PageParameter = None
    count: Annotated[
        int,
        whole_parameter("count", "Pagination.InvalidCount", 1, MAX_COUNT, f"Items on a page, at most {MAX_COUNT}."),
    ] = DEFAULT_COUNT

    def requested_page(self) -> Page | None:
        """Return the requested page, or None for everything."""
        return None if self.page is None else Page(self.page, self.count)
