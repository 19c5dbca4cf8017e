"""Which column of an export says what: by its heading where there is one, else by what its values look like.

There is no template for a bank: headings are looked up in one list of synonyms (`headings.yaml`), and columns without
a known one are told by dates, amounts, running balances that follow from amounts, and texts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import permutations

import polars as pl
import yaml

from pipelines.intake.exports.sheet import SAMPLE, Sheet, refused, transactions
from pipelines.intake.exports.values import day, exact, has_cents, has_decimal_comma, money

HEADING_WITHIN = 60  # records: a file's preamble is shorter
MOST_MONEY_COLUMNS = 5  # that are tried against each other
_ACCOUNT = r"^(?:[0-9]{3}-?[0-9]{3}[ /-]+)?[0-9xX*][0-9xX* -]{4,22}[0-9]$"
_CONVENTION = "no balance proves which column is what: the usual order was assumed"


@dataclass(frozen=True)
class Columns:
    """The columns of a sheet by role; `first_row` is the sheet's row behind the heading (and what stands before it).

    Roles are the keys of `headings.yaml`. `texts`: the columns whose words make the description, where no heading
    says which; `own_currency`: the amount's heading names its currency, so the currency column is another's.
    """

    roles: Mapping[str, str]
    texts: tuple[str, ...]
    first_row: int
    heading: Mapping[str, str] | None  # as printed, by column
    decimal_comma: bool
    own_currency: bool
    notes: tuple[str, ...] = ()


def columns_of(sheet: Sheet) -> Columns:
    """What the columns of a sheet mean.

    Raises:
        InvalidRequest: no column holds dates, or none amounts.
    """
    columns = _by_heading(sheet) or Columns(
        {}, (), _first_transaction(sheet), None, decimal_comma=False, own_currency=False
    )
    rows = transactions(sheet.cells.slice(columns.first_row, SAMPLE))
    comma = _writes_decimal_commas(rows, sheet.columns)
    found = _by_values(replace(columns, decimal_comma=comma), rows, sheet.columns)
    for role, what in (("date", "dates"), ("amount", "amounts")):
        if not _has(found.roles, role):
            raise refused("NoColumn", f"has no column of {what} that could be told from others")
    return found


def _has(roles: Mapping[str, str], role: str) -> bool:
    return role in roles or (role == "amount" and ("debit" in roles or "credit" in roles))


@cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """The headings of each role, the preferred ones first."""
    table = yaml.safe_load(files("pipelines.intake.exports").joinpath("headings.yaml").read_text("utf-8"))
    return {role: tuple(headings) for role, headings in table.items()}


def _plain(heading: str) -> str:
    without_unit = re.sub(r"\(.*?\)|\[.*?\]", " ", heading.lower())
    return " ".join(re.sub(r"[^a-z0-9]+", " ", without_unit).split())


def _by_heading(sheet: Sheet) -> Columns | None:
    """The roles that the first line names which names a date and an amount, and holds neither."""
    beginning = sheet.cells.head(HEADING_WITHIN)
    data_lines = set(transactions(beginning)["line"])
    for row, cells in enumerate(beginning.iter_rows(named=True)):
        line, heading = cells.pop("line"), {column: text for column, text in cells.items() if text is not None}
        roles = _named(heading)
        if "date" in roles and _has(roles, "amount") and line not in data_lines:
            own_currency = "AUD" in heading.get(roles.get("amount", ""), "")
            return Columns(roles, (), row + 1, heading, decimal_comma=False, own_currency=own_currency)
    return None


def _named(headings: Mapping[str, str]) -> dict[str, str]:
    """Role → column. A column has one role; of two that could have it, the one with the preferred heading has."""
    by_heading = {_plain(heading): column for column, heading in reversed(tuple(headings.items()))}
    roles: dict[str, str] = {}
    for role, known in synonyms().items():
        free = (by_heading[each] for each in known if each in by_heading and by_heading[each] not in roles.values())
        if column := next(free, None):
            roles[role] = column
    return roles


def _first_transaction(sheet: Sheet) -> int:
    """What stands before the first line with a date and an amount is a preamble."""
    beginning = sheet.cells.head(SAMPLE)
    first_line = transactions(beginning)["line"][0]
    return beginning.filter(pl.col("line") < first_line).height


def _writes_decimal_commas(rows: pl.DataFrame, names: Sequence[str]) -> bool:
    """Some amounts make sense only with a decimal comma, and none with a point."""
    cells = rows.unpivot(names, index="line", value_name="text").filter(day(pl.col("text")).is_null())
    text = pl.col("text")
    commas = cells.filter(has_decimal_comma(text), money(text, decimal_comma=True).is_not_null())
    points = cells.filter(has_cents(text), ~has_decimal_comma(text), money(text).is_not_null())
    return not commas.is_empty() and points.is_empty()


@dataclass(frozen=True)
class _Look:
    """What the filled cells of one column look like: how many there are, and which share of them is what."""

    filled: int
    dates: float
    amounts: float
    accounts: float
    has_decimals: bool
    has_signs: bool
    distinct: int


def _looks(rows: pl.DataFrame, names: Sequence[str], *, decimal_comma: bool) -> dict[str, _Look]:
    return {name: _look(rows[name].drop_nulls(), decimal_comma=decimal_comma) for name in names}


def _look(texts: pl.Series, *, decimal_comma: bool) -> _Look:
    text, is_date = pl.col("text"), day(pl.col("text")).is_not_null()
    amount = pl.when(~is_date).then(money(text, decimal_comma=decimal_comma))
    summary = texts.to_frame("text").select(
        dates=is_date.mean().fill_null(0),
        amounts=amount.is_not_null().mean().fill_null(0),
        accounts=text.str.contains(_ACCOUNT).mean().fill_null(0),
        has_decimals=has_cents(text).any(),
        has_signs=(text.str.contains(r"^[+−-]") | amount.str.starts_with("-")).any(),
        distinct=text.n_unique(),
    )
    return _Look(filled=len(texts), **summary.row(0, named=True))


def _by_values(columns: Columns, rows: pl.DataFrame, names: Sequence[str]) -> Columns:
    """The roles that no heading gave, by what the free columns look like in rows that are transactions."""
    roles = dict(columns.roles)
    looks = _looks(rows, [name for name in names if name not in roles.values()], decimal_comma=columns.decimal_comma)
    notes: list[str] = []
    if "date" not in roles and (dated := [name for name, look in looks.items() if look.filled and look.dates >= 0.8]):
        roles["date"] = dated[0]
    if columns.heading is None and (numbers := _account_column(looks)):
        roles["account"] = numbers
    if not _has(roles, "amount"):
        flows, proven = _flows(rows, _money_columns(looks, roles), roles, columns)
        roles |= flows
        notes += [] if proven or len(flows) == 1 else [_CONVENTION]
    texts = () if _has_words(roles) else tuple(_text_columns(looks, roles, rows.height))
    return replace(columns, roles=roles, texts=texts, notes=tuple(notes))


def _has_words(roles: Mapping[str, str]) -> bool:
    return bool(roles.keys() & {"description", "payee"})


def _account_column(looks: Mapping[str, _Look]) -> str | None:
    """Long numbers without decimals, few of them different: the account, not a reference."""
    numbers = (
        name
        for name, look in looks.items()
        if look.accounts == 1 and look.filled > 1 and not look.has_decimals and look.dates == 0
        if look.distinct * 3 <= look.filled or look.distinct == 1
    )
    return next(numbers, None)


def _money_columns(looks: Mapping[str, _Look], roles: Mapping[str, str]) -> list[str]:
    """Columns of amounts: with decimals or signs where any are; numbers of cheques and the like have neither."""
    numbers = {name: look for name, look in looks.items() if look.amounts >= 0.9 and name not in roles.values()}
    exacting = [name for name, look in numbers.items() if look.has_decimals or look.has_signs]
    return (exacting or list(numbers))[:MOST_MONEY_COLUMNS]


def _text_columns(looks: Mapping[str, _Look], roles: Mapping[str, str], rows: int) -> Iterator[str]:
    """Columns of words, in their order; not one that says the same on every line beside others that don't."""
    words = {
        name: look
        for name, look in looks.items()
        if look.filled and look.amounts < 0.5 and look.dates < 0.5 and name not in roles.values()
    }
    telling = [name for name, look in words.items() if look.distinct > 1 or look.filled < rows or rows == 1]
    yield from telling or words


