"""Find the name in the shape of a text, and decide whether it names a person or a business.

A shape (`name_words`) is split into runs of words that can belong to a name; purposes, numbers and signs separate them.
The first of `READINGS` that fits gives a run its score. A run right after a marker (TO, FROM, SQ *) scores more. The
run with the highest score is the name, and the first of equal runs wins. If a reading only leans towards a person, the
way of payment decides (`names`).

The scores are our judgement. They are only compared with each other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import polars as pl

_RUN = r"[FM]?[TLwJ&PoOHCZBGgSsXxIUNda]*Y|[FM]?[TLwJ&PoOHCZBGgSsXxIUNda]+[WD_]?|[FMWD_]"
_CALLED, _FAMILY, _PARTICLES = "[GgXxI]", "[SsXx]", "P{0,3}"
_READ = pl.Schema(
    {
        "run": pl.String(),
        "name_shape": pl.String(),
        "score": pl.Int32(),
        "kind": pl.String(),
        "leans": pl.Boolean(),
        "generic": pl.Boolean(),
        "skip": pl.Int64(),  # words of the run before the name
        "length": pl.Int64(),  # of the name, in words
    }
)
AFTER_MARKER, AFTER_INTERMEDIARY = 8, 40  # added to a run's score for its place
# A marker adds nothing to this score or a higher one. So in a text where a name precedes LOAN FROM SISTER CO, the name
# wins. To a run of several trades, a marker adds this much instead.
SURE = 30


@dataclass(frozen=True)
class Reading:
    """A regular expression over a run's letters. Its first group is what precedes the name, its second the name."""

    means: str
    pattern: str
    score: int
    kind: Literal["business", "person"] | None = None
    leans: bool = False  # towards a person, if the way of payment allows it
    generic: bool = False  # a trade, not a name, unless its place shows that it is one


READINGS = (
    Reading("a legal form ends it", r"^([w&oCZd]*)([^LY]*[^LYw&oCZd][^LY]*L+)", 60, "business"),
    Reading("a legal form ends words of purpose", r"^()([wBC&]+L+)", 58, "business"),
    Reading("an asterisk ends it", r"^([w&o]*)(.*Y)", 45, "business"),
    Reading("a trade alone", r"^([w&oZCd]*)(B)[w&oZCda]*$", 2, "business", generic=True),
    Reading("trades alone", r"^([w&oZd]*)(B[BC&oZ]*B)[w&oZCd]*$", 13, "business", generic=True),
    Reading(
        "a person, then a purpose",
        rf"^([w&o]*)((?:[GX][GgXxI]{{0,2}}|I{{1,2}}){_PARTICLES}{_FAMILY}{{1,2}})w",
        47,
        "person",
    ),
    Reading("words joined by OF", r"^([w&od]*)([^w]*[^wd]O[^w]*[^wd])", 40, "business"),
    Reading("a trade, then other words", r"^([w&od]*)(H?B[^BNCw]*[^BNCw&oZd])$", 38, "business"),
    Reading("a trade ends it", r"^([w&od]*)(.*[BN])", 40, "business"),
    Reading("an address", r"^d?.*(?:a|dP|d[GgSsXxU]{1,2}P)", -100),
    Reading("THE and words", r"^([w&o]*)(H[^w]*[^w&oZCd])", 30, "business"),
    Reading("a titled couple", r"^(.*?T&T)([GgSsXxUIP]{1,5})", 55, "person"),
    Reading("a title begins it", r"^(.*?T)([GgXxI]&[GgXxI][GgSsXxUIP]{1,3}|[GgSsXxUIP]{1,4})", 55, "person"),
    Reading("a couple", rf"^([w&o]*)({_CALLED}I?&{_CALLED}I?{_PARTICLES}[SX])", 52, "person"),
    Reading("perhaps a couple", rf"^([w&o]*)({_CALLED}I?&{_CALLED}I?{_PARTICLES}[sxU])", 50, leans=True),
    Reading("a family and a couple's initials", r"^([w&o]*)([SXsxU]I&I)", 50, "person"),
    Reading("partners", r"^([w&o]*)([GgSsXxUP]{1,2}&[GgSsXxUP]{1,2})", 34, "business"),
    Reading(
        "nothing but names",
        r"^([w&o]*)((?:[GgSsXxIP]*[GX][GgSsXxIP]*[GSX]|[GgSsXxIP]*[GSX][GgSsXxIP]*[GX])[GgSsXxIP]*)[w&oZCd]*$",
        51,
        "person",
    ),
    Reading("family name first", r"^([w&o]*)(SP?[GX][GgXx]{0,2}I?)", 46, "person"),
    Reading("given and family name", rf"^(.*?)([GX][GgXxI]{{0,2}}{_PARTICLES}{_FAMILY}{{1,2}})", 50, "person"),
    Reading("given and sure family name", rf"^(.*?)([gx][GgXxI]{{0,2}}{_PARTICLES}[SX]{{1,2}})", 48, "person"),
    Reading("given names", r"^([w&o]*)([GX]{2,3}P?)", 46, "person"),
    Reading("a given name and an unknown word", rf"^([w&o]*)([GX][GXI]{{0,2}}{_PARTICLES}U)", 44, leans=True),
    Reading("an unknown word and a given name", r"^([w&o]*)(U[GX])$", 35, leans=True),
    Reading("given name before a particle", r"^([w&o]*)([GXgx]{1,2}P)$", 40, leans=True),
    Reading("initials and family name", rf"^(.*?)(I{{1,3}}{_PARTICLES}[SX])", 42, "person"),
    Reading("family name and initials", r"^([w&o]*)([SX]I{1,2})", 40, "person"),
    Reading("initials and perhaps a name", rf"^([w&o]*)(I{{1,3}}{_PARTICLES}[sxgGU])", 36, leans=True),
    Reading("given name and initial", r"^([w&o]*)([GX]I)", 36, leans=True),
    Reading("weak given and family name", r"^([w&o]*)([gx][gxI]?[sx])", 34, leans=True),
    Reading("an unknown word and a family name", r"^([w&o]*)(US)[w&oZCd]*$", 33, leans=True),
    Reading("a given name alone", r"^([w&o]*)([GX])[w&oZCd]*$", 20, leans=True),
    Reading("a family name alone", r"^([w&o]*)(S)[w&oZCd]*$", 19),
    Reading("of a country", r"^([w&oZ]*)([^w]*[^wC&oZd]C)", 32, "business"),
    Reading("unknown words", r"^([w&od]*)([UGgSsXxIPHT][UGgSsXxIPHTZd&o]{0,4}[UGgSsXxP])", 15),
    Reading("an unknown word", r"^([w&odIPZ]*)([UGgSsXx])", 14),
)


