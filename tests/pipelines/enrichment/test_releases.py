"""Changed rules need a new version, and the effect of a version on rows and figures is reported."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from pipelines.portfolio import releases
from pipelines.portfolio.impact import EXAMPLES, Impact, compare, merge
from pipelines.portfolio.releases import fingerprint, parse_releases
from pipelines.vocabulary.rule_files import RuleError
from pipelines.vocabulary.taxonomy import GROUPS, VERSION
from tests.conftest import examples
from tests.pipelines.enrichment.examples import held_rows

AS_OF = date(2026, 4, 1)
FIRST: dict[str, Any] = {
    "version": 1,
    "taxonomy": 1,
    "date": date(2026, 7, 1),
    "changes": ["The first."],
    "impact": "None.",
    "fingerprint": None,
}
SECOND = {**FIRST, "version": 2, "fingerprint": "ab"}


def test_rules_match_the_fingerprint_of_the_last_release() -> None:
    """This fails on purpose if a rule, list, category or the model changed: record a release (see releases.yaml)."""
    last = releases.releases()[-1]
    assert last.fingerprint == fingerprint()
    assert (last.version, last.taxonomy) == (ENRICHMENT_VERSION, VERSION)


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([], "takes a list"),
        ({"version": 1}, "takes a list"),
        ([{**SECOND, "note": "x"}], "release 1: it takes"),
        ([{**SECOND, "changes": []}], "changes must be a list"),
        ([{**SECOND, "impact": " "}], "impact must be a text"),
        ([{**SECOND, "date": "yesterday"}], "the date must be a day"),
        ([{**SECOND, "version": "2"}], "versions must be whole numbers"),
        ([FIRST], "the last release has no fingerprint"),
        ([FIRST, {**SECOND, "version": 3}], "release 3 comes right after release 1: one is missing"),
        ([FIRST, {**SECOND, "taxonomy": 0}], "older taxonomy"),
        ([FIRST, {**SECOND, "date": date(2026, 6, 30)}], "older taxonomy or date"),
    ],
)
def test_a_broken_list_of_releases_is_refused_with_the_reason(entries: Any, fault: str) -> None:
    with pytest.raises(RuleError, match=fault):
        parse_releases(entries)


def test_sound_releases_are_read() -> None:
    assert [each.version for each in parse_releases([FIRST, SECOND])] == [1, 2]


def test_fingerprint_depends_on_names_and_contents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(releases, "files", lambda _: tmp_path)
    lists = tmp_path / "rules" / "lists"
    lists.mkdir(parents=True)
    (lists / "a.yaml").write_text("x")
    first = fingerprint()
    for noise in ("code.py", "releases.yaml"):
        (lists / noise).write_text("noise")
    assert fingerprint() == first
    (lists / "a.yaml").write_text("y")
    changed = fingerprint()
    (lists / "a.yaml").rename(lists / "b.yaml")
    assert len({first, changed, fingerprint()}) == 3
    (tmp_path / "learned").mkdir()
    (tmp_path / "learned" / "model.bin").write_bytes(b"\0")
    assert len({first, changed, fingerprint()}) == 3


def rows_under(*categories: str, amounts: tuple[str, ...] = (), **fields: Any) -> pl.DataFrame:
    """Return a customer's rows under a version that gives them these categories."""
    sums = amounts or ("-10",) * len(categories)
    rows = [
        {
            "category": slug,
            "category_group": GROUPS[slug],
            "amount": Decimal(amount),
            "revision": 1,
            "is_transfer": False,
            "flags": [],
            "category_source": "pattern",
            **fields,
        }
        for slug, amount in zip(categories, sums, strict=True)
    ]
    return held_rows(*rows)


def figure(impact: Impact, name: str) -> tuple[Any, ...]:
    return impact.summed_figures().filter(figure=name).select("customers", "before", "after").row(0)


def test_moved_rows_are_reported_with_counts_and_dollars() -> None:
    amounts = ("-10", "-5", "700")
    before = rows_under("rent", "rent", "customer_transfer", amounts=amounts)
    after = rows_under("fuel", "fuel", "owner_contribution", amounts=amounts)
    impact = compare(before, after, AS_OF)
    assert impact.moved.rows() == [
        ("customer_transfer", "owner_contribution", 1, Decimal("700.00")),
        ("rent", "fuel", 2, Decimal("15.00")),
    ]
    assert (impact.customers, impact.rows, impact.only_one) == (1, 3, 0)
    assert impact.examples.select("from", "to", "amount").row(0) == (
        "customer_transfer",
        "owner_contribution",
        Decimal("700.00"),
    )


