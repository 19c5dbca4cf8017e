"""Read CSV files of rows for training, masked as the service masks submissions."""

from pathlib import Path

import polars as pl

from api.core.commands.console import err, warn
from api.core.commands.files import csv_of
from api.intake.commands.exports import RejectedRow, show_refused
from pipelines.enrichment.training import labelled
from pipelines.intake.masking import masked_texts
from pipelines.pages.wording import quantity
from pipelines.vocabulary.own_columns import normalise_heading


def read_labelled_rows(path: Path) -> pl.DataFrame:
    """Return the readable rows of a training file. List the others on standard error."""
    file = labelled.read_labelled_rows(_read_masked_table(path))
    if rejected := _describe_rejected(path, file):
        warn(f"{path}: {quantity(len(rejected), 'row')} left out: unreadable")
        show_refused(err, rejected, None)
    return file.rows


def read_rows_to_categorise(path: Path) -> tuple[pl.DataFrame, list[RejectedRow]]:
    """Return the readable rows of a training file, which needs no labels here, and the rejected ones."""
    file = labelled.read_rows_to_categorise(_read_masked_table(path))
    return file.rows, _describe_rejected(path, file)


def _read_masked_table(path: Path) -> pl.DataFrame:
    """Return a file for training with its texts as the service stores them: card and tax file numbers masked."""
    table = csv_of(path)
    texts = [column for column in table if normalise_heading(column.name) not in ("date", "amount", "balance")]
    return table.with_columns(column.replace(masked_texts(column)) for column in texts)


def _describe_rejected(path: Path, file: labelled.File) -> list[RejectedRow]:
    return [
        RejectedRow(str(path), line, field, "Labels.Unreadable", fault)
        for line, field, fault in file.refused.iter_rows()
    ]
