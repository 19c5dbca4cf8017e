"""The console by keyboard alone: each stop of Tab shows where the focus is, and each flow can be finished."""

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from api.service.commands.lender import REQUESTS, last_day
from benchmarks.house import MONTHS, SEED
from pipelines.pages.wording import title
from pipelines.synthetic import business
from storage.access import approvals
from storage.access.roles import Role
from tests.browser.conftest import invite, reload_until
from tests.browser.house import House
from tests.browser.software import works

MAX_STOPS = 500  # of Tab on a page: what isn't reached by then is out of reach
MAX_OPTIONS = 200  # of a choice
UPLOADED_FOR = 41  # a business that the house doesn't have
DECIDED_BY = "merchant-cash-advance"
EDITED = "Line of credit"
PASSWORD = "correct horse battery"
EXPORT = "Date,Description,Amount,Balance\n2026-10-01,EFTPOS BAKERY,-12.50,987.50\n2026-10-02,DEPOSIT,100.00,1087.50\n"
FOCUS = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    const style = getComputedStyle(each), box = each.getBoundingClientRect();
    const isInView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    const hasRing = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    return {isShown: isInView && hasRing, element: each.outerHTML.slice(0, 160)};
}"""


class Keyboard:
    """A person who only has a keyboard."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, target: Locator) -> None:
        """Press Tab until the target has the focus. Each stop on the way must be visible, and have a ring around it."""
        target.wait_for()
        for _ in range(MAX_STOPS):
            focus = self.page.evaluate(FOCUS)
            assert focus is None or focus["isShown"], f"the focus can't be seen: {focus['element']}"
            if target.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab doesn't reach {target}")

    def press(self, target: Locator, key: str = "Enter") -> None:
        self.reach(target)
        self.page.keyboard.press(key)

    def follow(self, target: Locator) -> None:
        """Press a link, or a button that sends a form, and wait for the page that it leads to."""
        self.reach(target)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def follow_link(self, name: str) -> None:
        self.follow(self.page.get_by_role("link", name=name, exact=True).first)

    def follow_button(self, name: str) -> None:
        self.follow(self.page.get_by_role("button", name=name, exact=True).first)

    def type(self, target: Locator, text: str) -> None:
        """Replace the text of a field."""
        self.press(target, "Control+A")
        self.page.keyboard.insert_text(text)

    def choose(self, target: Locator, option: str) -> None:
        """Choose an option by its words."""
        self.press(target, "Home")
        for _ in range(MAX_OPTIONS):
            if target.evaluate("each => each.selectedOptions[0].label") == option:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{target} has no option {option}")


def enter(house: House, page: Page, role: Role) -> Keyboard:
    """Sign a new person in by a link."""
    keyboard = Keyboard(page)
    page.goto(invite(house, role)[1])
    keyboard.follow_button("Sign in")
    return keyboard


def test_password_is_set_and_used(house: House, page: Page) -> None:
    email, link = invite(house, Role.VIEWER)
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


def test_figure_leads_to_the_line_on_the_statement_and_a_correction_is_undone(house: House, page: Page) -> None:
    keyboard = enter(house, page, Role.ANALYST)
    name = house.lender.get(f"/customer/{house.ids['read_customer_id']}")["name"]
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


