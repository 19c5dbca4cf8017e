"""`tidemark categorise`: categorise the rows of a file, without a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.progress import track

from api.core.commands.console import AsJson, complaint, err, now, print_json
from api.core.commands.files import as_csv, content_of, headings_of
from api.enrichment.commands.options import RulesOption, read_rules
from api.enrichment.commands.training_files import read_rows_to_categorise
from api.intake.commands.exports import (
    MAX_FAULTS,
    ColumnsFileOption,
    ColumnsOption,
    CurrencyOption,
    ExportFile,
    RejectedRow,
    SaveColumnsOption,
    describe_other_lines,
    open_exports,
    show_indented,
    show_refused,
    unreadable_rows,
)
from pipelines.enrichment.learned import model_file
from pipelines.enrichment.training import deciding, labelled
from pipelines.intake.exports import CURRENCY, InOneCurrency, as_submission, in_one_currency, job_id
from pipelines.intake.rows import validate
from pipelines.pages.wording import quantity
from pipelines.vocabulary.schemas import LANDED, SUBMISSION
from storage.core.logs import printable
from storage.core.settings import Settings

Export = Annotated[Path, typer.Argument(help="A bank export in CSV, or JSON of this API.")]
CONTEXT = ("own_columns", "account_number", "account_type", "bank_name")  # what a model reads besides the text
SLICE = 10_000  # rows categorised between two updates of the progress bar
_NUMBERED = pl.DataFrame(
    schema={
        "position": LANDED["position"],
        "line": pl.UInt32(),
        "job_id": SUBMISSION["job_id"],
    }
)


@dataclass(frozen=True)
class _FileRows:
    """A file's rows (`date`, `description`, `amount`, `currency`, context), the rejected ones, and how it was read."""

    rows: pl.DataFrame
    rejected: Sequence[RejectedRow]
    basis: str  # of currency and signs, in words
    notes: Sequence[str] = ()


def categorise(
    file: Export,
    model: Annotated[Path | None, typer.Option(help="File of a model. Default: the built-in model.")] = None,
    currency: CurrencyOption = None,
    columns: ColumnsOption = None,
    columns_file: ColumnsFileOption = None,
    save_columns: SaveColumnsOption = None,
    rules: RulesOption = None,
    as_json: AsJson = False,
) -> None:
    """Print each row's category, confidence and source as CSV. Needs no server.

    The file is read like one for `tidemark analyse`. If it has the columns of a
    training file, it is read like one for `tidemark categories train`. Standard
    error reports the currency, and rows that could not be read.

    Example: tidemark categorise statement.csv > categorised.csv
    """
    lists = None if rules is None else read_rules(rules).lists
    chosen = model_file.load_base() if model is None else model_file.loads(content_of(model))
    if not (columns or columns_file or save_columns) and labelled.is_for_training(headings_of(file)):
        read = _read_for_training(file, currency)
    else:
        [opened] = open_exports([file], columns, columns_file, save_columns)
        read = _read_export(opened, in_one_currency(opened.contents.statements, currency))
    _show_reading(file, read, as_json=as_json)
    if read.rows.is_empty():
        raise complaint(f"no row of {file} can be categorised")
    slices = list(read.rows.iter_slices(SLICE))
    shown = track(slices, "categorising", console=err, disable=as_json, transient=True)
    decided = pl.concat(deciding.decide(labelled.prepare(each, lists), chosen) for each in shown)
    decided.insert_column(decided.get_column_index("amount") + 1, read.rows["currency"])
    if as_json:
        print_json(decided.to_dicts())
    else:
        typer.echo(as_csv(decided.drop("alternatives")), nl=False)


def _read_for_training(path: Path, currency: str | None) -> _FileRows:
    rows, rejected = read_rows_to_categorise(path)
    stated = ["currency"] if "currency" in rows.columns else []
    with_currency = rows.with_columns(currency=pl.coalesce(*stated, pl.lit(currency or CURRENCY)))
    return _FileRows(with_currency, rejected, "like a file for training, amounts as printed")


def _read_export(file: ExportFile, money: InOneCurrency) -> _FileRows:
    """Return the valid rows in the order of the file, and the rejected rows."""
    validated = validate(as_submission(money.statements, now()).rows, Settings().timezone)
    accepted, rejected = pl.collect_all([validated.accepted, validated.rejected])
    sent = [each.rows.select("position", line=each.lines) for each in money.statements]
    numbered = (rows.with_columns(pl.lit(job_id(number)).alias("job_id")) for number, rows in enumerate(sent))
    numbered = pl.concat([_NUMBERED, *numbered])
    rows = accepted.join(numbered, on=("job_id", "position"), validate="1:1").sort("line")
    invalid = rejected.join(numbered, on=("job_id", "position"), validate="1:1")
    faults = [invalid.select("line", "field", "code", "message"), *money.refused]
    described = [RejectedRow(str(file.path), *fault) for frame in faults for fault in frame.iter_rows()]
    valid = rows.select("date", "description", "amount", pl.lit(money.currency).alias("currency"), *CONTEXT)
    other_lines = describe_other_lines(file.contents)
    return _FileRows(
        valid,
        sorted([*unreadable_rows([file]), *described], key=lambda each: each.line),
        f"{money.currency} {money.basis}, signs {file.contents.signs}",
        [*([f"no rows: {other_lines}"] if other_lines else []), *file.contents.notes],
    )


def _show_reading(path: Path, read: _FileRows, *, as_json: bool) -> None:
    used = read.rows.height
    line = f"{path}: {used:,} of {quantity(used + len(read.rejected), 'row')} categorised, {read.basis}"
    err.print(printable(line), markup=False, highlight=False)
    for note in read.notes:
        show_indented(err, note, "yellow")
    show_refused(err, read.rejected, None if as_json else MAX_FAULTS)
