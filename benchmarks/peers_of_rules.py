"""Peers of the rules: the same lists and rules as regular expressions, in pandas and in DuckDB's SQL.

Both read the files that enrichment reads, so they have every new rule. Every phrase is a regular expression with word
boundaries over the same bare words, and the order of decision is ours: decisive rules, names (the longest wins),
indicative rules, unknown. Both try only rows that are still undecided, and don't compute the rest of enrichment:
fields, clean descriptions, names that are in no list, confidence, alternatives. Whether a counterparty is a person is
given as input, because rules need it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Self

import duckdb
import pandas as pd
import polars as pl

from pipelines.enrichment.counterparties import counterparties, patterns
from pipelines.enrichment.counterparties.counterparties import Party
from pipelines.enrichment.wording.phrases import search_literals
from pipelines.vocabulary.taxonomy import SIDES, UNKNOWN_CREDIT, UNKNOWN_DEBIT

UNKNOWN = {"credit": UNKNOWN_CREDIT.slug, "debit": UNKNOWN_DEBIT.slug}
INPUT_COLUMNS = ("description", "direction", "account_type", "counterparty_kind")  # input of both peers
COUNTERPARTY = ("purpose", *SIDES)  # columns from the lists

# Cleaning of upper-case text to bare words, in order: a number begins a new word, as in `phrases`. RE2 and Python's
# engine have different syntax for Unicode classes.
_APOSTROPHES = "['’]"
_GAPS_IN_PYTHON, _GAPS_IN_RE2 = r"[\W_]+", r"[^\p{L}\p{N}]+"
_BEFORE_NUMBER_IN_PYTHON, _BEFORE_NUMBER_IN_RE2 = r"([^\W\d_])([0-9])", r"(\p{L})([0-9])"
_ANY_NUMBER = {"0": r"[0-9]\w*", "0000": r"[0-9]{6,}\w*"}  # what these words of a phrase match


@dataclass(frozen=True)
class NameSearch:
    """A search for names: any of `says`, unless `unless` also matches."""

    says: str
    unless: str | None = None


@dataclass(frozen=True)
class Clause:
    """A rule for one side of the account, with its words as regular expressions."""

    side: str
    category: str
    any: str
    with_: str | None
    unless: str | None
    conditions: Mapping[str, Sequence[str]]  # column → values that it may have


class Lists:
    """The rule files as regular expressions."""

    def clauses(self, tier: patterns.Tier) -> list[Clause]:
        """Return the tier's rules in the order in which they are tried."""
        return [
            Clause(
                side,
                category,
                _pattern_of(rule.any),
                _pattern_of_any(rule.with_),
                _pattern_of_any(rule.unless),
                rule.conditions,
            )
            for rule in patterns.load_shipped()
            if rule.tier == tier
            for side, category in rule.category.items()
        ]

    @cached_property
    def _phrases(self) -> list[tuple[str, Party]]:
        """Return the phrases to search for, the longest first, each with the party that it names."""
        saying = [(phrase, party) for party in counterparties.load_parties() for phrase in party.says]
        wanted = search_literals([phrase for phrase, _ in saying])
        ranked = [(literal, party) for literal, (_, party) in zip(wanted, saying, strict=True)]
        return sorted(ranked, key=lambda each: (-len(each[0]), each[0]))

    @cached_property
    def name_searches(self) -> list[NameSearch]:
        """Return the searches: one for all phrases of a length, and one for each phrase with an exception."""
        return [
            search
            for _, same in groupby(self._phrases, lambda each: len(each[0]))
            for search in _list_searches(list(same))
        ]

    @cached_property
    def counterparties(self) -> pl.DataFrame:
        """Return the phrase found in a text (`phrase`) with COUNTERPARTY."""
        rows = [
            (_words(literal), party.purpose.slug, party.purpose.credit, party.purpose.debit)
            for literal, party in self._phrases
        ]
        columns = ("phrase", *COUNTERPARTY)
        return pl.DataFrame(rows, dict.fromkeys(columns, pl.String), orient="row").unique("phrase", keep="first")


