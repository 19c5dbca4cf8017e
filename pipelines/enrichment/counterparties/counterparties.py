"""Look up counterparties in curated lists by the names that statements print.

`rules/counterparties/*.yaml` lists canonical names by purpose, with the phrases that statements use for them.
`rules/purposes.yaml` gives the category of a payment to or from a counterparty of each purpose. The longest phrase
wins: TYRO BUSINESS LOAN says more than TYRO. If the category depends on other words of the text, a rule in
`rules/patterns/decisive.yaml` decides, which may require a purpose of the counterparty. Names of those who collect
through a clearing house are also found where their words are joined (DUKEENERGY), as its fields are short.

A name that counts against a customer (`Purpose.is_adverse`) must be complete; only a lender's may be cut short
(`cut_names`). A name that a person may have, too, needs a sign that the business is meant (`business_signs`), except in
a client's own list. Such names, and one-word names of shops and of firms whose names usually contain no trade, are
ignored if a word of `rules/trades.yaml` follows: together they are another business's name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import starmap
from typing import Any

import polars as pl

from pipelines.enrichment.counterparties.business_signs import find_persons, is_personal, list_later_trades, list_trades
from pipelines.enrichment.wording.phrases import Phrasebook, find_phrase_fault, search_literals, words_of
from pipelines.vocabulary.rule_files import Fault, RuleError, load_rules, suggest
from pipelines.vocabulary.schemas import CounterpartyKind
from pipelines.vocabulary.taxonomy import LISTED_IN, SIDES, TAXONOMY, Sign

FOLDER, PURPOSES = "counterparties", "purposes.yaml"
_ADVERSE = frozenset({"debt_collector", "gambling", "insolvency"})  # beside every lender
_SHOPS = frozenset(  # purposes of shops for people, whose names contain no trade such as PLUMBING
    ("entertainment", "fitness", "fuel", "groceries", "household", "meals", "personal_care", "personal_retail", "pets")
)
_FIRMS = frozenset(  # purposes of firms whose names contain no trade either: WESTFIELD PLUMBING is no landlord
    (
        *("advertising", "childcare", "donations", "education", "energy", "marketplace", "rent", "software"),
        *("telecommunications", "water"),
    )
)
_JOINED = frozenset(
    ("asset_finance", "energy", "insurer", "mortgage", "payroll_service", "telecommunications", "water")
)
MIN_JOINED = 10  # letters of a name whose words may be joined: shorter ones are often another word (our judgement)
_KINDS = tuple(CounterpartyKind.categories)
CONFIDENCE = 0.9  # our judgement: the name is certain, but what was bought there is less so
NAMED = pl.Schema(
    {
        "text_number": pl.UInt32(),
        "phrase": pl.String(),  # the phrase found in the text
        "counterparty_name": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "counterparty_lender_id": pl.String(),
        "purpose": pl.String(),
        "credit": pl.String(),  # category of money from it; null if unknown
        "debit": pl.String(),  # category of money to it; null if unknown
    }
)
_GUARDED = pl.Schema(
    {"name": pl.String(), "purpose": pl.String()}
    | dict.fromkeys(("is_adverse", "is_shop", "is_firm", "is_personal", "is_joined"), pl.Boolean())
)
_PARTIES = pl.Schema(
    {"party": pl.UInt32(), **{name: kind for name, kind in NAMED.items() if name not in ("text_number", "phrase")}}
)


@dataclass(frozen=True)
class Purpose:
    """A purpose of counterparties: their kind, and the categories of money from them (credit) and to them (debit)."""

    slug: str
    kind: str
    credit: str | None = None
    debit: str | None = None

    @property
    def is_adverse(self) -> bool:
        """Return whether a payment to such a counterparty counts against the customer."""
        return self.kind == "lender" or self.slug in _ADVERSE


@dataclass(frozen=True)
class Party:
    """A counterparty: the phrases that name it (`says`), and those that show that somebody else is meant (`unless`)."""

    name: str
    purpose: Purpose
    says: Sequence[str]
    unless: Sequence[str] = ()
    is_own: bool = False  # a client's own: it wins over shipped ones

    @property
    def lender_id(self) -> str | None:
        return (
            "-".join(re.findall(r"[^\W_]+", self.name.lower().replace("'", "")))
            if self.purpose.kind == "lender"
            else None
        )


class Directory:
    """The lists of counterparties, prepared for the look-up."""

    def __init__(self, parties: Sequence[Party]) -> None:
        saying = [(phrase, number) for number, party in enumerate(parties) for phrase in (*party.says, *_join(party))]
        wanted = dict(zip(saying, search_literals([phrase for phrase, _ in saying]), strict=True))
        # the first that is found wins
        saying.sort(key=lambda naming: (not parties[naming[1]].is_own, -len(wanted[naming]), wanted[naming]))
        excluding = [(phrase, number) for number, party in enumerate(parties) for phrase in party.unless]
        self._parties = pl.DataFrame(list(starmap(_party_columns, enumerate(parties))), _PARTIES, orient="row")
        self._saying = _number_phrases(saying).rename({"phrase_text": "phrase", "phrase": "rank"})
        self._excluding = _number_phrases(excluding).select("phrase", "party")
        guarded = [(wanted[naming].rstrip(), *_guards(naming[0], parties[naming[1]])) for naming in saying]
        ranked = pl.DataFrame(guarded, _GUARDED, orient="row").with_row_index("rank")
        self._guarded = ranked.filter(pl.col("is_adverse") | pl.col("is_personal"))
        self._shops = ranked.filter(pl.col("is_shop") | pl.col("is_firm"))
        self._says = Phrasebook([phrase for phrase, _ in saying])
        self._unless = Phrasebook([phrase for phrase, _ in excluding])

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Words with digits in the phrases, which `words_of` must keep."""
        return tuple(sorted({*self._says.numbers, *self._unless.numbers}))

    @property
    def phrases(self) -> pl.DataFrame:
        """Every `phrase`, and its `party`: equal for the phrases of one counterparty with one purpose.

        `party` is null where only the complete name counts: the counterparty is adverse, and not a lender.
        """
        party = pl.when(~pl.col("purpose").is_in(_ADVERSE)).then(pl.format("{}, {}", "counterparty_name", "purpose"))
        return self._saying.join(self._parties, on="party").select("phrase", party=party)

    def find(self, texts: pl.Series, signs: pl.DataFrame | None = None) -> pl.DataFrame:
        """Find the counterparties that texts name: schema NAMED, at most one row per text.

        Args:
            texts: prepared by `words_of`; `text_number` is a position in it.
            signs: for each text, `business_signs.SIGNS`. Without them, a name that a person may have needs none.
        """
        found = self._says.find(texts).rename({"phrase": "rank"}).join(self._saying.select("rank", "party"), on="rank")
        if found.is_empty():
            return pl.DataFrame(schema=NAMED)
        hits = found.join(self._find_others(found, texts, signs), on=["text_number", "rank"], how="anti")
        excluded = self._unless.find(texts).join(self._excluding, on="phrase").select("text_number", "party")
        best = (
            hits.join(excluded, on=["text_number", "party"], how="anti")
            .group_by("text_number")
            .agg(pl.col("rank").min())
        )
        return best.join(self._saying, on="rank").join(self._parties, on="party").select(NAMED.names())

    def _find_others(self, found: pl.DataFrame, texts: pl.Series, signs: pl.DataFrame | None) -> pl.DataFrame:
        """Return `text_number` and `rank` of guarded names that mean others: other businesses, or persons."""
        with_trade = texts.str.contains_any(list_later_trades()).arg_true().rename("text_number")
        shops = found.join(with_trade.to_frame(), on="text_number", how="semi").join(self._shops, on="rank")
        named = pl.concat([found.join(self._guarded, on="rank"), shops])
        named = named.with_columns(text=texts.gather(named["text_number"]))
        behind = pl.col("text").str.split(pl.col("name")).list.slice(1)
        others = [
            named.filter("is_adverse", behind.list.eval(pl.element().str.contains(_any_trade())).list.all()),
            named.filter("is_shop", behind.list.first().str.contains(_any_later_trade())),
            named.filter("is_firm", behind.list.first().str.contains(rf"^\S*{_any_later_trade()}")),
        ]
        if signs is not None:
            personal = named.hstack(signs[named["text_number"]]).filter("is_personal")
            others.append(personal.filter(find_persons(personal)))
        return pl.concat(each.select("text_number", "rank") for each in others)

    def purposes_in(self, texts: Sequence[str]) -> list[str | None]:
        """Return the purpose of the counterparty that each text names, or None."""
        prepared = pl.DataFrame({"text": texts}, {"text": pl.String}).select(
            words_of(pl.col("text").str.to_uppercase(), self.numbers)
        )
        named = self.find(prepared.to_series()).select("text_number", "purpose")
        return prepared.with_row_index("text_number").join(named, on="text_number", how="left")["purpose"].to_list()


