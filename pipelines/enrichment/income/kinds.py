"""Weigh what kind of income a payer pays: the signs of `evidence.yaml`, added up to log-odds (naive Bayes).

Payers are weighed twice: first each by itself, then also by what the customer's other payers pay. The log-odds are then
multiplied by the sharpness of `calibration.yaml`, because the signs are not independent of each other and not complete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.counterparties import counterparties
from pipelines.enrichment.income.payers import PAYER
from pipelines.enrichment.recurrence.dates import Flags, Integers
from pipelines.enrichment.wording.phrases import Phrasebook, find_phrase_fault, words_of
from pipelines.vocabulary.rule_files import RuleError, parse
from pipelines.vocabulary.schemas import SERIES_PERIODS, CategorySource, CounterpartyKind
from pipelines.vocabulary.taxonomy import TAXONOMY
from pipelines.vocabulary.typed import convert

Kind = Literal["wages", "benefit", "pension", "rent", "contract_revenue", "regular"]
"""What a regular income is: pay; a benefit; a pension; rent; a customer's payments; or only regular."""

KINDS: tuple[Kind, ...] = get_args(Kind)
PROBABILITIES: Mapping[str, str] = {kind: f"probability_{kind}" for kind in KINDS}
FILE, CALIBRATION = "evidence.yaml", "calibration.yaml"
BESIDE_FROM = 0.8  # from this probability on, the kind of another payer counts as a sign
LATEST = 24  # payments of a payer whose texts are read; this and the next are our judgement
SAYS_FROM = 1 / 3  # share of these that a phrase must be in

Numbers = NDArray[np.float64]
Bounds = tuple[float | None, float | None]


class Weighed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    because: str
    weights: dict[Kind, float]


class Sign(Weighed, frozen=True, forbid_unknown_fields=True):
    """A sign of kinds of income; `evidence.yaml` explains the fields. It has `says` or `holder`, not both."""

    sign: str
    says: tuple[str, ...] = ()
    holder: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ()
    payers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    dated: bool | None = None
    whole: bool | None = None
    varies: Bounds | None = None
    monthly: Bounds | None = None
    days: Bounds | None = None
    beside: tuple[Kind, ...] = ()


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `evidence.yaml`: groups of signs, of which the first that holds counts."""

    prior: Weighed
    groups: dict[str, tuple[Sign, ...]]


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `calibration.yaml`: the factor of the log-odds, and on what it was fitted."""

    sharpness: float
    fitted_on: dict[str, str]


def weigh_kinds(payers: pl.DataFrame, of_payers: pl.DataFrame, sharpness: float | None = None) -> pl.DataFrame:
    """Add PROBABILITIES (each 0–1, together 1), `kind` (the likeliest) and `signs` (those that count, in words).

    Args:
        payers: schema PAYERS.
        of_payers: credits from `list_credits`, of these payers and perhaps others.
        sharpness: factor of the log-odds; None: that of `calibration.yaml`.
    """
    model = load()
    sharpness = load_sharpness() if sharpness is None else sharpness
    holds = model.find_conditions_met(payers) & model.find_phrases_met(payers, of_payers)
    nobody = np.zeros((payers.height, len(KINDS)), np.bool_)
    first = _share(model.add_up(model.find_first_signs(holds, nobody)) * sharpness)
    place = model.find_first_signs(holds, _find_beside(payers, first))
    odds = model.add_up(place)
    shares = _share(odds * sharpness)
    signs = [names.gather(each) for names, each in zip(model.names, place, strict=True)]
    return payers.with_columns(
        pl.Series("kind", KINDS, dtype=pl.String).gather(odds.argmax(axis=1)),
        pl.concat_str(signs, separator="; ", ignore_nulls=True).alias("signs"),
        *(pl.Series(name, shares[:, nth]) for nth, name in enumerate(PROBABILITIES.values())),
    )


def _share(odds: Numbers) -> Numbers:
    """Return probabilities of log-odds (payers × kinds)."""
    likelihood = np.exp(odds - odds.max(axis=1, keepdims=True))
    shares: Numbers = likelihood / likelihood.sum(axis=1, keepdims=True)
    return shares


