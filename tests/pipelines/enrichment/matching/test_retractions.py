"""After a retraction, the rows are those of all other submissions, and the history before it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.matching.duplicates import KNOWN, identify
from pipelines.enrichment.matching.retractions import RETRACTED, Retractions, identify_without
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS, current
from tests.conftest import examples
from tests.pipelines.enrichment.examples import ACCOUNT, OTHER_ACCOUNT, submission
from tests.pipelines.enrichment.matching.test_duplicates import row_strategy, without_conflicts

Row = dict[str, Any]
COFFEE: Row = {"description": "COFFEE"}
PLACE = ["received_seq", "position"]


@dataclass(frozen=True)
class Retraction:
    """An event that retracts the submission with this event number, from 1."""

    of: int


Event = Sequence[Row] | Retraction


@dataclass
class History:
    """What a service holds after events that arrive in batches, as in the assets."""

    held: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TRANSACTIONS))
    submitted: dict[int, pl.DataFrame] = field(default_factory=dict)  # by received_seq; without the retracted ones
    duplicates: pl.DataFrame = field(default_factory=pl.DataFrame)  # of the last batch

    def batch(self, events: dict[int, Event]) -> None:
        new = {seq: submission(seq, rows) for seq, rows in events.items() if not isinstance(rows, Retraction)}
        taken = [(event.of, seq) for seq, event in events.items() if isinstance(event, Retraction)]
        gone = {of: self.submitted.pop(of) for of, _ in taken}
        rows = [
            {"customer_number": gone[of]["customer_number"][0], "job_id": of.to_bytes(16), "submission_seq": of}
            | {"retraction_seq": seq}
            for of, seq in taken
        ]
        retracted = pl.DataFrame(rows, schema=RETRACTED)
        retractions = Retractions(retracted, pl.concat([pl.DataFrame(schema=ACCEPTED), *self.submitted.values()]))
        accepted = pl.concat([pl.DataFrame(schema=ACCEPTED), *new.values()])
        past = self.held.filter(pl.col("retracted_seq").is_not_null())
        result = identify_without(self.held.filter(pl.col("retracted_seq").is_null()), accepted, retractions)
        standing = result.identified.rows.match_to_schema(TRANSACTIONS, missing_columns="insert")
        self.held = pl.concat([standing, past, result.former])
        self.duplicates = result.identified.duplicates
        self.submitted |= new

    def standing(self) -> pl.DataFrame:
        return self.held.filter(pl.col("retracted_seq").is_null())

    def rows_known_after(self, seq: int) -> pl.DataFrame:
        """Return the rows that were current right after this job, by their marks alone."""
        ended = pl.col("superseded_seq").fill_null(2**62)
        return self.held.filter(pl.col("since_seq") <= seq, ended > seq)


def run_events(*events: Event) -> History:
    """Run events one by one, and return the history."""
    history = History()
    for seq, event in enumerate(events, start=1):
        history.batch({seq: event})
    return history


def current_places(rows: pl.DataFrame) -> list[tuple[int, int]]:
    """Return the places of the current rows."""
    return sorted(rows.filter(current()).select(PLACE).rows())


def ids(rows: pl.DataFrame) -> set[bytes]:
    return set(rows.filter(current())["transaction_id"])


def test_rows_without_repetition_are_removed() -> None:
    history = run_events([COFFEE, {"description": "TEA"}], [{"description": "RENT"}], Retraction(1))
    assert current_places(history.held) == [(2, 0)]


def test_row_repeated_by_a_later_submission_stays_under_the_same_id() -> None:
    before = run_events([COFFEE, COFFEE], [COFFEE])
    retracted = run_events([COFFEE, COFFEE], [COFFEE], Retraction(1))
    assert current_places(retracted.held) == [(2, 0)]
    assert ids(retracted.held) < ids(before.held)


def test_id_is_inherited_by_the_row_that_repeated_it() -> None:
    ten, twenty = COFFEE | {"balance": Decimal(10)}, COFFEE | {"balance": Decimal(20)}
    before = run_events([ten, twenty], [twenty])
    retracted = run_events([ten, twenty], [twenty], Retraction(1))
    [retained] = retracted.standing().to_dicts()
    [old] = before.held.filter(pl.col("balance") == 20)["transaction_id"]
    assert retained["transaction_id"] == old


def test_remaining_transaction_keeps_its_id() -> None:
    appended = COFFEE | {"appended": True}
    before, retracted = run_events([COFFEE], [appended]), run_events([COFFEE], [appended], Retraction(1))
    assert ids(retracted.held) == set(before.held.filter(pl.col("received_seq") == 2)["transaction_id"])


def test_retracting_a_revision_restores_the_version_before() -> None:
    five, six = ({"client_transaction_id": "T1", "amount": Decimal(amount)} for amount in (-5, -6))
    history = run_events([five], [six], Retraction(2))
    assert history.standing().select("amount", "revision", "superseded_seq").rows() == [(Decimal(-5), 1, None)]


def test_retracting_the_middle_of_three_versions_makes_the_last_a_duplicate() -> None:
    five, six = ({"client_transaction_id": "T1", "amount": Decimal(amount)} for amount in (-5, -6))
    history = run_events([five], [six], [five], Retraction(2))
    assert current_places(history.held) == [(1, 0)]
    again = run_events([five], [six], [five], Retraction(2), Retraction(1))
    assert current_places(again.held) == [(3, 0)]


def test_pending_row_waits_again_after_its_posting_is_retracted() -> None:
    pending = COFFEE | {"status": "pending"}
    assert current_places(run_events([pending], [COFFEE]).held) == [(2, 0)]
    assert current_places(run_events([pending], [COFFEE], Retraction(2)).held) == [(1, 0)]
    assert current_places(run_events([pending], [COFFEE], Retraction(2), [COFFEE]).held) == [(4, 0)]


def test_pending_row_in_the_batch_of_a_retraction_is_superseded_by_its_posting() -> None:
    history = run_events([{"description": "TEA"}])
    history.batch({2: Retraction(1), 3: [COFFEE | {"status": "pending"}], 4: [COFFEE]})
    assert current_places(history.held) == [(4, 0)]


def test_rows_sent_again_after_the_retraction_are_new() -> None:
    history = run_events([COFFEE, COFFEE], Retraction(1), [COFFEE, COFFEE])
    assert current_places(history.held) == [(3, 0), (3, 1)]
    assert history.duplicates.is_empty()


def test_submission_in_the_batch_of_a_retraction_repeats_only_remaining_rows() -> None:
    history = run_events([COFFEE], [{"description": "TEA"}])
    history.batch({3: Retraction(1), 4: [COFFEE, {"description": "TEA"}]})
    assert current_places(history.held) == [(2, 0), (4, 0)]
    tea = history.standing().filter(pl.col("description") == "TEA")["transaction_id"]
    assert history.duplicates.select("position", "transaction_id").rows() == [(1, tea[0])]


def test_retracting_only_duplicates_changes_nothing() -> None:
    before = run_events([COFFEE], [COFFEE])
    assert_frame_equal(run_events([COFFEE], [COFFEE], Retraction(2)).held, before.held)


def test_enrichment_after_a_retraction_equals_enrichment_of_the_other_submissions() -> None:
    rent, sale = {"description": "RENT", "amount": Decimal(-900)}, {"description": "SALE", "amount": Decimal(900)}
    first, second = submission(1, [rent, COFFEE]), submission(2, [rent, sale | {"account_id": OTHER_ACCOUNT}])
    held = enrich(pl.DataFrame(schema=TRANSACTIONS), pl.concat([first, second])).transactions.collect()
    retracted = pl.DataFrame([(1, (1).to_bytes(16), 1, 3)], schema=RETRACTED, orient="row")
    result = enrich(held, pl.DataFrame(schema=ACCEPTED), Retractions(retracted, second)).transactions.collect()
    expected = enrich(pl.DataFrame(schema=TRANSACTIONS), second).transactions.collect()
    assert result.schema == TRANSACTIONS
    assert_frame_equal(result.filter(current()).drop("since_seq"), expected.drop("since_seq"))
    assert set(result.filter(~current())["retracted_seq"]) == {3}

    later = enrich(result, submission(4, [COFFEE])).transactions.collect()
    former = pl.col("retracted_seq").is_not_null()
    assert_frame_equal(later.filter(former), result.filter(former))


events_strategy = st.lists(
    st.one_of(
        st.tuples(st.lists(row_strategy, min_size=1, max_size=4), st.booleans(), st.booleans()),
        st.integers(min_value=1, max_value=6),
    ),
    min_size=2,
    max_size=8,
)


batch_sizes = st.integers(min_value=1, max_value=4)


@pytest.mark.service  # matches every history several times
@examples(5)
@given(events_strategy, batch_sizes)
def test_rows_equal_those_of_the_other_submissions_and_past_states_can_be_restored(
    drawn: list[Any], batch_size: int
) -> None:
    check_history(drawn, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=2_000)
@given(events_strategy, batch_sizes)
def test_many_histories_with_retractions_agree_with_a_replay(drawn: list[Any], batch_size: int) -> None:
    check_history(drawn, batch_size)


def check_history(drawn: list[Any], batch_size: int) -> None:
    """Run the events, check what is held after every batch, and check at the end that past states can be restored."""
    history = History()
    states: dict[int, pl.DataFrame] = {}
    numbered = list(enumerate(drawn, start=1))
    for start in range(0, len(numbered), batch_size):
        before = history.standing()
        history.batch(_possible_events(history, numbered[start : start + batch_size]))
        expected = identify(pl.DataFrame(schema=KNOWN), _remaining_rows(history)).rows
        facts = [name for name in KNOWN.names() if name not in ("transaction_id", "ordinal", "since_seq")]
        standing = history.standing()
        assert_frame_equal(standing.select(facts).sort(PLACE), expected.select(facts).sort(PLACE))
        assert standing.filter(current())["transaction_id"].is_unique().all()
        retained = before.join(standing, on=PLACE, suffix="_now")
        assert retained["transaction_id"].equals(retained["transaction_id_now"])
        states[numbered[start : start + batch_size][-1][0]] = standing.filter(current()).select(TRANSACTIONS.names())
    for seq, state in states.items():
        columns = [*PLACE, "transaction_id", "revision"]
        assert_frame_equal(history.rows_known_after(seq).select(columns).sort(PLACE), state.select(columns).sort(PLACE))


def _possible_events(history: History, drawn: Sequence[tuple[int, Any]]) -> dict[int, Event]:
    """Return the events of a batch. Only a submission of an earlier batch that was not retracted can be retracted."""
    events: dict[int, Event] = {}
    for seq, event in drawn:
        if isinstance(event, tuple):
            rows, appended, other = event
            whose = {"customer_number": 2, "account_id": OTHER_ACCOUNT} if other else {"account_id": ACCOUNT}
            events[seq] = [{**row, **whose, "appended": appended} for row in without_conflicts(rows)]
        elif event in history.submitted and Retraction(event) not in events.values():
            events[seq] = Retraction(event)
    return events


def _remaining_rows(history: History) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=ACCEPTED), *history.submitted.values()])
