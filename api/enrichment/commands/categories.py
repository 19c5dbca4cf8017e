"""`tidemark categories`: train, evaluate and activate learned models of categories."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands import ids
from api.core.commands.console import (
    AsJson,
    err,
    now,
    opened_store,
    out,
    print_json,
    print_record,
    print_records,
    warn,
)
from api.core.commands.files import content_of, write
from api.core.commands.fitted import warn_of_taxonomy
from api.enrichment.commands.options import ACTIVATING_SAMPLE, SampleOfActivation
from api.enrichment.commands.training_files import read_labelled_rows
from pipelines.enrichment.knowledge import Activated, Knowledge
from pipelines.enrichment.learned import model_file
from pipelines.enrichment.learned.model import Model, read_held_out_accuracy
from pipelines.enrichment.training import deciding
from pipelines.pages.wording import quantity
from pipelines.synthetic import base_model
from pipelines.vocabulary.errors import NotFound, Unprocessable
from pipelines.vocabulary.own_columns import find_unfillable
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Reading, Writing
from storage.customers import customers
from storage.enrichment import category_models, transactions, versions
from storage.enrichment.category_models import StoredModel

if TYPE_CHECKING:
    from pipelines.enrichment.training.evaluation import Bin, Evaluation, Score
    from storage.core.store import Store

categories = typer.Typer(help="Learned models of categories: train, evaluate and activate them.", no_args_is_help=True)


Labels = Annotated[
    list[Path] | None,
    typer.Option(
        help="CSV file with the columns date, description, amount, label, and any of customer, account and context_… "
        "ones. Can be repeated."
    ),
]
SplitDate = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Train only on rows before this day.")]
ForClient = Annotated[
    UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only for this client. Default: for all clients.")
]


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

    report = _report_steps(as_json=as_json)
    if portfolio:
        model = training.train(rows, base_model.WEIGHTS, report, base_model.unfamiliar_rows(rows))
    else:
        model = training.train(rows, report=report)
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
    print_record(
        {**saved, "fingerprint": fingerprint, "bytes": len(content), **_describe_facts(facts)}, as_json=as_json
    )
    if read_held_out_accuracy(model).is_worthless:
        warn(_WORTHLESS)


@categories.command("evaluate")
def evaluate(labels: Labels = None, split_date: SplitDate = None, as_json: AsJson = False) -> None:
    """Train on the earlier rows, test on the later ones, and compare with a baseline.

    The baseline is a linear support-vector machine on character n-grams of the
    description and the amount. By default, about four fifths of the rows are
    trained on. If the file names customers, a fifth of them are left
    out of training and reported separately.

    Example: tidemark categories evaluate --labels labelled.csv --split-date 2025-01-01
    """
    rows = _training_rows(labels or [], 0)
    from pipelines.enrichment.training import evaluation  # noqa: PLC0415  as above

    day = None if split_date is None else split_date.date()
    measured = evaluation.evaluate(rows, day, report=_report_steps(as_json=as_json))
    if as_json:
        print_json({**asdict(measured), "worthless": measured.is_worthless})
    else:
        _print_evaluation(measured)
    if measured.is_worthless:
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
    for model in found:
        if model.model_id in users:
            warn_of_taxonomy(model.model_id, model.facts)
    records = [_record(model, sorted(users.get(model.model_id, []))) for model in found]
    print_records(records, as_json=as_json, empty="No models yet: the built-in model is used for all clients.")


@categories.command("activate")
def activate(
    model: Annotated[str, typer.Argument(help="The model's id, or its file.")],
    client: ForClient = None,
    sample: SampleOfActivation = ACTIVATING_SAMPLE,
    as_json: AsJson = False,
) -> None:
    """Show what a model changes, and use it from now on. Customers with transactions are queued for enrichment.

    Example: tidemark categories activate 7d1e… --client 2f0c…
    """
    from api.enrichment.commands.impact import Sides, show_before, show_chosen  # noqa: PLC0415  importing it takes half a second

    with opened_store() as store:
        with store.db.reading() as r:
            content = _load_usable_model(r, store, model, client)
            concerned = _find_concerned_customers(r, client)
        warn_of_taxonomy(content.name, content.facts)
        change = Sides(change=partial(_with_model, content, concerned))
        impact = show_before(store, concerned, change, sample, now(), f"model {content.name}", quiet=as_json)
        with store.db.writing() as w:
            chosen = _get_or_store_model(w, model, client)
            category_models.activate(w, chosen.model_id, client, OPERATOR.who, now())
            resource = {"modelId": chosen.model_id}
            audit.append(w, OPERATOR, "Model.Activated", resource, now(), client_id=client)
    show_chosen({"modelId": chosen.model_id, "usedFor": client or "all"}, impact, as_json=as_json)


@categories.command("deactivate")
def deactivate(client: ForClient = None, as_json: AsJson = False) -> None:
    """Stop using a model. A client then uses the model for all clients or, without one, the built-in model.

    Example: tidemark categories deactivate --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        used = category_models.deactivate(w, client, OPERATOR.who, now())
        if used is None:
            raise NotFound(
                "Model.NotActive",
                f"No learned model is active for {'all clients' if client is None else 'the client'}.",
            )
        audit.append(w, OPERATOR, "Model.Deactivated", {"modelId": used}, now(), client_id=client)
    print_record({"modelId": used, "usedFor": None}, as_json=as_json)


