"""Find the role of each column of an export: by its heading if there is one, else by its values.

There are no templates for banks. Headings are looked up in one list of synonyms (`headings.yaml`). A column without a
known heading gets its role from its values: dates, amounts, running balances that follow from amounts, or texts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import polars as pl

from pipelines.intake.currencies import CODES, UNKNOWN
from pipelines.intake.exports.currency import stated_in_heading, stated_in_line
from pipelines.intake.exports.headings import roles_in
from pipelines.intake.exports.layout import Layout
from pipelines.intake.exports.sheet import SAMPLE, Sheet, refusal, transactions
from pipelines.intake.exports.signs import IN, OUT, side
from pipelines.intake.exports.values import (
    exact,
    has_cents,
    is_day,
    money,
    needs_decimal_comma,
    needs_decimal_point,
    resembles_amount,
)
from pipelines.intake.minus_signs import MINUSES

HEADING_WITHIN = 60  # rows; our judgement: no preamble has as many
# All permutations of these columns are tried, so the time grows with the cube of the limits.
MAX_MONEY_COLUMNS = 5  # without a heading
_MAX_TRIED = 7  # including columns that headings name
_MONEY_ROLES = ("amount", "debit", "credit", "balance")
_ACCOUNT = r"^(?:[0-9]{3}-?[0-9]{3}[ /-]+)?[0-9xX*][0-9xX* -]{4,22}[0-9]$"
_OTHER_UNITS = r"(?i)\b(?:cents|thousands?|millions?|minor)\b|['’]0{3}s?\b|\bx ?1,?000\b|\$ ?[km]\b|\(c\)"
_CONVENTION = "No balance proves which column is which: the usual order was assumed."


@dataclass(frozen=True)
class Columns:
    """The columns of a sheet by role.

    `roles`: keys of `headings.yaml`. `texts`: the columns that make the description, if no heading says which.
    `first_row`: the sheet's first row after the preamble and the heading. `currency`: of all amounts, if the user, a
    heading or a line before it states one. It takes precedence over a column of currencies, which is then about another
    amount. `sign`: as in `Layout`.
    """

    roles: Mapping[str, str]
    texts: tuple[str, ...]
    first_row: int
    heading: Mapping[str, str] | None  # as printed, by column
    decimal_comma: bool
    currency: str | None = None
    sign: str = ""
    notes: tuple[str, ...] = ()

    @property
    def preamble(self) -> int:
        """The number of rows before the heading, or before the first transaction if there is no heading."""
        return self.first_row - (self.heading is not None)

    @property
    def layout(self) -> Layout:
        """The columns as a user would specify them."""
        numbers = {role: int(column.removeprefix("column_")) for role, column in self.roles.items()}
        return Layout(numbers, self.sign, None if self.currency == UNKNOWN else self.currency)


def find_columns(sheet: Sheet, layout: Layout | None = None) -> Columns:
    """Find the roles of a sheet's columns. If the user gave a `layout`, it decides them.

    Raises:
        InvalidRequest: no column holds dates or none holds amounts; amounts are in cents or thousands; or the layout
            names a column that does not exist.
    """
    headed = _find_heading(sheet)
    columns = headed or Columns({}, (), 0, None, decimal_comma=False)
    if layout is not None:
        columns = replace(columns, roles=_declared_roles(sheet, layout), sign=layout.sign, currency=layout.currency)
    body = sheet.cells.slice(columns.first_row)
    columns = replace(columns, decimal_comma=_writes_decimal_commas(body, sheet.columns))
    rows = transactions(body.head(SAMPLE))
    found = columns if layout is not None else _add_roles_by_values(columns, rows, sheet.columns)
    for role, what in (("date", "dates"), ("amount", "amounts")):
        if not _has_role(found.roles, role):
            raise refusal("NoColumn", f"has no column that clearly contains {what}: give the column a heading")
    if headed is None:
        found = _without_misnamed_balance(sheet, replace(found, first_row=_first_transaction(sheet, found)))
    _require_whole_units(sheet, found)
    return replace(found, currency=found.currency or _stated_currency(sheet, found))


def _declared_roles(sheet: Sheet, layout: Layout) -> dict[str, str]:
    for role, number in layout.columns.items():
        if number > len(sheet.columns):
            raise refusal("NoColumn", f"has {len(sheet.columns)} columns: no column {number} for {role}")
    return {role: f"column_{number}" for role, number in layout.columns.items()}


def _has_role(roles: Mapping[str, str], role: str) -> bool:
    return role in roles or (role == "amount" and ("debit" in roles or "credit" in roles))


def _find_heading(sheet: Sheet) -> Columns | None:
    """Return the roles of the heading: the first line that names a date and an amount but is not a transaction."""
    beginning = sheet.cells.head(HEADING_WITHIN)
    data_lines = set(transactions(beginning)["line"])
    for row, cells in enumerate(beginning.iter_rows(named=True)):
        line, heading = cells.pop("line"), {column: text for column, text in cells.items() if text is not None}
        roles = roles_in(heading)
        names_both = "date" in roles and (_has_role(roles, "amount") or "balance" in roles)
        if names_both and line not in data_lines:
            return Columns(roles, (), row + 1, heading, decimal_comma=False)
    return None


def _first_transaction(sheet: Sheet, columns: Columns) -> int:
    """Return the first row with a date or an amount in its column. Without a heading, the rows before it are a
    preamble.
    """
    dated = is_day(pl.col(columns.roles["date"]))
    flows = [columns.roles[role] for role in ("amount", "debit", "credit") if role in columns.roles]
    paid = pl.any_horizontal(money(pl.col(name), decimal_comma=columns.decimal_comma).is_not_null() for name in flows)
    begins = sheet.cells.select((dated | paid).arg_true().first()).item()
    return 0 if begins is None else int(begins)


def _without_misnamed_balance(sheet: Sheet, columns: Columns) -> Columns:
    """Take no column for the balance by convention alone if the line before the rows calls it something else, such as
    `GST` or `Net`.
    """
    column = columns.roles.get("balance")
    if column is None or _CONVENTION not in columns.notes or columns.first_row == 0:
        return columns
    name = sheet.cells[column][columns.first_row - 1]
    if name is None or re.search(r"(?i)\b(?:balance|bal)\b", name):
        return columns
    return replace(columns, roles={role: each for role, each in columns.roles.items() if role != "balance"})


def _require_whole_units(sheet: Sheet, columns: Columns) -> None:
    """Raise if a heading or a line before it says that amounts are in cents or in thousands."""
    headings = [(columns.heading or {}).get(columns.roles.get(role, ""), "") for role in _MONEY_ROLES]
    before = sheet.cells.head(columns.preamble).drop("line").iter_rows()
    lines = [" ".join(filter(None, cells)) for cells in before]
    about_amounts = [line for line in lines if re.search(r"(?i)\bamounts?\b", _separate_words(line))]
    stated = (text for text in (*headings, *about_amounts) if re.search(_OTHER_UNITS, _separate_words(text)))
    if unit := next(stated, None):
        raise refusal("OtherUnit", f"has amounts in another unit: {unit}")


def _separate_words(text: str) -> str:
    """Write `amount_cents` and `amountCents` as `amount cents`."""
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", text)


def _stated_currency(sheet: Sheet, columns: Columns) -> str | None:
    """Return the currency that the heading of the amounts names, or a line before it."""
    heading = columns.heading or {}
    flows = [columns.roles[role] for role in ("amount", "debit", "credit") if role in columns.roles]
    named = (stated_in_heading(heading[name]) for name in flows if name in heading)
    before = sheet.cells.head(columns.preamble).drop("line").iter_rows()
    lines = (stated_in_line([cell for cell in cells if cell is not None]) for cells in before)
    return next(filter(None, (*named, *lines)), None)


def _writes_decimal_commas(rows: pl.DataFrame, names: Sequence[str]) -> bool:
    """Return whether some amounts are valid only with a decimal comma, and none only with a point."""
    beginning = rows.head(SAMPLE)  # of most files, it has points, which decides
    return (
        not _has_amount(beginning, names, needs_decimal_point)
        and _has_amount(rows, names, needs_decimal_comma)
        and not _has_amount(rows, names, needs_decimal_point)
    )


def _has_amount(rows: pl.DataFrame, names: Sequence[str], matches: Callable[[pl.Expr], pl.Expr]) -> bool:
    text = pl.col("text")
    return not rows.unpivot(names, value_name="text").filter(matches(text), ~is_day(text)).is_empty()


@dataclass(frozen=True)
class _Profile:
    """The filled cells of a column: their number, the shares of dates, amounts and accounts, and other features.

    `amount_like`: the share of cells that are amounts, or look like amounts but can't be read.
    """

    filled: int
    dates: float
    amounts: float
    amount_like: float
    accounts: float
    has_decimals: bool
    has_signs: bool
    distinct: int


def _profiles(rows: pl.DataFrame, names: Sequence[str], *, decimal_comma: bool) -> dict[str, _Profile]:
    return {name: _profile(rows[name].drop_nulls(), decimal_comma=decimal_comma) for name in names}


def _profile(texts: pl.Series, *, decimal_comma: bool) -> _Profile:
    text, is_date = pl.col("text"), is_day(pl.col("text"))
    amount = pl.when(~is_date).then(money(text, decimal_comma=decimal_comma))
    summary = texts.to_frame("text").select(
        dates=is_date.mean().fill_null(0),
        amounts=amount.is_not_null().mean().fill_null(0),
        amount_like=(amount.is_not_null() | resembles_amount(pl.when(~is_date & amount.is_null()).then(text)))
        .mean()
        .fill_null(0),
        accounts=text.str.contains(_ACCOUNT).mean().fill_null(0),
        has_decimals=has_cents(text).any(),
        has_signs=(text.str.contains(rf"^[{MINUSES}+]") | amount.str.starts_with("-")).any(),
        distinct=text.n_unique(),
    )
    return _Profile(filled=len(texts), **summary.row(0, named=True))


def _add_roles_by_values(columns: Columns, rows: pl.DataFrame, names: Sequence[str]) -> Columns:
    """Add the roles that no heading names. The values of the remaining columns in `rows`, all transactions, decide."""
    roles = _without_repeated_amount(columns, rows)
    profiles = _profiles(
        rows, [name for name in names if name not in roles.values()], decimal_comma=columns.decimal_comma
    )
    if "date" not in roles and (
        dated := [name for name, profile in profiles.items() if profile.filled and profile.dates >= 0.8]
    ):
        roles["date"] = dated[0]
    if columns.heading is None and (numbers := _account_column(profiles)):
        roles["account"] = numbers
    if "currency" not in roles and (codes := _currency_column(rows, profiles)):
        roles["currency"] = codes
    if sides := _side_column(rows, profiles, roles.get("kind")):
        roles["kind"] = sides
    _require_readable_amounts(profiles, roles)
    flows, note = _find_money_roles(rows, _money_columns(profiles, roles), roles, columns)
    roles |= flows
    texts = () if _has_description(roles) else tuple(_text_columns(profiles, roles, rows.height))
    return replace(columns, roles=roles, texts=texts, notes=(note,) if note else ())


def _without_repeated_amount(columns: Columns, rows: pl.DataFrame) -> dict[str, str]:
    """Return the roles by headings. Where debit and credit have the amounts, `amount` repeats them without a sign, or
    is a running total.
    """
    roles = dict(columns.roles)
    sides = [roles[role] for role in ("debit", "credit") if role in roles]
    read = [money(pl.col(name), decimal_comma=columns.decimal_comma).is_not_null() for name in sides]
    if len(sides) == 2 and "amount" in roles and 2 * rows.filter(pl.any_horizontal(read)).height >= rows.height > 0:
        del roles["amount"]
    return roles


def _has_description(roles: Mapping[str, str]) -> bool:
    return bool(roles.keys() & {"description", "payee"})


def _account_column(profiles: Mapping[str, _Profile]) -> str | None:
    """Return the column of account numbers: long numbers without decimals, of which few are distinct.

    Payment references look the same, but nearly every one is different.
    """
    numbers = (
        name
        for name, profile in profiles.items()
        if profile.accounts == 1 and profile.filled > 1 and not profile.has_decimals and profile.dates == 0
        if profile.distinct * 3 <= profile.filled or profile.distinct == 1
    )
    return next(numbers, None)


def _currency_column(rows: pl.DataFrame, profiles: Mapping[str, _Profile]) -> str | None:
    """Return the column that has a currency's code on every line."""
    full = (name for name, profile in profiles.items() if profile.filled == rows.height > 0)
    return next((name for name in full if rows[name].str.to_uppercase().is_in(CODES).all()), None)


