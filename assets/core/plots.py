"""Counts for an asset's metadata: a picture with horizontal bars, and a table."""

import base64
from html import escape

import polars as pl
from dagster import MetadataValue, TableRecord

BAR_PX, ROW_PX, LABEL_PX = 360, 20, 170
MAX_BARS = 14


def bars(title: str, counts: pl.DataFrame, label: str, value: str) -> dict[str, MetadataValue]:
    """Return metadata `title` (a table of the largest counts) and `title plot` (the same as bars); {} without rows.

    Args:
        counts: columns `label` (text) and `value` (a count), sorted with the largest first.
    """
    if counts.is_empty():
        return {}
    largest = counts.head(MAX_BARS)
    records = [TableRecord(row) for row in largest.select(label, value).to_dicts()]
    picture = base64.b64encode(_svg(largest, label, value).encode()).decode()
    return {
        title: MetadataValue.table(records),
        f"{title} plot": MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{picture})"),
    }


def _svg(counts: pl.DataFrame, label: str, value: str) -> str:
    largest = counts[value].max()
    rows = counts.select(label, value).rows()
    drawing = "".join(_bar(index, name, count, count / largest) for index, (name, count) in enumerate(rows))
    width, height = LABEL_PX + BAR_PX + 70, ROW_PX * len(rows) + 8
    font = "font-family='sans-serif' font-size='12'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' {font}>{drawing}</svg>"


def _bar(index: int, name: str, count: int, share: float) -> str:
    top, length = index * ROW_PX + 4, max(1, round(share * BAR_PX))
    return (
        f"<text x='{LABEL_PX - 8}' y='{top + 12}' text-anchor='end' fill='#555'>{escape(name)}</text>"
        f"<rect x='{LABEL_PX}' y='{top}' width='{length}' height='{ROW_PX - 5}' rx='2' fill='#4f7cac'/>"
        f"<text x='{LABEL_PX + length + 6}' y='{top + 12}' fill='#555'>{count:,}</text>"
    )
