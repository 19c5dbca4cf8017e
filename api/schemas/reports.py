"""The report bundle as it is shown.

These models describe; they don't carry. A report's data leave as the exact text that was stored with it.
"""

from datetime import date, datetime
from typing import Any, ClassVar

import msgspec
from pydantic import ConfigDict, Field

from api.schemas.common import View
from storage.reports import ReportStatus
from storage.reports import ReportView as StoredReport

EXAMPLE_MEMBER: dict[str, Any] = {
    "status": "ready",
    "failed": False,
    "generatedAt": "2026-07-01T02:20:00Z",
    "asOf": "2026-07-01",
    "dataThrough": "2026-06-30",
    "dataVersion": 4,
    "reportVersion": 1,
}
EXAMPLE_COMPLETENESS = EXAMPLE_MEMBER | {
    "data": {"summary": {"completenessScore": 91.5, "completenessTier": "complete", "totalMissingness": 0.085}}
}
EXAMPLE_RISK = EXAMPLE_MEMBER | {
    "data": {
        "value": 0.31,
        "rating": "B",
        "pdConfidenceScore": 74,
        "pdConfidenceRating": "high",
        "errorCodes": [{"code": "Risk.Uncalibrated", "message": "The value is no probability of default."}],
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
        ]
    }
}


class _Data(View):
    """Data of a report: the named fields are always there, others may stand beside them."""

    model_config = ConfigDict(extra="allow")


class CompletenessSummary(_Data):
    completeness_score: float
    completeness_tier: str
    total_missingness: float


class Completeness(_Data):
    summary: CompletenessSummary


class Risk(_Data):
    value: float = Field(description="The risk figure, shown beside the rating.")
    rating: str
    pd_confidence_score: float
    pd_confidence_rating: str
    error_codes: list[Any]


class AggregateTable(_Data):
    id: str
    name: str
    hierarchy: str
    type: str
    values: list[Any]


class Aggregate(_Data):
    tables: list[AggregateTable]


class _MemberView(View):
    status: ReportStatus = Field(description="Check it before reading `data`.")
    failed: bool = Field(description="The latest attempt errored; any data are the last good ones.")
    generated_at: datetime | None
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
        "generatedAt": report.generated_at,
        "asOf": report.as_of,
        "dataThrough": report.data_through,
        "dataVersion": report.data_version,
        "reportVersion": report.report_version,
        "data": None if report.data_json is None else msgspec.Raw(report.data_json.encode()),
    }
