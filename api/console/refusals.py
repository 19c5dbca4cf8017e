"""What the API refuses, in the words of the console's forms: labels instead of members, and no formats of JSON."""

import re
from collections.abc import Mapping
from typing import Final

from pipelines.pages.wording import spell_out

SEVERAL: Final = "Several things are wrong"  # what the API says of faults of different kinds, which it lists
LABELS: Final[Mapping[str, str]] = {  # of fields whose label is not the member in words
    "abn": "ABN",
    "accountId": "Account",
    "against": "“Compare with”",
    "counterpartyName": "Counterparty",
    "customerIds": "Customers",
    "email": "Email address",
    "expiresAt": "“Expires”",
    "eventType": "Event",
    "jobId": "Submission",
    "knownAt": "“As known at”",
    "maxAmount": "“At most”",
    "maxRetries": "Retries",
    "minAmount": "“At least”",
    "pauseAfterFailures": "“Pause after”",
    "percent": "Percent of customers",
    "search": "A search",
    "text": "The text",
    "until": "“Snooze”",
    "webhookUrl": "Address",
}
SENTENCES: Final[Mapping[str, str]] = {
    "A report refresh is already running for this customer.": (
        "Nothing was changed, because the customer's reports are being computed. Try again in a moment."
    ),
    "reason is needed to close.": "Write why the alert is closed.",
    "scopes must be a non-empty list of distinct scopes.": "Choose at least one thing that the key allows.",
}
_RULE: Final = re.compile(r"(?P<member>[a-z][\w.-]*) (?P<rule>(?:must|is|has) .+)", re.DOTALL)
_MISSING: Final = re.compile(r"The input (?P<member>\S+) is missing\.")
_PLAIN: Final = (
    (r", given once\b", ""),
    (r"\bmust be (a )?text of\b", "must have"),
    (r"\ba list of 1 to [\d,]+ different dates\b", "a date"),
    (r"\ba date[,]? \(?YYYY-MM-DD\)?", "a date"),
    (r"\bnull or ", ""),
    (r"\ban ISO 8601 date-time with its offset\b", "a date and time"),
    (r", or a text that contains one, below 10\^15\b", " of at most 15 digits"),
    (r"\bUUID(?=s?\b)", "id"),
)


def reword(message: str) -> str:
    """Return the message as a form shows it. One that names no member stays as it is."""
    if message in SENTENCES:
        return SENTENCES[message]
    if (missing := _MISSING.fullmatch(message)) is not None:
        return f"{_label(missing['member'])} is missing."
    if (found := _RULE.fullmatch(message)) is None:
        return message
    rule = found["rule"]
    for pattern, plain in _PLAIN:
        rule = re.sub(pattern, plain, rule)
    return f"{_label(found['member'])} {rule}"


def _label(member: str) -> str:
    return LABELS.get(member) or spell_out(member)
