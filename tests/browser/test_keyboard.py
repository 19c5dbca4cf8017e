"""The console by keyboard alone: each stop of Tab shows where the focus is, and each flow can be finished."""

import re
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Browser, Page, expect

from api.service.commands.lender import REQUESTS, last_day
from benchmarks.filled_console import MONTHS, SEED
from pipelines.pages.wording import title
from pipelines.synthetic import business
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from tests.browser.actions import wait_until_loaded
from tests.browser.conftest import invite, new_page, reload_until
from tests.browser.filled_console import FilledConsole
from tests.browser.people import Keyboard
from tests.browser.software import can_read_customer
from tests.browser.steps import REASON, approve, create_key, open_page, override_decision, replace_key, save_draft

UPLOADED_FOR = 41  # the number of a synthetic business that the lender of these tests doesn't have
DECIDED_BY = "merchant-cash-advance"
EDITED = "Line of credit"
ADOPTED = "data-stale"  # a ruleset of the library
PASSWORD = "correct horse battery"
EXPORT = "Date,Description,Amount,Balance\n2026-10-01,EFTPOS BAKERY,-12.50,987.50\n2026-10-02,DEPOSIT,100.00,1087.50\n"


def enter(console: FilledConsole, page: Page, role: Role) -> Keyboard:
    """Sign a new person in by a link."""
    keyboard = Keyboard(page)
    page.goto(invite(console, role)[1])
    keyboard.follow_button("Sign in")
    return keyboard


def test_password_is_set_and_used(console: FilledConsole, page: Page) -> None:
    email, link = invite(console, Role.VIEWER)
    keyboard = Keyboard(page)
    page.goto(link)
    keyboard.follow_button("Sign in")
    keyboard.follow_link("Ada the viewer")
    keyboard.type(page.locator("input[name=new]"), PASSWORD)
    keyboard.type(page.locator("input[name=again]"), PASSWORD)
    keyboard.follow_button("Save the password")
    keyboard.follow_button("Sign out")
    keyboard.type(page.get_by_label("Email address"), email)
    keyboard.type(page.get_by_label("Password"), PASSWORD)
    keyboard.follow_button("Sign in")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_figure_leads_to_the_line_on_the_statement_and_a_correction_is_undone(
    console: FilledConsole, page: Page
) -> None:
    keyboard = enter(console, page, Role.ANALYST)
    name = console.lender.get(f"/customer/{console.ids['read_customer_id']}")["name"]
    keyboard.follow_link("Customers")
    keyboard.type(page.get_by_label("Search"), name)
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    keyboard.follow_link(name)

    keyboard.follow_link("Reports")
    keyboard.follow_link("Annex: every table")
    keyboard.follow_link("Monthly cash flow")
    keyboard.follow(page.locator("a[href*='/monthly_cash_flow/values/0/revenue']"))
    expect(page.get_by_role("heading", name="Revenue: $")).to_be_visible()
    keyboard.follow(page.locator("td a, th a").first)
    transaction = page.url
    keyboard.follow_link("Show it on the statement")
    expect(page.locator("tr.marked")).to_have_count(1)

    page.goto(transaction)
    keyboard.choose(page.get_by_label("Category"), "Customer transfer")
    keyboard.press(page.get_by_label("Only this one"), "ArrowDown")
    expect(page.get_by_label("All with the same")).to_be_checked()
    page.keyboard.press("ArrowUp")
    keyboard.follow_button("Preview the correction")
    expect(page.get_by_text("to the category Customer transfer")).to_be_visible()
    keyboard.follow_button("Make the correction")
    expect(page.get_by_role("status")).to_contain_text("The correction is made.")
    keyboard.follow_button("Undo")
    expect(page.get_by_role("status")).to_contain_text("The correction is undone.")


