"""Make `rules/brands/brands.tsv` from the npm package name-suggestion-index (`rules/brands/README.md`).

It takes the brands of the English-speaking markets and those found everywhere, with the trades of
`rules/brands/trades.yaml`. It leaves out names that the curated lists have, because the lists know more about them.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.enrichment.counterparties import counterparties
from pipelines.enrichment.counterparties.brands import BRANDS, COLUMNS, TRADES, Needs
from pipelines.enrichment.names import name_words
from pipelines.enrichment.wording.phrases import bare_words
from pipelines.vocabulary.rule_files import load_rules

MARKETS = frozenset({"au", "nz", "gb", "ie", "us", "ca", "za", "001"})  # ISO 3166 codes; 001 is the world
SPELLINGS = ("brand", "name", "short_name", "alt_name", "name:en", "brand:en")  # tags
_PLACE = re.compile(r" \(.*\)$")  # tells brands of the same name apart: Speedy Glass (Canada)
MIN_LETTERS = 4  # in a name that needs no card: ALDI, but not GAP (our judgement)


def build(index: Mapping[str, Any]) -> pl.DataFrame:
    """Return the brands (columns COLUMNS) of the index's `nsi` member, ordered by name."""
    tags: dict[str, set[str]] = {}
    spellings: dict[str, dict[str, None]] = {}
    for tag, item in _list_items(index):
        name = _PLACE.sub("", item["displayName"])
        tags.setdefault(name, set()).add(tag)
        spellings.setdefault(name, {}).update(dict.fromkeys(_list_spellings(item)))
    named = _assign_spellings(spellings)
    rows = []
    for spelling in _select_unlisted(named):
        names = named[spelling]
        if purposes := _list_purposes(set().union(*(tags[name] for name in names))):
            rows.append((names[0], purposes[0], _needs(spelling, has_several=len(purposes) > 1), spelling))
    return pl.DataFrame(rows, COLUMNS, orient="row").sort("name", "spelling")


def _assign_spellings(spellings: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the brands that each spelling stands for: all with this name, else the one with the shortest name."""
    shortest_last = sorted(spellings, key=lambda name: (-len(name), name))
    named = {spelling: [name] for name in shortest_last for spelling in spellings[name]}
    own: dict[str, list[str]] = {}
    for name in reversed(shortest_last):
        for spelling in _spell([name]):
            own.setdefault(spelling, []).append(name)
    return named | {spelling: names for spelling, names in own.items() if spelling in named}


def _list_purposes(tags: Set[str]) -> list[str]:
    """Return the purposes of a brand with these tags, the main one first."""
    lists = {purpose: set(listed.split()) for purpose, listed in load_rules(TRADES).items()}
    counted = tags - lists.pop("secondary") or tags
    return [purpose for purpose, listed in lists.items() if listed & counted]


def _list_items(index: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the items of our markets with their tag, such as `shop/shoes`."""
    for path, category in index.items():
        tree, _, tag = path.partition("/")
        for item in category["items"] if tree == "brands" else ():
            places = {str(place).partition("-")[0] for place in item["locationSet"].get("include", ["001"])}
            if places & MARKETS:
                yield tag, item


def _list_spellings(item: Mapping[str, Any]) -> Iterator[str]:
    tags = item["tags"]
    return _spell([item["displayName"], *(tags[tag] for tag in SPELLINGS if tag in tags), *item.get("matchNames", ())])


def _spell(written: Iterable[str]) -> Iterator[str]:
    """Yield names in the form that texts are compared in, without those that have other letters than A to Z."""
    texts = pl.Series([part.strip().upper() for each in written for part in each.split(";")], dtype=pl.String)
    for text in texts.to_frame("text").select(bare_words(pl.col("text")))["text"]:
        if text.replace(" ", "").isascii() and any(each.isalpha() for each in text) and len(text) > 1:
            yield text


def _select_unlisted(spellings: Iterable[str]) -> list[str]:
    texts = list(spellings)
    purposes = counterparties.load().purposes_in(texts)
    return [text for text, purpose in zip(texts, purposes, strict=True) if purpose is None]


def _needs(name: str, *, has_several: bool) -> Needs:
    """Return what a payment must show beside the name, because the name alone may mean somebody else."""
    letters = [name_words.load().letters.get(word) for word in name.split()]
    is_personal = all(letter in set("GSXgsx") for letter in letters)  # DAVID JONES, COOK
    if has_several or is_personal or len(name) < MIN_LETTERS:
        return "card"
    if None not in letters:  # HOME DEPOT
        return "alone"
    return "whole" if len(letters) == 1 else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pipelines.enrichment.training.brands", description=__doc__)
    parser.add_argument("package", type=Path, help="the unpacked package")
    folder = parser.parse_args().package
    index = json.loads((folder / "dist/json/nsi.min.json").read_text())
    target = Path(__file__).parents[1] / "rules" / BRANDS
    build(index["nsi"]).write_csv(target, separator="\t", quote_style="never")


if __name__ == "__main__":
    main()
