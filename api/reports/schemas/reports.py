"""Reports as they are shown.

These models are documentation: a report's data are sent as the exact text that was stored.
"""

from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import ConfigDict, Field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import Parameter, choice_parameter, day, moment_parameter, text, whole_parameter
from api.intake.schemas.transactions import TransactionView
from pipelines.reports import REPORTS
from pipelines.reports.report_view import ReportView as StoredReport
from pipelines.vocabulary.report_status import ReportStatus


def _day(name: str, description: str) -> Parameter:
    return Parameter(
        day,
        "Report.InvalidAsOf",
        f"{name} must be a date, YYYY-MM-DD, given once.",
        {"type": "string", "format": "date", "description": description},
    )


def _known(name: str, description: str) -> Parameter:
    return moment_parameter(name, "Report.InvalidKnownAt", description)


_AS_OF = _day("asOf", "Count only transactions dated up to this day.")
_KNOWN_AT = _known("knownAt", "Count only what was known at this moment: transactions and corrections.")


def _version(name: str, description: str) -> Parameter:
    return whole_parameter(name, "Report.InvalidVersion", 0, 2**31, description)


class Moment(Received):
    """A past state of the customer's transactions: dated up to a day, known at a moment, or of a version."""

    as_of: Annotated[date | None, _AS_OF] = None
    known_at: Annotated[datetime | None, _KNOWN_AT] = None
    data_version: Annotated[
        int | None,
        _version("dataVersion", "Version of the customer's transactions. Default: the current one."),
    ] = None

    @classmethod
    def at(cls, data_version: int | None, as_of: date | None, known_at: datetime | None) -> "Moment":
        return cls.model_construct(data_version=data_version, as_of=as_of, known_at=known_at)

    @property
    def is_given(self) -> bool:
        return not (self.as_of is None and self.known_at is None and self.data_version is None)


class FigureQuery(Paging):
    """A figure, and the page of the transactions that it rests on."""

    figure: Annotated[
        str | None,
        Parameter(
            text(1_000),
            "Report.InvalidFigure",
            "figure must be a JSON Pointer to a figure, given once.",
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "JSON Pointer into a report's `data`, as in "
                "/tables/monthly_cash_flow/values/0/moneyIn; for a metric: / and its slug. "
                "Inputs of a formula are below it. Default: a report's headline figure, or the first metric.",
            },
        ),
    ] = None


class LineageQuery(Moment, FigureQuery):
    """A figure in a past state of the customer's transactions."""


class DiffQuery(Received):
    """Two states of a customer's reports: by days and times of knowledge, or by versions of the transactions."""

    from_: Annotated[
        int | None,
        _version(
            "from",
            "Earlier version of the customer's transactions. Default: the one that was current at `fromKnownAt`; "
            "without it, `to` if `fromAsOf` or `knownAt` is given, else the version before `to`.",
        ),
    ] = Field(None, alias="from")
    to: Annotated[
        int | None,
        _version("to", "Later version. Default: the current one, or the one that was current at `knownAt`."),
    ] = None
    from_as_of: Annotated[
        date | None, _day("fromAsOf", "Day of the earlier reports: count only transactions up to it. Default: `asOf`.")
    ] = None
    as_of: Annotated[
        date | None, _day("asOf", "Day of the later reports: count only transactions up to it. Default: today.")
    ] = None
    from_known_at: Annotated[
        datetime | None, _known("fromKnownAt", "Count in the earlier reports only what was known then. Default: now.")
    ] = None
    known_at: Annotated[
        datetime | None, _known("knownAt", "Count in the later reports only what was known then. Default: now.")
    ] = None
    report: Annotated[
        str | None,
        choice_parameter("report", "Report.InvalidKind", REPORTS, "Compare this report only. Default: all three."),
    ] = None

    @property
    def later(self) -> Moment:
        return Moment.at(self.to, self.as_of, self.known_at)

    def earlier(self, current_version: int) -> Moment:
        """Return the moment of the earlier reports. By versions alone, it is that of the version before `to`."""
        version = self.to if self.from_ is None else self.from_
        by_moments = (self.from_as_of, self.from_known_at, self.known_at)
        if self.from_ is None and all(each is None for each in by_moments):
            version = max((current_version if self.to is None else self.to) - 1, 0)
        return Moment.at(version, self.from_as_of or self.as_of, self.from_known_at)


class _Data(View):
    """Data of a report. The documented fields are always present; there may be others."""

    model_config = ConfigDict(extra="allow")


class UnreconciledFigures(View):
    row: str = Field(description="JSON Pointer into the report's `data`, with tables by id; empty: the data itself.")
    shares: dict[str, float] = Field(description="By figure: the share of it that rests on such rows, if above 0.")


