"""A metric as data: what it is called, and how it is computed from a customer's transactions.

The language is small and closed: a source, a filter, a window and an aggregate, or arithmetic over other metrics.
A decision policy with metrics of its own uses the same language as `registry.yaml`. Unknown fields are refused, and
decimals are written as text, so that no digit is lost.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Literal, Self, TypeAlias, get_args
from uuid import UUID, uuid5

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel

from pipelines.enrichment.flags import FLAGS
from pipelines.enrichment.income import KINDS
from pipelines.vocabulary.schemas import ACCOUNT_TYPES, Channel, CounterpartyKind
from pipelines.vocabulary.taxonomy import TAXONOMY

NAMESPACE = UUID("6f1b2f0e-5c1d-5a55-9b1a-0c1f5f7c9d21")  # changing it would change the ids of all metrics

Unit = Literal["AUD", "AUD per month", "ratio", "count", "per month", "days", "months"]
Format = Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"]
Direction = Literal["higher_is_better", "lower_is_better", "neutral"]

SLUG = re.compile(r"[a-z][a-z0-9_]{0,79}")
MAX_DAYS = 3_660  # ten years, the longest window or history; our judgement
MAX_MONTHS = 120
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,4})?")


def _parse_decimal(text: object) -> Decimal:
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError("a decimal is written as text, with at most 15 digits before the point and 4 after it")
    return Decimal(text)


def _size(value: Decimal) -> Decimal:
    if value < 0:
        raise ValueError("it is compared with the amount without its sign, so it must not be below zero")
    return value


def _operand(text: str) -> str:
    if not SLUG.fullmatch(text) and not DECIMAL.fullmatch(text):
        raise ValueError("this is neither the slug of a metric nor a decimal")
    return text


def _require_known(names: tuple[str, ...], kind: str, among: object) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in among]:  # pyrefly: ignore[not-iterable]
        raise ValueError(f"there is no {kind} {', '.join(unknown)}")
    return names


def _names(kind: str, among: object) -> AfterValidator:
    return AfterValidator(lambda names: _require_known(names, kind, among))


Exact: TypeAlias = Annotated[Decimal, BeforeValidator(_parse_decimal)]
Size: TypeAlias = Annotated[Exact, AfterValidator(_size)]
Slug: TypeAlias = Annotated[str, Field(pattern=f"^{SLUG.pattern}$")]
Operand: TypeAlias = Annotated[str, AfterValidator(_operand)]
Names: TypeAlias = tuple[str, ...]
GroupName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, alias_generator=to_camel)


class Where(Strict):
    """A filter: rows that meet every condition given.

    A list is met by any of its members. If both `categories` and `groups` are given, a row of either meets them.
    """

    categories: Annotated[Names, _names("category", TAXONOMY.categories)] = ()
    groups: Annotated[Names, _names("category group", TAXONOMY.groups)] = ()
    not_categories: Annotated[Names, _names("category", TAXONOMY.categories)] = ()
    counterparty_kinds: Annotated[Names, _names("counterparty kind", CounterpartyKind.categories.to_list())] = ()
    channels: Annotated[Names, _names("channel", Channel.categories.to_list())] = ()
    flags: Annotated[Names, _names("flag", FLAGS)] = ()
    not_flags: Annotated[Names, _names("flag", FLAGS)] = ()  # `dishonoured`: without payments that the bank sent back
    account_types: Annotated[Names, _names("account type", ACCOUNT_TYPES)] = ()
    counterparties: Annotated[tuple[GroupName, ...], Field(max_length=100)] = ()  # by `counterparty_group`
    not_counterparties: Annotated[tuple[GroupName, ...], Field(max_length=100)] = ()
    direction: Literal["credit", "debit", "either"] | None = None  # either: both sides count, on purpose
    external: bool | None = None  # False: own transfers
    recurring: bool | None = None  # belongs to a recurring series
    facility: bool | None = None  # funds or repays a credit facility
    unreconciled: bool | None = None  # comes from a PDF statement whose balances don't prove the row
    excluded: bool | None = None  # left out of true revenue because of a finding that nobody resolved
    income_kinds: Annotated[Names, _names("kind of income", KINDS)] = ()  # probably regular income of these kinds
    at_least: Size | None = None  # AUD, of the amount without its sign
    at_most: Size | None = None

    @model_validator(mode="after")
    def _is_satisfiable(self) -> Self:
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("no row can meet both bounds: `atLeast` is above `atMost`")
        return self

    @property
    def selects_by_purpose(self) -> bool:
        """Whether it selects rows by the purpose of the money, which means the opposite on the other side."""
        named = self.categories or self.groups or self.flags
        return bool(named) or self.recurring is not None or self.facility is not None


EVERY_ROW = Where()


class Days(Strict):
    """This many days, the last of them `offset` days before the customer's last row."""

    days: Annotated[int, Field(ge=1, le=MAX_DAYS)]
    offset: Annotated[int, Field(ge=0, le=MAX_DAYS)] = 0


