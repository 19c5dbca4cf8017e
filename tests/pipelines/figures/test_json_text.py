"""Rows as JSON text: the cached expression belongs to the columns' names, types and order, not to names alone."""

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.figures.json_text import json_objects

MONEY = pl.Decimal(18, 2)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (Decimal("1.50"), MONEY, "1.50"),
        ("1.50", pl.String(), '"1.50"'),
        (date(2026, 1, 31), pl.Date(), '"2026-01-31"'),
        ("2026-01-31", pl.Enum(["2026-01-31"]), '"2026-01-31"'),
        ({"amount": Decimal("2.10")}, pl.Struct({"amount": MONEY}), '{"amount":2.10}'),
        ({"amount": "2.10"}, pl.Struct({"amount": pl.String()}), '{"amount":"2.10"}'),
        ([{"amount": None}], pl.List(pl.Struct({"amount": MONEY})), '[{"amount":null}]'),
        (None, MONEY, "null"),
    ],
)
def test_columns_of_the_same_name_are_written_by_their_type(value: Any, kind: pl.DataType, text: str) -> None:
    rows = pl.DataFrame({"a": [value], "b": [7]}, schema={"a": kind, "b": pl.Int64()})
    assert json_objects(rows).to_list() == [f'{{"a":{text},"b":7}}']


def test_members_have_the_order_of_the_columns() -> None:
    rows = pl.DataFrame({"a": [1], "b": [2]})
    assert json_objects(rows).item() == '{"a":1,"b":2}'
    assert json_objects(rows.select("b", "a")).item() == '{"b":2,"a":1}'
