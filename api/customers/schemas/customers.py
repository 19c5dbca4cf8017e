"""A customer as it is sent and shown."""

import re
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from stdnum.au import abn as check_digits

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import Parameter, Rule, optional, text
from storage.customers import customers

EXAMPLE_ABN = "51824753556"  # the Australian Taxation Office's own


def eleven_digits(value: Any) -> str:
    """Eleven digits, however they were spaced."""
    digits = value.replace(" ", "") if type(value) is str else ""
    if not re.fullmatch("[0-9]{11}", digits):
        raise ValueError
    return digits


INVALID_ABN = "Customer.InvalidAbn"
ABN_SAYS = "An ABN has exactly 11 digits; spaces are ignored."
ABN_SCHEMA = {"type": "string", "pattern": "^ *([0-9] *){11}$", "examples": [EXAMPLE_ABN]}


class NewCustomer(Received):
    abn: Annotated[str, Rule(eleven_digits, INVALID_ABN, ABN_SAYS, ABN_SCHEMA)]
    name: Annotated[
        str | None,
        Rule(
            optional(text(200)),
            "Customer.InvalidName",
            "The name is text of at most 200 characters.",
            {"type": ["string", "null"], "maxLength": 200},
        ),
    ] = None
    reference: Annotated[
        str | None,
        Rule(
            optional(text(128)),
            "Customer.InvalidReference",
            "The reference is text of at most 128 characters.",
            {
                "type": ["string", "null"],
                "maxLength": 128,
                "description": "The client's own reference. A second create with the same ABN and reference finds the "
                "first customer.",
            },
        ),
    ] = None
    state: Annotated[
        str | None,
        Rule(
            optional(text(64)),
            "Customer.InvalidState",
            "The state is text of at most 64 characters.",
            {"type": ["string", "null"], "maxLength": 64, "description": "State of the business, such as NSW."},
        ),
    ] = None

    def record(self) -> customers.NewCustomer:
        valid = check_digits.is_valid(self.abn)
        return customers.NewCustomer(self.abn, valid, self.name, self.reference, self.state)


class CustomersQuery(Paging):
    abn: Annotated[
        str | None,
        Parameter(eleven_digits, INVALID_ABN, ABN_SAYS, ABN_SCHEMA | {"description": "Only customers with this ABN."}),
    ] = None
    reference: Annotated[
        str | None,
        Parameter(
            text(128),
            "Customer.InvalidReference",
            "The reference is text of at most 128 characters, given once.",
            {"type": "string", "minLength": 1, "maxLength": 128, "description": "Only customers so referenced."},
        ),
    ] = None


class CustomerView(View):
    customer_id: UUID
    abn: str
    abn_checksum_valid: bool = Field(description="Whether the ABN's check digits fit. It never blocks anything.")
    name: str | None
    reference: str | None
    state: str | None
    date_created: datetime = Field(validation_alias="created_at")


class CreatedCustomerView(CustomerView):
    created: bool = Field(description="False when the client's reference led to a customer that existed.")


class CustomerListView(Counts):
    customers: list[CustomerView]
