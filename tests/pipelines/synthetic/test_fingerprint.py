"""The generator's output is the same for the same seed, from one version to the next.

After a deliberate change, run `python -m tests.pipelines.synthetic.test_fingerprint`; the changed lines of
`fingerprint.json` then show what the change affects.
"""

import json
from collections.abc import Iterable
from datetime import date
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pikepdf
import pytest

from pipelines.synthetic import Business, Part, Person, base_model, frames, people, portfolio
from pipelines.synthetic.pdf import EVERY_LAYOUT, statement_pdf

FILE = Path(__file__).with_name("fingerprint.json")
UNTIL = date(2025, 6, 30)
PARTS: tuple[Part | None, ...] = (None, "train", "test")


def fingerprint() -> dict[str, str]:
    """Return a short hash for each seed, each layout and the rows that the base model learns from."""
    businesses = {
        f"businesses of seed {seed}, part {part}": _hash_businesses(
            portfolio(8, 6, seed, UNTIL, faults=True, part=part)
        )
        for seed in (1, 7)
        for part in PARTS
    }
    some_people = {f"people, part {part}": _hash_people(people(12, 6, 1, UNTIL, part)) for part in PARTS}
    statements = {f"statement {layout}": _hash_statement(layout) for layout in EVERY_LAYOUT}
    training = _hash(base_model.portfolio_rows(5).write_ndjson().encode())
    return {**businesses, **some_people, **statements, "rows of the base model": training}


def _hash_businesses(businesses: Iterable[Business]) -> str:
    tables = (frames.transactions, frames.customer, frames.accounts, frames.facilities)
    return _hash(*(table(n, one).write_ndjson().encode() for n, one in enumerate(businesses) for table in tables))


def _hash_people(some: Iterable[Person]) -> str:
    tables = (frames.transactions, frames.person, frames.accounts, frames.incomes)
    return _hash(*(table(n, one).write_ndjson().encode() for n, one in enumerate(some) for table in tables))


def _hash_statement(layout: str) -> str:
    """Hash the truth and the pages as drawn. The file's own bytes also depend on the machine's zlib."""
    made = statement_pdf(layout, 7)
    with pikepdf.open(BytesIO(made.content)) as pdf:
        pages = [page.Contents.read_bytes() for page in pdf.pages]
    return _hash(json.dumps(made.truth()).encode(), *pages)


def _hash(*parts: bytes) -> str:
    whole = sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()[:16]


@pytest.mark.slow  # the generator of synthetic data alone
def test_output_is_as_recorded() -> None:
    assert fingerprint() == json.loads(FILE.read_text("utf-8"))


if __name__ == "__main__":
    FILE.write_text(json.dumps(fingerprint(), indent=2) + "\n", "utf-8")