class Months(Strict):
    """This many complete calendar months, or fewer if there are no more, ending `offset` months before the last one.

    A month is complete when the history covers its first and its last day.
    """

    months: Annotated[int, Field(ge=1, le=MAX_MONTHS)]
    offset: Annotated[int, Field(ge=0, le=MAX_MONTHS)] = 0


def _days_or_months(window: object) -> str:
    has_months = "months" in window if isinstance(window, dict) else isinstance(window, Months)
    return "months" if has_months else "days"


Window: TypeAlias = (
    Annotated[Annotated[Days, Tag("days")] | Annotated[Months, Tag("months")], Discriminator(_days_or_months)] | None
)  # None: all the history
Measure = Literal["amount", "money_in", "money_out", "size", "rows"]
"""What a row counts: its amount with its sign; money in, or money out, of rows of that side; its size; or 1."""

SIDES: Mapping[Measure, Literal["credit", "debit"]] = {"money_in": "credit", "money_out": "debit"}

Monthly = Literal[
    "monthly_mean",
    "monthly_median",
    "monthly_min",
    "monthly_slope",
    "monthly_volatility",
    "monthly_share_below",
]
MONTHLY: frozenset[str] = frozenset(get_args(Monthly))
Short = Literal["share_short", "longest_short", "days_since_short"]
SHORT: frozenset[str] = frozenset(get_args(Short))
Key = Literal["counterparty", "lender", "account", "category", "series", "facility", "day", "month", "thirty_days"]


class Transactions(Strict):
    """An aggregate of rows.

    `distinct` counts the values of the key `by`. `days_since`: from the last row to the end of the window.
    `share`: the rows `where` divided by the rows `of`. `largest_share`: the largest sum of one value of the key,
    divided by the rows `of` (default: by all rows `where`); 0 without rows, not applicable when no row has the key.

    The monthly aggregates use one sum per complete month: mean, median, minimum, slope per month by least squares,
    sample standard deviation divided by the mean, and the share of months with less than `below` times the median.
    """

    source: Literal["transactions"]
    where: Where = EVERY_ROW
    window: Window = None
    measure: Measure = "amount"
    aggregate: (
        Literal["sum", "count", "mean", "min", "max", "median", "distinct", "days_since", "share", "largest_share"]
        | Monthly
    )
    by: Key | None = None
    of: Where | None = None
    below: Exact | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        _check_presence(self.by, "by", self.aggregate in {"distinct", "largest_share"})
        _check_presence(self.below, "below", self.aggregate == "monthly_share_below")
        if self.aggregate != "largest_share":
            _check_presence(self.of, "of", self.aggregate == "share")
        if self.aggregate in MONTHLY and not isinstance(self.window, Months):
            raise ValueError("a monthly aggregate needs a window in months")
        if self.aggregate == "days_since" and isinstance(self.window, Months):
            raise ValueError("`days_since` needs a window in days")
        if self.measure == "rows" and self.aggregate not in {"sum", "count", "share", "largest_share", "distinct"}:
            raise ValueError(f"the measure `rows` can't be used with {self.aggregate}")
        if self.measure in SIDES and (self.where.direction or (self.of and self.of.direction)):
            raise ValueError(f"`direction` has no meaning here: the measure {self.measure} already states it")
        return self


class Balances(Strict):
    """Closing balances of all cash accounts together, day by day.

    An account counts from its first row on, unless it never states a balance. A balance that is not stated follows
    from those before and after it; the lower one counts if rows are missing in between.

    `days_below`: days below `threshold`. `days_beyond_limit`: days on which at least one account was below zero, or
    below its approved limit where there is one; `share_beyond_limit`: those, divided by the days.

    A day is short if the balance is below `threshold` days of the customer's usual money out (or in, as `usual` says):
    its mean per day of the window, transfers between own accounts left out. `share_short`: the share of short
    days; `longest_short`: the most short days in a row; `days_since_short`: the days from the last short day to the end
    of the window, or all its days if none was short.
    """

    source: Literal["balances"]
    window: Days
    aggregate: (
        Literal["mean", "min", "max", "last", "days_below", "days_beyond_limit", "share_beyond_limit", "slope"] | Short
    )
    threshold: Exact | None = None
    usual: Literal["money_in", "money_out"] | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        _check_presence(self.threshold, "threshold", self.aggregate == "days_below" or self.aggregate in SHORT)
        _check_presence(self.usual, "usual", self.aggregate in SHORT)
        return self


