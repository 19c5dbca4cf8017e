"""How the commands describe an export's lines that are not rows."""

from api.intake.commands.exports import describe_other_lines
from pipelines.intake.exports import read

HEADING = "Date,Description,Amount,Balance\n"
ROWS = "01/07/2025,RENT,-5.00,95.00\n02/07/2025,FEES,-5.00,90.00\n"


def describe_lines(text: str) -> str:
    return describe_other_lines(read("export.csv", text.encode()))


def test_lines_that_are_not_rows_are_counted_and_named_in_the_singular_and_plural() -> None:
    assert describe_lines(f"July\n{HEADING}{ROWS}") == "1 heading, 1 before the rows (line 1)"
    assert (
        describe_lines(f"Statement of\nJuly\n{HEADING}{ROWS}\n\n")
        == "1 heading, 2 before the rows (lines 1, 2), 2 blank"
    )
