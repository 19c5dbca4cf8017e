"""Peers of the policy engine: the ten rules as users of GoRules and of CEL write them, customer by customer.

Both get the metrics as numbers in a dictionary per customer, null if missing. This preparation is not measured.

GoRules (`zen-engine`): one decision table, first hit, with a row for each rule of a step that any rule decides and one
row for the step that needs all. Figures that are compared with a constant have their own columns; comparisons of two
figures are in a column of expressions. It computes in decimals. A cell does not match null, so its row is skipped.
That is how tables are usually written. The guarded table takes nulls into account: after each step, another row says
`indeterminate` if a null could have made a difference.

CEL (`common-expression-language`): one expression for the verdict and one for the limit, compiled once, with one
context per customer. A comparison with null is an error; `||` and `&&` ignore errors if another operand decides, so a
remaining error means that nothing can be decided. Numbers are doubles. Whole cents would avoid errors, but not all
figures are money.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

import cel
import zen

from benchmarks.ten_rules import REQUESTED, Known, Verdict

Given = dict[str, float | None]
INDETERMINATE = "indeterminate"


class Peer(Protocol):
    def verdicts(self, customers: Sequence[Given]) -> list[Verdict]: ...


def prepare(customers: Iterable[Known]) -> list[Given]:
    """Return metrics and input in the form that both peers take."""
    return [
        {name: None if value is None else float(value) for name, value in (*each.items(), ("requested", REQUESTED))}
        for each in customers
    ]


def _verdict(outcome: str, limit: float | None) -> Verdict:
    return Verdict(outcome, None if limit is None else Decimal(str(limit)))


# GoRules

Cells = Mapping[str, str]  # by column; an omitted one matches everything
EXPRESSION = "expression"  # the column for comparisons of two figures

DEBT = "debt_service_180d > seen_revenue_180d * 0.45"
FALLING = "revenue_90d < revenue_prior_90d * 0.85 and closing_balance < mean_balance_90d"
COVER = "operating_cash_flow_180d >= debt_service_180d * 1.2"
LIMIT = "min([requested, revenue_monthly_mean_6m * 1.2, operating_cash_flow_180d * 0.35, 250000])"
PRICED = (
    "revenue_monthly_mean_6m == null or operating_cash_flow_180d == null ? null : "
    f"{LIMIT} < 5000 ? 0 : floor({LIMIT} / 500) * 500"
)
KNOCK_OUTS: Sequence[Cells] = (
    {"dishonours_90d": ">= 3"},
    {"overdrawn_day_share_180d": "> 0.25"},
    {"days_behind": "> 45"},
    {EXPRESSION: DEBT},
)
REFERRED: Sequence[Cells] = (
    {"income_concentration_180d": "> 0.6"},
    {EXPRESSION: FALLING},
    {"days_since_revenue": "> 21"},
    {"tax_arrears_signs_180d": ">= 1"},
)
GOOD: Cells = {"revenue_monthly_mean_6m": ">= 10000", "buffer_days_180d": ">= 5", EXPRESSION: COVER}


def _null(*names: str) -> str:
    return " or ".join(f"{name} == null" for name in names)


def _unless_false(condition: str, *names: str) -> str:
    return f"({_null(*names)} or {condition})"


KNOCK_OUT_UNKNOWN = _null(
    "dishonours_90d", "overdrawn_day_share_180d", "days_behind", "debt_service_180d", "seen_revenue_180d"
)
# If both parts of FALLING hold, an earlier row has referred the customer. So where both may hold, one is unknown.
REFERRAL_UNKNOWN = " or ".join(
    (
        _null("income_concentration_180d", "days_since_revenue", "tax_arrears_signs_180d"),
        "("
        + " and ".join(
            (
                _unless_false("revenue_90d < revenue_prior_90d * 0.85", "revenue_90d", "revenue_prior_90d"),
                _unless_false("closing_balance < mean_balance_90d", "closing_balance", "mean_balance_90d"),
            )
        )
        + ")",
    )
)
GOOD_UNKNOWN = " and ".join(
    (
        _unless_false("revenue_monthly_mean_6m >= 10000", "revenue_monthly_mean_6m"),
        _unless_false(COVER, "operating_cash_flow_180d", "debt_service_180d"),
        _unless_false("buffer_days_180d >= 5", "buffer_days_180d"),
    )
)


def _rows(outcome: str, limit: str, rows: Iterable[Cells]) -> list[Cells]:
    return [{**cells, "outcome": f"'{outcome}'", "limit": limit} for cells in rows]


def _unknown_cells(condition: str) -> list[Cells]:
    return _rows(INDETERMINATE, "null", [{EXPRESSION: condition}])


TABLE: Sequence[Cells] = [
    *_rows("blocked", "0", KNOCK_OUTS),
    *_rows("conditional", PRICED, REFERRED),
    *_rows("proceed", PRICED, [GOOD]),
    *_rows("conditional", PRICED, [{}]),
]
GUARDED: Sequence[Cells] = [
    *_rows("blocked", "0", KNOCK_OUTS),
    *_unknown_cells(KNOCK_OUT_UNKNOWN),
    *_rows("conditional", PRICED, REFERRED),
    *_unknown_cells(REFERRAL_UNKNOWN),
    *_rows("proceed", PRICED, [GOOD]),
    *_unknown_cells(GOOD_UNKNOWN),
    *_rows("conditional", PRICED, [{}]),
]
_OUTPUTS = ("outcome", "limit")
_KEY = "ten rules"


class InZen:
    """A decision table in GoRules' engine."""

    def __init__(self, table: Sequence[Cells]) -> None:
        # With a loader, the table is compiled once; `create_decision` takes ten times as long per customer.
        self._engine = zen.ZenEngine({"loader": {"type": "static", "content": {_KEY: _graph(table)}}})

    def verdicts(self, customers: Sequence[Given]) -> list[Verdict]:
        results = (self._engine.evaluate(_KEY, each)["result"] for each in customers)
        return [_verdict(each["outcome"], each.get("limit")) for each in results]


