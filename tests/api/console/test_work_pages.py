"""Pages of work: the queue, alerts, notes, attachments, history, and rulesets."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests

from api.console.pages.work import age
from assets.portfolio import portfolio_jobs
from storage.access import keys
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.store import Store
from tests.api.conftest import Belongings, Client, new_client, require_approvals, spending_ruleset
from tests.api.console.forms import untouched
from tests.api.console.visitor import Visitor, visit_as

HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 9_000
WORKERS, WATCHERS = (Role.ANALYST, Role.APPROVER, Role.ADMIN), (Role.APPROVER, Role.ADMIN)


class StaffedLender:
    """A client with an alert and the rest, and people of each role."""

    def __init__(self, store: Store, base_url: str) -> None:
        self.client = new_client(store, base_url)
        self.ids = Belongings(store, self.client)
        self.match_id = self.ids["matchId"]
        self.customer = f"/customers/{self.ids['customerId']}"
        self.alert, self.ruleset = f"/alerts/{self.match_id}", f"/rulesets/{self.ids['rulesetId']}"
        self.people = {role: visit_as(store, base_url, self.client.client_id, role) for role in Role}

    @property
    def analyst(self) -> Visitor:
        return self.people[Role.ANALYST]

    @property
    def admin(self) -> Visitor:
        return self.people[Role.ADMIN]

    def read(self, path: str) -> Any:
        return self.client.get(f"/v1{path}").json()["data"]


@pytest.fixture(scope="module")
def lender(store: Store, base_url: str) -> StaffedLender:
    return StaffedLender(store, base_url)


def pages(lender: StaffedLender) -> Mapping[str, tuple[Role, ...]]:
    """Return each page with the roles that may see it."""
    simulation = f"{lender.ruleset}/simulations/{lender.ids['simulationId']}"
    return {
        "/work": WORKERS,
        "/work?kind=alert&assignee=me": WORKERS,
        lender.alert: WORKERS,
        f"{lender.alert}/figure?figure=/spent_30d": WORKERS,
        f"{lender.customer}/notes": WORKERS,
        f"{lender.customer}/history": WORKERS,
        f"{lender.customer}/monitoring": WORKERS,
        f"{lender.customer}/monitoring?state=open": WORKERS,
        "/rulesets": WATCHERS,
        "/rulesets?archived=yes": WATCHERS,
        "/rulesets/library": WATCHERS,
        "/rulesets/new": WATCHERS,
        "/rulesets/new?from=data-stale": WATCHERS,
        lender.ruleset: WATCHERS,
        f"{lender.ruleset}/edit": WATCHERS,
        f"{lender.ruleset}/simulations": WATCHERS,
        simulation: WATCHERS,
        f"{simulation}/page": WATCHERS,
    }


def test_pages_are_for_the_roles_that_may_see_them(lender: StaffedLender, subtests: pytest.Subtests) -> None:
    for path, roles in pages(lender).items():
        for role, person in lender.people.items():
            with subtests.test(f"{path} {role}"):
                answer = person.get(path)
                assert answer.status_code == (200 if role in roles else 403), answer.text
                assert answer.headers["content-type"].startswith("text/html")


def test_the_start_page_is_the_queue(lender: StaffedLender) -> None:
    assert "<h1>Work</h1>" in lender.analyst.get("/").text
    assert "<h1>Customers</h1>" in lender.people[Role.VIEWER].get("/").text


def test_an_alert_is_worked_on(lender: StaffedLender) -> None:
    page = lender.analyst.get(lender.alert).text
    for shown in ("SPENT", "Money went out.", "Ask what for.", "Spent, last 30 days", "Raised"):
        assert shown in page
    me = re.search(r'<option value="([0-9a-f-]{36})"[^>]*>Ada, analyst', page)
    assert me is not None
    assert "The assignment is changed." in lender.analyst.post(lender.alert, action="assign", assignee=me[1]).text
    assert "Spent" in lender.analyst.get("/work?assignee=me").text
    assert "Spent" not in lender.admin.get("/work?assignee=me").text
    answer = lender.analyst.post(lender.alert, action="acknowledge", back="/work?kind=alert")
    assert "The alert is acknowledged." in answer.text
    assert answer.url.endswith("/work?kind=alert")
    assert '<span class="badge warn">Acknowledged</span>' in answer.text
    assert "The alert is snoozed." in lender.analyst.post(lender.alert, action="snooze", days="7").text
    assert "Spent" not in lender.analyst.get("/work").text
    refused = lender.analyst.post(lender.alert, action="close")
    assert (refused.status_code, 'role="alert"' in refused.text) == (400, True)
    assert '<span class="fault" id="reason-fault">Write why the alert is closed.</span>' in refused.text
    assert "The alert is closed." in lender.analyst.post(lender.alert, action="close", reason="Repaid.").text
    assert "Repaid." in lender.admin.get(lender.alert).text
    assert "Reopen" in lender.admin.get(lender.alert).text
    assert "The alert is open again." in lender.analyst.post(lender.alert, action="reopen").text
    history = lender.read(f"/alerts/{lender.match_id}")["history"]
    assert [each["action"] for each in history][::-1] == ["assign", "acknowledge", "snooze", "close", "reopen"]
    assert {each["madeBy"] for each in history} == {me[1]}


def test_a_decision_is_taken_from_the_queue(lender: StaffedLender) -> None:
    customer_id = lender.client.new_customer()
    path = f"/v1/customer/{customer_id}/decision-policies/{lender.ids['slug']}/evaluate"
    evaluation_id = lender.client.post(path, {"inputs": {"requestedAmount": 1}}).json()["data"]["evaluationId"]
    page = lender.analyst.get("/work?kind=decision").text
    assert f"/evaluations/{evaluation_id}" in page
    me = re.search(r'name="assignee" value="([0-9a-f-]{36})"', page)
    assert me is not None
    answer = lender.analyst.post(f"/evaluations/{evaluation_id}/assignee", assignee=me[1], back="/work?kind=decision")
    assert "The assignment is changed." in answer.text
    mine = lender.analyst.get("/work?assignee=me").text
    assert evaluation_id in mine
    assert '<summary class="printed"><bdi>Ada, analyst</bdi>' in mine
    decision = lender.analyst.get(f"/evaluations/{evaluation_id}").text
    assert "Assigned to <bdi>Ada, analyst</bdi>." in decision
    assert re.search(rf'<option value="{me[1]}" selected>', decision)
    given_back = lender.analyst.post(
        f"/evaluations/{evaluation_id}/assignee", assignee="", back=f"/evaluations/{evaluation_id}"
    )
    for words in ("The assignment is changed.", "Assigned to nobody."):
        assert words in given_back.text
    lender.client.post(f"/v1/evaluations/{evaluation_id}/override", OVERRIDE)
    closed = lender.analyst.get(f"/evaluations/{evaluation_id}").text
    assert "It doesn't wait for a person." in closed
    assert f"/evaluations/{evaluation_id}/assignee" not in closed
    assert "Who works on it" not in lender.people[Role.VIEWER].get(f"/evaluations/{evaluation_id}").text
    late = lender.analyst.post(f"/evaluations/{evaluation_id}/assignee", assignee="")
    assert "wait for a person" in late.text


def test_a_decision_has_notes(lender: StaffedLender) -> None:
    decision, notes = f"/evaluations/{lender.ids['evaluationId']}", f"{lender.customer}/notes"
    about = {"evaluationId": lender.ids["evaluationId"], "back": decision}
    written = lender.analyst.post(notes, text=f"The lease ends in March. {HOSTILE[:60]}", **about)
    assert written.url.endswith(decision)
    for shown in ("The note is stored.", "The lease ends in March. &lt;script&gt;", "<bdi>Ada, analyst</bdi>"):
        assert shown in written.text
    assert "About a decision" not in written.text
    assert f'<a href="{decision}">About a decision</a>' in lender.analyst.get(notes).text
    delete = re.search(r'action="([^"]+/notes/[0-9a-f-]{36}/delete)"', written.text)
    assert delete is not None
    deleted = lender.analyst.post(delete[1], back=decision)
    assert deleted.url.endswith(decision)
    assert "The lease ends in March." not in deleted.text
    assert "New note" not in lender.people[Role.VIEWER].get(decision).text


def test_a_choice_of_people_keeps_whoever_has_the_item(lender: StaffedLender, store: Store) -> None:
    """A key can have an item, and so can a user who was disabled: neither is a colleague to choose."""
    with store.db.reading() as r:
        key_id = keys.find_keys(r, lender.client.client_id)[0].key_id
    lender.client.post(f"/v1/alerts/{lender.match_id}/actions", {"action": "assign", "assignee": str(key_id)})
    for path in (lender.alert, "/work?kind=alert"):
        assert re.search(rf'<option value="{key_id}" selected>', lender.analyst.get(path).text), path


OVERRIDE = {"outcome": "proceed", "reason": "Seen.", "decidedBy": "Dana Lee"}


def test_forms_lead_back_to_this_site_only(lender: StaffedLender, subtests: pytest.Subtests) -> None:
    evaluation = f"/evaluations/{lender.ids['evaluationId']}/assignee"
    forms = ((lender.alert, {"action": "assign"}), (evaluation, {}), (f"{lender.customer}/notes", {"text": "Rang."}))
    for (path, fields), back in product(forms, ("//evil.example", "https://evil.example", "javascript:alert(1)")):
        with subtests.test(f"{path} {back}"):
            answer = lender.analyst.send(path, {"csrf": lender.analyst.csrf, "assignee": "", **fields, "back": back})
            assert (answer.status_code, answer.headers["location"]) == (303, "/")


def upload(visitor: Visitor, customer: str, name: str, content: bytes) -> requests.Response:
    path = f"{customer}/attachments?csrf={visitor.csrf}"
    return visitor.send(path, files={"file": (name, content)})


def test_notes_and_files_are_stored_and_deleted(lender: StaffedLender) -> None:
    notes = f"{lender.customer}/notes"
    assert "Rang the owner." in lender.analyst.post(notes, text="Rang the owner.").text
    assert lender.analyst.post(notes, text="").status_code == 400
    delete = re.search(r'action="([^"]+/notes/[0-9a-f-]{36}/delete)"', lender.analyst.get(notes).text)
    assert delete is not None
    assert "Rang the owner." not in lender.analyst.post(delete[1]).text
    assert upload(lender.analyst, lender.customer, "loan.docx", b"content").status_code == 303
    shown = re.search(r'href="([^"]+/attachments/[0-9a-f-]{36})"', lender.analyst.get(notes).text)
    assert shown is not None
    file = lender.analyst.get(shown[1])
    assert (file.content, file.headers["x-content-type-options"]) == (b"content", "nosniff")
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''loan.docx"
    assert upload(lender.analyst, lender.customer, "large", bytes(11 * 2**20)).status_code == 413
    empty = upload(lender.analyst, lender.customer, "empty", b"")
    assert (empty.status_code, '<p class="problem" role="alert">The file is empty.</p>' in empty.text) == (400, True)
    assert "The file is deleted." in lender.analyst.post(f"{shown[1]}/delete").text
    assert lender.analyst.get(shown[1]).status_code == 410


def test_a_file_needs_the_token_of_the_form(lender: StaffedLender) -> None:
    path = f"{lender.customer}/attachments"
    for token in ("", "?csrf=", f"?csrf={lender.admin.csrf}"):
        assert lender.analyst.send(path + token, files={"file": ("a", b"x")}).status_code == 403


def test_history_continues_with_earlier_entries(lender: StaffedLender) -> None:
    client, visitor = lender.client, lender.analyst
    customer_id = client.new_customer()
    for nth in range(60):
        client.post(f"/v1/customer/{customer_id}/notes", {"text": str(nth)})
    newest = visitor.get(f"/customers/{customer_id}/history").text
    earlier = re.search(r'rel="next" href="([^"]+)"', newest)
    assert earlier is not None
    assert "The customer was created." not in newest
    assert "The customer was created." in visitor.get(earlier[1]).text


def test_a_figure_of_an_alert_leads_back_and_to_transactions(lender: StaffedLender) -> None:
    figure = lender.analyst.get(f"{lender.alert}/figure?figure=/spent_30d").text
    [read] = [each for rule in lender.read(lender.alert)["rules"] for each in rule["values"]]
    assert f"<h1><bdi>{read['title']}</bdi>" in figure
    for link in (lender.alert, lender.customer, f"{lender.customer}/transactions/"):
        assert f'href="{link}' in figure


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as an author may send it: JSON is YAML."""
    return re.sub(r"'", '"', str(document)).replace("True", "true").replace("False", "false")