def _find_beside(payers: pl.DataFrame, shares: Numbers) -> Flags:
    """Return payers × kinds: whether another payer of the customer pays this kind with a higher probability, at least
    BESIDE_FROM.

    An employer that pays parts of a salary into two accounts is one payer.
    """
    customer = PAYER[0]
    probabilities = (pl.Series(kind, shares[:, nth]) for nth, kind in enumerate(KINDS))
    beside: Flags = (
        payers.select(customer, "payer", *probabilities)
        .select(
            ((pl.col(kind).max() >= BESIDE_FROM) & (pl.col("payer") != _find_surest(kind))).over(customer)
            for kind in KINDS
        )
        .fill_null(value=False)  # a payer without a name
        .to_numpy()
    )
    return beside


def _find_surest(name: str) -> pl.Expr:
    return pl.col("payer").sort_by(name, "payer", descending=[True, False]).first()


class Model:
    """Evidence, prepared for the look-up. Signs are numbered in the order of the file."""

    def __init__(self, evidence: Evidence) -> None:
        groups = list(evidence.groups.values())
        signs = [sign for group in groups for sign in group]
        phrases = [(phrase, number) for number, sign in enumerate(signs) for phrase in (*sign.says, *sign.holder)]
        self._phrases = Phrasebook([phrase for phrase, _ in phrases])
        self._sign_of = np.array([number for _, number in phrases])
        self._is_of_holder = np.array([bool(sign.holder) for sign in signs])
        self._needs_words = np.array([bool(sign.says or sign.holder) for sign in signs])
        self._is_beside = np.array([[kind in sign.beside for kind in KINDS] for sign in signs])
        self._needs_no_other = ~self._is_beside.any(axis=1)
        self._meets_conditions = [_meets_conditions(sign).alias(str(number)) for number, sign in enumerate(signs)]
        ends = np.cumsum([len(group) for group in groups])
        self._groups = [slice(end - len(group), end) for group, end in zip(groups, ends, strict=True)]
        self.names = [pl.Series([*(sign.sign for sign in group), None], dtype=pl.String) for group in groups]
        self.prior = np.array([_build_vector(evidence.prior)])
        self.weights = [np.array([*map(_build_vector, group), np.zeros(len(KINDS))]) for group in groups]

    def add_up(self, first: Sequence[Integers]) -> Numbers:
        """Return the log-odds (payers × kinds), given the places from `find_first_signs`."""
        return self.prior + sum(weights[place] for weights, place in zip(self.weights, first, strict=True))

    def find_first_signs(self, holds: Flags, beside: Flags) -> list[Integers]:
        """Return for each group the place in it of each payer's first sign that holds; its length if none does.

        Args:
            holds: payers × signs: whether the sign holds, apart from what other payers pay.
            beside: payers × KINDS, from `_find_beside`.
        """
        holds = holds & (self._needs_no_other | (beside @ self._is_beside.T))
        by_group = (holds[:, group] for group in self._groups)
        return [np.where(flags.any(axis=1), flags.argmax(axis=1), flags.shape[1]) for flags in by_group]

    def find_conditions_met(self, payers: pl.DataFrame) -> Flags:
        """Return payers × signs: whether a sign's conditions hold, apart from its phrases and from other payers."""
        met: Flags = payers.select(self._meets_conditions).to_numpy()
        return met

    def find_phrases_met(self, payers: pl.DataFrame, of_payers: pl.DataFrame) -> Flags:
        """Return payers × signs: whether the sign needs no phrases, or they are in the payments' texts or in the
        account's name.
        """
        numbered = payers.select(*PAYER, "account_name").with_row_index("payer_number")
        paid = numbered.join(of_payers, on=PAYER, maintain_order="right").select("payer_number", "description")
        payments = paid.group_by("payer_number", maintain_order=True).tail(LATEST)
        text, sign = self._find_signs(payments["description"], numbered["account_name"])
        payer_of = np.concatenate([payments["payer_number"], numbered["payer_number"]])
        times = np.zeros((payers.height, len(self._is_of_holder)), np.int32)
        np.add.at(times, (payer_of[text], sign), 1)
        number = np.bincount(payments["payer_number"], minlength=payers.height)[:, None]
        has_phrases: Flags = times >= np.where(self._is_of_holder, 1, np.maximum(number * SAYS_FROM, 1))
        return has_phrases | ~self._needs_words

    def _find_signs(self, descriptions: pl.Series, names: pl.Series) -> tuple[Integers, Integers]:
        """Return the places of texts, first descriptions and then accounts' names, and the signs that each has."""
        texts = pl.concat([descriptions, names]).fill_null("")
        words = pl.select(words_of(pl.lit(texts).str.to_uppercase(), self._phrases.numbers)).to_series()
        found = self._phrases.find(words)
        text, sign = found["text_number"].to_numpy(), self._sign_of[found["phrase"]]
        counted = (text >= len(descriptions)) == self._is_of_holder[sign]
        places, signs = np.unique(np.stack([text[counted], sign[counted]]), axis=1)
        return places, signs


