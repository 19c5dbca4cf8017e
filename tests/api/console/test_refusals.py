"""Refusals beside fields have the words of the form, not those of the API."""

import pytest

from api.console.refusals import reword


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("name must be text of 1 to 64 characters.", "Name must have 1 to 64 characters."),
        ("search must be text of 3 to 200 characters, given once.", "A search must have 3 to 200 characters."),
        ("minAmount must be an amount of at least 0 with at most 2 decimals, given once.",
         "“At least” must be an amount of at least 0 with at most 2 decimals."),
        ("from must be a date, YYYY-MM-DD, given once.", "From must be a date."),
        ("evidenceDate must be a date (YYYY-MM-DD).", "Evidence date must be a date."),
        ("asOf must be a list of 1 to 24 different dates.", "As of must be a date."),
        ("until must be an ISO 8601 date-time with its offset, later than now; needed to snooze.",
         "“Snooze” must be a date and time, later than now; needed to snooze."),
        ("scopes must be a non-empty list of distinct scopes.", "Choose at least one thing that the key allows."),
        ("bas_lodged_to must be a number, or a text that contains one, below 10^15.",
         "BAS lodged to must be a number of at most 15 digits."),
        ("webhookUrl must use a port that webhooks may be sent to.",
         "Address must use a port that webhooks may be sent to."),
        ("amount has more than two decimals.", "Amount has more than two decimals."),
        ("The input requestedAmount is missing.", "Requested amount is missing."),
        ("An ABN has exactly 11 digits.", "An ABN has exactly 11 digits."),
    ],
)  # fmt: skip
def test_messages_have_the_labels_of_forms(message: str, words: str) -> None:
    assert reword(message) == words