@cache
def _any_trade() -> str:
    """Return a pattern for the text behind a name, from the rest of its last word on, if the next word is a trade."""
    return rf"^\S* (?:{'|'.join(list_trades())}) "


@cache
def _any_later_trade() -> str:
    return f" (?:{'|'.join(list_later_trades())}) "


def _join(party: Party) -> Iterator[str]:
    """Yield the names of a party with their words joined, where banks print them so."""
    if party.purpose.slug in _JOINED and not party.is_own:
        for phrase in party.says:
            joined = phrase.replace(" ", "")
            if joined != phrase and joined.rstrip("*").isalpha() and len(joined.rstrip("*")) >= MIN_JOINED:
                yield joined


def _guards(phrase: str, party: Party) -> tuple[str, bool, bool, bool, bool, bool]:
    """Return the values of _GUARDED except the name."""
    purpose = party.purpose
    is_word = " " not in phrase and not party.is_own
    is_shop, is_firm = is_word and purpose.slug in _SHOPS, is_word and purpose.slug in _FIRMS
    is_joined = phrase.replace(" ", " AND ") in party.says
    return purpose.slug, purpose.is_adverse, is_shop, is_firm, not party.is_own and is_personal(phrase), is_joined


def _party_columns(number: int, party: Party) -> tuple[int | str | None, ...]:
    purpose = party.purpose
    return number, party.name, purpose.kind, party.lender_id, purpose.slug, purpose.credit, purpose.debit


