"""A customer as it is sent and shown."""

import re
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from stdnum.au import abn as check_digits

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import Parameter, Rule, optional_text, text
from storage.customers import customers

EXAMPLE_ABN = "51824753556"  # the Australian Taxation Office's own


def eleven_digits(value: Any) -> str:
    """Parse eleven digits, with any spaces between them."""
    digits = value.replace(" ", "") if type(value) is str else ""
    if not re.fullmatch("[0-9]{11}", digits):
        raise ValueError
    return digits


INVALID_ABN = "Customer.InvalidAbn"
ABN_SAYS = "An ABN has exactly 11 digits; spaces are ignored."
ABN_MEANING = "11 digits; spaces are ignored, and wrong check digits are accepted."
ABN_SCHEMA = {"type": "string", "pattern": "^ *([0-9] *){11}$", "examples": [EXAMPLE_ABN]}


class NewCustomer(Received):
    abn: Annotated[
        str,
        Rule(
            eleven_digits,
            INVALID_ABN,
            ABN_SAYS,
            ABN_SCHEMA | {"description": ABN_MEANING},
        ),
    ]
    name: Annotated[
        str | None,
        optional_text("name", "Customer.InvalidName", 200, "Name of the business."),
    ] = None
    reference: Annotated[
        str | None,
        optional_text(
            "reference",
            "Customer.InvalidReference",
            128,
            "The client's own reference. Creating a customer with the same ABN and reference again returns the first.",
        ),
    ] = None
    state: Annotated[
        str | None,
        optional_text("state", "Customer.InvalidState", 64, "State of the business, such as NSW."),
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
            "reference must be text of 1 to 128 characters, given once.",
            {"type": "string", "minLength": 1, "maxLength": 128, "description": "Only customers with this reference."},
        ),
    ] = None


class CustomerView(View):
    customer_id: UUID
    abn: str = Field(description="11 digits, without spaces.")
    abn_checksum_valid: bool = Field(
        description="Whether the ABN's check digits are right. A customer is accepted even if not."
    )
    name: str | None = Field(description="Name of the business; null if none was given.")
    reference: str | None = Field(description="The client's own reference; null if none was given.")
    state: str | None = Field(description="State of the business, such as NSW; null if not given.")
    date_created: datetime = Field(
        validation_alias="created_at", description="When the customer was created in this service."
    )


class CreatedCustomerView(CustomerView):
    created: bool = Field(description="False when a customer with this ABN and reference existed.")


class CustomerListView(Counts):
    customers: list[CustomerView] = Field(description="In order of creation.")
