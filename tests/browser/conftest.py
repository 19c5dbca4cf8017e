"""A seeded lender on a whole service, and people who use its console in a real browser."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from api.reports.browser import find_browser
from storage.access import users
from storage.access.roles import Role
from tests.browser.filled_console import PROVIDER, FilledConsole, seeded
from tests.flows.service import Service

HINT = "install Chromium or Chrome (on Debian and Ubuntu: apt install chromium) to run the tests in a browser"
SECONDS = 1_000  # in milliseconds
ARGUMENTS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")

expect.set_options(timeout=30 * SECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.service)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = find_browser()
    if found is None and os.environ.get("CI") == "true":
        pytest.fail(HINT)
    if found is None:
        pytest.skip(HINT)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")  # the tests of a file rely on what is open or pending there
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledConsole]:
    service = Service(tmp_path_factory.mktemp("console"), TIDEMARK_RATE_LIMIT="100000/1m", **PROVIDER)
    try:
        service.start()
        yield seeded(service)
    finally:
        service.stop()


def invite(console: FilledConsole, role: Role) -> tuple[str, str]:
    """Make a person of this role; return the email address and the address of a link that signs the person in."""
    now = datetime.now(UTC)
    email = f"{now.timestamp()}@example.com"
    store = console.service.store()
    with store.db.writing() as w:
        user = users.create(w, console.client_id, email, f"Ada the {role}", role, now)
        token = users.create_link(w, user, now + timedelta(minutes=5))
    store.close()
    return email, f"{console.service.base_url}/sign-in/link?token={token}"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60 * SECONDS)
    yield context.new_page()
    context.close()


def new_page(browser: Browser) -> Page:
    """Return a page of another person's browser."""
    made = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    made.set_default_timeout(60 * SECONDS)
    return made


def sign_in(console: FilledConsole, page: Page, role: Role) -> Page:
    """Sign a new person of this role in, by a link, as the first visit would."""
    _, link = invite(console, role)
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    return page


def is_page(context: BrowserContext, url: str) -> bool:
    """Return whether there is a page at the address, and not a file."""
    return context.request.get(url).headers["content-type"].startswith("text/html")


def reload_until(page: Page, sign: Locator, *, shown: bool) -> None:
    """Reload the page, as a person would, until it shows the sign, or no longer shows it."""
    for _ in range(60):
        if bool(sign.count()) is shown:
            return
        page.wait_for_timeout(SECONDS)
        page.reload()
    raise AssertionError(page.locator("main").inner_text())