def _side_column(rows: pl.DataFrame, profiles: Mapping[str, _Profile], headed: str | None) -> str | None:
    """Return the column that says on every line whether the amount is a debit or a credit: the one `headed` so, else
    one without a known heading. There, a single letter says so only if it differs: all `C` may mean cleared.
    """
    full = [name for name, profile in profiles.items() if profile.filled == rows.height > 0]
    columns = [headed, *full] if headed else full
    return next((name for name in columns if _says_sides(rows[name], is_headed=name == headed)), None)


def _says_sides(words: pl.Series, *, is_headed: bool) -> bool:
    sides = set(words.to_frame("word").select(side(pl.col("word"))).to_series())
    differ = not sides.isdisjoint(OUT) and not sides.isdisjoint(IN)
    return sides <= {*OUT, *IN} and (is_headed or differ or all(map(_is_word, sides)))


def _is_word(text: str | None) -> bool:
    return text is not None and len(text) > 1


def _money_columns(profiles: Mapping[str, _Profile], roles: Mapping[str, str]) -> list[str]:
    """Return the columns of amounts. If any have decimals or signs, return only these: cheque numbers have neither."""
    numbers = {
        name: profile for name, profile in profiles.items() if profile.amounts >= 0.9 and name not in roles.values()
    }
    precise = [name for name, profile in numbers.items() if profile.has_decimals or profile.has_signs]
    return (precise or list(numbers))[:MAX_MONEY_COLUMNS]


