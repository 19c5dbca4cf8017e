"""Ids in arguments and options: whole, or their first digits, as lists show them.

customer: Annotated[UUID, typer.Option(parser=ids.CUSTOMER, metavar="ID", help="Only this customer.")]
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import typer
from sqlalchemy import Column

from api.core.commands.console import opened_store
from storage.core import models, short_ids
from storage.core.database import Reading
from storage.core.short_ids import DIGITS, MIN_DIGITS


@dataclass(frozen=True)
class Ids:
    """Ids of one kind. Called with what was typed, it returns the id."""

    noun: str
    column: Column[Any]

    def __call__(self, typed: str) -> UUID:
        """Return the id.

        Raises:
            typer.BadParameter: the text is neither an id nor the beginning of exactly one id.
        """
        digits = _digits(typed)
        if digits is None:
            raise typer.BadParameter(
                f"{typed!r} is not an id: give the {self.noun}'s whole id, or at least its first {MIN_DIGITS} digits"
            )
        if len(digits) == DIGITS:
            return UUID(digits)
        with opened_store() as store, store.db.reading() as r:
            return self._id(r, digits)

    def find_unless_file(self, r: Reading, typed: str) -> UUID | None:
        """Return the id, or None for the name of a file.

        Raises:
            typer.BadParameter: no id starts with these digits, or more than one.
        """
        digits = _digits(typed)
        return None if digits is None or Path(typed).exists() else self._id(r, digits)

    def _id(self, r: Reading, digits: str) -> UUID:
        found = [UUID(digits)] if len(digits) == DIGITS else short_ids.find_ids_starting_with(r, self.column, digits)
        if not found:
            raise typer.BadParameter(f"no {self.noun}'s id starts with {digits}")
        if len(found) > 1:
            raise typer.BadParameter(f"more than one {self.noun}'s id starts with {digits}: give more digits")
        return found[0]


def _digits(typed: str) -> str | None:
    """Return the hexadecimal digits of an id or of its beginning, or None for any other text."""
    digits = typed.replace("-", "").lower()
    return digits if re.fullmatch(f"[0-9a-f]{{{MIN_DIGITS},{DIGITS}}}", digits) else None


CLIENT = Ids("client", models.clients.c.client_id)
CUSTOMER = Ids("customer", models.customers.c.customer_id)
KEY = Ids("key", models.api_keys.c.key_id)
SUBSCRIPTION = Ids("subscription", models.subscriptions.c.subscription_id)
DELIVERY = Ids("delivery", models.deliveries.c.delivery_id)
EVALUATION = Ids("evaluation", models.evaluations.c.evaluation_id)
RISK_MODEL = Ids("model", models.risk_models.c.model_id)
CATEGORY_MODEL = Ids("model", models.category_models.c.model_id)
