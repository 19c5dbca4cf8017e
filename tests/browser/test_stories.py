"""What people do with the console, from start to end, in a real browser, and what the lender's software sees of it."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from api.service.commands.lender import REQUESTS, known_attributes, last_day
from benchmarks.filled_console import MONTHS, SEED
from pipelines.pages.wording import spell_out, title
from pipelines.synthetic import business, submissions
from pipelines.synthetic.pdf import statement_pdf
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from tests.browser.conftest import new_page, reload_until, sign_in
from tests.browser.filled_console import FilledConsole
from tests.browser.people import Mouse
from tests.browser.software import ask_service, can_read_customer
from tests.browser.steps import REASON, approve, create_key, open_page, override_decision, replace_key, save_draft

NEW_CUSTOMER = 40  # a business that the console doesn't have
POLICY = "working-capital-loan"


def write_exports(folder: Path) -> list[Path]:
    """Write a business's accounts as a bank would export them, a CSV file each."""
    files = []
    for nth, account in enumerate(submissions(business(NEW_CUSTOMER, MONTHS, SEED, last_day()))):
        files.append(folder / f"account-{nth}.csv")
        with files[-1].open("w", newline="") as sink:
            writer = csv.writer(sink)
            writer.writerow(["Date", "Description", "Amount", "Balance"])
            for row in account["transactions"]:
                writer.writerow([row["date"], row["description"], row["amount"], row.get("balance", "")])
    return files


def fill_application(page: Page) -> None:
    """Fill in what the policy asks for, and what it may read of the customer."""
    values = dict(REQUESTS[POLICY]) | {
        name: value["value"] if isinstance(value, dict) else value for name, value in known_attributes().items()
    }
    for name, value in values.items():
        field = page.get_by_label(title(name, "months"), exact=False).first
        if not field.count():
            continue
        if isinstance(value, bool):
            field.select_option("yes" if value else "no")
        else:
            field.fill(str(value))


@pytest.mark.timeout(600)  # includes the start of the service
def test_analyst_from_upload_to_letter(console: FilledConsole, page: Page, tmp_path: Path) -> None:
    sign_in(console, page, Role.ANALYST)
    page.get_by_role("link", name="Customers").click()
    page.get_by_role("link", name="New customer").click()
    page.locator("input[name=abn]").fill(business(NEW_CUSTOMER, MONTHS, SEED, last_day()).abn)
    page.locator("input[name=name]").fill("Story Bakery")
    page.get_by_role("button", name="Create").click()
    customer_id = page.url.split("/")[-1]
    assert ask_service(console, "customer", customerId=customer_id)["name"] == "Story Bakery"

    page.get_by_role("link", name="Upload", exact=True).click()
    files = [*write_exports(tmp_path), tmp_path / "statement.pdf"]
    files[-1].write_bytes(statement_pdf("nab", SEED, pages=1).content)
    page.locator("input[name=file]").set_input_files(files)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#jobs").get_by_text("Completed")).to_have_count(len(files))  # without reloading the page
    expect(page.locator("#jobs-status")).to_have_text("")
    page.get_by_role("link", name="All statements").click()
    expect(page.get_by_role("row", name="statement.pdf")).to_contain_text("Proved by its balances")

    page.get_by_role("link", name="Overview").click()
    reload_until(page, page.get_by_text("Data under way"), shown=False)
    page.get_by_role("button", name="Refresh the reports").click()
    reload_until(page, page.get_by_text("Ready", exact=True), shown=True)
    page.get_by_role("link", name="Reports", exact=True).click()
    expect(page.get_by_role("heading", name="Contents")).to_be_visible()

    page.get_by_role("link", name="Decisions").click()
    page.locator(f"a[href$='/decide/{POLICY}']").click()
    fill_application(page)
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Proceed|Conditional|Blocked"))
    [decision] = ask_service(console, "decisions", customerId=customer_id)
    expect(page.get_by_role("heading", level=1)).to_contain_text(spell_out(decision["outcome"]))
    page.get_by_role("link", name="Letter", exact=True).click()
    expect(page.locator("body")).to_contain_text("Story Bakery")


def test_faulty_filters_are_explained_while_somebody_types(console: FilledConsole, page: Page) -> None:
    sign_in(console, page, Role.VIEWER)
    person, found = Mouse(page), page.locator("#found")
    for path, field, faulty, words, good in (
        ("/customers", "Search", "a", "A search must have 3 to 200 characters", "nobody at all"),
        ("/customers/{customer_id}/transactions", "At least", "abc", "“At least” must be an amount", "0.01"),
    ):
        open_page(person, console, path)
        rows = found.locator("tbody tr")
        expect(rows.first).to_be_visible()
        expect(found.get_by_role("link", name="Show all")).to_have_count(0)
        page.get_by_label(field).press_sequentially(faulty)
        page.keyboard.press("Enter")
        expect(found.get_by_role("alert")).to_contain_text(words)
        expect(found.locator(".empty, tbody tr")).to_have_count(0)
        page.get_by_label(field).fill(good)
        page.keyboard.press("Enter")
        expect(found.get_by_role("alert")).to_have_count(0)
        found.get_by_role("link", name="Show all").click()
        expect(rows.first).to_be_visible()


