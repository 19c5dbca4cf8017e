"""Every page of the console: accessible by axe's rules, on a wide and a narrow screen, in light and dark colours."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from storage.access.roles import Role
from tests.browser.conftest import is_page, sign_in
from tests.browser.house import House, addresses

WIDTHS = (1280, 390)
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_BYTES = 250_000


def test_pages_have_no_violations(house: House, browser: Browser, subtests: pytest.Subtests) -> None:
    for width in WIDTHS:
        for colours in COLOURS:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
            page = sign_in(house, context.new_page(), Role.ADMIN)
            for path in addresses(house).values():
                with subtests.test(f"{path} {width} {colours}"):
                    if not is_page(context, house.service.base_url + path):
                        continue
                    answer = page.goto(house.service.base_url + path)
                    assert answer is not None
                    assert answer.status == 200
                    assert len(answer.body()) <= MOST_BYTES
                    found = Axe().run(page)
                    assert found.violations_count == 0, found.generate_report()
                    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    assert overflow <= 0, "the page scrolls sideways"
            context.close()


def test_sections_of_reports_are_of_bounded_size(house: House, browser: Browser, subtests: pytest.Subtests) -> None:
    page = sign_in(house, browser.new_page(), Role.VIEWER)
    page.goto(f"{house.service.base_url}/customers/{house.ids['customer_id']}/reports")
    sections = page.get_by_role("navigation", name="Sections").get_by_role("link").all()
    addresses_of = [str(each.get_attribute("href")) for each in sections]
    assert len(addresses_of) > 8
    for address in addresses_of:
        with subtests.test(address):
            answer = page.goto(house.service.base_url + address)
            assert answer is not None
            assert len(answer.body()) <= MOST_BYTES
