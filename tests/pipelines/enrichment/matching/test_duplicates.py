"""Which rows of a submission are new, repeat a held row, revise one, or post a pending one."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid5

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.matching import duplicates
from pipelines.enrichment.matching.duplicates import KNOWN, Identified, identify
from tests.pipelines.enrichment.examples import ACCOUNT, accepted_rows, submission

NOTHING = pl.DataFrame(schema=KNOWN)
COFFEE = {"description": "COFFEE"}
Row = dict[str, Any]


def identify_all(*submissions: Sequence[Row]) -> Identified:
    """Identify submissions one by one. Return what is held at the end, and the duplicates of the last one."""
    identified = Identified(NOTHING, NOTHING)
    for seq, rows in enumerate(submissions, start=1):
        identified = identify(identified.rows, submission(seq, rows))
    return identified


def test_two_identical_coffees_in_one_submission_are_two_transactions() -> None:
    result = identify_all([COFFEE, COFFEE])
    assert result.rows["transaction_id"].n_unique() == 2
    assert result.duplicates.is_empty()


def test_repeated_submission_adds_nothing_and_names_the_repeated_transactions() -> None:
    first = identify_all([COFFEE, COFFEE])
    again = identify_all([COFFEE, COFFEE], [COFFEE, COFFEE])
    assert_frame_equal(again.rows, first.rows)
    assert set(again.duplicates["transaction_id"]) == set(first.rows["transaction_id"])


def test_submission_adds_only_rows_beyond_the_count_held() -> None:
    result = identify_all([COFFEE], [COFFEE, COFFEE, COFFEE])
    assert (result.rows.height, result.duplicates.height) == (3, 1)


def test_spacing_and_case_make_no_difference() -> None:
    assert identify_all([COFFEE], [{"description": "  coffee "}]).duplicates.height == 1


def test_balances_distinguish_rows_only_if_both_state_one() -> None:
    stated, other, silent = {"balance": Decimal(10)}, {"balance": Decimal(20)}, {"balance": None}
    assert identify_all([stated], [other]).rows.height == 2
    assert identify_all([stated], [silent]).rows.height == 1
    assert identify_all([silent], [stated]).rows.height == 1


def test_a_version_that_was_revised_is_not_repeated_even_if_the_revision_has_another_amount() -> None:
    first, revised = ({"client_transaction_id": "T1", "amount": Decimal(amount)} for amount in (-5, -7))
    assert identify_all([first], [revised], [{"amount": Decimal(-5)}]).duplicates.is_empty()


def test_mode_append_is_not_matched_but_counts_as_held() -> None:
    appended = {"appended": True}
    assert identify_all([COFFEE], [appended]).rows.height == 2
    assert identify_all([COFFEE], [appended], [COFFEE, COFFEE]).duplicates.height == 2


def test_the_same_id_with_the_same_content_is_a_duplicate() -> None:
    row = {"client_transaction_id": "T1"}
    result = identify_all([row], [row])
    assert (result.rows.height, result.duplicates.height) == (1, 1)


def test_same_id_with_other_content_is_a_revision_and_supersedes_the_earlier() -> None:
    result = identify_all(
        [{"client_transaction_id": "T1"}], [{"client_transaction_id": "T1", "amount": Decimal("-5.00")}]
    )
    versions = result.rows.sort("revision")
    assert versions["revision"].to_list() == [1, 2]
    assert versions["superseded_seq"].to_list() == [2, None]
    assert versions["transaction_id"].n_unique() == 1


def test_a_revision_back_to_the_first_content_is_a_third_version() -> None:
    five = {"client_transaction_id": "T1", "amount": Decimal(-5)}
    six = {"client_transaction_id": "T1", "amount": Decimal(-6)}
    assert identify_all([five], [six], [five]).rows.sort("revision")["superseded_seq"].to_list() == [2, 3, None]


def test_rows_without_ids_repeat_rows_of_a_feed_with_ids() -> None:
    assert identify_all([{"client_transaction_id": "T1"}], [COFFEE]).duplicates.height == 1


def test_a_pending_row_is_superseded_by_its_posting() -> None:
    pending = {"status": "pending", "date": date(2026, 3, 2)}
    posting = {"date": date(2026, 3, 4)}
    result = identify_all([pending], [posting]).rows
    assert result.filter(pl.col("status") == "pending")["superseded_seq"].to_list() == [2]
    assert result.filter(pl.col("status") == "posted")["superseded_seq"].to_list() == [None]


def test_one_posting_supersedes_one_pending_row() -> None:
    pending = {"status": "pending"}
    assert identify_all([pending, pending], [COFFEE]).rows["superseded_seq"].null_count() == 2


def test_a_posting_of_another_week_leaves_a_pending_row_alone() -> None:
    assert identify_all([{"status": "pending"}], [{"date": date(2026, 3, 10)}]).rows["superseded_seq"].null_count() == 2


def test_thousands_of_equal_pending_rows_are_superseded_by_their_postings() -> None:
    """Comparing every pair would take millions of comparisons, and one round per row would take days."""
    rows = identify_all([COFFEE | {"status": "pending"}] * 5_000, [COFFEE] * 5_000).rows
    assert rows.filter(pl.col("status") == "pending")["superseded_seq"].unique().to_list() == [2]


def test_ids_do_not_depend_on_the_order_of_rows_in_the_frame() -> None:
    rows = submission(1, [COFFEE, {"description": "TEA"}, COFFEE])
    assert_frame_equal(identify(NOTHING, rows).rows, identify(NOTHING, rows.reverse()).rows)


def test_rows_of_another_customer_make_no_difference() -> None:
    mine = accepted_rows(COFFEE)
    theirs = accepted_rows({"customer_number": 2, "account_id": b"z" * 16, "received_seq": 2, "job_id": b"k" * 16})
    together = identify(NOTHING, pl.concat([mine, theirs])).rows
    assert_frame_equal(together.filter(pl.col("customer_number") == 1), identify(NOTHING, mine).rows)


row_strategy = st.fixed_dictionaries(
    {
        "description": st.sampled_from(["COFFEE", "TEA"]),
        "date": st.sampled_from([date(2026, 3, day) for day in (2, 3, 5, 10)]),
        "balance": st.sampled_from([None, Decimal(10), Decimal(20)]),
        "client_transaction_id": st.sampled_from([None, None, None, "T1", "T2"]),
        "status": st.sampled_from(["posted", "posted", "pending"]),
    }
)
submissions_strategy = st.lists(
    st.tuples(st.lists(row_strategy, min_size=1, max_size=5), st.booleans()), min_size=1, max_size=4
)


def without_conflicts(rows: list[Row]) -> list[Row]:
    """Keep the rows that validation accepts: one content per id."""
    first: dict[str, Row] = {}
    retained = []
    for row in rows:
        name = row["client_transaction_id"]
        if name is None or all(first.setdefault(name, row)[field] == row[field] for field in row if field != "status"):
            retained.append(row)
    return retained


@given(submissions_strategy, st.integers(min_value=1, max_value=4))
def test_any_batches_of_submissions_agree_with_the_oracle(
    submissions: list[tuple[list[Row], bool]], batch_size: int
) -> None:
    frames = [
        submission(seq, [{**row, "appended": appended} for row in without_conflicts(rows)])
        for seq, (rows, appended) in enumerate(submissions, start=1)
    ]
    held = NOTHING
    repeated: list[tuple[int, int]] = []
    for start in range(0, len(frames), batch_size):
        result = identify(held, pl.concat(frames[start : start + batch_size]))
        held = result.rows
        repeated += [(seq, position) for seq, position in _places(result.duplicates)]
    expected = Oracle()
    for frame in frames:
        expected.submit(frame.to_dicts())
    assert sorted(repeated) == sorted(expected.duplicates)
    superseded = {(row["received_seq"], row["position"]): row["superseded_seq"] for row in held.to_dicts()}
    assert superseded == {(row["received_seq"], row["position"]): row["superseded_seq"] for row in expected.held}
    assert held.filter(pl.col("superseded_seq").is_null())["transaction_id"].is_unique().all()


@given(submissions_strategy, st.integers(min_value=1, max_value=4))
def test_leaving_out_rows_that_nothing_new_concerns_changes_nothing(
    submissions: list[tuple[list[Row], bool]], batch_size: int
) -> None:
    frames = [submission(seq, without_conflicts(rows)) for seq, (rows, _) in enumerate(submissions, start=1)]
    held = NOTHING
    for start in range(0, len(frames), batch_size):
        new = pl.concat(frames[start : start + batch_size])
        with patch.object(duplicates, "_mark_concerned", lambda rows, _: pl.repeat(True, rows.height, eager=True)):
            whole = identify(held, new)
        result = identify(held, new)
        assert_frame_equal(result.rows, whole.rows)
        assert_frame_equal(result.duplicates, whole.duplicates)
        held = result.rows


def _places(duplicates: pl.DataFrame) -> list[tuple[int, int]]:
    return [(int.from_bytes(job), position) for job, position in duplicates.select("job_id", "position").rows()]


class Oracle:
    """The rules in plain Python, one submission and one row at a time."""

    def __init__(self) -> None:
        self.held: list[Row] = []
        self.duplicates: list[tuple[int, int]] = []

    def submit(self, rows: list[Row]) -> None:
        before = sorted(self.held, key=lambda row: (row["received_seq"], row["position"]))
        added = [row for row in rows if row["client_transaction_id"] is not None and self._by_id(row)]
        counted = [row for row in rows if row["client_transaction_id"] is None]
        held = [row for row in before if not row["revised"]]
        repeats = [] if rows and rows[0]["appended"] else self._matching(held, counted)
        for row in counted:
            if any(row is each for each in repeats):
                self._duplicate(row)
            else:
                self._keep(row)
                added.append(row)
        self._replace_pending(before, sorted(added, key=lambda row: row["position"]))

    def _by_id(self, row: Row) -> bool:
        versions = [each for each in self.held if each["client_transaction_id"] == row["client_transaction_id"]]
        content = ("description", "amount", "balance", "status", "date", "value_date")
        if versions and all(versions[-1][name] == row[name] for name in content):
            self._duplicate(row)
            return False
        if versions:
            versions[-1]["revised"] = True
            versions[-1]["superseded_seq"] = versions[-1]["superseded_seq"] or row["received_seq"]
        self._keep(row)
        return True

    def _matching(self, held: list[Row], sent: list[Row]) -> list[Row]:
        free, matched = list(held), list[Row]()

        def match(rows: list[Row], partners: list[Row], fits: Any) -> None:
            for row in rows:
                partner = next((each for each in partners if each in free and fits(row, each)), None)
                if partner is not None and not any(row is each for each in matched):
                    free.remove(partner)
                    matched.append(row)

        def same(a: Row, b: Row) -> bool:
            return all(a[name] == b[name] for name in ("description", "amount", "date", "status"))

        stating = [row for row in sent if row["balance"] is not None]
        silent = [row for row in sent if row["balance"] is None]
        match(stating, held, lambda a, b: same(a, b) and a["balance"] == b["balance"])
        match(stating, held, lambda a, b: same(a, b) and b["balance"] is None)
        match(silent, sorted(held, key=lambda row: row["balance"] is None), same)
        return matched

    def _replace_pending(self, before: list[Row], added: list[Row]) -> None:
        for posting in added:
            if posting["status"] != "posted":
                continue
            for pending in sorted(before, key=lambda row: (row["date"], row["received_seq"], row["position"])):
                if (
                    pending["status"] == "pending"
                    and pending["superseded_seq"] is None
                    and all(pending[name] == posting[name] for name in ("description", "amount"))
                    and -1 <= (posting["date"] - pending["date"]).days <= 7
                ):
                    pending["superseded_seq"] = posting["received_seq"]
                    break

    def _keep(self, row: Row) -> None:
        row |= {"superseded_seq": None, "revised": False}
        self.held.append(row)

    def _duplicate(self, row: Row) -> None:
        self.duplicates.append((row["received_seq"], row["position"]))


def test_id_is_the_uuid5_of_account_and_matching_key() -> None:
    row = identify(NOTHING, accepted_rows({"description": "Tea", "amount": Decimal("-4.50")})).rows.to_dicts()[0]
    name = "2026-03-02|-4.50|posted|0|TEA"
    assert row["transaction_id"] == uuid5(UUID(bytes=ACCOUNT), name).bytes
