"""Find the credits that may be a regular income, and the payers that pay regularly."""

from functools import cache

import polars as pl

from pipelines.enrichment.calendars import FIRST_DAY, LAST_DAY, look_up_calendar
from pipelines.enrichment.income.cadence import CADENCES, find_cadences
from pipelines.enrichment.recurrence import recurring_text
from pipelines.vocabulary.plans import AS_WRITTEN, collect
from pipelines.vocabulary.schemas import MONEY, most_frequent

# The numbers are our judgement.
MIN_DAYS = 3  # distinct days with a payment
MIN_SPAN_DAYS = 28  # from the first to the last
WHOLE_CENTS = 500  # rents go by five dollars
NEARLY_ALL = 0.9
_DAYS_PER_MONTH = 365.25 / 12
_MAD_TO_DEVIATION = 1.4826  # of a normal distribution (Rousseeuw and Croux, 1993)

PAYER = ("customer_number", "account_id", "payer")
_OF_INCOME = ("revenue", "other_income", "unknown")
# Credits that are never an income: takings of many customers, cash, money coming back, interest, sales.
_NOT_INCOME = (
    *("card_settlement", "subscription_receipt", "cash_deposit", "cheque_deposit"),
    *("returned_payment", "refund_received", "interest_received", "asset_sale"),
)
_NOT_PAYERS = ("own", "processor")
_GUESSES = ("learned", "fallback")
_IN_CASH = ("atm", "cash", "cheque")
_FACTS = (
    *("customer_number", "account_id", "account_name", "bsb", "date", "amount", "transaction_id"),
    *("category", "category_source", "description", "counterparty_name", "counterparty_kind"),
)

# A payer that pays regularly into one account.
PAYERS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "account_id": pl.Binary(),
        "payer": pl.String(),  # its `counterparty_group`, or the words that recur if it is not named
        "name": pl.String(),  # counterparty of its latest payment that names one
        "kind_of_payer": pl.String(),
        "category": pl.String(),  # the most frequent
        "source": pl.String(),  # the most frequent `category_source`
        "account_name": pl.String(),
        **{name: kind for name, kind in CADENCES.items() if name != "number"},
        "first_date": pl.Date(),
        "last_date": pl.Date(),
        "usual_amount": MONEY,  # the lower median
        "variation": pl.Float64(),  # robust coefficient of variation: 1.4826 × median absolute deviation / median
        "monthly": pl.Float64(),  # AUD a month, over the time in which it paid
        "is_whole": pl.Boolean(),  # nearly all payments are multiples of five dollars
    }
)


@cache
def is_possible_income() -> pl.Expr:
    """Match credits that may be an income. The caller has left out own transfers.

    A refund is no income if its words say that it is one. If `refund_received` follows only from a shop's name, it is
    an assumption, and the credit may be wages, because shops are employers, too. A text that names the number of an
    account, and nothing that a list or rule knows, is of a transfer between accounts, most likely the customer's own.
    """
    category, source = pl.col("category"), pl.col("category_source")
    assumed_refund = (category == "refund_received") & (source == "counterparty")
    allowed = pl.col("category_group").is_in(_OF_INCOME) & (~category.is_in(_NOT_INCOME) | assumed_refund)
    from_payer = ~pl.col("counterparty_kind").cast(pl.String).is_in(_NOT_PAYERS).fill_null(value=False)
    from_account = pl.col("other_account").is_not_null() & source.is_in(_GUESSES).fill_null(value=True)
    in_bank = ~pl.col("channel").cast(pl.String).is_in(_IN_CASH).fill_null(value=False)
    known = (pl.col("amount") > 0) & pl.col("date").is_between(FIRST_DAY, LAST_DAY)
    return known & allowed & from_payer & in_bank & ~from_account


def list_credits(rows: pl.LazyFrame) -> pl.DataFrame:
    """Return the credits that may be an income, each with its `payer`, sorted by payer and date.

    Args:
        rows: posted rows of TRANSACTIONS without own transfers.
    """
    possible = rows.filter(is_possible_income()).pipe(collect)
    payer = pl.coalesce("counterparty_group", recurring_text(possible))
    return possible.select(*_FACTS, payer=payer).sort(*PAYER, "date", "transaction_id")


def find_payers(of_payers: pl.DataFrame, through: pl.DataFrame) -> pl.DataFrame:
    """Return the payers that pay regularly (PAYERS), sorted.

    Args:
        of_payers: credits from `list_credits`.
        through: `customer_number`, `account_id` and `through`, the account's last day.
    """
    numbered = of_payers.lazy().with_columns(number=pl.struct(PAYER).rle_id())
    often = numbered.filter(_comes_often().over("number")).collect(engine="in-memory", optimizations=AS_WRITTEN)
    if often.is_empty():
        return PAYERS.to_frame()
    payments = (
        often.lazy()
        .select(*PAYER[:2], "number", day="date", calendar=look_up_calendar(pl.col("bsb")), cents=_as_cents())
        .join(through.lazy(), on=PAYER[:2], how="left", validate="m:1", maintain_order="left")
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )
    found = find_cadences(payments).lazy().join(_describe(often.lazy()), on="number", validate="1:1").sort(PAYER)
    in_order = found.select(pl.col(name).cast(kind) for name, kind in PAYERS.items())
    return in_order.collect(engine="in-memory", optimizations=AS_WRITTEN)


def _comes_often() -> pl.Expr:
    day = pl.col("date")
    return (day.n_unique() >= MIN_DAYS) & ((day.max() - day.min()).dt.total_days() >= MIN_SPAN_DAYS)


def _as_cents() -> pl.Expr:
    return pl.col("amount").to_physical().cast(pl.Int64)


def _describe(often: pl.LazyFrame) -> pl.LazyFrame:
    """Return what describes each payer (`number`), apart from its cadence."""
    day, cents = pl.col("date"), _as_cents()
    days = (day.max() - day.min()).dt.total_days()
    deviation = (cents - cents.median()).abs().median()
    return often.group_by("number").agg(
        pl.col(PAYER).last(),
        pl.col("account_name").drop_nulls().last(),  # a feed may leave it out
        first_date=day.min(),
        last_date=day.max(),
        name=pl.col("counterparty_name").drop_nulls().last(),
        kind_of_payer=most_frequent("counterparty_kind"),
        category=most_frequent("category"),
        source=most_frequent("category_source"),
        usual_amount=pl.col("amount").sort().get((pl.len() - 1) // 2),
        variation=deviation * _MAD_TO_DEVIATION / cents.median(),
        monthly=pl.col("amount").cast(pl.Float64).sum() * _DAYS_PER_MONTH / (days + days / (day.n_unique() - 1)),
        is_whole=(cents % WHOLE_CENTS == 0).mean() >= NEARLY_ALL,
    )
