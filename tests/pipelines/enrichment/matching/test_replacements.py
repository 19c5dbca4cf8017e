"""A statement that proves its rows replaces what an earlier one said of its period."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import permutations
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.enrichment.matching.replacements import PERIODS, Documents, list_replaced
from pipelines.enrichment.matching.retractions import RETRACTED, Retractions, identify_without
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS, current
from tests.conftest import examples
from tests.pipelines.enrichment.examples import ACCOUNT, submission

MARCH = date(2026, 3, 1)
Line = tuple[int, str, str]  # day of March from 1, words, amount


@dataclass(frozen=True, eq=False)  # the same object is the same statement: what `_run_one_by_one` remembers
class Paper:
    """A statement of March, as it is sent."""

    lines: Sequence[Line]
    opening: int = 1000
    verdict: str = "reconciled"
    period: tuple[int, int] | None = (1, 31)
    stated_opening: bool = True
    account: bytes = ACCOUNT

    def rows(self, seq: int) -> list[dict[str, Any]]:
        balance, rows = Decimal(self.opening), []
        for day, words, amount in self.lines:
            balance += Decimal(amount)
            rows.append(
                {
                    **row(day, words, amount, str(balance)),
                    "account_id": self.account,
                    "statement_id": seq.to_bytes(16),
                    "statement_verdict": self.verdict,
                }
            )
        return rows


@dataclass(frozen=True, eq=False)
class Feed:
    """Rows of March, as they are sent as data."""

    sent: Sequence[Mapping[str, Any]]

    def rows(self, _seq: int) -> list[dict[str, Any]]:
        return [{**each} for each in self.sent]


@dataclass(frozen=True)
class Retraction:
    of: int


Event = Paper | Feed | Retraction


def row(day: int, words: str, amount: str, balance: str | None = None, **more: Any) -> dict[str, Any]:
    stated = None if balance is None else Decimal(balance)
    return {"date": on(day), "description": words, "amount": Decimal(amount), "balance": stated, **more}


def on(day: int) -> date:
    return MARCH + timedelta(days=day - 1)


@dataclass
class History:
    """What a service holds after events, in batches."""

    held: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TRANSACTIONS))
    submitted: dict[int, pl.DataFrame] = field(default_factory=dict)
    periods: pl.DataFrame = field(default_factory=PERIODS.to_frame)

    def batch(self, events: Mapping[int, Event]) -> None:
        new = {
            seq: submission(seq, event.rows(seq)) for seq, event in events.items() if isinstance(event, Paper | Feed)
        }
        for seq, event in events.items():
            if isinstance(event, Paper) and event.period is not None:
                self.periods = self.periods.vstack(_period(seq, event))
        taken = [(event.of, seq) for seq, event in events.items() if isinstance(event, Retraction)]
        data = pl.concat([pl.DataFrame(schema=ACCEPTED), *self.submitted.values()])  # also of what is retracted now
        for of, _ in taken:
            del self.submitted[of]
        others = pl.concat([pl.DataFrame(schema=ACCEPTED), *self.submitted.values()])
        retracted = pl.DataFrame([(1, of.to_bytes(16), of, seq) for of, seq in taken], schema=RETRACTED, orient="row")
        result = identify_without(
            self.held.filter(pl.col("retracted_seq").is_null()),
            pl.concat([pl.DataFrame(schema=ACCEPTED), *new.values()]),
            Retractions(retracted, others),
            Documents(self.periods, data.filter(pl.col("statement_id").is_null()).lazy()),
        )
        past = self.held.filter(pl.col("retracted_seq").is_not_null())
        standing = result.identified.rows.match_to_schema(TRANSACTIONS, missing_columns="insert")
        self.held = pl.concat([standing, past, result.former])
        self.submitted |= new

    def copy(self) -> "History":
        return History(self.held, {**self.submitted}, self.periods)

    @property
    def current(self) -> pl.DataFrame:
        return self.held.filter(current())

    def known_after(self, seq: int) -> pl.DataFrame:
        """Return the rows that were current right after a job, by their marks alone."""
        return self.held.filter(pl.col("since_seq") <= seq, pl.col("superseded_seq").fill_null(2**62) > seq)


def _period(seq: int, paper: Paper) -> pl.DataFrame:
    assert paper.period is not None
    first, last = map(on, paper.period)
    opening = Decimal(paper.opening) if paper.stated_opening else None
    number = seq.to_bytes(16)
    return pl.DataFrame(
        [(1, number, paper.account, number, f"{seq}.pdf", first, last, opening)], schema=PERIODS, orient="row"
    )


def run(*events: Event) -> History:
    """Run events, each in a batch of its own. Check that one batch gives the same, if nothing is retracted."""
    history = _run_one_by_one(events)
    if len(events) > 1 and not any(isinstance(event, Retraction) for event in events):
        assert _run_at_once(events) == facts(history.held)
    return history.copy()


@lru_cache(maxsize=100)  # many cases begin alike
def _run_one_by_one(events: tuple[Event, ...]) -> History:
    if not events:
        return History()
    history = _run_one_by_one(events[:-1]).copy()
    history.batch({len(events): events[-1]})
    assert history.current["transaction_id"].is_unique().all()
    return history


@lru_cache(maxsize=100)
def _run_at_once(events: tuple[Event, ...]) -> list[tuple[Any, ...]]:
    history = History()
    history.batch(dict(enumerate(events, start=1)))
    return facts(history.held)


def facts(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    names = ("received_seq", "position", "transaction_id", "revision", "since_seq", "superseded_seq", "retracted_seq")
    return sorted(rows.select(names).rows(), key=str)


def content(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return what the current rows say, without how they came."""
    return sorted(rows.select("account_id", "date", "description", "amount", "balance").rows(), key=str)


