"""Sets of values that a condition's subjects may have while it holds: spans of whole numbers, one set per subject.

A subject is a reading, a calculation, or the difference of two. Numbers of policies have eight places, so each is a
whole number of hundred-millionths. A text is represented by its hash, and true by 1. The sets are never too small: they
contain every possible value, so an empty set proves that the condition can't hold.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]  # both included
Spans: TypeAlias = tuple[Span, ...]  # in order, with gaps between them
Box: TypeAlias = Mapping[Hashable, Spans]  # by subject; a subject that isn't listed may have any value

EVERYWHERE = 10**30  # beyond every number and hash
ANYWHERE: Box | None = {}


def point(value: int) -> Spans:
    return ((value, value),)


def points(values: Iterable[int]) -> Spans:
    return merge((value, value) for value in values)


def merge(spans: Iterable[Span]) -> Spans:
    """Sort spans, and merge those that overlap or touch."""
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(spans: Spans) -> Spans:
    edges = [-EVERYWHERE - 1, *(edge for span in spans for edge in span), EVERYWHERE + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1)


def overlaps(left: Spans, right: Spans) -> Iterator[Span]:
    """Yield what is in both, in order."""
    one = other = 0
    while one < len(left) and other < len(right):
        low, high = max(left[one][0], right[other][0]), min(left[one][1], right[other][1])
        if low <= high:
            yield low, high
        if left[one][1] < right[other][1]:
            one += 1
        else:
            other += 1


def exclude_each_other(left: Box | None, right: Box | None) -> bool:
    """Return whether the two can't hold at once."""
    if left is None or right is None:
        return True
    return any(not any(overlaps(left[subject], right[subject])) for subject in left.keys() & right.keys())


def both(left: Box | None, right: Box | None) -> Box | None:
    """Return where both hold; None if that is impossible."""
    if left is None or right is None:
        return None
    met = {subject: tuple(overlaps(left[subject], right[subject])) for subject in left.keys() & right.keys()}
    return {**left, **right, **met} if all(met.values()) else None


def either(left: Box | None, right: Box | None) -> Box | None:
    """Return where at least one of them holds."""
    if left is None or right is None:
        return right if left is None else left
    return {subject: merge([*left[subject], *right[subject]]) for subject in left.keys() & right.keys()}


def all_of(boxes: Iterable[Box | None]) -> Box | None:
    return reduce(both, boxes, ANYWHERE)


def any_of(boxes: Iterable[Box | None]) -> Box | None:
    return reduce(either, boxes, None)
