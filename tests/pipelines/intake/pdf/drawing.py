"""Draw small PDF files for tests: texts at places in points from the top left corner."""

import io
from typing import Self

from reportlab.pdfgen.canvas import Canvas

HEIGHT, WIDTH = 842.0, 595.0
HEADING = ((45, "Date"), (110, "Details"), (-400, "Debit"), (-470, "Credit"), (-550, "Balance"))


class Drawing:
    """Lines drawn one below the other. A negative place is a right edge."""

    def __init__(self, font: str = "Helvetica", size: float = 8, turned: int = 0) -> None:
        self._bytes = io.BytesIO()
        size_as_shown = (WIDTH, HEIGHT) if turned % 180 == 0 else (HEIGHT, WIDTH)  # the library turns it back
        self.canvas = Canvas(self._bytes, pagesize=size_as_shown, invariant=True)
        self._font, self._size, self._turned = font, size, turned
        self._begin()

    def _begin(self) -> None:
        self.canvas.setFont(self._font, self._size)
        self.canvas.setPageRotation(self._turned)
        self.y = 60.0

    def line(self, *cells: tuple[float, str], step: float = 12) -> Self:
        for x, text in cells:
            draw = self.canvas.drawString if x >= 0 else self.canvas.drawRightString
            draw(abs(x), HEIGHT - self.y, text)
        self.y += step
        return self

    def lines(self, *lines: tuple[tuple[float, str], ...]) -> Self:
        for each in lines:
            self.line(*each)
        return self

    def next_page(self) -> Self:
        self.canvas.showPage()
        self._begin()
        return self

    def finish(self) -> bytes:
        self.canvas.showPage()
        self.canvas.save()
        return self._bytes.getvalue()


def statement(period: str = "1 Mar 2024 - 31 Mar 2024") -> Drawing:
    """Draw the head of an unknown bank's statement."""
    return Drawing().lines(
        ((45, "Harbour Lane Savings Account"),),
        ((45, f"Statement period {period}"),),
        ((45, "BSB 123-456 Account number 12345678"),),
        ((45, ""),),
    )


def four_rows(drawing: Drawing) -> Drawing:
    """Draw four rows with balances from 100.00 to 1,040.00."""
    return drawing.lines(
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00")),
        ((45, "03 Mar"), (110, "SALARY ACME"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((45, "03 Mar"), (110, "RENT"), (-400, "50.00"), (-550, "1,045.00")),
        ((45, "31 Mar"), (110, "ACCOUNT FEE"), (-400, "5.00"), (-550, "1,040.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "1,040.00")),
    )


FOUR = [
    ("2024-03-02", "-5.00", "95.00"),
    ("2024-03-03", "1000.00", "1095.00"),
    ("2024-03-03", "-50.00", "1045.00"),
    ("2024-03-31", "-5.00", "1040.00"),
]