def words(rows: pl.DataFrame) -> list[str]:
    return rows.sort("date", "position")["description"].to_list()


RENT, FEE, SALE, WAGE = (2, "RENT", "-900"), (5, "DISHONOUR FEE", "-15"), (9, "SALE", "300"), (20, "WAGE", "-50")
FIRST = Paper([RENT, FEE, SALE, WAGE])
OTHER_FEE = Paper([RENT, (5, "DISHONOUR FEE", "-25"), SALE, WAGE])
NO_FEE = Paper([RENT, SALE, WAGE])


def test_a_changed_amount_replaces_the_row_and_the_balances_after_it() -> None:
    history = run(FIRST, OTHER_FEE)
    assert content(history.current) == content(run(OTHER_FEE).current)
    assert history.current.sort("date").select("received_seq", "revision").rows() == [(1, 1), (2, 1), (2, 2), (2, 2)]


def test_a_transaction_of_which_only_the_balance_differs_keeps_its_id() -> None:
    before, after = run(FIRST), run(FIRST, OTHER_FEE)
    ids = {each["description"]: each["transaction_id"] for each in before.current.to_dicts()}
    now = {each["description"]: each["transaction_id"] for each in after.current.to_dicts()}
    assert {name for name in ids if ids[name] == now[name]} == {"RENT", "SALE", "WAGE"}


def test_rows_that_were_left_out_or_added_anywhere_are_replaced() -> None:
    lines = FIRST.lines
    corrected = [[*lines[:at], *lines[at + 1 :]] for at in range(4)]
    corrected += [[*lines[:at], (day, "NEW", "-7"), *lines[at:]] for at, day in enumerate((1, 3, 6, 12, 25))]
    for later in corrected:
        assert content(run(FIRST, Paper(later)).current) == content(run(Paper(later)).current), later


def test_history_has_what_was_held_before_and_after() -> None:
    history = run(FIRST, NO_FEE)
    assert content(history.known_after(1)) == content(run(FIRST).current)
    assert content(history.known_after(2)) == content(run(NO_FEE).current)
    missing = list_replaced(history.held).filter("is_missing")
    assert words(missing) == ["DISHONOUR FEE"]
    assert missing.select("received_seq", "superseded_seq").rows() == [(1, 2)]


def test_only_rows_without_a_counterpart_are_missing() -> None:
    renamed = Paper([RENT, (5, "FEE FOR DISHONOUR", "-15"), SALE, WAGE], opening=1001)
    for later, expected in ((OTHER_FEE, ["DISHONOUR FEE"]), (Paper(FIRST.lines, opening=1001), []), (renamed, [])):
        assert words(list_replaced(run(FIRST, later).held).filter("is_missing")) == expected, later
    twice = Paper([RENT, FEE, FEE, SALE])
    assert words(list_replaced(run(twice, Paper([RENT, FEE, SALE])).held).filter("is_missing")) == ["DISHONOUR FEE"]


def test_the_same_statement_again_is_only_duplicates() -> None:
    once, twice = run(FIRST), run(FIRST, FIRST)
    assert facts(twice.held) == facts(once.held)
    assert facts(run(FIRST, NO_FEE, NO_FEE).held) == facts(run(FIRST, NO_FEE).held)