def test_a_ruleset_is_written_checked_and_switched(store: Store, lender: StaffedLender) -> None:
    admin, document = lender.admin, spending_ruleset(f"r-{uuid4()}", [lender.ids["customerId"]]) | {"active": False}
    for sent, status, words in (
        ("slug: [", 200, "problem"),
        (text_of(document | {"rules": []}), 200, "fault"),
        (text_of(document), 200, "No faults were found."),
    ):
        answer = admin.post("/rulesets/new", document=sent, action="check")
        assert words in answer.text
        assert answer.status_code in {status, 400}
    assert admin.post("/rulesets/new", document=text_of(document | {"rules": []}), action="save").status_code == 400
    saved = admin.post("/rulesets/new", document=text_of(document), action="save")
    assert "Version 1 is stored." in saved.text
    path = saved.url.removeprefix(lender.client.base_url)
    assert "The ruleset watches from now on." in admin.post(f"{path}/active", active="yes").text
    assert "Switch off" in admin.get(path).text
    taken = admin.post("/rulesets/new", document=text_of(document), action="save")
    assert (taken.status_code, 'role="alert"' in taken.text) == (409, True)
    edited = admin.get(f"{path}/edit").text
    assert "spent_30d" in edited
    assert f"<h1>Edit <bdi>{document['name']}</bdi></h1>" in edited
    renamed = admin.post(f"{path}/edit", document=text_of(document | {"name": HOSTILE[:60]}), action="save")
    assert "<script>alert" not in renamed.text
    never = document["rules"][0] | {"code": "NEVER", "condition": {"lessThan": [{"metric": "spent_30d"}, "0"]}}
    longer = text_of(document | {"rules": [*document["rules"], never]})
    assert "is stored." in admin.post(f"{path}/edit", document=longer, action="save").text
    assert "is archived" in admin.post(f"{path}/archive").text
    assert "from the archive" in admin.post(f"{path}/unarchive").text
    started = admin.post(f"{path}/simulations", **{"from": "", "to": ""})
    assert "The simulation has started." in started.text
    job_id = UUID(started.url.rpartition("/")[2])
    portfolio_jobs.run(store, job_id, lambda: datetime.now(UTC))
    done = admin.get(started.url.removeprefix(lender.client.base_url))
    assert "It would have fired for" in done.text
    assert re.search(r"<code>NEVER</code> <span[^>]*>Never true<", done.text)
    assert done.text.count("Never true") == 1
    assert admin.post(f"{path}/simulations", **{"from": "2036-01-01", "to": ""}).status_code == 400


