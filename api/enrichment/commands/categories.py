"""Commands that categorise a file without a server, and that train and activate learned models of categories."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands.console import (
    AsJson,
    complaint,
    err,
    now,
    opened_store,
    out,
    print_json,
    print_record,
    print_records,
    warn,
)
from api.core.commands.files import as_csv, content_of, csv_of, write
from api.intake.commands.exports import (
    ColumnsFileOption,
    ColumnsOption,
    CurrencyOption,
    ExportFile,
    RefusedRow,
    SaveColumnsOption,
    describe_other_lines,
    open_exports,
    show_indented,
    show_refused,
    unreadable_rows,
)
from pipelines.enrichment.learned import model_file
from pipelines.enrichment.learned.features import CONTEXT
from pipelines.enrichment.learned.model import read_held_accuracy
from pipelines.enrichment.training import deciding, labelled
from pipelines.intake.exports import InOneCurrency, in_one_currency, job_id, submitted
from pipelines.intake.rows import validate
from pipelines.pages.wording import counted
from pipelines.synthetic import base_model
from pipelines.vocabulary.errors import NotFound, Unprocessable
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.core.logs import printable
from storage.core.settings import Settings
from storage.enrichment import category_models
from storage.enrichment.category_models import StoredModel

if TYPE_CHECKING:
    from pipelines.enrichment.training.evaluation import Bin, Evaluation, Score

categories = typer.Typer(help="Learned models of categories: train, evaluate and activate them.", no_args_is_help=True)


Export = Annotated[Path, typer.Argument(help="A bank export in CSV, or JSON of this API.")]
Labels = Annotated[
    list[Path] | None,
    typer.Option(
        help="CSV file with the columns date, description, amount, label and any context_ ones. Can be repeated."
    ),
]
SplitDate = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Train only on rows before this day.")]
ForClient = Annotated[UUID | None, typer.Option(help="Only for this client. Default: for all clients.")]


def categorise(
    file: Export,
    model: Annotated[Path | None, typer.Option(help="File of a model. Default: the built-in model.")] = None,
    currency: CurrencyOption = None,
    columns: ColumnsOption = None,
    columns_file: ColumnsFileOption = None,
    save_columns: SaveColumnsOption = None,
    as_json: AsJson = False,
) -> None:
    """Print each row's category, confidence and source as CSV. Needs no server.

    The file is read as by `tidemark analyse`. Standard error reports the
    currency, and rows that could not be read.

    Example: tidemark categorise statement.csv > categorised.csv
    """
    chosen = model_file.load_base() if model is None else model_file.loads(content_of(model))
    [opened] = open_exports([file], columns, columns_file, save_columns)
    money = in_one_currency(opened.contents.statements, currency)
    rows, refused = _readable_rows(opened, money)
    _show_reading(opened, money, rows.height, refused)
    if rows.is_empty():
        raise complaint(f"no row of {file} can be categorised")
    said = deciding.decide(labelled.prepare(rows), chosen)
    said.insert_column(said.get_column_index("amount") + 1, pl.lit(money.currency).alias("currency"))
    if as_json:
        print_json(said.to_dicts())
    else:
        typer.echo(as_csv(said.drop("alternatives")), nl=False)


def _readable_rows(file: ExportFile, money: InOneCurrency) -> tuple[pl.DataFrame, list[RefusedRow]]:
    """Return the valid rows in the order of the file, and the refused rows.

    Valid rows have `date`, `description`, `amount` and the file's columns of context.
    """
    validated = validate(submitted(money.statements, now()).rows, Settings().timezone)
    accepted, rejected = pl.collect_all([validated.accepted, validated.rejected])
    sent = [each.rows.select("position", "extra", line=each.lines) for each in money.statements]
    numbered = pl.concat(rows.with_columns(pl.lit(job_id(number)).alias("job_id")) for number, rows in enumerate(sent))
    rows = accepted.join(numbered, on=("job_id", "position"), validate="1:1").sort("line")
    unsound = rejected.join(numbered, on=("job_id", "position"), validate="1:1")
    of_intake = unsound.select("line", "field", "code", "message").iter_rows()
    refused = [RefusedRow(str(file.path), *each) for each in chain(of_intake, *(r.iter_rows() for r in money.refused))]
    found = rows.select("date", "description", "amount", *_context(rows["extra"]))
    return found, sorted([*unreadable_rows([file]), *refused], key=lambda each: each.line)


def _context(extra: pl.Series) -> list[pl.Series]:
    """Return the additional columns that a model may have learned from."""
    stated = extra.drop_nulls()
    names = [name for name in json.loads(stated[0]) if name.startswith(CONTEXT)] if len(stated) else []
    if not names:
        return []
    return extra.str.json_decode(pl.Struct(dict.fromkeys(names, pl.String()))).struct.unnest().get_columns()


def _show_reading(file: ExportFile, money: InOneCurrency, used: int, refused: Sequence[RefusedRow]) -> None:
    contents = file.contents
    rows = counted(used + len(refused), "row")
    line = f"{file.path}: {used:,} of {rows} categorised, {money.currency} {money.basis}, signs {contents.signs}"
    err.print(printable(line), markup=False, highlight=False)
    if apart := describe_other_lines(contents):
        show_indented(err, f"no rows: {apart}", "dim")
    for note in contents.notes:
        show_indented(err, note, "yellow")
    show_refused(err, refused)


@categories.command("train")
def train(
    labels: Labels = None,
    portfolio: Annotated[
        int, typer.Option(min=0, help="Also learn from a synthetic portfolio of this many businesses.")
    ] = 0,
    client: ForClient = None,
    split_date: SplitDate = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="Write the model to this file instead of storing it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on labelled transactions and store it. It is not used until activated.

    Example: tidemark categories train --labels labelled.csv --client 2f0c…
    """
    rows = _training_rows(labels or [], portfolio)
    if split_date is not None:
        rows = rows.filter(pl.col("date") < split_date.date())
    from pipelines.enrichment.training import training  # noqa: PLC0415  importing scikit-learn takes half a second

    model = training.train(rows, base_model.WEIGHTS) if portfolio else training.train(rows)
    content = model_file.dumps(model)
    facts, fingerprint = dict(model.facts), model_file.fingerprint(model)
    if file is not None:
        write(file, content)
        saved = {"file": str(file)}
    else:
        with opened_store() as store, store.db.writing() as w:
            stored = category_models.add(w, content, fingerprint, facts, client, now())
            resource = {"modelId": stored.model_id}
            audit.append(w, OPERATOR, "Model.Trained", resource, now(), client_id=client)
        saved = {"modelId": str(stored.model_id)}
    print_record({**saved, "fingerprint": fingerprint, "bytes": len(content), **_shown(facts)}, as_json=as_json)
    if read_held_accuracy(model).worthless:
        warn(_WORTHLESS)


