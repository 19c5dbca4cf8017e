"""Take a picture of every page of the console at two widths: `make console-pictures` (only some: PAGES=compare)."""

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from api.reports.browser import find_browser
from storage.access.roles import Role
from tests.browser.conftest import ARGUMENTS, is_page, sign_in
from tests.browser.house import House, addresses, seeded
from tests.flows.service import Service

WIDTHS = (1280, 390)
MAX_HEIGHT = 2_000  # pixels: what a reader scrolls through
QUALITY = 60  # of WebP


def main(folder: Path, wanted: str = "") -> None:
    """Take the pictures of all pages, or of those whose names contain `wanted`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{wanted}*.webp"):
        old.unlink()
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        service = Service(Path(home))
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        try:
            service.start()
            house = seeded(service)
            for width in WIDTHS:
                take(house, browser, width, folder, wanted)
        finally:
            browser.close()
            service.stop()


def take(house: House, browser: Browser, width: int, folder: Path, wanted: str) -> None:
    size: ViewportSize = {"width": width, "height": 900}
    stranger = browser.new_page(viewport=size)
    signed_in = sign_in(house, browser.new_page(viewport=size), Role.ADMIN)
    for name, path in addresses(house).items():
        page = stranger if path.startswith("/sign-in") else signed_in
        if wanted not in name or not is_page(page.context, house.service.base_url + path):
            continue
        page.goto(house.service.base_url + path, wait_until="networkidle")  # some pages fetch a part of theirs
        taken = Image.open(BytesIO(page.screenshot(full_page=True)))
        shown = taken.crop((0, 0, taken.width, min(taken.height, MAX_HEIGHT)))
        shown.save(folder / f"{name}-{width}.webp", quality=QUALITY)
    for page in (stranger, signed_in):
        page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
