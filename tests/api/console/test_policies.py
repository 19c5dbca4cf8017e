"""Pages for policies and approvals: write, check, publish with a second person, backtest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
import requests
import yaml

from assets.portfolio import portfolio_jobs
from storage.access.approvals import REQUIRABLE
from storage.access.roles import Role
from storage.core.store import Store
from tests.api.conftest import Client, require_approvals, spending_ruleset
from tests.api.console.forms import untouched
from tests.api.console.test_decisions import HOSTILE, read_words
from tests.api.console.visitor import Visitor, visit_as
from tests.api.decisions.test_policies import document, lenient, states

SLUG = "overdraft"
EDIT = f"/policies/{SLUG}/edit"


@dataclass(frozen=True)
class StaffedLender:
    """A lender with a signed-in person of each role, and two more approvers."""

    store: Store
    client: Client
    people: Mapping[Role, Visitor]
    second: Visitor

    def save(self, text: str, path: str = EDIT, **fields: object) -> requests.Response:
        return self.people[Role.ANALYST].post(path, document=text, **{"action": "save"} | fields)

    def publish(self) -> None:
        assert self.save(as_text(), "/policies/new").status_code == 200
        assert self.people[Role.APPROVER].post(f"/policies/{SLUG}/publish", version=1).status_code == 200


@pytest.fixture
def lender(store: Store, base_url: str, client: Client) -> StaffedLender:
    people = {role: visit_as(store, base_url, client.client_id, role) for role in Role}
    return StaffedLender(store, client, people, visit_as(store, base_url, client.client_id, Role.APPROVER))


def as_text(**changes: object) -> str:
    return yaml.safe_dump({"slug": SLUG} | document(**changes), allow_unicode=True)


def test_a_policy_is_written_checked_published_and_archived(lender: StaffedLender) -> None:
    analyst, approver = lender.people[Role.ANALYST], lender.people[Role.APPROVER]
    assert "There are no policies yet" in read_words(analyst.get("/policies"))
    text = read_words(lender.save(as_text(notes=HOSTILE), "/policies/new"))
    assert "Version 1 is stored as a draft." in text
    assert "Publish version 1" not in text
    assert "Publish version 1" in read_words(approver.get(f"/policies/{SLUG}"))
    assert "Version 1 is published" in read_words(approver.post(f"/policies/{SLUG}/publish", version=1))
    assert read_words(lender.save(as_text(defaultOutcome="proceed", notes="Another.")))
    assert "← Overdraft review Edit Overdraft review The policy as YAML" in read_words(analyst.get(EDIT))
    newer = read_words(analyst.get(f"/policies/{SLUG}?version=2"))
    assert "What differs from the published version 1" in newer
    assert states(lender.client, SLUG) == {1: "published", 2: "draft"}
    assert "Archived" in read_words(approver.post(f"/policies/{SLUG}/archive"))
    assert "There are no policies yet" in read_words(analyst.get("/policies"))
    assert SLUG in read_words(analyst.get("/policies?archived=yes"))
    assert "is archived" in read_words(approver.post(f"/policies/{SLUG}/publish", version=2), 409)
    assert "taken back" in read_words(approver.post(f"/policies/{SLUG}/unarchive"))


def test_a_published_version_is_known_however_many_drafts_are_newer(lender: StaffedLender) -> None:
    lender.publish()
    for number in range(2, 23):
        lender.save(as_text(notes=f"Draft {number}"))
    analyst = lender.people[Role.ANALYST]
    first, last = (analyst.get(f"/policies/{SLUG}?page={number}") for number in (1, 2))
    assert "22 versions, page 1 of 2" in read_words(first)
    assert re.search(r"Version 1\b.{0,40}Published", read_words(first), re.IGNORECASE), read_words(first)[:600]
    assert "22 versions, page 2 of 2" in read_words(last)
    assert f'href="/policies/{SLUG}?version=1" aria-current="true"' in last.text
    draft = read_words(analyst.get(f"/policies/{SLUG}?version=22"))
    assert "A draft can also decide for a share of the customers" in draft
    assert "Version 1, published" in read_words(analyst.get(f"/policies/{SLUG}/backtests"))


def test_a_challenger_is_shown_set_and_stopped(lender: StaffedLender) -> None:
    lender.publish()
    for notes in ("Another.", "A third."):
        lender.save(as_text(notes=notes))
    analyst, page = lender.people[Role.ANALYST], f"/policies/{SLUG}"
    decides = "Version 2 decides beside the published version for 10 % of the customers, without effect."

    def shown(visitor: Visitor, query: str = "") -> tuple[bool, bool, bool]:
        """Return whether a page says who the challenger is, and whether it can be stopped and set there."""
        text = read_words(visitor.get(page + query))
        return decides in text, "Stop the challenger" in text, "Percent of customers" in text

    assert shown(analyst) == (False, False, False)
    assert shown(analyst, "?version=2") == (False, False, True)
    refused = read_words(analyst.post(f"{page}/challenger", version=2, percent=0), 400)
    assert "Percent of customers must be a whole number from 1 to 100." in refused
    assert read_words(analyst.post(f"{page}/challenger", version=2, percent=10)).count(decides) == 2, "with the notice"
    assert shown(analyst) == (True, True, False)
    assert shown(analyst, "?version=3") == (True, True, True)
    assert shown(lender.people[Role.VIEWER]) == (True, False, False)
    lender.people[Role.APPROVER].post(f"{page}/archive")
    assert shown(analyst, "?version=2") == (False, False, False)
    lender.people[Role.APPROVER].post(f"{page}/unarchive")
    stopped = read_words(analyst.post(f"{page}/challenger", action="stop"))
    assert "No draft decides beside the published version any more." in stopped
    assert shown(analyst) == (False, False, False)


def test_a_text_that_cannot_be_saved_is_shown_again_with_its_faults(lender: StaffedLender) -> None:
    for text, words in (
        ("name: [", "not valid YAML"),
        ("just a text", "must have members"),
        ("name: Without a slug", "must have a slug"),
        (as_text(defaultOutcome="perhaps", name=HOSTILE[:50]), "1 fault"),
        (yaml.safe_dump({"slug": SLUG} | lenient()), "1 warning to accept"),
        ("slug: a/../b\nname: X", "must have a slug"),
        ("slug: x\nname: 9e999\ndefaultOutcome: 2026-01-01\n1: {2: 3}", "fault"),
    ):
        for action, status in (("check", (200, 400)), ("save", (400,))):
            answer = lender.save(text, "/policies/new", action=action)
            assert answer.status_code in status, text
            assert words in read_words(answer, answer.status_code), text
    assert lender.client.get("/v1/decision-policies?includeDrafts=true").json()["data"]["totalCount"] == 0
    accepted = "DecisionPolicy.LenientCap /limits/0/caps/0/onUnavailable"
    text = yaml.safe_dump({"slug": SLUG} | lenient())
    box = f'id="accept-{accepted.replace(" ", "")}" name="accept"'
    assert box in lender.save(text, "/policies/new", action="check").text, "without an id, a new check loses the focus"
    assert "stored as a draft" in read_words(lender.save(text, "/policies/new", accept=accepted))


def test_a_draft_is_not_saved_over_one_that_its_author_did_not_see(lender: StaffedLender, base_url: str) -> None:
    lender.publish()
    first = lender.people[Role.ANALYST]
    second = visit_as(lender.store, base_url, lender.client.client_id, Role.ANALYST)
    forms = [dict(untouched(each.get(EDIT).text, EDIT, "save")) for each in (first, second)]
    saved = read_words(first.post(EDIT, **forms[0] | {"document": as_text(notes="First.")}))
    assert "Version 2 is stored as a draft." in saved
    checked = second.post(EDIT, **forms[1] | {"action": "check"})
    forms[1] = dict(untouched(checked.text, EDIT, "save"))  # a check does not make the other version known
    refused = second.post(EDIT, **forms[1] | {"document": as_text(notes="Second.")})
    assert "Version 2 was stored meanwhile, so nothing was stored now." in read_words(refused, 409)
    assert states(lender.client, SLUG) == {1: "published", 2: "draft"}
    again = dict(untouched(refused.text, EDIT, "save"))
    assert "notes: Second." in again["document"]
    assert "Version 3 is stored as a draft." in read_words(second.post(EDIT, **again))
    old = dict(untouched(first.get(f"{EDIT}?version=1").text, EDIT, "save"))
    assert "Version 4 is stored as a draft." in read_words(first.post(EDIT, **old))


def test_a_new_policy_does_not_become_a_draft_of_another_one(lender: StaffedLender) -> None:
    lender.publish()
    analyst, path = lender.people[Role.ANALYST], "/policies/new"
    form = dict(untouched(analyst.get(path).text, path, "save")) | {"document": as_text(notes="New.")}
    for _ in range(2):
        refused = analyst.post(path, **form)
        words = (
            "There is a policy with this slug already, so nothing was stored. Choose another slug, or edit that policy."
        )
        assert words in read_words(refused, 409)
        form = dict(untouched(refused.text, path, "save"))
        assert "notes: New." in form["document"]
    assert states(lender.client, SLUG) == {1: "published"}


def test_a_second_person_approves(lender: StaffedLender) -> None:
    lender.publish()
    lender.save(as_text(notes="Another version."))
    require_approvals(lender.store, lender.client, *REQUIRABLE)
    first = lender.people[Role.APPROVER]
    assert "somebody else must approve it" in read_words(first.post(f"/policies/{SLUG}/publish", version=2))
    lender.client.post("/v1/monitoring/rulesets", spending_ruleset("spending", [lender.client.new_customer()]))
    own, other = read_words(first.get("/approvals")), read_words(lender.second.get("/approvals"))
    for text in (own, other):
        assert f"Publish version 2 of {lenient()['name']}" in text
        assert "Activate a new ruleset, Spending" in text
    assert "You requested this: somebody else must decide." in own
    assert "Requested by Ada, approver" in other
    assert "Requested by API key tm_" in other
    listed = lender.client.get("/v1/approvals?status=pending").json()["data"]["approvals"]
    by_kind = {each["kind"]: f"/approvals/{each['approvalId']}" for each in listed}
    assert "Another person" in read_words(first.post(f"{by_kind['publish']}/approve"), 409)
    assert lender.people[Role.ANALYST].post(f"{by_kind['publish']}/approve").status_code == 403
    approved = lender.second.post(f"{by_kind['publish']}/approve")
    assert "The request is approved, and its action was performed." in read_words(approved)
    assert "Reason must have 1 to" in read_words(lender.second.post(f"{by_kind['activate']}/decline"), 400)
    declined = lender.second.post(f"{by_kind['activate']}/decline", reason=HOSTILE)
    assert "The request is declined." in read_words(declined)
    assert states(lender.client, SLUG) == {1: "retired", 2: "published"}
    lender.save(as_text(notes="A third version."))
    first.post(f"/policies/{SLUG}/publish", version=3)
    [asked] = lender.client.get("/v1/approvals?status=pending").json()["data"]["approvals"]
    path = f"/approvals/{asked['approvalId']}/withdraw"
    assert "Withdraw" not in read_words(lender.second.get("/approvals")).replace("Withdrawn", "")
    assert "Only the person or key" in read_words(lender.second.post(path), 409)
    assert "Withdraw" in read_words(first.get("/approvals")).replace("Withdrawn", "")
    assert "The request is withdrawn." in read_words(first.post(path))
    assert "Nothing waits for an approval." in read_words(first.get("/approvals"))
    declined = read_words(first.get("/approvals?status=declined"))
    assert "declined by Ada, approver" in declined
    assert lender.second.get("/approvals?status=nonsense").status_code == 400


def test_a_backtest_shows_its_progress_and_result(lender: StaffedLender) -> None:
    lender.publish()
    lender.client.new_customer()
    lender.save(as_text(notes="Another version."))
    analyst, path = lender.people[Role.ANALYST], f"/policies/{SLUG}/backtests"
    assert "No backtest of this version has finished." in read_words(analyst.get(f"/policies/{SLUG}"))
    assert "Coverage" not in read_words(lender.people[Role.VIEWER].get(f"/policies/{SLUG}"))
    assert "No backtest was started yet." in read_words(analyst.get(path))
    sent = {"version": 2, "against": "published", "input.requestedAmount": "1"}
    assert "Requested amount is missing" in read_words(analyst.post(path, **sent | {"input.requestedAmount": ""}), 400)
    assert "Type a number, such as 1,000.50." in read_words(
        analyst.post(path, **sent | {"input.requestedAmount": "x"}), 400
    )
    answer = analyst.send(path, {"csrf": analyst.csrf} | sent)
    assert answer.status_code == 303
    address = answer.headers["location"]
    assert 'hx-trigger="every 2s"' in analyst.get(address).text
    assert analyst.get(f"{address}/page").status_code == 409
    portfolio_jobs.run(lender.store, UUID(address.rpartition("/")[2]), lambda: datetime.now(UTC))
    done = analyst.get(address)
    assert "every 2s" not in done.text
    assert "Show the whole comparison" in read_words(done)
    assert {f"Coverage of version {nth}" for nth in (1, 2)} <= set(
        re.findall(r"Coverage of version \d", read_words(done))
    )
    assert "1 decision. " in read_words(done)
    assert re.search(r'<bdi>[^<]+ [^<]+</bdi> <code>[A-Z_]+</code> <span class="badge warn">Never matched<', done.text)
    assert "Backtest of a decision policy" in read_words(analyst.get(f"{address}/page"))
    assert "version 2 with version 1" in read_words(analyst.get(path))
    for version in (1, 2):
        assert "1 decision. " in read_words(analyst.get(f"/policies/{SLUG}?version={version}"))


def test_roles_see_what_the_api_lets_them(lender: StaffedLender) -> None:
    lender.publish()
    all_roles, writers = set(Role), set(Role) - {Role.VIEWER}
    for path, may in (
        ("/policies", all_roles),
        ("/approvals", writers),
        (f"/policies/{SLUG}", all_roles),
        ("/policies/new", writers),
        (EDIT, writers),
        (f"/policies/{SLUG}/backtests", writers),
    ):
        assert {role for role, visitor in lender.people.items() if visitor.get(path).status_code == 200} == may, path
    viewer = lender.people[Role.VIEWER]
    for path, fields in ((EDIT, {"document": as_text()}), (f"/policies/{SLUG}/publish", {"version": 1})):
        assert viewer.post(path, **fields).status_code == 403
    assert states(lender.client, SLUG) == {1: "published"}