def test_files_are_dropped(console: FilledConsole, page: Page) -> None:
    person = Mouse(sign_in(console, page, Role.ANALYST))
    open_page(person, console, "/customers/{read_customer_id}/upload")
    dropped = page.evaluate_handle(
        """() => {
            const dropped = new DataTransfer();
            for (const name of ["june.png", "july.png"]) dropped.items.add(new File(["PNG"], name));
            return dropped;
        }"""
    )
    page.locator(".drop").dispatch_event("drop", {"dataTransfer": dropped})
    expect(page.locator(".chosen")).to_have_text("june.png, july.png")
    person.follow_button("Upload")
    for name in ("june.png", "july.png"):
        expect(page.get_by_role("alert")).to_contain_text(f"{name}: The file has no line with a date and an amount")


def test_approver_decides_on_a_colleagues_override(console: FilledConsole, page: Page, browser: Browser) -> None:
    console.require_second_person(ApprovalKind.OVERRIDE)
    first = Mouse(sign_in(console, page, Role.APPROVER))
    open_page(first, console, "/evaluations/{evaluation_id}")
    override_decision(first)
    first.follow_link("Approvals")
    expect(page.get_by_text("somebody else must decide")).to_be_visible()

    second = Mouse(sign_in(console, new_page(browser), Role.APPROVER))
    approve(second, REASON)
    open_page(second, console, "/evaluations/{evaluation_id}")
    expect(second.page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    assert (
        ask_service(console, "evaluation", evaluationId=console.ids["evaluation_id"])["overrides"][-1]["outcome"]
        == "blocked"
    )
    second.page.context.close()


def test_author_takes_a_policy_from_draft_to_publication(console: FilledConsole, page: Page, browser: Browser) -> None:
    console.require_second_person(ApprovalKind.PUBLISH)
    sign_in(console, page, Role.ANALYST)
    page.goto(f"{console.service.base_url}/policies/{POLICY}")
    save_draft(Mouse(page), "Working capital loan, revised")
    draft = page.url
    assert not page.get_by_role("button", name="Publish").count(), "an analyst may not publish"

    first = sign_in(console, new_page(browser), Role.APPROVER)
    first.goto(draft)
    first.get_by_role("button", name="Publish").click()
    second = sign_in(console, new_page(browser), Role.APPROVER)
    approve(Mouse(second), "Working capital loan, revised")
    page.goto(draft)
    expect(page.locator("header .badge").first).to_have_text("Published")
    assert ask_service(console, "policy", slug=POLICY)["document"]["name"] == "Working capital loan, revised"
    for each in (first, second):
        each.context.close()


def test_alert_is_handled_to_its_end(console: FilledConsole, page: Page) -> None:
    sign_in(console, page, Role.ANALYST)
    alert = page.locator(f"a[href='/alerts/{console.ids['match_id']}']")
    alert.click()
    page.get_by_label("Assign to").select_option(label="Ada the analyst")
    page.get_by_role("button", name="Assign").click()
    page.get_by_role("link", name=re.compile("Transactions behind")).first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.go_back()
    page.get_by_label("New note").fill("The customer paid by hand on Monday.")
    page.get_by_role("button", name="Add").click()
    page.goto(f"{console.service.base_url}/alerts/{console.ids['match_id']}")
    expect(page.get_by_text("The customer paid by hand on Monday.")).to_be_visible()
    page.get_by_label("Close, because").fill("Paid.")
    page.get_by_role("button", name="Close").click()
    page.goto(f"{console.service.base_url}/work")
    expect(alert).to_have_count(0)
    page.goto(f"{console.service.base_url}/alerts/{console.ids['match_id']}")
    expect(page.locator("ol.timeline")).to_contain_text("Closed: Paid.")
    assert ask_service(console, "alert", matchId=console.ids["match_id"])["state"] == "closed"


def test_admin_rotates_a_key(console: FilledConsole, page: Page) -> None:
    admin = Mouse(sign_in(console, page, Role.ADMIN))
    old = create_key(admin)
    new = replace_key(admin)
    assert [can_read_customer(console, key) for key in (old, new)] == [True, True], "both are valid during the overlap"
    admin.follow_button("Revoke the key for ever")
    assert [can_read_customer(console, key) for key in (old, new)] == [False, True]
