"""Describe the lists derived from all of a customer's transactions: series, facilities, mentioned accounts.

These models are documentation; `api.core.derived` writes the rows.
"""

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import polars as pl
from pydantic import Field

from api.core.schemas.common import Counts, View
from api.intake.schemas.transactions import Money
from pipelines.enrichment.facilities.products import PRODUCTS
from pipelines.enrichment.facilities.status import Status
from pipelines.enrichment.facilities.summary import Method
from pipelines.enrichment.recurrence.description import SeriesStatus
from pipelines.vocabulary import schemas


def _list_values(kind: pl.Enum) -> tuple[str, ...]:
    return tuple(kind.categories)


KINDS, PRODUCT_NAMES = _list_values(schemas.CounterpartyKind), tuple(PRODUCTS)
SERIES_STATUSES, FACILITY_STATUSES, METHODS = _list_values(SeriesStatus), _list_values(Status), _list_values(Method)


class SeriesCounterpartyView(View):
    name: str | None = Field(description="Name in the latest payment that has one.")
    kind: Literal[KINDS] | None = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="own is the customer itself; null if unknown."
    )
    group: str | None = Field(description="Key of the counterparty, the same for all its spellings.")


class AmountChangeView(View):
    date: Annotated[date, Field(description="Date of the first payment of the new amount.")]
    from_: Money = Field(serialization_alias="from", description="AUD, before the change. Negative is money out.")
    to: Money = Field(description="AUD, since the change. Negative is money out.")


class SeriesView(View):
    """Payments between an account and a counterparty, in one direction, that follow a schedule.

    The account's last day with posted rows counts as today: payments due after it are not missed.
    """

    series_id: UUID = Field(description="Id in the `recurrence` of its transactions. Stable until the period changes.")
    account_id: UUID = Field(description="The account that pays or is paid.")
    direction: Literal["credit", "debit"] = Field(description="debit is money out.")
    counterparty: SeriesCounterpartyView = Field(description="Who is paid or pays.")
    description: str = Field(description="Clean description of its latest payment.")
    category: str = Field(description="Most frequent category of its payments, a slug of the taxonomy.")
    period: Literal[schemas.SERIES_PERIODS] = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="business_daily is every day on which banks are open; four_weekly is every 28 days."
    )
    anchor: str = Field(description="Day within the period, in words: Tuesday, last business day of the month.")
    status: Literal[SERIES_STATUSES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="ended: more due dates in a row were missed than the schedule allows."
    )
    first_date: date = Field(description="Date of its first payment.")
    last_date: date = Field(description="Date of its latest payment.")
    occurrences: int = Field(ge=0, description="Due dates paid.")
    missed: int = Field(ge=0, description="Unpaid due dates since the first payment; if ended, up to the last payment.")
    missed_dates: list[date] = Field(description="Due dates of the missed payments.")
    doubled: int = Field(ge=0, description="Due dates paid more than once.")
    regularity: float = Field(ge=0, le=1, description="Payments on time / (due dates + double payments); 4 decimals.")
    usual_amount: Money = Field(description="AUD, the lower median of the sizes. Negative is money out.")
    latest_amount: Money = Field(description="AUD. Negative is money out.")
    amount_changes: list[AmountChangeView] = Field(
        description="Changes from one lasting amount to another. Amounts that vary with each payment give none."
    )
    next_expected_date: date | None = Field(description="Null once it has ended.")
    next_expected_amount: Money | None = Field(description="AUD. Negative is money out. Null once it has ended.")


