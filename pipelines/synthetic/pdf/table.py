"""Write rows on sheets with a layout's headings, balances carried forward, years, days and sections."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from random import Random

import msgspec

from pipelines.synthetic.pdf.blocks import Details, write_block
from pipelines.synthetic.pdf.extras import advert, fee_table, small_print
from pipelines.synthetic.pdf.layout import FIGURES, Block, Column, Holds, PdfLayout, Section, paper_texts
from pipelines.synthetic.pdf.paper import HEIGHT, Paper, PrintVariant

BOTTOM = HEIGHT - 64
MAX_LINES = 4  # of a description that is broken at `breaks`; a longer one is broken where it fits


@dataclass(frozen=True)
class Line:
    """A row as it will be printed, with the true balance after it."""

    day: date
    value_day: date
    rail: str
    type_text: str  # text for the `type` column
    description: str
    amount: Decimal
    balance: Decimal
    balance_shown: bool


@dataclass(frozen=True)
class Part:
    """One account's rows in the order printed, and what is printed around them."""

    described: Details
    start: date
    end: date
    opening: Decimal
    closing: Decimal
    lines: Sequence[Line]
    title: Block | None  # where the file has several accounts


class Table:
    """Prints parts one below the other and returns the page of each row."""

    def __init__(self, layout: PdfLayout, paper: Paper, variant: PrintVariant, rng: Random) -> None:
        self._layout, self._paper, self._variant, self._rng = layout, paper, variant, rng
        self._columns = [msgspec.structs.replace(column, at=column.at + variant.shift) for column in layout.columns]
        self._row_height = layout.leading + layout.gap  # of a row of one line
        self._y = 0.0
        self._dated: object = None  # the last row's date cell, year or day heading
        self._described: Details = {}

    def print(self, parts: Sequence[Part]) -> list[list[int]]:
        self._described = parts[0].described
        self._turn(first=True)
        pages = [self._part(part, first=part is parts[0]) for part in parts]
        for block in self._layout.end:
            height = block.y + 14 * (2 if block.across else len(block.lines))
            if self._y + height > BOTTOM:
                self._turn(headings=False)
            write_block(self._paper, msgspec.structs.replace(block, y=self._y + block.y), self._described)
            self._y += height
        self._extras(parts[0])
        return pages

    def _extras(self, part: Part) -> None:
        if self._variant.fee_table:
            if self._y + 130 > BOTTOM:
                self._turn(headings=False)
            self._y = fee_table(self._paper, self._y + 30, part.end, len(part.lines), self._layout.leading)
        if self._variant.small_print:
            self._turn(headings=False)
            small_print(self._paper, self._y, self._layout.leading)

    def _part(self, part: Part, *, first: bool) -> list[int]:
        self._described, self._dated = part.described, None
        if part.title:
            self._title(part.title)
        if first or part.title:
            self._headings()
        self._edge(self._layout.opening_row, part.start, part.opening)
        pages = list(self._draw_sections(part) if self._layout.sections else self._rows(part.lines, part))
        self._edge(self._layout.closing_row, part.end, part.closing)
        if self._layout.totals_row:
            self._turn_unless_it_fits(self._layout.leading * 2)
            self._totals(self._layout.totals_row, part.lines, part.closing)
        return pages

    def _title(self, title: Block) -> None:
        if self._y + 120 > BOTTOM:
            self._turn(headings=False)
        self._y += 12
        write_block(self._paper, msgspec.structs.replace(title, y=self._y), self._described)
        self._y += 14 * len(title.lines) + 6

    def _draw_sections(self, part: Part) -> Iterator[int]:
        left = list(part.lines)
        for section in self._layout.sections:
            lines, left = take_section(section, left)
            if not lines:
                continue
            self._turn_unless_it_fits(60)
            self._y += 6
            self._heading_row(section.title)
            yield from self._rows(lines, part)
            self._turn_unless_it_fits(self._layout.leading)
            self._totals(section.total, lines, None)

    def _rows(self, lines: Sequence[Line], part: Part) -> Iterator[int]:
        for number, line in enumerate(lines):
            texts = self._texts(line)
            height = self._height(line, texts)
            if self._y + height + self._foot() > BOTTOM and not self._may_break(texts):
                self._carry(lines[:number], part)
            self._write_date_heading(line)
            yield len(self._paper.sheets)
            self._row(line, texts)
            if self._rng.random() < self._variant.adverts:
                self._advert()

    def _row(self, line: Line, texts: Sequence[str]) -> None:
        last_line = (self._layout.amount_on == "last") != self._variant.other_line
        figures_on = len(texts) - 1 if last_line else 0
        down = self._layout.leading * (len(texts) - 1) / 2 if self._variant.halfway else 0
        for column in self._columns:
            if column.holds not in FIGURES | {"description"} and (text := self._cell(column.holds, line)):
                self._paper.write(column.at, self._y + down, text)
        if self._variant.halfway:
            self._figures(line, texts[0], self._y + down)
        for n, text in enumerate(texts):
            if n and self._variant.rows_broken:
                self._turn_unless_it_fits(self._layout.leading)
            self._paper.write(self._column("description").at, self._y, text)
            if n == figures_on and not self._variant.halfway:
                self._figures(line, text, self._y)
            self._y += self._layout.leading
        self._y += self._height(line, texts) - self._layout.leading * len(texts)

    def _may_break(self, texts: Sequence[str]) -> bool:
        """Return whether a row may begin here, with one line at least, and end on the next sheet."""
        return self._variant.rows_broken and len(texts) > 1 and self._y + self._layout.leading <= BOTTOM

    def _figures(self, line: Line, text: str, y: float) -> None:
        for column in self._columns:
            if column.holds in FIGURES:
                self._figure(column, y, self._cell(column.holds, line))
        if self._layout.leaders and not self._variant.halfway:
            self._leader(text, y)

    def _figure(self, column: Column, y: float, text: str) -> None:
        if text:
            for n, piece in enumerate(self._pieces(text)):
                self._put(column, y + n * self._layout.leading, piece)
        elif self._layout.blank:
            self._paper.write(column.at, y, self._layout.blank, flush_right=True, hidden=True)

    def _put(self, column: Column, y: float, figure: str, *, bold: bool = False) -> None:
        if self._variant.flush_left:
            self._paper.write(column.at - self._paper.width("$12,345.67 CR"), y, figure, bold=bold)
        else:
            self._paper.write(column.at, y, figure, bold=bold, flush_right=True)

    def _pieces(self, figure: str) -> list[str]:
        """Return a figure's lines."""
        thousands, comma, rest = figure.rpartition(",")
        return [thousands + comma, rest] if comma and self._variant.wrapped_figures else [figure]

    def _height(self, line: Line, texts: Sequence[str]) -> float:
        """Return a row's height. A wrapped figure makes the row one line higher."""
        figures = [self._cell(column.holds, line) for column in self._columns if column.holds in FIGURES]
        lines = len(texts) + max(len(self._pieces(figure)) for figure in figures) - 1
        return self._layout.leading * lines + self._layout.gap

    def _leader(self, text: str, y: float) -> None:
        """Write dots from the words to the amount."""
        words = self._column("description")
        start = words.at + self._paper.width(text + " ")
        width = words.at + words.width - start
        dots = "." * int(width / self._paper.width("."))
        if len(dots) > 3:
            self._paper.write(start, y, dots)

    def _cell(self, holds: Holds, line: Line) -> str:
        if holds == "date":
            return self._date_cell(line.day)
        return _cells(self._layout, line)[holds]

    def _date_cell(self, day: date) -> str:
        shown = self._layout.write_date(day)
        if not self._layout.date_on_first_row:
            return shown
        before, self._dated = self._dated, shown
        return "" if before == shown else shown

    def _texts(self, line: Line) -> list[str]:
        """Return the description's lines."""
        broken = line.description
        for word in self._layout.breaks:
            broken = broken.replace(f" {word}", f"\n{word}")
        width = self._column("description").width
        texts = [text for piece in broken.split("\n") for text in self._paper.lines(piece, width)]
        return texts if len(texts) <= MAX_LINES else self._paper.lines(line.description, width)

    def _write_date_heading(self, line: Line) -> None:
        """Write the year or the day that the row stands under."""
        layout = self._layout
        self._year(line.day)
        if layout.day_headings and self._dated != line.day:
            self._turn_unless_it_fits(layout.leading * 4)
            self._y += layout.gap
            self._heading_row(line.day.strftime(layout.day_headings))
            self._dated = line.day

    def _year(self, day: date) -> None:
        if self._layout.year_rows and self._dated != day.year:
            self._heading_row(str(day.year))
            self._dated = day.year

    def _heading_row(self, text: str) -> None:
        self._paper.write(self._columns[0].at, self._y, text, bold=True)
        self._y += self._row_height

    def _edge(self, text: str, day: date, balance: Decimal) -> None:
        """Write the row of the opening or the closing balance."""
        if not text:
            return
        self._turn_unless_it_fits(self._row_height)
        self._year(day)
        self._paper.write(self._column("date").at, self._y, self._layout.write_date(day, edge=True), bold=True)
        self._write_labelled_balance(text, self._layout.money.write_balance(balance))

    def _write_labelled_balance(self, text: str, balance: str) -> None:
        """Write a row of words and a balance, under the amounts if there is no balance column."""
        self._paper.write(self._column("description").at, self._y, text, bold=True)
        figures = [column for column in self._columns if column.holds in ("balance", "amount")]
        self._figure(figures[-1], self._y, balance)
        self._y += self._row_height

    def _totals(self, text: str, lines: Sequence[Line], balance: Decimal | None) -> None:
        layout = self._layout
        self._paper.write(self._column("description").at, self._y, text, bold=True)
        sums = {
            "debit": f"{-sum(line.amount for line in lines if line.amount < 0):,.2f}",
            "credit": f"{sum(line.amount for line in lines if line.amount > 0):,.2f}",
            "amount": layout.money.write_amount(sum((line.amount for line in lines), Decimal())),
            "balance": "" if balance is None else layout.money.write_balance(balance),
        }
        for column in self._columns:
            if column.holds in FIGURES and sums[column.holds]:
                self._put(column, self._y, sums[column.holds], bold=True)
        self._y += self._row_height

    def _foot(self) -> float:
        return self._row_height if self._layout.carried else 0

    def _carry(self, before: Sequence[Line], part: Part) -> None:
        """Turn to the next sheet, with the balance at the foot of this one and the head of the next."""
        balance = before[-1].balance if before else part.opening
        self._so_far(self._layout.carried, before, balance)
        self._turn()
        self._so_far(self._layout.brought, before, balance)

    def _so_far(self, text: str, before: Sequence[Line], balance: Decimal) -> None:
        """Write the balance, or the totals, of the rows so far, if the layout has a text for them."""
        if text and self._layout.carries_totals:
            self._totals(text, before, balance)
        elif text:
            self._write_labelled_balance(text, self._layout.money.write_balance(balance))

    def _turn_unless_it_fits(self, height: float) -> None:
        """Begin a new sheet if something of this height doesn't fit on the current one."""
        if self._y + height > BOTTOM:
            self._turn()

    def _turn(self, *, first: bool = False, headings: bool = True) -> None:
        """Begin a new sheet."""
        layout = self._layout
        self._paper.begin_sheet()
        for block in layout.front if first else layout.head:
            write_block(self._paper, block, self._described)
        self._paper.rule(HEIGHT - 52)
        self._paper.write(40, HEIGHT - 40, layout.imprint, size=6)
        self._y = layout.table_at if first else layout.later_table_at
        self._dated = None
        if headings and not first and not self._variant.headings_on_first_page:
            self._headings()

    def _headings(self) -> None:
        headings = [self._heading(column).split("\n") for column in self._columns]
        deepest = max(len(lines) for lines in headings)
        for column, lines in zip(self._columns, headings, strict=True):
            for n, text in enumerate(lines):
                self._write_heading(column, self._y + n * self._layout.leading, text)
        self._paper.rule(self._y + (deepest - 1) * self._layout.leading + 4)
        self._y += deepest * self._layout.leading + 7

    def _write_heading(self, column: Column, y: float, heading: str) -> None:
        if column.holds not in FIGURES:
            self._paper.write(column.at, y, heading, bold=True)
        elif self._variant.centred and not self._variant.flush_left:
            middle = column.at - self._paper.width("12,345.67") / 2
            self._paper.write(middle - self._paper.width(heading, bold=True) / 2, y, heading, bold=True)
        else:
            self._put(column, y, heading, bold=True)

    def _heading(self, column: Column) -> str:
        return paper_texts().strange_headings[column.holds] if self._variant.strange_headings else column.heading

    def _advert(self) -> None:
        if self._layout.adverts and self._y + 60 <= BOTTOM:
            self._y = advert(self._paper, self._y, self._rng.choice(self._layout.adverts), self._layout.leading)

    def _column(self, holds: Holds) -> Column:
        return next(column for column in self._columns if column.holds == holds)


def _cells(layout: PdfLayout, line: Line) -> Mapping[Holds, str]:
    money, amount = layout.money, f"{abs(line.amount):,.2f}"
    return {
        "value_date": layout.write_date(line.value_day),
        "type": line.type_text,
        "debit": money.debit.format(amount) if line.amount < 0 else "",
        "credit": money.credit.format(amount) if line.amount > 0 else "",
        "amount": money.write_amount(line.amount),
        "sign": "CR" if line.amount > 0 else "DR",
        "balance": money.write_balance(line.balance) if line.balance_shown else "",
        "description": line.description,
    }


def take_section(section: Section, lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the section's rows, and those left for the sections after it."""
    is_own = [line.rail.startswith(section.takes or ("",)) for line in lines]
    its_own = [line for line, own in zip(lines, is_own, strict=True) if own]
    return its_own, [line for line, own in zip(lines, is_own, strict=True) if not own]


def hide_balances(lines: Sequence[Line], retained: float, rng: Random) -> list[Line]:
    return [replace(line, balance_shown=line.balance_shown and rng.random() < retained) for line in lines]
