"""Print a page to PDF with an installed browser, so that paper shows what the screen does."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from pipelines.vocabulary.errors import Unprocessable

if TYPE_CHECKING:
    from api.http.dependencies import Caller

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
WITHIN_S: Final = 60
PRINTED_AT_ONCE: Final = 2  # pages, each in a browser of some 300 MB (our judgement)
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


def find_browser() -> str | None:
    """Return the path of the first of BROWSERS that is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)


def print_in_turn(caller: "Caller", html: str) -> bytes:
    """Return the page as PDF, if fewer than PRINTED_AT_ONCE are being printed: a browser takes much memory.

    Raises:
        Unavailable: too many pages are being printed.
        Unprocessable: as `print_pdf`.
    """
    with caller.request.app.state.printing.reserve(caller.requester, 1):
        return print_pdf(html)


def print_pdf(html: str) -> bytes:
    """Return the page as PDF, tagged for screen readers.

    Raises:
        Unprocessable: no browser is installed, or it printed nothing within WITHIN_S.
    """
    browser = find_browser()
    if browser is None:
        raise Unprocessable(
            "Browser.Missing",
            "Printing to PDF needs Chromium or Chrome on the PATH: install one (on Debian and Ubuntu: apt install "
            "chromium), or print the HTML page from any browser.",
        )
    with TemporaryDirectory(prefix="tidemark-print-", ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(html, "utf-8")
        files = (f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}", source.as_uri())
        _run([browser, *ARGUMENTS, *_sandbox_arguments(), *files])
        if not printed.exists():
            raise Unprocessable("Browser.Failed", f"{browser} printed no PDF of the page.")
        return printed.read_bytes()


def _sandbox_arguments() -> tuple[str, ...]:
    """Return the argument that turns the sandbox off for root, for whom Chromium can't start with it."""
    return ("--no-sandbox",) if os.geteuid() == 0 else ()


def _run(command: list[str]) -> None:
    """Run the command. It gets a process group of its own, so that all its processes can be ended with it."""
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