def find_names(shapes: pl.Series) -> pl.DataFrame:
    """Find the name in each distinct shape.

    Returns:
        One row per shape: `shape`, and `settled` (see `_settle_letters`). The other columns are null where there is no
        name: `start` and `length` of the name in words, its letters `name_shape`, `kind` (business, person or null),
        `leans` (a person if the way of payment allows), `generic` (a trade and no name) and `after_intermediary`.
    """
    distinct = shapes.unique().to_frame("shape").with_columns(settled=_settle_letters(pl.col("shape")))
    runs = _split_into_runs(distinct["settled"].unique())
    read = runs.join(_read_runs(runs["run"].unique()), on="run", how="inner", validate="m:1")
    traded = pl.col("generic") & (pl.col("length") > 1)
    unsure = pl.col("run").str.starts_with("F") & (pl.col("score") < SURE)
    after = (
        pl.when(unsure & traded)
        .then(SURE)
        .when(unsure)
        .then(AFTER_MARKER)
        .when(pl.col("run").str.starts_with("M"))
        .then(AFTER_INTERMEDIARY)
        .otherwise(0)
    )
    best = (
        read.with_columns(total_score=pl.col("score") + after, start=pl.col("at") + pl.col("skip"))
        .sort("settled", "total_score", "at", descending=[False, True, False])
        .unique("settled", keep="first", maintain_order=True)
        .select(
            "settled",
            "start",
            "length",
            "name_shape",
            "kind",
            "leans",
            generic=pl.col("generic") & ~pl.col("run").str.contains("^[FM]"),
            after_intermediary=pl.col("run").str.starts_with("M"),
        )
    )
    return distinct.join(best, on="settled", how="left", validate="m:1")


def _split_into_runs(settled: pl.Series) -> pl.DataFrame:
    """Return every run of every settled shape: `settled`, `run`, and `at`, the number of words before it."""
    pieces = settled.to_frame("settled").with_columns(run=pl.col("settled").str.extract_all(_RUN))
    ends = pl.col("run").list.eval(pl.element().str.len_bytes().cast(pl.Int64).cum_sum())
    return (
        pieces.with_columns(end=ends)
        .explode("run", "end")
        .drop_nulls()
        .with_columns(at=pl.col("end") - pl.col("run").str.len_bytes())
        .drop("end")
    )


def _settle_letters(shape: pl.Expr) -> pl.Expr:
    """Replace letters that depend on their neighbours.

    JAN, APRIL, MAY and JUNE are names if AND precedes or a family name follows; else they are months. An intermediary's
    word without an asterisk is a prefix if it is at the start and a name follows; else it is an unknown word. DR is a
    title after TO, before a person's name, and before an ordinary word that ends the text and may be one; else it is
    the bank's word for a debit.
    """
    for pattern, letters in (
        ("FR", "FT"),
        ("R(I{0,2}(?:[GSX]|[gsx]+$))", "T$1"),
        ("R", "W"),
        ("&J", "&g"),
        ("J(I?[SX])", "g$1"),
        ("J", "W"),
        ("^([WFD_M]*)m([UGgSsXxTHINB])", "${1}M$2"),
        ("m", "U"),
    ):
        shape = shape.str.replace_all(pattern, letters)
    return shape


def _read_runs(runs: pl.Series) -> pl.DataFrame:
    """Read each distinct run (schema _READ). Runs that are no name are dropped.

    One by one: there are few distinct runs, and Polars would prepare every pattern of READINGS each time.
    """
    return pl.DataFrame([row for run in runs for row in _read_run(run)], _READ, orient="row")


def _read_run(run: str) -> Iterator[tuple[str, str, int, str | None, bool, bool, int, int]]:
    """Yield the name's place in the run, and the score and kind of the first reading that fits."""
    bare = run.lstrip("FM").rstrip("WD_")
    fits = ((reading, found) for reading in READINGS if (found := re.match(reading.pattern, bare)))
    for reading, found in islice(fits, 1):
        if reading.score > 0:
            before, name = found.groups()
            skip = len(before) + run.startswith(("F", "M"))
            yield run, name, reading.score, reading.kind, reading.leans, reading.generic, skip, len(name)