def _meets_conditions(sign: Sign) -> pl.Expr:
    """Return whether all conditions of a sign hold, apart from its phrases and from what other payers pay."""
    return pl.all_horizontal(pl.lit(value=True), *_list_conditions(sign)).fill_null(value=False)


def _list_conditions(sign: Sign) -> Iterator[pl.Expr]:
    if sign.purposes:
        yield pl.col("name").is_in(_list_names(sign.purposes))
    for column, texts in _TEXTS.items():
        if allowed := getattr(sign, texts):
            yield pl.col(column).cast(pl.String).is_in(allowed)
    for column, value in ((pl.col("anchor").is_not_null(), sign.dated), (pl.col("is_whole"), sign.whole)):
        if value is not None:
            yield column if value else ~column
    for amount, bounds in ((pl.col("variation"), sign.varies), (pl.col("monthly"), sign.monthly), (_DAYS, sign.days)):
        if bounds is not None:
            yield from _list_bounds(amount, *bounds)


_TEXTS = {"kind_of_payer": "payers", "category": "categories", "source": "sources", "period": "periods"}
_DAYS = (pl.col("last_date") - pl.col("first_date")).dt.total_days()


def _list_bounds(value: pl.Expr, least: float | None, below: float | None) -> Iterator[pl.Expr]:
    if least is not None:
        yield value >= least
    if below is not None:
        yield value < below


def _list_names(purposes: Sequence[str]) -> list[str]:
    """Return the names of the listed counterparties with these purposes."""
    return [party.name for party in counterparties.load_parties() if party.purpose.slug in purposes]


def _build_vector(weighed: Weighed) -> list[float]:
    return [weighed.weights.get(kind, 0.0) for kind in KINDS]


@cache
def load() -> Model:
    """Load the evidence, once per process.

    Raises:
        RuleError: names the file and the reason.
    """
    return Model(parse_evidence(parse(files("pipelines.enrichment.income").joinpath(FILE).read_text("utf-8"), FILE)))


@cache
def load_sharpness() -> float:
    """Load the factor of the log-odds, once per process."""
    path = files("pipelines.enrichment.income").joinpath(CALIBRATION)
    return convert(parse(path.read_text("utf-8"), CALIBRATION), Calibration).sharpness


def parse_evidence(document: Any) -> Evidence:
    """Parse the file's content.

    Raises:
        RuleError: names every fault of the signs.
    """
    try:
        evidence = convert(document, Evidence)
    except msgspec.ValidationError as error:
        raise RuleError(f"{FILE}: {error}") from error
    if faults := [
        f"{FILE}: {fault}" for group in evidence.groups.values() for each in group for fault in _find_faults(each)
    ]:
        raise RuleError(*faults)
    return evidence


def _find_faults(sign: Sign) -> Iterator[str]:
    if sign.says and sign.holder:
        yield f"{sign.sign}: it takes either `says` or `holder`"
    yield from (
        f"{sign.sign}: {fault}" for phrase in (*sign.says, *sign.holder) if (fault := find_phrase_fault(phrase))
    )
    for field, known in _KNOWN.items():
        if unknown := set(getattr(sign, field)) - set(known()):
            yield f"{sign.sign}: unknown {field}: {', '.join(sorted(unknown))}"


_KNOWN: Mapping[str, Callable[[], Iterable[str]]] = {
    "purposes": counterparties.list_purposes,
    "payers": CounterpartyKind.categories.to_list,
    "categories": lambda: TAXONOMY.categories,
    "sources": CategorySource.categories.to_list,
    "periods": lambda: SERIES_PERIODS,
}