def _require_readable_amounts(profiles: Mapping[str, _Profile], roles: Mapping[str, str]) -> None:
    """Refuse a file whose heading names no amounts if a column has amounts that can't be read.

    Otherwise another column, such as the balances, would be taken for the amounts.
    """
    if _has_role(roles, "amount"):
        return
    for name, profile in profiles.items():
        if profile.amount_like >= 0.9 > profile.amounts and name not in roles.values():
            number = name.removeprefix("column_")
            raise refusal("NoColumn", f"has amounts in column {number} that can't be read: give the column a heading")


def _text_columns(profiles: Mapping[str, _Profile], roles: Mapping[str, str], rows: int) -> Iterator[str]:
    """Yield the columns of words, in order. Skip columns with the same text on every line, unless all are like that."""
    words = {
        name: profile
        for name, profile in profiles.items()
        if profile.filled and profile.amounts < 0.5 and profile.dates < 0.5 and name not in roles.values()
    }
    informative = [
        name for name, profile in words.items() if profile.distinct > 1 or profile.filled < rows or rows == 1
    ]
    yield from informative or words


def _find_money_roles(
    rows: pl.DataFrame, free: Sequence[str], roles: Mapping[str, str], columns: Columns
) -> tuple[dict[str, str], str]:
    """Find the columns of amount (or debit and credit) and balance that headings don't name. Also return a note if no
    balance proves them, else an empty text.
    """
    known = {role: roles[role] for role in _MONEY_ROLES if role in roles}
    account = pl.col(roles["account"]) if "account" in roles else pl.lit(0)
    candidates = [*known.values(), *free][:_MAX_TRIED]
    figures = rows.select(
        account=account,
        **{name: exact(money(pl.col(name), decimal_comma=columns.decimal_comma)) for name in candidates},
    )
    possible = (flows for flows in _possible_money_roles(figures, candidates) if known.items() <= flows.items())
    proofs = {tuple(flows.items()): _count_proven_balances(figures, flows) for flows in possible}
    best = max(proofs, key=lambda flows: proofs[flows], default=())
    if best and proofs[best] * 2 > figures.height - 1 and proofs[best]:
        return dict(best), ""
    return _assume_money_roles(figures, free, known)


