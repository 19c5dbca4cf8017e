"""The figures that a reader of the reports looks at first, and where they are in the reports' data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Reports = Mapping[str, Mapping[str, Any]]  # parsed data by kind of report; a kind that wasn't computed is absent
WINDOW_DAYS: Final = 90  # of the money figures here and on the report page's cards


@dataclass(frozen=True)
class Headline:
    """A figure by name: a member of a report (`path`), or a `column` of one row of a table.

    The row is the one whose `days` is WINDOW_DAYS; in a table by month, it is the last one.
    """

    name: str
    report: str
    path: tuple[str, ...] = ()
    table: str = ""
    column: str = ""

    def find(self, reports: Reports) -> tuple[str | None, object]:
        """Return the figure's JSON Pointer into its report's data, and its value. Without the figure, both are None."""
        data = reports.get(self.report)
        if data is None:
            return None, None
        path = self.path or self._find_row(data)
        value: Any = data
        for segment in path:
            value = value[int(segment)] if isinstance(value, list) else value.get(segment)
        return (None, None) if value is data or value is None else ("/" + "/".join(self._by_id(path)), value)

    def _find_row(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        for index, table in enumerate(data["tables"]):
            if table["id"] == self.table:
                rows: Sequence[Mapping[str, Any]] = table["values"]
                places = [nth for nth, row in enumerate(rows) if row.get("days", WINDOW_DAYS) == WINDOW_DAYS]
                return ("tables", str(index), "values", str(places[-1]), self.column) if places else ()
        return ()

    def _by_id(self, path: tuple[str, ...]) -> tuple[str, ...]:
        return (path[0], self.table, *path[2:]) if self.table else path


HEADLINES: Final[Sequence[Headline]] = (
    Headline("rating", "risk", ("rating",)),
    Headline("riskValue", "risk", ("value",)),
    Headline("pdConfidenceScore", "risk", ("pdConfidenceScore",)),
    Headline("completenessScore", "completeness", ("summary", "completenessScore")),
    Headline("completenessTier", "completeness", ("summary", "completenessTier")),
    *(
        Headline(f"{column}{WINDOW_DAYS}Days", "aggregate", table="rolling_windows", column=column)
        for column in ("revenue", "moneyIn", "moneyOut", "net")
    ),
    Headline("closingBalance", "aggregate", table="monthly_cash_flow", column="closingBalance"),
)
