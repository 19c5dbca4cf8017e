"""What follows from a customer's transactions together, as it is shown: series, facilities, accounts mentioned.

These models describe; `api.core.derived` makes the rows from frames.
"""

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import polars as pl
from pydantic import Field

from api.core.schemas.common import Counts, View
from api.intake.schemas.transactions import Money
from pipelines.enrichment.facilities.products import PRODUCTS
from pipelines.enrichment.facilities.summary import Method, Status
from pipelines.enrichment.recurrence.description import SeriesStatus
from pipelines.vocabulary import schemas


def _of(kind: pl.Enum) -> tuple[str, ...]:
    return tuple(kind.categories)


KINDS, PRODUCT_NAMES = _of(schemas.CounterpartyKind), tuple(PRODUCTS)
SERIES_STATUSES, FACILITY_STATUSES, METHODS = _of(SeriesStatus), _of(Status), _of(Method)


class SeriesCounterpartyView(View):
    name: str | None = Field(description="Of the latest payment that names one.")
    kind: Literal[KINDS] | None = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="own is the customer itself. Null when unknown."
    )
    group: str | None = Field(description="The same for one counterparty in all its spellings.")


class AmountChangeView(View):
    date: Annotated[date, Field(description="Of the first payment of the new amount.")]
    from_: Money = Field(serialization_alias="from", description="AUD, paid until then. Negative is money out.")
    to: Money = Field(description="AUD, paid since then. Negative is money out.")


class SeriesView(View):
    """Payments between one account and one counterparty, in one direction, that keep to a schedule.

    Seen from the account's last booked day: what is due after it is not missed.
    """

    series_id: UUID = Field(description="As in `recurrence` of its transactions. Stable while its period stays.")
    account_id: UUID = Field(description="The account that pays or is paid.")
    direction: Literal["credit", "debit"] = Field(description="debit is money out.")
    counterparty: SeriesCounterpartyView
    description: str = Field(description="Clean description of its latest payment.")
    category: str = Field(description="Slug of the taxonomy: the most frequent of its payments.")
    period: Literal[schemas.SERIES_PERIODS] = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="business_daily is every day on which banks are open; four_weekly is every 28 days."
    )
    anchor: str = Field(description="When within the period, in words: Tuesday, last business day of the month.")
    status: Literal[SERIES_STATUSES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="ended: more due dates in a row than its schedule allows have passed without a payment."
    )
    first_date: date = Field(description="Of its first payment.")
    last_date: date = Field(description="Of its latest payment.")
    occurrences: int = Field(ge=0, description="Due dates paid.")
    missed: int = Field(ge=0, description="Due dates not paid since the first payment, until the last once it ended.")
    missed_dates: list[date] = Field(description="When these payments were expected.")
    doubled: int = Field(ge=0, description="Due dates paid more than once.")
    regularity: float = Field(ge=0, le=1, description="Payments on time, of due dates and doubles; four decimals.")
    usual_amount: Money = Field(description="AUD, the lower median. Negative is money out.")
    latest_amount: Money = Field(description="AUD. Negative is money out.")
    amount_changes: list[AmountChangeView] = Field(
        description="From one amount that lasted to another; amounts that vary from payment to payment make none."
    )
    next_expected_date: date | None = Field(description="Null once it has ended.")
    next_expected_amount: Money | None = Field(description="AUD. Negative is money out. Null once it has ended.")


class FacilityView(View):
    """Credit as its fundings and repayments show it. Seen from the last row of the accounts that serve it."""

    facility_id: UUID = Field(description="As in `facilityId` of its transactions.")
    lender_name: str | None = Field(description="Null where no text names one.")
    lender_id: str | None = Field(description="As in `lenderId` of a counterparty.")
    product: Literal[PRODUCT_NAMES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="tax_payment_plan is one with the tax office; card is a credit card."
    )
    account_ids: list[UUID] = Field(description="Accounts that it was paid into or is repaid from.")
    status: Literal[FACILITY_STATUSES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="renewed: the lender lent again and this was paid out by it. likely_repaid: repayments stopped "
        "after enough was repaid. in_arrears: they stopped before, or of recent ones some are missing."
    )
    funding_date: date | None = Field(description="Of the first draw. Null: drawn before the statements begin.")
    funding_amount: Money | None = Field(description="AUD, all that was drawn.")
    frequency: Literal[schemas.SERIES_PERIODS] | None = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="Of repayments. Null when they keep to no rhythm."
    )
    repayment_count: int = Field(ge=0, description="Repayments that were not returned.")
    repayment_mean: Money | None = Field(description="AUD, per repayment.")
    repayment_spread: float | None = Field(
        ge=0, description="AUD, standard deviation of repayments, to the cent. Null for fewer than two."
    )
    first_repayment_date: date | None = Field(description="Of those that were not returned.")
    last_repayment_date: date | None = Field(description="Of those that were not returned.")
    missed_payments: int = Field(ge=0, description="Repayments that bounced or did not come.")
    missed_dates: list[date] = Field(description="A returned repayment's own date, else the date expected.")
    repaid_total: Money = Field(description="AUD, seen to leave the accounts, less what came back.")
    inferred: bool = Field(description="Repayments are not seen, but follow from a fall in card payouts.")
    inferred_confidence: float | None = Field(ge=0, le=1, description="Null where nothing was inferred.")
    withheld_share: float | None = Field(
        ge=0, le=1, description="Of card takings, kept back by the lender, four decimals. Null where not inferred."
    )
    withheld_estimate: Money | None = Field(
        description="AUD, kept back of card takings since the funding. Null where not inferred."
    )
    estimated_remaining: Money | None = Field(description="AUD, still to be repaid. Null where nothing can be said.")
    remaining_confidence: float = Field(ge=0, le=1, description="How far to trust the estimate, by judgement.")
    remaining_method: Literal[METHODS] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="assumed_factor: drawn times the product's usual factor, less repaid. amortised: drawn less "
        "repaid, with interest to the day. drawn_less_repaid: without interest. payments_ended, rolled_over: nothing "
        "is left. unknown: drawn before the statements begin."
    )
    next_expected_date: date | None = Field(description="Of the next repayment. Null once it has ended.")
    stacked_with: int = Field(
        ge=0, description="Other advances, loans and lines for working capital that ran at the same time."
    )
    renewed_by: UUID | None = Field(description="The facility that took its place.")


class MentionedAccountView(View):
    """An account that transfers speak of and that was not supplied: evidence of missing statements."""

    account_number_masked: str | None = Field(description="Its last three or four digits. Null where texts give none.")
    name: str | None = Field(description="What texts call it most often.")
    bank_name: str | None = Field(
        description="The bank whose BSB texts print. Evidence, no proof: a fintech's accounts bear its sponsor's."
    )
    direction: Literal["in", "out", "both"] = Field(description="in: money comes from there; out: it goes there.")
    transaction_count: int = Field(ge=1, description="Transactions that speak of it.")
    total_in: Money = Field(description="AUD that came from there, never negative.")
    total_out: Money = Field(description="AUD that went there, never negative.")
    first_date: date = Field(description="Of the first of these transactions.")
    last_date: date = Field(description="Of the latest of them.")


class SeriesListView(Counts):
    series: list[SeriesView]


class FacilityListView(Counts):
    facilities: list[FacilityView]


class MentionedAccountListView(Counts):
    mentioned_accounts: list[MentionedAccountView]
