"""A client's own rules and names, applied on top of the built-in ones.

The files have the names and the form of `rules/`: `purposes.yaml`, `counterparties/*.yaml`, `patterns/decisive.yaml`
and `patterns/indicative.yaml`; each may be left out. Own entries are tried before the shipped ones of the same layer,
and a phrase of an own counterparty wins over every shipped one. Corrections stay above both.

The files are written by a client and searched in all its transactions. So they are bounded: no YAML aliases, plain
words instead of regular expressions, and limits (our judgement) on what one text can match.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec
import yaml

from pipelines.enrichment.counterparties import brands, counterparties, patterns
from pipelines.enrichment.counterparties.counterparties import PURPOSES, Directory, Party, parse_parties
from pipelines.enrichment.counterparties.lists import Lists, combine
from pipelines.enrichment.counterparties.patterns import TIERS, Rule, Rulebook, file_of, parse_rules
from pipelines.enrichment.wording.phrases import search_literals
from pipelines.vocabulary.rule_files import Fault, RuleError, find_excess, line_of, load_rules, parse

MAX_FILES = 50
MAX_CHARACTERS = 2_000_000  # of all files
MAX_LEVELS, MAX_VALUES = 6, 100_000  # of a file's YAML
MAX_PHRASES = 20_000  # of all counterparties
MAX_RULES = 200  # of a file
MAX_LETTERS = 100  # of a phrase
MAX_TIMES = 10  # that a phrase occurs in rules and counterparties
MAX_BEGINNINGS = 7  # other phrases that a phrase may begin with: a text with it matches all of them
MIN_BEFORE_STAR = 3  # letters
MAX_FAULTS = 20  # reported at once
T = TypeVar("T")
_NAMES = f"{counterparties.FOLDER}/"
_RULES = tuple(map(file_of, TIERS))


@dataclass(frozen=True)
class OwnRules:
    """A client's checked files, by name (`counterparties/shops.yaml`), and what they say."""

    files: Mapping[str, str]
    parties: Sequence[Party]
    rules: Sequence[Rule]

    @property
    def content(self) -> bytes:
        """The files as bytes to be stored: equal for equal files."""
        return msgspec.json.encode(self.files, order="deterministic")

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def lists(self) -> Lists:
        """The own entries over the shipped ones. Making them takes about 0.3 s."""
        directory = _lay_over(self.parties)
        rulebook = Rulebook([*self.rules, *patterns.load_shipped()])
        return replace(combine(directory, brands.load(), rulebook), name=self.fingerprint, is_own=True)