def test_the_statement_received_last_stands_whatever_it_says() -> None:
    for papers in permutations((FIRST, OTHER_FEE, NO_FEE)):
        assert content(run(*papers).current) == content(run(papers[-1]).current), papers


def test_a_statement_that_returns_brings_back_its_transactions() -> None:
    first, again = run(FIRST), run(FIRST, NO_FEE, FIRST)
    assert content(again.current) == content(first.current)
    assert set(again.current["transaction_id"]) == set(first.current["transaction_id"])
    assert list_replaced(again.held).filter("is_missing").is_empty()
    flipped = run(FIRST, NO_FEE, FIRST, NO_FEE)
    assert set(flipped.current["transaction_id"]) == set(run(FIRST, NO_FEE).current["transaction_id"])
    assert words(list_replaced(flipped.held).filter("is_missing")) == ["DISHONOUR FEE"]


def test_a_retraction_undoes_the_replacement() -> None:
    for later in (OTHER_FEE, NO_FEE):
        history = run(FIRST, later, Retraction(2))
        assert content(history.current) == content(run(FIRST).current)
        assert set(history.current["transaction_id"]) == set(run(FIRST).current["transaction_id"])
        assert content(history.known_after(2)) == content(run(later).current)
        assert list_replaced(history.held).is_empty()


def test_retracting_the_replaced_statement_leaves_the_later_one() -> None:
    for later in (OTHER_FEE, NO_FEE):
        before, after = run(FIRST, later), run(FIRST, later, Retraction(1))
        assert content(after.current) == content(before.current)
        assert set(after.current["transaction_id"]) == set(before.current["transaction_id"])
        assert content(run(FIRST, later, Retraction(1), FIRST).current) == content(run(FIRST).current)


def test_ids_stay_unique_when_a_removed_row_is_sent_as_data() -> None:
    sale = Feed([row(9, "SALE", "300", "385")])  # as the first statement has it
    history = run(FIRST, NO_FEE, Retraction(1), sale, Retraction(2))
    assert words(history.current) == ["SALE"]
    history = run(FIRST, sale, NO_FEE, Retraction(1))
    assert words(history.current) == ["RENT", "SALE", "SALE", "WAGE"]


def test_a_retraction_in_the_batch_of_the_later_statement_keeps_the_ids() -> None:
    history = run(Feed([row(30, "TEA", "-1")]), FIRST)
    ids = {each["description"]: each["transaction_id"] for each in history.current.to_dicts()}
    history.batch({3: Retraction(1), 4: OTHER_FEE})
    now = {each["description"]: each["transaction_id"] for each in history.current.to_dicts()}
    assert content(history.current) == content(run(OTHER_FEE).current)
    assert {name for name in now if ids[name] == now[name]} == {"RENT", "SALE", "WAGE"}


def test_a_row_that_goes_on_with_a_transaction_posts_no_other_pending_row() -> None:
    pending = [row(day, "SALE", "300", status="pending") for day in (8, 9)]
    history = run(Feed(pending), FIRST, NO_FEE)
    assert history.current.filter(pl.col("status") == "pending").height == 1


# What replaces nothing


def test_only_a_proven_statement_for_the_whole_period_of_the_same_account_replaces() -> None:
    unlike = [(3, "A", "-1"), (4, "B", "-2"), (21, "C", "-3")]
    for name, later in {
        "unproved": replace(NO_FEE, verdict="partial"),
        "contradicted": replace(NO_FEE, verdict="unreconciled"),
        "with doubtful dates": replace(NO_FEE, verdict="reconciled_dates_doubtful"),
        "of no stated period": replace(NO_FEE, period=None),
        "of a part of the period": replace(NO_FEE, period=(2, 31)),
        "of another account": replace(NO_FEE, account=b"o" * 16),
        "with nothing in common": Paper(unlike, opening=70),
        "with nothing in common and no opening balance": replace(Paper(unlike), stated_opening=False),
    }.items():
        history = run(FIRST, later)
        assert history.held.filter(~current()).is_empty(), name
        assert set(content(run(FIRST).current)) <= set(content(history.current)), name


def test_an_unproved_statement_is_replaced_and_one_of_a_longer_period_replaces() -> None:
    for earlier in (replace(FIRST, verdict="unreconciled"), replace(FIRST, period=(3, 20))):
        assert content(run(earlier, NO_FEE).current) == content(run(NO_FEE).current), earlier


def test_statements_of_other_periods_stay() -> None:
    april = Paper([(32, "RENT", "-900"), (40, "SALE", "20")], opening=335, period=(32, 61))
    history = run(FIRST, april, NO_FEE)
    assert content(history.current) == sorted(content(run(NO_FEE).current) + content(run(april).current), key=str)