def _graph(table: Sequence[Cells]) -> dict[str, Any]:
    fields = dict.fromkeys(name for cells in table for name in cells if name not in (*_OUTPUTS, EXPRESSION))
    content = {
        "hitPolicy": "first",
        "inputs": [*({"id": name, "name": name, "field": name} for name in fields), {"id": EXPRESSION, "name": ""}],
        "outputs": [{"id": name, "name": name, "field": name} for name in _OUTPUTS],
        "rules": [
            {"_id": str(nth)} | {name: cells.get(name, "") for name in (*fields, EXPRESSION, *_OUTPUTS)}
            for nth, cells in enumerate(table)
        ],
    }
    return {
        "nodes": [
            {"id": "in", "name": "Request", "type": "inputNode"},
            {"id": "table", "name": "Ten rules", "type": "decisionTableNode", "content": content},
            {"id": "out", "name": "Response", "type": "outputNode"},
        ],
        "edges": [
            {"id": "1", "sourceId": "in", "targetId": "table", "type": "edge"},
            {"id": "2", "sourceId": "table", "targetId": "out", "type": "edge"},
        ],
    }


# CEL


def _lesser_of(left: str, right: str) -> str:
    """Return the lesser of two expressions. CEL has no `min`; the library's is in Python and slower."""
    return f"({left} < {right} ? {left} : {right})"


AMOUNT = _lesser_of("requested", "revenue_monthly_mean_6m * 1.2")
CEILING = _lesser_of("operating_cash_flow_180d * 0.35", "250000.0")
GIVEN = _lesser_of(AMOUNT, CEILING)
CEL_LIMIT = f"{GIVEN} < 5000.0 ? 0.0 : double(int({GIVEN} / 500.0)) * 500.0"
CEL_VERDICT = """
    dishonours_90d >= 3.0 || overdrawn_day_share_180d > 0.25 || days_behind > 45.0
        || debt_service_180d > seen_revenue_180d * 0.45
    ? "blocked"
    : income_concentration_180d > 0.6
        || (revenue_90d < revenue_prior_90d * 0.85 && closing_balance < mean_balance_90d)
        || days_since_revenue > 21.0 || tax_arrears_signs_180d >= 1.0
    ? "conditional"
    : revenue_monthly_mean_6m >= 10000.0 && operating_cash_flow_180d >= debt_service_180d * 1.2
        && buffer_days_180d >= 5.0
    ? "proceed"
    : "conditional"
"""


class InCel:
    """Two expressions in CEL."""

    def __init__(self) -> None:
        self._outcome, self._limit = cel.compile(CEL_VERDICT), cel.compile(CEL_LIMIT)

    def verdicts(self, customers: Sequence[Given]) -> list[Verdict]:
        return [self._decide(cel.Context(variables=each)) for each in customers]

    def _decide(self, context: cel.Context) -> Verdict:
        try:
            outcome = self._outcome.execute(context)
        except TypeError:  # a comparison with null that nothing else decided
            return Verdict(INDETERMINATE, None)
        return _verdict(outcome, 0.0 if outcome == "blocked" else self._compute_limit(context))

    def _compute_limit(self, context: cel.Context) -> float | None:
        try:
            limit: float = self._limit.execute(context)
        except TypeError:
            return None
        return limit
