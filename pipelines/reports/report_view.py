"""A report as its reader sees it: its status, and its last good data."""

from dataclasses import dataclass
from datetime import date, datetime

from pipelines.vocabulary.report_status import ReportStatus


@dataclass(frozen=True)
class ReportView:
    """One member of the bundle. `data_json` holds the exact JSON text of the last good data."""

    status: ReportStatus
    failed: bool = False
    generated_at: datetime | None = None
    as_of: date | None = None
    data_through: date | None = None
    data_version: int | None = None
    report_version: int | None = None
    data_json: str | None = None

    @property
    def error(self) -> dict[str, str] | None:
        """Why the latest attempt produced no report, as a code and a message; None if it produced one."""
        if not self.failed:
            return None
        message = "The latest attempt to compute this report failed."
        return {"code": "Report.Failed", "message": message}