# Rows sent as data


def _as_data(paper: Paper) -> list[dict[str, Any]]:
    """Return the rows of a statement as a feed sends them."""
    return [
        {name: value for name, value in each.items() if not name.startswith("statement")} | {"description": "X"}
        for each in paper.rows(1)
    ]


def test_rows_sent_as_data_stay() -> None:
    fee, plain = row(5, "FEE DISHON", "-15"), [row(day, f"{name} X", amount) for day, name, amount in FIRST.lines]
    for name, sent in {
        "without balances": plain,
        "with balances": _as_data(FIRST),
        "with ids": [{**each, "client_transaction_id": f"T{n}"} for n, each in enumerate(plain)],
        "only the fee": [fee],
    }.items():
        for events in ((Feed(sent), FIRST, NO_FEE), (FIRST, Feed(sent), NO_FEE), (FIRST, NO_FEE, Feed(sent))):
            held = Counter(run(*events).current.select("date", "amount").rows())
            assert not Counter((each["date"], each["amount"]) for each in sent) - held, (name, events)


def test_what_a_feed_without_balances_repeats_counts_once() -> None:
    feed = Feed([row(day, f"{name} X", amount) for day, name, amount in FIRST.lines])
    expected = Counter(amount for _, _, amount in FIRST.lines)
    for events in permutations((feed, FIRST, NO_FEE)):
        if events.index(FIRST) < events.index(NO_FEE):
            amounts = Counter(str(amount.quantize(Decimal(1))) for amount in run(*events).current["amount"])
            assert amounts == expected, events


def test_a_row_that_a_feed_states_stays_although_its_balance_was_corrected_before() -> None:
    feed = Feed(_as_data(FIRST))
    history = run(FIRST, feed, OTHER_FEE, Paper([RENT, (5, "DISHONOUR FEE", "-25"), SALE]))
    assert "WAGE" in words(history.current)


def test_a_row_that_a_feed_dates_by_its_purchase_stays() -> None:
    history = run(FIRST, Feed([row(3, "FEE DISHON", "-15", "85")]), NO_FEE)
    assert "DISHONOUR FEE" in words(history.current)


def test_a_fee_is_replaced_once_the_feed_that_repeated_it_is_retracted() -> None:
    feed = Feed([row(5, "FEE DISHON", "-15")])
    assert "DISHONOUR FEE" in words(run(FIRST, feed, NO_FEE).current)
    assert content(run(FIRST, feed, NO_FEE, Retraction(2)).current) == content(run(NO_FEE).current)


def test_a_feed_that_comes_after_the_replacement_brings_the_fee_as_its_own() -> None:
    history = run(FIRST, NO_FEE, Feed([row(5, "DISHONOUR FEE", "-15")]))
    [fee] = history.current.filter(pl.col("description") == "DISHONOUR FEE").to_dicts()
    assert (fee["received_seq"], fee["statement_id"]) == (3, None)


# Drawn statements


@st.composite
def drawn_statements(draw: st.DrawFn) -> list[Line]:
    days = sorted(draw(st.lists(st.integers(1, 31), min_size=1, max_size=10)))
    names, amounts = (
        st.sampled_from(("COFFEE", "RENT", "SALE")),
        st.sampled_from(("-4.50", "-4.50", "-900", "120", "75")),
    )
    return [(day, draw(names), draw(amounts)) for day in days]


def correct(lines: list[Line], seed: int) -> list[Line]:
    """Return the lines with one row changed, left out or added."""
    random = Random(seed)
    at, kind = random.randrange(len(lines)), random.choice(("amount", "leave out", "add", "words"))
    day, name, amount = lines[at]
    new: list[Line] = {
        "amount": [(day, name, str(Decimal(amount) + random.choice((-1, 1, 100))))],
        "leave out": [],
        "add": [(day, name, amount), (day, random.choice((name, "FEE")), "-15")],
        "words": [(day, "OTHER", str(Decimal(amount) - 1))],
    }[kind]
    corrected = [*lines[:at], *new, *lines[at + 1 :]]
    return corrected or lines


corrections = st.lists(st.integers(0, 2**16), min_size=1, max_size=3)


