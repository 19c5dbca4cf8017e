"""A customer's reports for people: on the terminal, as a page, on paper."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from api.browser import pdf_of
from api.commands.console import AsJson, err, opened_store, out, print_json
from api.schemas.reports import member
from pipelines.errors import Unprocessable
from pipelines.reports.page import About, Member, page, read
from storage import customers, reports
from storage.customers import Customer
from storage.logs import printable


def report(
    customer_id: Annotated[UUID, typer.Argument(help="The customer's id.")],
    html: Annotated[
        Path | None, typer.Option(help="Write the page to this file: HTML that needs nothing else.")
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="Print the page to this file, with an installed Chromium or Chrome.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a customer's three reports as they were last computed.

    Example: tidemark report 2f0c… --html harbour.html --pdf harbour.pdf
    """
    with opened_store() as store, store.db.reading() as r:
        customer = customers.with_id(r, customer_id)
        bundle = reports.bundle(r, customer)
    if html is not None or pdf is not None:
        save(page(bundle, about(customer)), html, pdf)
    if as_json:
        print_json({kind: member(each) for kind, each in bundle.items()})
    elif html is None and pdf is None:
        tell(bundle, about(customer))


def about(customer: Customer) -> About:
    return About(customer.name, customer.abn, customer.reference, str(customer.customer_id))


def save(text: str, html: Path | None, pdf: Path | None) -> None:
    """Write the page to the files that are named, and say so on standard error.

    Raises:
        Unprocessable: a file can't be written, or no browser can print.
    """
    if html is not None:
        _write(html, text.encode())
    if pdf is not None:
        _write(pdf, pdf_of(text))


def tell(bundle: Mapping[str, Member], whom: About) -> None:
    """The page's summary on the terminal."""
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
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be written: {error.strerror}.") from error
    err.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