def _number_phrases(phrases: Sequence[tuple[str, int]]) -> pl.DataFrame:
    schema = pl.Schema({"phrase_text": pl.String(), "party": pl.UInt32()})
    return pl.DataFrame(phrases, schema, orient="row").with_row_index("phrase")


@cache
def load() -> Directory:
    """Load the lists of `rules/`, once per process."""
    return Directory(load_parties())


@cache
def list_purposes() -> tuple[str, ...]:
    """List the slugs of all purposes."""
    return tuple(load_rules(PURPOSES))


@cache
def load_parties() -> Sequence[Party]:
    """Load all counterparties of the lists, once per process. Tests check the lists, which takes as long again."""
    return tuple(_read_parties(load_rules(PURPOSES), load_lists()))


def load_lists() -> Mapping[str, Any]:
    """Load the files of `rules/counterparties/` by their names."""
    found = sorted(file.name for file in files("pipelines.enrichment").joinpath("rules", FOLDER).iterdir())
    return {f"{FOLDER}/{name}": load_rules(f"{FOLDER}/{name}") for name in found}


def parse_parties(purposes: Mapping[str, Mapping[str, str]], lists: Mapping[str, Any]) -> list[Party]:
    """Check and parse the counterparties of all files. Raise RuleError with all faults at once."""
    faults = [*_check_purposes(purposes), *_check_lists(purposes, lists)]
    if faults:
        raise RuleError(*faults)
    return _read_parties(purposes, lists)


