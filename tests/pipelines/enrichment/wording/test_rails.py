"""The examples in `rules/rails.yaml`."""

import polars as pl
import pytest

from pipelines.enrichment.wording.details import read_details
from pipelines.enrichment.wording.rails import load_customers_name, load_section
from pipelines.vocabulary.schemas import Channel

COUNTRIES = {"AU", "NZ", "UK", "IE", "US", "CA", "ZA", "SG", "IN"}
SECTIONS = ("rails", "cuts", "glued", "customer")


def _read_lines(*lines: str) -> list[dict[str, str]]:
    read = read_details(pl.Series(lines)).select(pl.col("clean_description", "channel").cast(pl.String))
    return read.rows(named=True)


def test_examples_become_the_clean_descriptions_given(subtests: pytest.Subtests) -> None:
    entries = [entry for name in SECTIONS for entry in load_section(name)]
    examples = [(entry, *pair) for entry in entries for pair in entry["matches"].items()]
    read = _read_lines(*(line for _, line, _ in examples))
    for (entry, line, clean), found in zip(examples, read, strict=True):
        with subtests.test(line):
            assert found == {"clean_description": clean, "channel": entry.get("channel", found["channel"])}


def test_near_misses_lose_no_word(subtests: pytest.Subtests) -> None:
    lines = [line for name in SECTIONS for entry in load_section(name) for line in entry["not"]]
    for line, found in zip(lines, _read_lines(*lines), strict=True):
        with subtests.test(line):
            assert found["clean_description"] == line.strip("#")


def test_entries_name_known_countries_and_channels() -> None:
    entries = [entry for name in SECTIONS for entry in load_section(name)]
    assert {country for entry in entries for country in entry["countries"]} == COUNTRIES
    assert {entry["channel"] for entry in load_section("rails")} <= set(Channel.categories)


def test_rules_do_not_read_the_customers_own_name() -> None:
    line = "GUSTO DES:NET ID:6SEMJ0K INDN:BIGSKY LANDSCAPE CO ID:9138864007 CCD"
    assert pl.select(pl.lit(line).str.replace(load_customers_name(), "")).item() == "GUSTO DES:NET ID:6SEMJ0K "
