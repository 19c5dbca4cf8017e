"""Training, prediction and the model's file: the same answers before and after, and refusals with a reason."""

import json
import subprocess
import sys
from io import BytesIO

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.enrichment.learned import model_file
from pipelines.enrichment.learned.features import BLOCKS, build_fact_block, build_narrative_blocks, prepare_narratives
from pipelines.enrichment.learned.model import ALTERNATIVES, PREDICTED, Model, read_held_out_accuracy
from pipelines.enrichment.training.labelled import Unfamiliar, read_labelled_rows
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.taxonomy import TAXONOMY, VERSION, describe_other_version
from tests.pipelines.enrichment.learned.examples import KINDS, rows, table


def train(labelled: pl.DataFrame, unfamiliar: Unfamiliar | None = None) -> Model:
    from pipelines.enrichment.training import training  # noqa: PLC0415  # importing scikit-learn takes a second

    return training.train(labelled, unfamiliar=unfamiliar)


@pytest.fixture(scope="module")
def model() -> Model:
    return train(rows())


@pytest.fixture(scope="module")
def model_bytes(model: Model) -> bytes:
    return model_file.dumps(model)


def test_model_learns_labels_from_names(model: Model) -> None:
    later = rows(seed=2)
    predicted = model.predict(later)
    assert predicted.schema == PREDICTED
    assert (predicted["category"] == later["label"]).mean() > 0.9  # pyrefly: ignore[unsupported-operation]
    assert set(model.labels) == {*KINDS, "takings"}


def test_confidence_is_a_probability_and_alternatives_are_less_likely(model: Model) -> None:
    predicted = model.predict(rows(seed=3))
    assert predicted["confidence"].is_between(0, 1).all()
    assert predicted["alternatives"].list.len().max() <= ALTERNATIVES  # pyrefly: ignore[unsupported-operation]
    others = predicted.explode("alternatives").unnest("alternatives", separator="_").drop_nulls()
    assert not others.is_empty()
    assert (others["alternatives_confidence"] <= others["confidence"]).all()
    assert (others["alternatives_category"] != others["category"]).all()


def test_unseen_merchants_have_less_confidence(model: Model) -> None:
    odd = rows(1, seed=4).with_columns(
        clean_description=pl.lit("QQQ ZZZ"), text=pl.lit("QQQ ZZZ"), counterparty_name=pl.lit(None, pl.String)
    )
    assert model.predict(odd)["confidence"].item() < model.predict(rows(seed=4))["confidence"].median()


def test_rows_are_predicted_independently_and_in_order(model: Model) -> None:
    some = rows(300, seed=5)
    forwards, backwards = model.predict(some), model.predict(some.reverse())
    assert_frame_equal(forwards, backwards.reverse())
    assert_frame_equal(forwards[17], model.predict(some[17]))


def test_no_rows_give_no_predictions(model: Model) -> None:
    assert model.predict(rows(20).clear()).schema == PREDICTED


def test_scores_are_the_sum_of_learned_weights(model: Model) -> None:
    """Each row's scores are summed over its features one by one, without sharing narratives."""
    some, linear = rows(40, seed=6), model.linear
    scores, _ = linear.scores(some, model.contexts)
    by_hand = np.tile(linear.bias, (some.height, 1))
    begin = 0
    for number, block in enumerate(
        [*build_narrative_blocks(prepare_narratives(some)), build_fact_block(some, model.contexts)]
    ):
        vectors, _ = linear.vocabulary.vectorise(number, block, some.height)
        dense = vectors.toarray()
        by_hand += dense @ linear.weights.toarray()[begin : begin + dense.shape[1]]
        begin += dense.shape[1]
    assert len(BLOCKS) == number + 1
    np.testing.assert_allclose(scores, by_hand, atol=1e-4)


def test_file_gives_the_same_model(model: Model, model_bytes: bytes) -> None:
    loaded = model_file.loads(model_bytes)
    some = rows(seed=7)
    assert_frame_equal(loaded.predict(some), model.predict(some))
    assert loaded.facts == model.facts
    assert loaded.name == model_file.fingerprint(model)[:12]


def test_the_same_rows_give_the_same_bytes(model_bytes: bytes) -> None:
    assert model_file.dumps(train(rows())) == model_bytes


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no model" * 100])
def test_file_without_a_model_is_refused(content: bytes) -> None:
    with pytest.raises(Unprocessable, match="damaged, or not a model"):
        model_file.loads(content)