def _read_parties(purposes: Mapping[str, Mapping[str, str]], lists: Mapping[str, Any]) -> list[Party]:
    return [
        _parse_party(name, Purpose(purpose, **purposes[purpose]), entry)
        for by_purpose in lists.values()
        for purpose, parties in by_purpose.items()
        for name, entry in parties.items()
    ]


def _parse_party(name: str, purpose: Purpose, entry: Any) -> Party:
    return Party(name, purpose, **entry) if isinstance(entry, dict) else Party(name, purpose, entry)


def _check_purposes(purposes: Mapping[str, Any]) -> Iterator[Fault]:
    for name, purpose in purposes.items():
        for says in _check_purpose(purpose):
            yield Fault(PURPOSES, says, (name,), str(name))


def _check_purpose(purpose: Any) -> Iterator[str]:
    if not isinstance(purpose, dict) or not {"kind"} <= purpose.keys() <= {"kind", *SIDES}:
        yield "takes kind, credit and debit"
        return
    if purpose["kind"] not in _KINDS:
        yield f"there is no kind {purpose['kind']}: write {' or '.join(_KINDS)}"
    for side in SIDES:
        if side in purpose and not _fits_side(purpose[side], side):
            instead = suggest(purpose[side], _list_categories(side), LISTED_IN)
            yield f"no category {purpose[side]} belongs on the side {side}{instead}"


def _fits_side(slug: object, side: Sign) -> bool:
    return slug in list(_list_categories(side))


def _list_categories(side: Sign) -> Iterator[str]:
    return (slug for slug, category in TAXONOMY.categories.items() if category.sign in (side, "either"))


def _check_lists(purposes: Mapping[str, Any], lists: Mapping[str, Any]) -> Iterator[Fault]:
    listed: list[tuple[str, Fault]] = []  # phrase, and where it stands
    for file, by_purpose in lists.items():
        for purpose, parties in by_purpose.items():
            if purpose not in purposes:
                says = f"there is no purpose {purpose}{suggest(purpose, purposes, PURPOSES)}"
                yield Fault(file, says, (purpose,))
            for name, entry in parties.items():
                here = Fault(file, "", (purpose, name), f"{purpose}, {name}")
                says = _list_naming_phrases(entry)
                if not says:
                    yield replace(here, says="takes a list of phrases, or `says` and `unless`: [ACME TOOLS, ACME PTY*]")
                found = [fault for phrase in list_phrases(entry) if (fault := find_phrase_fault(phrase))]
                yield from (replace(here, says=fault) for fault in found)
                listed += [(phrase, here) for phrase in says if not found]
    yield from _find_repetitions(listed)


def _find_repetitions(listed: Sequence[tuple[str, Fault]]) -> Iterator[Fault]:
    first: dict[str, Fault] = {}
    for (phrase, here), wanted in zip(listed, search_literals([phrase for phrase, _ in listed]), strict=True):
        there = first.setdefault(wanted, here)
        if there != here:
            says = f"{phrase!r} is already listed under {there.file}, {there.place}: remove one of them"
            yield replace(here, says=says)


def _list_naming_phrases(entry: Any) -> Sequence[str]:
    """Return the phrases of an entry that name it, or none if the entry is malformed."""
    lists: list[Any] = [entry]
    if isinstance(entry, dict):
        lists = [entry.get("says"), entry.get("unless", ["-"])] if entry.keys() <= {"says", "unless"} else []
    sound = all(isinstance(each, list) and each and all(isinstance(text, str) for text in each) for each in lists)
    return lists[0] if lists and sound and all(map(_has_a_word, lists[0])) else ()


def list_phrases(entry: Any) -> Sequence[str]:
    """Return all phrases of an entry, also those of `unless`; none if it is malformed."""
    if not _list_naming_phrases(entry):
        return ()
    return [*entry["says"], *entry.get("unless", ())] if isinstance(entry, dict) else entry


def _has_a_word(phrase: str) -> bool:
    return any(each.isalnum() for each in phrase)
