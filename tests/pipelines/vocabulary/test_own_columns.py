"""A client's own columns: which fields they are, and which of them a model may need."""

import json

import polars as pl
import pytest

from pipelines.vocabulary.own_columns import find_unfillable, identifies_customer, list_stated_columns, read_own_columns


def read_fields(**fields: object) -> dict[str, str] | None:
    [text] = read_own_columns(pl.Series([json.dumps(fields)], dtype=pl.String))
    return None if text is None else json.loads(text)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"context_team": " Roads "}, {"context_team": "Roads"}),
        ({"Context_Team": "Roads"}, {"context_team": "Roads"}),
        ({"context_team": 12, "context_paid": True}, {"context_team": "12", "context_paid": "True"}),
        ({"context_team": int("9" * 4_300)}, {"context_team": "9" * 4_300}),
        ({"context_team": None, "context_other": ["Roads"], "context_empty": ""}, None),
        ({"team": "Roads", "note": 'a "context_team": here'}, None),
        ({"context_customer_id": "c-1", "context_team": "Roads"}, {"context_team": "Roads"}),
    ],
)
def test_own_columns_are_the_fields_with_the_prefix_as_text(
    fields: dict[str, object], expected: dict[str, str] | None
) -> None:
    assert read_fields(**fields) == expected


def test_rows_without_other_fields_have_none() -> None:
    assert read_own_columns(pl.Series([None, "{}"], dtype=pl.String)).to_list() == [None, None]


def test_what_identifies_a_customer_is_recognised() -> None:
    whose = (
        "customer",
        "context_customer",
        "customer_id",
        "context_client id",
        "customerid",
        "context_abn",
        "borrower",
    )
    others = ("context_customer_segment", "context_team", "account", "context_account", "description", "context_nabn")
    assert [name for name in (*whose, *others) if identifies_customer(name)] == list(whose)


def test_column_is_unfillable_unless_the_service_knows_it_or_a_row_states_it() -> None:
    rows = pl.LazyFrame({"own_columns": [None, '{"context_team": "a", "context_site": "\\"context_x\\": 1"}']})
    assert list_stated_columns(rows) >= {"context_team", "context_site"}
    needed = ["context_account", "context_card", "context_customer", "context_team", "context_x"]
    assert find_unfillable(needed, list_stated_columns(rows)) == ["context_customer", "context_x"]
