"""Commands for risk models: fit one to a lender's outcomes, compare it with the default scorecard, activate it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_record, print_records
from api.core.commands.files import as_csv, content_of, csv_of, write
from pipelines.risk_models import files
from pipelines.risk_models.files import Outcomes
from pipelines.scorecards import scorecard_file
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.expected import NAMES as EVIDENCE
from pipelines.scorecards.scorecard import Scorecard
from pipelines.vocabulary.errors import NotFound
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.customers import customers
from storage.decisions import risk_models
from storage.decisions.risk_models import StoredModel
from storage.enrichment import transactions

if TYPE_CHECKING:
    from pipelines.risk_models.cohorts import Cohort

risk = typer.Typer(help="Risk models: fit them to outcomes, compare and activate them.", no_args_is_help=True)

OutcomesFile = Annotated[
    Path, typer.Option("--outcomes", help="CSV file: customer, asOf, defaulted, and any further numeric columns.")
]
TransactionsFile = Annotated[
    Path | None,
    typer.Option(
        "--transactions",
        help="CSV file with the columns customer, account, date, description, amount, balance. Needs no server.",
    ),
]
OfClient = Annotated[UUID | None, typer.Option("--client", help="Store the model for this client.")]
ForClient = Annotated[UUID, typer.Option("--client", help="The client's id.")]
Expects = Annotated[
    str | None,
    typer.Option(
        help=f"Evidence expected of all cases: {', '.join(EVIDENCE)}, separated by commas. Default: decided from them."
    ),
]


@risk.command("fit")
def fit(
    outcomes: OutcomesFile,
    transactions_file: TransactionsFile = None,
    client: OfClient = None,
    file: Annotated[Path | None, typer.Option("--out", help="Write the model to this file.")] = None,
    name: Annotated[str, typer.Option(help="Name of the model in reports.")] = "fitted",
    registry_only: Annotated[
        bool, typer.Option("--registry-only", help="Use only metrics of the registry, which reports can read.")
    ] = False,
    synthetic: Annotated[
        bool,
        typer.Option("--synthetic", help="The outcomes are synthetic, so reports still call the value indicative."),
    ] = False,
    expects: Expects = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model to outcomes and measure it on unseen cases. It is not used until activated.

    Without --transactions, the client's stored transactions up to the day of
    each case are used. The column customer then contains customerIds.

    Example: tidemark risk fit --outcomes outcomes.csv --client 2f0c…
    """
    cases = _outcomes(outcomes, judged=True)
    if transactions_file is not None:
        cohort = _cohort_of_files(transactions_file, cases, _expected(expects), registry_only=registry_only)
    elif client is not None:
        cohort = _stored_cohort(cases, client)
    else:
        raise typer.BadParameter("give --transactions or --client")
    from pipelines.risk_models import fitted  # noqa: PLC0415  importing scikit-learn takes half a second

    if cohort.unknown:
        _warn(f"{cohort.unknown} of {cases.cases.height} cases are left out: they have no transactions up to their day")
    scorecard = fitted.fit(cohort, "synthetic" if synthetic else "client", name)
    saved = _saved(scorecard, client, file)
    shown = {**saved, "name": name, "calibration": scorecard.calibration, **_figures(scorecard.facts)}
    if as_json:
        facts = {key: value for key, value in scorecard.facts.items() if key != "coefficients"}
        print_json({**shown, **facts, "unknown": cohort.unknown})
        return
    print_record(shown, as_json=False)
    out.print("\nPredicted probability and share of defaults, for each tenth of the cases:\n")
    print_records(scorecard.facts["calibrationTable"], as_json=False, empty="")


