"""Customers of the sandbox as they are sent and shown."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Rule, number_rule, one_of, optional, optional_text
from api.customers.schemas.customers import ABN_SAYS, ABN_SCHEMA, INVALID_ABN, CustomerView, eleven_digits
from pipelines.synthetic.sandbox import MAX_MONTHS, MIN_MONTHS, PROFILES

USUAL_MONTHS = 12


class NewSandboxCustomer(Received):
    """A synthetic business to make."""

    profile: Annotated[
        str,
        Rule(
            one_of(*PROFILES),
            "Sandbox.InvalidProfile",
            f"profile must be one of {', '.join(PROFILES)}.",
            {
                "type": "string",
                "enum": list(PROFILES),
                "description": "The kind of business: see `GET /v1/sandbox/profiles`.",
            },
        ),
    ]
    name: Annotated[str | None, optional_text("name", "Customer.InvalidName", 200, "A made-up name by default.")] = None
    abn: Annotated[
        str | None,
        Rule(
            optional(eleven_digits),
            INVALID_ABN,
            ABN_SAYS,
            {
                "anyOf": [ABN_SCHEMA, {"const": ""}, {"type": "null"}],
                "description": "By default random digits with right check digits.",
            },
        ),
    ] = None
    reference: Annotated[
        str | None, optional_text("reference", "Customer.InvalidReference", 128, "The client's own reference.")
    ] = None
    months: Annotated[
        int,
        number_rule(
            "months",
            "Sandbox.InvalidMonths",
            MIN_MONTHS,
            MAX_MONTHS,
            "Months of transactions until yesterday. A profile may have fewer.",
        ),
    ] = USUAL_MONTHS


class SandboxCustomerView(CustomerView):
    """A customer that the sandbox made. Its reports follow once the jobs have ended and a refresh is requested."""

    profile: str = Field(description="The kind of business, as requested.")
    job_ids: Sequence[UUID] = Field(description="The jobs of its submissions, one for each account.")
    data_through: date = Field(description="The last day of its transactions. Every night the next day is submitted.")


class SandboxProfileView(View):
    profile: str = Field(description="What to send as `profile`.")
    summary: str = Field(description="What such a business is like, in a sentence.")


class SandboxProfileListView(Counts):
    profiles: list[SandboxProfileView] = Field(description="Every kind of business that the sandbox can make.")
