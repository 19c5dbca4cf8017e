"""Verify webhooks, as docs/how-to/webhooks.md describes."""

import base64
import hmac
import json
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from tidemark_client.errors import WebhookRefusedError
from tidemark_client.models import Event

TOLERANCE_S = 300


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str, *, tolerance_s: float = TOLERANCE_S) -> Event:
    """Return the event of a delivery. An event may be delivered again: store each `eventId` with the work for it.

    Args:
        body: the raw bytes, before any parsing.
        headers: their names in any case.
        secret: the subscription's signing secret, as it was shown.
        tolerance_s: how far from now the attempt may be, so that nobody can replay an old delivery.

    Raises:
        WebhookRefusedError: if the signature is wrong, or the attempt is too old or from the future.
    """
    received = {name.lower(): value for name, value in headers.items()}
    delivery, attempted_at = received.get("webhook-id", ""), received.get("webhook-timestamp", "")
    signed = f"{delivery}.{attempted_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(base64.b64decode(secret), signed, "sha256"))
    signatures = received.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(expected, each.encode()) for each in signatures):
        raise WebhookRefusedError("the signature is wrong")
    # The signature covers the timestamp, so `int` accepts it.
    if abs(time.time() - int(attempted_at)) > tolerance_s:
        raise WebhookRefusedError("the attempt is too old, or from the future")
    return cast("Event", json.loads(body, parse_float=Decimal))