def load_own_rules(content: bytes) -> OwnRules:
    """Load what `OwnRules.content` stored. Raise RuleError as `parse_own_rules`: a later release may refuse it."""
    try:
        files = msgspec.json.decode(content, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise RuleError("the stored files are damaged") from error
    return parse_own_rules(files)


def parse_own_rules(files: Mapping[str, str]) -> OwnRules:
    """Check a client's files.

    Args:
        files: their texts by name.

    Raises:
        RuleError: a line for each fault, at most MAX_FAULTS: `patterns/decisive.yaml:3: what is wrong`.
    """
    try:
        return _parse(files)
    except RuleError as error:
        lines = [_add_location(fault, files) for fault in error.faults[:MAX_FAULTS]]
        more = len(error.faults) - len(lines)
        raise RuleError(*lines, *([f"and {more:,} more"] if more else [])) from None


def is_rule_file(name: str) -> bool:
    """Return whether this is the name of a file that own rules may have."""
    return name in (PURPOSES, *_RULES) or (name.startswith(_NAMES) and name.endswith(".yaml"))


def _add_location(fault: Fault, files: Mapping[str, str]) -> str:
    line = fault.line or line_of(files.get(fault.file, ""), fault.path)
    says = " ".join(fault.says.split())
    return f"{fault.file}:{line}: {says}"


def _refuse(faults: Iterable[Fault]) -> None:
    if found := list(faults):
        raise RuleError(*found)


def _parse(files: Mapping[str, str]) -> OwnRules:
    _refuse(_find_total_excess(files))
    documents, faults = _read_documents(files)
    if any(fault.file == PURPOSES for fault in faults):  # the other files depend on it
        raise RuleError(*faults)
    excesses = list(_find_phrase_excesses(documents))
    purposes = load_rules(PURPOSES) | documents.get(PURPOSES, {})
    lists = {name: document for name, document in documents.items() if name.startswith(_NAMES)}
    parties, wrong = _collect(lambda: parse_parties(purposes, lists))
    own = [replace(party, is_own=True) for party in parties]
    is_named = not (wrong or any(fault.file.startswith(_NAMES) for fault in [*faults, *excesses]))
    rules, broken = _collect(
        lambda: _parse_own_rules(documents, own, list(purposes), is_tried=not excesses, is_named=is_named)
    )
    _refuse([*faults, *excesses, *wrong, *broken, *_find_repetitions(rules)])
    return OwnRules(dict(sorted(files.items())), own, rules)


def _collect(parse_all: Callable[[], list[T]]) -> tuple[list[T], list[Fault]]:
    """Return what was parsed, or the faults."""
    try:
        return parse_all(), []
    except RuleError as error:
        return [], error.faults


def _read_documents(files: Mapping[str, str]) -> tuple[dict[str, Any], list[Fault]]:
    """Return the content of the files that are in the form of their name, and the faults of the others."""
    faults = list(_find_excesses(files))
    documents: dict[str, Any] = {}
    for name, text in sorted(files.items()):
        if all(fault.file != name for fault in faults):
            read, wrong = _collect(partial(_parse_file, text, name))
            faults += wrong
            documents |= dict(read)
    malformed = list(_find_malformed(documents))
    broken = {fault.file for fault in malformed}
    return {name: document for name, document in documents.items() if name not in broken}, [*faults, *malformed]


def _parse_file(text: str, name: str) -> list[tuple[str, Any]]:
    """Return the name and content of a file, or nothing if it has only comments."""
    content = parse(text, name)
    return [] if content is None else [(name, content)]


def _parse_own_rules(
    documents: Mapping[str, Any], own: Sequence[Party], purposes: Sequence[str], *, is_tried: bool, is_named: bool
) -> list[Rule]:
    """Parse the rules. Examples are tried if phrases are within limits and the names that a rule needs are valid."""
    entries = {tier: documents.get(file_of(tier), ()) for tier in TIERS}
    if not any(entries.values()):
        return []
    return parse_rules(
        entries, partial(_purposes_in, own), purposes, lambda entry: is_tried and (is_named or "of" not in entry)
    )


def _purposes_in(own: Sequence[Party], texts: Sequence[str]) -> Sequence[str | None]:
    return _lay_over(own).purposes_in(texts)


def _lay_over(own: Sequence[Party]) -> Directory:
    """Return own counterparties before the shipped ones, without the shipped phrases that are own ones, too."""
    taken = set(search_literals([phrase for party in own for phrase in party.says]))
    shipped = zip(counterparties.load_parties(), _shipped_literals(), strict=True)
    return Directory([*own, *(_without(party, literals, taken) for party, literals in shipped)])


def _without(party: Party, literals: Sequence[str], taken: set[str]) -> Party:
    """Return the party without the phrases whose literals are taken."""
    if taken.isdisjoint(literals):  # true of nearly all
        return party
    says = [phrase for phrase, literal in zip(party.says, literals, strict=True) if literal not in taken]
    return replace(party, says=says)


@cache
def _shipped_literals() -> Sequence[Sequence[str]]:
    """Return the literals of the phrases of each shipped party."""
    parties = counterparties.load_parties()
    literals = iter(search_literals([phrase for party in parties for phrase in party.says]))
    return [[*islice(literals, len(party.says))] for party in parties]


def _find_total_excess(files: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what is too large altogether. This is checked before anything is parsed."""
    if len(files) > MAX_FILES:
        yield Fault(max(files), f"is one file too many: at most {MAX_FILES} are read")
        return
    if sum(map(len, files.values())) > MAX_CHARACTERS:
        largest = max(files, key=lambda name: len(files[name]))
        yield Fault(largest, f"all files together have more than {MAX_CHARACTERS:,} characters: leave entries out")


def _find_excesses(files: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the files that are not of rules, or whose YAML is too large. This is checked before they are parsed."""
    for name, text in files.items():
        if not is_rule_file(name):
            known = f"{PURPOSES}, {_NAMES}NAME.yaml, {' and '.join(_RULES)}"
            yield Fault(name, f"is no file of rules: there are {known}")
        elif (excess := _find_excess(text)) is not None:
            yield replace(excess, file=name)


def _find_excess(text: str) -> Fault | None:
    try:
        found = find_excess(text, MAX_LEVELS, MAX_VALUES)
    except yaml.YAMLError:
        return None  # `parse` says what is wrong
    match found:
        case None:
            return None
        case "alias", line:
            return Fault("", "YAML aliases are not allowed: write the value out", line=line)
        case _, line:
            says = f"is nested too deeply, or has more than {MAX_VALUES:,} values: leave entries out"
            return Fault("", says, line=line)


def _find_malformed(documents: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what is not in the form of its file."""
    for name, document in documents.items():
        if name in _RULES:
            yield from _find_malformed_rules(name, document)
        elif not _is_named(document):
            yield Fault(name, "takes names with what belongs to them: `fuel: {ACME FUELS: [ACME FUEL*]}`")
        elif name == PURPOSES:
            taken = document.keys() & load_rules(PURPOSES).keys()
            yield from (
                Fault(name, f"{each} is a shipped purpose: choose another name", (each,)) for each in sorted(taken)
            )
        else:
            says = "takes counterparties by name (a number in quotes), each with phrases: `ACME FUELS: [ACME FUEL*]`"
            yield from (Fault(name, says, (each,)) for each, parties in document.items() if not _is_named(parties))


def _find_malformed_rules(name: str, document: Any) -> Iterator[Fault]:
    if not isinstance(document, list):
        yield Fault(name, "takes a list of rules: `- {category: …, any: […], matches: […], not: […]}`")
    elif len(document) > MAX_RULES:
        yield Fault(name, f"has more than {MAX_RULES} rules: leave some out", (MAX_RULES,))
    else:
        says = "is not a rule: it takes category, any, matches and not"
        yield from (Fault(name, says, (number,)) for number, entry in enumerate(document) if not _is_named(entry))


def _is_named(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _find_long_names(file: str, document: Mapping[str, Any]) -> Iterator[Fault]:
    for purpose, parties in document.items():
        for name in parties if _is_named(parties) else ():
            if not name.strip() or len(name) > MAX_LETTERS:
                yield Fault(file, f"a counterparty's name has 1 to {MAX_LETTERS} letters", (purpose, name))


@dataclass(frozen=True)
class _Phrase:
    text: str
    here: Fault
    in_rule: bool


def _find_phrase_excesses(documents: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield names and phrases that are too long, and phrases so many that they would make a search slow."""
    for file, document in documents.items():
        if file.startswith(_NAMES):
            yield from _find_long_names(file, document)
    phrases = list(_list_phrases(documents))
    names = [each for each in phrases if not each.in_rule]
    if len(names) > MAX_PHRASES:
        says = f"all counterparties together have more than {MAX_PHRASES:,} phrases: leave some out"
        yield replace(names[MAX_PHRASES].here, says=says)
        return
    for each in phrases:
        if len(each.text) > MAX_LETTERS:
            yield replace(each.here, says=f"{each.text[:20]!r} … has more than {MAX_LETTERS} letters: shorten it")
        elif each.text.endswith("*") and sum(map(str.isalnum, each.text)) < MIN_BEFORE_STAR:
            says = f"{each.text!r} matches too much: write at least {MIN_BEFORE_STAR} letters before *"
            yield replace(each.here, says=says)
    yield from _find_overlapping(phrases)


def _list_phrases(documents: Mapping[str, Any]) -> Iterator[_Phrase]:
    """Yield every phrase that is in its place; `parse_parties` and `parse_rules` report the others."""
    for file, document in documents.items():
        if file in _RULES:
            for number, rule in enumerate(document):
                for field in sorted(patterns.PHRASES & rule.keys()):
                    yield from (
                        _Phrase(text, Fault(file, "", (number, field)), True) for text in _list_texts(rule[field])
                    )
        elif file != PURPOSES:
            for purpose, parties in document.items():
                for name, entry in parties.items():
                    here = Fault(file, "", (purpose, name))
                    yield from (_Phrase(text, here, False) for text in counterparties.list_phrases(entry))


def _list_texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _find_overlapping(phrases: Sequence[_Phrase]) -> Iterator[Fault]:
    """Yield the phrases that occur too often, or begin with too many other phrases."""
    literals = search_literals([each.text for each in phrases])
    times = Counter[str]()
    for each, literal in zip(phrases, literals, strict=True):
        times[literal] += 1
        if times[literal] == MAX_TIMES + 1:
            says = f"{each.text!r} occurs more than {MAX_TIMES} times: join the entries"
            yield replace(each.here, says=says)
    above: list[str] = []
    for literal, each in sorted(dict(zip(literals, phrases, strict=True)).items()):
        while above and not literal.startswith(above[-1]):
            above.pop()
        if len(above) == MAX_BEGINNINGS + 1:
            says = f"{each.text!r} begins with more than {MAX_BEGINNINGS} other phrases: remove some of them"
            yield replace(each.here, says=says)
        above.append(literal)


def _find_repetitions(rules: Sequence[Rule]) -> Iterator[Fault]:
    """Yield the rules that can never decide, because an earlier one with the same phrase and conditions does."""
    first: dict[object, tuple[str, int]] = {}
    for number, rule in chain.from_iterable(enumerate(r for r in rules if r.tier == tier) for tier in TIERS):
        for phrase, literal in zip(rule.any, search_literals(rule.any), strict=True):
            here = file_of(rule.tier), number
            there = min(first.setdefault((literal, side, *_list_terms(rule)), here) for side in rule.category)
            if there != here:
                says = f"{phrase!r} is already in rule {there[1] + 1}, with the same conditions: remove one of them"
                yield Fault(here[0], says, (number, "any"))


def _list_terms(rule: Rule) -> tuple[object, ...]:
    conditions = {column: sorted(values) for column, values in rule.conditions.items()}
    return rule.tier, str(sorted(rule.with_)), str(sorted(rule.unless)), str(sorted(conditions.items()))