def test_file_is_uploaded_for_a_new_customer(console: FilledConsole, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text(EXPORT)
    keyboard = enter(console, page, Role.ANALYST)
    keyboard.follow_link("Customers")
    keyboard.follow_link("New customer")
    keyboard.type(page.locator("input[name=abn]"), business(UPLOADED_FOR, MONTHS, SEED, last_day()).abn)
    keyboard.follow_button("Create the customer")
    keyboard.follow_link("Upload statements or bank exports")
    keyboard.choose_file(page.locator("input[name=file]"), file)
    keyboard.follow_button("Upload")
    reload_until(page, page.get_by_text("Completed", exact=True), shown=True)
    keyboard.follow_link("Show the transactions that it added")
    expect(page.get_by_text("EFTPOS BAKERY")).to_be_visible()


def test_decision_is_made_overridden_and_written_to_the_applicant(console: FilledConsole, page: Page) -> None:
    console.require_second_person()
    keyboard = enter(console, page, Role.APPROVER)
    page.goto(f"{console.service.base_url}/customers/{console.ids['customer_id']}/decisions")
    keyboard.follow(page.locator(f"a[href$='/decide/{DECIDED_BY}']"))
    for name, value in REQUESTS[DECIDED_BY].items():
        field = page.get_by_label(title(name, "months")).first
        if isinstance(value, bool):
            keyboard.choose(field, "Yes" if value else "No")
        else:
            keyboard.type(field, str(value))
    keyboard.follow_button("Decide")
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Decision: (Proceed|Conditional|Blocked)"))
    override_decision(keyboard)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    decision = page.url
    keyboard.follow_link("Letter")
    expect(page.get_by_role("heading", name="Our decision")).to_be_visible()
    page.goto(decision)
    keyboard.reach(page.get_by_role("link", name="Letter as PDF"))
    with page.expect_response(re.compile("letter[.]pdf$")) as printed:
        page.keyboard.press("Enter")
    assert (printed.value.status, printed.value.headers["content-type"]) == (200, "application/pdf")


def test_alert_is_snoozed_noted_and_acknowledged(console: FilledConsole, page: Page) -> None:
    keyboard, address = enter(console, page, Role.ANALYST), f"/alerts/{console.ids['match_id']}"
    page.goto(console.service.base_url + address)
    if page.get_by_role("button", name="Reopen", exact=True).count():  # another test may have closed it
        keyboard.follow_button("Reopen")
    keyboard.follow_link("Work")
    keyboard.follow(page.locator(f"a[href='{address}']"))
    keyboard.choose(page.get_by_label("Snooze"), "for 3 days")
    keyboard.follow_button("Snooze")
    expect(page.get_by_role("status")).to_have_text("The alert is snoozed.")
    keyboard.follow_button("Reopen")
    keyboard.type(page.get_by_label("New note"), "Rang the owner, who pays on Friday.")
    keyboard.follow_button("Add")
    expect(page.get_by_text("Rang the owner, who pays on Friday.")).to_be_visible()
    keyboard.follow_button("Acknowledge")
    expect(page.locator("ol.timeline li").first).to_contain_text("Acknowledged")


def test_policy_is_edited_checked_and_published(console: FilledConsole, page: Page) -> None:
    console.require_second_person()
    keyboard = enter(console, page, Role.APPROVER)
    keyboard.follow_link("Policies")
    keyboard.follow(page.get_by_role("link", name=EDITED))
    save_draft(keyboard, f"{EDITED}, revised")
    keyboard.follow(page.get_by_role("button", name="Publish version"))
    expect(page.get_by_role("status")).to_contain_text("is published")


def test_key_is_replaced_and_revoked(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ADMIN)
    old = create_key(keyboard)
    new = replace_key(keyboard)
    keyboard.follow_button("Revoke the key for ever")
    assert [can_read_customer(console, key) for key in (old, new)] == [False, True]


def test_second_person_approves_an_override(console: FilledConsole, page: Page, browser: Browser) -> None:
    console.require_second_person(ApprovalKind.OVERRIDE)
    first = enter(console, page, Role.APPROVER)
    open_page(first, console, "/evaluations/{evaluation_id}")
    override_decision(first)
    first.expect_status("The override is requested")
    second = enter(console, new_page(browser), Role.APPROVER)
    approve(second, REASON)
    open_page(second, console, "/evaluations/{evaluation_id}")
    expect(second.page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    second.page.context.close()


def test_ruleset_of_the_library_is_adopted_simulated_and_switched_on(console: FilledConsole, page: Page) -> None:
    console.require_second_person()
    keyboard = enter(console, page, Role.APPROVER)
    keyboard.follow_link("Rulesets")
    keyboard.follow_link("Adopt from the library")
    keyboard.follow(page.locator(f"a[href='/rulesets/new?from={ADOPTED}']"))
    document = page.get_by_label("Document")
    keyboard.type(document, document.input_value().replace(f"slug: {ADOPTED}", f"slug: {ADOPTED}-by-keyboard"))
    keyboard.follow_button("Save")
    keyboard.expect_status("is stored.")
    keyboard.follow_link("Simulate")
    keyboard.follow_button("Start the simulation")
    keyboard.follow_link("Show the whole simulation")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.go_back()
    keyboard.follow(page.locator("nav.back a"))
    keyboard.follow(page.locator("nav.back a"))
    keyboard.follow_button("Switch on")
    keyboard.expect_status("The ruleset watches from now on.")


def test_backtest_is_started_and_read(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ANALYST)
    open_page(keyboard, console, "/policies/{slug}")
    keyboard.follow_link("Backtests")
    keyboard.choose(page.get_by_label("Compare with"), "Recorded decisions")
    for field in page.locator("input[name^='input.']").all():
        keyboard.type(field, "50000")
    keyboard.follow_button("Start the backtest")
    keyboard.follow_link("Show the whole comparison")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_two_days_are_compared(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.VIEWER)
    open_page(keyboard, console, "/customers/{customer_id}/reports")
    keyboard.follow_link("Compare two dates")
    keyboard.follow_link("three months ago")
    wait_until_loaded(page)
    headings = page.get_by_role("caption").filter(has_text="Headline figures")
    expect(headings).to_have_text([f"Headline figures: {report}" for report in ("Risk", "Completeness", "Money")])
    expect(page.get_by_text("Rows dated between")).to_be_visible()
    more = page.get_by_role("link", name="changed figures of “Monthly cash flow”", exact=False)
    keyboard.follow(more)
    figure = page.locator("td a").first
    written = figure.inner_text()
    keyboard.follow(figure)
    expect(page.get_by_role("heading", level=2)).to_contain_text(written)


def test_submission_is_retracted(console: FilledConsole, page: Page) -> None:
    row = {"date": str(last_day()), "description": "SENT BY MISTAKE", "amount": "-1.00"}
    account = {"bsb": "062-000", "accountNumber": "44556600", "transactions": [row]}
    jobs = console.lender.submit(console.ids["customer_id"], [account])
    console.lender.wait_for_jobs(jobs)
    keyboard = enter(console, page, Role.ANALYST)
    page.goto(f"{console.service.base_url}/customers/{console.ids['customer_id']}/uploads/{jobs[0]}")
    keyboard.press(page.locator("summary", has_text="Retract this submission"))
    keyboard.follow_button("Retract 1 row")
    keyboard.expect_status("The submission is being retracted.")


def test_file_is_attached_downloaded_and_deleted(console: FilledConsole, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "lease.txt"
    file.write_text("Ends in March.")
    keyboard = enter(console, page, Role.ANALYST)
    open_page(keyboard, console, "/customers/{read_customer_id}/notes")
    keyboard.choose_file(page.locator("input[name=file]"), file)
    keyboard.follow_button("Attach")
    keyboard.expect_status("The file is attached.")
    keyboard.reach(page.get_by_role("link", name=file.name))
    with page.expect_download() as downloaded:
        page.keyboard.press("Enter")
    assert downloaded.value.path().read_text() == file.read_text()
    keyboard.follow_button("Delete this file")
    keyboard.expect_status("The file is deleted.")


def test_user_is_invited_changed_and_disabled(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ADMIN)
    for name in ("Admin", "Users", "New user"):
        keyboard.follow_link(name)
    keyboard.type(page.get_by_label("Name"), "Mary Keyes")
    keyboard.type(page.get_by_label("Email address"), f"{uuid4()}@example.com")
    keyboard.choose(page.locator("select[name=role]"), "Analyst")
    keyboard.follow_button("Create the user")
    assert "/sign-in/link?token=" in page.locator("textarea.secret").input_value()
    keyboard.follow_link("Back to the users")
    keyboard.follow_link("Mary Keyes")
    keyboard.choose(page.locator("select[name=role]"), "Approver")
    keyboard.follow_button("Save")
    keyboard.expect_status("The user is changed.")
    keyboard.follow_button("Disable and sign out")
    keyboard.expect_status("The user is disabled and signed out.")
    keyboard.press(page.locator("summary", has_text="Erase this user"))
    keyboard.follow_button("Erase")
    keyboard.expect_status("The user is erased.")


def test_webhook_is_created_tried_resent_and_deleted(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ADMIN)
    for name in ("Admin", "Webhooks", "New subscription"):
        keyboard.follow_link(name)
    keyboard.choose(page.locator("select[name=eventType]"), "Job completed (job.completed)")
    keyboard.type(page.get_by_label("Address"), "https://lender.example/keyboard")
    keyboard.follow_button("Create the subscription")
    assert page.locator("textarea.secret").input_value()
    keyboard.follow_link("To the subscription")
    keyboard.follow_button("Send a sample event")
    reload_until(page, page.get_by_text("1 attempt", exact=True), shown=True)
    keyboard.press(page.locator("summary", has_text="1 attempt"))
    keyboard.follow_button("Send again")
    keyboard.expect_status("The delivery is sent again.")
    keyboard.follow_button("Pause")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    keyboard.follow_button("Delete the subscription for ever")
    keyboard.expect_status("The subscription is deleted.")
