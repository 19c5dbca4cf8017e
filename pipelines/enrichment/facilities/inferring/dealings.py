"""Join a customer's payments into dealings: those that share a party, or the number of a mandate or contract."""

import numpy as np
import polars as pl

from pipelines.enrichment.facilities.inferring.payments import MIN_DEBITS
from pipelines.vocabulary.plans import collect

CONTRACT = r"\d{5,}"  # a number: shorter ones are dates and cards
MAX_PARTIES = (
    2  # that a contract's number is printed beside: a bank may word one party differently on credits and debits
)


def find_dealings(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dealings with credits and at least MIN_DEBITS debits; `lender` is the dealing's number."""
    shared = _find_shared_keys(candidates)
    return candidates.clear() if shared.is_empty() else candidates.join(_join_keys(shared), on="row", validate="1:1")


def _find_shared_keys(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `key`, which numbers the parties and printed numbers that both credits and debits have.

    A number printed beside more than MAX_PARTIES parties belongs to the customer or the bank, not to a contract.
    """
    known = candidates.lazy().select("row", "customer_number", "funds", "party")
    named = known.with_columns(key="p " + pl.col("party"))
    numbered = known.with_columns(key=candidates["description"].str.extract_all(CONTRACT).list.unique()).explode("key")
    return (
        pl.concat([named, numbered])
        .drop_nulls("key")
        .group_by("customer_number", "key")
        .agg("row", credits=pl.col("funds").sum(), parties=pl.col("party").drop_nulls().n_unique())
        .filter(pl.col("credits") > 0, pl.col("parties") <= MAX_PARTIES)
        .filter(pl.col("row").list.len() - pl.col("credits") >= MIN_DEBITS)
        .sort("customer_number", "key")
        .with_row_index("number")
        .select("row", key="number")
        .explode("row")
        .pipe(collect)
    )


def _join_keys(shared: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `lender`, the number of its dealing: all rows that share keys, directly or through other rows.

    Rows and keys are the nodes of a graph, so a dealing is a connected component.
    """
    from scipy.sparse import coo_array, csgraph  # noqa: PLC0415  # slow to import, and few processes infer

    rows, keys = (shared[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("row", "key"))
    row_count, key_count = shared["row"].n_unique(), shared["key"].n_unique()
    nodes = row_count + key_count
    edges = coo_array((np.ones(shared.height, np.int8), (rows, row_count + keys)), shape=(nodes, nodes))
    _, components = csgraph.connected_components(edges, directed=False)
    return shared.select("row", lender=pl.Series(components[rows]).cast(pl.String)).unique("row")
