"""The hashes of pieces, words and phrases agree with plain loops over the letters."""

from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.learned import features
from pipelines.enrichment.learned.features import (
    PIECES,
    Block,
    build_fact_block,
    hash_values,
    merchant_words,
    plain_text,
)
from pipelines.vocabulary.schemas import MONEY, Channel, Direction

TEXTS = st.lists(st.text(alphabet="AB 1é-", max_size=12), min_size=1, max_size=6)


def build_narrative_blocks(*texts: str | None) -> list[Block]:
    frame = pl.DataFrame(
        {"clean_description": texts, "text": texts}, dict.fromkeys(("clean_description", "text"), pl.String)
    )
    return features.build_narrative_blocks(
        features.prepare_narratives(frame.with_columns(direction=pl.lit("debit", Direction)))
    )


def facts(**columns: object) -> pl.DataFrame:
    row = {
        "clean_description": "COFFEE",
        "text": "COFFEE 4410",
        "amount": Decimal("-4.50"),
        "date": date(2026, 3, 2),
        "direction": "debit",
        "channel": "card",
        **columns,
    }
    types: dict[str, pl.DataType] = {
        "amount": MONEY,
        "direction": Direction,
        "channel": Channel,
        "clean_description": pl.String(),
    }
    return pl.DataFrame([row], schema_overrides=types)


def plain_words(text: str) -> str:
    return str(pl.select(plain_text(pl.lit(text))).item())


def pieces_by_hand(text: str) -> list[bytes]:
    """List every run of two to five bytes of ` word ` in which no space has a letter on both sides."""
    letters = f" {plain_words(text)} ".encode()
    runs = (letters[at : at + length] for length in PIECES for at in range(len(letters) - length + 1))
    return [run for run in runs if b" " not in run[1:-1] and run != b"  "]


@given(TEXTS)
def test_pieces_agree_with_plain_python(texts: list[str]) -> None:
    pieces, _, _ = build_narrative_blocks(*texts)
    for number, text in enumerate(texts):
        mine = pieces.buckets[pieces.rows == number]
        by_hand = pieces_by_hand(text)
        assert len(mine) == len(by_hand)
        assert len(set(mine)) == len(set(by_hand))  # equal pieces have equal hashes, different ones different hashes


@given(TEXTS)
def test_features_of_a_narrative_do_not_depend_on_the_others(texts: list[str]) -> None:
    together = build_narrative_blocks(*texts)
    for number, text in enumerate(texts):
        alone = build_narrative_blocks(text)
        for block, own in zip(together, alone, strict=True):
            assert sorted(block.buckets[block.rows == number]) == sorted(own.buckets)


def test_numbers_and_signs_make_no_difference() -> None:
    pieces, words, _ = build_narrative_blocks("BP EXPRESS 9199", "bp-express #12")
    for block in (pieces, words):
        assert sorted(block.buckets[block.rows == 0]) == sorted(block.buckets[block.rows == 1])


def test_long_numbers_are_features() -> None:
    one, same, other = (build_fact_block(facts(text=f"BPAY {number}"), []) for number in (75556, 75556, 75557))
    assert one.buckets.tolist() == same.buckets.tolist() != other.buckets.tolist()


def test_rows_without_a_number_may_follow_one_with_a_number() -> None:
    numbered, bare = facts(text="BPAY 75556"), facts(text="COFFEE")
    assert len(build_fact_block(pl.concat([numbered, *[bare] * 1_000]), []).buckets) % 1_001 == 1


def test_hashes_never_change() -> None:
    """A model's file outlives the process that wrote it: if these change, `features.VERSION` must change, too."""
    assert features.VERSION == 2
    assert hash_values(pl.Series(["BUNNINGS", "", None])).tolist() == [16562792481082513916, 0, 13422068669152152671]


def test_hostile_texts_are_bounded() -> None:
    blocks = build_narrative_blocks("A" * 10_000, "\u202e🙂" * 5_000, "", None, "(((.*)+)+" * 900, "A B " * 2_500)
    assert max(np.bincount(block.rows).max() for block in blocks) < 5 * 4 * features.MAX_LETTERS


def test_amounts_at_both_ends_of_the_range() -> None:
    for amount in ("0", "9999999999999.99", "-9999999999999.99", "0.01"):
        assert len(build_fact_block(facts(amount=Decimal(amount)), []).buckets)


def test_missing_context_counts_as_unknown() -> None:
    absent = build_fact_block(facts(), ["context_bank"])
    unknown = build_fact_block(facts(context_bank=None), ["context_bank"])
    assert absent.buckets.tolist() == unknown.buckets.tolist()
    assert absent.buckets.tolist() != build_fact_block(facts(context_bank="ANZ"), ["context_bank"]).buckets.tolist()


def test_merchant_is_identified_by_the_beginning_of_its_name() -> None:
    clean = pl.Series(["BUNNINGS 306000 SUBIACO", "Bunnings Subiaco WA", "12345", "", None])
    assert merchant_words(clean).to_list() == ["BUNNINGS SUBIACO", "BUNNINGS SUBIACO", "", "", ""]