class Groups(Strict):
    """Credit facilities or recurring series, identified by their rows: how many there are, or the largest
    number that ran at once, each from its first to its last row in the window.
    """

    source: Literal["facilities", "series"]
    where: Where = EVERY_ROW
    window: Days | None = None
    aggregate: Literal["count", "most_at_once"]


class History(Strict):
    """`days`: from the first to the last row, both counted. `days_behind`: from the last row to the day of computing.
    `complete_months`: calendar months that the history covers from their first to their last day.
    """

    source: Literal["history"]
    figure: Literal["days", "days_behind", "complete_months"]


class Arithmetic(Strict):
    """An operation over other metrics and constants, from the left.

    `ratio` is a division whose divisor must be positive: if refunds exceed revenue, a share of revenue means nothing.
    """

    source: Literal["metrics"]
    operation: Literal["add", "subtract", "multiply", "divide", "ratio", "min", "max"]
    operands: Annotated[tuple[Operand, ...], Field(min_length=2, max_length=20)]

    @model_validator(mode="after")
    def _check_operands(self) -> Self:
        if self.operation in {"divide", "ratio", "subtract"} and len(self.operands) != 2:
            raise ValueError(f"{self.operation} takes two operands")
        return self

    @property
    def inputs(self) -> tuple[str, ...]:
        """The slugs among the operands."""
        return tuple(operand for operand in self.operands if not DECIMAL.fullmatch(operand))


Definition: TypeAlias = Annotated[
    Transactions | Balances | Groups | History | Arithmetic, Field(discriminator="source")
]


class Metric(Strict):
    """A metric: its name, meaning and unit, its definition, and what a customer needs for it to be available.

    `history_days`, `history_months`: least history, in days from first to last row and in complete months.
    `fresh_days`: how many days old the last row may be; None: any age.
    """

    slug: Slug
    name: Annotated[str, Field(min_length=1, max_length=100)]
    meaning: Annotated[str, Field(min_length=1, max_length=500)]
    unit: Unit
    format: Format
    direction: Direction
    history_days: Annotated[int, Field(ge=0, le=MAX_DAYS)] = 0
    history_months: Annotated[int, Field(ge=0, le=MAX_MONTHS)] = 0
    fresh_days: Annotated[int, Field(ge=0, le=MAX_DAYS)] | None = None
    definition: Definition

    def __hash__(self) -> int:
        """Return the hash of the slug: that of all fields takes long, and metrics are looked up in tuples of many."""
        return hash(self.slug)

    @cached_property
    def id(self) -> UUID:
        return uuid5(NAMESPACE, self.slug)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The metrics that this one is made of."""
        return self.definition.inputs if isinstance(self.definition, Arithmetic) else ()

    @property
    def window(self) -> str:
        """The window in words."""
        match self.definition:
            case Arithmetic():
                return "of its inputs"
            case History():
                return "all history"
            case each:
                return window_in_words(each.window)


Metrics: TypeAlias = Mapping[str, Metric]


def lacks_side(definition: Definition) -> bool:
    """Return whether a definition counts rows by purpose without saying on which side of the account.

    A dividend paid to a creditor has the category of payments to a liquidator, and a repayment sent back that of
    repayments. Counting both sides would say something false about the customer. Sums of amounts are safe, because the
    sides offset each other, and `money_in` and `money_out` name their side.
    """
    match definition:
        case Groups(where=where):
            return where.selects_by_purpose and where.direction is None
        case Transactions(measure="amount" | "rows" as measure, aggregate=aggregate, where=where, of=whole):
            counts = measure == "rows" or aggregate in {"count", "distinct", "days_since"}
            filters = (where, whole or EVERY_ROW)
            return counts and any(each.selects_by_purpose and each.direction is None for each in filters)
    return False


def window_in_words(window: Window) -> str:
    match window:
        case None:
            return "all history"
        case Days(days=days, offset=0):
            return f"{days} days"
        case Days(days=days, offset=offset):
            return f"{days} days, ending {offset} days before the last row"
        case Months(months=months, offset=0):
            return f"{months} complete months"
        case Months(months=months, offset=offset):
            return f"{months} complete months, {offset} before the last"


def _check_presence(value: object, name: str, needed: bool) -> None:
    if needed and value is None:
        raise ValueError(f"`{name}` is missing")
    if not needed and value is not None:
        raise ValueError(f"`{name}` has no meaning here")
