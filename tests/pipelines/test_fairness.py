"""How people live, where they come from and what they are called enters no rating, unless a lender's policy says so.

Rows of the categories below are shown, and read like any other cost of their size: a business with such rows gets the
report of one that paid as much to a café.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import polars.selectors as cs
import pytest

from pipelines.decisions.plan import plan_policy
from pipelines.enrichment.enrichment import derive
from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.enrichment.reading import read_rows
from pipelines.metrics import METRICS, Metric, Metrics, select_with_inputs
from pipelines.metrics.definition import Transactions, Where
from pipelines.risk_models.event_definitions import definitions
from pipelines.scorecards.default import DEFAULT
from pipelines.vocabulary.taxonomy import GROUPS
from tests.pipelines.enrichment.examples import held_rows
from tests.pipelines.reports.examples import START, Row, add_balances, mark_balances, reports, row
from tests.pipelines.test_reasons import POLICIES, RULESETS

# Union fees are `education`, like other memberships; gifts to a congregation are `donations`.
PRIVATE = ("donations", "education", "gambling", "health", "overseas_remittance")
NEUTRAL = "meals"
OPT_IN = "gambling-share"  # a ruleset that a lender may adopt
WEEKS = 30
# The same payments in several languages, as foreign banks and senders write them.
LANGUAGES: Mapping[str, Sequence[str]] = {
    "italian": ("BONIFICO A GIUSEPPE ROSSI", "REGALO PER LUCIA", "AIUTO FAMIGLIA"),
    "vietnamese": ("CHUYEN TIEN CHO NGUYEN VAN MINH", "QUA CHO LAN", "GIUP DO GIA DINH"),
    "arabic": ("TAHWIL ILA MOHAMMED HADDAD", "HADIYA LI LAYLA", "MUSAADA AL AILA"),
    "chinese": ("ZHUANZHANG GEI WANG WEI", "LIWU GEI MEILING", "JIATING BANGZHU"),
    "arabic script": ("تحويل إلى محمد حداد", "هدية ليلى", "مساعدة العائلة"),
    "chinese script": ("转账给王伟", "礼物给美玲", "家庭帮助"),
}
SERVICES_AUSTRALIA = {"counterparty_group": "services-australia", "category_source": "pattern"}
RENAMED = {
    "account_name": "Al-Nour Halal Groceries",
    "counterparty_name": "Abdirahman Warsame",
    "counterparty_kind": "person",
    "description": "XAWILAAD QOYSKA",
}


def weekly(amount: str, category: str, **fields: Any) -> list[Row]:
    return [row(7 * week, amount, kind=f"{GROUPS[category]}/{category}", **fields) for week in range(WEEKS)]


def business(*others: Row) -> list[Row]:
    """Return the rows of weekly takings and costs, with the given rows among them and with balances."""
    trade = [*weekly("1400", "card_settlement"), *weekly("-1050", "suppliers"), *others]
    return mark_balances(add_balances(sorted(trade, key=lambda each: each["date"]), opening="9000"))


@cache
def enrich_payments() -> Mapping[str, list[Row]]:
    """Return payments of each language with what enrichment reads from their texts."""
    sent = [{"description": text, "amount": Decimal(-90)} for texts in LANGUAGES.values() for text in texts]
    derived = derive(read_rows(held_rows(*sent).select(KNOWN.names())))
    fields = derived.select("description", cs.starts_with("category", "counterparty"), "confidence").to_dicts()
    by_text = {each["description"]: each for each in fields}
    return {
        language: [{**row(7 * nth, "-90"), **by_text[text]} for nth, text in enumerate(texts)]
        for language, texts in LANGUAGES.items()
    }


def understood_by_nobody(rows: Sequence[Row]) -> list[Row]:
    unknown = {"category": "unknown_debit", "category_group": "unknown", "category_source": "fallback"}
    return [{**each, **unknown, "confidence": None} for each in rows]


def variants() -> Mapping[str, list[Row]]:
    """Return the rows of one business by variant: other private payments, benefits, languages or names."""
    plain = [row(7 * nth, "-90", description="PLAIN WORDS") for nth in range(3)]
    return {
        **{category: business(*weekly("-90", category)) for category in (NEUTRAL, *PRIVATE)},
        **{category: business(*weekly("90", category)) for category in ("customer_transfer", "government_receipt")},
        "child support": business(*weekly("-90", "garnishee", **SERVICES_AUSTRALIA)),
        "benefits paid back": business(*weekly("-90", "debt_collector", **SERVICES_AUSTRALIA)),
        **{name: business(*understood_by_nobody(rows)) for name, rows in enrich_payments().items()},
        "plain words": business(*understood_by_nobody(plain)),
        "usual names": business(),
        "other names": [{**each, **RENAMED} for each in business()],
    }


@pytest.fixture(scope="module")
def risk_reports() -> Mapping[str, Any]:
    """Return the risk report of each variant."""
    customers = list(enumerate(variants().items()))
    rows = [
        {**each, "customer_number": number, "account_id": number.to_bytes(16, "big")}
        for number, (_, rows) in customers
        for each in rows
    ]
    data = dict(reports("risk", rows, START + timedelta(days=7 * WEEKS)))
    return {name: data[number] for number, (name, _) in customers}


@pytest.mark.parametrize("category", [*PRIVATE, "child support", "benefits paid back"])
def test_private_purposes_are_read_like_a_meal(risk_reports: Mapping[str, Any], category: str) -> None:
    assert risk_reports[category] == risk_reports[NEUTRAL]


def test_benefits_are_read_like_takings(risk_reports: Mapping[str, Any]) -> None:
    assert risk_reports["government_receipt"] == risk_reports["customer_transfer"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_at_equal_coverage_the_language_changes_no_rating(risk_reports: Mapping[str, Any], language: str) -> None:
    assert risk_reports[language] == risk_reports["plain words"]


def test_names_and_texts_alone_enter_no_score(risk_reports: Mapping[str, Any]) -> None:
    assert risk_reports["other names"] == risk_reports["usual names"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_foreign_word_is_taken_for_trouble(language: str) -> None:
    groups = {each["category_group"] for each in enrich_payments()[language]}
    assert groups.isdisjoint({"distress", "debt_service", "high_risk"})


def filters(metrics: Metrics) -> Iterator[Where]:
    for metric in metrics.values():
        if isinstance(metric.definition, Transactions):
            yield from (each for each in (metric.definition.where, metric.definition.of) if each is not None)


def list_shipped_metrics() -> Iterator[Any]:
    """Yield what decides something, and the metrics that it reads."""
    yield pytest.param(
        select_with_inputs(sorted(feature.metric for feature in DEFAULT.features), METRICS), id="scorecard"
    )
    for slug, policy in POLICIES.items():
        yield pytest.param(plan_policy(policy).metrics, id=slug)
    for slug, ruleset in RULESETS.items():
        if slug != OPT_IN:
            own: dict[str, Metric] = {metric.slug: metric for metric in ruleset.metrics}
            yield pytest.param(own, id=slug)


@pytest.mark.parametrize("metrics", list(list_shipped_metrics()))
def test_nothing_shipped_selects_rows_of_a_private_purpose(metrics: Metrics) -> None:
    selected = {name for where in filters(metrics) for name in (*where.categories, *where.groups)}
    assert selected.isdisjoint({*PRIVATE, *(GROUPS[category] for category in ("gambling", "overseas_remittance"))})


def test_no_event_is_of_a_private_purpose() -> None:
    selected = {name for each in definitions().values() for name in (*each.where.categories, *each.where.groups)}
    assert selected.isdisjoint(PRIVATE)


def test_gambling_is_watched_only_by_a_ruleset_that_a_lender_adopts() -> None:
    assert not RULESETS[OPT_IN].active
    assert any("gambling" in where.categories for where in filters({m.slug: m for m in RULESETS[OPT_IN].metrics}))
    assert "gambling_share_180d" in METRICS  # for a policy that a lender signs