@categories.command("evaluate")
def evaluate(labels: Labels = None, split_date: SplitDate = None, as_json: AsJson = False) -> None:
    """Train on the earlier rows, test on the later ones, and compare with a baseline.

    The baseline is a linear support-vector machine on character n-grams of the
    description and the amount. By default, about four fifths of the rows are
    trained on.

    Example: tidemark categories evaluate --labels labelled.csv --split-date 2025-01-01
    """
    rows = _training_rows(labels or [], 0)
    from pipelines.enrichment.training import evaluation  # noqa: PLC0415  as above

    measured = evaluation.evaluate(rows, None if split_date is None else split_date.date())
    if as_json:
        print_json({**asdict(measured), "worthless": measured.worthless})
    else:
        _print_evaluation(measured)
    if measured.worthless:
        warn(_WORTHLESS)


@categories.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the stored models and the clients that use them.

    Example: tidemark categories list
    """
    with opened_store() as store, store.db.reading() as r:
        found, uses = category_models.find(r), category_models.uses(r)
    users: dict[UUID, list[str]] = {}
    for client_id, model_id in uses.items():
        users.setdefault(model_id, []).append("all" if client_id is None else str(client_id))
    records = [_record(model, sorted(users.get(model.model_id, []))) for model in found]
    print_records(records, as_json=as_json, empty="No models yet: the built-in model is used for all clients.")


@categories.command("activate")
def activate(
    model: Annotated[str, typer.Argument(help="The model's id, or its file.")],
    client: ForClient = None,
    as_json: AsJson = False,
) -> None:
    """Use a model from now on. Customers with transactions are queued for enrichment.

    Example: tidemark categories activate 7d1e… --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        chosen = _chosen(w, model, client)
        content = model_file.loads(category_models.content(w, chosen.model_id))
        if not deciding.speaks_taxonomy(content):
            raise Unprocessable("Model.OtherLabels", "The model's labels are not all categories of the taxonomy.")
        if read_held_accuracy(content).worthless:
            raise Unprocessable("Model.Worthless", f"The model is not activated: {_WORTHLESS}")
        category_models.activate(w, chosen.model_id, client, OPERATOR.who, now())
        resource = {"modelId": chosen.model_id}
        audit.append(w, OPERATOR, "Model.Activated", resource, now(), client_id=client)
    print_record({"modelId": chosen.model_id, "usedFor": client or "all"}, as_json=as_json)


