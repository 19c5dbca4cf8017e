"""Commands for risk models: fit one to a lender's outcomes, compare it with the default scorecard, activate it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_record, print_records, warn
from api.core.commands.expecting import Expects, describe_expected, parse_expected
from api.core.commands.files import as_csv, content_of, csv_of, ids_in, write
from api.core.commands.fitted import warn_of_taxonomy
from api.decisions import risk_portfolio
from pipelines.reports import rating_changes
from pipelines.risk_models import files
from pipelines.risk_models.files import Outcomes
from pipelines.scorecards import scorecard_file
from pipelines.scorecards.comparison import describe_comparison
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.expected import NAMES as EVIDENCE
from pipelines.scorecards.scorecard import Scorecard
from pipelines.vocabulary.errors import NotFound
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Reading, Writing
from storage.customers import customers
from storage.decisions import risk_models
from storage.decisions.risk_models import StoredModel
from storage.enrichment import transactions

if TYPE_CHECKING:
    from pipelines.risk_models.cohorts import Cohort

risk = typer.Typer(help="Risk models: fit them to outcomes, compare and activate them.", no_args_is_help=True)

OutcomesFile = Annotated[
    Path,
    typer.Option(
        "--outcomes", help="CSV file with the columns customer, asOf and defaulted, and any further numeric columns."
    ),
]
TransactionsFile = Annotated[
    Path | None,
    typer.Option(
        "--transactions",
        help="CSV file with the columns customer, account, date, description, amount, balance. Needs no server.",
    ),
]
StoreForClient = Annotated[
    UUID | None, typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="Store the model for this client.")
]
RequiredClient = Annotated[UUID, typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client's id.")]
RegistryOnly = Annotated[
    bool,
    typer.Option(
        "--registry-only",
        help="Use only metrics of the registry, so that the model can be activated. Ignores extra columns and "
        "metrics that reports can't compute.",
    ),
]
Synthetic = Annotated[
    bool, typer.Option("--synthetic", help="The outcomes are synthetic, so reports still call the value indicative.")
]
OutFile = Annotated[Path | None, typer.Option("--out", help="Write the model to this file.")]
ModelName = Annotated[str, typer.Option(help="Name of the model in reports.")]


def _require_reason(text: str | None) -> str | None:
    """Return the reason without spaces around it.

    Raises:
        typer.BadParameter: nothing is left.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("give the reason in words")
    return None if text is None else text.strip()


@risk.command("fit")
def fit(
    outcomes: OutcomesFile,
    transactions_file: TransactionsFile = None,
    client: StoreForClient = None,
    file: OutFile = None,
    name: ModelName = "fitted",
    registry_only: RegistryOnly = False,
    synthetic: Synthetic = False,
    expects: Expects = None,
    as_json: AsJson = False,
) -> None:
    """Fit the default scorecard to outcomes, and test the model on unseen customers. It is used once you activate it.

    Without --transactions, the client's stored transactions up to the day of
    each case are used. The column customer then contains customerIds.

    Example: tidemark risk fit --outcomes outcomes.csv --client 2f0c…
    """
    cohort = _read_cohort(outcomes, transactions_file, client, expects, registry_only=registry_only)
    from pipelines.risk_models import fitted  # noqa: PLC0415  imports SciPy, which takes a third of a second

    scorecard = fitted.fit(cohort, "synthetic" if synthetic else "client", name)
    _save_and_print(scorecard, cohort, client, file, as_json=as_json)


@risk.command("calibrate")
def calibrate(
    outcomes: OutcomesFile,
    transactions_file: TransactionsFile = None,
    client: StoreForClient = None,
    file: OutFile = None,
    name: ModelName = "calibrated",
    synthetic: Synthetic = False,
    expects: Expects = None,
    as_json: AsJson = False,
) -> None:
    """Calibrate the default scorecard to outcomes: intercept and slope only, so ranks stay as they are.

    It is judged by its probabilities on unseen customers, not by ranks. Without
    --transactions, the client's stored transactions are used, as with fit.

    Example: tidemark risk calibrate --outcomes outcomes.csv --client 2f0c…
    """
    cohort = _read_cohort(outcomes, transactions_file, client, expects, registry_only=True)
    from pipelines.risk_models import fitted  # noqa: PLC0415  imports SciPy

    scorecard = fitted.calibrate(cohort, "synthetic" if synthetic else "client", name)
    _save_and_print(scorecard, cohort, client, file, as_json=as_json)


