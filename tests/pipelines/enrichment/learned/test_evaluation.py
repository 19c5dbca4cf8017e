"""The counts of an evaluation agree with plain loops over the same rows."""

from collections import Counter
from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.training.evaluation import (
    calibration_error,
    chance_error,
    default_split,
    evaluate,
    macro_f1,
    reliability,
)
from pipelines.vocabulary.errors import Unprocessable
from tests.pipelines.enrichment.learned.examples import rows

pytestmark = pytest.mark.service  # trains models

LABELS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=40)
CONFIDENCES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def f1_by_hand(pairs: list[tuple[str, str]]) -> float:
    scores = []
    for label in {each for pair in pairs for each in pair}:
        counts = Counter((truth == label, predicted == label) for truth, predicted in pairs)
        hits, missed, wrong = counts[True, True], counts[True, False], counts[False, True]
        scores.append(2 * hits / (2 * hits + missed + wrong))
    return sum(scores) / len(scores)


@given(LABELS)
def test_macro_f1_agrees_with_its_definition(pairs: list[tuple[str, str]]) -> None:
    truth, predicted = (pl.Series(list(each)) for each in zip(*pairs, strict=True))
    assert macro_f1(truth, predicted) == pytest.approx(f1_by_hand(pairs))


@given(CONFIDENCES)
def test_calibration_error_agrees_with_its_definition(rows: list[tuple[float, bool]]) -> None:
    bins = reliability(pl.Series([confidence for confidence, _ in rows]), pl.Series([right for _, right in rows]))
    ordered, by_hand = sorted(rows), 0.0
    assert sum(each.rows for each in bins) == len(rows)
    for each in bins:
        mine, ordered = ordered[: each.rows], ordered[each.rows :]
        assert each.from_ == mine[0][0]
        by_hand += abs(sum(confidence - right for confidence, right in mine)) / len(rows)
    assert calibration_error(bins) == pytest.approx(by_hand)


def test_chance_alone_gives_a_calibration_error_that_shrinks_with_the_rows() -> None:
    """Of 4 rows with a confidence of 1/2, k are right with the odds 1:4:6:4:1, so the error is 3/16 on average."""
    assert chance_error(pl.Series([0.5] * 4)) == pytest.approx(3 / 16, abs=0.02)
    assert chance_error(pl.Series([0.5] * 10_000)) < 0.01
    assert chance_error(pl.Series([1.0, 1.0, 0.0])) == 0
    assert chance_error(pl.Series(dtype=pl.Float64)) == 0


@given(CONFIDENCES)
def test_bins_are_as_large_as_equal_confidences_allow(rows: list[tuple[float, bool]]) -> None:
    bins = reliability(pl.Series([confidence for confidence, _ in rows]), pl.Series([right for _, right in rows]))
    assert len({each.from_ for each in bins}) == len(bins) <= 10
    alike = max(Counter(confidence for confidence, _ in rows).values())
    assert all(each.rows <= len(rows) / 10 + alike for each in bins)


def test_evaluation_splits_by_time_and_counts_every_row() -> None:
    some = rows(1_000)
    measured = evaluate(some)
    assert measured.split == default_split(some)
    assert measured.trained_rows == some.filter(pl.col("date") < measured.split).height
    assert measured.trained_rows + measured.tested_rows == some.height
    assert 0.75 < measured.trained_rows / some.height < 0.85
    assert sum(each.rows for each in measured.bins) == measured.tested_rows
    assert measured.model.accuracy > 0.9
    assert not measured.is_worthless


def test_a_split_that_leaves_nothing_on_one_side_is_refused() -> None:
    for day in (date(2020, 1, 1), date(2030, 1, 1)):
        with pytest.raises(Unprocessable, match="choose another day"):
            evaluate(rows(100), day)


def test_model_of_random_labels_is_no_better_than_the_commonest_label() -> None:
    assert evaluate(rows(1_000).with_columns(pl.col("label").shuffle(seed=2))).is_worthless


def test_contradictory_labels_end_in_bounded_time() -> None:
    """Each row has every label: neither the model nor the baseline can separate them, not even by chance."""
    some = pl.concat(rows(1_000).with_columns(label=pl.lit(label)) for label in "abcd")
    steps = list[str]()
    assert evaluate(some, report=steps.append).is_worthless
    assert steps[-1] == "training the baseline"
