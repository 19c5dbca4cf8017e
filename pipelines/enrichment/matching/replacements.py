"""Replace rows of a PDF statement by those of a later statement that covers its period and proves all its rows.

A bank corrects a statement by issuing it again: one amount or row differs, and so do all balances after it. Rows with
different balances never match (`alignment`), so without a replacement the rows after the correction would count twice.

A statement replaces an earlier one of the same account if both were issued for a stated period, its own period contains
the earlier one, its balances prove every row, and the two are evidently the same account's: they open with the same
balance, or at least half of the earlier one's rows are in both. Then the earlier one's rows that it lacks are
superseded. They stay as history, so `knownAt` and a retraction of the later statement find them as they were.

- A row that differs only in its balance is a revision: it keeps its transaction id. An id is derived from date, amount
  and words, so a row that differs in one of these is a new transaction.
- Rows sent as data (JSON, CSV) are never replaced. Nor is a statement's row that stands for one: on each day there
  stay at least as many rows of an amount as any earlier submission of data states.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import polars as pl

from pipelines.enrichment.matching.alignment import is_from_statement, match_statements
from pipelines.enrichment.matching.matching import (
    KEY,
    ORDER,
    pair_in_order,
    select_unpaired,
    select_unpaired_held,
)
from pipelines.enrichment.wording.text import id_as_sent, text_as_sent
from pipelines.vocabulary.schemas import ACCEPTED, MONEY, TRANSACTIONS, UUID, current, not_retracted, posted

# Statements issued for a stated period, of accounts with a number. Without one, two accounts may look like the same.
PERIODS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "statement_id": UUID,
        "account_id": UUID,
        "job_id": UUID,
        "file_name": pl.String(),
        "period_start": pl.Date(),
        "period_end": pl.Date(),
        "opening_balance": MONEY,
    }
)
REPLACES_EARLIER = "Statement.ReplacesEarlier"  # code of the warning for a submission that replaced rows
CONTINUED = pl.Schema({name: TRANSACTIONS[name] for name in (*ORDER, "transaction_id", "revision")})
_GONE = pl.Schema({**{f"held_{name}": TRANSACTIONS[name] for name in ORDER}, "replacing_seq": pl.Int64()})
_HELD = tuple(f"held_{name}" for name in ORDER)
_SAME_DAY = ("account_id", "date", "amount")
_OF_STATEMENT = ("account_id", "received_seq", "statement_id")
_STATED = ("statement_id", "period_start", "period_end", "opening_balance")
_OF_ROW = (*ACCEPTED.names(), "text", "sent_id")
_SHARED = 2  # one in this many rows of the earlier statement must be in the later one too; our judgement


@dataclass(frozen=True)
class Documents:
    """What decides about replacements besides the rows that are matched.

    Attributes:
        periods: the customers' statements (schema PERIODS).
        data: accepted rows of their earlier submissions of data (schema ACCEPTED). They are lazy, because they are
            needed only where a statement's row has no counterpart in the later statement.
    """

    periods: pl.DataFrame
    data: pl.LazyFrame

    def for_customers(self, customers: Sequence[int]) -> "Documents":
        selected = pl.col("customer_number").is_in(list(customers))
        return Documents(self.periods.filter(selected), self.data.filter(selected))

    def without(self, retracted: pl.DataFrame) -> "Documents":
        """Return the documents without the data of some submissions (`job_id`)."""
        return replace(self, data=self.data.join(retracted.lazy(), on="job_id", how="anti"))


NO_DOCUMENTS = Documents(PERIODS.to_frame(), ACCEPTED.to_frame(eager=False))


@dataclass(frozen=True)
class Replacement:
    """What statements replace.

    Attributes:
        gone: `held_received_seq` and `held_position` of the replaced rows, and `replacing_seq`, the place in the order
            of receipt of the submission that replaces them.
        continued: the sent rows that go on with a transaction (CONTINUED), with its id and their revision of it.
    """

    gone: pl.DataFrame
    continued: pl.DataFrame


NOTHING_REPLACED = Replacement(_GONE.to_frame(), CONTINUED.to_frame())


@dataclass(frozen=True)
class _Compared:
    """Statements, the earlier ones that they may replace, and the rows in which they differ.

    Attributes:
        pairs: the statements (`_pair_statements`) that are evidently of one account.
        absent: the earlier statements' rows that no sent row repeats, and `replacing_seq`.
        alone: those of them for which the later statement has no other row of that day and amount either.
        added: the later statements' rows that repeat none, also where the account may be another.
        revised: those of them that differ from an absent row only in the balance (REPEATS).
    """

    pairs: pl.DataFrame
    absent: pl.DataFrame
    alone: pl.DataFrame
    added: pl.DataFrame
    revised: pl.DataFrame


def select_containing(periods: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number` and `account_id` of accounts with a statement whose period contains another's, of
    another submission.

    Args:
        periods: schema PERIODS.
    """
    account = ["customer_number", "account_id"]
    pairs = periods.join(periods, on=account, suffix="_earlier")
    return pairs.filter(_contains(), pl.col("job_id") != pl.col("job_id_earlier")).select(account).unique()


