"""Pages of customers, reports and transactions: who sees them, and what they do."""

import html
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from pipelines.metrics import METRICS
from storage.access.roles import Role
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Belongings, Client, new_client
from tests.api.console.forms import untouched
from tests.api.console.visitor import Visitor, visit_as
from tests.api.reports.test_reports import DATA
from tests.api.worker import end_refreshes, end_submissions

EVERYONE = [*Role]
CORRECTORS = [role for role in Role if role is not Role.VIEWER]
TABLES = (
    '{"tables":[{"id":"monthly_cash_flow","name":"Monthly cash flow","hierarchy":"customer","type":"time_series",'
    '"columns":[{"name":"month","unit":"month"},{"name":"moneyIn","unit":"AUD"}],'
    '"values":[{"month":"2026-06-01","moneyIn":0.00}]}]}'
)


class Lender:
    """A client with one customer that has a name, transactions and reports."""

    def __init__(self, store: Store, base_url: str) -> None:
        self.store, self.base_url = store, base_url
        self.client: Client = new_client(store, base_url)
        self.customer_id = self.client.new_customer(name="Harbour Bakery", reference="L-1")
        self.job_id = self.client.submit_transactions(self.customer_id)
        row = {"description": "EFTPOS SHOP", "clean_description": "SHOP", "counterparty_name": "Shop"}
        end_submissions(store, [row, {"amount": Decimal("12.34"), "direction": "credit"}])
        self.client.post(f"/v1/customer/{self.customer_id}/reports/refresh")
        end_refreshes(store, DATA | {"aggregate": TABLES})
        self.home = f"/customers/{self.customer_id}"
        listed = self.client.get(f"/v1/customer/{self.customer_id}/transactions").json()["data"]["transactions"]
        self.transaction_id = next(each["transactionId"] for each in listed if each["amount"] < 0)

    def visit(self, role: Role) -> Visitor:
        return visit_as(self.store, self.base_url, self.client.client_id, role)


@pytest.fixture(scope="module")
def lender(store: Store, base_url: str) -> Lender:
    return Lender(store, base_url)


