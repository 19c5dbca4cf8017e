"""Take a picture of every page of the console at two widths: `make console-pictures` (only some: PAGES="work new")."""

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from api.reports.browser import find_browser
from storage.access.roles import Role
from tests.browser.actions import ACTIONS, wait_until_loaded
from tests.browser.conftest import ARGUMENTS, is_page, sign_in
from tests.browser.filled_console import PROVIDER, FilledConsole, addresses, seeded
from tests.flows.service import Service

WIDTHS = (1280, 390)
MAX_HEIGHT = 2_000  # pixels: what a reader scrolls through
QUALITY = 60  # of WebP


def main(folder: Path, *wanted: str) -> None:
    """Take the pictures of all pages, or of those whose names contain one of `wanted`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.webp"):
        if is_wanted(old.stem.rpartition("-")[0], wanted):
            old.unlink()
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        service = Service(Path(home), **PROVIDER)
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        try:
            service.start()
            console = seeded(service)
            for width in WIDTHS:
                take(console, browser, width, folder, wanted)
        finally:
            browser.close()
            service.stop()


def is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(each in name for each in wanted)


def take(console: FilledConsole, browser: Browser, width: int, folder: Path, wanted: Sequence[str]) -> None:
    size: ViewportSize = {"width": width, "height": 900}
    stranger = browser.new_page(viewport=size)
    signed_in = sign_in(console, browser.new_page(viewport=size), Role.ADMIN)
    for name, path in addresses(console).items():
        page = stranger if path.startswith("/sign-in") else signed_in
        if not is_wanted(name, wanted) or not is_page(page.context, console.service.base_url + path):
            continue
        page.goto(console.service.base_url + path)
        _save(page, folder / f"{name}-{width}.webp")
    for name, act in ACTIONS.items():
        if is_wanted(name, wanted):
            act(console, signed_in)
            _save(signed_in, folder / f"{name}-{width}.webp")
    for page in (stranger, signed_in):
        page.close()


def _save(page: Page, file: Path) -> None:
    """Save a picture of the page once it has fetched all its parts."""
    wait_until_loaded(page)
    taken = Image.open(BytesIO(page.screenshot(full_page=True)))
    shown = taken.crop((0, 0, taken.width, min(taken.height, MAX_HEIGHT)))
    shown.save(file, quality=QUALITY)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
