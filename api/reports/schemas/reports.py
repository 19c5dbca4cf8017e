"""The report bundle as it is shown.

These models describe; they don't carry. A report's data leave as the exact text that was stored with it.
"""

from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from pydantic import ConfigDict, Field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import Parameter, day, moment, text, whole
from api.intake.schemas.transactions import EXAMPLE_TRANSACTION, TransactionView
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


EXAMPLE_MEMBER: dict[str, Any] = {
    "status": "ready",
    "failed": False,
    "error": None,
    "generatedAt": "2026-07-01T02:20:00Z",
    "asOf": "2026-07-01",
    "dataThrough": "2026-06-30",
    "dataVersion": 4,
    "reportVersion": 2,
}
EXAMPLE_IN_ALL: dict[str, Any] = {"rows": 18, "amount": 9120.5, "shareOfRows": 0.0104, "shareOfAmount": 0.0087}
EXAMPLE_COMPLETENESS = EXAMPLE_MEMBER | {
    "data": {
        "summary": {"completenessScore": 91.5, "completenessTier": "complete", "totalMissingness": 0.085},
        "unreconciled": {
            **EXAMPLE_IN_ALL,
            "figures": [{"row": "/accounts/0", "shares": {"transactionCount": 0.0104}}],
        },
    }
}
EXAMPLE_RISK = EXAMPLE_MEMBER | {
    "data": {
        "value": 0.0202,
        "interval": {"low": 0.0138, "high": 0.0295},
        "rating": "B",
        "calibration": "none",
        "pdConfidenceScore": 97.59,
        "pdConfidenceRating": "high",
        "errorCodes": [{"code": "Risk.Uncalibrated", "message": "The value is no probability of default."}],
        "drivers": [
            {
                "metric": "overdrawn_day_share_180d",
                "name": "Share of days beyond the limit, last 180 days",
                "reading": 0.0,
                "unit": "ratio",
                "points": 9.0,
                "maxPoints": 9.0,
                "direction": "lower_is_better",
                "peerPercentile": 41,
                "reason": "Days beyond the approved limit are the plainest sign that money runs out.",
            }
        ],
        "sensitivity": [],
        "model": {"name": "default", "version": "1", "calibration": "none"},
        "unreconciled": {**EXAMPLE_IN_ALL, "figures": [{"row": "", "shares": {"value": 0.0061}}]},
    }
}
EXAMPLE_AGGREGATE = EXAMPLE_MEMBER | {
    "data": {
        "tables": [
            {
                "id": "account_summary",
                "name": "Accounts",
                "hierarchy": "account",
                "type": "summary",
                "values": [],
            }
        ],
        "unreconciled": {**EXAMPLE_IN_ALL, "figures": []},
    }
}


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
    EXAMPLE: ClassVar = EXAMPLE_COMPLETENESS

    data: Completeness | None


class RiskReportView(_MemberView):
    EXAMPLE: ClassVar = EXAMPLE_RISK

    data: Risk | None


class AggregateReportView(_MemberView):
    EXAMPLE: ClassVar = EXAMPLE_AGGREGATE

    data: Aggregate | None


class LineageInputView(View):
    """What a formula is made of."""

    name: str
    value: Any = Field(description="As the formula reads it.")
    figure: str | None = Field(description="Where its own lineage is found; null for a constant.")


class ContributionView(TransactionView):
    """A transaction, and what it adds to the figure."""

    contribution: float | None = Field(description="Adds up to the figure, over all pages. Null under a formula.")


EXAMPLE_LINEAGE: dict[str, Any] = {
    "kind": "aggregate",
    "figure": "/tables/monthly_cash_flow/values/0/moneyIn",
    "value": 812.4,
    "by": "sum",
    "words": None,
    "inputs": [],
    "total": 812.4,
    "asOf": "2026-07-01",
    "dataVersion": 4,
    "reportVersion": 2,
    "transactions": [{**EXAMPLE_TRANSACTION, "contribution": 812.4}],
    **Counts.EXAMPLE,
}


class LineageView(Counts):
    """Where a figure comes from."""

    EXAMPLE: ClassVar = EXAMPLE_LINEAGE

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


EXAMPLE_DIFF: dict[str, Any] = {
    "from": 3,
    "to": 4,
    "asOf": "2026-07-01",
    "rowsAdded": 12,
    "rowsGone": 0,
    "rowsCorrected": 0,
    "rowsReenriched": 0,
    "figures": [
        {
            "report": "aggregate",
            "figure": "/tables/0/values/0/moneyIn",
            "key": "month 2026-06-01",
            "from": 800.0,
            "to": 812.4,
            "causes": ["rows"],
        }
    ],
}


class DiffView(View):
    """What moved between two versions of a customer's transactions, the reports' formulas being today's."""

    EXAMPLE: ClassVar = EXAMPLE_DIFF

    from_: int = Field(serialization_alias="from")
    to: int
    as_of: date
    rows_added: int
    rows_gone: int
    rows_corrected: int
    rows_reenriched: int
    figures: list[MovedFigureView]


class ReportBundleView(View):
    EXAMPLE: ClassVar = {"completeness": EXAMPLE_COMPLETENESS, "risk": EXAMPLE_RISK, "aggregate": EXAMPLE_AGGREGATE}

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
