"""Reports as of another day or as known at another time, and the transactions behind every figure."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from sqlalchemy import delete, func, select

from api.reports import replay
from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS
from pipelines.reports import REPORTS
from storage.core.models import customers, locations
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.worker import end_submissions

SALE = {"amount": Decimal("812.40"), "direction": "credit", "category": "card_settlement", "category_group": "revenue"}
FIRST = [
    {**SALE, "date": date(2026, 5, 4), "balance": Decimal("1812.40")},
    {"date": date(2026, 5, 20), "amount": Decimal("-100.15"), "balance": Decimal("1712.25")},
]
SECOND = [*FIRST, {**SALE, "date": date(2026, 6, 2), "amount": Decimal("50.00"), "balance": Decimal("1762.25")}]


@pytest.fixture
def path(store: Store, client: Client) -> str:
    """The path of the reports of a customer whose transactions have their second version."""
    customer_id = client.new_customer()
    for rows in (FIRST, SECOND):
        client.submit_transactions(customer_id)
        end_submissions(store, rows)
    return f"/v1/customer/{customer_id}/reports"


@pytest.fixture
def facts_read(monkeypatch: pytest.MonkeyPatch) -> list[date]:
    """The days of the reports whose rows have been read since."""
    read: list[date] = []
    facts = replay.Basis.facts

    def note(basis: replay.Basis, caller: Any) -> Facts:
        read.append(basis.as_of)
        return facts(basis, caller)

    monkeypatch.setattr(replay.Basis, "facts", note)
    return read


def data(client: Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_float=Decimal)["data"]


def months(bundle: Any) -> dict[str, Any]:
    [table] = [table for table in bundle["aggregate"]["data"]["tables"] if table["id"] == "monthly_cash_flow"]
    return {month["month"]: month for month in table["values"]}


def test_a_replay_counts_only_rows_up_to_the_day(client: Client, path: str) -> None:
    until = data(client, path, asOf="2026-05-31")
    assert list(months(until)) == ["2026-05-01"]
    assert (until["risk"]["asOf"], until["risk"]["dataThrough"]) == ("2026-05-31", "2026-05-20")
    assert until["risk"]["generatedAt"] is None
    assert list(months(data(client, path, asOf="2026-06-30"))) == ["2026-05-01", "2026-06-01"]


def test_the_same_moment_gives_the_same_bytes(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch, facts_read: list[date]
) -> None:
    query = {"asOf": "2026-06-30", "dataVersion": 2}
    cached = [client.get(path, params=query).content for _ in range(2)]
    monkeypatch.setattr(replay, "find_cache", lambda _: replay.Cache())
    computed = [client.get(path, params=query).content for _ in range(2)]
    assert len({*cached, *computed}) == 1
    assert len(facts_read) == 3


def test_a_moment_is_computed_again_only_if_something_else_is_known(
    store: Store, client: Client, path: str, facts_read: list[date]
) -> None:
    def count_reads(**query: Any) -> int:
        facts_read.clear()
        for _ in range(2):
            data(client, path, **query)
            data(client, f"{path}/diff", fromAsOf="2026-05-31", **query)
        return len(facts_read)

    assert count_reads(asOf="2026-06-30") == 1 + 2  # the reports, and both sides of the comparison
    assert count_reads(asOf="2026-06-30") == 0
    assert count_reads(asOf="2026-06-29") == 3
    client.call("PUT", path.replace("/reports", "/attributes"), json={"attributes": {"trading_name": "Harbour Café"}})
    assert count_reads(asOf="2026-06-30") == 3
    client.submit_transactions(path.split("/")[3])
    end_submissions(store, SECOND)
    assert count_reads(asOf="2026-06-30") == 3


def test_a_comparison_and_the_reports_that_it_compares_share_their_computation(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[date] = []

    def compute(facts: Facts) -> pl.DataFrame:
        computed.append(facts.as_of)
        return REPORTS["risk"].compute(facts)

    monkeypatch.setattr(replay, "REPORTS", {**REPORTS, "risk": replace(REPORTS["risk"], compute=compute)})
    data(client, path, asOf="2026-06-30")
    for day in ("2026-05-31", "2026-04-30"):
        data(client, f"{path}/diff", fromAsOf=day, asOf="2026-06-30", report="risk")
    compared = client.get(path, params={"asOf": "2026-05-31"}).content
    assert computed == [date(2026, 6, 30), date(2026, 5, 31), date(2026, 4, 30)]
    monkeypatch.setattr(replay, "find_cache", lambda _: replay.Cache())
    assert client.get(path, params={"asOf": "2026-05-31"}).content == compared


def fail(_: Facts) -> pl.DataFrame:
    raise RuntimeError


FAILING = {**REPORTS, "risk": replace(REPORTS["risk"], compute=fail)}


def test_a_report_that_failed_is_computed_again(client: Client, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(replay, "REPORTS", FAILING)
        failed = data(client, path, asOf="2026-06-30")
        assert {kind: each["failed"] for kind, each in failed.items()} == {
            "completeness": False,
            "risk": True,
            "aggregate": False,
        }
    assert not data(client, path, asOf="2026-06-30")["risk"]["failed"]


def test_the_explanation_of_a_figure_uses_the_report_that_was_computed(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = data(client, path, asOf="2026-06-30")["risk"]["data"]["value"]
    monkeypatch.setattr(replay, "REPORTS", FAILING)
    assert data(client, f"{path}/risk/lineage", figure="/value", asOf="2026-06-30")["value"] == value


def test_an_earlier_version_gives_its_own_reports(client: Client, path: str) -> None:
    before = data(client, path, asOf="2026-06-30", dataVersion=1)
    assert (list(months(before)), before["aggregate"]["dataVersion"]) == (["2026-05-01"], 1)


def test_reports_before_the_first_transaction_are_pending(client: Client, path: str) -> None:
    nothing = data(client, path, dataVersion=0)
    assert {member["status"] for member in nothing.values()} == {"pending"}


def test_an_unknown_version_is_not_found(client: Client, path: str) -> None:
    answer = client.get(path, params={"dataVersion": 9})
    assert (answer.status_code, answer.json()["code"]) == (404, "Report.VersionUnknown")


def test_a_version_that_is_no_longer_stored_is_gone(store: Store, client: Client, path: str) -> None:
    with store.db.writing() as w:
        number = w.execute(select(func.max(customers.c.number))).scalar_one()
        w.execute(delete(locations).where(locations.c.customer_number == number, locations.c.data_version == 1))
    answer = client.get(path, params={"dataVersion": 1})
    assert (answer.status_code, answer.json()["code"]) == (410, "Report.VersionExpired")


def test_rows_received_later_are_not_known(client: Client, path: str) -> None:
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    assert {member["status"] for member in data(client, path, knownAt=past).values()} <= {"pending", "ready"}
    assert months_or_none(data(client, path, knownAt=past)) == []
    assert len(months(data(client, path, knownAt=datetime.now(UTC).isoformat()))) >= 1


def months_or_none(bundle: Any) -> list[str]:
    return [] if bundle["aggregate"]["data"] is None else list(months(bundle))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"asOf": "2026-02-30"}, "Report.InvalidAsOf"),
        ({"knownAt": "2026-02-01"}, "Report.InvalidKnownAt"),
        ({"dataVersion": "-1"}, "Report.InvalidVersion"),
    ],
)
def test_invalid_moments_are_refused(client: Client, path: str, query: dict[str, str], code: str) -> None:
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_the_transactions_of_a_figure_add_up_to_it(client: Client, path: str) -> None:
    figure = "/tables/monthly_cash_flow/values/0/moneyIn"
    found = data(client, f"{path}/aggregate/lineage", figure=figure, asOf="2026-06-30")
    assert (found["by"], found["value"], found["total"]) == ("sum", Decimal("812.4"), Decimal("812.4"))
    [only] = found["transactions"]
    assert (only["date"], only["amount"], only["contribution"]) == ("2026-05-04", Decimal("812.4"), Decimal("812.4"))


def numbers(node: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, value in node.items():
            yield from numbers(value, f"{pointer}/{name}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, f"{pointer}/{index}")
    elif isinstance(node, int | Decimal) and not isinstance(node, bool):
        yield pointer, node


def one_of_a_kind(figures: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return one figure of each kind: of those that differ only by positions in lists, the last."""
    return list({re.sub("/[0-9]+", "/#", pointer): (pointer, value) for pointer, value in figures}.values())


