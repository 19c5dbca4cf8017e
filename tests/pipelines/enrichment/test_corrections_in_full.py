"""A correction in the whole enrichment: its preview says which rows change, and revoking it leaves no trace."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.counterparties.corrections import REACHED_BY, count_corrected_rows, find_changed_rows
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import CORRECTIONS, Knowledge
from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS, values
from pipelines.reports import REPORTS
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from tests.conftest import examples
from tests.pipelines.enrichment.examples import ACCOUNT, OTHER_ACCOUNT, accepted_rows

TODAY = date(2026, 6, 30)
TEXTS: Sequence[tuple[str, int]] = (
    ("EFTPOS BUNNINGS 4410 ALEXANDRIA", -1),
    ("DIRECT DEBIT PROSPA ADVANCE", -1),
    ("TYRO SETTLEMENT 4411", 1),
    ("TRANSFER FROM SMITH PLUMBING", 1),
    ("TRANSFER TO SMITH PLUMBING", -1),
    ("TRANSFER TO SAVINGS", -1),
    ("TRANSFER FROM CHEQUE", 1),
    ("RENT 12 GEORGE ST", -1),
    ("DISHONOUR FEE", -1),
    ("PAYMENT RETURNED PROSPA", 1),
    ("ZORBIX 881", -1),
)
CATEGORIES = {1: ("customer_transfer", "own_transfer", "term_loan_funding"), -1: ("rent", "suppliers", "own_transfer")}


def draw_rows(random: Random) -> pl.DataFrame:
    """Return one to eighty rows of two accounts, some of them in a rhythm, some as pairs of transfers."""
    rows: list[dict[str, Any]] = []
    for _ in range(random.randint(1, 20)):
        text, sign = random.choice(TEXTS)
        first, step = random.randint(0, 150), random.choice((7, 14, 30))
        cents = random.choice((10_000, 25_000, random.randint(1, 90_000)))
        rows += [
            {
                "date": TODAY - timedelta(days=180 - min(first + nth * step, 180)),
                "description": text,
                "amount": sign * Decimal(cents) / 100,
                "account_id": random.choice((ACCOUNT, ACCOUNT, OTHER_ACCOUNT)),
            }
            for nth in range(random.choice((1, 1, 4)))
        ]
    return accepted_rows(*rows)


def draw_correction(random: Random, rows: pl.DataFrame, position: int) -> pl.DataFrame:
    """Return a correction of one of the rows, of its counterparty or of its words."""
    row = rows.row(random.randrange(rows.height), named=True)
    sign = 1 if row["amount"] > 0 else -1
    party = row["counterparty_group"] or row["counterparty_name"]
    what: dict[str, Any] = random.choice(
        (
            {"transaction_id": row["transaction_id"]},
            {"counterparty_group": party, "direction": row["direction"]} if party else {"words": "TRANSFER"},
            {"words": random.choice(row["description"].split()[:2])},
        )
    )
    direction = what.get("direction") or (None if "transaction_id" in what else row["direction"])
    return pl.DataFrame(
        [
            {
                **dict.fromkeys(CORRECTIONS),
                "customer_number": 1,
                "correction_id": UUID(int=position + 1).bytes,
                "position": position,
                **what,
                "direction": direction,
                "category": random.choice((None, *CATEGORIES[sign])) or CATEGORIES[sign][0],
                "counterparty_name": random.choice((None, None, "Harbour Tiles", "Prospa")),
            }
        ],
        schema=CORRECTIONS,
    )


def enriched(held: pl.DataFrame, accepted: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    return enrich(held, accepted, knowledge=Knowledge(corrections=corrections)).transactions.collect()


def figures(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    facts = Facts(rows, TODAY)
    return values(facts, METRICS), [report.compute(facts) for report in REPORTS.values()]


@examples(4)
@given(st.randoms(use_true_random=True))
def test_preview_says_which_rows_change_and_revoking_restores_every_figure(random: Random) -> None:
    none, nothing = pl.DataFrame(schema=CORRECTIONS), accepted_rows().match_to_schema(ACCEPTED)
    standing, held = none, enriched(pl.DataFrame(schema=TRANSACTIONS), draw_rows(random), none)
    for position in range(random.randint(1, 3)):
        new = draw_correction(random, held, position)
        shown = find_changed_rows(held.select(REACHED_BY), new, standing)
        both = pl.concat([standing, new])
        after = enriched(held, nothing, both)
        changed = held.join(after, on="transaction_id", suffix="_after").filter(
            pl.col("category").ne_missing(pl.col("category_after"))
            | pl.col("counterparty_name").ne_missing(pl.col("counterparty_name_after"))
        )
        if not renames_again(new, standing):
            assert sorted(shown.filter("changes")["transaction_id"]) == sorted(changed["transaction_id"])
            name = str(UUID(bytes=new["correction_id"].item()))
            decided = count_corrected_rows(after).filter(correction_id=name)["rows"].sum()
            assert decided == shown.height
        revoked = enriched(after, nothing, standing)
        assert_frame_equal(revoked, held)
        before, again = figures(held), figures(revoked)
        assert_frame_equal(again[0], before[0])
        for one, other in zip(again[1], before[1], strict=True):
            assert_frame_equal(one, other)
        standing, held = both, after


def renames_again(new: pl.DataFrame, standing: pl.DataFrame) -> bool:
    """Return whether the new name may replace one that other corrections apply to, which the preview ignores."""
    by_party = new["counterparty_group"].item() is not None
    return new["counterparty_name"].item() is not None and not by_party and standing["counterparty_name"].count() > 0
