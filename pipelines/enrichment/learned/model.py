"""The model: a linear score for each label, and the probability that the best label is right.

It works without scikit-learn, whose import takes half a second and 60 MB. Narratives repeat, so each distinct one is
scored once, however many rows have it; scores for the amount, the day and other facts are added per row. Rows are
processed in slices, so that memory does not grow with their number, and by two threads, because numpy and scipy release
the interpreter's lock.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.learned.calibration import Calibration, Numbers, Ranked, gather_evidence, rank_labels
from pipelines.enrichment.learned.features import (
    NARRATIVE,
    build_fact_block,
    build_narrative_blocks,
    prepare_narratives,
)
from pipelines.enrichment.learned.vectors import Vocabulary, Weights
from pipelines.vocabulary.schemas import ALTERNATIVE

if TYPE_CHECKING:
    from scipy import sparse

ALTERNATIVES = 3
MIN_ALTERNATIVE = 0.01  # a less likely alternative is useless (our judgement)
DIGITS = 4  # of a confidence: further digits depend on which rows happen to be in one slice
SLICE = 8_192  # rows
THREADS = 2
UNNAMED = "unnamed"  # a model that was not read from a file

PREDICTED = pl.Schema({"category": pl.String(), "confidence": pl.Float64(), "alternatives": pl.List(ALTERNATIVE)})


@dataclass(frozen=True)
class HeldOutAccuracy:
    """The accuracy of a model on rows held out from training.

    `seen` and `unseen` are the accuracies for merchants that training knew and for others (None without rows);
    `majority` is the accuracy of always predicting the commonest label.
    """

    rows: int
    accuracy: float
    seen: float | None
    unseen: float | None
    majority: float

    @property
    def is_worthless(self) -> bool:
        return is_no_better(self.accuracy, self.majority, self.rows)


def commonest_share(labels: pl.Series) -> float:
    """Return the share of rows that have the commonest label."""
    return float(labels.value_counts()["count"].max() or 0) / max(len(labels), 1)  # pyrefly: ignore[bad-argument-type]


def is_no_better(accuracy: float, majority: float, rows: int) -> bool:
    """Return whether a model is not significantly better than the commonest label (by two standard errors)."""
    return bool(accuracy <= majority + 2 * (majority * (1 - majority) / max(rows, 1)) ** 0.5)


@dataclass(frozen=True, eq=False)
class Linear:
    """Scores by `weights` (features × labels, one block after the other, most of them 0) and `bias` (labels)."""

    vocabulary: Vocabulary
    weights: "sparse.csr_array"
    bias: Weights

    def scores(self, rows: pl.DataFrame, contexts: Sequence[str]) -> tuple[Weights, Weights]:
        """Return scores (rows × labels), and the shares of each row's pieces, words and phrases that training knew."""
        read = prepare_narratives(rows)
        distinct = read.unique(maintain_order=True).with_row_index("narrative")
        numbered = read.join(distinct, on=NARRATIVE, how="left", nulls_equal=True, maintain_order="left")
        narrative = numbered["narrative"].to_numpy()
        scores, known = self._score_narratives(distinct)
        fact_block = len(self.vocabulary.buckets) - 1  # the last one
        facts, _ = self.vocabulary.vectorise(fact_block, build_fact_block(rows, contexts), rows.height)
        return scores[narrative] + self._weigh(facts, fact_block), known[narrative]

    def _score_narratives(self, distinct: pl.DataFrame) -> tuple[Weights, Weights]:
        scores = np.tile(self.bias, (distinct.height, 1))
        shares = []
        for number, block in enumerate(build_narrative_blocks(distinct)):
            vectors, known = self.vocabulary.vectorise(number, block, distinct.height)
            scores += self._weigh(vectors, number)
            shares.append(known)
        return scores, np.column_stack(shares)

    def _weigh(self, vectors: "sparse.csr_array", block: int) -> Weights:
        """Return a block's part of the scores (rows × labels).

        Only the weights of features that occur are made dense: all of them take 60 MB, and sparse ones twice the time.
        """
        occurs = np.zeros(vectors.shape[1], np.bool_)
        occurs[vectors.indices] = True
        weights = self._block_weights[block][np.flatnonzero(occurs)].toarray()
        scores: Weights = _renumber_columns(vectors, np.cumsum(occurs) - 1, len(weights)) @ weights
        return scores

    @cached_property
    def _block_weights(self) -> Sequence["sparse.csr_array"]:
        ends = np.cumsum(self.vocabulary.widths)
        return [self.weights[end - width : end] for end, width in zip(ends, self.vocabulary.widths, strict=True)]


