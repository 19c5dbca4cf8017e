"""A retraction leaves what enriching all the other submissions would have made, and the history of before."""

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
    """An event: the submission of the event with this number, from 1, is taken back."""

    of: int


Event = Sequence[Row] | Retraction


@dataclass
class History:
    """What a service holds after events that arrive in batches, as the assets would have it."""

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
        self.held = pl.concat([standing, past, result.put_away])
        self.duplicates = result.identified.duplicates
        self.submitted |= new

    def standing(self) -> pl.DataFrame:
        return self.held.filter(pl.col("retracted_seq").is_null())

    def known_after(self, seq: int) -> pl.DataFrame:
        """The rows that were current right after this job, told from the marks alone."""
        ended = pl.col("superseded_seq").fill_null(2**62)
        return self.held.filter(pl.col("since_seq") <= seq, ended > seq)


def after(*events: Event) -> History:
    """What is held after events that arrived one by one."""
    history = History()
    for seq, event in enumerate(events, start=1):
        history.batch({seq: event})
    return history


def shown(rows: pl.DataFrame) -> list[tuple[int, int]]:
    """Where the current rows come from."""
    return sorted(rows.filter(current()).select(PLACE).rows())


def ids(rows: pl.DataFrame) -> set[bytes]:
    return set(rows.filter(current())["transaction_id"])


def test_rows_that_nobody_repeated_are_gone() -> None:
    history = after([COFFEE, {"description": "TEA"}], [{"description": "RENT"}], Retraction(1))
    assert shown(history.held) == [(2, 0)]


def test_a_row_that_a_later_submission_repeated_is_now_that_ones_under_the_same_id() -> None:
    before = after([COFFEE, COFFEE], [COFFEE])
    retracted = after([COFFEE, COFFEE], [COFFEE], Retraction(1))
    assert shown(retracted.held) == [(2, 0)]
    assert ids(retracted.held) < ids(before.held)


def test_an_id_is_inherited_by_the_row_that_repeated_it_and_not_by_its_neighbour() -> None:
    ten, twenty = COFFEE | {"balance": Decimal(10)}, COFFEE | {"balance": Decimal(20)}
    before = after([ten, twenty], [twenty])
    retracted = after([ten, twenty], [twenty], Retraction(1))
    [retained] = retracted.standing().to_dicts()
    [old] = before.held.filter(pl.col("balance") == 20)["transaction_id"]
    assert retained["transaction_id"] == old


def test_a_transaction_that_stays_keeps_its_id_whatever_goes_before_it() -> None:
    appended = COFFEE | {"appended": True}
    before, retracted = after([COFFEE], [appended]), after([COFFEE], [appended], Retraction(1))
    assert ids(retracted.held) == set(before.held.filter(pl.col("received_seq") == 2)["transaction_id"])


def test_a_revision_gives_way_to_what_it_replaced() -> None:
    five, six = ({"client_transaction_id": "T1", "amount": Decimal(amount)} for amount in (-5, -6))
    history = after([five], [six], Retraction(2))
    assert history.standing().select("amount", "revision", "superseded_seq").rows() == [(Decimal(-5), 1, None)]


def test_a_version_between_two_leaves_a_later_one_that_says_the_same_as_the_first_a_duplicate() -> None:
    five, six = ({"client_transaction_id": "T1", "amount": Decimal(amount)} for amount in (-5, -6))
    history = after([five], [six], [five], Retraction(2))
    assert shown(history.held) == [(1, 0)]
    again = after([five], [six], [five], Retraction(2), Retraction(1))
    assert shown(again.held) == [(3, 0)]


def test_a_pending_row_without_its_posting_waits_again() -> None:
    pending = COFFEE | {"status": "pending"}
    assert shown(after([pending], [COFFEE]).held) == [(2, 0)]
    assert shown(after([pending], [COFFEE], Retraction(2)).held) == [(1, 0)]
    assert shown(after([pending], [COFFEE], Retraction(2), [COFFEE]).held) == [(4, 0)]


