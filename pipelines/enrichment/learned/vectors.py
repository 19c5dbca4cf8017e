"""Features as weighted vectors: which of them the training saw often enough, and what each counts.

A feature that training did not know counts nothing. How much of a narrative is known is a measure of its own: of a
merchant never seen, the model is less sure than its scores say (see `calibration`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.learned.features import BLOCKS, BUCKET_BITS, Block, Places

if TYPE_CHECKING:
    from scipy import sparse

Weights = NDArray[np.float32]

# What a block counts against the others, once each row's features in it have length one. Measured on invented and on
# hand-written rows: twice, or half, of each changes the accuracy by less than a percentage point.
SCALES = {"pieces": 1.0, "words": 1.0, "phrases": 0.5, "facts": 2.0}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What training knew, block by block: `buckets` (ascending), and how rare each is (`rarity`, 1 or more)."""

    buckets: Sequence[NDArray[np.int32]]
    rarity: Sequence[Weights]

    @cached_property
    def _columns(self) -> Sequence[NDArray[np.int32]]:
        """For each bucket of a block its column, or -1."""
        tables = [np.full(1 << BUCKET_BITS, -1, np.int32) for _ in self.buckets]
        for table, known in zip(tables, self.buckets, strict=True):
            table[known] = np.arange(len(known), dtype=np.int32)
        return tables

    @property
    def widths(self) -> list[int]:
        return [len(known) for known in self.buckets]

    def vectors(self, number: int, block: Block, height: int) -> "tuple[sparse.csr_array, Weights]":
        """The block of that number as a matrix (rows × its known features), and the share of each row that is known."""
        from scipy import sparse  # noqa: PLC0415  15 MB and a tenth of a second: only a process that decides pays for it

        columns = self._columns[number][block.buckets]
        known = columns >= 0
        shape = (height, len(self.buckets[number]))
        ones = np.ones(int(known.sum()), np.float32)
        counted = sparse.coo_array((ones, (block.rows[known].astype(np.int32), columns[known])), shape=shape).tocsr()
        counted.data = (1 + np.log(counted.data)) * self.rarity[number][counted.indices]
        return _of_length(counted, SCALES[BLOCKS[number]]), _share(block.rows, known, height)


def vocabulary(blocks: Sequence[Block], height: int, least: int) -> Vocabulary:
    """What at least `least` of the rows have.

    Rarity is the square root of the usual inverse document frequency: with it whole, a few rare words drown the rest.
    """
    buckets, rarity = list[NDArray[np.int32]](), list[Weights]()
    for name, block in zip(BLOCKS, blocks, strict=True):
        distinct = np.unique(block.rows << BUCKET_BITS | block.buckets) & ((1 << BUCKET_BITS) - 1)
        counts = np.bincount(distinct, minlength=1 << BUCKET_BITS)
        known = np.flatnonzero(counts >= least)
        buckets.append(known.astype(np.int32))
        frequency = np.sqrt(np.log((1 + height) / (1 + counts[known])) + 1)
        rarity.append(as_filed(np.ones(len(known)) if name == "facts" else frequency))
    return Vocabulary(buckets, rarity)


def as_filed(values: NDArray[np.floating[Any]]) -> Weights:
    """As precisely as a model's file keeps them: so a model decides the same before it is written and after."""
    return values.astype(np.float16).astype(np.float32)


def _of_length(matrix: "sparse.csr_array", length: float) -> "sparse.csr_array":
    """Each row scaled to that length; one without features stays as it is."""
    squares = np.concatenate([[0.0], np.cumsum(matrix.data.astype(np.float64) ** 2)])
    lengths = np.sqrt(np.diff(squares[matrix.indptr]))
    per_value = np.repeat(lengths, np.diff(matrix.indptr))
    matrix.data = (matrix.data * (length / np.maximum(per_value, 1e-12))).astype(np.float32)
    return matrix


def _share(rows: Places, known: NDArray[np.bool_], height: int) -> Weights:
    every = np.bincount(rows, minlength=height)
    return (np.bincount(rows[known], minlength=height) / np.maximum(every, 1)).astype(np.float32)
