"""Measure a model on rows that come after those it learned from, beside a plain baseline in the same run.

The model is trained on the rows before a date and tested on the rows from that date on. Results for merchants that
occur in training are reported separately from those for others, because a look-up table would do for known merchants.
The baseline is what one would try first: a linear support-vector machine on the character n-grams of the description
(2–5, within words, weighted by TF-IDF) and the amount. It is fitted by stochastic gradient descent, because LinearSVC
takes over twenty minutes to converge for 50,000 rows with hundreds of labels that contradict each other.

If the file names customers, the rows of a fifth of them are left out of training. Results for these customers are
reported separately, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier

from pipelines.enrichment.learned.model import commonest_share, is_no_better
from pipelines.enrichment.training.labelled import CUSTOMER, customers, merchants
from pipelines.enrichment.training.training import Report, refuse_unlearnable, train
from pipelines.vocabulary.errors import Unprocessable

TRAINED_SHARE = 0.8
BINS = 10
DRAWS = 500
MIN_CUSTOMERS = 5  # one in so many is left out of training; with fewer, none is
BASELINE_PASSES, BASELINE_ROWS = 3, 120_000  # at least 3 passes over the rows and 120,000 rows seen (our judgement)


@dataclass(frozen=True)
class Score:
    """Shares of rows decided correctly, and the unweighted mean of the labels' F1 scores (macro-F1)."""

    accuracy: float
    seen: float | None  # of merchants that training knew
    unseen: float | None  # of others; null where there are none
    new_customers: float | None  # of customers left out of training; null if there are none
    macro_f1: float


@dataclass(frozen=True)
class Confusion:
    label: str  # the true one
    predicted: str
    rows: int


@dataclass(frozen=True)
class Bin:
    """Rows of similar confidence: the least and the mean, and their accuracy."""

    from_: float
    rows: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    split: date
    trained_rows: int
    tested_rows: int
    unseen_rows: int
    new_customers: int  # left out of training
    labels: int
    model: Score
    baseline: Score
    majority: float  # share of the commonest label
    confusions: Sequence[Confusion]
    bins: Sequence[Bin]
    calibration_error: float  # expected: mean distance between confidence and accuracy, bins weighted by rows
    chance_error: float  # what a perfectly calibrated model would show on as many rows

    @property
    def is_worthless(self) -> bool:
        return is_no_better(self.model.accuracy, self.majority, self.tested_rows)


def evaluate(
    labelled: pl.DataFrame,
    split: date | None = None,
    most_confusions: int = 15,
    report: Report = lambda _: None,
) -> Evaluation:
    """Train on the rows before a day, except those of new customers, and test on all rows from that day on.

    Args:
        labelled: as for `train`.
        split: the first day that is not trained on; default: the one that leaves about four fifths before it.
        report: called with the name of each step that begins.

    Raises:
        Unprocessable: nothing lies before the day or after it, or nothing can be learned.
    """
    refuse_unlearnable(labelled)
    first = split or default_split(labelled)
    new = _select_new_customers(labelled)
    is_new = customers(labelled).is_in(new.implode())
    early = labelled["date"] < first
    before, after = labelled.filter(early & ~is_new), labelled.filter(~early)
    if before.is_empty() or after.is_empty():
        side = "before" if before.is_empty() else "from"
        raise Unprocessable("Labels.NoSplit", f"There are no rows {side} {first}: choose another day to split at.")
    refuse_unlearnable(before)
    predictions = train(before, report=report).predict(after)
    report("training the baseline")
    known = merchants(before).unique().implode()
    decided = after.select("label", seen=merchants(after).is_in(known), new=is_new.filter(~early)).with_columns(
        predicted=predictions["category"], confidence=predictions["confidence"]
    )
    bins = reliability(decided["confidence"], decided["predicted"] == decided["label"])
    return Evaluation(
        split=first,
        trained_rows=before.height,
        tested_rows=after.height,
        unseen_rows=decided.filter(~pl.col("seen")).height,
        new_customers=len(new),
        labels=before["label"].n_unique(),
        model=_score(decided),
        baseline=_score(decided.with_columns(predicted=_predict_baseline(before, after))),
        majority=commonest_share(after["label"]),
        confusions=_count_confusions(decided, most_confusions),
        bins=bins,
        calibration_error=calibration_error(bins),
        chance_error=chance_error(decided["confidence"]),
    )