def test_a_pending_row_received_with_the_retraction_is_superseded_by_its_posting() -> None:
    history = after([{"description": "TEA"}])
    history.batch({2: Retraction(1), 3: [COFFEE | {"status": "pending"}], 4: [COFFEE]})
    assert shown(history.held) == [(4, 0)]


def test_the_same_rows_sent_after_the_retraction_are_new_again() -> None:
    history = after([COFFEE, COFFEE], Retraction(1), [COFFEE, COFFEE])
    assert shown(history.held) == [(3, 0), (3, 1)]
    assert history.duplicates.is_empty()


def test_a_submission_received_with_the_retraction_repeats_only_what_stays() -> None:
    history = after([COFFEE], [{"description": "TEA"}])
    history.batch({3: Retraction(1), 4: [COFFEE, {"description": "TEA"}]})
    assert shown(history.held) == [(2, 0), (4, 0)]
    tea = history.standing().filter(pl.col("description") == "TEA")["transaction_id"]
    assert history.duplicates.select("position", "transaction_id").rows() == [(1, tea[0])]


def test_a_retraction_of_nothing_but_duplicates_changes_nothing() -> None:
    before = after([COFFEE], [COFFEE])
    assert_frame_equal(after([COFFEE], [COFFEE], Retraction(2)).held, before.held)


def test_enrichment_without_a_submission_is_enrichment_of_the_others() -> None:
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
    put_away = pl.col("retracted_seq").is_not_null()
    assert_frame_equal(later.filter(put_away), result.filter(put_away))


events_strategy = st.lists(
    st.one_of(
        st.tuples(st.lists(row_strategy, min_size=1, max_size=4), st.booleans(), st.booleans()),
        st.integers(min_value=1, max_value=6),
    ),
    min_size=2,
    max_size=8,
)


batch_sizes = st.integers(min_value=1, max_value=4)


@examples(10)
@given(events_strategy, batch_sizes)
def test_what_stands_is_what_the_other_submissions_make_and_every_past_state_can_be_told(
    drawn: list[Any], batch_size: int
) -> None:
    follow(drawn, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=2_000)
@given(events_strategy, batch_sizes)
def test_so_it_is_for_many_stories(drawn: list[Any], batch_size: int) -> None:
    follow(drawn, batch_size)


def follow(drawn: list[Any], batch_size: int) -> None:
    """Let the events happen, and check what is held after every batch and what is told of it at the end."""
    history = History()
    states: dict[int, pl.DataFrame] = {}
    numbered = list(enumerate(drawn, start=1))
    for start in range(0, len(numbered), batch_size):
        before = history.standing()
        history.batch(_acceptable(history, numbered[start : start + batch_size]))
        expected = identify(pl.DataFrame(schema=KNOWN), _together(history)).rows
        facts = [name for name in KNOWN.names() if name not in ("transaction_id", "ordinal", "since_seq")]
        standing = history.standing()
        assert_frame_equal(standing.select(facts).sort(PLACE), expected.select(facts).sort(PLACE))
        assert standing.filter(current())["transaction_id"].is_unique().all()
        retained = before.join(standing, on=PLACE, suffix="_now")
        assert retained["transaction_id"].equals(retained["transaction_id_now"])
        states[numbered[start : start + batch_size][-1][0]] = standing.filter(current()).select(TRANSACTIONS.names())
    for seq, state in states.items():
        columns = [*PLACE, "transaction_id", "revision"]
        assert_frame_equal(history.known_after(seq).select(columns).sort(PLACE), state.select(columns).sort(PLACE))


def _acceptable(history: History, drawn: Sequence[tuple[int, Any]]) -> dict[int, Event]:
    """The events of a batch. Only a submission that has ended, and was not retracted, can be retracted."""
    events: dict[int, Event] = {}
    for seq, event in drawn:
        if isinstance(event, tuple):
            rows, appended, other = event
            whose = {"customer_number": 2, "account_id": OTHER_ACCOUNT} if other else {"account_id": ACCOUNT}
            events[seq] = [{**row, **whose, "appended": appended} for row in without_conflicts(rows)]
        elif event in history.submitted and Retraction(event) not in events.values():
            events[seq] = Retraction(event)
    return events


def _together(history: History) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=ACCEPTED), *history.submitted.values()])
