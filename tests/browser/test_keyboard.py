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
WRITTEN = "Written by keyboard"
STEP = """\
steps:
  - name: Debt
    outcome: blocked
    match: any
    rules:
      - code: DEBT_SERVICE
        message: Debt service takes more than 35 % of revenue.
        customerMessage: Repayments already take a large part of your revenue.
        condition: {moreThan: [{metric: debt_service_to_revenue_180d}, "0.35"]}
        onUnavailable: notMatched
"""
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
    expect(page.get_by_role("status").first).to_contain_text("The correction is made.")
    keyboard.follow_button("Undo")
    expect(page.get_by_role("status").first).to_contain_text("The correction is undone.")


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


def test_policy_is_written_from_nothing_challenged_and_archived(console: FilledConsole, page: Page) -> None:
    console.require_second_person()
    keyboard = enter(console, page, Role.APPROVER)
    keyboard.follow_link("Policies")
    keyboard.follow_link("New policy")
    document = page.get_by_label("Document")
    text = document.input_value().replace("slug: my-policy", "slug: by-keyboard")
    text = text.replace("name: My policy", f"name: {WRITTEN}").replace("steps: []\n", STEP)
    keyboard.type(document, text)
    warning = page.get_by_role("checkbox")
    warning.wait_for()  # checked while typing
    shown = warning.element_handle()
    keyboard.type(document, text + "\n")
    keyboard.reach(warning)
    page.wait_for_function("each => !each.isConnected", arg=shown)  # checked again
    expect(warning).to_be_focused()
    page.keyboard.press("Space")
    keyboard.follow_button("Save as a draft")
    keyboard.expect_status("Version 1 is stored as a draft.")
    keyboard.follow_button("Publish version 1")
    keyboard.expect_status("Version 1 is published")

    save_draft(keyboard, f"{WRITTEN}, revised")
    keyboard.type(page.get_by_label("Percent of customers"), "20")
    keyboard.follow_button("Make it the challenger")
    keyboard.expect_status("Version 2 decides beside the published version for 20 % of the customers")
    keyboard.follow_button("Stop the challenger")
    keyboard.expect_status("No draft decides beside the published version any more.")
    keyboard.follow_button("Archive")
    keyboard.expect_status("The policy is archived: it decides nothing.")
    keyboard.follow_link("Policies")
    keyboard.choose(page.get_by_label("Archived policies"), "Included")
    keyboard.follow_button("Show")
    keyboard.follow_link(WRITTEN)
    keyboard.follow_button("Unarchive")
    keyboard.expect_status("The policy is taken back from the archive.")


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


def test_ruleset_of_the_library_is_adopted_simulated_and_archived(console: FilledConsole, page: Page) -> None:
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
    keyboard.follow_button("Archive")
    keyboard.expect_status("The ruleset is archived: it watches nobody.")
    keyboard.follow_button("Unarchive")
    keyboard.expect_status("The ruleset is taken back from the archive.")


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


def test_attribute_and_related_party_are_set_and_removed(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ANALYST)
    open_page(keyboard, console, "/customers/{read_customer_id}/details")
    form = page.locator("form", has_text="Set an attribute")
    keyboard.type(form.get_by_label("Name"), "bureau_score")
    keyboard.choose(form.get_by_label("Kind"), "Number")
    keyboard.type(form.get_by_label("Value").first, "684")
    keyboard.reach(form.get_by_label("Day of the evidence"))
    page.keyboard.type("10102025")  # day and month have fields of their own, in the browser's order
    keyboard.follow_button("Store the attribute")
    keyboard.expect_status("The attribute is stored.")
    row = page.get_by_role("row", name="bureau_score")
    expect(row).to_contain_text("684")
    expect(row).to_contain_text("10 Oct 2025")
    keyboard.follow_link("Bureau score")
    keyboard.type(form.get_by_label("Value").first, "700")
    keyboard.follow_button("Store the attribute")
    expect(row).to_contain_text("700")
    keyboard.follow_button("Remove Bureau score")
    keyboard.expect_status("The attribute is removed.")
    expect(row).to_have_count(0)

    form = page.locator("form", has_text="Add a related party")
    keyboard.type(form.get_by_label("Name"), "Mary Keyes")
    keyboard.choose(form.get_by_label("Role"), "Guarantor")
    keyboard.follow_button("Add the party")
    keyboard.expect_status("The related party is added.")
    keyboard.follow_link("Mary Keyes")
    form = page.locator("form", has_text="Change the related party")
    keyboard.choose(form.get_by_label("Role"), "Director")
    keyboard.follow_button("Change the party")
    keyboard.expect_status("The related party is changed.")
    expect(page.get_by_role("row", name="Mary Keyes")).to_contain_text("Director")
    keyboard.follow_button("Remove Mary Keyes")
    keyboard.expect_status("The related party is removed.")