def test_file_is_uploaded_for_a_new_customer(house: House, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text(EXPORT)
    keyboard = enter(house, page, Role.ANALYST)
    keyboard.follow_link("Customers")
    keyboard.follow_link("New customer")
    keyboard.type(page.locator("input[name=abn]"), business(UPLOADED_FOR, MONTHS, SEED, last_day()).abn)
    keyboard.follow_button("Create the customer")
    keyboard.follow_link("Upload statements or bank exports")
    keyboard.reach(page.locator("input[name=file]"))
    with page.expect_file_chooser() as opened:
        page.keyboard.press("Space")
    opened.value.set_files(file)
    keyboard.follow_button("Upload")
    reload_until(page, page.get_by_text("Completed", exact=True), shown=True)
    keyboard.follow_link("Show the transactions that it added")
    expect(page.get_by_text("EFTPOS BAKERY")).to_be_visible()


def test_decision_is_made_overridden_and_written_to_the_applicant(house: House, page: Page) -> None:
    without_second_person(house)
    keyboard = enter(house, page, Role.APPROVER)
    page.goto(f"{house.service.base_url}/customers/{house.ids['customer_id']}/decisions")
    keyboard.follow(page.locator(f"a[href$='/decide/{DECIDED_BY}']"))
    for name, value in REQUESTS[DECIDED_BY].items():
        field = page.get_by_label(title(name, "months")).first
        if isinstance(value, bool):
            keyboard.choose(field, "Yes" if value else "No")
        else:
            keyboard.type(field, str(value))
    keyboard.follow_button("Decide")
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Decision: (Proceed|Conditional|Blocked)"))
    keyboard.press(page.locator("summary", has_text="Override this decision"), "Space")
    keyboard.choose(page.get_by_label("Outcome"), "Blocked")
    keyboard.type(page.get_by_label("Reason"), "The landlord ends the lease in March.")
    keyboard.follow_button("Override")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    decision = page.url
    keyboard.follow_link("Letter")
    expect(page.get_by_role("heading", name="Our decision")).to_be_visible()
    page.goto(decision)
    keyboard.reach(page.get_by_role("link", name="Letter as PDF"))
    with page.expect_response(re.compile("letter[.]pdf$")) as printed:
        page.keyboard.press("Enter")
    assert (printed.value.status, printed.value.headers["content-type"]) == (200, "application/pdf")


def test_alert_is_snoozed_noted_and_acknowledged(house: House, page: Page) -> None:
    keyboard, address = enter(house, page, Role.ANALYST), f"/alerts/{house.ids['match_id']}"
    page.goto(house.service.base_url + address)
    if page.get_by_role("button", name="Reopen", exact=True).count():  # a story has closed it
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


def test_policy_is_edited_checked_and_published(house: House, page: Page) -> None:
    without_second_person(house)
    keyboard = enter(house, page, Role.APPROVER)
    keyboard.follow_link("Policies")
    keyboard.follow(page.get_by_role("link", name=EDITED))
    keyboard.follow_link("Edit")
    document = page.get_by_label("Document")
    correct = document.input_value()
    keyboard.type(document, correct + "\nnobody_knows_this: 1\n")
    expect(page.locator("#findings")).to_contain_text("nobody_knows_this")  # checked while typing
    keyboard.type(document, correct.replace(f"name: {EDITED}", f"name: {EDITED}, revised"))
    keyboard.follow_button("Check")
    for box in page.locator("input[name=accept]").all():
        keyboard.press(box, "Space")
    keyboard.follow_button("Save as a draft")
    expect(page.get_by_role("status")).to_contain_text("is stored as a draft")
    keyboard.follow(page.get_by_role("button", name="Publish version"))
    expect(page.get_by_role("status")).to_contain_text("is published")


def test_key_is_replaced_and_revoked(house: House, page: Page) -> None:
    keyboard = enter(house, page, Role.ADMIN)
    keyboard.follow_link("Admin")
    keyboard.follow_link("API keys")
    keyboard.follow_link("New key")
    keyboard.press(page.get_by_label("customer:reports"), "Space")
    keyboard.follow_button("Create the key")
    old = page.get_by_label("Key", exact=True).input_value()
    keyboard.follow_link("Back to the keys")
    keyboard.follow(page.get_by_role("link", name=old[-4:]))
    old_page = page.url
    keyboard.choose(page.get_by_label("How long both are valid"), "A week")
    keyboard.follow_button("Replace the key")
    new = page.get_by_label("Key", exact=True).input_value()
    page.goto(old_page)
    keyboard.follow_button("Revoke the key for ever")
    assert [works(house, key) for key in (old, new)] == [False, True]


def without_second_person(house: House) -> None:
    store = house.service.store()
    with store.db.writing() as w:
        approvals.set_four_eyes(w, house.client_id, [])
    store.close()