def test_a_ruleset_is_not_saved_over_a_version_that_its_author_did_not_see(
    store: Store, base_url: str, client: Client
) -> None:
    first, second = (visit_as(store, base_url, client.client_id, Role.ADMIN) for _ in range(2))
    document = spending_ruleset("watched", [client.new_customer()]) | {"active": False}
    made = first.post("/rulesets/new", document=text_of(document), action="save")
    home = made.url.removeprefix(base_url)
    path = f"{home}/edit"

    def name() -> str:
        return str(client.get(f"/v1/monitoring{home}").json()["data"]["name"])

    for nth, active in enumerate((False, True)):  # also where a second person approves what is active
        if active:
            require_approvals(store, client, ApprovalKind.ACTIVATE)
        form = dict(untouched(second.get(path).text, path, "save"))
        stored = first.post(path, document=text_of(document | {"name": f"First {nth}"}), action="save")
        assert "is stored." in stored.text
        checked = second.post(path, **form | {"action": "check"})
        form = dict(untouched(checked.text, path, "save"))  # a check does not make the other version known
        mine = text_of(document | {"name": f"Second {nth}", "active": active})
        refused = second.post(path, **form | {"document": mine})
        assert refused.status_code == 409
        assert "was stored meanwhile, so nothing was stored now." in refused.text
        assert name() == f"First {nth}"
        again = dict(untouched(refused.text, path, "save"))
        assert f"Second {nth}" in again["document"]
        done = second.post(path, **again).text
        assert ("somebody else must approve it" if active else "Version 3 is stored.") in done


