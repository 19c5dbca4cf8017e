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
LARGER = {"customers-customer-reports": 700_000}  # five years of months, where every number is a link: docs/limits.md


def test_pages_have_no_violations(house: House, browser: Browser, subtests: pytest.Subtests) -> None:
    for width in WIDTHS:
        for colours in COLOURS:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
            page = sign_in(house, context.new_page(), Role.ADMIN)
            for name, path in addresses(house).items():
                with subtests.test(f"{path} {width} {colours}"):
                    if not is_page(context, house.service.base_url + path):
                        continue
                    answer = page.goto(house.service.base_url + path)
                    assert answer is not None
                    assert answer.status == 200
                    assert len(answer.body()) <= LARGER.get(name, MOST_BYTES)
                    found = Axe().run(page)
                    assert found.violations_count == 0, found.generate_report()
                    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    assert overflow <= 0, "the page scrolls sideways"
            context.close()