class Unreconciled(View):
    """Figures that rest on rows of PDF statements which the printed balances do not prove."""

    rows: int = Field(description="Number of such rows.")
    amount: float = Field(description="Sum of their absolute amounts.")
    share_of_rows: float | None = Field(description="Share of all posted rows; null if there are none.")
    share_of_amount: float | None = Field(description="Share of the absolute amounts of all posted rows.")
    figures: list[UnreconciledFigures] = Field(description="By row of the report, the figures that rest on such rows.")


class _WithUnreconciled(_Data):
    unreconciled: Unreconciled | None = Field(None, description="Missing in reports from before it was introduced.")


class CompletenessSummary(_Data):
    completeness_score: float = Field(description="0 to 100; 100 is complete.")
    completeness_tier: str = Field(description="complete, substantial, partial or insufficient.")
    total_missingness: float = Field(
        description="Share of the last 365 days for which no account has any evidence, 0 to 1."
    )


class CompletenessReason(View):
    """Why a reader can't fully rely on the data, and what would resolve it."""

    code: str = Field(description="Stable: programs should branch on this.")
    subject: str | None = Field(description="Account, statement, lender or quarter it is about; null: the customer.")
    message: str = Field(description="Why the data can't be fully relied on, for people.")
    settled_by: str = Field(description="What to supply or do.")
    effect: float | None = Field(
        description="Points that `completenessScore` would rise if this alone were resolved; null if unknown."
    )


class ResolvedTogether(View):
    """The score if all reasons were resolved; null if the customer has no rows."""

    completeness_score: float | None = Field(description="0 to 100.")
    effect: float | None = Field(description="Points that `completenessScore` would rise.")


class Completeness(_WithUnreconciled):
    summary: CompletenessSummary = Field(description="How complete the data are, in a few figures.")
    reasons: list[CompletenessReason] = Field(description="The most important of each kind first.")
    resolved_together: ResolvedTogether = Field(description="The score if all reasons were resolved.")


class PrincipalReason(View):
    """A reason that cost a customer much."""

    code: str = Field(description="A metric, or a code of `limitedBy`.")
    kind: Literal["adverse", "unverified"] = Field(
        description="`adverse`: known and bad. `unverified`: could not be verified, which is not bad."
    )
    words: str = Field(description="The reason as a customer may be told.")


class Risk(_WithUnreconciled):
    value: float = Field(description="Probability of default in 12 months; indicative until calibrated to a client.")
    rating: str = Field(description="A (best) to E: the worst of what value, evidence and events allow.")
    value_before_ceilings: float = Field(description="The value without ceilings by evidence and events.")
    limited_by: list[str] = Field(description="Codes of the ceilings that bind: `evidence`, or events.")
    covered: float | None = Field(description="Share of the expected points whose evidence is there, 0 to 1.")
    calibration: str = Field(description="The data that the value was calibrated on: none, synthetic or client.")
    pd_confidence_score: float = Field(description="How well the data support `value`, 0 to 100.")
    pd_confidence_rating: str = Field(description="high, medium or low.")
    error_codes: list[Any] = Field(description="Reasons not to rely on `value`, each with `code` and `message`.")
    principal_reasons: list[PrincipalReason] | None = Field(
        None, description="At most four, what cost most first. Missing in reports from before it was introduced."
    )


class AggregateTable(_Data):
    id: str = Field(description="Names the table in JSON Pointers to its figures.")
    name: str = Field(description="Title for people.")
    hierarchy: str = Field(description="What a row is about: customer, account, category, counterparty, …")
    type: str = Field(description="time_series or summary.")
    values: list[Any] = Field(description="The rows, each an object.")


class Aggregate(_WithUnreconciled):
    tables: list[AggregateTable] = Field(description="All tables, in the order of the reference.")


class _MemberView(View):
    status: ReportStatus = Field(description="Check it before reading `data`.")
    failed: bool = Field(description="Whether the latest attempt failed; `data` is then from an earlier one.")
    error: NoteView | None = Field(description="Why the latest attempt failed; null if it did not.")
    generated_at: datetime | None = Field(description="Null while pending, and for a replay.")
    as_of: date | None = Field(description="Business date of the computation.")
    data_through: date | None = Field(description="Date of the last counted transaction.")
    data_version: int | None = Field(
        description="Version of the customer's transactions that was counted; null while pending."
    )
    report_version: int | None = Field(description="Version of the report's formulas; null while pending.")


class CompletenessReportView(_MemberView):
    data: Completeness | None = Field(description="Null while pending.")


class RiskReportView(_MemberView):
    data: Risk | None = Field(description="Null while pending.")


class AggregateReportView(_MemberView):
    data: Aggregate | None = Field(description="Null while pending.")


