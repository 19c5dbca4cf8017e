"""The terms of the reports agree with the taxonomy."""

import polars as pl
import pytest

from pipelines.figures import words
from pipelines.vocabulary.taxonomy import TAXONOMY
from tests.pipelines.reports.examples import row, transactions


def slugs(word: pl.Expr, amount: str = "1") -> set[str]:
    """Return the categories that a term covers."""
    each = [row(0, amount, kind=f"{category.group}/{category.slug}") for category in TAXONOMY.categories.values()]
    return set(transactions(each).filter(word).collect()["category"])


def test_revenue_matches_the_categories_that_count_as_revenue() -> None:
    counted = {slug for slug, category in TAXONOMY.categories.items() if category.counts_as_revenue}
    assert slugs(words.is_revenue()) == counted


def test_only_unknown_categories_are_uncategorised() -> None:
    assert set(TAXONOMY.categories) - slugs(words.is_categorised()) == {"unknown_credit", "unknown_debit"}


@pytest.mark.parametrize(
    ("word", "covered"),
    [
        (words.is_returned_payment(), {"returned_payment"}),
        (words.is_own_transfer(), {"own_transfer", "related_entity"}),
    ],
)
def test_a_term_covers_existing_categories(word: pl.Expr, covered: set[str]) -> None:
    assert slugs(word) == covered


def test_a_returned_payment_is_money_in() -> None:
    assert slugs(words.is_returned_payment(), "-1") == set()


def test_debt_service_is_money_out_of_its_group() -> None:
    group = {slug for slug, category in TAXONOMY.categories.items() if category.group == "debt_service"}
    assert slugs(words.is_debt_service(), "-1") == group != set()
    assert slugs(words.is_debt_service(), "1") == set()


def test_a_paired_transfer_is_never_revenue() -> None:
    paired = row(0, "1", kind="revenue/customer_transfer", is_transfer=True)
    assert transactions([paired]).filter(words.is_revenue()).collect().is_empty()


def test_a_paired_transfer_corrected_to_revenue_is_revenue() -> None:
    details = row(0, "1", kind="revenue/customer_transfer", is_transfer=True, category_source="correction")
    assert transactions([details]).filter(words.is_revenue()).collect().height == 1


def test_a_row_is_unreconciled_where_its_pdf_statement_does_not_prove_it() -> None:
    verdicts = [
        (None, None, False),  # sent as JSON or CSV: no claim
        ("reconciled", True, False),
        ("reconciled_dates_doubtful", True, False),
        ("partial", True, False),
        ("partial", False, True),
        ("unreconciled", False, True),
        # stored before rows had their own flag: the verdict on the whole statement counts
        ("reconciled", None, False),
        ("reconciled_dates_doubtful", None, False),
        ("partial", None, True),
        ("unreconciled", None, True),
    ]
    rows = transactions(
        row(0, "1", statement_verdict=verdict, statement_proved=proved) for verdict, proved, _ in verdicts
    )
    assert rows.select(words.is_unreconciled()).collect().to_series().to_list() == [
        unreconciled for _, _, unreconciled in verdicts
    ]
