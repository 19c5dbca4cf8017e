"""Documents that people edit as text: policies and rulesets, in YAML or JSON, which is YAML too."""

import json
from typing import Any

from pipelines.decisions.check.files import parse_file
from pipelines.decisions.check.shape import plain
from pipelines.vocabulary.errors import InvalidRequest

AGAIN = "To store this text as the next version all the same, save again."
NO_DOCUMENT = "The document must have members, such as `slug` and `name`."


def read(text: str) -> dict[str, Any]:
    """Return the document with values that JSON has: a date, for example, is a text.

    Raises:
        InvalidRequest: the text isn't YAML, or isn't an object.
    """
    document, unreadable = parse_file(text, yaml=True)
    if unreadable is not None:
        raise InvalidRequest("Console.InvalidDocument", unreadable.message)
    if not isinstance(document, dict):
        raise InvalidRequest("Console.InvalidDocument", NO_DOCUMENT)
    read_back: dict[str, Any] = json.loads(json.dumps(plain(document), default=str))
    return read_back
