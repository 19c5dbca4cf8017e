"""A client's own columns: what it knows about a payment besides the bank's text, such as a department or a cost centre.

A transaction states them as fields whose names begin with `context_`. A model of categories can learn from them.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import polars as pl

PREFIX = "context_"
LONGEST = 2_000  # characters of a row's own columns together, as JSON (our judgement)

# Own columns that the service fills from its columns of transactions, unless the row states them.
FILLED = {
    "context_account": "account_number",
    "context_account_type": "account_type",
    "context_bank": "bank_name",
    "context_card": "card_last_four",
}
_PARTY, _DETAIL = "customer|client|applicant|borrower", "id|no|nr|number|key|ref|reference|name"
_CUSTOMER = re.compile(rf"(?:{PREFIX})?(?:(?:{_PARTY})s?[ _-]?(?:{_DETAIL})?|abn|acn)")


def normalise_heading(name: str) -> str:
    """Return a column's name in the form in which names are compared: in lower case, without spaces around it."""
    return name.strip().lower()


def identifies_customer(name: str) -> bool:
    """Return whether a column with this heading says whose payment it is.

    No model learns from such a column: it would remember customers, even those that were erased.
    """
    return _CUSTOMER.fullmatch(name) is not None


def read_own_columns(extra: pl.Series) -> pl.Series:
    """Return the own columns in each JSON object of other fields, as a JSON object of texts; null without any."""
    distinct = extra.filter(extra.str.contains(rf'(?i)"\s*{PREFIX}')).unique()
    # Numbers stay as sent: Python refuses to read very long ones.
    read = {text: _select_stated(json.loads(text, parse_int=str, parse_float=str)) for text in distinct}
    return extra.replace_strict(list(read), list(read.values()), default=None, return_dtype=pl.String)


def _select_stated(fields: dict[str, Any]) -> str | None:
    named = {normalise_heading(name): _as_text(value) for name, value in fields.items()}
    own = {name: text for name, text in named.items() if name.startswith(PREFIX)}
    stated = {name: text for name, text in own.items() if text and not identifies_customer(name)}
    return json.dumps(stated, sort_keys=True, ensure_ascii=False) if stated else None


def _as_text(value: object) -> str:
    """Return a text, a number, true or false as text; empty for anything else."""
    return str(value).strip() if isinstance(value, str | bool) else ""


def list_stated_columns(stated: pl.LazyFrame) -> set[str]:
    """Return the names of the own columns that any of the rows states.

    Args:
        stated: rows with the column `own_columns`.
    """
    names = pl.col("own_columns").drop_nulls().str.extract_all(rf'"{PREFIX}[^"]*":').explode().unique()
    return {text[1:-2] for text in stated.select(names).collect().to_series().drop_nulls()}


def find_unfillable(columns: Iterable[str], stated: set[str]) -> list[str]:
    """Return the columns of a model that the service does not fill and no submission so far has stated."""
    return [name for name in columns if name not in FILLED and (name not in stated or identifies_customer(name))]