def find_replacing(held: pl.DataFrame, new: pl.DataFrame, documents: Documents) -> pl.DataFrame:
    """Return `account_id` and `received_seq` of new submissions with a statement that may replace an earlier one."""
    if documents.periods.is_empty():  # the usual case, and joining empty frames still takes time
        return new.select("account_id", "received_seq").clear()
    every = pl.concat(rows.select(_OF_STATEMENT) for rows in (held, new))
    pairs = _pair_statements(new.filter(_is_proven()), every, documents)
    return pairs.filter(pl.col("earlier_seq") < pl.col("received_seq")).select("account_id", "received_seq").unique()


def find_replaced(
    known: pl.DataFrame, sent: pl.DataFrame, repeats: pl.DataFrame, new: pl.DataFrame, documents: Documents
) -> Replacement:
    """Find the held rows that sent statements replace.

    Args:
        known: what the accounts held when the submissions arrived.
        sent: rows of one submission per account.
        repeats: those of them that repeat a held row (REPEATS).
        new: all new rows, of other submissions too.
    """
    if documents.periods.is_empty():
        return NOTHING_REPLACED
    standing = known.filter(is_from_statement(), current())
    pairs = _pair_statements(sent.filter(_is_proven()), standing, documents)
    if pairs.is_empty():
        return NOTHING_REPLACED
    compared = _compare(pairs, standing, sent, repeats)
    gone = _select_gone(compared, known, new, documents)
    return Replacement(gone, _select_continued(compared, gone, known))


def supersede(known: pl.DataFrame, replacement: Replacement) -> pl.DataFrame:
    """Mark the replaced rows as superseded."""
    if replacement.gone.is_empty():
        return known
    marked = known.join(replacement.gone, left_on=ORDER, right_on=_HELD, how="left", validate="1:1")
    return marked.with_columns(superseded_seq=pl.coalesce("superseded_seq", "replacing_seq")).select(known.columns)


def continue_transactions(rows: pl.DataFrame, replacement: Replacement) -> pl.DataFrame:
    """Give the rows that go on with a transaction its id."""
    if replacement.continued.is_empty():
        return rows
    names = ("transaction_id", "revision")
    joined = rows.join(replacement.continued, on=ORDER, how="left", validate="1:1", suffix="_continued")
    named = joined.with_columns(pl.coalesce(f"{name}_continued", name).alias(name) for name in names)
    return named.select(rows.columns)


