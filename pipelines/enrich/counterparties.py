"""Who is on the other side: names that statements print, looked up in curated lists.

`rules/counterparties/*.yaml` holds, by purpose, canonical names with the phrases by which statements name them, and
`rules/purposes.yaml` what a payment to or from such a counterparty is. A phrase is found on whole words; one that ends
in `*` lets its last word go on, for banks cut names. All phrases are looked for at once (Aho–Corasick), so a text
costs the same whether the lists are short or long. The longest phrase wins: TYRO BUSINESS LOAN says more than TYRO.
Where what a payment is depends on other words of the text, a rule of `rules/patterns.yaml` says so, and names whom it
is with.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import starmap
from typing import Any

import polars as pl

from pipelines.enrich.taxonomy import TAXONOMY, RuleError, Sign, load_rules
from pipelines.schemas import CounterpartyKind

FOLDER = "counterparties"
CONFIDENCE = 0.8  # not calibrated: a name is certain, what was bought there is not
COLUMNS = ("counterparty_name", "counterparty_kind", "counterparty_lender_id")
_SIDES: tuple[Sign, Sign] = ("credit", "debit")
_NAMED = pl.Schema(
    {
        "party": pl.UInt32(),
        "counterparty_name": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "counterparty_lender_id": pl.String(),
        "credit": pl.String(),  # category of what comes from it; null where that can't be said
        "debit": pl.String(),  # of what goes to it
    }
)
_PHRASES = pl.Schema({"found": pl.String(), "party": pl.UInt32(), "says": pl.Boolean()})


@dataclass(frozen=True)
class Purpose:
    """What a kind of counterparty is for: the categories of money that comes from it and goes to it."""

    kind: str
    credit: str | None = None
    debit: str | None = None


@dataclass(frozen=True)
class Party:
    """A counterparty: its phrases, and those beside which it is somebody else's name."""

    name: str
    purpose: Purpose
    says: Sequence[str]
    unless: Sequence[str] = ()

    @property
    def lender_id(self) -> str | None:
        return "-".join(words(self.name).lower().split()) if self.purpose.kind == "lender" else None


def words(text: str) -> str:
    """`text` as phrases are compared: upper case, apostrophes gone, all else but letters and digits a single space."""
    return " ".join(re.findall(r"[^\W_]+", re.sub("['’]", "", text.upper())))


def _words(text: pl.Expr) -> pl.Expr:
    """The same, of upper-case text in columns, and a space at either end."""
    return " " + text.str.replace_all("['’]", "").str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars() + " "


class Directory:
    """The lists, made ready for the look-up."""

    def __init__(self, parties: Sequence[Party]) -> None:
        self._named = pl.DataFrame(list(starmap(_named, enumerate(parties))), _NAMED, orient="row")
        self._phrases = pl.DataFrame(list(_phrases(parties)), _PHRASES, orient="row")
        self._literals = self._phrases["found"].unique(maintain_order=True).implode()

    def look_up(self, texts: pl.Series) -> pl.DataFrame:
        """Those of the texts that name somebody: `text` and the columns of the counterparty, one row a text.

        Args:
            texts: distinct descriptions in compatibility form and upper case (`matching_text`).
        """
        hits = (
            pl.DataFrame({"text": texts})
            .with_columns(found=_words(pl.col("text")).str.extract_many(self._literals, overlapping=True))
            .explode("found")
            .drop_nulls()
            .join(self._phrases, on="found", maintain_order="left")
        )
        best = (
            hits.filter(pl.col("says").all().over("text", "party"))
            .sort(pl.col("found").str.len_chars(), "found", descending=[True, False])
            .unique("text", keep="first", maintain_order=True)
        )
        return best.join(self._named, on="party", validate="m:1").drop("found", "says", "party")


def _named(number: int, party: Party) -> tuple[int | str | None, ...]:
    purpose = party.purpose
    return number, party.name, purpose.kind, party.lender_id, purpose.credit, purpose.debit


def _phrases(parties: Sequence[Party]) -> Iterator[tuple[str, int, bool]]:
    for number, party in enumerate(parties):
        yield from ((_literal(phrase), number, True) for phrase in party.says)
        yield from ((_literal(phrase), number, False) for phrase in party.unless)


def _literal(phrase: str) -> str:
    """With the spaces that bound it; none at the end where the last word may go on."""
    return f" {words(phrase)}" if phrase.endswith("*") else f" {words(phrase)} "


def load() -> Directory:
    """The lists of `rules/`.

    Raises:
        RuleError: naming the file, the counterparty and the reason, for every fault.
    """
    names = sorted(file.name for file in files("pipelines.enrich").joinpath("rules", FOLDER).iterdir())
    return Directory(checked(load_rules("purposes.yaml"), {name: load_rules(f"{FOLDER}/{name}") for name in names}))


def checked(purposes: Mapping[str, Mapping[str, str]], lists: Mapping[str, Any]) -> list[Party]:
    """The counterparties of all files, or every fault of theirs at once."""
    faults = [*_purpose_faults(purposes), *_list_faults(purposes, lists)]
    if faults:
        raise RuleError("\n".join(faults))
    return [
        _party(name, Purpose(**purposes[purpose]), entry)
        for purposed in lists.values()
        for purpose, parties in purposed.items()
        for name, entry in parties.items()
    ]


def _party(name: str, purpose: Purpose, entry: Any) -> Party:
    return Party(name, purpose, **entry) if isinstance(entry, dict) else Party(name, purpose, entry)


def _purpose_faults(purposes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for name, purpose in purposes.items():
        if not {"kind"} <= purpose.keys() <= {"kind", *_SIDES}:
            yield f"purposes.yaml, {name}: it takes kind, credit and debit"
            continue
        if purpose["kind"] not in CounterpartyKind.categories:
            yield f"purposes.yaml, {name}: there is no kind {purpose['kind']}"
        for side in _SIDES:
            if side in purpose and not _belongs(purpose[side], side):
                yield f"purposes.yaml, {name}: no category {purpose[side]} belongs on the side {side}"


def _belongs(slug: str, side: Sign) -> bool:
    return slug in TAXONOMY.categories and TAXONOMY.categories[slug].sign in (side, "either")


def _list_faults(purposes: Mapping[str, Any], lists: Mapping[str, Any]) -> Iterator[str]:
    first: dict[str, str] = {}
    for file, purposed in lists.items():
        for purpose, parties in purposed.items():
            if purpose not in purposes:
                yield f"{file}: there is no purpose {purpose}"
            for name, entry in parties.items():
                where = f"{file}, {purpose}, {name}"
                says = _says(entry)
                if not says:
                    yield f"{where}: takes a list of phrases, or `says` and `unless`"
                for phrase in says:
                    if first.setdefault(_literal(phrase), where) != where:
                        yield f"{where}: {phrase!r} stands already under {first[_literal(phrase)]}"


def _says(entry: Any) -> Sequence[str]:
    """The phrases that say it, or none where the entry is not what one should be."""
    lists = [entry]
    if isinstance(entry, dict):
        lists = [entry.get("says"), entry.get("unless", ["-"])] if entry.keys() <= {"says", "unless"} else []
    sound = all(isinstance(each, list) and each and all(isinstance(text, str) for text in each) for each in lists)
    return lists[0] if lists and sound and all(map(words, lists[0])) else ()
