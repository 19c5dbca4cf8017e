"""Steps that the stories and the tests of the keyboard share."""

from playwright.sync_api import expect

from tests.browser.filled_console import FilledConsole
from tests.browser.people import Person

REASON = "The landlord ends the lease in March."


def override_decision(person: Person) -> None:
    """Override the decision that is shown."""
    person.press(person.page.locator("summary", has_text="Override this decision"), "Space")
    person.choose(person.page.get_by_label("Outcome"), "Blocked")
    person.type(person.page.get_by_label("Reason"), REASON)
    person.follow_button("Override")


def approve(person: Person, words: str) -> None:
    """Approve what a colleague requested."""
    person.follow_link("Approvals")
    request = person.page.locator("article", has_text=words)
    person.follow(request.get_by_role("button", name="Approve"))
    person.expect_status("The request is approved")


def save_draft(person: Person, name: str) -> None:
    """Edit the policy that is shown: give it a name, and save it as a draft."""
    page = person.page
    person.follow_link("Edit")
    document = page.get_by_label("Document")
    [old] = [line for line in document.input_value().splitlines() if line.startswith("name: ")]
    correct = document.input_value()
    person.type(document, correct + "\nnobody_knows_this: 1\n")
    expect(page.locator("#findings")).to_contain_text("nobody_knows_this")  # checked while typing
    person.type(document, correct.replace(old, f"name: {name}"))
    person.follow_button("Check")
    for box in page.locator("input[name=accept]").all():
        person.press(box, "Space")
    person.follow_button("Save as a draft")
    person.expect_status("is stored as a draft")


def create_key(person: Person) -> str:
    """Create a key, and open its page; return the key."""
    for name in ("Admin", "API keys", "New key"):
        person.follow_link(name)
    person.press(person.page.get_by_label("customer:reports"), "Space")
    person.follow_button("Create the key")
    key = person.page.locator("textarea.secret").input_value()
    person.follow_link("Back to the keys")
    person.follow(person.page.get_by_role("link", name=key[-4:]))
    return key


def replace_key(person: Person) -> str:
    """Replace the key that is shown, and return to its page; return the new key."""
    old = person.page.url
    person.choose(person.page.get_by_label("How long both are valid"), "A week")
    person.follow_button("Replace the key")
    key = person.page.locator("textarea.secret").input_value()
    person.page.goto(old)
    return key


def open_page(person: Person, console: FilledConsole, path: str) -> None:
    person.page.goto(console.service.base_url + path.format_map(console.ids))
