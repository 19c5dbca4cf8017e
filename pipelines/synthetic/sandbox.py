"""Businesses for a sandbox: drawn to a profile, with rows that continue day by day.

A sandbox business is made from its profile, a seed, and the last day of its history. The same values always give the
same business, with rows for FEED_DAYS more days after its history. So a feed needs no memory but these values: it makes
the business again and sends the days that have passed (`submissions(business, after, through)`).

Profiles fix the causes of what happens (`risk`) and choose among draws by lasting traits, then by the rows themselves.
`dressed_up` has an attack (`pipelines.attacks`) in the last weeks of its history.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import count
from random import Random
from types import MappingProxyType
from typing import TypeAlias

import polars as pl

from pipelines.attacks.attack import Applicant
from pipelines.attacks.ledger import as_ledger
from pipelines.attacks.registry import attacks
from pipelines.synthetic.businesses import risk
from pipelines.synthetic.businesses.circumstances import draw_circumstances
from pipelines.synthetic.businesses.profile import Profile, profile_of
from pipelines.synthetic.portfolio import settle
from pipelines.synthetic.world.days import Window, window
from pipelines.synthetic.world.model import LABELLED, Business, Condition

FEED_DAYS = 366  # rows after the history; a year of monitoring
MIN_MONTHS, MAX_MONTHS = 9, 24  # of a history; policies read six complete months
MONTHS_OF_NEW = 9  # a new business has no longer history
RECENT_DAYS = 180
REPAID_WITHIN_DAYS = 45  # as the metric `lenders_repaid_45d`
STACKED_FROM = 3  # lenders

Value: TypeAlias = str | Decimal | bool


@dataclass(frozen=True)
class SandboxProfile:
    """A kind of business."""

    summary: str  # one sentence
    condition: Condition
    causes: Mapping[str, float]  # fields of `Latents`; the others are drawn
    suits: Callable[[Profile], bool]
    shows: Callable[[pl.DataFrame, date], bool] = lambda _rows, _until: True  # of a history's rows (LABELLED)
    attributes: Mapping[str, Value] = field(default_factory=dict)  # where they differ from USUAL
    quarters_late: int = 0  # activity statements that are due and not lodged
    months: int = MAX_MONTHS  # of a history, at most
    attack: str | None = None


USUAL: Mapping[str, Value] = {
    "loan_purpose": "stock",
    "bureau_score": Decimal(684),
    "ato_debt": Decimal(0),
    "ato_payment_plan": False,
    "time_trading_months": Decimal(74),
    "ppsr_registrations": Decimal(1),
    "hardship_flag": False,
}
_CALM = {"volatility": 0.18, "shock": 0.0}


def _sells_by_card(profile: Profile) -> bool:
    return profile.trade.card + profile.trade.platform >= 0.4


def _has_even_seasons(profile: Profile) -> bool:
    return max(profile.trade.season) < 1.5 * min(profile.trade.season)


def _repays_several(rows: pl.DataFrame, until: date) -> bool:
    repaid = rows.filter(_since(until, REPAID_WITHIN_DAYS), pl.col("facility").is_not_null(), pl.col("amount") < 0)
    return repaid["counterparty"].drop_nulls().n_unique() >= STACKED_FROM


def _has_paid_practitioner(rows: pl.DataFrame, until: date) -> bool:
    return _count(rows, until, pl.col("category") == "insolvency", pl.col("amount") < 0) > 0


def _has_paid_wages_late(rows: pl.DataFrame, until: date) -> bool:
    """Return whether several wages were paid late. These are not part of a series."""
    return _count(rows, until, pl.col("category") == "wages", pl.col("series").is_null()) >= 3


def _count(rows: pl.DataFrame, until: date, *which: pl.Expr) -> int:
    return rows.filter(_since(until, RECENT_DAYS), *which).height


def _since(until: date, days: int) -> pl.Expr:
    return pl.col("date") > until - timedelta(days=days)


PROFILES: Mapping[str, SandboxProfile] = MappingProxyType(
    {
        "healthy": SandboxProfile(
            "Steady takings, reserves, and hardly any debt.",
            "sound",
            {**_CALM, "strength": 1.0, "leverage": 0.03, "prudence": 0.8},
            lambda profile: _sells_by_card(profile) and _has_even_seasons(profile) and profile.wagering is None,
        ),
        "stacked": SandboxProfile(
            f"Repays {STACKED_FROM} lenders or more at the same time, cash advances among them.",
            "distressed",
            {**_CALM, "strength": 0.0, "leverage": 0.4, "prudence": 0.5},
            lambda profile: sum(each.lender.product == "cash_advance" for each in profile.borrowings) > 1,
            _repays_several,
            {"bureau_score": Decimal(565), "ppsr_registrations": Decimal(4)},
        ),
        "insolvent": SandboxProfile(
            "Takings fall fast, debits are dishonoured, and an insolvency practitioner is paid.",
            "failing",
            {"strength": -1.6, "leverage": 0.2, "prudence": 0.2, "shock": 0.5, "shock_at": 0.5, "shock_months": 8.0},
            lambda profile: bool(profile.borrowings),
            _has_paid_practitioner,
            {"bureau_score": Decimal(410), "ato_debt": Decimal(86_400), "ppsr_registrations": Decimal(6)},
            quarters_late=2,
        ),
        "seasonal": SandboxProfile(
            "Earns most of a year's takings in a few months.",
            "sound",
            {**_CALM, "strength": 0.5, "leverage": 0.04, "prudence": 0.7},
            lambda profile: max(profile.trade.season) >= 2 * min(profile.trade.season),
        ),
        "dressed_up": SandboxProfile(
            "A weak business whose last weeks have round trips of money that look like revenue.",
            "sound",
            {"strength": -0.8, "leverage": 0.1, "prudence": 0.4, "shock": 0.0},
            lambda profile: bool(profile.related) and profile.trade.invoice > 0.25,
            attack="round_trip_related",
            attributes={"bureau_score": Decimal(610)},
        ),
        "new": SandboxProfile(
            f"Began to trade {MONTHS_OF_NEW} months ago, and grows.",
            "start_up",
            {**_CALM, "strength": 0.3, "leverage": 0.02, "prudence": 0.6},
            _sells_by_card,
            attributes={
                "bureau_score": Decimal(640),
                "time_trading_months": Decimal(MONTHS_OF_NEW),
                "ppsr_registrations": Decimal(0),
            },
            months=MONTHS_OF_NEW,
        ),
        "payroll_stress": SandboxProfile(
            "Employs several people, and pays some of their wages late.",
            "distressed",
            {"strength": -1.0, "leverage": 0.08, "prudence": 0.15, "shock": 0.3, "shock_at": 0.6, "shock_months": 8.0},
            lambda profile: len(profile.staff) >= 4,
            _has_paid_wages_late,
            {"bureau_score": Decimal(530)},
            quarters_late=1,
        ),
        "tax_plan": SandboxProfile(
            "Pays off a tax debt in instalments.",
            "distressed",
            {**_CALM, "strength": -0.3, "leverage": 0.06, "prudence": 0.5},
            Profile.has_plan,
            attributes={"bureau_score": Decimal(600), "ato_debt": Decimal(31_800), "ato_payment_plan": True},
        ),
    }
)


def sandbox_business(
    slug: str, seed: int, months: int, until: date, *, name: str | None = None, abn: str | None = None
) -> Business:
    """Return a business of the profile, with a history of `months` months until that day, and FEED_DAYS more days.

    Args:
        name: printed on its statements instead of a drawn one; likewise `abn`, 11 digits.
    """
    wanted = PROFILES[slug]
    days = window(min(months, wanted.months), until)
    for stream, profile in _draw_businesses(wanted, f"sandbox/{slug}/{seed}/{months}/{until}", days):
        known = _rename(profile, name or profile.name, abn or profile.abn)
        made = settle(known, Window(days.first, days.last + FEED_DAYS), Random(stream))
        if wanted.shows(_history(made, until), until):
            return _apply_attack(made, known, until, wanted.attack, stream) if wanted.attack else made
    raise AssertionError("draws never end")


def _draw_businesses(wanted: SandboxProfile, stream: str, days: Window) -> Iterator[tuple[str, Profile]]:
    """Yield businesses that suit the profile, each with the seed of what happens to it."""
    for n in count():
        rng = Random(f"{stream}/{n}")
        latents = replace(risk.draw_causes(rng), **wanted.causes)
        drawn = profile_of(rng, days, None, latents, wanted.condition, FEED_DAYS)
        if wanted.suits(drawn):
            placed = draw_circumstances(replace(drawn, not_supplied=None), days, f"{stream}/{n}", often=False)
            yield f"{stream}/{n}/ledger", replace(placed, quiet=False)


def _rename(profile: Profile, name: str, abn: str) -> Profile:
    """Return the business under this name and ABN. The tax office's references contain the ABN."""
    borrowings = (replace(each, reference=each.reference.replace(profile.abn, abn)) for each in profile.borrowings)
    return replace(profile, name=name, abn=abn, borrowings=tuple(borrowings))