@categories.command("deactivate")
def deactivate(client: ForClient = None, as_json: AsJson = False) -> None:
    """Stop using a model. A client's model is replaced by the one for all clients, that one by the built-in model.

    Example: tidemark categories deactivate --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        used = category_models.deactivate(w, client, OPERATOR.who, now())
        if used is None:
            raise NotFound("Model.NotActive", "No model is active there.")
        audit.append(w, OPERATOR, "Model.Deactivated", {"modelId": used}, now(), client_id=client)
    print_record({"modelId": used, "usedFor": None}, as_json=as_json)


_WORTHLESS = "on held-out rows it is no better than always choosing the most common label. Are the labels right?"


def _training_rows(files: Sequence[Path], businesses: int) -> pl.DataFrame:
    """Return the rows of all files and of the synthetic portfolio."""
    if not files and not businesses:
        raise typer.BadParameter("give --labels or --portfolio")
    read = [_labelled_rows(file) for file in files]
    together = pl.concat(read, how="diagonal") if read else None
    if businesses:
        return base_model.training_rows(businesses, together)
    assert together is not None
    return together


def _labelled_rows(path: Path) -> pl.DataFrame:
    file = labelled.labelled_rows(csv_of(path))
    for note in file.notes:
        warn(f"{path}: {note}")
    return file.rows


def _chosen(w: Writing, model: str, client: UUID | None) -> StoredModel:
    """Return the model with this id, or store the model in this file and return it."""
    try:
        return category_models.get(w, UUID(model))
    except ValueError:
        content = content_of(Path(model))
        loaded = model_file.loads(content)
        return category_models.add(w, content, model_file.fingerprint(loaded), loaded.facts, client, now())


def _record(model: StoredModel, used_for: Sequence[str]) -> dict[str, Any]:
    held = model.facts["held"]
    return {
        "modelId": model.model_id,
        "clientId": model.client_id,
        "rows": model.facts["rows"],
        "labels": model.facts["labels"],
        "accuracy": round(held["accuracy"], 3),
        "usedFor": used_for,
        "dateCreated": model.created_at,
        "fingerprint": model.fingerprint[:12],
    }


def _shown(facts: Mapping[str, Any]) -> dict[str, Any]:
    held = facts["held"]
    return {
        **{name: value for name, value in facts.items() if name != "held"},
        "heldRows": held["rows"],
        "accuracy": _rounded(held["accuracy"]),
        "accuracySeenMerchants": _rounded(held["seen"]),
        "accuracyUnseenMerchants": _rounded(held["unseen"]),
        "commonestLabelShare": _rounded(held["majority"]),
    }


def _print_evaluation(measured: "Evaluation") -> None:
    for line in (
        f"Trained on the {measured.trained_rows:,} rows before {measured.split}, with {measured.labels:,} labels.",
        f"Tested on the {measured.tested_rows:,} rows from then on, {measured.unseen_rows:,} of unseen merchants.\n",
    ):
        out.print(line, soft_wrap=True, highlight=False)
    print_records(
        [_scored("learned model", measured.model), _scored("baseline", measured.baseline)], as_json=False, empty=""
    )
    out.print(f"\nAlways the most common label: {measured.majority:.4f}\n")
    print_records(
        [{"is": each.label, "said": each.said, "rows": each.rows} for each in measured.confusions],
        as_json=False,
        empty="No label was confused with another.",
    )
    out.print(f"\nExpected calibration error {measured.calibration_error:.4f}\n")
    print_records([_bin(each) for each in measured.bins], as_json=False, empty="")


def _scored(name: str, score: "Score") -> dict[str, Any]:
    return {
        "": name,
        "accuracy": _rounded(score.accuracy),
        "seen merchants": _rounded(score.seen),
        "unseen merchants": _rounded(score.unseen),
        "macro-F1": _rounded(score.macro_f1),
    }


def _bin(each: "Bin") -> dict[str, Any]:
    return {
        "confidence": f"{each.from_:.1f}–{each.from_ + 0.1:.1f}",
        "rows": each.rows,
        "said": _rounded(each.confidence),
        "right": _rounded(each.accuracy),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
