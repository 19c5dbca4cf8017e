"""The OpenAPI document is described in Markdown that a reader of JSON understands."""

from api.service.described import type_of


def test_values_are_written_as_in_json() -> None:
    assert type_of({"enum": ["credit", "", None, True, 3]}) == '`credit`, `""`, `null`, `true`, `3`'
    assert type_of({"anyOf": [{"type": "string"}, {"const": ""}]}) == 'string or `""`'