@risk.command("score")
def score(
    outcomes: OutcomesFile,
    transactions_file: TransactionsFile = None,
    expects: Expects = None,
    as_json: AsJson = False,
) -> None:
    """Score each case with the default scorecard and print its points and value as CSV. Needs no server.

    If the outcomes say who defaulted, the last line on standard error has the
    AUC of the points.

    Example: tidemark risk score --transactions rows.csv --outcomes outcomes.csv > scores.csv
    """
    if transactions_file is None:
        raise typer.BadParameter("give --transactions")
    cases = _outcomes(outcomes, judged=False)
    cohort = _cohort_of_files(transactions_file, cases, _expected(expects), registry_only=True)
    from pipelines.risk_models import fitted  # noqa: PLC0415  as above
    from pipelines.scorecards import measures  # noqa: PLC0415  as above

    scores = fitted.default_scores(cohort)
    shown = scores.select("customer", pl.col("as_of").alias("asOf"), "defaulted", "points", "value")
    judged = scores["defaulted"].null_count() == 0 and scores["defaulted"].n_unique() > 1
    auc = round(measures.auc(cohort.defaulted, fitted.default_risk(cohort)), 4) if judged else None
    if as_json:
        expects_ = list(cohort.expected.names)
        print_json({"cases": shown.to_dicts(), "auc": auc, "unknown": cohort.unknown, "expects": expects_})
        return
    typer.echo(as_csv(shown), nl=False)
    quality = f"AUC {auc}" if judged else "no AUC: outcomes are missing, or all the same"
    expected = ", ".join(cohort.expected.names) or "nothing"
    err.print(
        f"{scores.height} cases, {cohort.unknown} without transactions; expected evidence: {expected}; {quality}",
        highlight=False,
        soft_wrap=True,
    )


@risk.command("models")
def models(as_json: AsJson = False) -> None:
    """List the stored models, their quality, and the clients that use them.

    Example: tidemark risk models
    """
    with opened_store() as store, store.db.reading() as r:
        found, uses = risk_models.find(r), risk_models.uses(r)
    records = [
        _record(model, sorted(str(by) for by, used in uses.items() if used == model.model_id)) for model in found
    ]
    print_records(records, as_json=as_json, empty="No models yet: the default scorecard is used for all clients.")


@risk.command("activate")
def activate(
    model: Annotated[str, typer.Argument(help="The model's id, or its file.")],
    client: ForClient,
    as_json: AsJson = False,
) -> None:
    """Use a model for a client's customers. Customers with a report are queued for a new one.

    Example: tidemark risk activate 7d1e… --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        chosen = _chosen(w, model, client)
        risk_models.activate(w, chosen.model_id, client, OPERATOR.who, now())
        audit.append(w, OPERATOR, "RiskModel.Activated", {"modelId": chosen.model_id}, now(), client_id=client)
    print_record({"modelId": chosen.model_id, "usedFor": client}, as_json=as_json)


@risk.command("deactivate")
def deactivate(client: ForClient, as_json: AsJson = False) -> None:
    """Use the default scorecard again.

    Example: tidemark risk deactivate --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        used = risk_models.deactivate(w, client, OPERATOR.who, now())
        if used is None:
            raise NotFound("RiskModel.NotActive", "The client has no active risk model.")
        audit.append(w, OPERATOR, "RiskModel.Deactivated", {"modelId": used}, now(), client_id=client)
    print_record({"modelId": used, "usedFor": None}, as_json=as_json)


