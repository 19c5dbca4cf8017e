"""The report bundle as it is shown.

These models describe; they don't carry. A report's data leave as the exact text that was stored with it.
"""

from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import ConfigDict, Field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import Parameter, day, moment, text, whole
from api.intake.schemas.transactions import TransactionView
from pipelines.reports.report_view import ReportStatus
from pipelines.reports.report_view import ReportView as StoredReport

_AS_OF = Parameter(
    day,
    "Report.InvalidAsOf",
    "asOf must be a day, YYYY-MM-DD, given once.",
    {"type": "string", "format": "date", "description": "Count only what is dated up to this day."},
)
_KNOWN_AT = Parameter(
    moment,
    "Report.InvalidKnownAt",
    "knownAt must be a time with its offset, such as 2026-07-01T12:00:00Z, given once.",
    {"type": "string", "format": "date-time", "description": "What was known then: rows, and what was said of them."},
)


def _version(name: str, description: str) -> Parameter:
    return Parameter(
        whole(0, 2**31),
        "Report.InvalidVersion",
        f"{name} must be a whole number, given once.",
        {"type": "integer", "minimum": 0, "maximum": 2**31, "description": description},
    )


class Moment(Received):
    """A view of the customer's transactions that is not, or not only, today's."""

    as_of: Annotated[date | None, _AS_OF] = None
    known_at: Annotated[datetime | None, _KNOWN_AT] = None
    data_version: Annotated[
        int | None,
        _version("dataVersion", "Version of the customer's transactions; the current one unless given."),
    ] = None

    @classmethod
    def at(cls, data_version: int, as_of: date | None) -> "Moment":
        return cls.model_construct(data_version=data_version, as_of=as_of)

    @property
    def is_given(self) -> bool:
        return not (self.as_of is None and self.known_at is None and self.data_version is None)


class Behind(Paging):
    """Of which figure, and which page of the transactions behind it."""

    figure: Annotated[
        str | None,
        Parameter(
            text(1_000),
            "Report.InvalidFigure",
            "figure must be a JSON Pointer to a figure, given once.",
            {
                "type": "string",
                "maxLength": 1000,
                "description": "JSON Pointer into the report's `data`, as /tables/monthly_cash_flow/values/0/moneyIn; "
                "of a metric: / and its slug. Inputs of a formula stand below it. By default the headline figure.",
            },
        ),
    ] = None


class LineageQuery(Moment, Behind):
    """Of a figure as it stood at a moment."""


class DiffQuery(Received):
    from_: Annotated[
        int | None, _version("from", "Version of the customer's transactions before; the one before `to` by default.")
    ] = Field(None, alias="from")
    to: Annotated[int | None, _version("to", "Version after; the current one by default.")] = None
    as_of: Annotated[date | None, _AS_OF] = None


class _Data(View):
    """Data of a report: the named fields are always there, others may stand beside them."""

    model_config = ConfigDict(extra="allow")


class RestingFigures(View):
    row: str = Field(description="JSON Pointer into the report's `data`, tables by their id; empty: the data itself.")
    shares: dict[str, float] = Field(description="By member of that row, 0 to 1; only those above zero.")


class Unreconciled(View):
    """What rests on rows of PDF statements that the statements' balances don't prove."""

    rows: int
    amount: float = Field(description="What they moved, signs left out.")
    share_of_rows: float | None = Field(description="Of all posted rows; null where there are none.")
    share_of_amount: float | None = Field(description="Of what all posted rows moved.")
    figures: list[RestingFigures]


class _Resting(_Data):
    unreconciled: Unreconciled | None = Field(None, description="Missing in reports from before it was told.")


class CompletenessSummary(_Data):
    completeness_score: float
    completeness_tier: str
    total_missingness: float


class Completeness(_Resting):
    summary: CompletenessSummary


class Risk(_Resting):
    value: float = Field(description="Probability of default in 12 months; indicative until calibrated to a client.")
    rating: str = Field(description="A to E, A being the best.")
    calibration: str = Field(description="none, synthetic or client: what the value was fitted to.")
    pd_confidence_score: float
    pd_confidence_rating: str
    error_codes: list[Any]


class AggregateTable(_Data):
    id: str
    name: str
    hierarchy: str
    type: str
    values: list[Any]


class Aggregate(_Resting):
    tables: list[AggregateTable]


class _MemberView(View):
    status: ReportStatus = Field(description="Check it before reading `data`.")
    failed: bool = Field(description="The latest attempt errored; any data are the last good ones.")
    error: NoteView | None = Field(description="Why the latest attempt failed; null where none has.")
    generated_at: datetime | None = Field(description="Null while pending, and for a replay.")
    as_of: date | None = Field(description="The service's date when it was computed.")
    data_through: date | None = Field(description="Date of the last transaction counted.")
    data_version: int | None
    report_version: int | None


class CompletenessReportView(_MemberView):
    data: Completeness | None


class RiskReportView(_MemberView):
    data: Risk | None


class AggregateReportView(_MemberView):
    data: Aggregate | None


class LineageInputView(View):
    """What a formula is made of."""

    name: str
    value: Any = Field(description="As the formula reads it.")
    figure: str | None = Field(description="Where its own lineage is found; null for a constant.")


class ContributionView(TransactionView):
    """A transaction, and what it adds to the figure."""

    contribution: float | None = Field(description="Adds up to the figure, over all pages. Null under a formula.")


class LineageView(Counts):
    """Where a figure comes from."""

    kind: str
    figure: str
    value: Any
    by: Literal["sum", "formula"] = Field(description="A sum of transactions' contributions, or made of inputs.")
    words: str | None = Field(description="The formula; null for a sum.")
    inputs: list[LineageInputView]
    total: float | None = Field(description="Sum of all contributions: the figure. Null under a formula.")
    as_of: date
    data_version: int
    report_version: int
    transactions: list[ContributionView]


class MovedFigureView(View):
    report: str
    figure: str = Field(description="JSON Pointer into the later report, or into the earlier one if it is gone.")
    key: str | None = Field(description="Of a table's row: its keys.")
    from_: Any = Field(serialization_alias="from")
    to: Any
    causes: list[Literal["rows", "correction", "enrichment"]] = Field(
        description="rows: added, revised or retracted; correction: the client's own words; enrichment: rules, model "
        "or what is known of the customer changed what rows are taken for."
    )


class DiffView(View):
    """What moved between two versions of a customer's transactions, the reports' formulas being today's."""

    from_: int = Field(serialization_alias="from")
    to: int
    as_of: date
    rows_added: int
    rows_gone: int
    rows_corrected: int
    rows_reenriched: int
    figures: list[MovedFigureView]


class ReportBundleView(View):
    completeness: CompletenessReportView
    risk: RiskReportView
    aggregate: AggregateReportView


def member(report: StoredReport) -> dict[str, Any]:
    """One report as shown, its data byte for byte as computed."""
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
