"""A page printed to PDF by a browser that is installed here: paper then shows what the screen does."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pipelines.vocabulary.errors import Unprocessable

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
WITHIN_S: Final = 60
ARGUMENTS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-pdf-header-footer",
    "--export-tagged-pdf",
)


def installed() -> str | None:
    """The first of BROWSERS that there is."""
    return next((found for name in BROWSERS if (found := shutil.which(name)) is not None), None)


def pdf_of(html: str) -> bytes:
    """The page as PDF, tagged for screen readers.

    Raises:
        Unprocessable: no browser is installed, or it printed nothing within WITHIN_S.
    """
    browser = installed()
    if browser is None:
        raise Unprocessable(
            "Browser.Missing",
            "Printing to PDF needs Chromium or Chrome on the PATH: install one (on Debian and Ubuntu: apt install "
            "chromium), or write the page with --html and print it from any browser.",
        )
    with TemporaryDirectory(prefix="tidemark-print-", ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(html, "utf-8")
        _run([browser, *ARGUMENTS, *_unboxed(), f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}",
              source.as_uri()])  # fmt: skip
        if not printed.exists():
            raise Unprocessable("Browser.Failed", f"{browser} printed no PDF of the page.")
        return printed.read_bytes()


def _unboxed() -> tuple[str, ...]:
    """A browser run by root can't have its sandbox; elsewhere it keeps it."""
    return ("--no-sandbox",) if os.geteuid() == 0 else ()


def _run(command: list[str]) -> None:
    """Until it ends; a browser that doesn't is ended with all its processes, for which it needs a group of its own."""
    quiet = subprocess.DEVNULL
    started = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        started.wait(WITHIN_S)
    except subprocess.TimeoutExpired:
        raise Unprocessable("Browser.Failed", f"{command[0]} did not print within {WITHIN_S} s.") from None
    finally:
        _end_group(started.pid)
        started.wait()


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:  # all are gone already
        return