@risk.command("expect")
def expect(
    client: ForClient,
    evidence: Annotated[
        list[str] | None, typer.Argument(help=f"What is expected of every customer: {', '.join(EVIDENCE)}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the evidence that all customers of a client are expected to supply.

    Without names, it only shows what is expected. Whatever is expected and
    missing earns no points; what is not expected counts for nobody.

    Example: tidemark risk expect --client 2f0c… balances months
    """
    if evidence:
        given = _expected(",".join(evidence))
        with opened_store() as store, store.db.writing() as w:
            risk_models.expect(w, client, given or EVERYTHING, now())
            audit.append(
                w, OPERATOR, "Client.EvidenceExpected", {"evidence": " ".join(evidence)}, now(), client_id=client
            )
    with opened_store() as store, store.db.reading() as r:
        found = risk_models.expected_of(r, [client])
    if client not in found:
        raise NotFound("Client.NotFound", "There is no client with this id.")
    print_record({"client": client, "expects": ", ".join(found[client].names)}, as_json=as_json)


def _outcomes(path: Path, *, judged: bool) -> Outcomes:
    read = files.parse_outcomes(csv_of(path), judged=judged)
    if read.ignored:
        _warn(f"{path}: ignored because not numeric: {', '.join(read.ignored)}")
    return read


def _expected(names: str | None) -> Expected | None:
    try:
        return None if names is None else Expected.of(name.strip() for name in names.split(",") if name.strip())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _cohort_of_files(path: Path, cases: Outcomes, expected: Expected | None, *, registry_only: bool) -> "Cohort":
    from pipelines.risk_models import cohorts  # noqa: PLC0415  enrichment reads its lists

    rows = files.parse_transactions(csv_of(path))
    return cohorts.cohort_of_files(rows, cases, registry_only=registry_only, expected=expected)


def _stored_cohort(cases: Outcomes, client: UUID) -> "Cohort":
    from pipelines.risk_models import cohorts  # noqa: PLC0415  as above

    ids = {text: parsed for text in cases.cases["customer"] if (parsed := _uuid(text)) is not None}
    with opened_store() as store, store.db.reading() as r:
        numbers = customers.numbers(r, client, ids.values())
        places = transactions.current_locations(r, numbers.values())
        rows = transactions.scan(store.lake, places).collect()
        expected = risk_models.expected_of(r, [client]).get(client, EVERYTHING)
    by_text = {text: numbers.get(parsed) for text, parsed in ids.items()}
    number = pl.col("customer").replace_strict(by_text, default=None, return_dtype=pl.Int64)
    return cohorts.cohort_of_transactions(rows, cases.cases.with_columns(customer_number=number), expected)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _saved(scorecard: Scorecard, client: UUID | None, file: Path | None) -> dict[str, Any]:
    saved: dict[str, Any] = {}
    if file is not None:
        write(file, scorecard_file.dumps(scorecard))
        saved["file"] = str(file)
    if client is not None:
        with opened_store() as store, store.db.writing() as w:
            stored = risk_models.add(w, scorecard, client, now())
            audit.append(w, OPERATOR, "RiskModel.Fitted", {"modelId": stored.model_id}, now(), client_id=client)
        saved["modelId"] = str(stored.model_id)
    return saved


def _chosen(w: Writing, model: str, client: UUID) -> StoredModel:
    """Return the model with this id, or store the model in this file and return it."""
    try:
        return risk_models.get(w, UUID(model))
    except ValueError:
        return risk_models.add(w, scorecard_file.loads(content_of(Path(model))), client, now())


def _figures(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cases": facts["cases"],
        "defaults": facts["defaults"],
        "features": facts["features"],
        "crossValidation": facts["crossValidation"],
        "auc": facts["auc"],
        "aucInterval": facts["aucInterval"],
        "defaultScorecardAuc": facts["defaultScorecardAuc"],
        "defaultScorecardAucInterval": facts["defaultScorecardAucInterval"],
        "ks": facts["ks"],
        "brier": facts["brier"],
        "brierOfBaseRate": facts["brierOfBaseRate"],
    }


def _record(model: StoredModel, used_for: Sequence[str]) -> dict[str, Any]:
    return {
        "modelId": model.model_id,
        "clientId": model.client_id,
        "name": model.name,
        "calibration": model.calibration,
        "cases": model.facts["cases"],
        "defaults": model.facts["defaults"],
        "auc": model.facts["auc"],
        "defaultScorecardAuc": model.facts["defaultScorecardAuc"],
        "usedFor": used_for,
        "dateCreated": model.created_at,
        "fingerprint": model.fingerprint[:12],
    }


def _warn(line: str) -> None:
    err.print(f"tidemark: warning: {line}", style="bold yellow", markup=False, highlight=False, soft_wrap=True)