def _list_searches(phrases: Sequence[tuple[str, Party]]) -> Iterator[NameSearch]:
    if plain := [literal for literal, party in phrases if not party.unless]:
        yield NameSearch(expression(plain))
    yield from (
        NameSearch(expression([literal]), _pattern_of(party.unless)) for literal, party in phrases if party.unless
    )


def _pattern_of_any(phrases: Sequence[str]) -> str | None:
    return _pattern_of(phrases) if phrases else None


def _pattern_of(phrases: Sequence[str]) -> str:
    return expression(search_literals(phrases))


def expression(wanted: Sequence[str]) -> str:
    """Return the result of `phrases.search_literals` as one regular expression.

    Words are letters, digits and spaces, so nothing needs quoting. Boundaries are outside the alternatives, so that
    Python's engine rejects each at its first letter.
    """
    bounded = groupby(sorted(wanted, key=_bounds), key=_bounds)
    return "|".join(f"{begin}(?:{'|'.join(map(_alternative, same))}){end}" for (begin, end), same in bounded)


def _bounds(literal: str) -> tuple[str, str]:
    begin = "^" if literal.startswith(" ^ ") else r"\b"
    return begin, "$" if literal.endswith(" $ ") else r"\b" if literal.endswith(" ") else ""


def _alternative(literal: str) -> str:
    return " ".join(_ANY_NUMBER.get(word, word) for word in _words(literal).split())


def _words(literal: str) -> str:
    bare = literal.strip().removeprefix("^ ").removesuffix(" $")
    return re.sub(_BEFORE_NUMBER_IN_PYTHON, r"\1 \2", bare)


class InPandas:
    """Compiled expressions, each applied to the rows that no earlier one decided."""

    def __init__(self, lists: Lists) -> None:
        cleaning = ((_APOSTROPHES, ""), (_GAPS_IN_PYTHON, " "), (_BEFORE_NUMBER_IN_PYTHON, r"\1 \2"))
        self._cleaning = [(re.compile(pattern), to) for pattern, to in cleaning]
        self._searches = [(re.compile(f"({search.says})"), _compile(search.unless)) for search in lists.name_searches]
        self._counterparties = lists.counterparties.to_pandas().set_index("phrase")
        self._decisive = list(map(_CompiledClause.from_clause, lists.clauses("decisive")))
        self._indicative = list(map(_CompiledClause.from_clause, lists.clauses("indicative")))

    def categories(self, narratives: pd.DataFrame) -> list[str]:
        """Return the category of each row.

        Args:
            narratives: the columns INPUT_COLUMNS.
        """
        words = self._clean_all(narratives["description"])
        found = self._counterparties.reindex(self._read_names(words)).set_index(words.index)
        rows = narratives.assign(words=words, purpose=found["purpose"])
        undecided = pd.Series(None, index=rows.index, dtype="object")
        category = _try_clauses(self._decisive, rows, undecided)
        category = category.fillna(found["credit"].where(rows["direction"] == "credit", found["debit"]))
        category = _try_clauses(self._indicative, rows, category)
        return category.fillna(rows["direction"].map(UNKNOWN)).to_list()

    def _clean_all(self, descriptions: "pd.Series[str]") -> "pd.Series[str]":
        words = descriptions.astype("object").str.normalize("NFKC").str.upper()
        for pattern, to in self._cleaning:
            words = words.str.replace(pattern, to, regex=True)
        return words.str.strip()

    def _read_names(self, words: "pd.Series[str]") -> "pd.Series[str]":
        """Return the words that name a counterparty in the lists."""
        phrase = pd.Series(None, index=words.index, dtype="object")
        for says, unless in self._searches:
            left = words[phrase.isna()]
            if unless is not None:
                left = left[~left.str.contains(unless)]
            phrase = phrase.fillna(left.str.extract(says, expand=False))
        return phrase


