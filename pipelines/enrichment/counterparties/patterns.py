"""Rules that give the category of a payment by words of its text. Loading checks each rule against its own examples.

Rules in `rules/patterns/decisive.yaml` are tried before the names in the lists, those in `indicative.yaml` after them.
Both files explain at the top how a rule is written. `<FEE>` in a phrase stands for every spelling of that word in
`spellings.yaml`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, cached_property
from itertools import product
from math import prod
from typing import Any, Literal

import polars as pl

from pipelines.enrichment.wording.phrases import Phrasebook, find_phrase_fault, words_of
from pipelines.vocabulary.rule_files import Fault, RuleError, load_rules, suggest
from pipelines.vocabulary.schemas import ACCOUNT_TYPES, CounterpartyKind
from pipelines.vocabulary.taxonomy import LISTED_IN, SIDES, TAXONOMY, Sign

PurposesIn = Callable[[Sequence[str]], Sequence[str | None]]
Tier = Literal["decisive", "indicative"]
TIERS: tuple[Tier, Tier] = ("decisive", "indicative")
CONFIDENCE: Mapping[Tier, float] = {"decisive": 0.95, "indicative": 0.85}  # default of a rule; not calibrated

KEYS = pl.Schema(
    {
        "key": pl.UInt32(),
        "text_number": pl.UInt32(),
        "direction": pl.String(),
        "account_type": pl.String(),
        "purpose": pl.String(),  # of the listed counterparty
        "counterparty_kind": pl.String(),
    }
)
MATCHES = pl.Schema(
    {
        "key": pl.UInt32(),
        "rule": pl.UInt32(),  # number in the order of trial
        "decisive": pl.Boolean(),
        "category": pl.String(),
        "confidence": pl.Float64(),
        "words": pl.String(),  # one of the phrases found
    }
)

FOLDER = "patterns"
PHRASES = {"any", "with", "unless"}
_REQUIRED = {"category", "any", "matches", "not"}
_LISTS = {"any", "with", "unless", "of", "account", "kind", "matches", "not"}
_ALLOWED = _REQUIRED | _LISTS | {"side", "confidence"}
_SPELT = re.compile("<([^>]*)>")  # a word with spellings
SPELLINGS = "patterns/spellings.yaml"
MAX_SPELLINGS = 1_000  # of one phrase (our judgement)
_CONDITIONS = {"of": "purpose", "account": "account_type", "kind": "counterparty_kind"}


class _Role(IntFlag):
    """The role of a phrase in a rule."""

    ANY = 1
    WITH = 2
    UNLESS = 4


@dataclass(frozen=True)
class Rule:
    """A rule: phrases, conditions, and the resulting category on each side of the account."""

    tier: Tier
    category: Mapping[Sign, str]  # by side: credit, debit
    any: Sequence[str]
    with_: Sequence[str]
    unless: Sequence[str]
    conditions: Mapping[str, Sequence[str]]  # column of KEYS → the values that it may have
    confidence: float


class Rulebook:
    """Rules prepared for the search: all of them are tried on all texts at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        numbered = [
            (phrase, number, role.value)
            for number, rule in enumerate(rules)
            for role, phrases in ((_Role.ANY, rule.any), (_Role.WITH, rule.with_), (_Role.UNLESS, rule.unless))
            for phrase in phrases
        ]
        schema = pl.Schema({"words": pl.String(), "rule": pl.UInt32(), "role": pl.UInt8()})
        self._numbered = pl.DataFrame(numbered, schema, orient="row").with_row_index("phrase")
        self._phrases = Phrasebook(self._numbered["words"].to_list())
        self._rules = _build_frame(rules)
        self._alone = self._rules.filter("alone").select("rule")
        self._list_admitted = {column: _list_admitted(rules, column) for column in _CONDITIONS.values()}

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Words with digits in the phrases, which `words_of` must keep."""
        return self._phrases.numbers

    def find_matches(self, texts: pl.Series, keys: pl.DataFrame) -> pl.DataFrame:
        """Find every rule that matches a key (schema MATCHES), in no order.

        Args:
            texts: distinct texts, prepared by `words_of`.
            keys: schema KEYS; `text_number` is a position in `texts`.
        """
        fulfilled = self._match_words(texts)
        slug = pl.when(pl.col("direction") == "credit").then("credit").otherwise("debit")
        held = keys.join(fulfilled, on="text_number").join(self._rules, on="rule").with_columns(category=slug)
        held = held.filter(pl.col("category").is_not_null())
        for column, admitted in self._list_admitted.items():
            free, bound = held.filter(~pl.col(f"by_{column}")), held.filter(f"by_{column}")
            held = pl.concat([free, bound.join(admitted, on=["rule", column], how="semi")])
        return held.join(self._numbered.select("phrase", "words"), on="phrase").select(MATCHES.names())

    def _match_words(self, texts: pl.Series) -> pl.DataFrame:
        """Return `text_number`, `rule` and `phrase` (one of those found) of rules that the words of a text satisfy."""
        hits = self._phrases.find(texts).join(self._numbered.drop("words"), on="phrase")
        columns = ("text_number", "rule", "phrase")
        alone = hits.join(self._alone, on="rule", how="semi").select(columns)
        together = hits.join(self._alone, on="rule", how="anti").pipe(self._select_satisfied)
        return pl.concat([alone, together.select(columns)]).group_by("text_number", "rule").agg(pl.col("phrase").min())

    def _select_satisfied(self, hits: pl.DataFrame) -> pl.DataFrame:
        """Select the rules that need several phrases and have all of them, and none of `unless`."""
        is_any = pl.col("role") == _Role.ANY.value
        begun = hits.filter(is_any)
        others = hits.filter(~is_any).join(begun, on=["text_number", "rule"], how="semi")  # few: grouping takes long
        phrase_or_null = pl.when(is_any).then("phrase")
        roles = (
            pl.concat([begun, others])
            .group_by("text_number", "rule")
            .agg(pl.col("role").bitwise_or(), phrase=phrase_or_null.min())
            .join(self._rules.select("rule", "needs"), on="rule")
        )
        needed = pl.col("needs") | _Role.UNLESS.value
        return roles.filter((pl.col("role") & needed) == pl.col("needs"))


def _build_frame(rules: Sequence[Rule]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "decisive": [rule.tier == "decisive" for rule in rules],
            "credit": pl.Series([rule.category.get("credit") for rule in rules], dtype=pl.String),
            "debit": pl.Series([rule.category.get("debit") for rule in rules], dtype=pl.String),
            "confidence": [rule.confidence for rule in rules],
            "needs": pl.Series([_needed_roles(rule).value for rule in rules], dtype=pl.UInt8),
            "alone": [not rule.with_ and not rule.unless for rule in rules],  # one phrase is enough
        }
        | {f"by_{column}": [column in rule.conditions for rule in rules] for column in _CONDITIONS.values()}
    ).with_row_index("rule")


def _needed_roles(rule: Rule) -> _Role:
    return _Role.ANY | _Role.WITH if rule.with_ else _Role.ANY


def _list_admitted(rules: Sequence[Rule], column: str) -> pl.DataFrame:
    """Return `rule` and each value of the column that it admits, for all rules with a condition on that column."""
    pairs = [(number, value) for number, rule in enumerate(rules) for value in rule.conditions.get(column, ())]
    return pl.DataFrame(pairs, {"rule": pl.UInt32, column: pl.String}, orient="row")


@cache
def load() -> Rulebook:
    """Prepare the rules of `rules/patterns/`, once per process."""
    return Rulebook(load_shipped())


@cache
def load_shipped() -> Sequence[Rule]:
    """Load the rules of `rules/patterns/` in the order of trial. Tests check them, which takes as long again."""
    return tuple(_parse_rule(tier, entry) for tier in TIERS for entry in load_rules(file_of(tier)))


def file_of(tier: Tier) -> str:
    return f"{FOLDER}/{tier}.yaml"


def parse_rules(
    entries: Mapping[Tier, Sequence[Mapping[str, Any]]],
    purposes_in: PurposesIn,
    purposes: Sequence[str],
    is_tried: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> list[Rule]:
    """Check the entries of the files and parse them as rules. Raise RuleError with all faults at once.

    Args:
        purposes_in: the purpose of the counterparty that each text names.
        purposes: all that there are.
        is_tried: whether an entry's examples can be tried; they can't if what they depend on is broken.
    """
    numbered = [(tier, number, entry) for tier in TIERS for number, entry in enumerate(entries.get(tier, ()))]
    found = [list(_find_faults(entry, purposes)) for _, _, entry in numbered]
    faults = [_fault(each, *fault) for each, wrong in zip(numbered, found, strict=True) for fault in wrong]
    sound = [each for each, wrong in zip(numbered, found, strict=True) if not wrong]
    rules = [_parse_rule(tier, entry) for tier, _, entry in sound]
    tried = [(each, rule) for each, rule in zip(sound, rules, strict=True) if is_tried(each[2])]
    faults += [_fault(*fault) for fault in _example_faults(tried, purposes_in)]
    if faults:
        raise RuleError(*faults)
    return rules


Numbered = tuple[Tier, int, Mapping[str, Any]]  # an entry with its file and its position there


def _fault(entry: Numbered, field: str, says: str) -> Fault:
    tier, number, content = entry
    return Fault(file_of(tier), says, (number, field), f"rule {number + 1} ({content.get('category')})")


def _parse_rule(tier: Tier, entry: Mapping[str, Any]) -> Rule:
    return Rule(
        tier=tier,
        category=dict(_read_conclusions(entry)),
        any=_spell_all(entry["any"]),
        with_=_spell_all(entry.get("with", ())),
        unless=_spell_all(entry.get("unless", ())),
        conditions={column: entry[name] for name, column in _CONDITIONS.items() if name in entry},
        confidence=entry.get("confidence", CONFIDENCE[tier]),
    )


@cache
def _load_spellings() -> Mapping[str, Sequence[str]]:
    spellings: Mapping[str, Sequence[str]] = load_rules(SPELLINGS)
    if broken := [word for word, spelt in spellings.items() if not _is_list_of_texts(spelt)]:
        raise RuleError(f"{SPELLINGS}: {', '.join(broken)} is not a list of texts")
    return spellings


def _spell_all(phrases: Sequence[str]) -> list[str]:
    """Return the phrases in all spellings, each once."""
    return list(dict.fromkeys(spelt for phrase in phrases for spelt in _spell(phrase)))


def _spell(phrase: str) -> Iterator[str]:
    parts = _SPELT.split(phrase)  # every second part is a word with spellings
    for spelt in product(*(_load_spellings()[word] for word in parts[1::2])):
        yield "".join(part for pair in zip(parts[::2], (*spelt, ""), strict=True) for part in pair)


def _read_conclusions(entry: Mapping[str, Any]) -> list[tuple[Sign, str]]:
    """Return pairs of side and category. A single category applies on the side where it belongs, or on both."""
    category = entry["category"]
    if isinstance(category, dict):
        return list(category.items())
    side = entry.get("side", TAXONOMY.categories[category].sign)
    return [(each, category) for each in SIDES if side in (each, "either")]


def _field_faults(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if missing := _REQUIRED - entry.keys():
        yield "category", f"lacks {', '.join(sorted(missing))}"
    allowed = sorted(_ALLOWED)
    for name in sorted(map(str, entry.keys() - _ALLOWED)):
        yield name, f"there is no field {name}{suggest(name, allowed, ', '.join(allowed))}"


def _find_faults(entry: Mapping[str, Any], purposes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the field and what is wrong with it."""
    if faults := list(_field_faults(entry)):
        yield from faults
        return
    lists = sorted(_LISTS & entry.keys())
    malformed = [(name, f"{name} is not a list of texts") for name in lists if not _is_list_of_texts(entry[name])]
    if wrong := malformed or [*_spelling_faults(entry), *_category_faults(entry)]:
        yield from wrong
        return
    for side, slug in _read_conclusions(entry):
        if TAXONOMY.categories[slug].sign not in (side, "either"):
            other = "leave `side` out, or write a category of that side"
            yield "category", f"{slug} does not belong on the side {side}: {other}"
    known = {"of": purposes, "account": ACCOUNT_TYPES, "kind": CounterpartyKind.categories.to_list()}
    for name, values in known.items():
        for value in entry.get(name, ()):
            if value not in values:
                yield name, f"there is no {value} for `{name}`{suggest(value, values, ', '.join(values))}"
    confidence = entry.get("confidence", 0)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        yield "confidence", "confidence is not between 0 and 1"
    if len(entry["matches"]) < 2:
        yield "matches", "needs two examples that match and one that does not"
    for name in sorted(PHRASES & entry.keys()):
        yield from ((name, fault) for phrase in entry[name] if (fault := find_phrase_fault(phrase)))