class FacilityView(View):
    """A credit facility derived from its payments. The last row of its accounts counts as today."""

    facility_id: UUID = Field(
        description="Id in the `facilityId` of its transactions. No transaction has the id of an inferred facility, "
        "which is derived from its first transaction."
    )
    lender_name: str | None = Field(description="Null if no text names the lender.")
    lender_id: str | None = Field(description="Id in the `lenderId` of a counterparty.")
    product: Literal[PRODUCT_NAMES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="tax_payment_plan is a plan with the tax office; card is a credit card."
    )
    account_ids: list[UUID] = Field(description="Accounts that it was paid into or is repaid from.")
    status: Literal[FACILITY_STATUSES] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="renewed: a new loan of the lender paid it out. likely_repaid: repayments stopped after enough "
        "was repaid. in_arrears: repayments stopped earlier, or recent ones were missed."
    )
    funding_date: date | None = Field(description="Date of the first draw. Null: drawn before the statements begin.")
    funding_amount: Money | None = Field(description="AUD, sum of all draws.")
    frequency: Literal[schemas.SERIES_PERIODS] | None = Field(  # pyrefly: ignore[invalid-literal]  # a tuple of its literals
        description="Frequency of repayments; null if they follow no schedule."
    )
    repayment_count: int = Field(ge=0, description="Repayments, without returned ones.")
    repayment_mean: Money | None = Field(description="AUD, per repayment.")
    repayment_spread: float | None = Field(
        ge=0, description="AUD, standard deviation of repayments, to the cent. Null for fewer than two."
    )
    first_repayment_date: date | None = Field(description="Date, ignoring returned repayments.")
    last_repayment_date: date | None = Field(description="Date, ignoring returned repayments.")
    missed_payments: int = Field(ge=0, description="Repayments that were returned or did not arrive.")
    missed_dates: list[date] = Field(description="Date of a returned repayment, or due date of a missing one.")
    repaid_total: Money = Field(description="AUD, paid from the accounts, less returned repayments.")
    inferred: bool = Field(
        description="Whether the facility is inferred from the pattern of its payments, because no text says what they "
        "are; or its repayments are inferred from a fall in card payouts. No metric, rating, rule or policy reads what "
        "is inferred."
    )
    inferred_confidence: float | None = Field(ge=0, le=1, description="Null if nothing was inferred.")
    withheld_share: float | None = Field(
        ge=0, le=1, description="Share of card takings that the lender withholds; four decimals. Null if not inferred."
    )
    withheld_estimate: Money | None = Field(
        description="AUD withheld from card takings since the funding. Null if not inferred."
    )
    estimated_remaining: Money | None = Field(description="AUD still to be repaid. Null if it cannot be estimated.")
    remaining_confidence: float = Field(ge=0, le=1, description="Confidence in the estimate, by our judgement.")
    remaining_method: Literal[METHODS] = Field(  # pyrefly: ignore[not-a-type]  # a tuple of its literals
        description="assumed_factor: draws times the product's usual factor, less repayments. amortised: draws less "
        "repayments, with daily interest. drawn_less_repaid: without interest. payments_ended, rolled_over: nothing "
        "is left. unknown: drawn before the statements begin."
    )
    remaining_low: Money | None = Field(description="AUD still to be repaid at least, if it is paid off now.")
    remaining_high: Money | None = Field(description="AUD still to be repaid at most, if it runs its term.")
    next_expected_date: date | None = Field(description="Date of the next repayment. Null once it has ended.")
    stacked_with: int = Field(ge=0, description="Other advances, loans and lines for working capital at the same time.")
    possibly_stacked_with: int = Field(ge=0, description="The same, inferred facilities included.")
    renewed_by: UUID | None = Field(description="The facility that replaced it.")


class MentionedAccountView(View):
    """An account that transfers mention and that was not supplied: evidence of missing statements."""

    account_number_masked: str | None = Field(description="Its last three or four digits; null if no text gives them.")
    name: str | None = Field(description="Its most frequent name in texts.")
    bank_name: str | None = Field(
        description="The bank of the BSB in texts. Not certain: a fintech's accounts have the BSB of its sponsor bank."
    )
    direction: Literal["in", "out", "both"] = Field(description="in: money comes from it; out: money goes to it.")
    transaction_count: int = Field(ge=1, description="Transactions that mention it.")
    total_in: Money = Field(description="AUD received from it, never negative.")
    total_out: Money = Field(description="AUD sent to it, never negative.")
    first_date: date = Field(description="Date of the first of these transactions.")
    last_date: date = Field(description="Date of the latest of these transactions.")


class SeriesListView(Counts):
    series: list[SeriesView] = Field(description="By account.")


class FacilityListView(Counts):
    facilities: list[FacilityView] = Field(
        description="By their start: the first draw or, without one, the first repayment."
    )


class MentionedAccountListView(Counts):
    mentioned_accounts: list[MentionedAccountView] = Field(
        description="By masked number, then by name; accounts without a number last."
    )