@dataclass(frozen=True)
class _CompiledClause:
    clause: Clause
    any: re.Pattern[str]
    with_: re.Pattern[str] | None
    unless: re.Pattern[str] | None

    @classmethod
    def from_clause(cls, clause: Clause) -> Self:
        return cls(clause, re.compile(clause.any), _compile(clause.with_), _compile(clause.unless))

    def select_decided(self, rows: pd.DataFrame) -> pd.Index:
        """Return the rows that the clause decides."""
        chosen = rows[rows["direction"] == self.clause.side]
        for column, values in self.clause.conditions.items():
            chosen = chosen[chosen[column].isin(values)]
        chosen = chosen[chosen["words"].str.contains(self.any)]
        if self.with_ is not None:
            chosen = chosen[chosen["words"].str.contains(self.with_)]
        if self.unless is not None:
            chosen = chosen[~chosen["words"].str.contains(self.unless)]
        return chosen.index


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern)


def _try_clauses(
    clauses: Sequence[_CompiledClause], rows: pd.DataFrame, category: "pd.Series[str]"
) -> "pd.Series[str]":
    decided = category.copy()
    for compiled in clauses:
        decided[compiled.select_decided(rows[decided.isna()])] = compiled.clause.category
    return decided


class InDuckDB:
    """One SQL statement: the first `WHEN` that holds decides."""

    def __init__(self, lists: Lists) -> None:
        self._counterparties = lists.counterparties
        self._statement = _statement(lists)

    def categories(self, narratives: Path) -> list[str]:
        """Return the category of each row.

        Args:
            narratives: Parquet with `row` and the columns INPUT_COLUMNS. A file is read by all cores.
        """
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.read_parquet(str(narratives)).create_view("narratives")
            connection.register("counterparties", self._counterparties.to_arrow())
            return list(connection.sql(self._statement).pl()["category"])


def _statement(lists: Lists) -> str:
    names = " ".join(
        f"WHEN {_matches(search.says)}{_no_match_sql(search.unless)} THEN regexp_extract(words, {_quote(search.says)})"
        for search in lists.name_searches
    )
    unknown = f"CASE direction WHEN 'credit' THEN '{UNKNOWN['credit']}' ELSE '{UNKNOWN['debit']}' END"
    return f"""
        WITH worded AS (SELECT *, {_clean("upper(description)")} AS words FROM narratives),
        named AS (SELECT *, CASE {names} END AS phrase FROM worded),
        known AS (SELECT * FROM named LEFT JOIN counterparties USING (phrase))
        SELECT coalesce(
            CASE {_when_clauses(lists.clauses("decisive"))} END,
            CASE direction WHEN 'credit' THEN credit ELSE debit END,
            CASE {_when_clauses(lists.clauses("indicative"))} END,
            {unknown}
        ) AS category FROM known ORDER BY row"""


def _clean(text: str) -> str:
    cleaning = ((_APOSTROPHES, ""), (_GAPS_IN_RE2, " "), (_BEFORE_NUMBER_IN_RE2, r"\1 \2"))
    for pattern, to in cleaning:
        text = f"regexp_replace({text}, {_quote(pattern)}, '{to}', 'g')"
    return f"trim({text})"


def _when_clauses(clauses: Sequence[Clause]) -> str:
    return " ".join(
        f"WHEN direction = '{clause.side}'{_where_sql(clause)} AND {_matches(clause.any)}{_match_sql(clause.with_)}"
        f"{_no_match_sql(clause.unless)} THEN '{clause.category}'"
        for clause in clauses
    )


def _where_sql(clause: Clause) -> str:
    return "".join(
        f" AND {column} IN ({', '.join(map(_quote, values))})" for column, values in clause.conditions.items()
    )


def _matches(pattern: str) -> str:
    return f"regexp_matches(words, {_quote(pattern)})"


def _match_sql(pattern: str | None) -> str:
    return "" if pattern is None else f" AND {_matches(pattern)}"


def _no_match_sql(pattern: str | None) -> str:
    return "" if pattern is None else f" AND NOT {_matches(pattern)}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
