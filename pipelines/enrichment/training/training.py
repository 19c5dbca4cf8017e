"""Train a model from labelled rows.

It is one linear support-vector machine per label (scikit-learn's LinearSVC) over the features used when deciding.
Trial models are trained as well, each without the last rows and without some merchants. The calibration is fitted on
how right their scores are on rows that they did not see. If `Unfamiliar` rows are given, a further trial is trained
without them, and only rows count about which a model would be asked. The smallest weights of the model are left out.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from pipelines.enrichment.counterparties.categories import SURE
from pipelines.enrichment.learned.calibration import EVIDENCE, Calibration, Numbers, find_sharpness, rank_labels
from pipelines.enrichment.learned.features import Block, build_fact_block, build_narrative_blocks, prepare_narratives
from pipelines.enrichment.learned.model import HeldOutAccuracy, Linear, Model, commonest_share, measure_evidence
from pipelines.enrichment.learned.vectors import Vocabulary, Weights, build_vocabulary, round_as_stored
from pipelines.enrichment.training.labelled import CUSTOMER, Unfamiliar, assign_customer_tenth, assign_tenth, merchants
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.own_columns import FILLED, PREFIX
from pipelines.vocabulary.taxonomy import VERSION as TAXONOMY_VERSION

CARD = "context_card"
MIN_ROWS = 20
MAX_LABELS = 1_000
COST = 0.5  # of an error, against a simpler model; accuracy is the same within half a point from 0.3 to 1
MAX_ROUNDS = 8  # more take longer and decide no better
MANY_LABELS, FEWER_ROUNDS = 200, 3  # the time grows with the labels; fewer rounds decide a little worse
TOLERANCE = 0.1  # scikit-learn's `tol`, at which it stops before MAX_ROUNDS (our judgement)
COMMON_FROM = 200  # rows: from then on, a feature must occur twice; one that occurs once is usually a reference number
MAX_WEIGHTS = 6_000_000  # the largest are kept: 20 MB in the file
FEW, MANY = 8_000, 20_000  # rows: see `_choose_held_back` (our judgement)
MERCHANT_SHARE = 0.02  # largest share of the calibration's weight for one merchant, however many rows it has

Mask = NDArray[np.bool_]
Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class _Trial:
    """A model trained without some rows, and its scores for them."""

    rows: pl.DataFrame
    labels: Sequence[str]
    scores: Weights
    known: Weights
    truth: NDArray[np.int64]  # numbers of the labels; -1: a label that it doesn't know
    seen: Mask  # of a merchant that it knows

    @property
    def right(self) -> Mask:
        return np.asarray(self.scores.argmax(axis=1) == self.truth)


def train(
    labelled: pl.DataFrame,
    most_weights: int = MAX_WEIGHTS,
    report: Report = lambda _: None,
    unfamiliar: Unfamiliar | None = None,
) -> Model:
    """Return a model of the labels. The same rows give the same model.

    Args:
        labelled: `label` and what `Model.predict` takes; `weight` where rows count differently.
        report: called with the name of each step that begins.
        unfamiliar: what to calibrate on, too.

    Raises:
        Unprocessable: nothing can be learned from these labels, with the reason.
    """
    refuse_unlearnable(labelled)
    contexts = _list_contexts(labelled)
    held = _choose_held_back(labelled)
    apart: list[Mask] = [] if unfamiliar is None else [unfamiliar.apart.to_numpy()]
    sets = [labelled, *(labelled.filter(~pl.Series(each)) for each in [*held, *apart])]
    fitted = []
    for number, rows in enumerate(sets, start=1):  # one after the other: liblinear draws from one generator
        report(f"training the model, part {number} of {len(sets)}")
        fitted.append(_fit(rows, contexts, most_weights))
    (linear, labels), *others = fitted
    tests = [labelled.filter(pl.Series(each)) for each in held]
    trials = [_run_trial(*parts, contexts) for parts in zip(others, sets[1:], tests, strict=False)]
    groups = [trials]
    if unfamiliar is not None:
        further = [[_run_trial(others[-1], sets[-1], rows, contexts)] for rows in unfamiliar.tests]
        groups = [[_take_asked(trial) for trial in group] for group in (trials, *further)]
    calibration = _calibrate(groups)
    return Model(
        labels, contexts, linear, calibration, _describe_training(labelled, labels, _measure_held_back(trials))
    )


def _list_contexts(labelled: pl.DataFrame) -> list[str]:
    """Return the own columns to learn from: those of the file, and the card if the texts print cards' digits."""
    own = {name for name in labelled.columns if name.startswith(PREFIX)}
    printed = FILLED[CARD] in labelled.columns and labelled[FILLED[CARD]].null_count() < labelled.height
    return sorted(own | {CARD} if printed else own)


