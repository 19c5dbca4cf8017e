"""Conditions on deliveries that both databases answer from their partial indexes."""

from sqlalchemy import ColumnElement, String, and_, literal_column, text

from storage.core.models import DeliveryStatus, deliveries


def has_status(status: DeliveryStatus) -> ColumnElement[bool]:
    """Return a condition that both databases can answer from the partial index of open deliveries."""
    return and_(is_open(), deliveries.c.status == literal_status(status))


def is_open() -> ColumnElement[bool]:
    open_statuses = (DeliveryStatus.DUE, DeliveryStatus.SENDING, DeliveryStatus.RETRYING)
    return deliveries.c.status.in_([literal_status(status) for status in open_statuses])


def literal_status(status: DeliveryStatus) -> ColumnElement[str]:
    """Return the status as a literal in the SQL text.

    With a bound parameter, neither database would use a partial index of deliveries with this status.
    """
    return literal_column(f"'{status}'", String)


# literals, so that both databases use their partial indexes
IS_OPEN_TEST = text("deliveries.is_test AND deliveries.status IN ('due', 'sending')")
IS_RETRYING = deliveries.c.status == literal_status(DeliveryStatus.RETRYING)