def assert_explained(client: Client, path: str, kind: str, figures: Iterable[tuple[str, Any]]) -> None:
    for figure, value in figures:
        found = data(client, f"{path}/{kind}/lineage?figure={quote(figure)}", asOf="2026-06-30")
        assert found["value"] == value, figure


@pytest.mark.service  # hundreds of requests
@pytest.mark.parametrize("kind", ["completeness", "risk"])
def test_every_kind_of_number_of_a_report_has_a_lineage_over_http(client: Client, path: str, kind: str) -> None:
    report = data(client, path, asOf="2026-06-30")[kind]["data"]
    assert_explained(client, path, kind, one_of_a_kind(numbers(report)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["completeness", "risk"])
def test_every_number_of_a_report_has_a_lineage_over_http(client: Client, path: str, kind: str) -> None:
    report = data(client, path, asOf="2026-06-30")[kind]["data"]
    assert_explained(client, path, kind, numbers(report))


def test_an_input_of_a_formula_has_its_own_lineage(client: Client, path: str) -> None:
    whole = data(
        client, f"{path}/aggregate/lineage", figure="/tables/monthly_cash_flow/values/0/net", asOf="2026-06-30"
    )
    assert whole["by"] == "formula"
    inputs = {each["name"]: each["figure"] for each in whole["inputs"]}
    part = data(client, f"{path}/aggregate/lineage", figure=inputs["moneyOut"], asOf="2026-06-30")
    assert (part["by"], part["total"]) == ("sum", Decimal("100.15"))


def test_metrics_have_a_lineage_too(client: Client, path: str) -> None:
    readings = data(client, path.removesuffix("/reports") + "/metrics", asOf="2026-06-30")
    known = [each for each in readings["metrics"] if each["value"] is not None]
    assert known
    for each in known[:10]:
        found = data(client, f"{path}/metrics/lineage", figure=f"/{each['slug']}", asOf="2026-06-30")
        assert found["value"] == each["value"], each["slug"]


def test_every_metric_has_a_value_or_a_cause(client: Client, path: str) -> None:
    listed = {each["slug"] for each in data(client, "/v1/metrics")["metrics"]}
    readings = data(client, path.removesuffix("/reports") + "/metrics")["metrics"]
    assert {each["slug"] for each in readings} == listed
    assert all((each["value"] is None) != (each["cause"] is None) for each in readings)


def test_an_unknown_figure_of_a_report_is_not_found(client: Client, path: str, subtests: pytest.Subtests) -> None:
    unknown = (
        ("aggregate", "/tables/none/values/0/moneyIn", "Report.FigureNotFound"),
        ("aggregate", "/tables/monthly_cash_flow/values/99/moneyIn", "Report.FigureNotFound"),
        ("aggregate", "/tables/monthly_cash_flow/values/0/month", "Report.FigureNotFound"),
        ("aggregate", "nonsense", "Report.FigureNotFound"),
        ("completeness", "/summary", "Report.FigureNotFound"),
        ("risk", "/rating/x", "Report.FigureNotFound"),
        ("metrics", "/nothing", "Report.FigureNotFound"),
        ("weather", "/x", "Request.UnknownPath"),
    )
    for kind, figure, code in unknown:
        with subtests.test(kind, figure=figure):
            answer = client.get(f"{path}/{kind}/lineage", params={"figure": figure})
            assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_a_diff_lists_the_figures_that_new_rows_changed(client: Client, path: str) -> None:
    found = data(client, f"{path}/diff", **{"from": 1, "to": 2, "asOf": "2026-06-30"})
    assert (found["from"], found["to"], found["rowsAdded"]) == (1, 2, 3)  # the test's worker gives rows new ids
    june = [each for each in found["figures"] if each["key"] == "month 2026-06-01"]
    assert any((each["from"], each["to"]) == (None, Decimal(50)) for each in june)
    assert {cause for each in found["figures"] for cause in each["causes"]} == {"rows"}


def test_a_diff_of_two_days_compares_the_two_reports(client: Client, path: str) -> None:
    days = {"fromAsOf": "2026-05-31", "asOf": "2026-06-30"}
    found = data(client, f"{path}/diff", **days)
    assert {name: found[name] for name in days} == days
    assert (found["from"], found["to"], found["fromKnownAt"], found["knownAt"]) == (2, 2, None, None)
    assert (found["rowsDatedBetween"], found["rowsAdded"]) == (1, 0)
    assert {cause for each in found["figures"] for cause in each["causes"]} == {"date"}
    before, after = (data(client, path, asOf=day) for day in days.values())
    for each in found["figures"]:
        sides = ((before, each["fromFigure"], each["from"]), (after, each["figure"], each["to"]))
        for bundle, figure, value in sides:
            if value is not None:
                assert follow_pointer(bundle[each["report"]]["data"], figure) == value


def test_readings_and_points_say_how_they_are_written(client: Client, path: str) -> None:
    moment = {"asOf": "2026-06-30"}
    drivers = data(client, path, **moment)["risk"]["data"]["drivers"]
    known = {nth: each["metric"] for nth, each in enumerate(drivers) if each["reading"] is not None}
    assert len({METRICS[metric].format for metric in known.values()}) > 1
    for nth, metric in known.items():
        reading = data(client, f"{path}/risk/lineage", figure=f"/drivers/{nth}/reading", **moment)
        points = data(client, f"{path}/risk/lineage", figure=f"/drivers/{nth}/points", **moment)
        assert (reading["format"], points["format"]) == (METRICS[metric].format, "decimal")
        assert {each["name"]: each["format"] for each in points["inputs"]}["reading"] == METRICS[metric].format
    month = data(client, f"{path}/aggregate/lineage", figure="/tables/monthly_cash_flow/values/0/net", **moment)
    assert {month["format"], *(each["format"] for each in month["inputs"])} == {None}


def test_a_diff_of_one_report_is_a_part_of_that_of_all(client: Client, path: str) -> None:
    days = {"fromAsOf": "2026-05-31", "asOf": "2026-06-30"}
    whole = data(client, f"{path}/diff", **days)
    parts = {kind: data(client, f"{path}/diff", report=kind, **days) for kind in REPORTS}
    for kind, part in parts.items():
        mine = {name: [each for each in whole[name] if each["report"] == kind] for name in ("headlines", "figures")}
        assert part == {**whole, **mine}
        assert all(mine.values())
    assert client.get(f"{path}/diff", params={"report": "metrics"}).json()["code"] == "Report.InvalidKind"


def follow_pointer(node: Any, figure: str) -> Any:
    """Follow a pointer into a report, in which a table's id works for its index."""
    for segment in figure.strip("/").split("/"):
        if isinstance(node, list):
            node = node[int(segment)] if segment.isdecimal() else next(each for each in node if each["id"] == segment)
        else:
            node = node[segment]
    return node


def test_headlines_of_a_diff_are_those_of_the_reports(client: Client, path: str) -> None:
    found = data(client, f"{path}/diff", fromAsOf="2026-05-31", asOf="2026-06-30")
    headlines = {each["name"]: each for each in found["headlines"]}
    assert [headlines["revenue90Days"][side] for side in ("from", "to")] == [Decimal("812.4"), Decimal("862.4")]
    assert [headlines["closingBalance"][side] for side in ("from", "to")] == [Decimal("1712.25"), Decimal("1762.25")]
    risk = data(client, path, asOf="2026-06-30")["risk"]["data"]
    assert (headlines["rating"]["to"], headlines["riskValue"]["to"]) == (risk["rating"], risk["value"])


def test_a_diff_of_two_times_of_knowledge_compares_what_was_known(store: Store, client: Client, path: str) -> None:
    with store.db.reading() as r:
        number = r.execute(select(func.max(customers.c.number))).scalar_one()
        [first, second] = r.execute(
            select(locations.c.created_at)
            .where(locations.c.customer_number == number)
            .order_by(locations.c.data_version)
        ).scalars()
    query = {"asOf": "2026-06-30", "fromKnownAt": first.isoformat()}
    found = data(client, f"{path}/diff", **query)
    assert (found["from"], found["to"], found["rowsAdded"], found["knownAt"]) == (1, 2, 3, None)
    assert datetime.fromisoformat(found["fromKnownAt"]) == first
    same = data(client, f"{path}/diff", **query, knownAt=first.isoformat())
    assert (same["from"], same["to"], same["figures"]) == (1, 1, [])
    back = data(client, f"{path}/diff", asOf="2026-06-30", fromKnownAt=second.isoformat(), knownAt=first.isoformat())
    assert (back["from"], back["to"], back["rowsGone"]) == (2, 1, 3)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"fromAsOf": "2026-02-30"}, "Report.InvalidAsOf"),
        ({"fromKnownAt": "yesterday"}, "Report.InvalidKnownAt"),
        ({"knownAt": "2026-02-01"}, "Report.InvalidKnownAt"),
    ],
)
def test_invalid_moments_of_a_diff_are_refused(client: Client, path: str, query: dict[str, str], code: str) -> None:
    answer = client.get(f"{path}/diff", params=query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_the_page_is_one_document_that_fetches_nothing(client: Client, path: str) -> None:
    answer = client.get(f"{path}.html", params={"asOf": "2026-06-30"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "812.40" in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org/", "")


def test_reports_of_a_foreign_customer_are_not_found(other_client: Client, path: str) -> None:
    for each in ("", "/diff", "/risk/lineage?figure=/value", ".html"):
        assert other_client.get(path + each).status_code == 404