@risk.command("compare")
def compare(
    model: Annotated[str, typer.Argument(help="The model's id, or its file.")],
    client: RequiredClient,
    as_json: AsJson = False,
) -> None:
    """Show the customers of a client whose rating would change if this model were activated.

    Policies do not read ratings, so their decisions do not change. Only the
    rating that people see changes.

    Example: tidemark risk compare 7d1e… --client 2f0c…
    """
    with opened_store() as store, store.db.reading() as r:
        ratings = risk_portfolio.compare(store, r, client, _read_scorecard(r, model), now())
        customer_ids = customers.ids_of(r, ratings["customer_number"])
    changed = ratings.filter(pl.col("rating_before") != pl.col("rating_after"))
    records = [
        {
            "customerId": customer_ids[each["customer_number"]],
            "before": each["rating_before"],
            "after": each["rating_after"],
            "valueBefore": each["value_before"],
            "valueAfter": each["value_after"],
        }
        for each in changed.iter_rows(named=True)
    ]
    counts = rating_changes.count_changes(ratings).to_dicts()
    if as_json:
        print_json(
            {
                "customers": ratings.height,
                "summary": rating_changes.describe_changes(ratings),
                "moves": counts,
                "who": records,
            }
        )
        return
    out.print(rating_changes.describe_changes(ratings), highlight=False)
    print_records(counts, as_json=False, empty="No rating changes.")
    if records:
        print_records(records, as_json=False, empty="")


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
    cases = _read_outcomes(outcomes, with_outcomes=False)
    cohort = _cohort_of_files(transactions_file, cases, expects, registry_only=True)
    from pipelines.risk_models import fitted  # noqa: PLC0415  imports SciPy
    from pipelines.scorecards import measures  # noqa: PLC0415  imports SciPy

    scores = fitted.default_scores(cohort)
    shown = scores.select("customer", pl.col("as_of").alias("asOf"), "defaulted", "points", "value")
    has_outcomes = scores["defaulted"].null_count() == 0 and scores["defaulted"].n_unique() > 1
    auc = round(measures.auc(cohort.defaulted, fitted.default_risk(cohort)), 4) if has_outcomes else None
    if as_json:
        print_json(
            {
                "cases": shown.to_dicts(),
                "auc": auc,
                "withoutTransactions": cohort.without_transactions,
                "expects": cohort.expected.names,
            }
        )
        return
    typer.echo(as_csv(shown), nl=False)
    quality = f"AUC {auc}" if has_outcomes else "no AUC: outcomes are missing, or all the same"
    expected = describe_expected(cohort.expected)
    err.print(
        f"{scores.height} cases, {cohort.without_transactions} without transactions; expected evidence: {expected}; "
        f"{quality}",
        highlight=False,
        soft_wrap=True,
    )


@risk.command("models")
def models(as_json: AsJson = False) -> None:
    """List the stored models, their quality, and the clients that use them.

    Example: tidemark risk models
    """
    with opened_store() as store, store.db.reading() as r:
        found, uses = risk_models.find(r), risk_models.find_uses(r)
    for model in found:
        if model.model_id in uses.values():
            warn_of_taxonomy(model.model_id, model.facts)
    records = [
        _describe_model(model, sorted(str(user) for user, used in uses.items() if used == model.model_id))
        for model in found
    ]
    columns = ("modelId", "name", "calibration", "auc", "better", "usedFor", "dateCreated")
    empty = "No models yet: the default scorecard is used for all clients."
    print_records(records, as_json=as_json, empty=empty, columns=columns)


