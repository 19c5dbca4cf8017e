"""A corrected statement, from its PDF to totals, revenue, replays and reports."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from pipelines.figures.facts import select_as_known
from pipelines.intake.pdf.extraction import extract as read_pdf
from pipelines.intake.pdf.page.result import Extraction, Verdict
from pipelines.vocabulary.schemas import current
from storage.core.models import JobStatus
from storage.core.store import Store
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.reports import reports
from tests.assets.lender import Lender, run_refreshes
from tests.fake_statements import FakeReader, extract, submit_files
from tests.pipelines.intake.pdf.drawing import HEADING, Drawing, statement
from tests.pipelines.reports.completeness_examples import codes

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

Line = tuple[str, str, Decimal]
RENT, FEE, SALE = (
    ("02", "RENT", Decimal(-900)),
    ("04", "DISHONOUR FEE", Decimal(-15)),
    ("09", "MERCHANT SETTLEMENT", Decimal(300)),
)
WAGE = ("20", "WAGES A NGUYEN", Decimal(-120))
MARCH = [RENT, FEE, SALE, WAGE]


@cache
def draw(lines: tuple[Line, ...], off: int = 0) -> Extraction:
    """Draw a statement of March 2024 and read it. `off`: what its closing balance is off by."""
    balance = Decimal(2000)
    drawing = statement().line(*HEADING).line((45, "01 Mar 2024"), (110, "OPENING BALANCE"), (-550, "2,000.00"))
    for day, words, amount in lines:
        balance += amount
        side = -400 if amount < 0 else -470
        drawing.line((45, f"{day} Mar 2024"), (110, words), (side, f"{abs(amount):,.2f}"), (-550, f"{balance:,.2f}"))
    return read_pdf(_close(drawing, balance + off))


def _close(drawing: Drawing, balance: Decimal) -> bytes:
    return drawing.line((45, "31 Mar 2024"), (110, "CLOSING BALANCE"), (-550, f"{balance:,.2f}")).finish()


FIRST = draw(tuple(MARCH))
CHANGED = draw((RENT, FEE, ("09", "MERCHANT SETTLEMENT", Decimal(450)), WAGE))
DOCTORED = draw((RENT, SALE, WAGE))
SHORTENED = draw((RENT, FEE, SALE))
CONTRADICTED = draw((RENT, SALE, WAGE), off=15)


class Office:
    """A lender that reads drawn statements."""

    def __init__(self, store: Store) -> None:
        self.lender = Lender(store)
        self.read = FakeReader(
            first=FIRST, changed=CHANGED, doctored=DOCTORED, contradicted=CONTRADICTED, shortened=SHORTENED
        )

    def send(self, *names: str) -> Job:
        """Send PDFs and return the ended job."""
        job = submit_files(self.lender.store, self.lender.customer, *names)
        extract(self.lender.store, self.read)
        self.lender.end_all()
        return self.lender.now(job)

    def total(self) -> Decimal:
        return sum((row["amount"] for row in self.lender.rows()), Decimal(0))

    def last_received(self) -> int:
        with self.lender.store.db.reading() as r:
            return jobs.find_last_received(r, self.lender.customer, datetime.now(UTC))

    def known_at(self, received_seq: int) -> list[str]:
        """Return the descriptions of the rows that were current right after a job."""
        with self.lender.store.db.reading() as r:
            places = transactions.current_locations(r, [self.lender.customer.number])
        value = transactions.scan(self.lender.store.lake, places).collect()
        return sorted(select_as_known(value, received_seq).filter(current())["description"])

    def report(self, kind: str) -> dict[str, Any]:
        self.lender.ask_for_reports()
        run_refreshes(self.lender)
        with self.lender.store.db.reading() as r:
            data: dict[str, Any] = json.loads(reports.read_bundle(r, self.lender.customer)[kind].data_json or "")
        return data


@pytest.fixture
def office(store: Store) -> Office:
    return Office(store)


def test_the_drawn_statements_prove_what_the_tests_assume() -> None:
    verdicts = [found.statements[0].verdict for found in (FIRST, CHANGED, DOCTORED, CONTRADICTED)]
    assert verdicts == [Verdict.RECONCILED] * 3 + [Verdict.PARTIAL]


def test_a_corrected_statement_counts_once_and_the_job_says_what_it_replaced(office: Office) -> None:
    first, second = office.send("first"), office.send("changed")
    assert office.total() == sum((amount for _, _, amount in MARCH), Decimal(150))
    assert (second.status, second.enriched_rows, second.duplicate_rows) == (JobStatus.COMPLETED, 2, 2)
    [warning] = second.warnings
    assert warning["code"] == "Statement.ReplacesEarlier"
    assert "2, of which 1 are not in this one" in warning["message"]
    assert f"first.pdf of the submission {first.job_id}" in warning["message"]
    assert office.report("risk")["integrity"]["trueRevenue"] == 450


def test_rows_that_a_doctored_statement_leaves_out_are_named(office: Office) -> None:
    office.send("first")
    office.send("doctored")
    assert office.lender.descriptions() == ["MERCHANT SETTLEMENT", "RENT", "WAGES A NGUYEN"]
    data = office.report("completeness")
    assert [(row["date"], row["amount"]) for row in data["replacedRows"]] == [("2024-03-04", -15)]
    assert not {"BalanceBreaks", "StatementBalanceDiffers", "RepeatedSubmissions"} & set(codes(data))
    [reason] = [each for each in data["reasons"] if each["code"] == "Completeness.ReplacedRows"]
    assert reason["message"].endswith("lacks 1 row of it: −$15.00 on 4 Mar 2024.")


def test_a_statement_that_only_lacks_the_last_row_is_evidence_at_once(office: Office) -> None:
    office.send("first")
    job = office.send("shortened")
    assert (job.enriched_rows, job.duplicate_rows) == (0, 3)
    data = office.report("completeness")
    assert sorted(each["fileName"] for each in data["statements"]) == ["first.pdf", "shortened.pdf"]
    assert "ReplacedRows" in codes(data)
    assert "StatementBalanceDiffers" not in codes(data)


def test_a_replay_shows_what_was_known_before_and_a_retraction_brings_it_back(office: Office) -> None:
    office.send("first")
    names, before = office.lender.descriptions(), office.last_received()
    doctored = office.send("doctored")
    after = office.last_received()
    office.lender.retract_and_end(doctored)
    assert office.lender.descriptions() == names
    assert office.known_at(before) == names
    assert office.known_at(after) == ["MERCHANT SETTLEMENT", "RENT", "WAGES A NGUYEN"]
    assert office.known_at(office.last_received()) == names
    assert office.report("completeness")["replacedRows"] == []


def test_the_statement_received_last_stands_and_the_same_one_again_adds_nothing(office: Office) -> None:
    office.send("changed")
    assert office.send("first").warnings[0]["code"] == "Statement.ReplacesEarlier"
    assert office.total() == sum(amount for _, _, amount in MARCH)
    again = office.send("first")
    assert (again.duplicate_rows, again.enriched_rows, again.warnings) == (4, 0, [])


def test_a_statement_that_does_not_reconcile_replaces_nothing(office: Office) -> None:
    office.send("first")
    job = office.send("contradicted")
    assert job.warnings == []
    assert office.lender.descriptions().count("DISHONOUR FEE") == 1
    assert office.report("completeness")["replacedRows"] == []


def test_a_row_that_a_feed_repeated_stays(office: Office) -> None:
    office.send("first")
    [bsb, number] = [FIRST.statements[0].bsb, FIRST.statements[0].account_number]
    assert number is not None
    fee = {"date": "2024-03-04", "description": "FEE DISHONOUR", "amount": "-15.00"}
    fed = office.lender.submit_and_end(fee, account_number=number, bsb=bsb)
    assert (fed.duplicate_rows, fed.enriched_rows) == (1, 0)
    office.send("doctored")
    assert "DISHONOUR FEE" in office.lender.descriptions()
    office.lender.retract_and_end(fed)
    assert "DISHONOUR FEE" not in office.lender.descriptions()
