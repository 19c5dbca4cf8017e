"""Peers of the reports: some of their aggregates in DuckDB's SQL and in pandas, over the same files.

The peers get the difficult parts as input (which rows count, which are own transfers) and don't compute balances,
lineage, scores, concentration, obligations or JSON. Their results are checked against the reports.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pandas as pd

COLUMNS = (
    *("customer_number", "account_id", "date", "amount", "category", "category_group", "category_source"),
    *("is_transfer", "status", "superseded_seq", "counterparty_group"),
)
WINDOWS = (30, 60, 90, 180, 365)
Totals = dict[str, float]  # AUD over all customers, compared with the reports

_ROWS = f"""
    CREATE TEMP TABLE rows AS
    SELECT {", ".join(COLUMNS)}, date_trunc('month', date) AS month,
           max(date) OVER (PARTITION BY customer_number) - date AS age,
           NOT ((is_transfer AND category_source NOT IN ('correction', 'client_rule')) OR category_group = 'transfer')
             AS external
    FROM read_parquet($files)
    WHERE superseded_seq IS NULL AND status = 'posted'
"""
_MONTHS = """
    CREATE TEMP TABLE months AS
    SELECT customer_number, month,
           sum(amount) FILTER (external AND amount > 0) AS money_in,
           -sum(amount) FILTER (external AND amount < 0) AS money_out,
           sum(amount) FILTER (external AND category_group = 'revenue') AS revenue,
           -sum(amount) FILTER (external AND category_group = 'payroll' AND amount < 0) AS payroll,
           -sum(amount) FILTER (external AND category_group = 'debt_service' AND amount < 0) AS debt_service,
           count(*) FILTER (category = 'returned_payment') AS dishonours
    FROM rows GROUP BY ALL
"""
_CATEGORIES = """
    CREATE TEMP TABLE categories AS
    SELECT customer_number, category_group, category, external, month,
           sum(greatest(amount, 0)) AS money_in, -sum(least(amount, 0)) AS money_out, count(*) AS transactions
    FROM rows GROUP BY ALL
"""
_PAYERS = """
    CREATE TEMP TABLE payers AS
    SELECT customer_number, counterparty_group, amount > 0 AS comes_in, sum(amount) AS amount, count(*) AS transactions
    FROM rows WHERE external AND age < 365 GROUP BY ALL
"""
_WINDOWS = "CREATE TEMP TABLE windows AS SELECT customer_number, " + ", ".join(
    f"sum(amount) FILTER (age < {days} AND external AND amount > 0) AS money_in_{days}, "
    f"-sum(amount) FILTER (age < {days} AND external AND amount < 0) AS money_out_{days}, "
    f"sum(amount) FILTER (age < {days} AND external AND category_group = 'revenue') AS revenue_{days}, "
    f"-sum(amount) FILTER (age < {days} AND external AND category_group = 'debt_service' AND amount < 0) AS d_{days}, "
    f"count(*) FILTER (age < {days} AND category = 'returned_payment') AS dishonours_{days}"
    for days in WINDOWS
)


def in_duckdb(files: Sequence[Path]) -> Totals:
    """Compute the aggregates in DuckDB, with all of its threads; each file is read once, as ours are."""
    totals = [_aggregate_in_duckdb(file) for file in files]
    return _add_up(totals)


def _aggregate_in_duckdb(file: Path) -> Totals:
    with duckdb.connect() as connection:
        connection.execute(_ROWS, {"files": str(file)})
        for statement in (_MONTHS, _CATEGORIES, _PAYERS, _WINDOWS + " FROM rows GROUP BY ALL"):
            connection.execute(statement)
        row = connection.execute(
            "SELECT (SELECT sum(money_in) FROM months), (SELECT sum(money_out) FROM categories WHERE external)"
        ).fetchone()
    assert row is not None
    return {"money_in": float(row[0]), "money_out": float(row[1])}


def in_pandas(files: Sequence[Path]) -> Totals:
    """Compute the aggregates in pandas, file by file."""
    return _add_up([_aggregate_in_pandas(file) for file in files])


def _aggregate_in_pandas(file: Path) -> Totals:
    rows = pd.read_parquet(file, columns=list(COLUMNS))
    rows = rows[rows["superseded_seq"].isna() & (rows["status"] == "posted")].copy()
    rows["amount"] = rows["amount"].astype("float64")  # decimals are objects there, and a hundred times as slow
    rows["date"] = pd.to_datetime(rows["date"])
    rows["month"] = rows["date"].dt.to_period("M").dt.to_timestamp()
    rows["age"] = (rows.groupby("customer_number")["date"].transform("max") - rows["date"]).dt.days
    described = rows["category_source"].isin(["correction", "client_rule"])
    rows["external"] = ~((rows["is_transfer"].astype(bool) & ~described) | (rows["category_group"] == "transfer"))
    _add_flows(rows)
    flows = ["money_in", "money_out", "revenue", "payroll", "debt_service", "dishonours"]
    months = rows.groupby(["customer_number", "month"])[flows].sum()
    keys = ["customer_number", "category_group", "category", "external", "month"]
    rows["size_out"] = (-rows["amount"]).clip(lower=0)
    categories = rows.groupby(keys, observed=True)[["amount", "size_out"]].agg(["sum", "count"])
    recent = rows[rows["external"] & (rows["age"] < 365)]
    recent.groupby(["customer_number", "counterparty_group", recent["amount"] > 0])["amount"].agg(["sum", "count"])
    for days in WINDOWS:
        rows[rows["age"] < days].groupby("customer_number")[flows].sum()
    outside = categories[categories.index.get_level_values("external")]
    return {"money_in": float(months["money_in"].sum()), "money_out": float(outside["size_out"]["sum"].sum())}


def _add_flows(rows: pd.DataFrame) -> None:
    amount, external, group = rows["amount"], rows["external"], rows["category_group"]
    rows["money_in"] = amount.where(external & (amount > 0), 0)
    rows["money_out"] = -amount.where(external & (amount < 0), 0)
    rows["revenue"] = amount.where(external & (group == "revenue"), 0)
    rows["payroll"] = rows["money_out"].where(group == "payroll", 0)
    rows["debt_service"] = rows["money_out"].where(group == "debt_service", 0)
    rows["dishonours"] = (rows["category"] == "returned_payment").astype("int64")


def _add_up(totals: Sequence[Totals]) -> Totals:
    return {name: sum(total[name] for total in totals) for name in totals[0]}