def test_headline_figures_are_reported_before_and_after() -> None:
    before = rows_under("customer_transfer", "rent", amounts=("700", "-10"))
    after = rows_under("owner_contribution", "rent", amounts=("700", "-10"))
    impact = compare(before, after, AS_OF)
    assert figure(impact, "revenue") == (1, Decimal(700), Decimal(0))
    assert figure(impact, "moneyIn") == (0, Decimal(700), Decimal(700))
    changed = impact.changed_figures()
    assert changed.filter(report="aggregate")["figure"].to_list() == ["revenue"]
    assert "days_since_revenue" in changed.filter(report="metrics")["figure"]


def test_new_transfer_reduces_money_in() -> None:
    before = rows_under("customer_transfer", amounts=("700",))
    after = rows_under("own_transfer", amounts=("700",), is_transfer=True)
    impact = compare(before, after, AS_OF)
    assert figure(impact, "moneyIn") == (1, Decimal(700), Decimal(0))
    assert figure(impact, "transfersIn") == (1, Decimal(0), Decimal(700))


def test_equal_versions_move_nothing() -> None:
    rows = rows_under("rent", "fuel")
    impact = compare(rows, rows, AS_OF)
    assert impact.moved.is_empty()
    assert impact.examples.is_empty()
    assert impact.changed_figures().is_empty()
    assert impact.summed_figures()["customers"].sum() == 0


def test_only_rows_of_both_versions_are_compared() -> None:
    before, after = rows_under("rent"), rows_under("fuel", "fuel", amounts=("-10", "-99"))
    impact = compare(before, after, AS_OF)
    assert (impact.rows, impact.only_one) == (1, 1)
    assert figure(impact, "moneyOut") == (0, Decimal(10), Decimal(10))


def test_superseded_row_is_not_compared() -> None:
    before = rows_under("rent", superseded_seq=9)
    assert compare(before, rows_under("fuel", superseded_seq=9), AS_OF).rows == 0


def test_the_largest_examples_are_few_and_largest_first() -> None:
    amounts = tuple(str(n) for n in range(1, 40))
    many = len(amounts)
    impact = compare(
        rows_under(*["rent"] * many, amounts=amounts), rows_under(*["fuel"] * many, amounts=amounts), AS_OF
    )
    assert impact.examples["amount"].to_list() == [Decimal(n) for n in range(39, 39 - EXAMPLES, -1)]


def test_no_customers_give_an_empty_impact() -> None:
    impact = merge([])
    assert impact.customers == 0
    assert impact.summed_figures().is_empty()


slugs = st.sampled_from(["rent", "fuel", "customer_transfer", "own_transfer", "wages"])
lines = st.tuples(st.integers(1, 4), slugs, slugs, st.integers(-500, 500))


@pytest.mark.service  # enriches a portfolio several times for each example
@examples(1)  # each makes all reports and metrics several times
@given(st.lists(lines, min_size=1, max_size=12))
def test_impact_on_all_customers_is_the_sum_over_parts(some: list[tuple[int, str, str, int]]) -> None:
    def under(place: int) -> pl.DataFrame:
        rows: list[dict[str, Any]] = [
            {
                "customer_number": line[0],
                "category": line[place],
                "category_group": GROUPS[str(line[place])],
                "amount": Decimal(line[3]),
                "revision": 1,
                "is_transfer": False,
                "flags": [],
            }
            for line in some
        ]
        return held_rows(*rows)

    before, after = under(1), under(2)
    whole = compare(before, after, AS_OF)
    customer = pl.col("customer_number")
    parts = [compare(before.filter(customer % 2 == n), after.filter(customer % 2 == n), AS_OF) for n in (0, 1)]
    together = merge(parts)
    assert together.moved.equals(whole.moved)
    for name in ("figures", "examples", "of_customers", "ratings"):
        assert getattr(together, name).equals(getattr(whole, name)), name
    assert (together.rows, together.customers) == (whole.rows, whole.customers)
    moved = [line for line in some if line[1] != line[2]]
    assert whole.moved["count"].sum() == len(moved)
    assert whole.moved["dollars"].sum() == sum(abs(line[3]) for line in moved)
