"""Output of reports for `report` and `analyse`: on the terminal, as a page, as PDF."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.markup import escape, render
from rich.padding import Padding
from rich.table import Table

from api.core.commands.console import err, out
from api.core.commands.files import write
from api.reports.browser import print_pdf
from pipelines.intake.currencies import CURRENCY
from pipelines.pages import Cards, Points
from pipelines.reports.page import About, Member, page_content
from storage.core.logs import printable

GAP = "  "
_HIDDEN_DOLLAR, _HIDDEN_CODE = "\ue000", "\ue001"  # characters for private use
_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_OWN_TEXTS = frozenset({"message", "settledBy", "words", "sentence", "honestExplanation", "reason", "unit"})


def save(text: str, html: Path | None, pdf: Path | None) -> None:
    """Write the page to the given files, and report it on standard error.

    Raises:
        Unprocessable: a file can't be written, or no browser can print.
    """
    if html is not None:
        _write(html, text.encode())
    if pdf is not None:
        _write(pdf, print_pdf(text))


def in_currency(text: str, currency: str, mark: str | None = None) -> str:
    """Rewrite a report's text, which is in Australian dollars, in the notation of another currency.

    `mark` is put before figures; the default is the currency's code. What `hide_marks` hid is shown again.
    """
    if currency == CURRENCY:
        return text
    before = f"{currency} " if mark is None else mark
    own = re.sub(r"\$(?=[0-9])", before, re.sub(r"(?<=[0-9] )AUD\b", currency, text))
    return own.replace(_HIDDEN_DOLLAR, "$").replace(_HIDDEN_CODE, CURRENCY)


def hide_marks(data_json: str, currency: str) -> str:
    """Hide the marks of currencies in texts of a report's data that are not ours, such as descriptions of transactions.

    `in_currency` must not rewrite them: "12.00 AUD" is what the bank printed.
    """
    return data_json if currency == CURRENCY else _encode(_hide(_decode(data_json), is_ours=False)).decode()


def _hide(value: Any, *, is_ours: bool) -> Any:
    match value:
        case dict():
            return {name: _hide(member, is_ours=name in _OWN_TEXTS) for name, member in value.items()}
        case list():
            return [_hide(item, is_ours=is_ours) for item in value]
        case str() if not is_ours:
            return value.replace("$", _HIDDEN_DOLLAR).replace(CURRENCY, _HIDDEN_CODE)
    return value


def show(bundle: Mapping[str, Member], whom: About, currency: str = CURRENCY) -> None:
    """Print the page's summary on the terminal."""

    def _plain(text: str) -> str:
        return escape(printable(in_currency(text, currency)))

    page = page_content(bundle, whom)
    out.print(f"[bold]{_plain(page.title)}[/]", highlight=False)
    for line in fill_lines([f"[dim]{name}[/] {_plain(value)}" for name, value in page.facts], out.width):
        out.print(line, highlight=False)
    for notice in page.notices:
        out.print(f"[yellow]{_plain(notice)}[/]", highlight=False)
    for part in page.sections[0].parts:
        if isinstance(part, Cards):
            table = Table(box=None, show_header=False, pad_edge=False)
            for card in part.cards:
                mark = f" ({card.mark.lower()})" if card.mark else ""
                table.add_row(
                    _plain(card.title), f"[bold]{_plain(card.figure)}[/]{mark}", _plain("; ".join(card.lines))
                )
            out.print(Padding(table, (1, 0)))
        elif isinstance(part, Points):
            for point in part.points:
                remedy = f" [dim]What would resolve this: {_plain(point.remedy)}[/]" if point.remedy else ""
                out.print(f"• {_plain(point.says)}{remedy}", highlight=False)


def fill_lines(facts: Sequence[str], width: int) -> list[str]:
    """Put as many facts (in Rich's markup) on each line as fit, so that none is broken in two unless it is too long."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]}{GAP}{fact}" if lines else fact
        if lines and cell_len(render(longer).plain) <= width:
            lines[-1] = longer
        else:
            lines.append(fact)
    return lines


def _write(path: Path, content: bytes) -> None:
    write(path, content)
    err.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