def _select_new_customers(labelled: pl.DataFrame) -> pl.Series:
    """Return the fifth of the customers to leave out of training, always the same; none if there are only a few."""
    if CUSTOMER not in labelled.columns:
        return pl.Series(dtype=pl.String)
    every = labelled[CUSTOMER].drop_nulls().unique().sort()
    return every.sample(len(every) // MIN_CUSTOMERS, seed=0)


def default_split(labelled: pl.DataFrame) -> date:
    """Return the first day of the last fifth of the rows."""
    day: date = labelled["date"].sort()[int(labelled.height * TRAINED_SHARE)]
    return day


def reliability(confidence: pl.Series, right: pl.Series) -> list[Bin]:
    """Return the reliability table, from the least confident rows on: ten bins of about the same number of rows.

    So no bin is too small to be trusted (Nguyen and O'Connor, 2015). Rows with equal confidence are in one bin; if many
    are equal, there are fewer bins.
    """
    counted = (
        pl.DataFrame({"confidence": confidence, "right": right})
        .group_by(bin=_assign_bin(pl.col("confidence")))
        .agg(
            pl.col("confidence").min().alias("from"),
            rows=pl.len(),
            confidence=pl.col("confidence").mean(),
            accuracy=pl.col("right").mean(),
        )
    )
    return [Bin(*row) for row in counted.sort("bin").drop("bin").rows()]


def _assign_bin(confidence: pl.Expr) -> pl.Expr:
    return ((confidence.rank("average") - 0.5) / pl.len() * BINS).floor()


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error (Naeini, Cooper and Hauskrecht, 2015)."""
    rows = sum(each.rows for each in bins)
    off = (each.rows * abs(each.confidence - each.accuracy) for each in bins)
    return float(sum(off) / max(rows, 1))


def chance_error(confidence: pl.Series) -> float:
    """Return the calibration error that a perfectly calibrated source would show on rows with these confidences.

    The fewer rows, the larger it is: chance alone moves each bin's accuracy away from its confidence. It is the mean of
    DRAWS simulations.
    """
    values = confidence.to_numpy()
    bins = confidence.to_frame("value").select(_assign_bin(pl.col("value")).cast(pl.Int64)).to_series().to_numpy()
    generator = np.random.default_rng(0)
    off = [np.bincount(bins, (generator.random(len(values)) < values) - values) for _ in range(DRAWS)]
    return float(np.abs(off).sum() / DRAWS / max(len(values), 1))


def _score(decided: pl.DataFrame) -> Score:
    right = pl.col("predicted") == pl.col("label")
    shares = decided.select(
        accuracy=right.mean(),
        seen=right.filter("seen").mean(),
        unseen=right.filter(~pl.col("seen")).mean(),
        new_customers=right.filter("new").mean(),
    ).row(0, named=True)
    return Score(**shares, macro_f1=macro_f1(decided["label"], decided["predicted"]))


def macro_f1(label: pl.Series, predicted: pl.Series) -> float:
    """Return the mean over the labels of F1 = 2 · hits / (rows with the label + rows predicted to have it)."""
    counts = pl.concat(
        [
            pl.DataFrame({"label": label}).select("label", hits=0, rows=1),
            pl.DataFrame({"label": predicted}).select("label", hits=0, rows=1),
            pl.DataFrame({"label": label.filter(label == predicted)}).select("label", hits=1, rows=0),
        ]
    )
    each = counts.group_by("label").agg(pl.col("hits").sum(), pl.col("rows").sum())
    return float(each.select((2 * pl.col("hits") / pl.col("rows")).mean()).item())


def _count_confusions(decided: pl.DataFrame, most: int) -> list[Confusion]:
    wrong = decided.filter(pl.col("predicted") != pl.col("label"))
    counted = (
        wrong.group_by("label", "predicted").len().sort("len", "label", "predicted", descending=[True, False, False])
    )
    return [Confusion(*row) for row in counted.head(most).rows()]


def _predict_baseline(before: pl.DataFrame, after: pl.DataFrame) -> pl.Series:
    words = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), min_df=2 if before.height >= 200 else 1, sublinear_tf=True
    )
    trained = _with_amount(words.fit_transform(before["description"].to_list()), before)
    passes = max(BASELINE_PASSES, BASELINE_ROWS // before.height)
    # The average of all steps, because the last one alone depends on whichever contradictory row came last.
    machine = SGDClassifier(alpha=1 / before.height, max_iter=passes, tol=None, average=True, n_jobs=-1, random_state=0)
    machine.fit(trained, before["label"].to_numpy())
    predicted = machine.predict(_with_amount(words.transform(after["description"].to_list()), after))
    return pl.Series(predicted, dtype=pl.String)


def _with_amount(words: sparse.csr_matrix, rows: pl.DataFrame) -> sparse.csr_matrix:
    """Add the side of the account and the order of magnitude of money in and of money out to the words."""
    size = np.log10(1 + np.abs(amount := rows["amount"].cast(pl.Float64).to_numpy())) / 5
    columns = np.column_stack([np.sign(amount), size * (amount > 0), size * (amount < 0)])
    return sparse.csr_matrix(sparse.hstack([words, columns], format="csr"))
