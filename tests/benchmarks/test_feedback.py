"""Which line of its output stands for a failed `make test`."""

import pytest

from benchmarks.feedback import last_line


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("E501 Line too long\nFound 1 error.\nmake[1]: Leaving directory '/home/somebody/here'\n", "Found 1 error."),
        ("1 failed, 3 passed in 4.00s\n\n", "1 failed, 3 passed in 4.00s"),
        ("make: Nothing to be done.\n", "no output"),
        ("", "no output"),
    ],
)
def test_a_failure_is_reported_by_the_last_line_that_is_not_makes_own(output: str, line: str) -> None:
    assert last_line(output) == line
