"""What the base model learns from: rows of the portfolio, of listed names, and rows labelled by hand."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from pipelines.enrichment.training.labelled import assign_customer_tenth, prepare
from pipelines.synthetic import base_model
from pipelines.synthetic.card_lines import card_lines


def test_rows_of_all_parts_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_model, "card_lines", lambda *, held_out: card_lines(held_out=held_out).head(20))
    line = pl.DataFrame(
        {"date": [date(2025, 3, 1)], "description": ["WAGES J SMITH"], "amount": [Decimal(-9)], "label": ["wages"]},
        schema_overrides={"amount": pl.Decimal(18, 2)},
    )
    rows = base_model.training_rows(1, prepare(line))
    by_hand = rows.filter(pl.col("weight") == base_model.BY_HAND)
    assert by_hand["description"].to_list() == ["WAGES J SMITH"]
    assert rows.height > 20 + 1
    assert "counterparty_name" in rows.columns
    assert "card_last_four" not in rows.columns


def test_rows_labelled_by_hand_calibrate_the_model_with_the_lists_and_without_them() -> None:
    lines = pl.DataFrame(
        {"date": date(2025, 3, 1), "description": ["EFTPOS BUNNINGS", "TELSTRA"], "amount": Decimal(-9), "label": "x"},
        schema_overrides={"amount": pl.Decimal(18, 2)},
    )
    rows = prepare(lines).with_columns(weight=pl.Series([base_model.BY_HAND, 1.0]))
    unfamiliar = base_model.unfamiliar_rows(rows)
    assert unfamiliar is not None
    assert unfamiliar.apart.to_list() == [True, False]
    assert [each["category"].to_list() for each in unfamiliar.tests] == [["materials"], ["unknown_debit"]]
    assert base_model.unfamiliar_rows(rows.filter(pl.col("weight") == 1)) is None


def test_the_first_customer_is_in_the_first_tenth() -> None:
    names = ["b", None, "a", "", *(f"c{number:02}" for number in range(10))]
    assert assign_customer_tenth(pl.DataFrame({"customer": names})).tolist() == [1, -100, 0, -100, *range(2, 10), 0, 1]
