"""Every form of the console by keyboard: Tab reaches each of its controls, and Enter sends it."""

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from benchmarks.filled_console import list_pages
from storage.access.roles import Role
from tests.browser.actions import wait_until_loaded
from tests.browser.conftest import is_page, sign_in
from tests.browser.filled_console import FilledConsole, addresses
from tests.browser.people import FOCUS

MAX_STOPS: Final = 600  # of Tab on a page
MORE: Final = (  # pages that have other forms in another state
    "/admin/webhooks/{paused_subscription_id}",
    "/admin/webhooks/{paused_subscription_id}/customers",
    "/evaluations/{pending_evaluation_id}",
    "/customers/{watched_customer_id}/resolutions",
    "/customers/{customer_id}/details?party=0",
    "/policies/{slug}?version=2",
)
SENT_ELSEWHERE: Final = {  # forms of states that only a flow reaches; `test_keyboard.py` sends them
    "/approvals/{approval_id}/withdraw",
    "/admin/users/{user_id}/enable",
    "/policies/{slug}/unarchive",
    "/rulesets/{ruleset_id}/unarchive",
}
# Numbers the controls of forms, lets no form be sent, and counts what would have been. Validation would move the focus.
PREPARE: Final = """() => {
    window.sent = 0;
    window.addEventListener("submit", each => {
        each.preventDefault();
        each.stopImmediatePropagation();
        window.sent += 1;
    }, true);
    const controls = document.querySelectorAll("form :is(input:not([type=hidden]), select, textarea, button)");
    controls.forEach((each, nth) => { each.dataset.nth = nth; each.form.noValidate = true; });
    const isOffered = each => !each.disabled && (each.type !== "radio" || each.checked
        || !each.form.querySelector(`[name="${each.name}"]:checked`));
    const posted = [...document.querySelectorAll("form[method=post]")];
    const actions = posted.map(each => each.getAttribute("action").split("?")[0]);
    return {wanted: [...controls].filter(isOffered).map(each => each.dataset.nth), actions};
}"""
STOP: Final = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    const isLine = ["text", "search", "email", "url", "password"].includes(each.type);
    return {
        nth: each.dataset.nth ?? null,
        isClosed: each.tagName === "SUMMARY" && !each.parentElement.open,
        sends: each.form != null && (each.type === "submit" || isLine),
        element: each.outerHTML.slice(0, 160),
    };
}"""


@pytest.mark.timeout(900)
def test_every_form_is_reached_and_sent_by_keyboard(
    console: FilledConsole, page: Page, subtests: pytest.Subtests
) -> None:
    sign_in(console, page, Role.ADMIN)
    paths = [*addresses(console).values(), *(path.format_map(console.ids) for path in MORE)]
    walked = set[str]()
    for path in paths:
        url = console.service.base_url + path
        if path.startswith("/sign-in") or not is_page(page.context, url):
            continue
        with subtests.test(path):
            page.goto(url)
            wait_until_loaded(page)
            walked |= walk(page)
    store = console.service.store()
    routes = [path for path in list_pages(store, "POST") if not path.startswith("/sign-in")]
    store.close()
    missing = {path for path in routes if not any(fits(path, each) for each in walked)}
    assert missing <= SENT_ELSEWHERE


def walk(page: Page) -> set[str]:
    """Press Tab from the start of the page to its end, and Enter where it sends a form; return where forms are sent."""
    found: dict[str, Any] = page.evaluate(PREPARE)
    missing = set(found["wanted"])
    for _ in range(MAX_STOPS if missing else 0):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None:
            continue
        if stop["isClosed"]:
            page.keyboard.press("Enter")
        if stop["nth"] not in missing:
            continue
        assert page.evaluate(FOCUS)["isShown"], f"the focus can't be seen: {stop['element']}"
        missing.remove(stop["nth"])
        if stop["sends"]:
            sent = page.evaluate("window.sent")
            page.keyboard.press("Enter")
            assert page.evaluate("window.sent") == sent + 1, f"Enter doesn't send the form: {stop['element']}"
        if not missing:
            break
    out_of_reach = [page.locator(f"[data-nth='{nth}']").first.evaluate("each => each.outerHTML") for nth in missing]
    assert out_of_reach == []
    return set(found["actions"])


def fits(path: str, action: str) -> bool:
    """Return whether an address is one of a path with parameters in braces."""
    return re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), action) is not None
