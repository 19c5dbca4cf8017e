"""Small labelled files of merchants whose names contain their trade."""

from datetime import date, timedelta
from random import Random

import polars as pl

from pipelines.enrichment.training.labelled import read_labelled_rows

KINDS = {
    "food": ("CAFE", "BAKERY", "PIZZERIA"),
    "motor": ("TYRES", "SMASH REPAIRS", "AUTO PARTS"),
    "office": ("STATIONERY", "PRINTING", "COPIERS"),
}
WRONG = 0.05  # of the labels
NAMES = ("ALBA", "BORO", "CINTO", "DRUMO", "ESKER", "FALLOW", "GRINDA", "HELVO", "ISKRA", "JUMBUK")


def table(rows: int = 600, seed: int = 1) -> pl.DataFrame:
    """Return a labelled file's columns as text: the label follows from the trade, except a few random ones."""
    rng = Random(seed)
    return pl.DataFrame([_row(rng, number) for number in range(rows)])


def _row(rng: Random, number: int) -> dict[str, str]:
    day = date(2025, 1, 1) + timedelta(days=number // 4)
    label = rng.choice([*KINDS, "takings"])
    trade = "SETTLEMENT" if label == "takings" else rng.choice(KINDS[label])
    amount = rng.randint(500, 90_000) / 100
    return {
        "date": day.isoformat(),
        "description": f"{rng.choice(NAMES)} {trade} {rng.randint(1000, 9999)}",
        "amount": f"{amount if label == 'takings' else -amount:.2f}",
        "label": label if rng.random() > WRONG else rng.choice([*KINDS, "takings"]),
        "context_bank": rng.choice(["ANZ", "NAB"]),
    }


def rows(count: int = 600, seed: int = 1) -> pl.DataFrame:
    """Return the same, ready for training."""
    return read_labelled_rows(table(count, seed)).rows