@risk.command("activate")
def activate(
    model: Annotated[str, typer.Argument(help="The model's id, or its file.")],
    client: RequiredClient,
    anyway: Annotated[
        str | None,
        typer.Option(
            callback=_require_reason,
            help="Reason for using a model that is not better than the default scorecard. Do not name a person.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Use a model for a client's customers, and queue new reports for every customer that already has them.

    The command first prints how many ratings change. A model that was not
    better than the default scorecard on unseen customers is refused, unless
    --anyway gives a reason, which the audit trail records with the comparison.

    Example: tidemark risk activate 7d1e… --client 2f0c…
    """
    with opened_store() as store:
        with store.db.writing() as w:
            chosen = _find_or_add(w, model, client)
            scorecard = risk_models.require_activatable(w, chosen, client, anyway)
        warn_of_taxonomy(chosen.model_id, scorecard.facts)
        with store.db.reading() as r:
            summary = rating_changes.describe_changes(risk_portfolio.compare(store, r, client, scorecard, now()))
        if not as_json:
            out.print(summary, highlight=False)
        with store.db.writing() as w:
            risk_models.activate(w, chosen.model_id, client, OPERATOR.who, now(), anyway=anyway)
            why = {"anyway": anyway} if anyway else {}
            what = {"modelId": chosen.model_id, "comparison": risk_models.describe_model_comparison(chosen), **why}
            audit.append(w, OPERATOR, "RiskModel.Activated", what, now(), client_id=client)
    print_record(
        {"modelId": chosen.model_id, "usedFor": client, **({"summary": summary} if as_json else {})}, as_json=as_json
    )


@risk.command("pin")
def pin(
    client: RequiredClient,
    previous: Annotated[
        bool, typer.Option("--previous", help="Use the scorecard that was used before the current one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Keep using the current scorecard, or the previous one, even after an update of Tidemark.

    A copy of the default scorecard is stored, so that a new version of it changes
    no rating. Fitted models never change by themselves.

    Example: tidemark risk pin --client 2f0c… --previous
    """
    with opened_store() as store, store.db.writing() as w:
        pinned = risk_models.pin(w, client, OPERATOR.who, now(), previous=previous)
        audit.append(w, OPERATOR, "RiskModel.Pinned", {"modelId": pinned.model_id}, now(), client_id=client)
    print_record({"modelId": pinned.model_id, "usedFor": client}, as_json=as_json)


@risk.command("drift")
def report_drift(
    client: RequiredClient,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            "--outcomes",
            help="CSV file with the columns customer, asOf and defaulted, for cases since the model was fitted.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report how far metric values, coverage and outcomes have drifted since the active model was fitted.

    With --outcomes, the mean predicted value of these cases is compared with the
    share that defaulted.

    Example: tidemark risk drift --client 2f0c… --outcomes since.csv
    """
    from pipelines.scorecards import drift  # noqa: PLC0415  imports SciPy

    with opened_store() as store, store.db.reading() as r:
        scorecard = risk_portfolio.in_use(r, client)
        reference = scorecard.facts.get("reference", {})
        drifted = (
            drift.compare_readings(reference, risk_portfolio.read(store, r, client, list(reference), now()))
            if reference
            else []
        )
    outcomes_drift = (
        None
        if outcomes is None
        else _compare_with_outcomes(scorecard, _stored_cohort(_read_outcomes(outcomes, with_outcomes=True), client))
    )
    if as_json:
        print_json({"readings": drifted, "outcomes": outcomes_drift})
        return
    print_records(
        drifted, as_json=False, empty="The scorecard in use was not fitted, so there is nothing to compare with."
    )
    if outcomes_drift is not None:
        print_record(outcomes_drift, as_json=False)


@risk.command("deactivate")
def deactivate(client: RequiredClient, as_json: AsJson = False) -> None:
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
    client: RequiredClient,
    evidence: Annotated[
        list[str] | None, typer.Argument(help=f"Evidence expected of every customer: {', '.join(EVIDENCE)}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the evidence that all customers of a client are expected to supply.

    Without arguments, only shows what is expected now. Expected evidence that is
    missing earns no points. Other evidence is ignored for all customers.

    Example: tidemark risk expect --client 2f0c… balances months
    """
    if evidence:
        expected = parse_expected(",".join(evidence))
        with opened_store() as store, store.db.writing() as w:
            risk_models.set_expected(w, client, expected, now())
            what = {"evidence": " ".join(expected.names)}
            audit.append(w, OPERATOR, "Client.EvidenceExpected", what, now(), client_id=client)
    with opened_store() as store, store.db.reading() as r:
        found = risk_models.read_expected(r, [client])
    if client not in found:
        raise NotFound("Client.NotFound", "There is no client with this id.")
    print_record({"client": client, "expects": describe_expected(found[client])}, as_json=as_json)


def _compare_with_outcomes(scorecard: Scorecard, cohort: "Cohort") -> dict[str, Any]:
    from pipelines.risk_models import fitted  # noqa: PLC0415  imports SciPy
    from pipelines.scorecards import drift  # noqa: PLC0415  imports SciPy

    return drift.compare_default_rates(
        fitted.score_cases(cohort, scorecard).cast(pl.Float64).to_numpy(), cohort.defaulted
    )


def _read_cohort(
    outcomes: Path, rows: Path | None, client: UUID | None, expected: Expected | None, *, registry_only: bool
) -> "Cohort":
    cases = _read_outcomes(outcomes, with_outcomes=True)
    if rows is not None:
        cohort = _cohort_of_files(rows, cases, expected, registry_only=registry_only)
    elif client is None:
        raise typer.BadParameter("give --transactions or --client")
    elif expected is not None:
        raise typer.BadParameter("--expects is for files: `tidemark risk expect` sets it for all customers of a client")
    else:
        cohort = _stored_cohort(cases, client)
    if cohort.without_transactions:
        warn(
            f"{cohort.without_transactions} of {cases.cases.height} cases are left out: "
            "they have no transactions up to their day"
        )
    return cohort


def _save_and_print(
    scorecard: Scorecard, cohort: "Cohort", client: UUID | None, file: Path | None, *, as_json: bool
) -> None:
    """Save the model to the file and for the client, if they are given.

    Print how many ratings of the cases change, whether the model is better, and its quality.
    """
    from pipelines.risk_models import fitted  # noqa: PLC0415  imports SciPy

    values = rating_changes.compare_values(
        fitted.default_scores(cohort)["value"], fitted.score_cases(cohort, scorecard)
    )
    summary, better = rating_changes.describe_changes(values), describe_comparison(scorecard.facts["comparison"])
    saved = _save(scorecard, client, file)
    shown = {
        **saved,
        "name": scorecard.name,
        "calibration": scorecard.calibration,
        **_describe_quality(scorecard.facts),
    }
    if as_json:
        facts = {key: value for key, value in scorecard.facts.items() if key not in ("coefficients", "reference")}
        print_json({**shown, **facts, "withoutTransactions": cohort.without_transactions, "summary": summary})
        return
    out.print(f"Of these cases, {summary}.\nThe model is {better}.\n", highlight=False)
    print_record({name: _describe_figure(value) for name, value in shown.items()}, as_json=False)
    out.print("\nPredicted probability and share of defaults, for each tenth of the cases:\n")
    print_records(scorecard.facts["calibrationTable"], as_json=False, empty="")


def _read_scorecard(r: Reading, model: str) -> Scorecard:
    """Return the model with this id, or in this file."""
    model_id = ids.RISK_MODEL.find_unless_file(r, model)
    if model_id is None:
        found = scorecard_file.loads(content_of(Path(model)))
    else:
        found = risk_models.scorecard(r, risk_models.get(r, model_id).model_id)
    risk_models.require_metrics(found)
    return found


def _read_outcomes(path: Path, *, with_outcomes: bool) -> Outcomes:
    read = files.parse_outcomes(csv_of(path), with_outcomes=with_outcomes)
    if read.ignored:
        warn(f"{path}: ignored because not numeric: {', '.join(read.ignored)}")
    return read


def _cohort_of_files(path: Path, cases: Outcomes, expected: Expected | None, *, registry_only: bool) -> "Cohort":
    from pipelines.risk_models import cohorts  # noqa: PLC0415  imports enrichment, which reads all lists of names

    rows = files.parse_transactions(csv_of(path))
    return cohorts.cohort_from_files(rows, cases, registry_only=registry_only, expected=expected)


def _stored_cohort(cases: Outcomes, client: UUID) -> "Cohort":
    from pipelines.risk_models import cohorts  # noqa: PLC0415  imports enrichment, which reads all lists of names

    parsed_ids = ids_in(cases.cases["customer"])
    with opened_store() as store, store.db.reading() as r:
        numbers = customers.numbers(r, client, parsed_ids.values())
        locations = transactions.current_locations(r, numbers.values())
        rows = transactions.scan(store.lake, locations).collect()
        expected = risk_models.read_expected(r, [client]).get(client, EVERYTHING)
    by_text = {text: numbers.get(parsed) for text, parsed in parsed_ids.items()}
    number = pl.col("customer").replace_strict(by_text, default=None, return_dtype=pl.Int64)
    return cohorts.cohort_from_transactions(rows, cases.cases.with_columns(customer_number=number), expected)


def _save(scorecard: Scorecard, client: UUID | None, file: Path | None) -> dict[str, Any]:
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


def _find_or_add(w: Writing, model: str, client: UUID) -> StoredModel:
    """Return the model with this id, or store the model in this file and return it."""
    model_id = ids.RISK_MODEL.find_unless_file(w, model)
    if model_id is None:
        return risk_models.add(w, scorecard_file.loads(content_of(Path(model))), client, now())
    return risk_models.get(w, model_id)


def _describe_quality(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cases": facts["cases"],
        "defaults": facts["defaults"],
        "slopes": facts["slopes"],
        "crossValidation": facts["crossValidation"],
        "auc": facts["auc"],
        "aucInterval": facts["aucInterval"],
        "defaultScorecardAuc": facts["defaultScorecardAuc"],
        "defaultScorecardAucInterval": facts["defaultScorecardAucInterval"],
        "ks": facts["ks"],
        "brier": facts["brier"],
        "brierOfBaseRate": facts["brierOfBaseRate"],
    }


def _describe_figure(value: Any) -> Any:
    """Write an interval with a dash, and a whole number without decimals."""
    if isinstance(value, list):
        return "–".join(map(str, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _describe_model(model: StoredModel, used_for: Sequence[str]) -> dict[str, Any]:
    return {
        "modelId": model.model_id,
        "clientId": model.client_id,
        "name": model.name,
        "calibration": model.calibration,
        **{name: model.facts.get(name) for name in ("cases", "defaults", "auc", "defaultScorecardAuc")},
        "better": risk_models.is_better(model) if "comparison" in model.facts else None,
        "usedFor": used_for,
        "dateCreated": model.created_at,
        "fingerprint": model.fingerprint[:12],
    }