def _category_faults(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    category, side = entry["category"], entry.get("side", "either")
    if side not in (*SIDES, "either"):
        yield "side", f"there is no side {side}: write credit, debit or either"
    if isinstance(category, dict) and not (category and category.keys() <= set(SIDES)):
        yield "category", "a category for each side is written {credit: …, debit: …}"
    for slug in category.values() if isinstance(category, dict) else [category]:
        if slug not in list(TAXONOMY.categories):
            yield "category", f"there is no category {slug}{suggest(slug, TAXONOMY.categories, LISTED_IN)}"


def _spelling_faults(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, phrase in ((field, each) for field in sorted(PHRASES & entry.keys()) for each in entry[field]):
        words = _SPELT.findall(phrase)
        if unknown := [word for word in words if word not in _load_spellings()]:
            yield name, f"there are no spellings of {', '.join(unknown)}"
        elif prod(len(_load_spellings()[word]) for word in words) > MAX_SPELLINGS:
            yield name, f"{phrase} has more than {MAX_SPELLINGS:,} spellings"


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) and each for each in value)


def _example_faults(
    tried: Sequence[tuple[Numbered, Rule]], purposes_in: PurposesIn
) -> Iterator[tuple[Numbered, str, str]]:
    """Try the examples of all rules with the real engine, and yield the entries with failing examples, with the field.

    Side, account type and kind are chosen so that the rule's conditions are met. Only the counterparty's purpose must
    come from the text of the example.
    """
    if not tried:
        return
    numbered, rules = [each for each, _ in tried], [rule for _, rule in tried]
    rulebook = Rulebook(rules)
    examples = [
        (number, text.upper(), must)
        for number, (_, _, entry) in enumerate(numbered)
        for must, name in ((True, "matches"), (False, "not"))
        for text in entry[name]
    ]
    texts = pl.DataFrame({"text": [text for _, text, _ in examples]}).select(words_of(pl.col("text"), rulebook.numbers))
    purposes = purposes_in([text for _, text, _ in examples])
    keys = [
        {
            "key": key,
            "text_number": key,
            "direction": next(iter(rules[number].category)),
            "account_type": next(iter(rules[number].conditions.get("account_type", ())), None),
            "counterparty_kind": next(iter(rules[number].conditions.get("counterparty_kind", ())), None),
            "purpose": purposes[key] if "purpose" in rules[number].conditions else None,
        }
        for key, (number, text, _) in enumerate(examples)
    ]
    held = set(rulebook.find_matches(texts.to_series(), pl.DataFrame(keys, KEYS)).select("key", "rule").rows())
    for key, (number, text, must) in enumerate(examples):
        if ((key, number) in held) is not must:
            field, fails = ("matches", "does not match") if must else ("not", "matches")
            yield numbered[number], field, f"{fails} {text!r}"