def _flows(
    rows: pl.DataFrame, candidates: Sequence[str], roles: Mapping[str, str], columns: Columns
) -> tuple[dict[str, str], bool]:
    """Which money columns are amount, or debit and credit, and balance; and whether balances prove it."""
    account = pl.col(roles["account"]) if "account" in roles else pl.lit(0)
    figures = rows.select(
        account=account,
        **{name: exact(money(pl.col(name), decimal_comma=columns.decimal_comma)) for name in candidates},
    )
    proofs = {tuple(each.items()): _followed(figures, each) for each in _readings(figures, candidates)}
    best = max(proofs, key=lambda each: proofs[each], default=())
    if best and proofs[best] * 2 > figures.height - 1 and proofs[best]:
        return dict(best), True
    return _usual(figures, candidates), False


def _readings(figures: pl.DataFrame, candidates: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every way in which the columns could be an amount, or debit and credit, with a balance; the usual order first."""
    for amount, balance in permutations(candidates, 2):
        yield {"amount": amount, "balance": balance}
    for debit, credit, balance in permutations(candidates, 3):
        if _exclude_each_other(figures, debit, credit):
            yield {"debit": debit, "credit": credit, "balance": balance}


def _exclude_each_other(figures: pl.DataFrame, one: str, other: str) -> bool:
    both = (pl.col(one).fill_null(0) != 0) & (pl.col(other).fill_null(0) != 0)
    return figures.filter(both).is_empty()


def _followed(figures: pl.DataFrame, roles: Mapping[str, str]) -> int:
    """How many balances follow from their neighbour's and the amount, in the better of both directions."""
    amount = (
        pl.col(roles["amount"])
        if "amount" in roles
        else pl.col(roles["credit"]).fill_null(0) - pl.col(roles["debit"]).fill_null(0).abs()
    )
    balance = pl.col(roles["balance"])
    steps = figures.select(
        *((balance - balance.shift(way).over("account") == amount).sum().alias(str(way)) for way in (1, -1))
    )
    forwards, backwards = steps.row(0)
    return max(int(forwards), int(backwards))


def _usual(figures: pl.DataFrame, candidates: Sequence[str]) -> dict[str, str]:
    """The order in which banks print them: amount, balance; or debit, credit, balance. Signs tell which is debit."""
    if len(candidates) < 2:
        return {"amount": candidates[0]} if candidates else {}
    first, second, *rest = candidates
    if not _exclude_each_other(figures, first, second):
        return {"amount": first, "balance": candidates[-1]}
    negative = figures.select(((pl.col(second) < 0).any()) & ~(pl.col(first) < 0).any()).item()
    debit, credit = (second, first) if negative else (first, second)
    return {"debit": debit, "credit": credit, **({"balance": rest[-1]} if rest else {})}