def _assume_money_roles(
    figures: pl.DataFrame, free: Sequence[str], known: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    if "amount" in known or {"debit", "credit"} <= known.keys():
        return {}, ""
    if sides := known.keys() & {"debit", "credit"}:
        return _find_other_side(figures, free, known, *sides)
    usual = {**_usual_money_roles(figures, free), **known}
    return usual, _CONVENTION if len(usual) > 1 else ""


def _find_other_side(
    figures: pl.DataFrame, free: Sequence[str], known: Mapping[str, str], side: str
) -> tuple[dict[str, str], str]:
    """Return the column of the other side if headings name only one: it is filled where this one is not."""
    other = "credit" if side == "debit" else "debit"
    column = next((name for name in free if _exclude_each_other(figures, known[side], name)), None)
    if column is None:
        return {}, f"Only a column of {side}s was found: rows without one have no amount."
    number = column.removeprefix("column_")
    return {other: column}, f"Column {number} was read as {other}, because it is filled where {side} is not."


def _possible_money_roles(figures: pl.DataFrame, candidates: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield every way in which the columns could be amount, or debit and credit, and balance; the usual order first."""
    for amount, balance in permutations(candidates, 2):
        yield {"amount": amount, "balance": balance}
    for debit, credit, balance in permutations(candidates, 3):
        if _exclude_each_other(figures, debit, credit):
            yield {"debit": debit, "credit": credit, "balance": balance}


def _exclude_each_other(figures: pl.DataFrame, one: str, other: str) -> bool:
    both = (pl.col(one).fill_null(0) != 0) & (pl.col(other).fill_null(0) != 0)
    return figures.filter(both).is_empty()


def _count_proven_balances(figures: pl.DataFrame, roles: Mapping[str, str]) -> int:
    """Count the rows whose balance is the previous row's balance plus the amount. Rows may run forwards or backwards in
    time: the direction with more such rows counts.
    """
    amount = (
        pl.col(roles["amount"])
        if "amount" in roles
        else pl.col(roles["credit"]).fill_null(0) - pl.col(roles["debit"]).fill_null(0).abs()
    )
    balance = pl.col(roles["balance"])
    balance_steps = figures.select(
        *((balance - balance.shift(way).over("account") == amount).sum().alias(str(way)) for way in (1, -1))
    )
    forwards, backwards = balance_steps.row(0)
    return max(int(forwards), int(backwards))


def _usual_money_roles(figures: pl.DataFrame, candidates: Sequence[str]) -> dict[str, str]:
    """Assign the roles in the order that banks usually choose: amount, balance; or debit, credit, balance. Of debit and
    credit, a column with minus signs is the debit.
    """
    if len(candidates) < 2:
        return {"amount": candidates[0]} if candidates else {}
    first, second, *rest = candidates
    if not _exclude_each_other(figures, first, second):
        return {"amount": first, "balance": candidates[-1]}
    negative = figures.select(((pl.col(second) < 0).any()) & ~(pl.col(first) < 0).any()).item()
    debit, credit = (second, first) if negative else (first, second)
    return {"debit": debit, "credit": credit, **({"balance": rest[-1]} if rest else {})}
