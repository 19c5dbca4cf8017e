"""Users, roles, API keys and the audit trail as they are sent and shown."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import DEFAULT_COUNT, MAX_COUNT, Counts, Received, View
from api.core.schemas.rules import (
    MOMENT,
    Parameter,
    Rule,
    distinct,
    flag_parameter,
    moment,
    moment_parameter,
    number_rule,
    one_of,
    or_null,
    required_text,
    text,
    whole_parameter,
)
from storage.access.actors import ActorKind
from storage.access.keys import SCOPES
from storage.access.roles import Role
from storage.core.audit import Outcome, TrailPosition

MAX_EMAIL, MAX_NAME = 254, 200  # characters; RFC 5321 allows 254 for an address
MAX_OVERLAP_H = 30 * 24
MAX_ACTORS = 100
_EMAIL = "[!-?A-~]+@[!-?A-~]+"  # visible ASCII characters and one @
_CURSOR = re.compile("([0-9a-f]{1,15})-([0-9a-f]{1,15})")  # less than 2**63 each
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MICROSECONDS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def _email(value: Any) -> str:
    address = text(MAX_EMAIL)(value)
    if not re.fullmatch(_EMAIL, address):
        raise ValueError
    return address.lower()


def _role(value: Any) -> Role:
    return Role(one_of(*Role)(value))


_INCLUDES = "Each role may do everything that the ones before it may."
_ROLE = Rule(
    _role,
    "User.InvalidRole",
    f"role must be one of {', '.join(Role)}.",
    {"type": "string", "enum": list(Role), "description": _INCLUDES},
)
_NAME = required_text("name", "User.InvalidName", MAX_NAME, "The name that colleagues see.")


class NewUser(Received):
    email: Annotated[
        str,
        Rule(
            _email,
            "User.InvalidEmail",
            f"email must be an address of at most {MAX_EMAIL} visible ASCII characters with one @.",
            {
                "type": "string",
                "pattern": f"^{_EMAIL}$",
                "maxLength": MAX_EMAIL,
                "description": "The user signs in with it. Stored in lower case.",
            },
        ),
    ]
    name: Annotated[str, _NAME]
    role: Annotated[Role, _ROLE]


class ChangedUser(Received):
    name: Annotated[str | None, _NAME] = None
    role: Annotated[Role | None, _ROLE] = None


class UserView(View):
    user_id: UUID
    email: str = Field(description="The user signs in with it. In lower case.")
    name: str = Field(description="The name that colleagues see.")
    role: Role = Field(description=_INCLUDES)
    date_created: datetime = Field(validation_alias="created_at")
    disabled_at: datetime | None = Field(description="Null unless disabled.")
    locked_until: datetime | None = Field(description="Set after too many wrong passwords.")


class UserListView(Counts):
    users: list[UserView] = Field(description="By email address.")


class ErasedUserView(View):
    """A user that was erased."""

    user_id: UUID


class LinkView(View):
    """A link that signs a user in once."""

    user_id: UUID
    link: str = Field(description="Path on this service. It is not shown again.")
    expires_at: datetime = Field(description="The link is not valid from this moment on.")


class InvitedUserView(UserView):
    link: str = Field(description="Path by which the user signs in once and sets a password. It is not shown again.")
    link_expires_at: datetime = Field(description="The link is not valid from this moment on.")


class RoleView(View):
    role: Role
    scopes: Sequence[str] = Field(description="Everything that it grants, also what the roles before it grant.")


class RoleListView(View):
    roles: Sequence[RoleView] = Field(description="Each grants everything that the ones before it grant.")


def _scopes(value: Any) -> list[str]:
    return distinct(one_of(*SCOPES), len(SCOPES))(value)


class NewKey(Received):
    scopes: Annotated[
        list[str],
        Rule(
            _scopes,
            "Key.InvalidScopes",
            "scopes must be a non-empty list of distinct scopes.",
            {
                "type": "array",
                "items": {"type": "string", "enum": list(SCOPES)},
                "minItems": 1,
                "maxItems": len(SCOPES),
                "uniqueItems": True,
                "description": "What the key may be used for.",
            },
        ),
    ]
    expires_at: Annotated[
        datetime | None,
        Rule(
            or_null(moment),
            "Key.InvalidExpiry",
            f"expiresAt must be null or {MOMENT}.",
            {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "When the key expires. Default: never.",
            },
        ),
    ] = None


class Rotation(Received):
    overlap_hours: Annotated[
        int,
        number_rule("overlapHours", "Key.InvalidOverlap", 0, MAX_OVERLAP_H, "Hours for which the old key stays valid."),
    ] = 24


class KeyView(View):
    """An API key without its text."""

    key_id: UUID
    hint: str = Field(description="The first and last characters.")
    scopes: Sequence[str] = Field(description="What the key may be used for.")
    date_created: datetime = Field(validation_alias="created_at")
    expires_at: datetime | None = Field(description="Null: the key does not expire.")
    revoked_at: datetime | None = Field(description="Null unless revoked.")
    rotated_to: UUID | None = Field(description="Id of the key that replaces it.")


class KeyListView(Counts):
    keys: list[KeyView] = Field(description="Newest first, with those that have ended.")


class IssuedKeyView(KeyView):
    key: str = Field(description="The key. It is not shown again.")


def cursor_text(position: TrailPosition) -> str:
    return f"{(position.at - _EPOCH) // timedelta(microseconds=1):x}-{position.number:x}"


def _cursor(value: Any) -> TrailPosition | None:
    if value == "":
        return None
    match = _CURSOR.fullmatch(value) if type(value) is str else None
    if match is None or (microseconds := int(match[1], 16)) > _MAX_MICROSECONDS:
        raise ValueError
    return TrailPosition(_EPOCH + timedelta(microseconds=microseconds), int(match[2], 16))


class TrailQuery(Received):
    """Filters of the audit trail, which all apply."""

    who: Annotated[
        str | None,
        Parameter(
            text(40),
            "Audit.InvalidWho",
            "who must be text of 1 to 40 characters, given once.",
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 40,
                "description": "Only what this user or key did: the `who` of an entry.",
            },
        ),
    ] = None
    action: Annotated[
        str | None,
        Parameter(
            text(64),
            "Audit.InvalidAction",
            "action must be text of 1 to 64 characters, given once.",
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "Only this action, such as `Key.Created`.",
            },
        ),
    ] = None
    since: Annotated[
        datetime | None, moment_parameter("since", "Audit.InvalidSince", "Only entries from this moment on.")
    ] = None
    include_subjects: Annotated[
        bool,
        flag_parameter(
            "includeSubjects", "Audit.InvalidIncludeSubjects", "Include titles of what the entries concern."
        ),
    ] = False
    count: Annotated[
        int,
        whole_parameter(
            "count", "Pagination.InvalidCount", 1, MAX_COUNT, f"Entries in a response, at most {MAX_COUNT}."
        ),
    ] = DEFAULT_COUNT
    cursor: Annotated[
        TrailPosition | None,
        Parameter(
            _cursor,
            "Pagination.InvalidCursor",
            "cursor must be empty or the nextCursor of a response, given once.",
            {"type": "string", "description": "The last response's `nextCursor`; empty for the newest entries."},
        ),
    ] = None


class EntryView(View):
    at: datetime
    who: str = Field(description="Id of the user or the API key, `operator` or `service`. `GET /v1/actors` has names.")
    action: str = Field(description="Such as `Ruleset.Created`.")
    resource: Mapping[str, str | Sequence[str]] = Field(description="Ids of what the action concerned, by name.")
    outcome: Outcome = Field(description="refused: nothing was done.")
    times: int = Field(
        description="How many times it happened within a minute. Repeated refusals are counted, not listed one by one."
    )
    request_id: str | None = Field(description="The `X-Request-Id` of the response to the request.")


class SubjectView(View):
    name: str = Field(description="Of the id in a `resource`, such as `customerId`.")
    id: UUID
    title: str = Field(description="A title to show, such as a customer's name.")
    slug: str | None = Field(description="A policy's; null for anything else.")


class TrailView(View):
    entries: Sequence[EntryView] = Field(description="Newest first.")
    subjects: Sequence[SubjectView] | None = Field(
        description="What the entries concern, each once; null unless asked for. What is gone is left out, and so is "
        "what the key may not read."
    )
    next_cursor: str | None = Field(description="Cursor of the next entries; null if these are the last.")


class ActionListView(View):
    actions: Sequence[str] = Field(description="In order; each can be a filter of the trail.")


def _whos(value: Any) -> list[str]:
    if type(value) is not str:
        raise ValueError
    return distinct(text(40), MAX_ACTORS)(value.split(","))


class ActorsQuery(Received):
    who: Annotated[
        list[str],
        Parameter(
            _whos,
            "Actor.InvalidWho",
            f"who must be 1 to {MAX_ACTORS} different values, separated by commas, given once.",
            {
                "type": "string",
                "minLength": 1,
                "description": f"At most {MAX_ACTORS} values, separated by commas.",
            },
        ),
    ]


class ActorView(View):
    who: str = Field(description="As in the entries and in other responses.")
    kind: ActorKind = Field(description="anonymous: a caller without a valid key; unknown: nobody of this client.")
    name: str = Field(description="A name to show, such as `Ada Lovelace` or `API key tm_live_…4f2a`.")


class ActorListView(View):
    actors: Sequence[ActorView] = Field(description="In the order of the request.")