def list_replaced(transactions: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of statements that later statements replaced.

    Args:
        transactions: TRANSACTIONS, or the columns of it that are read here.

    Returns:
        These rows, with `is_missing`: the statement that replaced the row has none of its day and amount, and no later
        one brought it back.
    """
    superseded = ~current() & not_retracted()
    replaced = transactions.filter(superseded, pl.col("statement_verdict").is_not_null()).sort(ORDER)
    if replaced.is_empty():  # true of most customers
        return replaced.with_columns(is_missing=pl.lit(value=False))
    of_replacement = (*_SAME_DAY, "replacing_seq")
    nth = pl.int_range(pl.len()).over(of_replacement)
    standing = transactions.filter(current()).select("account_id", "transaction_id")
    lapsed = (
        replaced.unique(["account_id", "transaction_id"], keep="last", maintain_order=True)
        .join(standing, on=["account_id", "transaction_id"], how="anti")
        .with_columns(replacing_seq="superseded_seq")
        .with_columns(nth=nth)
    )
    brought = (
        transactions.filter(not_retracted(), pl.col("revision") == 1, pl.col("statement_verdict").is_not_null())
        .join(lapsed, left_on=[*_SAME_DAY, "received_seq"], right_on=of_replacement, how="semi")
        .sort(ORDER)
        .with_columns(replacing_seq="received_seq")
        .with_columns(nth=nth)
    )
    missing = lapsed.join(brought, on=[*of_replacement, "nth"], how="anti").select(ORDER)
    marked = replaced.join(missing.with_columns(is_missing=True), on=ORDER, how="left", validate="1:1")
    return marked.with_columns(pl.col("is_missing").fill_null(value=False))


def _pair_statements(later: pl.DataFrame, earlier: pl.DataFrame, documents: Documents) -> pl.DataFrame:
    """Pair statements with those of the same account whose period they contain.

    Returns:
        `account_id`, `received_seq` and `statement_id` of the later one; `earlier_id`, `earlier_seq`, and
        `opens_equally` (whether both state the same opening balance).
    """
    sides = [
        rows.select(_OF_STATEMENT).unique().join(documents.periods.select(_STATED), on="statement_id")
        for rows in (later, earlier)
    ]
    pairs = sides[0].join(sides[1], on="account_id", suffix="_earlier")
    opens_equally = (pl.col("opening_balance") == pl.col("opening_balance_earlier")).fill_null(value=False)
    return pairs.filter(_contains(), pl.col("statement_id") != pl.col("statement_id_earlier")).select(
        *_OF_STATEMENT,
        earlier_id="statement_id_earlier",
        earlier_seq="received_seq_earlier",
        opens_equally=opens_equally,
    )


def _compare(pairs: pl.DataFrame, standing: pl.DataFrame, sent: pl.DataFrame, repeats: pl.DataFrame) -> _Compared:
    """Compare the rows of statements with those of the earlier ones whose period they contain.

    Args:
        standing: the current rows of the accounts' statements.
    """
    earlier = pairs.select("earlier_id", replacing_seq="received_seq").unique()
    unrepeated = select_unpaired_held(standing, repeats)
    absent = unrepeated.join(earlier, left_on="statement_id", right_on="earlier_id").sort(ORDER)
    added = select_unpaired(sent, repeats).join(pairs, on="statement_id", how="semi").sort(ORDER)
    revised = pair_in_order(absent, added, KEY)
    alone = select_unpaired_held(absent, revised)
    reworded = pair_in_order(alone, select_unpaired(added, revised), _SAME_DAY)
    alone = select_unpaired_held(alone, reworded)
    same_account = _select_same_account(pairs, standing, alone)
    absent, alone = (
        rows.join(same_account, left_on="statement_id", right_on="earlier_id", how="semi") for rows in (absent, alone)
    )
    return _Compared(same_account, absent, alone, added, revised)


def _select_same_account(pairs: pl.DataFrame, standing: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs that are evidently statements of one account.

    Args:
        alone: the earlier statements' standing rows that the later ones lack.
    """
    total, lacking = (
        rows.group_by(earlier_id="statement_id").agg(pl.len().cast(pl.Int64).alias(name))
        for rows, name in ((standing, "rows"), (alone, "alone"))
    )
    counted = pairs.join(total, on="earlier_id", validate="m:1").join(lacking, on="earlier_id", how="left")
    shared = pl.col("rows") - pl.col("alone").fill_null(0)
    return counted.filter(pl.col("opens_equally") | (shared * _SHARED >= pl.col("rows"))).select(pairs.columns)


def _select_gone(compared: _Compared, known: pl.DataFrame, new: pl.DataFrame, documents: Documents) -> pl.DataFrame:
    """Return the rows that are replaced (`Replacement.gone`): those that the later statements lack, unless rows sent as
    data state them.
    """
    held = select_unpaired(known.filter(posted()), compared.absent)
    staying = pl.concat(rows.select(_SAME_DAY) for rows in (held, compared.added))
    sent_as_data = _find_sent_as_data(compared.alone, staying, known, new, documents)
    return compared.absent.join(sent_as_data, on=ORDER, how="anti").select(
        held_received_seq="received_seq", held_position="position", replacing_seq="replacing_seq"
    )


def _select_continued(compared: _Compared, gone: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the sent rows that go on with a transaction (`Replacement.continued`): a replaced one that differs only in
    its balance, or one that an earlier replacement ended.
    """
    revised = compared.revised.join(gone, on=_HELD, how="semi")
    added = select_unpaired(compared.added, revised).join(compared.pairs, on="statement_id", how="semi")
    brought_back = pair_in_order(_select_lapsed(known), added, KEY)
    versions = known.select(held_received_seq="received_seq", held_position="position", revision=pl.col("revision") + 1)
    continued = pl.concat([revised, brought_back]).join(versions, on=_HELD, validate="1:1")
    return continued.select(CONTINUED.names()).match_to_schema(CONTINUED)


def _find_sent_as_data(
    alone: pl.DataFrame, staying: pl.DataFrame, known: pl.DataFrame, new: pl.DataFrame, documents: Documents
) -> pl.DataFrame:
    """Return the places (ORDER) of those of a statement's rows that must stay, because rows sent as data state them.

    Such a row may be stored nowhere but in its landing file, because a statement's row stands for it. On each day,
    there must be as many rows of an amount as any one submission of data states. A row of data that is dated
    differently must repeat the very row.

    Args:
        staying: account, date and amount of all rows that will stand.
    """
    if alone.is_empty():
        return alone.select(ORDER)
    sent = _select_sent_as_data(alone, known, new, documents)
    place = pl.int_range(pl.len()).over(_SAME_DAY)
    stated = sent.group_by(*_SAME_DAY, "received_seq").len("stated").group_by(_SAME_DAY).agg(pl.col("stated").max())
    counted = (
        alone.select(*_SAME_DAY, *ORDER)
        .sort(ORDER)
        .with_columns(nth=place)
        .join(stated, on=_SAME_DAY, validate="m:1")
        .join(staying.group_by(_SAME_DAY).len("standing"), on=_SAME_DAY, how="left", validate="m:1")
        .filter(pl.col("nth") + pl.col("standing").fill_null(0) < pl.col("stated"))
    )
    accounts = known.join(alone, on=["account_id", "amount"], how="semi")
    repeats = [match_statements(accounts, rows) for rows in sent.partition_by("received_seq")]
    shifted = [
        alone.join(pairs.select(*_HELD, of_job="received_seq", of_place="position"), left_on=ORDER, right_on=_HELD)
        .join(
            sent.select("date", of_job="received_seq", of_place="position"), on=["of_job", "of_place"], suffix="_sent"
        )
        .filter(pl.col("date") != pl.col("date_sent"))
        for pairs in repeats
    ]
    return pl.concat(rows.select(ORDER) for rows in (counted, *shifted))


def _select_sent_as_data(
    alone: pl.DataFrame, known: pl.DataFrame, new: pl.DataFrame, documents: Documents
) -> pl.DataFrame:
    """Return the posted rows of data with the accounts and amounts of `alone`, received before what replaces these."""
    equal = alone.select("account_id", "amount").unique()
    landed = documents.data.join(equal.lazy(), on=["account_id", "amount"], how="semi").with_columns(
        text=text_as_sent(), sent_id=id_as_sent()
    )
    replacing = alone.select("account_id", "replacing_seq").unique()
    data = pl.concat(rows.select(_OF_ROW) for rows in (landed.collect(), new.filter(~is_from_statement())))
    # A transaction with a client's id that is held as data needs no statement's row.
    of_others = data.unique(ORDER).sort(ORDER).join(known, on=["account_id", "sent_id"], how="anti")
    first_of_id = pl.col("sent_id").is_null() | pl.struct("account_id", "received_seq", "sent_id").is_first_distinct()
    return (
        of_others.join(equal, on=["account_id", "amount"], how="semi")
        .join(replacing, on="account_id", validate="m:1")
        .filter(pl.col("status") == "posted", pl.col("received_seq") < pl.col("replacing_seq"), first_of_id)
    )


def _select_lapsed(known: pl.DataFrame) -> pl.DataFrame:
    """Return the last versions of replaced transactions that no row goes on with. A statement can bring them back."""
    standing = known.filter(current())
    lapsed = known.filter(is_from_statement(), ~current()).join(standing, on="transaction_id", how="anti")
    return lapsed.sort(ORDER).unique("transaction_id", keep="last", maintain_order=True)


@cache
def _contains() -> pl.Expr:
    starts, ends = ((pl.col(name), pl.col(f"{name}_earlier")) for name in ("period_start", "period_end"))
    return (starts[0] <= starts[1]) & (ends[0] >= ends[1])


@cache
def _is_proven() -> pl.Expr:
    return is_from_statement() & (pl.col("statement_verdict") == "reconciled")