def refuse_unlearnable(labelled: pl.DataFrame) -> None:
    """Raise Unprocessable if there is nothing to learn."""
    rows, labels = labelled.height, labelled["label"].n_unique()
    if rows < MIN_ROWS:
        raise _unlearnable(f"{rows} labelled rows are too few; it takes {MIN_ROWS}")
    if labels < 2:
        raise _unlearnable(f"every row has the same label ({labelled['label'][0]})")
    if labels > MAX_LABELS:
        raise _unlearnable(f"there are {labels} different labels; at most {MAX_LABELS} are possible")
    if labels * 2 > rows:
        raise _unlearnable(f"{rows} rows have {labels} different labels: almost every row has one of its own")


def _fit(rows: pl.DataFrame, contexts: Sequence[str], most_weights: int) -> tuple[Linear, list[str]]:
    labels = rows["label"].unique().sort()
    truth = labels.search_sorted(rows["label"]).to_numpy()
    blocks = [*build_narrative_blocks(prepare_narratives(rows)), build_fact_block(rows, contexts)]
    known = build_vocabulary(blocks, rows.height, 2 if rows.height >= COMMON_FROM else 1)
    rounds = MAX_ROUNDS if len(labels) <= MANY_LABELS else FEWER_ROUNDS
    machine = LinearSVC(loss="hinge", C=COST, tol=TOLERANCE, max_iter=rounds, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # contradictory labels never converge; they stay doubtful
        machine.fit(_build_matrix(known, blocks, rows.height), truth, _row_weights(rows).to_numpy())
    weights, bias = machine.coef_.astype(np.float32), machine.intercept_.astype(np.float32)
    if len(labels) == 2:  # scikit-learn keeps one side only
        weights, bias = np.vstack([-weights, weights]), np.concatenate([-bias, bias])
    return Linear(known, sparse.csr_array(_prune(weights.T, most_weights)), bias), labels.to_list()


def _build_matrix(known: Vocabulary, blocks: Sequence[Block], height: int) -> sparse.csr_matrix:
    parts = [known.vectorise(number, block, height)[0] for number, block in enumerate(blocks)]
    return sparse.csr_matrix(sparse.hstack(parts, format="csr"))


def _prune(weights: Weights, most: int) -> Weights:
    """Return the largest weights, as precise as they are in the file."""
    retained = np.ascontiguousarray(weights)
    if retained.size > most:
        sizes = np.abs(retained).ravel()
        retained[np.abs(retained) < np.partition(sizes, len(sizes) - most)[len(sizes) - most]] = 0
    return round_as_stored(retained)


def _choose_held_back(labelled: pl.DataFrame) -> list[Mask]:
    """Return the rows that each trial is trained without: those of some merchants, of a tenth of the customers, and the
    last tenth of all rows.

    Up to FEW rows, four trials together hold back all merchants: three of them three tenths each, the fourth the last
    tenth. Otherwise too few rows would be measured. Up to MANY rows, two trials hold back two tenths of the merchants
    each; with more rows, one trial holds back three tenths. If that leaves a trial too few rows or labels, because some
    customers have many rows, no customers are held back. If it is still too little, there is one trial instead, without
    every fourth row.
    """
    times, width = (4, 3) if labelled.height <= FEW else (2, 2) if labelled.height <= MANY else (1, 3)
    tenths, customer_tenths = assign_tenth(merchants(labelled)), assign_customer_tenth(labelled)
    order = labelled["date"].rank("ordinal").to_numpy()
    late = order > labelled.height * 0.9
    without_customers = [(tenths // width == part) | late for part in range(times)]
    masks = [held | (customer_tenths == part) for part, held in enumerate(without_customers)]
    fair = (each for each in (masks, without_customers) if all(_is_fair(held, labelled["label"]) for held in each))
    return next(fair, [order % 4 == 0])


def _is_fair(held: Mask, labels: pl.Series) -> bool:
    """Return whether enough rows and labels are left to train on without those held back."""
    return bool(held.mean() <= 0.6 and labels.filter(~pl.Series(held)).n_unique() > 1)


def _run_trial(
    fitted: tuple[Linear, list[str]], learned_from: pl.DataFrame, rows: pl.DataFrame, contexts: Sequence[str]
) -> _Trial:
    linear, labels = fitted
    scores, known = linear.scores(rows, contexts)
    truth = rows["label"].replace_strict(labels, range(len(labels)), default=-1, return_dtype=pl.Int64).to_numpy()
    merchant = merchants(rows)
    seen = merchant.is_in(merchants(learned_from).unique().implode()).to_numpy()
    return _Trial(rows.with_columns(merchant=merchant), labels, scores, known, truth, seen)


def _take_asked(trial: _Trial) -> _Trial:
    """Return the trial's rows about which a model is asked, because no rule or name is sure."""
    is_unsure = trial.rows["confidence"].to_numpy() < SURE
    return _Trial(
        trial.rows.filter(pl.Series(is_unsure)),
        trial.labels,
        trial.scores[is_unsure],
        trial.known[is_unsure],
        trial.truth[is_unsure],
        trial.seen[is_unsure],
    )


def _calibrate(groups: Sequence[Sequence[_Trial]]) -> Calibration:
    """Fit the calibration on all trials. Each group of them has the same weight."""
    trials = [trial for group in groups for trial in group]
    sharpness = float(np.exp(np.mean([np.log(find_sharpness(trial.scores, trial.truth)) for trial in trials])))
    facts = np.concatenate([_gather_evidence(trial, sharpness) for trial in trials])
    right = np.concatenate([trial.right for trial in trials])
    fitted = LogisticRegression(max_iter=500).fit(
        # Two extra rows, so that a model that was never wrong, or never right, stays in doubt where it knows nothing.
        np.vstack([facts, np.zeros(len(EVIDENCE)), facts.mean(axis=0)]),
        [*right, False, True],
        [*_equal_weights(groups), 1.0, 1.0],
    )
    return Calibration(sharpness, fitted.coef_[0], float(fitted.intercept_[0]))


def _gather_evidence(trial: _Trial, sharpness: float) -> Numbers:
    found = rank_labels(trial.scores, 2, sharpness)
    best = pl.Series(trial.labels, dtype=pl.String).gather(found.labels[:, 0])
    return measure_evidence(found, trial.known, best, trial.rows)


def _equal_weights(groups: Sequence[Sequence[_Trial]]) -> Numbers:
    """Return each row's weight, such that each group has the total of the first."""
    weights = [_fair_weights(group) for group in groups]
    return np.concatenate([each * (weights[0].sum() / each.sum()) for each in weights])


def _fair_weights(trials: Sequence[_Trial]) -> Numbers:
    """Return each row's weight. All rows of one merchant together have at most MERCHANT_SHARE of the total."""
    rows = pl.concat([trial.rows.select("merchant", own=_row_weights(trial.rows)) for trial in trials])
    of_one = pl.col("own").sum().over("merchant")
    return rows.select(pl.col("own") * (MERCHANT_SHARE * pl.col("own").sum() / of_one).clip(upper_bound=1))[
        "own"
    ].to_numpy()


def _row_weights(rows: pl.DataFrame) -> pl.Series:
    return rows["weight"] if "weight" in rows.columns else pl.Series([1.0]).new_from_index(0, rows.height)


def _measure_held_back(trials: Sequence[_Trial]) -> HeldOutAccuracy:
    right = np.concatenate([trial.right for trial in trials])
    seen = np.concatenate([trial.seen for trial in trials])
    label = pl.concat([trial.rows["label"] for trial in trials])
    return HeldOutAccuracy(
        rows=len(right),
        accuracy=float(right.mean()),
        seen=float(right[seen].mean()) if seen.any() else None,
        unseen=float(right[~seen].mean()) if (~seen).any() else None,
        majority=commonest_share(label),
    )


def _describe_training(labelled: pl.DataFrame, labels: Sequence[str], measured: HeldOutAccuracy) -> dict[str, Any]:
    return {
        "rows": labelled.height,
        "labels": len(labels),
        "merchants": merchants(labelled).n_unique(),
        "customers": labelled[CUSTOMER].drop_nulls().n_unique() if CUSTOMER in labelled.columns else None,
        "columns": _list_contexts(labelled),
        "firstDate": str(labelled["date"].min()),
        "lastDate": str(labelled["date"].max()),
        "taxonomy": TAXONOMY_VERSION,
        "held": asdict(measured),
    }


def _unlearnable(reason: str) -> Unprocessable:
    return Unprocessable("Labels.NothingToLearn", f"Nothing can be learned: {reason}.")