def check_corrections(lines: list[Line], seeds: list[int], batch_size: int) -> None:
    """Send a statement and its corrections. Compare with the last one alone, added up in plain Python."""
    versions = [lines]
    for seed in seeds:
        versions.append(correct(versions[-1], seed))
    events = dict(enumerate(map(Paper, versions), start=1))
    history = History()
    for start in range(0, len(versions), batch_size):
        history.batch({seq: event for seq, event in events.items() if start < seq <= start + batch_size})
    for seq, version in enumerate(versions, start=1):
        known = history.known_after(seq)
        assert sum(known["amount"], Decimal(0)) == sum((Decimal(amount) for _, _, amount in version), Decimal(0))
        assert Counter(known["amount"]) == Counter(Decimal(amount) for _, _, amount in version)
        assert known["transaction_id"].is_unique().all()
    before = history.known_after(len(versions))
    history.batch({len(versions) + 1: Retraction(len(versions))})
    assert content(history.current) == content(run(*map(Paper, versions[:-1])).current)
    assert history.current["transaction_id"].is_unique().all()
    assert content(history.known_after(len(versions))) == content(before)
    assert list_replaced(history.held).filter(pl.col("superseded_seq") == len(versions)).is_empty()


@examples(15)
@given(drawn_statements(), corrections, st.integers(1, 4))
def test_totals_are_those_of_the_last_statement(lines: list[Line], seeds: list[int], batch_size: int) -> None:
    check_corrections(lines, seeds, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=1_500, deadline=None)
@given(drawn_statements(), corrections, st.integers(1, 4))
def test_totals_are_those_of_the_last_of_many_statements(lines: list[Line], seeds: list[int], batch_size: int) -> None:
    check_corrections(lines, seeds, batch_size)


@st.composite
def drawn_events(draw: st.DrawFn) -> list[Event]:
    """Draw a statement, corrections of it, feeds that state some of its rows, and retractions."""
    lines = draw(drawn_statements())
    events: list[Event] = [Paper(lines)]
    for seq in range(2, draw(st.integers(3, 7))):
        kind, seed = draw(st.sampled_from(("paper", "paper", "feed", "retraction"))), draw(st.integers(0, 2**16))
        if kind == "paper":
            verdict = "partial" if seed % 5 == 0 else "reconciled"
            events.append(Paper(correct(lines, seed) if seed % 4 else lines, verdict=verdict))
        elif kind == "feed":
            events.append(_feed_of(Paper(lines).rows(seq), Random(seed)))
        else:
            events.append(Retraction(seed % (seq - 1) + 1))
    return events


def _feed_of(rows: list[dict[str, Any]], random: Random) -> Feed:
    chosen = [each for each in rows if random.random() < 0.5] or rows[:1]
    silent, worded = random.random() < 0.6, random.random() < 0.5
    own = {"statement_id": None, "statement_verdict": None}
    spoken = [{**each, "description": f"{each['description']} X"} if worded else each for each in chosen]
    return Feed([{**each, **own, "balance": None if silent else each["balance"]} for each in spoken])


def check_history(events: list[Event], batch_size: int) -> None:
    """Compare what is held after each batch with the remaining submissions alone, and the past with what was held."""
    history, states = History(), dict[int, list[tuple[Any, ...]]]()
    for start in range(0, len(events), batch_size):
        batch: dict[int, Event] = {}
        for seq, event in enumerate(events[start : start + batch_size], start=start + 1):
            is_retraction = isinstance(event, Retraction)
            if not is_retraction or (event.of in history.submitted and event not in batch.values()):
                batch[seq] = event
        history.batch(batch)
        alone = History()
        alone.batch({seq: events[seq - 1] for seq in sorted(history.submitted)})
        assert content(history.current) == content(alone.current)
        assert history.current["transaction_id"].is_unique().all()
        held = Counter(history.current.select("date", "amount").rows())
        for seq in history.submitted:
            assert not _count_sent(events[seq - 1]) - held
        states[min(start + batch_size, len(events))] = content(history.current)
    for seq, state in states.items():
        assert content(history.known_after(seq)) == state


def _count_sent(event: Event) -> Counter[tuple[Any, ...]]:
    """Count the rows that were sent as data, by day and amount."""
    return Counter((each["date"], each["amount"]) for each in event.sent) if isinstance(event, Feed) else Counter()


@examples(10)
@given(drawn_events(), st.integers(1, 4))
def test_any_history_equals_that_of_the_submissions_that_remain(events: list[Event], batch_size: int) -> None:
    check_history(events, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=1_500, deadline=None)
@given(drawn_events(), st.integers(1, 4))
def test_many_histories_equal_those_of_the_submissions_that_remain(events: list[Event], batch_size: int) -> None:
    check_history(events, batch_size)