def test_every_damaged_byte_is_found(model_bytes: bytes) -> None:
    original = model_file.loads(model_bytes).name
    for at in range(0, len(model_bytes), max(len(model_bytes) // 60, 1)):
        damaged = model_bytes[:at] + bytes([model_bytes[at] ^ 0x10]) + model_bytes[at + 1 :]
        try:
            assert model_file.loads(damaged).name == original  # a byte that says nothing, such as a date in the archive
        except Unprocessable:
            continue


def test_changed_content_with_the_old_fingerprint_is_refused(model_bytes: bytes) -> None:
    def change_bias(arrays: dict[str, np.ndarray]) -> None:
        arrays["bias"] = arrays["bias"] + 1

    with pytest.raises(Unprocessable, match="not what was written"):
        model_file.loads(_rewritten(model_bytes, change_bias))


def test_model_with_other_features_is_refused(model_bytes: bytes) -> None:
    def older(arrays: dict[str, np.ndarray]) -> None:
        head = json.loads(arrays["head"].tobytes())
        head["settings"]["features"] = 0
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)

    with pytest.raises(Unprocessable, match="another version"):
        model_file.loads(_rewritten(model_bytes, older))


def test_foreign_arrays_are_refused() -> None:
    buffer = BytesIO()
    np.savez(buffer, something=np.arange(3))
    with pytest.raises(Unprocessable, match="not a model of Tidemark"):
        model_file.loads(buffer.getvalue())


def test_a_pickle_is_never_opened() -> None:
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=True, head=np.array([object()]))
    with pytest.raises(Unprocessable):
        model_file.loads(buffer.getvalue())


def _rewritten(model_bytes: bytes, change) -> bytes:  # pyrefly: ignore[implicit-any-parameter]
    with np.load(BytesIO(model_bytes)) as loaded:
        arrays = dict(loaded)
    change(arrays)
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_single_label_is_refused() -> None:
    with pytest.raises(Unprocessable, match="every row has the same label"):
        train(rows().with_columns(label=pl.lit("rent")))


def test_label_for_each_row_is_refused() -> None:
    with pytest.raises(Unprocessable, match="one of its own"):
        train(rows().with_columns(label=pl.int_range(pl.len()).cast(pl.String)))


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(Unprocessable, match="too few"):
        train(rows(10))


@pytest.mark.service  # trains one more model
def test_two_labels_are_enough() -> None:
    some = rows().with_columns(label=pl.when(pl.col("amount") > 0).then(pl.lit("in")).otherwise(pl.lit("out")))
    model = train(some)
    assert (model.predict(some)["category"] == some["label"]).all()


@pytest.mark.service  # trains one more model
def test_model_of_random_labels_is_found_worthless() -> None:
    shuffled = rows(1_200).with_columns(pl.col("label").shuffle(seed=1))
    assert read_held_out_accuracy(train(shuffled)).is_worthless


def test_model_of_real_labels_is_not_worthless(model: Model) -> None:
    assert not read_held_out_accuracy(model).is_worthless


def test_model_that_is_wrong_on_unfamiliar_rows_is_less_confident(model: Model) -> None:
    some = rows()
    apart = pl.Series([number % 3 == 0 for number in range(some.height)])
    others = some.filter(apart).with_columns(confidence=pl.lit(0.0), label=pl.col("label").shuffle(seed=1))
    doubting = train(some, unfamiliar=Unfamiliar(apart, [others]))
    assert doubting.predict(some)["confidence"].mean() < model.predict(some)["confidence"].mean()  # pyrefly: ignore[unsupported-operation]  # neither is empty


def test_equal_rows_are_trained_on_in_bounded_time() -> None:
    alike = pl.concat([table(1)] * 400).with_columns(label=pl.Series(["a", "b"] * 200))
    model = train(read_labelled_rows(alike).rows)
    assert read_held_out_accuracy(model).is_worthless


def test_prediction_does_not_import_scikit_learn() -> None:
    code = "import sys, pipelines.enrichment.learned.model_file; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=170).returncode == 0


def test_base_model_carries_the_present_version_of_the_taxonomy() -> None:
    base = model_file.load_base()
    assert describe_other_version(base.facts) is None
    assert base.facts["taxonomy"] == VERSION
    assert set(base.labels) == set(TAXONOMY.categories)


def test_base_model_has_the_taxonomys_labels_and_is_small() -> None:
    base = model_file.load_base()
    assert len(model_file.dumps(base)) <= 4_000_000
    assert (base.predict(rows(20))["confidence"] >= 0).all()