def test_where_two_people_are_needed_a_ruleset_is_only_requested(store: Store, base_url: str, client: Client) -> None:
    require_approvals(store, client, ApprovalKind.ACTIVATE)
    visitor = visit_as(store, base_url, client.client_id, Role.ADMIN)
    document = spending_ruleset("requested", [client.new_customer()])
    assert (
        "somebody else must approve it" in visitor.post("/rulesets/new", document=text_of(document), action="save").text
    )
    saved = visitor.post("/rulesets/new", document=text_of(document | {"active": False}), action="save")
    path = saved.url.removeprefix(base_url)
    assert "somebody else must approve it" in visitor.post(f"{path}/active", active="yes").text
    assert "Switch on" in visitor.get(path).text


def test_an_empty_desk_says_so(store: Store, base_url: str, client: Client) -> None:
    visitor = visit_as(store, base_url, client.client_id, Role.ADMIN)
    assert "Nothing waits." in visitor.get("/work").text
    assert "There are no rulesets yet." in visitor.get("/rulesets").text
    customer_id = client.new_customer()
    assert "has raised an alert" in visitor.get(f"/customers/{customer_id}/monitoring").text
    assert "There are no notes yet." in visitor.get(f"/customers/{customer_id}/notes").text
    assert "No file is attached." in visitor.get(f"/customers/{customer_id}/notes").text


@pytest.mark.parametrize(
    ("seconds", "words"), [(59, "less than a minute"), (60, "1 minute"), (7_199, "1 hour"), (172_800, "2 days")]
)
def test_waiting_is_written_in_its_largest_unit(seconds: int, words: str) -> None:
    assert age(seconds) == words