def test_finding_is_resolved_and_its_resolution_revoked(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ANALYST)
    open_page(keyboard, console, "/customers/{watched_customer_id}/reports")
    keyboard.follow_link("Findings and events")
    named = page.get_by_role("article").first.get_attribute("aria-labelledby")
    item = page.locator(f"article[aria-labelledby='{named}']")
    keyboard.type(item.get_by_label("Why it is explained"), REASON)
    keyboard.follow(item.get_by_role("button", name="Resolve"))
    keyboard.expect_status("It is resolved.")
    expect(item).to_contain_text(REASON)
    keyboard.follow_link("Overview")
    reload_until(page, page.get_by_text("Ready", exact=True), shown=True)
    keyboard.follow_link("Reports")
    keyboard.follow_link("Findings and events")
    keyboard.follow(item.get_by_role("button", name="Revoke the resolution"))
    keyboard.expect_status("The resolution is revoked.")
    expect(item.get_by_label("Why it is explained")).to_be_empty()


def test_note_and_file_are_added_and_deleted(console: FilledConsole, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "lease.txt"
    file.write_text("Ends in March.")
    keyboard = enter(console, page, Role.ANALYST)
    open_page(keyboard, console, "/customers/{read_customer_id}/notes")
    keyboard.type(page.get_by_label("New note"), REASON)
    keyboard.follow_button("Add the note")
    keyboard.expect_status("The note is stored.")
    keyboard.follow(page.locator("article", has_text=REASON).get_by_role("button", name="Delete"))
    keyboard.expect_status("The note's text is deleted.")
    expect(page.get_by_text(REASON)).to_have_count(0)
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
    keyboard.follow_button("Let the user sign in again")
    keyboard.expect_status("The user can sign in again.")
    keyboard.press(page.locator("summary", has_text="Erase this user"))
    keyboard.follow_button("Erase")
    keyboard.expect_status("The user is erased.")


def test_four_eyes_are_set_by_one_admin_and_lifted_by_two(console: FilledConsole, page: Page, browser: Browser) -> None:
    console.require_second_person()
    first, second = enter(console, page, Role.ADMIN), enter(console, new_page(browser), Role.ADMIN)
    box = page.get_by_label("Override a decision")

    def change() -> None:
        for name in ("Admin", "Four eyes"):
            first.follow_link(name)
        first.press(box, "Space")
        first.follow_button("Save")

    change()
    first.expect_status("The setting is stored.")
    change()
    first.expect_status("The change is requested: another admin must approve it.")
    second.follow_link("Approvals")
    request = second.page.locator("article", has_text="Lift four eyes")
    second.press(request.locator("summary", has_text="Decline"), "Space")
    second.type(request.get_by_label("Reason"), REASON)
    second.follow(request.get_by_role("button", name="Decline"))
    second.expect_status("The request is declined.")
    first.follow_link("Approvals")
    first.choose(page.get_by_label("Status"), "Declined")
    first.follow_button("Show")
    expect(page.get_by_role("article").first).to_contain_text(REASON)
    change()
    first.follow_link("Approvals")
    first.follow(page.locator("article", has_text="Lift four eyes").get_by_role("button", name="Withdraw"))
    first.expect_status("The request is withdrawn.")
    change()
    approve(second, "Lift four eyes")
    for name in ("Admin", "Four eyes"):
        first.follow_link(name)
    expect(box).not_to_be_checked()
    second.page.context.close()


def test_webhook_is_created_tried_changed_and_deleted(console: FilledConsole, page: Page) -> None:
    keyboard = enter(console, page, Role.ADMIN)
    for name in ("Admin", "Webhooks", "New subscription"):
        keyboard.follow_link(name)
    keyboard.choose(page.locator("select[name=eventType]"), "Job completed (job.completed)")
    keyboard.type(page.get_by_label("Address"), "https://lender.example/keyboard")
    keyboard.follow_button("Create the subscription")
    secret = page.locator("textarea.secret").input_value()
    keyboard.follow_link("To the subscription")
    keyboard.follow_button("Replace the secret")
    assert page.locator("textarea.secret").input_value() not in ("", secret)
    keyboard.follow_link("To the subscription")
    keyboard.follow_button("Send a sample event")
    reload_until(page, page.get_by_text("1 attempt", exact=True), shown=True)
    keyboard.press(page.locator("summary", has_text="1 attempt"))
    keyboard.follow_button("Send again")
    keyboard.expect_status("The delivery is sent again.")
    keyboard.type(page.get_by_label("Retries"), "3")
    keyboard.follow_button("Save")
    keyboard.expect_status("The subscription is changed.")
    expect(page.get_by_label("Retries")).to_have_value("3")
    keyboard.follow_link("Change the customers")
    keyboard.type(page.get_by_label("Add customers"), console.ids["customer_id"])
    keyboard.follow_button("Add the customers")
    keyboard.expect_status("The customers are added.")
    keyboard.follow(page.get_by_role("button", name="Remove"))
    keyboard.expect_status("The events of all customers are sent from now on.")
    keyboard.follow(page.locator("nav.back a"))
    keyboard.follow_button("Pause")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    keyboard.follow_button("Delete the subscription for ever")
    keyboard.expect_status("The subscription is deleted.")