def test_pages_of_the_list_follow_each_other(
    store: Store, base_url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.pages.customers.LISTED", 2)
    names = ["Bakery", "Cafe", "Dentist", "Electrician", "Florist"]
    for name in names:
        client.new_customer(name=name)
    visitor = visit_as(store, base_url, client.client_id, Role.VIEWER)
    seen, path, back = [], "/customers?sort=-name", ""
    while path:
        shown = visitor.get(path).text
        seen.append((re.findall("<bdi>([^<]+)</bdi></a><br>", shown), re.findall(r"page (\d) of 3", shown)))
        path = html.unescape("".join(re.findall('rel="next" href="([^"]+)"', shown)))
        back = html.unescape("".join(re.findall('rel="prev" href="([^"]+)"', shown)))
    assert seen == [(["Florist", "Electrician"], ["1"]), (["Dentist", "Cafe"], ["2"]), (["Bakery"], ["3"])]
    assert "Cafe" in visitor.get(back).text


def test_a_page_after_the_last_one_of_a_list_is_the_last_one(store: Store, base_url: str, client: Client) -> None:
    """Such as when what was on the last page is done, or gone."""
    client.new_customer(name="Florist")
    visitor = visit_as(store, base_url, client.client_id, Role.VIEWER)
    beyond = visitor.get("/customers?sort=name&page=9", follows=False)
    assert (beyond.status_code, beyond.headers["location"]) == (303, "/customers?sort=name&page=1")
    assert "Florist" in visitor.get(beyond.headers["location"]).text
    assert visitor.get("/customers?rating=A&page=9", follows=False).status_code == 200  # an empty list has no last page


def pages(lender: Lender) -> Mapping[str, list[Role]]:
    return {
        "/customers": EVERYONE,
        "/customers?search=Bakery&rating=B&reportStatus=ready&openAlerts=false&sort=-riskValue": EVERYONE,
        lender.home: EVERYONE,
        f"{lender.home}/reports": EVERYONE,
        f"{lender.home}/reports/sections/monthly": EVERYONE,
        f"{lender.home}/reports/compare?asOf=2026-06-30": EVERYONE,
        f"{lender.home}/reports/annex?table=Monthly cash flow": EVERYONE,
        f"{lender.home}/transactions": EVERYONE,
        f"{lender.home}/transactions?text=SHOP&direction=debit&minAmount=1": EVERYONE,
        f"{lender.home}/transactions/{lender.transaction_id}": EVERYONE,
        f"{lender.home}/corrections": CORRECTORS,
        f"{lender.home}/details": CORRECTORS,
        f"{lender.home}/uploads/{lender.job_id}/duplicates": EVERYONE,
    }


def test_pages_are_for_the_roles_that_may_see_them(lender: Lender, subtests: pytest.Subtests) -> None:
    for role in Role:
        visitor = lender.visit(role)
        for path, roles in pages(lender).items():
            with subtests.test(path, role=role):
                assert visitor.get(path).status_code == (200 if role in roles else 403)


def test_list_finds_customers_and_says_what_is_wrong_with_a_search(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    assert lender.home in visitor.get("/customers?search=L-1").text
    assert lender.home not in visitor.get("/customers?search=nothing like it").text
    refused = visitor.get("/customers?search=ab")
    assert refused.status_code == 400
    assert "A search must have 3 to 200 characters" in refused.text
    assert visitor.get("/customers?sort=no").status_code == 400


def test_faults_and_the_way_back_are_in_the_part_that_filters_replace(
    lender: Lender, subtests: pytest.Subtests
) -> None:
    visitor = lender.visit(Role.VIEWER)
    lists = {
        "/customers": ("search=ab", "search=nothing like it", "A search must have 3 to 200 characters", "No customer"),
        f"{lender.home}/transactions": (
            "minAmount=much",
            "text=nothing like it",
            "“At least” must be an amount",
            "No transaction matches",
        ),
    }
    for path, (faulty, empty, words, nothing) in lists.items():
        with subtests.test(path):
            refused, found, everything = (
                visitor.get(f"{path}?{query}").text.partition('<div id="found">')[2] for query in (faulty, empty, "")
            )
            assert re.search(f'role="alert">{words}', refused)
            assert nothing not in refused
            assert nothing in found
            assert [f'href="{path}">Show all' in part for part in (refused, found, everything)] == [True, True, False]


def test_transactions_are_filtered_by_account(lender: Lender) -> None:
    visitor, path = lender.visit(Role.VIEWER), f"/v1/customer/{lender.customer_id}/transactions"
    account = lender.client.get(path).json()["data"]["transactions"][0]["account"]
    chosen = f'<option value="{account["accountId"]}" selected>'
    listed = visitor.get(f"{lender.home}/transactions").text
    assert chosen.replace(" selected", "") in listed
    assert account["accountNumberMasked"] in listed.partition('name="accountId"')[2].partition("</select>")[0]
    shown = visitor.get(f"{lender.home}/transactions?accountId={account['accountId']}").text
    assert chosen in shown
    assert lender.transaction_id in shown
    other = visitor.get(f"{lender.home}/transactions?accountId={(unknown := uuid4())}").text
    assert f'<option value="{unknown}" selected>Unknown account' in other
    assert lender.transaction_id not in other


def test_customer_is_created(store: Store, base_url: str) -> None:
    client_id: UUID = new_client(store, base_url).client_id
    visitor = visit_as(store, base_url, client_id, Role.ANALYST)
    refused = visitor.post("/customers", abn="1", name="Bakery")
    assert refused.status_code == 400
    assert "An ABN has exactly 11 digits" in refused.text
    assert 'value="Bakery"' in refused.text
    made = visitor.post("/customers", abn="51 824 753 556", name="Bakery", reference="L-2")
    assert "The customer is created." in made.text
    again = visitor.post("/customers", abn="51 824 753 556", name="Bakery", reference="L-2")
    assert "This customer exists already." in again.text
    assert visit_as(store, base_url, client_id, Role.VIEWER).post("/customers", abn="51824753556").status_code == 403


def test_reports_are_refreshed_once(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor = lender.visit(Role.VIEWER)
    assert "The reports are being computed." in visitor.post(f"{lender.home}/refresh").text
    assert visitor.post(f"{lender.home}/refresh").status_code == 200
    end_refreshes(store, DATA)


def test_an_unknown_section_shows_the_summary_with_its_charts(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    summary, unknown = (visitor.get(f"{lender.home}/reports{path}").text for path in ("", "/sections/nothing"))
    sections = re.findall('<section id="([^"]+)"', unknown)
    assert sections == re.findall('<section id="([^"]+)"', summary) != []


def test_the_figures_of_a_summary_are_explained_as_of_its_moment(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    for moment in ("", "asOf=2026-06-30&amp;"):
        summary = visitor.get(f"{lender.home}/reports?{html.unescape(moment)}").text
        for report, figure in (("risk", "/value"), ("completeness", "/summary/completenessScore")):
            links = re.findall(rf'"reports/figure\?([^"]*)kind={report}&amp;figure={figure}"', summary)
            assert [re.sub("dataVersion=[^&]*&amp;", "", link) for link in links] == [moment]


def test_figures_that_are_not_computed_are_not_linked(store: Store, base_url: str, client: Client) -> None:
    visitor = visit_as(store, base_url, client.client_id, Role.VIEWER)
    empty = visitor.get(f"/customers/{client.new_customer()}/reports")
    assert (empty.status_code, "figure?" in empty.text) == (200, False)


def test_figures_lead_to_their_transactions(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    text = visitor.get(f"{lender.home}/reports/sections/monthly").text
    link = "figure?kind=aggregate&amp;figure=/tables/monthly_cash_flow/values/0/moneyIn"
    assert f'<a href="../{link}">' in text
    figure = visitor.get(f"{lender.home}/reports/{html.unescape(link)}").text
    assert f"{lender.home}/transactions/" in figure
    assert "Money in: <bdi>$12.34</bdi>" in figure
    assert "Monthly cash flow" in figure
    net = visitor.get(f"{lender.home}/reports/figure?figure=/tables/monthly_cash_flow/values/0/net").text
    assert "Money in − Money out" in net
    assert "Money in</bdi></a>: <bdi>$12.34</bdi>" in net


def test_readings_of_the_risk_rating_are_written_as_their_metrics(lender: Lender) -> None:
    visitor, home = lender.visit(Role.VIEWER), f"{lender.home}/reports/figure?kind=risk&figure="
    value = visitor.get(f"{home}/value").text
    assert "<h2>Risk figure:" in value
    points_of = re.findall(r'figure=/value/(\w+)"><bdi>([^<]*)</bdi></a>: <bdi>([^<]+)<', value)
    assert len(points_of) > 10
    for slug, name, points in points_of:
        assert name == f"Points: {METRICS[slug].name}"
        assert re.fullmatch(r"[0-9.]+", points)  # points, even of a share
        driver = visitor.get(f"{home}/value/{slug}").text
        if f"/value/{slug}/reading" in driver:
            reading = visitor.get(f"{home}/value/{slug}/reading").text
            [written] = re.findall("<h2>Reading: <bdi>([^<]+)</bdi>", reading)
            assert f"<bdi>Reading</bdi></a>: <bdi>{written}</bdi>" in driver
            assert written.endswith(" %") == (METRICS[slug].format == "percent")


def test_reports_are_printed(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.reports.browser.print_pdf", lambda _: b"%PDF-")
    answer = lender.visit(Role.VIEWER).get(f"{lender.home}/reports.pdf")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "application/pdf", b"%PDF-")


def test_a_submission_leads_to_the_transactions_that_it_added(lender: Lender) -> None:
    visitor, other = lender.visit(Role.ANALYST), uuid4()
    shown = visitor.get(f"{lender.home}/transactions?jobId={lender.job_id}").text
    assert f"{lender.home}/transactions/{lender.transaction_id}" in shown
    assert "Show all" in shown
    assert lender.transaction_id not in visitor.get(f"{lender.home}/transactions?jobId={other}").text


def test_the_newest_transactions_come_first(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    for query, sort in (("", "-date"), ("?sort=date", "date"), ("?sort=-date", "-date")):
        listed = lender.client.get(f"/v1/customer/{lender.customer_id}/transactions?sort={sort}").json()["data"]
        text = visitor.get(f"{lender.home}/transactions{query}").text
        shown = re.findall(rf"{lender.home}/transactions/([0-9a-f-]{{36}})", text)
        assert shown == [each["transactionId"] for each in listed["transactions"]], query
    assert visitor.get(f"{lender.home}/transactions?sort=amount").status_code == 400


def test_transactions_are_filtered_with_totals(lender: Lender) -> None:
    visitor = lender.visit(Role.VIEWER)
    everything = visitor.get(f"{lender.home}/transactions").text
    [out] = re.findall("<dt>Money out</dt><dd>([^<]+)</dd>", everything)
    assert "<dt>Money in</dt><dd>$12.34</dd>" in everything
    assert out in visitor.get(f"{lender.home}/transactions?direction=debit").text
    text = visitor.get(f"{lender.home}/transactions?direction=credit").text
    assert "$12.34" in text
    assert lender.transaction_id not in text
    assert visitor.get(f"{lender.home}/transactions?minAmount=$1,000.50&maxAmount=2,000").status_code == 200
    refused = visitor.get(f"{lender.home}/transactions?minAmount=much")
    assert refused.status_code == 400
    assert "“At least” must be an amount" in refused.text


def test_transaction_leads_to_its_line_on_the_statement(store: Store, lender: Lender) -> None:
    own = Belongings(store, lender.client)
    visitor = lender.visit(Role.ANALYST)
    page = visitor.get(f"/customers/{own['customerId']}/transactions/{own['transactionId']}")
    assert f"/customers/{own['customerId']}/statements/{own['statementId']}?row=1" in page.text
    assert "on the statement" not in visitor.get(f"{lender.home}/transactions/{lender.transaction_id}").text


def test_correction_is_previewed_made_and_undone(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor = lender.visit(Role.ANALYST)
    path = f"{lender.home}/transactions/{lender.transaction_id}/correct"
    offered = re.findall('<option value="([a-z_]+)"', visitor.get(path.removesuffix("/correct")).text)
    assert ("rent" in offered, "customer_transfer" in offered) == (True, False), "only categories of its side"
    sent = {"category": "rent", "counterpartyName": "", "which": "similar"}
    preview = visitor.post(path, **sent)
    assert "1 transaction of 1 selected would change" in preview.text
    assert corrections(lender) == []
    made = visitor.post(path, **sent, confirmed="yes")
    assert "The correction is made." in made.text
    [correction] = corrections(lender)
    assert (correction["category"], correction["counterparty"], correction["dateRevoked"]) == ("rent", "Shop", None)
    assert re.search(r"/corrections/[0-9a-f-]{36}/undo", made.text)
    address = f"{lender.home}/corrections?page=1"
    underway = (
        "1 correction is being applied.",
        *('<td class="number">1</td>', "Being applied: 1 transaction changes"),
        *(f'<tbody id="corrections" hx-get="{address}"', f'<noscript><p><a href="{address}">Reload</a>'),
    )
    for text in underway:
        assert text in made.text
    end_submissions(store)  # the fake worker ends its job, but changes no row
    applied = visitor.get(address).text
    assert '<td class="number">0</td>' in applied
    for text in (*underway, "being", "hx-trigger", "<noscript>"):
        assert text not in applied
    undone = visitor.post(f"{lender.home}/corrections/{correction['correctionId']}/undo")
    assert "The correction is undone." in undone.text
    assert "Being undone" in undone.text
    end_submissions(store)
    assert "Being undone" not in visitor.get(address).text
    assert corrections(lender)[0]["dateRevoked"] is not None
    nothing = visitor.post(path, category="", counterpartyName="", which="one")
    assert nothing.status_code == 400
    assert lender.visit(Role.VIEWER).post(path, **sent).status_code == 403


def corrections(lender: Lender) -> list[dict[str, Any]]:
    path = f"/v1/customer/{lender.customer_id}/transactions/corrections"
    found: list[dict[str, Any]] = lender.client.get(path).json()["data"]["corrections"]
    return found


def cells(page: str) -> list[list[str]]:
    """Return the words of each row of a page's tables, without what only screen readers get."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    bare = (re.sub('<span class="hidden">.*?</span>', "", row) for row in rows)
    return [
        [" ".join(html.unescape(re.sub("<[^>]+>", " ", cell)).split()) for cell in re.split("</t[hd]>", row)[:-1]]
        for row in bare
    ]


def test_attributes_are_set_changed_and_removed(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor, path = lender.visit(Role.ANALYST), f"{lender.home}/attributes"
    assert "No attribute is set." in visitor.get(f"{lender.home}/details").text
    bureau = {"name": "bureau_score", "kind": "decimal", "value": "1,684.5", "source": "Equifax"}
    dates = {"evidenceDate": "2026-06-01", "expiresAt": "2999-07-01T12:30:00"}
    assert "The attribute is stored." in visitor.post(path, **bureau, **dates).text
    visitor.post(path, name="has_lease", kind="boolean", value="yes")
    page = visitor.post(path, name="industry", kind="string", value="Bakery").text
    shown = {row[0]: row[1:5] for row in cells(page) if "bureau_score" in row[0] or row[0].endswith("industry")}
    assert shown["Bureau score bureau_score"] == ["1684.5", "Equifax", "1 Jun 2026", "1 Jul 2999, 12:30"]
    api = f"/v1/customer/{lender.customer_id}/attributes"
    stored = lender.client.get(api).json(parse_float=Decimal)["data"]["attributes"]
    assert {name: each["value"] for name, each in stored.items()} == {
        "bureau_score": Decimal("1684.5"),
        "has_lease": True,
        "industry": "Bakery",
    }
    for name, kind, value in (("bureau_score", "decimal", "1684.5"), ("has_lease", "boolean", "yes")):
        form = visitor.get(f"{lender.home}/details?attribute={name}").text.partition('id="attribute"')[2]
        assert (f">\n{value}</textarea>" in form, f'<option value="{kind}" selected>' in form) == (True, True)
    form = visitor.get(f"{lender.home}/details?attribute=bureau_score").text
    assert 'value="2999-07-01T12:30:00"' in form
    sent = dict(untouched(form, path))
    visitor.post(path, **sent | {"kind": "decimal", "value": "700"})
    changed = lender.client.get(api).json()["data"]["attributes"]["bureau_score"]
    kept = ("source", "evidenceDate", "expiresAt")
    assert [changed[name] for name in kept] == [stored["bureau_score"][name] for name in kept]
    assert "The attribute is removed." in visitor.post(f"{path}/remove", name="has_lease").text
    assert lender.client.get(api).json()["data"]["attributes"].keys() == {"bureau_score", "industry"}


def test_attributes_that_cannot_be_set_are_shown_with_their_faults(
    store: Store, base_url: str, subtests: pytest.Subtests
) -> None:
    lender = Lender(store, base_url)
    visitor, path = lender.visit(Role.ANALYST), f"{lender.home}/attributes"
    right = {"name": "industry", "kind": "string", "value": "Bakery"}
    for change, sentence in (
        ({"name": "1 <b>"}, "A name must be an ASCII letter"),
        ({"value": ""}, "A value must be text of 1 to 1,000 characters"),
        ({"kind": "decimal"}, "Type a number, such as 1,000.50."),
        ({"kind": "boolean"}, "Choose yes or no."),
        ({"source": "x" * 201}, "Source must have at most 200 characters."),
        ({"evidenceDate": "yesterday"}, "Evidence date must be a date"),
        ({"expiresAt": "soon"}, "“Expires” must be a date and time"),
    ):
        with subtests.test(str(change)):
            page = visitor.post(path, **right | change)
            assert (page.status_code, sentence in html.unescape(page.text)) == (400, True)
            for name, value in (right | change).items():
                shown = f">\n{value}</textarea>" if name == "value" else f'value="{html.escape(value)}"'
                assert shown in page.text
    refused = visitor.post(f"{path}/remove", name="<b>")
    assert (refused.status_code, "A name must be an ASCII letter" in refused.text) == (400, True)
    assert lender.client.get(f"/v1/customer/{lender.customer_id}/attributes").json()["data"]["attributes"] == {}


def test_related_parties_are_added_and_removed(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor, path = lender.visit(Role.ANALYST), f"{lender.home}/related-parties"
    api = f"/v1/customer/{lender.customer_id}/related-parties"

    def stored() -> list[str]:
        return [each["name"] for each in lender.client.get(api).json()["data"]["relatedParties"]]

    assert "The related party is added." in visitor.post(path, name="Ada Lovelace", role="director", abn="").text
    second = visitor.post(path, name="Engine <b> Pty Ltd", role="group_company", abn="51 824 753 557").text
    assert cells(second)[-2:] == [
        ["Ada Lovelace", "Director", "–", "Remove"],
        ["Engine <b> Pty Ltd", "Group company", "51 824 753 557 check digits are wrong", "Remove"],
    ]
    assert "Last changed by <bdi>Ada, analyst</bdi>" in second
    for wrong, sentence in (
        ({"name": ""}, "Name must have 1 to 200 characters."),
        ({"role": "owner"}, "Role must be one of"),
        ({"abn": "1"}, "An ABN has exactly 11 digits"),
    ):
        refused = visitor.post(path, **{"name": "Grace", "role": "guarantor", "abn": ""} | wrong)
        assert (refused.status_code, sentence in refused.text) == (400, True), refused.text
    assert stored() == ["Ada Lovelace", "Engine <b> Pty Ltd"]
    form = dict(untouched(visitor.get(f"{lender.home}/details?party=1").text, path))
    assert (form["name"], form["role"], form["abn"]) == ("Engine <b> Pty Ltd", "group_company", "51824753557")
    renamed = visitor.post(path, **form | {"name": "Engines <b>", "abn": ""})
    assert "The related party is changed." in renamed.text
    assert cells(renamed.text)[-1] == ["Engines <b>", "Group company", "–", "Remove"]
    stale = visitor.post(path, **form)
    assert (stale.status_code, "The list was changed meanwhile, so nothing was stored." in stale.text) == (409, True)
    assert stored() == ["Ada Lovelace", "Engines <b>"]
    second = renamed.text
    [version] = set(re.findall('name="list" value="([^"]+)"', second))
    removed = visitor.post(f"{path}/remove", position="0", list=version).text
    assert ("The related party is removed." in removed, stored()) == (True, ["Engines <b>"])
    for position, shown in (("0", version), ("7", ""), ("x", "")):
        answer = visitor.post(f"{path}/remove", position=position, list=shown).text
        assert ("nothing was removed" in answer, stored()) == (True, ["Engines <b>"])
    many = [{"name": str(nth), "role": "director"} for nth in range(100)]
    assert lender.client.call("PUT", api, json=many).ok
    full = visitor.post(path, name="Grace", role="guarantor", abn="")
    assert (full.status_code, "at most 100 related parties" in full.text) == (400, True)
    with store.db.reading() as r:
        assert audit.find(r, lender.client.client_id)[0].action == "Customer.RelatedPartiesSet"


def test_two_people_who_change_the_same_customer_lose_nothing(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    path = f"{lender.home}/related-parties"
    people = [lender.visit(Role.ANALYST) for _ in range(4)]
    names = [f"Party {nth}" for nth in range(12)]
    for each in people:
        assert each.csrf

    def add(nth: int) -> str:
        return people[nth % 4].post(path, name=names[nth], role="director", abn="", position="").text

    with ThreadPoolExecutor(4) as pool:
        assert all("The related party is added." in text for text in pool.map(add, range(12)))
    api = f"/v1/customer/{lender.customer_id}"
    listed = lender.client.get(f"{api}/related-parties").json()["data"]["relatedParties"]
    assert sorted(each["name"] for each in listed) == sorted(names)


def test_an_attribute_that_was_changed_meanwhile_is_not_replaced(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor, path = lender.visit(Role.ANALYST), f"{lender.home}/attributes"

    def store_value(value: str) -> None:
        assert "The attribute is stored." in visitor.post(path, name="x", kind="string", value=value).text

    def value() -> str:
        found = lender.client.get(f"/v1/customer/{lender.customer_id}/attributes").json()["data"]["attributes"]
        return str(found["x"]["value"])

    store_value("first")
    form = dict(untouched(visitor.get(f"{lender.home}/details?attribute=x").text, path))
    store_value("second")
    refused = visitor.post(path, **form | {"value": "third\r\nline"})
    assert (refused.status_code, "Somebody else changed this attribute" in refused.text, value()) == (
        409,
        True,
        "second",
    )
    again = dict(untouched(refused.text, path))
    assert "The attribute is stored." in visitor.post(path, **again).text
    assert value() == "third\nline"
    assert "The attribute is stored." in visitor.post(path, **again | {"seen": "", "name": "y"}).text
