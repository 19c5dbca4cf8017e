"""Reports on the terminal, as a page, on paper: from the service (`report`) or from files (`analyse`)."""

from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from api.browser import pdf_of
from api.commands.console import err, out
from api.commands.files import write
from pipelines.reports.page import About, Member, read
from storage.logs import printable


def save(text: str, html: Path | None, pdf: Path | None) -> None:
    """Write the page to the files that are named, and say so on standard error.

    Raises:
        Unprocessable: a file can't be written, or no browser can print.
    """
    if html is not None:
        _write(html, text.encode())
    if pdf is not None:
        _write(pdf, pdf_of(text))


def show(bundle: Mapping[str, Member], whom: About) -> None:
    """Print the page's summary on the terminal."""
    shown = read(bundle, whom)
    facts = "  ".join(f"[dim]{name}[/] {_plain(value)}" for name, value in shown.identity)
    out.print(f"[bold]{_plain(shown.title)}[/]", highlight=False)
    out.print(facts, highlight=False)
    for notice in shown.notices:
        out.print(f"[yellow]{_plain(notice)}[/]", highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    for card in shown.cards:
        mark = f" ({card.mark.lower()})" if card.mark else ""
        table.add_row(_plain(card.title), f"[bold]{_plain(card.figure)}[/]{mark}", _plain("; ".join(card.lines)))
    out.print(Padding(table, (1, 0)))
    for reason in (*shown.reasons, *shown.cautions):
        settled = f" [dim]To settle it: {_plain(reason.settled_by)}[/]" if reason.settled_by else ""
        out.print(f"• {_plain(reason.message or reason.code)}{settled}", highlight=False)


def _plain(text: str) -> str:
    return escape(printable(text))


def _write(path: Path, content: bytes) -> None:
    write(path, content)
    err.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
