"""Pages that only an action shows: forms with faults, refusals, previews, rare states, secrets that are shown once."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import uuid4

from playwright.sync_api import Page, expect

from pipelines.synthetic.pdf import statement_pdf
from tests.browser.filled_console import FilledConsole

Action = Callable[[FilledConsole, Page], None]
PRESS_AS_IT_IS: Final = "button => { button.form.noValidate = true; button.click(); }"


def wait_until_loaded(page: Page) -> None:
    """Wait until the page has fetched the parts that come after it."""
    expect(page.locator("[hx-trigger=load]")).to_have_count(0)


def _open(console: FilledConsole, page: Page, path: str) -> None:
    page.goto(console.service.base_url + path.format_map(console.ids))


def _press(page: Page, button: str) -> None:
    """Press a button whose form the browser would not send, because a required field is empty or wrong."""
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).first.evaluate(PRESS_AS_IT_IS)


def _search_too_short(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers?search=a")


def _new_customer(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/new")
    page.locator("input[name=abn]").fill("123")
    page.locator("input[name=state]").fill("Queensland and more")
    _press(page, "Create the customer")


def _application(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/decide/{slug}")
    page.locator("input[inputmode=decimal]").first.fill("abc")
    _press(page, "Decide")


def _transactions(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/transactions?minAmount=abc")


def _upload(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{read_customer_id}/upload")
    files = [{"name": name, "mimeType": "image/png", "buffer": b"\x89PNG"} for name in ("june.png", "july.png")]
    page.locator("input[name=file]").set_input_files(files)
    _press(page, "Upload")


def _correction(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/transactions/{transaction_id}")
    page.locator("select[name=category]").select_option(index=2)
    page.locator("input[name=counterpartyName]").fill("Harbour Bakery Supplies")
    page.locator("input[name=which][value=similar]").check()
    _press(page, "Preview the correction")


def _override(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/evaluations/{evaluation_id}")
    page.get_by_text("Override this decision").click()
    _press(page, "Override")
    expect(page.get_by_role("alert").first).to_be_visible()  # what opens the form may count as a navigation, too
    wait_until_loaded(page)


def _closing_an_alert(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/alerts/{match_id}")
    _press(page, "Close")


def _key_without_scope(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/keys/new")
    _press(page, "Create the key")


def _new_key(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/keys/new")
    page.get_by_label("customer:reports").check()
    _press(page, "Create the key")


def _faulty_user(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/users/new")
    page.locator("input[name=email]").fill("ada")
    _press(page, "Create the user")


def _new_user(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/users/new")
    page.locator("input[name=name]").fill("Ada Lovelace")
    page.locator("input[name=email]").fill(f"{uuid4()}@example.com")
    _press(page, "Create the user")


def _faulty_webhook(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/webhooks/new")
    page.locator("input[name=webhookUrl]").fill("http://lender.example/")
    page.locator("textarea[name=customerIds]").fill("nobody")
    _press(page, "Create the subscription")


def _faulty_retries(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/webhooks/{paused_subscription_id}")
    page.locator("input[name=maxRetries]").fill("99")
    page.locator("input[name=pauseAfterFailures]").fill("0")
    _press(page, "Save")


def _faulty_customers(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/webhooks/{paused_subscription_id}/customers")
    page.locator("textarea[name=customerIds]").fill("nobody")
    _press(page, "Add the customers")


def _faulty_attribute(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/details")
    page.locator("#attribute input[name=name]").fill("1")
    _press(page, "Store the attribute")


def _faulty_party(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/details")
    page.locator("input[name=abn]").fill("123")
    _press(page, "Add the party")


def _empty_file(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{customer_id}/notes")
    page.locator("input[name=file]").set_input_files({"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    _press(page, "Attach")


def _new_webhook(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/webhooks/new")
    page.locator("input[name=webhookUrl]").fill("https://lender.example/hook")
    _press(page, "Create the subscription")


def _policy(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/policies/{slug}/edit")
    document = page.get_by_label("Document")
    document.fill(document.input_value() + "\nnobody_knows_this: 1\n")
    _press(page, "Check")


def _password(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/account")
    page.locator("input[name=new]").fill("one")
    page.locator("input[name=again]").fill("another")
    _press(page, "Save the password")


def _running_job(console: FilledConsole, page: Page) -> None:
    """Show a job that runs: the file is new each time, because one that was read is not read again."""
    long = statement_pdf("nab", uuid4().int % 1_000_000, pages=30)
    job_id = console.lender.upload(console.ids["read_customer_id"], "year.pdf", long.content)
    _open(console, page, f"/customers/{{read_customer_id}}/uploads/{job_id}")
    expect(page.locator("#job[hx-trigger='every 1s']")).to_be_visible()


def _marked_row(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{read_customer_id}/statements/{statement_id}?row=3")


def _pending_override(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/evaluations/{pending_evaluation_id}")
    expect(page.get_by_role("heading", name="An override waits for a second person")).to_be_visible()
    wait_until_loaded(page)


def _indeterminate(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/evaluations/{indeterminate_evaluation_id}")
    expect(page.get_by_role("heading", name="What would resolve it")).to_be_visible()
    wait_until_loaded(page)


def _paused_webhook(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/admin/webhooks/{paused_subscription_id}")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def _unknown_page(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customer")


def _unknown_customer(console: FilledConsole, page: Page) -> None:
    _open(console, page, "/customers/{match_id}")


ACTIONS: Final[Mapping[str, Action]] = {  # by a name for files
    "customers-fault": _search_too_short,
    "customers-new-fault": _new_customer,
    "customers-customer-decide-slug-fault": _application,
    "customers-customer-transactions-fault": _transactions,
    "customers-customer-upload-fault": _upload,
    "customers-customer-details-attribute-fault": _faulty_attribute,
    "customers-customer-details-party-fault": _faulty_party,
    "customers-customer-notes-fault": _empty_file,
    "customers-customer-transactions-correction": _correction,
    "customers-customer-uploads-running": _running_job,
    "customers-customer-statements-row": _marked_row,
    "evaluations-evaluation-pending": _pending_override,
    "evaluations-evaluation-indeterminate": _indeterminate,
    "admin-webhooks-paused": _paused_webhook,
    "evaluations-evaluation-override-fault": _override,
    "alerts-match-fault": _closing_an_alert,
    "admin-keys-new-fault": _key_without_scope,
    "admin-keys-made": _new_key,
    "admin-users-new-fault": _faulty_user,
    "admin-users-link": _new_user,
    "admin-webhooks-new-fault": _faulty_webhook,
    "admin-webhooks-subscription-fault": _faulty_retries,
    "admin-webhooks-subscription-customers-fault": _faulty_customers,
    "admin-webhooks-secret": _new_webhook,
    "policies-slug-edit-fault": _policy,
    "account-fault": _password,
    "unknown-page": _unknown_page,
    "unknown-customer": _unknown_customer,
}