def _history(made: Business, until: date) -> pl.DataFrame:
    return pl.concat(account.transactions for account in made.accounts).filter(pl.col("date") <= until)


def _apply_attack(made: Business, profile: Profile, until: date, attack: str, seed: str) -> Business:
    """Return the business with an attack in the history of its trading account."""
    account, *others = made.accounts
    history = account.transactions.filter(pl.col("date") <= until).with_row_index("row")
    where = {"account": account.account_number, "account_type": account.account_type, "bank": account.bank_name}
    ledger = as_ledger(history.with_columns(pl.lit(value).alias(name) for name, value in where.items()))
    applicant = Applicant(ledger, until, made.name, profile.owner, made.related)
    changed = attacks()[attack].apply(applicant, seed)
    labels = history.drop("date", "description", "amount", "balance", "category", "counterparty")
    rows = changed.join(labels, on="row", how="left", validate="m:1", maintain_order="left").with_columns(
        pl.col("submission").fill_null(0), pl.col("held_out").fill_null(value=False)
    )
    later = account.transactions.filter(pl.col("date") > until)
    dressed = replace(account, transactions=pl.concat([rows.select(LABELLED.names()), later]))
    return replace(made, accounts=(dressed, *others))


def attributes_of(slug: str, made: Business, today: date) -> dict[str, Value]:
    """Return what a lender would know about the business: all that the example policies read."""
    wanted = PROFILES[slug]
    overdraft = Decimal(made.accounts[0].credit_limit or 0)
    lodged = {"bas_lodged_to": Decimal(last_activity_statement(today, wanted.quarters_late))}
    return {**USUAL, **lodged, "overdraft_limit": overdraft, **wanted.attributes}


def last_activity_statement(today: date, earlier: int = 0) -> int:
    """Return the last quarter whose activity statement is due, by its last month as `202606`, or some quarters before.

    They are due on 28 October, 28 February, 28 April and 28 July (ATO, quarterly lodgement).
    """
    due = {2: -2, 4: -1, 7: -1, 10: -1}  # from the month of lodgement to the quarter's last
    month = today.year * 12 + today.month - 1
    while (month % 12 + 1 not in due) or (month == today.year * 12 + today.month - 1 and today.day < 28):
        month -= 1
    last = month + due[month % 12 + 1] - 3 * earlier
    return last // 12 * 100 + last % 12 + 1