def _load_usable_model(r: Reading, store: "Store", model: str, client: UUID | None) -> Model:
    """Return the model with this id, or of this file, if it may decide on the client's transactions.

    Raises:
        Unprocessable: it may not.
    """
    content = model_file.loads(_read_model_content(r, model))
    if not deciding.has_taxonomy_labels(content):
        raise Unprocessable("Model.OtherLabels", "The model's labels are not all categories of the taxonomy.")
    if read_held_out_accuracy(content).is_worthless:
        raise Unprocessable("Model.Worthless", f"The model is not activated: {_WORTHLESS}")
    if missing := _find_unfilled_columns(r, store, content, client):
        raise Unprocessable("Model.UnfilledColumns", _describe_unfillable(missing))
    return content


def _read_model_content(r: Reading, model: str) -> bytes:
    model_id = ids.CATEGORY_MODEL.find_unless_file(r, model)
    if model_id is None:
        return content_of(Path(model))
    return category_models.read_content(r, category_models.get(r, model_id).model_id)


def _find_concerned_customers(r: Reading, client: UUID | None) -> dict[int, int]:
    """Return the customers for whom a model of the client, or for all clients, would decide, with their versions."""
    stored = versions.read_enrichment_versions(r, client)
    if client is not None:
        return stored
    own, clients = category_models.uses(r).keys(), customers.clients_of(r, stored)
    return {number: version for number, version in stored.items() if clients[number] not in own}


def _with_model(model: Model, concerned: Mapping[int, int], known: Knowledge) -> Knowledge:
    return replace(known, models=[Activated(frozenset(concerned), model)])


def _find_unfilled_columns(r: Reading, store: "Store", model: Model, client: UUID | None) -> list[str]:
    """Return the model's columns that the client's submissions can't fill, judging by those that are stored."""
    if not find_unfillable(model.contexts, set()):
        return []
    return find_unfillable(model.contexts, transactions.find_own_columns(r, store.lake, client))


def _describe_unfillable(columns: Sequence[str]) -> str:
    return (
        f"The model needs columns that no stored transaction has: {', '.join(columns)}. "
        "Send each as a field of the transactions first, or train the model without it."
    )


_WORTHLESS = "on held-out rows it is no better than always choosing the most common label. Are the labels right?"


def _training_rows(files: Sequence[Path], businesses: int) -> pl.DataFrame:
    """Return the rows of all files and of the synthetic portfolio."""
    if not files and not businesses:
        raise typer.BadParameter("give --labels or --portfolio")
    read = [read_labelled_rows(file) for file in files]
    together = pl.concat(read, how="diagonal") if read else None
    if businesses:
        return base_model.training_rows(businesses, together)
    assert together is not None
    return together


def _report_steps(*, as_json: bool) -> Callable[[str], None]:
    """Return a function that prints a step that begins, and the seconds since the start, on standard error."""
    started = now()

    def report(step: str) -> None:
        if not as_json:
            err.print(f"[dim]{(now() - started).total_seconds():4.0f} s  {step}[/]", highlight=False)

    return report


def _get_or_store_model(w: Writing, model: str, client: UUID | None) -> StoredModel:
    """Return the model with this id, or store the model in this file and return it."""
    model_id = ids.CATEGORY_MODEL.find_unless_file(w, model)
    if model_id is None:
        content = content_of(Path(model))
        loaded = model_file.loads(content)
        return category_models.add(w, content, model_file.fingerprint(loaded), loaded.facts, client, now())
    return category_models.get(w, model_id)


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


def _describe_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    held = facts["held"]
    return {
        **{name: value for name, value in facts.items() if name != "held"},
        "heldRows": held["rows"],
        "accuracy": _round(held["accuracy"]),
        "accuracySeenMerchants": _round(held["seen"]),
        "accuracyUnseenMerchants": _round(held["unseen"]),
        "commonestLabelShare": _round(held["majority"]),
    }


def _print_evaluation(measured: "Evaluation") -> None:
    for line in (
        f"Trained on the {measured.trained_rows:,} rows before {measured.split}, with {measured.labels:,} labels.",
        f"Tested on the {measured.tested_rows:,} rows from then on, {measured.unseen_rows:,} of unseen merchants.",
        f"{quantity(measured.new_customers, 'customer')} left out of training.\n",
    ):
        out.print(line, soft_wrap=True, highlight=False)
    print_records(
        [_describe_score("learned model", measured.model), _describe_score("baseline", measured.baseline)],
        as_json=False,
        empty="",
    )
    out.print(f"\nAlways the most common label: {measured.majority:.4f}\n")
    print_records(
        [{"label": each.label, "predicted": each.predicted, "rows": each.rows} for each in measured.confusions],
        as_json=False,
        empty="No label was confused with another.",
    )
    out.print(
        f"\nExpected calibration error {measured.calibration_error:.4f}; "
        f"a perfectly calibrated model would show {measured.chance_error:.4f} on as many rows.\n",
        soft_wrap=True,
    )
    print_records([_describe_bin(each) for each in measured.bins], as_json=False, empty="")


def _describe_score(name: str, score: "Score") -> dict[str, Any]:
    return {
        "": name,
        "accuracy": _round(score.accuracy),
        "seen merchants": _round(score.seen),
        "unseen merchants": _round(score.unseen),
        "new customers": _round(score.new_customers),
        "macro-F1": _round(score.macro_f1),
    }


def _describe_bin(each: "Bin") -> dict[str, Any]:
    return {
        "confidence": f"from {each.from_:.2f}",
        "rows": each.rows,
        "mean confidence": _round(each.confidence),
        "accuracy": _round(each.accuracy),
    }


def _round(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
