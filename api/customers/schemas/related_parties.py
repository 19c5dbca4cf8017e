"""A customer's related parties as they are sent and shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field, RootModel
from stdnum.au import abn as check_digits

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import ListItem, Rule, count_between, masked_text, one_of, optional, required_text
from api.customers.schemas.customers import ABN_MEANING, ABN_SAYS, ABN_SCHEMA, INVALID_ABN, eleven_digits
from storage.enrichment.related_parties import Party

ROLES = ("director", "shareholder", "beneficial_owner", "partner", "trustee", "guarantor", "group_company")
MAX_PARTIES = 100
MAX_NAME = 200  # characters


class SentParty(Received):
    name: Annotated[
        str,
        required_text(
            "name", "RelatedParty.InvalidName", MAX_NAME, "Name of the person or company.", parse=masked_text
        ),
    ]
    abn: Annotated[
        str | None,
        Rule(
            optional(eleven_digits),
            INVALID_ABN,
            ABN_SAYS,
            {
                "anyOf": [ABN_SCHEMA, {"const": ""}, {"type": "null"}],
                "description": ABN_MEANING,
            },
        ),
    ] = None
    role: Annotated[
        str,
        Rule(
            one_of(*ROLES),
            "RelatedParty.InvalidRole",
            f"role must be one of {', '.join(ROLES)}.",
            {"type": "string", "enum": list(ROLES), "description": "What the party is to the customer."},
        ),
    ]

    def record(self) -> Party:
        return Party(self.name, self.abn, check_digits.is_valid(self.abn) if self.abn else None, self.role)


class SentParties(RootModel[list[Annotated[SentParty, ListItem()]]]):
    """The whole list. A party with two roles is listed twice."""

    root: Annotated[
        list[Annotated[SentParty, ListItem()]],
        count_between(
            0, MAX_PARTIES, "RelatedParty.TooMany", f"A customer may have at most {MAX_PARTIES} related parties."
        ),
    ] = Field(json_schema_extra={"maxItems": MAX_PARTIES})

    def records(self) -> list[Party]:
        return [party.record() for party in self.root]


class PartyView(View):
    name: str = Field(description="Name of the person or company, with card and tax file numbers masked.")
    abn: str | None = Field(description="11 digits, without spaces; null if none was given.")
    abn_checksum_valid: bool | None = Field(
        description="Null without an ABN. A party is accepted even if this is false."
    )
    role: str = Field(
        description="director, shareholder, beneficial_owner, partner, trustee, guarantor or group_company."
    )


class PartyListView(View):
    related_parties: Sequence[PartyView] = Field(
        validation_alias="parties", description="The complete list, which replaced the one before."
    )
    date_set: datetime = Field(validation_alias="set_at", description="When the list began to apply.")
    set_by: str = Field(description="Id of the user or the API key.")


class PartiesView(View):
    related_parties: Sequence[PartyView] = Field(description="The complete list that applies now.")


class PartyHistoryView(Counts):
    related_parties: list[PartyView] = Field(description="The current list.")
    history: list[PartyListView] = Field(description="Every list, newest first. Paging applies to this field.")
