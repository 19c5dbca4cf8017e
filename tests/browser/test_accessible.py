"""Every page that people see: accessible by axe's rules, on a wide and a narrow screen, in light and dark colours."""

from collections.abc import Iterator
from itertools import product
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect

from storage.access.roles import Role
from tests.browser.actions import ACTIONS, wait_until_loaded
from tests.browser.conftest import is_page, sign_in
from tests.browser.filled_console import FilledConsole, addresses

Colours = Literal["light", "dark"]
WIDTHS = (1280, 390)
COLOURS: tuple[Colours, ...] = ("light", "dark")
MAX_BYTES = 250_000
IS_IN_VIEW = """each => {
    const box = each.getBoundingClientRect();
    return document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)?.closest("th, td") === each;
}"""
MAX_WORD = 12  # characters; a longer one may be broken, such as a code
BROKEN_WORDS = """longest => {
    const found = [];
    for (const cell of document.querySelectorAll("th, td:not(.address)")) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const word of texts.currentNode.data.matchAll(/[^\\s\\-–—]+/g)) {
                const range = document.createRange();
                range.setStart(texts.currentNode, word.index);
                range.setEnd(texts.currentNode, word.index + word[0].length);
                const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
                if (lines.size > 1 && word[0].length <= longest) found.push(word[0]);
            }
        }
    }
    return found;
}"""
OUTSIDE = ("/sign-in", "/sign-in/link?token=sent", "/sign-in/openid", "/sign-in/openid/back")
DOCUMENTATION = ("/docs", "/docs/customers", "/docs/errors/Customer.NotFound")  # has light colours only


@pytest.mark.timeout(900)  # some 250 pages
def test_pages_have_no_violations(console: FilledConsole, browser: Browser, subtests: pytest.Subtests) -> None:
    for view, context in list_contexts(browser):
        page = sign_in(console, context.new_page(), Role.ADMIN)
        for path in addresses(console).values():
            with subtests.test(f"{path} {view}"):
                if not path.startswith("/sign-in") and is_page(context, console.service.base_url + path):
                    answer = open_and_check(page, console.service.base_url + path)
                    assert answer.status == 200
                    assert len(answer.body()) <= MAX_BYTES


@pytest.mark.timeout(900)
def test_pages_that_actions_show_have_no_violations(
    console: FilledConsole, browser: Browser, subtests: pytest.Subtests
) -> None:
    for view, context in list_contexts(browser):
        page = sign_in(console, context.new_page(), Role.ADMIN)
        for name, act in ACTIONS.items():
            with subtests.test(f"{name} {view}"):
                act(console, page)
                check_page(page)


def test_pages_without_signing_in_have_no_violations(
    console: FilledConsole, browser: Browser, subtests: pytest.Subtests
) -> None:
    for view, context in list_contexts(browser):
        page = context.new_page()
        for path in (*OUTSIDE, *(() if "dark" in view else DOCUMENTATION)):
            with subtests.test(f"{path} {view}"):
                open_and_check(page, console.service.base_url + path)
        with subtests.test(f"wrong password {view}"):
            page.goto(console.service.base_url + "/sign-in")
            page.get_by_label("Email address").fill("nobody@example.com")
            page.get_by_label("Password").fill("wrong")
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("alert")).to_be_visible()
            check_page(page)


@pytest.mark.timeout(900)
def test_sections_of_reports_have_no_violations(
    console: FilledConsole, browser: Browser, subtests: pytest.Subtests
) -> None:
    for view, context in list_contexts(browser):
        page = sign_in(console, context.new_page(), Role.VIEWER)
        page.goto(f"{console.service.base_url}/customers/{console.ids['customer_id']}/reports")
        sections = page.get_by_role("navigation", name="Sections").get_by_role("link").all()
        addresses_of = [str(each.get_attribute("href")) for each in sections]
        assert len(addresses_of) > 8
        for address in addresses_of:
            with subtests.test(f"{address} {view}"):
                answer = open_and_check(page, console.service.base_url + address)
                assert len(answer.body()) <= MAX_BYTES


def test_pages_are_printed_without_forms_and_links_to_other_pages(
    console: FilledConsole, browser: Browser, subtests: pytest.Subtests
) -> None:
    page = sign_in(console, browser.new_page(), Role.ADMIN)
    page.emulate_media(media="print")
    for path in ("transactions?text=a", "upload", "reports", "reports/compare", "notes"):
        with subtests.test(path):
            page.goto(f"{console.service.base_url}/customers/{console.ids['customer_id']}/{path}")
            expect(page.locator("form, .tabs, .bar").first).to_be_attached()
            expect(page.locator("form, .tabs, .bar").filter(visible=True)).to_have_count(0)
            for name in ("PDF", "Compare two dates", "Show all", "a month ago"):
                expect(page.get_by_role("link", name=name)).to_have_count(0)


def test_a_narrow_table_scrolls_beside_what_its_rows_are_about(
    console: FilledConsole, browser: Browser, subtests: pytest.Subtests
) -> None:
    page = sign_in(console, new_context(browser, 390, "light").new_page(), Role.ADMIN)
    for path in ("/customers", f"/customers/{console.ids['customer_id']}/transactions", "/admin/audit", "/admin/jobs"):
        with subtests.test(path):
            page.goto(console.service.base_url + path)
            box = page.locator(".scroll").first
            expect(box).to_have_css("background-attachment", "local, local, scroll, scroll")
            hidden = box.evaluate(
                "each => { each.scrollIntoView(); return each.scrollLeft = each.scrollWidth - each.clientWidth; }"
            )
            assert hidden > 0, "all of it fits"
            for row in ("thead tr", "tbody tr"):
                cells = box.locator(row).first.locator("th, td")
                assert cells.last.evaluate(IS_IN_VIEW)
                assert any(each.evaluate(IS_IN_VIEW) for each in cells.all()[:2])


def list_contexts(browser: Browser) -> Iterator[tuple[str, BrowserContext]]:
    """Yield a context for each width and colour scheme, with both as its name."""
    for width, colours in product(WIDTHS, COLOURS):
        with new_context(browser, width, colours) as context:
            yield f"{width} {colours}", context


def new_context(browser: Browser, width: int, colours: Colours) -> BrowserContext:
    return browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)


def open_and_check(page: Page, url: str) -> Response:
    """Open a page; fail if it breaks a rule of axe, is wider than the screen, or another site may frame it."""
    answer = page.goto(url)
    assert answer is not None
    wait_until_loaded(page)
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    check_page(page)
    return answer


def check_page(page: Page) -> None:
    """Fail if the page that is shown breaks a rule of axe, is wider than the screen, or breaks a word in a table."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, "the page scrolls sideways"
    assert page.evaluate(BROKEN_WORDS, MAX_WORD) == []