class LineageInputView(View):
    """An input of a formula."""

    name: str = Field(description="Names the input in the JSON Pointer below the figure.")
    value: Any = Field(description="The value that the formula used.")
    format: str | None = Field(
        description="How the value is written, with the formats of metrics; null: its name shows it."
    )
    figure: str | None = Field(description="The figure whose lineage explains it; null for a constant.")


class ContributionView(TransactionView):
    """A transaction and its contribution to the figure."""

    contribution: float | None = Field(description="Over all pages these add up to the figure. Null for a formula.")


class LineageView(Counts):
    """The lineage of a figure."""

    kind: str = Field(description="The report, or `metrics`.")
    figure: str = Field(description="JSON Pointer to the figure.")
    value: Any = Field(description="The figure as the report has it.")
    format: str | None = Field(
        description="How the value is written, with the formats of metrics; null: its name shows it."
    )
    by: Literal["sum", "formula"] = Field(description="Whether it is a sum of contributions or a formula of inputs.")
    words: str | None = Field(description="The formula; null for a sum.")
    inputs: list[LineageInputView] = Field(description="Inputs of the formula; empty for a sum.")
    total: float | None = Field(description="Sum of all contributions, which is the figure. Null for a formula.")
    as_of: date = Field(description="Business date of the computation.")
    data_version: int = Field(description="Version of the customer's transactions that was counted.")
    report_version: int = Field(description="Version of the report's or the metrics' formulas.")
    transactions: list[ContributionView] = Field(
        description="Oldest first. For a formula, the transactions behind its inputs."
    )


class MovedFigureView(View):
    report: str = Field(description="completeness, risk or aggregate.")
    figure: str = Field(description="JSON Pointer into the later report; into the earlier one if the figure is gone.")
    from_figure: str | None = Field(description="JSON Pointer into the earlier report; null if it lacks the figure.")
    key: str | None = Field(description="Keys of the table's row.")
    from_: Any = Field(
        serialization_alias="from", description="Value in the earlier report; null if it lacks the figure."
    )
    to: Any = Field(description="Value in the later report; null if it lacks the figure.")
    causes: list[Literal["date", "rows", "correction", "enrichment"]] = Field(
        description="date: the later day; rows: added, revised or retracted; correction: by the client; enrichment: a "
        "change of rules, model or facts about the customer changed how rows are categorised."
    )


class MovedHeadlineView(View):
    """A figure that readers look at first, whether it differs or not."""

    name: str = Field(description="Such as rating, riskValue, completenessScore, revenue90Days.")
    report: str = Field(description="completeness, risk or aggregate.")
    figure: str | None = Field(description="JSON Pointer into the later report; null if it lacks the figure.")
    from_figure: str | None = Field(description="JSON Pointer into the earlier report; null if it lacks the figure.")
    from_: Any = Field(
        serialization_alias="from", description="Value in the earlier report; null if it lacks the figure."
    )
    to: Any = Field(description="Value in the later report; null if it lacks the figure.")


class DiffView(View):
    """Figures that differ between two states of a customer's reports, by today's formulas."""

    from_: int = Field(serialization_alias="from", description="Version of the transactions in the earlier reports.")
    to: int = Field(description="Version of the transactions in the later reports.")
    from_as_of: date = Field(description="Day of the earlier reports.")
    as_of: date = Field(description="Day of the later reports.")
    from_known_at: datetime | None = Field(description="Null: what is known now.")
    known_at: datetime | None = Field(description="Null: what is known now.")
    rows_dated_between: int = Field(description="Posted rows of the later version that are dated between the days.")
    rows_added: int = Field(description="Rows of the later version that the earlier lacks.")
    rows_gone: int = Field(description="Rows of the earlier version that the later lacks.")
    rows_corrected: int = Field(description="Rows of both versions that a correction changed.")
    rows_reenriched: int = Field(description="Rows of both versions that the enrichment changed.")
    headlines: list[MovedHeadlineView] = Field(description="All headlines of the compared reports, changed or not.")
    figures: list[MovedFigureView] = Field(description="Figures that differ.")


class ReportBundleView(View):
    completeness: CompletenessReportView = Field(description="How complete the customer's data are.")
    risk: RiskReportView = Field(description="How likely the customer is to default, and why.")
    aggregate: AggregateReportView = Field(description="The customer's money, in tables.")


def member(report: StoredReport) -> dict[str, Any]:
    """Return a report as it is shown, with the stored bytes of its data."""
    return {
        "status": report.status,
        "failed": report.failed,
        "error": report.error,
        "generatedAt": report.generated_at,
        "asOf": report.as_of,
        "dataThrough": report.data_through,
        "dataVersion": report.data_version,
        "reportVersion": report.report_version,
        "data": None if report.data_json is None else msgspec.Raw(report.data_json.encode()),
    }
