"""Read the status that an export gives a row: whether money was moved, or has yet to be."""

import polars as pl

# Words of a status, with spaces for anything that is neither letter nor digit. The first list with one of them counts.
_NO_MONEY_MOVED = (
    r"\b(?:declined?|fail(?:ed|ure)?|unsuccessful|reverted|cancell?ed|rejected|expired|void(?:ed)?|denied|refused"
    r"|blocked|aborted)\b"
)
_PENDING = (
    r"\b(?:pending|processing|in progress|scheduled|upcoming|future|held|hold|(?:not|un) ?(?:yet )?(?:posted|cleared"
    r"|settled|booked)|awaiting|waiting|queued|submitted|initiated)\b|^(?:pre ?)?authori[sz](?:ed|ation)$"
)
_POSTED = (
    r"\b(?:posted|completed?|settled|cleared|booked|processed|paid|success(?:ful)?|succeeded|approved|confirmed"
    r"|executed|final|done|ok|sent|received|reconciled|authori[sz](?:ed|ation))\b"
)
_PENDING_TITLE = (
    r"(?i)^\W*(?:pending|upcoming|scheduled|uncleared)(?: (?:transactions?|payments?|items|authori[sz]ations))?\W*$"
)
_MAX_NAMED = 5  # in a note


def moved_no_money() -> pl.Expr:
    """Match rows of payments that failed."""
    return _status().str.contains(_NO_MONEY_MOVED)


def is_pending() -> pl.Expr:
    return _status().str.contains(_PENDING)


def fill_pending_sections(read: pl.DataFrame, titles: pl.DataFrame) -> pl.DataFrame:
    """Give rows without a status the status `pending` if the last line before them that is no row is a title such as
    `Pending transactions`.

    Args:
        titles: the cells of lines that are no rows, with their `line`, in order.
    """
    text = pl.concat_str(pl.exclude("line"), separator=" ", ignore_nulls=True)
    sections = titles.select("line", in_pending=text.str.contains(_PENDING_TITLE))
    placed = read.join_asof(sections, on="line", check_sortedness=False)
    return placed.with_columns(status=pl.coalesce("status", pl.when("in_pending").then(pl.lit("pending")))).drop(
        "in_pending"
    )


def describe_unknown_statuses(read: pl.DataFrame) -> str:
    """Return a note if rows count as posted although their status is not known, else an empty text.

    A column without any known status is about something else, such as the state that a shop is in.
    """
    is_known = pl.any_horizontal(_status().str.contains(words) for words in (_NO_MONEY_MOVED, _PENDING, _POSTED))
    unknown = read.filter(~is_known)["status"].unique(maintain_order=True)
    if unknown.is_empty() or not read.select(is_known.any()).item():
        return ""
    return f"Rows with an unknown status count as posted: {', '.join(map(repr, unknown.head(_MAX_NAMED)))}."


def _status() -> pl.Expr:
    return pl.col("status").str.to_lowercase().str.replace_all(r"[^a-z0-9]+", " ").str.strip_chars()