def _renumber_columns(matrix: "sparse.csr_array", numbers: NDArray[np.int64], width: int) -> "sparse.csr_array":
    """Return the matrix with the columns that occur in it under other numbers, the rest left out."""
    columns = numbers[matrix.indices].astype(matrix.indices.dtype)
    return type(matrix)((matrix.data, columns, matrix.indptr), shape=(matrix.shape[0], width))


@dataclass(frozen=True, eq=False)
class Model:
    """A model that predicts labels. `facts` says what it was trained on, and its accuracy on rows held out."""

    labels: Sequence[str]
    contexts: Sequence[str]  # names of the context columns that it was trained with
    linear: Linear
    calibration: Calibration
    facts: Mapping[str, Any] = field(default_factory=dict)
    name: str = UNNAMED  # else the beginning of its file's fingerprint

    def predict(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Predict each row's category, in the rows' order (schema PREDICTED).

        Args:
            rows: `clean_description`, `text` (from `matching_text`), `amount`, `direction`, `date`, `channel`; and if
                known, the answers of rules and lists (`features.RULE_ANSWERS`) and the context columns.
        """
        numbered = rows.with_row_index("row")
        together = numbered.sort(pl.col("clean_description").hash(), "row")  # so that equal narratives are in one slice
        with ThreadPoolExecutor(THREADS) as pool:
            slices = list(pool.map(self._predict_slice, together.iter_slices(SLICE)))
        predicted = pl.concat([pl.DataFrame(schema=PREDICTED), *slices])
        return predicted.with_columns(row=together["row"]).sort("row").drop("row")

    def _predict_slice(self, rows: pl.DataFrame) -> pl.DataFrame:
        scores, known = self.linear.scores(rows, self.contexts)
        found = rank_labels(scores, 1 + ALTERNATIVES, self.calibration.sharpness)
        best = self._label_names(found.labels[:, 0])
        confidence = self.calibration.confidence(measure_evidence(found, known, best, rows)).round(DIGITS)
        return pl.DataFrame(
            {"category": best, "confidence": confidence, "alternatives": self._list_alternatives(found, confidence)},
            schema=PREDICTED,
        )

    def _label_names(self, labels: Any) -> pl.Series:
        return pl.Series(self.labels, dtype=pl.String).gather(labels)

    def _list_alternatives(self, found: Ranked, confidence: Numbers) -> pl.Series:
        """Return the next labels, with the remaining probability divided among them by their shares."""
        left = (1 - confidence) / np.maximum(1 - found.shares[:, 0], 1e-9)
        chances = np.minimum(found.shares[:, 1:] * left[:, None], confidence[:, None]).round(DIGITS)
        others = pl.DataFrame(
            {"category": self._label_names(found.labels[:, 1:].ravel()), "confidence": chances.ravel()}
        ).to_struct()
        rows, most = chances.shape
        likely = pl.element().struct.field("confidence") >= MIN_ALTERNATIVE
        listed = others.reshape((rows, most)).arr.to_list() if rows else others.implode().clear()
        return listed.list.eval(pl.element().filter(likely))


def measure_evidence(found: Ranked, known: Weights, best: pl.Series, rows: pl.DataFrame) -> Numbers:
    """Return the inputs of the confidence in each row's best label."""
    by_rules = _category_by_rules(rows)
    agreed = (by_rules == best).fill_null(value=False)
    return gather_evidence(found, known, by_rules.is_not_null().to_numpy(), agreed.to_numpy())


def _category_by_rules(rows: pl.DataFrame) -> pl.Series:
    """Return the category that a rule or a list gave each row; null where none did."""
    if not {"category", "category_source"} <= set(rows.columns):
        return pl.Series([None], dtype=pl.String).new_from_index(0, rows.height)
    decided = pl.col("category_source").cast(pl.String).is_in(["pattern", "counterparty"])
    return rows.select(pl.when(decided).then(pl.col("category").cast(pl.String)))["category"]


def read_held_out_accuracy(model: Model) -> HeldOutAccuracy:
    """Return a model's accuracy on the rows held out in its training."""
    return HeldOutAccuracy(**model.facts["held"])
