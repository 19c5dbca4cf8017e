"""The models of the API, as types of JSON.

Made from the OpenAPI document by `make generated`: don't edit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, NotRequired, TypedDict


class AccountView(TypedDict):
    accountId: str
    accountName: str | None
    bsb: str | None
    accountNumberMasked: str | None
    bankName: str | None
    accountType: Literal["transaction", "savings", "credit_card", "loan", "term_deposit", "other"] | None


class ActionListView(TypedDict):
    actions: list[str]


class ActorListView(TypedDict):
    actors: list[ActorView]


class ActorView(TypedDict):
    who: str
    kind: ActorKind
    name: str


class Aggregate(TypedDict):
    unreconciled: NotRequired[Unreconciled | None]
    tables: list[AggregateTable]


class AggregateReportView(TypedDict):
    status: ReportStatus
    failed: bool
    error: NoteView | None
    generatedAt: str | None
    asOf: str | None
    dataThrough: str | None
    dataVersion: int | None
    reportVersion: int | None
    data: Aggregate | None


class AggregateTable(TypedDict):
    id: str
    name: str
    hierarchy: str
    type: str
    values: list[Any]


class AlertActionView(TypedDict):
    action: ItemAction
    until: str | None
    reason: str | None
    assignee: str | None
    dateMade: str
    madeBy: str


class AlertListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    alerts: list[AlertSummaryView]


class AlertRuleView(TypedDict):
    code: str
    message: str
    severity: Literal["info", "warning", "critical"]
    recommendedActions: list[str]


class AlertSummaryView(TypedDict):
    matchId: str
    ruleset: RulesetNameView
    customerId: str
    customerName: str | None
    dateMatched: str
    rules: list[AlertRuleView]
    state: ItemState
    snoozedUntil: str | None
    assignee: str | None


class AlertView(TypedDict):
    matchId: str
    ruleset: RulesetNameView
    customerId: str
    customerName: str | None
    dateMatched: str
    rules: list[MatchRuleView]
    state: ItemState
    snoozedUntil: str | None
    assignee: str | None
    history: list[AlertActionView]


class AllEvaluationsView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    evaluations: list[EvaluationSummaryView]
    hasMore: bool


class AlternativeView(TypedDict):
    category: str
    confidence: Decimal | int


AmountChangeView = TypedDict("AmountChangeView", {"date": "str", "from": "Decimal | int", "to": "Decimal | int"})


class ApprovalListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    approvals: list[ApprovalView]


class ApprovalView(TypedDict):
    """A requested action, and what became of the request."""

    approvalId: str
    kind: ApprovalKind
    status: ApprovalStatus
    subject: dict[str, str]
    request: Any
    requestedBy: str
    requestedAt: str
    decidedBy: str | None
    decidedAt: str | None
    reason: str | None


class AttachmentListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    attachments: list[AttachmentView]


class AttachmentView(TypedDict):
    attachmentId: str
    size: int
    sha256: str
    dateCreated: str
    createdBy: str
    fileName: str | None
    dateDeleted: str | None
    deletedBy: str | None


class AttemptView(TypedDict):
    attemptId: str
    dateStarted: str
    durationMs: int
    dnsMs: int | None
    connectMs: int | None
    tlsMs: int | None
    firstByteMs: int | None
    statusCode: int | None
    error: str | None
    response: str | None


class AttributeChangeView(TypedDict):
    name: str
    value: str | Decimal | int | bool | None
    source: str | None
    evidenceDate: str | None
    expiresAt: str | None
    dateSet: str
    setBy: str


class AttributeHistoryView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    attributes: dict[str, AttributeView]
    history: list[AttributeChangeView]


class AttributeReadView(TypedDict):
    name: str
    value: Any
    source: Literal["stored", "overridden"]


class AttributeView(TypedDict):
    """The current value of an attribute."""

    value: str | Decimal | int | bool | None
    source: str | None
    evidenceDate: str | None
    expiresAt: str | None
    available: bool
    dateSet: str
    setBy: str


class AttributesView(TypedDict):
    attributes: dict[str, AttributeView]


class AxisView(TypedDict):
    kind: Literal["metric", "attribute", "input"]
    name: str
    values: list[Decimal | int]


class BacktestDayView(TypedDict):
    """The comparison as of one day."""

    asOf: str
    customers: int
    outcomeChanged: int
    limitsChanged: int
    outcomes: list[OutcomeView]
    transitions: list[TransitionView]
    limits: list[ProductLimitsView]
    steps: StepsView
    rules: RulesView
    changedBy: list[ChangingRuleView]
    causes: CausesView


class BacktestListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    backtests: list[BacktestView]


class BacktestResultView(TypedDict):
    jobId: str
    status: JobStatus
    version: int
    against: Against
    againstVersion: int | None
    asOf: list[str]
    knowledge: Knowledge
    inputs: dict[str, str | Decimal | int | bool]
    attributes: dict[str, str | Decimal | int | bool] | None
    customersNamed: int | None
    knowsOutcomes: bool
    customersTotal: int | None
    customersDone: int
    customersFailed: int
    dateCreated: str
    createdBy: str
    days: list[BacktestDayView] | None
    coverage: CoverageSidesView | None


class BacktestView(TypedDict):
    """The request and the progress of a backtest."""

    jobId: str
    status: JobStatus
    version: int
    against: Against
    againstVersion: int | None
    asOf: list[str]
    knowledge: Knowledge
    inputs: dict[str, str | Decimal | int | bool]
    attributes: dict[str, str | Decimal | int | bool] | None
    customersNamed: int | None
    knowsOutcomes: bool
    customersTotal: int | None
    customersDone: int
    customersFailed: int
    dateCreated: str
    createdBy: str


class BandView(TypedDict):
    upTo: int | None
    before: int
    after: int


class BoxView(TypedDict):
    """A rectangle on a page, in points from the top left corner of the page as displayed."""

    page: int
    left: Decimal | int
    top: Decimal | int
    right: Decimal | int
    bottom: Decimal | int


class CapView(TypedDict):
    """A cap of a limit, in the policy's words."""

    code: str
    message: str


class CategoryCountView(TypedDict):
    category: str
    count: int


class CategoryView(TypedDict):
    slug: str
    name: str
    group: str
    meaning: str
    sign: Literal["credit", "debit", "either"]
    line: Literal[
        "revenue",
        "other_income",
        "cost_of_sales",
        "payroll",
        "premises",
        "operations",
        "vehicle_travel",
        "tax",
        "finance_costs",
        "financing",
        "investing",
        "owner",
        "none",
        "unallocated",
    ]
    countsAsRevenue: bool
    essential: bool


class CauseView(TypedDict):
    about: str | None
    operator: str
    name: str | None
    cause: str
    customers: int


class CausesView(TypedDict):
    before: list[CauseView] | None
    after: list[CauseView] | None


class ChallengerView(TypedDict):
    version: int
    percent: int


class ChangeView(TypedDict):
    value: Decimal | int
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]


class ChangedCustomerView(TypedDict):
    customerId: str
    asOf: str
    change: Literal["outcome", "limits"]
    before: Literal["proceed", "conditional", "blocked", "indeterminate"]
    after: Literal["proceed", "conditional", "blocked", "indeterminate"]
    beforeStep: str | None
    afterStep: str | None
    beforeRules: list[str]
    afterRules: list[str]
    changedBy: list[str]
    limits: list[LimitPairView]
    defaulted: bool | None


class ChangedListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    customers: list[ChangedCustomerView]


class ChangedSubscription(TypedDict):
    maxRetries: NotRequired[int]
    pauseAfterFailures: NotRequired[int | None]


class ChangedTransactionView(TypedDict):
    """A transaction before the correction."""

    transactionId: str
    date: str
    description: str
    amount: Decimal | int
    category: str
    counterparty: str | None


class ChangedUser(TypedDict):
    name: NotRequired[str]
    role: NotRequired[Literal["viewer", "analyst", "approver", "admin"]]


class ChangingRuleView(TypedDict):
    code: str | None
    customers: int


class CheckedPolicyView(TypedDict):
    faults: list[FindingView]
    warnings: list[FindingView]


class CheckedRulesetView(TypedDict):
    faults: list[FindingView]
    warnings: list[FindingView]


class ClientTransactionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    transactions: list[TransactionView]
    nextCursor: NotRequired[str | None]


class ColleagueListView(TypedDict):
    colleagues: list[ColleagueView]


class ColleagueView(TypedDict):
    """A user of the client who has the scope `customer:work`."""

    userId: str
    name: str
    role: str


class ComparisonView(TypedDict):
    """A comparison in the condition. Each side has its source and value and, if computed, the parts."""

    operator: str
    left: Any
    right: Any
    holds: bool | None


class Completeness(TypedDict):
    unreconciled: NotRequired[Unreconciled | None]
    summary: CompletenessSummary
    reasons: list[CompletenessReason]
    resolvedTogether: ResolvedTogether


class CompletenessReason(TypedDict):
    """Why a reader can't fully rely on the data, and what would resolve it."""

    code: str
    subject: str | None
    message: str
    settledBy: str
    effect: Decimal | int | None


class CompletenessReportView(TypedDict):
    status: ReportStatus
    failed: bool
    error: NoteView | None
    generatedAt: str | None
    asOf: str | None
    dataThrough: str | None
    dataVersion: int | None
    reportVersion: int | None
    data: Completeness | None


class CompletenessSummary(TypedDict):
    completenessScore: Decimal | int
    completenessTier: str
    totalMissingness: Decimal | int


class ComputedLimitView(TypedDict):
    kind: Literal["computed"]
    productId: str
    amount: Decimal | int
    capped: bool
    uncappedAmount: NotRequired[Decimal | int | None]
    cappedBy: NotRequired[CapView | None]


class ContributionView(TypedDict):
    """A transaction and its contribution to the figure."""

    transactionId: str
    clientTransactionId: str | None
    customerId: str
    jobId: str
    account: AccountView
    date: str
    description: str
    cleanDescription: str
    amount: Decimal | int
    currency: Literal["AUD"]
    direction: Literal["credit", "debit"]
    balance: Decimal | int | None
    balanceVerified: bool | None
    status: Literal["posted", "pending"]
    channel: str
    reference: str | None
    location: str | None
    cardLastFour: str | None
    effectiveDate: str | None
    foreignAmount: Decimal | int | None
    foreignCurrency: str | None
    otherAccountMasked: str | None
    category: str
    categoryGroup: str
    confidence: Decimal | int
    categorySource: str
    categoryBasis: str | None
    alternatives: list[AlternativeView]
    counterparty: CounterpartyView
    intermediaries: list[str]
    relatedParty: str | None
    isTransfer: bool
    transferPairId: str | None
    recurrence: RecurrenceView | None
    facilityId: str | None
    flags: list[str]
    revision: int
    enrichmentVersion: int
    contribution: Decimal | int | None


class CorrectionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    corrections: list[CorrectionView]


class CorrectionView(TypedDict):
    """A correction as it was made."""

    correctionId: str
    transactionId: str | None
    counterparty: str | None
    pattern: str | None
    direction: Literal["credit", "debit"] | None
    category: str | None
    counterpartyName: str | None
    scope: Literal["customer", "client"]
    transactionCount: int
    dateMade: str
    madeBy: str
    dateRevoked: str | None
    revokedBy: str | None


class CountedView(TypedDict):
    customers: int
    judged: int
    defaulted: int
    badRate: Decimal | int | None


class CounterpartyView(TypedDict):
    name: str | None
    kind: str | None
    lenderId: str | None
    abn: str | None
    group: str | None


class CoverageSidesView(TypedDict):
    before: CoverageView | None
    after: CoverageView | None


class CoverageView(TypedDict):
    """Which rules of a version were reached, and which decided, over all days of a backtest."""

    decisions: int
    byDefault: int
    rules: list[RuleCoverageView]
    neverReached: list[str]
    neverMatched: list[str]


class CreatedCustomerView(TypedDict):
    customerId: str
    abn: str
    abnChecksumValid: bool
    name: str | None
    reference: str | None
    state: str | None
    dateCreated: str
    created: bool


class CreatedSubscriptionView(TypedDict):
    webhookSubscriptionId: str
    eventType: str
    webhookUrl: str
    customerIds: list[str]
    dateCreated: str
    maxRetries: int
    pauseAfterFailures: int | None
    datePaused: str | None
    pausedBy: str | None
    failureStreak: int
    dateLastDelivered: str | None
    dateLastFailed: str | None
    secret: str
    isCatchAll: bool
    isPaused: bool


class CustomerListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    customers: list[CustomerView]


class CustomerSummaryListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    customers: list[CustomerSummaryView]
    nextCursor: str | None
    hasMore: bool


class CustomerSummaryView(TypedDict):
    customerId: str
    abn: str
    abnChecksumValid: bool
    name: str | None
    reference: str | None
    state: str | None
    dateCreated: str
    rating: str | None
    riskValue: Decimal | int | None
    calibration: str | None
    completenessScore: Decimal | int | None
    completenessTier: str | None
    reportStatus: ReportStatus
    unfinishedJobs: bool
    dataThrough: str | None
    lastSubmissionAt: str | None
    transactionCount: int
    lastDecision: LastDecisionView | None
    openAlerts: int


class CustomerTransactionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    transactions: list[TransactionView]
    totals: TotalsView


class CustomerView(TypedDict):
    customerId: str
    abn: str
    abnChecksumValid: bool
    name: str | None
    reference: str | None
    state: str | None
    dateCreated: str


class DecisionAssigneeView(TypedDict):
    """Who works on a decision."""

    assignee: str | None
    isWaiting: bool


class DecisionOverrideView(TypedDict):
    """A decision by a person that overrides the evaluation's outcome."""

    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    reason: str
    decidedBy: str
    at: str
    who: str


class DeclaredView(TypedDict):
    name: str
    kind: Literal["string", "decimal", "boolean"]
    meaning: str
    personal: bool
    format: Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"] | None
    texts: list[str]


class DeliveryListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    deliveries: list[DeliveryView]


class DeliveryView(TypedDict):
    deliveryId: str
    eventId: str
    eventType: str
    webhookSubscriptionId: str
    status: DeliveryStatus
    dateCreated: str
    dateOfRetry: str | None
    isTest: bool
    attempts: list[AttemptView]


DiffView = TypedDict(
    "DiffView",
    {
        "from": "int",
        "to": "int",
        "fromAsOf": "str",
        "asOf": "str",
        "fromKnownAt": "str | None",
        "knownAt": "str | None",
        "rowsDatedBetween": "int",
        "rowsAdded": "int",
        "rowsGone": "int",
        "rowsCorrected": "int",
        "rowsReenriched": "int",
        "headlines": "list[MovedHeadlineView]",
        "figures": "list[MovedFigureView]",
    },
)


class DuplicateRowListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    duplicates: list[DuplicateRowView]


class DuplicateRowView(TypedDict):
    index: int
    transactionId: str


class EnrichmentCompletedEvent(TypedDict):
    eventType: Literal["job.enrichment.completed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    enrichedCount: int
    duplicateCount: int


class EnrichmentFailedEvent(TypedDict):
    eventType: Literal["job.enrichment.failed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    error: NoteView | None


class EntryView(TypedDict):
    at: str
    who: str
    action: str
    resource: dict[str, str | list[str]]
    outcome: Outcome
    times: int
    requestId: str | None


class ErasedUserView(TypedDict):
    """A user that was erased."""

    userId: str


class EvaluationListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    evaluations: list[EvaluationSummaryView]


class EvaluationSummaryView(TypedDict):
    evaluationId: str
    customerId: str
    slug: str
    policyName: str
    policyVersion: int
    at: str
    who: str
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    overriddenOutcome: Literal["proceed", "conditional", "blocked", "indeterminate"] | None
    whatIf: bool
    dataVersion: int
    asOf: str


class EvaluationView(TypedDict):
    verdict: VerdictView
    computedLimits: list[ComputedLimitView | IndeterminateLimitView]
    products: list[ProductView]
    indicators: list[IndicatorView]
    metrics: list[NamedMetricView]
    attributes: list[AttributeReadView]
    evaluationId: str
    policyVersion: int
    dataVersion: int
    pendingJobs: list[str]
    whatIf: bool


class ExtractionCompletedEvent(TypedDict):
    eventType: Literal["job.extraction.completed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    extractedCount: int
    duplicateCount: int


class ExtractionFailedEvent(TypedDict):
    eventType: Literal["job.extraction.failed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    error: NoteView | None


class FacilityListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    facilities: list[FacilityView]


class FacilityView(TypedDict):
    """A credit facility derived from its payments. The last row of its accounts counts as today."""

    facilityId: str
    lenderName: str | None
    lenderId: str | None
    product: Literal[
        "term_loan",
        "line_of_credit",
        "cash_advance",
        "invoice_finance",
        "asset_finance",
        "mortgage",
        "card",
        "trade_credit",
        "director_loan",
        "tax_payment_plan",
        "payday_credit",
    ]
    accountIds: list[str]
    status: Literal["active", "likely_repaid", "in_arrears", "renewed"]
    fundingDate: str | None
    fundingAmount: Decimal | int | None
    frequency: (
        Literal[
            "business_daily", "weekly", "fortnightly", "four_weekly", "twice_monthly", "monthly", "quarterly", "yearly"
        ]
        | None
    )
    repaymentCount: int
    repaymentMean: Decimal | int | None
    repaymentSpread: Decimal | int | None
    firstRepaymentDate: str | None
    lastRepaymentDate: str | None
    missedPayments: int
    missedDates: list[str]
    repaidTotal: Decimal | int
    inferred: bool
    inferredConfidence: Decimal | int | None
    withheldShare: Decimal | int | None
    withheldEstimate: Decimal | int | None
    estimatedRemaining: Decimal | int | None
    remainingConfidence: Decimal | int
    remainingMethod: Literal[
        "assumed_factor", "amortised", "drawn_less_repaid", "payments_ended", "rolled_over", "unknown"
    ]
    remainingLow: Decimal | int | None
    remainingHigh: Decimal | int | None
    nextExpectedDate: str | None
    stackedWith: int
    possiblyStackedWith: int
    renewedBy: str | None


class Fault(TypedDict):
    """One fault of a request: its place (a JSON pointer), a stable code, and a message."""

    pointer: str
    code: str
    message: str


class FindingView(TypedDict):
    pointer: str
    code: str
    message: str


class FiredRuleView(TypedDict):
    code: str
    fired: int


class FiringListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    firings: list[FiringView]


class FiringView(TypedDict):
    customerId: str
    date: str
    code: str
    values: list[ReadValueView]


class FourEyesView(TypedDict):
    actions: list[ApprovalKind]


class GridLimitView(TypedDict):
    productId: str
    amounts: list[list[Decimal | int | None]]


class GridView(TypedDict):
    """Outcomes and limits: a row for each value of `down`, a column for each value of `across`."""

    across: AxisView
    down: AxisView
    outcomes: list[list[Literal["proceed", "conditional", "blocked", "indeterminate"]]]
    limits: list[GridLimitView]


class GroupView(TypedDict):
    slug: str
    name: str


class IndeterminateLimitView(TypedDict):
    kind: Literal["indeterminate"]
    productId: str
    reasons: list[ReasonView]


class IndicatorView(TypedDict):
    kind: Literal["reading"]
    metricId: str
    value: Decimal | int
    format: Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"]


class InvitedUserView(TypedDict):
    userId: str
    email: str
    name: str
    role: Role
    dateCreated: str
    disabledAt: str | None
    lockedUntil: str | None
    link: str
    linkExpiresAt: str


class IssuedKeyView(TypedDict):
    keyId: str
    hint: str
    scopes: list[str]
    dateCreated: str
    expiresAt: str | None
    revokedAt: str | None
    rotatedTo: str | None
    key: str


class JobCompletedEvent(TypedDict):
    eventType: Literal["job.completed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    totalProcessedTransactions: int
    totalReceivedTransactions: int


class JobFailedEvent(TypedDict):
    eventType: Literal["job.failed"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    jobId: str
    abn: str
    jobType: str
    error: NoteView | None


class JobListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    jobs: list[JobView]


class JobStatusView(TypedDict):
    """A job with its first rejected rows."""

    jobId: str
    customerId: str | None
    flow: Flow
    withdraws: str | None
    status: JobStatus
    totalReceivedTransactions: int
    totalProcessedTransactions: int | None
    enrichedCount: int | None
    duplicateCount: int | None
    rejectedCount: int | None
    warnings: list[NoteView]
    error: NoteView | None
    dateCreated: str
    createdBy: str | None
    dateStarted: str | None
    dateCompleted: str | None
    errors: list[RejectedRowView]
    jobType: Flow
    stages: list[StageView]


class JobView(TypedDict):
    """A job as lists show it, without its rejected rows."""

    jobId: str
    customerId: str | None
    flow: Flow
    withdraws: str | None
    status: JobStatus
    totalReceivedTransactions: int
    totalProcessedTransactions: int | None
    enrichedCount: int | None
    duplicateCount: int | None
    rejectedCount: int | None
    warnings: list[NoteView]
    error: NoteView | None
    dateCreated: str
    createdBy: str | None
    dateStarted: str | None
    dateCompleted: str | None
    jobType: Flow
    stages: list[StageView]


class KeyListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    keys: list[KeyView]


class KeyView(TypedDict):
    """An API key without its text."""

    keyId: str
    hint: str
    scopes: list[str]
    dateCreated: str
    expiresAt: str | None
    revokedAt: str | None
    rotatedTo: str | None


class LastDecisionView(TypedDict):
    evaluationId: str
    slug: str
    at: str
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]


class LibraryItemView(TypedDict):
    slug: str
    name: str
    about: str


class LibraryRulesetView(TypedDict):
    slug: str
    name: str
    about: str
    document: Any
    text: str


class LibraryView(TypedDict):
    rulesets: list[LibraryItemView]


class LimitPairView(TypedDict):
    product: str
    before: Decimal | int | None
    after: Decimal | int | None


class LimitSumView(TypedDict):
    product: str
    before: SumView
    after: SumView


class LineageInputView(TypedDict):
    """An input of a formula."""

    name: str
    value: Any
    format: str | None
    figure: str | None


class LineageView(TypedDict):
    """The lineage of a figure."""

    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    kind: str
    figure: str
    value: Any
    format: str | None
    by: Literal["sum", "formula"]
    words: str | None
    inputs: list[LineageInputView]
    total: Decimal | int | None
    asOf: str
    dataVersion: int
    reportVersion: int
    transactions: list[ContributionView]


class LinkView(TypedDict):
    """A link that signs a user in once."""

    userId: str
    link: str
    expiresAt: str


class LiveView(TypedDict):
    status: Literal["live"]


class MadeCorrectionView(TypedDict):
    preview: bool
    correctionId: str | None
    jobId: str | None
    transactionCount: int
    changedCount: int
    customerCount: int
    byCategory: list[CategoryCountView]
    examples: list[ChangedTransactionView]
    similar: SimilarView | None


class MatchListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    matches: list[MatchView]


class MatchRuleView(TypedDict):
    code: str
    message: str
    severity: Literal["info", "warning", "critical"]
    recommendedActions: list[str]
    values: list[ReadValueView]
    comparisons: list[ComparisonView]


class MatchView(TypedDict):
    matchId: str
    ruleset: RulesetNameView
    version: int
    customerId: str
    dateMatched: str
    asOf: str
    dataVersion: int
    cause: Cause
    rules: list[MatchRuleView]


class MatchedRuleView(TypedDict):
    code: str
    message: str
    customerMessage: str
    metricIds: list[str]


class MentionedAccountListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    mentionedAccounts: list[MentionedAccountView]


class MentionedAccountView(TypedDict):
    """An account that transfers mention and that was not supplied: evidence of missing statements."""

    accountNumberMasked: str | None
    name: str | None
    bankName: str | None
    direction: Literal["in", "out", "both"]
    transactionCount: int
    totalIn: Decimal | int
    totalOut: Decimal | int
    firstDate: str
    lastDate: str


class MetricListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    metrics: list[MetricView]


class MetricView(TypedDict):
    metricId: str
    slug: str
    name: str
    meaning: str
    unit: Literal["AUD", "AUD per month", "ratio", "count", "per month", "days", "months"]
    format: Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"]
    direction: Literal["higher_is_better", "lower_is_better", "neutral"]
    window: str
    historyDays: int
    historyMonths: int
    freshDays: int | None
    definition: Any


MovedFigureView = TypedDict(
    "MovedFigureView",
    {
        "report": "str",
        "figure": "str",
        "fromFigure": "str | None",
        "key": "str | None",
        "from": "Any",
        "to": "Any",
        "causes": "list[Literal['date', 'rows', 'correction', 'enrichment']]",
    },
)
MovedHeadlineView = TypedDict(
    "MovedHeadlineView",
    {"name": "str", "report": "str", "figure": "str | None", "fromFigure": "str | None", "from": "Any", "to": "Any"},
)


class NamedMetricView(TypedDict):
    metricId: str
    name: str


class NewAttachmentView(TypedDict):
    """A stored attachment, without its name: responses stored for repeated requests would keep a deleted name."""

    attachmentId: str
    size: int
    sha256: str
    dateCreated: str
    createdBy: str


class NewCustomer(TypedDict):
    abn: str
    name: NotRequired[str | None]
    reference: NotRequired[str | None]
    state: NotRequired[str | None]


class NewKey(TypedDict):
    scopes: list[
        Literal[
            "customer:riskscore",
            "customer:reports",
            "customer:completeness",
            "customer:attributes",
            "customer:delete",
            "transactions:enrich",
            "transactions:extract",
            "transactions:aggregate",
            "decision-policies:read",
            "decision-policies:evaluate",
            "decision-policies:write",
            "decision-policies:publish",
            "decision-policies:override",
            "monitoring:rules",
            "webhooks:subscribe",
            "customer:work",
            "access:manage",
        ]
    ]
    expiresAt: NotRequired[str | None]


class NewNoteView(TypedDict):
    """A stored note, without its text: responses stored for repeated requests would keep a deleted text."""

    noteId: str
    dateCreated: str
    createdBy: str


class NewSandboxCustomer(TypedDict):
    """A synthetic business to make."""

    profile: Literal["healthy", "stacked", "insolvent", "seasonal", "dressed_up", "new", "payroll_stress", "tax_plan"]
    name: NotRequired[str | None]
    abn: NotRequired[str | Literal[""] | None]
    reference: NotRequired[str | None]
    months: NotRequired[int]


class NewSubscription(TypedDict):
    eventType: Literal[
        "job.completed",
        "job.failed",
        "job.extraction.completed",
        "job.extraction.failed",
        "job.enrichment.completed",
        "job.enrichment.failed",
        "monitoring.rule.triggered",
    ]
    webhookUrl: str
    customerIds: NotRequired[list[str] | None]
    maxRetries: NotRequired[int]
    pauseAfterFailures: NotRequired[int | None]


class NewUser(TypedDict):
    email: str
    name: str
    role: Literal["viewer", "analyst", "approver", "admin"]


class NoteListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    notes: list[WrittenNoteView]


class NoteView(TypedDict):
    """A warning or an error: a stable code and a message."""

    code: str
    message: str


class OutcomeView(TypedDict):
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    before: CountedView
    after: CountedView


class PartView(TypedDict):
    """The state of a part that the service needs."""

    ok: bool
    reason: NotRequired[str | None]


class PartiesView(TypedDict):
    relatedParties: list[PartyView]


class PartyHistoryView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    relatedParties: list[PartyView]
    history: list[PartyListView]


class PartyListView(TypedDict):
    relatedParties: list[PartyView]
    dateSet: str
    setBy: str


class PartyView(TypedDict):
    name: str
    abn: str | None
    abnChecksumValid: bool | None
    role: str


class PeriodView(TypedDict):
    period: Literal["24h", "7d"]
    since: str
    attempts: int
    delivered: int
    failed: int
    byError: dict[str, int]
    byStatusCode: dict[str, int]
    durationP50Ms: int | None
    durationP95Ms: int | None


class PolicyCoverageView(TypedDict):
    """The coverage of a version by the newest finished backtest in which it decided."""

    version: int
    backtestId: str | None
    asOf: list[str]
    coverage: CoverageView | None


PolicyDiffView = TypedDict("PolicyDiffView", {"from": "int", "to": "int", "changes": "list[str]"})


class PolicyListView(TypedDict):
    items: list[PolicyView]
    page: int
    pageSize: int
    totalCount: int


class PolicyRuleCountView(TypedDict):
    step: str
    code: str
    matched: int
    decisive: int
    undecidable: int


class PolicySchemaView(TypedDict):
    schema: Any


class PolicyStateView(TypedDict):
    policyId: str
    slug: str
    isArchived: bool
    challenger: ChallengerView | None


class PolicyVersionView(TypedDict):
    """A complete version. `document` is what to edit and save again."""

    version: int
    state: PolicyState
    fingerprint: str
    acknowledged: list[FindingView]
    dateCreated: str
    createdBy: str
    datePublished: str | None
    publishedBy: str | None
    dateRetired: str | None
    policyId: str
    name: str
    slug: str
    notes: str
    declaredInputs: list[DeclaredView]
    defaultOutcome: str
    isArchived: bool
    challenger: ChallengerView | None
    attributes: list[DeclaredView]
    metrics: list[UsedMetricView]
    products: list[ProductView]
    steps: list[Any]
    limits: list[Any]
    indicators: list[Any]
    document: Any


class PolicyView(TypedDict):
    """A policy and the content of one version."""

    policyId: str
    name: str
    slug: str
    notes: str
    declaredInputs: list[DeclaredView]
    defaultOutcome: str
    isArchived: bool
    version: int
    state: PolicyState
    challenger: ChallengerView | None
    attributes: list[DeclaredView]
    metrics: list[UsedMetricView]
    products: list[ProductView]
    steps: list[Any]
    limits: list[Any]
    indicators: list[Any]


class PrincipalReason(TypedDict):
    """A reason that cost a customer much."""

    code: str
    kind: Literal["adverse", "unverified"]
    words: str


class Problem(TypedDict):
    """The body of every response that is not a success, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    requestId: str
    errors: NotRequired[list[Fault] | None]
    parts: NotRequired[dict[str, PartView] | None]


class ProductLimitsView(TypedDict):
    product: str
    before: TotalView | None
    after: TotalView | None
    bands: list[BandView]


class ProductView(TypedDict):
    productId: str
    slug: str
    name: str


class ReadBaselineView(TypedDict):
    of: str
    date: str | None


class ReadValueView(TypedDict):
    """A value that a condition read."""

    kind: Literal["metric", "attribute"]
    name: str
    title: str | None
    format: Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"] | None
    metricId: str | None
    value: Any
    cause: str | None
    baseline: ReadBaselineView | None


class ReadingView(TypedDict):
    metricId: str
    slug: str
    value: Decimal | int | None
    cause: str | None


class ReadingsView(TypedDict):
    asOf: str
    dataThrough: str | None
    dataVersion: int
    metricsVersion: int
    metrics: list[ReadingView]


class ReadyView(TypedDict):
    status: Literal["ready"]
    parts: dict[str, PartView]


class ReasonView(TypedDict):
    """A reason why the policy cannot be decided."""

    code: str
    message: str
    metricIds: list[str]
    cause: str
    name: str | None
    settle: str


class RecordedEvaluationView(TypedDict):
    evaluationId: str
    customerId: str
    slug: str
    policyName: str
    policyVersion: int
    at: str
    who: str
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    overriddenOutcome: Literal["proceed", "conditional", "blocked", "indeterminate"] | None
    whatIf: bool
    dataVersion: int
    asOf: str
    shadowOf: str | None
    shadows: list[str]
    overrides: list[DecisionOverrideView]
    sha256: str
    record: Any


class RecurrenceView(TypedDict):
    seriesId: str
    period: Literal[
        "business_daily", "weekly", "fortnightly", "four_weekly", "twice_monthly", "monthly", "quarterly", "yearly"
    ]
    nextExpectedDate: str | None


class RejectedRowListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    errors: list[RejectedRowView]


class RejectedRowView(TypedDict):
    index: int
    field: str | None
    code: str
    message: str


class ReportBundleView(TypedDict):
    completeness: CompletenessReportView
    risk: RiskReportView
    aggregate: AggregateReportView


class Resending(TypedDict):
    since: str
    until: NotRequired[str | None]
    customerId: NotRequired[str | None]
    status: NotRequired[Literal["failed", "retrying"]]


class ResentView(TypedDict):
    resent: int
    more: bool


class ResolutionHistoryView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    resolutions: list[ResolutionView]
    history: list[ResolutionView]


class ResolutionView(TypedDict):
    kind: str
    key: str
    reason: str | None
    dateMade: str
    madeBy: str


class ResolutionsView(TypedDict):
    resolutions: list[ResolutionView]


class ResolvedTogether(TypedDict):
    """The score if all reasons were resolved; null if the customer has no rows."""

    completenessScore: Decimal | int | None
    effect: Decimal | int | None


class Risk(TypedDict):
    unreconciled: NotRequired[Unreconciled | None]
    value: Decimal | int
    rating: str
    valueBeforeCeilings: Decimal | int
    limitedBy: list[str]
    covered: Decimal | int | None
    calibration: str
    pdConfidenceScore: Decimal | int
    pdConfidenceRating: str
    errorCodes: list[Any]
    principalReasons: NotRequired[list[PrincipalReason] | None]


class RiskReportView(TypedDict):
    status: ReportStatus
    failed: bool
    error: NoteView | None
    generatedAt: str | None
    asOf: str | None
    dataThrough: str | None
    dataVersion: int | None
    reportVersion: int | None
    data: Risk | None


class RoleListView(TypedDict):
    roles: list[RoleView]


class RoleView(TypedDict):
    role: Role
    scopes: list[str]


class RotatedSecretView(TypedDict):
    webhookSubscriptionId: str
    secret: str


class Rotation(TypedDict):
    overlapHours: NotRequired[int]


class RuleCountView(TypedDict):
    """Counts of a rule over ruleset evaluations, each of one customer."""

    code: str
    observed: int
    held: int
    unknown: int
    fired: int
    firedNow: int


class RuleCoverageView(TypedDict):
    """Counts of decisions: one for each customer and day."""

    step: str
    code: str
    reached: int
    matched: int
    decisive: int
    undecidable: int


class RuleTriggeredEvent(TypedDict):
    eventType: Literal["monitoring.rule.triggered"]
    eventId: str
    clientId: str
    customerId: str
    timestamp: str
    ruleset: TriggeredRuleset


class RulesView(TypedDict):
    before: list[PolicyRuleCountView] | None
    after: list[PolicyRuleCountView] | None


class RulesetListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    rulesets: list[RulesetView]


class RulesetNameView(TypedDict):
    id: str
    slug: str
    name: str


class RulesetVersionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    versions: list[RulesetVersionView]


class RulesetVersionView(TypedDict):
    version: int
    sha256: str
    dateCreated: str
    createdBy: str
    document: Any


class RulesetView(TypedDict):
    rulesetId: str
    slug: str
    name: str
    version: int
    active: bool
    isArchived: bool
    dateCreated: str
    dateUpdated: str
    document: Any
    counts: list[RuleCountView]


class SandboxCustomerView(TypedDict):
    """A customer that the sandbox made. Its reports follow once the jobs have ended and a refresh is requested."""

    customerId: str
    abn: str
    abnChecksumValid: bool
    name: str | None
    reference: str | None
    state: str | None
    dateCreated: str
    profile: str
    jobIds: list[str]
    dataThrough: str


class SandboxProfileListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    profiles: list[SandboxProfileView]


class SandboxProfileView(TypedDict):
    profile: str
    summary: str


class SavedPolicyView(TypedDict):
    version: int
    state: PolicyState
    fingerprint: str
    acknowledged: list[FindingView]
    dateCreated: str
    createdBy: str
    datePublished: str | None
    publishedBy: str | None
    dateRetired: str | None
    policyId: str
    name: str
    slug: str
    notes: str
    declaredInputs: list[DeclaredView]
    defaultOutcome: str
    isArchived: bool
    challenger: ChallengerView | None
    attributes: list[DeclaredView]
    metrics: list[UsedMetricView]
    products: list[ProductView]
    steps: list[Any]
    limits: list[Any]
    indicators: list[Any]
    document: Any
    warnings: list[FindingView]


class SavedRulesetView(TypedDict):
    rulesetId: str
    slug: str
    name: str
    version: int
    active: bool
    isArchived: bool
    dateCreated: str
    dateUpdated: str
    document: Any
    counts: list[RuleCountView]
    warnings: list[FindingView]


class ScopedCustomers(TypedDict):
    customerIds: list[str]


class SensitivitiesView(TypedDict):
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    policyVersion: int
    dataVersion: int
    sensitivities: list[SensitivityView]
    grid: GridView | None


class SensitivityView(TypedDict):
    kind: Literal["metric", "attribute", "input"]
    name: str
    metricId: str | None
    value: Decimal | int | None
    below: ChangeView | None
    above: ChangeView | None
    nearest: ChangeView | None
    changes: list[ChangeView]
    suggestions: list[ChangeView]
    complete: bool


class SentAcknowledgement(TypedDict):
    """A warning that the author accepts."""

    code: str
    pointer: str


class SentAlertAction(TypedDict):
    """What a person does with an alert. The last action applies, and all of them stay in its history."""

    action: Literal["acknowledge", "snooze", "close", "reopen", "assign"]
    until: NotRequired[str | Literal[""] | None]
    reason: NotRequired[str | None]
    assignee: NotRequired[str | None]


class SentAssignee(TypedDict):
    assignee: str | None


class SentAttachment(TypedDict):
    """A file of any type."""

    fileName: NotRequired[str | None]
    contentBase64: str


class SentAttribute(TypedDict):
    value: str | Decimal | float | bool
    source: NotRequired[str | None]
    evidenceDate: NotRequired[str | Literal[""] | None]
    expiresAt: NotRequired[str | Literal[""] | None]


class SentAttributes(TypedDict):
    attributes: dict[str, SentAttribute | str | Decimal | float | bool | None]


class SentAxis(TypedDict):
    """A number of the policy and the values to try. Exactly one of `metric`, `attribute` and `input` names it."""

    metric: NotRequired[str | None]
    attribute: NotRequired[str | None]
    input: NotRequired[str | None]
    values: list[Decimal | float | str]


class SentBacktest(TypedDict):
    version: NotRequired[int | None]
    against: NotRequired[int | Literal["published", "recorded", "challenger"]]
    asOf: NotRequired[list[str] | None]
    knowledge: NotRequired[Literal["now", "then"]]
    inputs: NotRequired[dict[str, Any] | None]
    customerIds: NotRequired[list[str] | None]
    attributes: NotRequired[dict[str, Any] | None]
    outcomes: NotRequired[list[SentOutcome] | None]


class SentChallenger(TypedDict):
    version: int
    percent: int


class SentCorrection(TypedDict):
    """Exactly one of `transactionId`, `counterparty` and `pattern` selects the transactions; `category`,
    `counterpartyName` or both correct them. Null and `""` mean absent.
    """

    transactionId: NotRequired[str | Literal[""] | None]
    counterparty: NotRequired[str | None]
    pattern: NotRequired[str | None]
    direction: NotRequired[Literal["credit", "debit", "", None]]
    category: NotRequired[
        Literal[
            "card_settlement",
            "platform_payout",
            "subscription_receipt",
            "customer_transfer",
            "cash_deposit",
            "cheque_deposit",
            "rent_received",
            "government_receipt",
            "refund_paid",
            "chargeback",
            "dishonoured_receipt",
            "returned_payment",
            "refund_received",
            "interest_received",
            "insurance_payout",
            "grant",
            "dividend_received",
            "supplier_rebate",
            "salary_received",
            "asset_sale",
            "suppliers",
            "materials",
            "subcontractors",
            "freight",
            "merchant_fees",
            "platform_fees",
            "groceries",
            "equipment_hire",
            "wages",
            "superannuation",
            "labour_hire",
            "workers_compensation",
            "reimbursement",
            "rent",
            "utilities",
            "waste",
            "security",
            "cleaning",
            "repairs",
            "strata",
            "storage",
            "software",
            "telecommunications",
            "advertising",
            "insurance",
            "professional_fees",
            "office_supplies",
            "postage",
            "equipment",
            "meals",
            "bank_fees",
            "government_fees",
            "education",
            "printing",
            "recruitment",
            "donations",
            "health",
            "fuel",
            "vehicle_maintenance",
            "vehicle_registration",
            "tolls",
            "parking",
            "travel",
            "bas",
            "payg_withholding",
            "payg_instalment",
            "income_tax",
            "fringe_benefits_tax",
            "tax_interest",
            "tax_payment_plan",
            "payroll_tax",
            "land_tax_and_rates",
            "fines",
            "tax_refund",
            "term_loan_funding",
            "cash_advance_funding",
            "line_of_credit_draw",
            "asset_finance_funding",
            "mortgage_funding",
            "invoice_finance_funding",
            "trade_credit_funding",
            "card_advance",
            "director_loan_in",
            "term_loan_repayment",
            "cash_advance_repayment",
            "line_of_credit_repayment",
            "asset_finance_repayment",
            "mortgage_repayment",
            "invoice_finance_repayment",
            "card_repayment",
            "trade_credit_repayment",
            "director_loan_out",
            "interest_charged",
            "loan_fees",
            "dishonour_fee",
            "overdrawn_fee",
            "late_fee",
            "debt_collector",
            "insolvency",
            "garnishee",
            "payday_credit",
            "owner_drawings",
            "dividend_paid",
            "owner_contribution",
            "shopping",
            "household",
            "personal_care",
            "entertainment",
            "fitness",
            "childcare",
            "pets",
            "own_transfer",
            "related_entity",
            "gambling",
            "cash_withdrawal",
            "crypto",
            "overseas_remittance",
            "unknown_credit",
            "unknown_debit",
            "",
            None,
        ]
    ]
    counterpartyName: NotRequired[str | None]
    scope: NotRequired[Literal["customer", "client"]]
    preview: NotRequired[bool]


class SentDecline(TypedDict):
    reason: str


class SentEvaluation(TypedDict):
    inputs: NotRequired[dict[str, Any] | None]
    attributeOverrides: NotRequired[dict[str, Any] | None]
    whatIf: NotRequired[bool]
    version: NotRequired[int | None]


class SentFiles(TypedDict):
    """Files of one customer, of any of its accounts and banks: PDF statements, and in uploads also exports."""

    files: list[SentPdf]


class SentFourEyes(TypedDict):
    actions: list[Literal["publish", "override", "activate"]]
    replaces: NotRequired[list[Literal["publish", "override", "activate"]] | None]


class SentGrid(TypedDict):
    across: SentAxis
    down: SentAxis


class SentNote(TypedDict):
    """A note on a customer, or on one of its evaluations or matches."""

    text: str
    evaluationId: NotRequired[str | Literal[""] | None]
    matchId: NotRequired[str | Literal[""] | None]


class SentOutcome(TypedDict):
    """The known outcome of a customer."""

    customerId: str
    defaulted: bool


class SentOverride(TypedDict):
    outcome: Literal["proceed", "conditional", "blocked"]
    reason: str
    decidedBy: str


class SentParty(TypedDict):
    name: str
    abn: NotRequired[str | Literal[""] | None]
    role: Literal["director", "shareholder", "beneficial_owner", "partner", "trustee", "guarantor", "group_company"]


class SentPdf(TypedDict):
    fileName: NotRequired[str | None]
    contentBase64: str
    password: NotRequired[str | None]


class SentPolicy(TypedDict):
    """A policy's document, as in the JSON Schema at `/v1/decision-policies/schema`, and the warnings to acknowledge.
    Unknown fields are refused.
    """

    acknowledge: NotRequired[list[SentAcknowledgement]]
    slug: NotRequired[str]
    name: str
    notes: NotRequired[str]
    defaultOutcome: str
    defaultReason: NotRequired[dict[str, Any] | None]
    declaredInputs: NotRequired[list[Any]]
    attributes: NotRequired[list[Any]]
    metrics: NotRequired[list[Any]]
    products: NotRequired[list[Any]]
    steps: NotRequired[list[Any]]
    limits: NotRequired[list[Any]]
    indicators: NotRequired[list[Any]]


class SentPublication(TypedDict):
    version: NotRequired[int | None]


class SentResolution(TypedDict):
    """Resolves a finding or an event of the risk report; with `reason: null`, revokes its resolution."""

    kind: Literal["finding", "event"]
    key: str
    reason: str | None


class SentRulesetAppliesTo1(TypedDict):
    customers: list[str]


class SentRulesetAppliesTo2(TypedDict):
    where: dict[str, Any]


class SentRuleset(TypedDict):
    """A ruleset's document. Unknown fields are refused."""

    slug: str
    name: str
    notes: NotRequired[str]
    active: NotRequired[bool]
    appliesTo: NotRequired[Literal["all"] | SentRulesetAppliesTo1 | SentRulesetAppliesTo2]
    mutedWhile: NotRequired[dict[str, Any] | None]
    attributes: NotRequired[list[Any]]
    metrics: NotRequired[list[Any]]
    baseline: NotRequired[dict[str, Any] | None]
    rules: list[Any]


class SentSensitivity(TypedDict):
    inputs: NotRequired[dict[str, Any] | None]
    attributeOverrides: NotRequired[dict[str, Any] | None]
    whatIf: NotRequired[bool]
    version: NotRequired[int | None]
    grid: NotRequired[SentGrid | None]


SentSimulation = TypedDict(
    "SentSimulation",
    {
        "from": "NotRequired[str | None]",
        "to": "NotRequired[str | None]",
        "customerIds": "NotRequired[list[str] | None]",
        "document": "NotRequired[dict[str, Any] | None]",
    },
)


class SeriesCounterpartyView(TypedDict):
    name: str | None
    kind: Literal["business", "person", "bank", "processor", "government", "lender", "own"] | None
    group: str | None


class SeriesListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    series: list[SeriesView]


class SeriesView(TypedDict):
    """Payments between an account and a counterparty, in one direction, that follow a schedule.

    The account's last day with posted rows counts as today: payments due after it are not missed.
    """

    seriesId: str
    accountId: str
    direction: Literal["credit", "debit"]
    counterparty: SeriesCounterpartyView
    description: str
    category: str
    period: Literal[
        "business_daily", "weekly", "fortnightly", "four_weekly", "twice_monthly", "monthly", "quarterly", "yearly"
    ]
    anchor: str
    status: Literal["active", "ended"]
    firstDate: str
    lastDate: str
    occurrences: int
    missed: int
    missedDates: list[str]
    doubled: int
    regularity: Decimal | int
    usualAmount: Decimal | int
    latestAmount: Decimal | int
    amountChanges: list[AmountChangeView]
    nextExpectedDate: str | None
    nextExpectedAmount: Decimal | int | None


class SignalView(TypedDict):
    """A sign of a forged file, which some genuine files show too. It never decides anything."""

    code: str
    severity: Severity
    message: str
    page: int | None


class SimilarView(TypedDict):
    """The other transactions that are like the corrected one, and what to send to correct all of them."""

    counterparty: str | None
    pattern: str | None
    direction: Literal["credit", "debit"]
    transactionCount: int
    changedCount: int
    examples: list[ChangedTransactionView]


class SimulatedCauseView(TypedDict):
    kind: str
    name: str
    cause: str
    days: int


class SimulatedCountsView(TypedDict):
    """Counts of a rule. Days are customer days: two customers for a week count as 14."""

    code: str
    fired: int
    customers: int
    daysObserved: int
    daysHeld: int
    daysUnknown: int
    causes: list[SimulatedCauseView]


class SimulatedCustomerView(TypedDict):
    customerId: str
    events: int
    lastFired: str
    rules: list[FiredRuleView]


class SimulatedMonthView(TypedDict):
    month: str
    events: int
    customers: int
    rules: list[SimulatedCountsView]


class SimulatedRuleView(TypedDict):
    code: str
    fired: int
    customers: int
    daysObserved: int
    daysHeld: int
    daysUnknown: int
    causes: list[SimulatedCauseView]
    message: str
    severity: Literal["info", "warning", "critical"]


class SimulatedView(TypedDict):
    customers: int
    customersFired: int
    events: int
    firings: int
    firingsListed: int
    atSwitchOn: SwitchOnView
    rules: list[SimulatedRuleView]
    months: list[SimulatedMonthView]
    byCustomer: list[SimulatedCustomerView]


class SimulationListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    simulations: list[SimulationView]


SimulationResultView = TypedDict(
    "SimulationResultView",
    {
        "jobId": "str",
        "status": "JobStatus",
        "rulesetId": "str",
        "version": "int",
        "ofDocument": "bool",
        "from": "str",
        "to": "str",
        "customersNamed": "int | None",
        "customersTotal": "int | None",
        "customersDone": "int",
        "customersFailed": "int",
        "dateCreated": "str",
        "createdBy": "str",
        "result": "SimulatedView | None",
    },
)
SimulationView = TypedDict(
    "SimulationView",
    {
        "jobId": "str",
        "status": "JobStatus",
        "rulesetId": "str",
        "version": "int",
        "ofDocument": "bool",
        "from": "str",
        "to": "str",
        "customersNamed": "int | None",
        "customersTotal": "int | None",
        "customersDone": "int",
        "customersFailed": "int",
        "dateCreated": "str",
        "createdBy": "str",
    },
)


class SourceView(TypedDict):
    """Where a transaction is printed."""

    jobId: str
    statementId: str
    row: int
    boxes: list[BoxView]


class StageView(TypedDict):
    stage: str
    status: JobStatus
    dateStarted: str | None
    dateCompleted: str | None
    pagesDone: NotRequired[int | None]
    pagesTotal: NotRequired[int | None]


class StartingRuleView(TypedDict):
    code: str
    customers: int


class StatementListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    statements: list[StatementView]


class StatementRowView(TypedDict):
    row: int
    date: str
    valueDate: str | None
    description: str
    amount: Decimal | int
    balance: Decimal | int | None
    balancePrinted: bool
    currency: str | None
    proved: bool | None
    repeated: bool
    index: int | None
    boxes: list[BoxView]


class StatementView(TypedDict):
    """The part of a file that belongs to one account."""

    statementId: str
    jobId: str
    fileId: str
    fileName: str
    accountId: str
    bank: str | None
    bankName: str | None
    accountName: str | None
    bsb: str | None
    accountNumber: str | None
    accountType: str | None
    creditLimit: Decimal | int | None
    kind: Kind
    periodStart: str | None
    periodEnd: str | None
    openingBalance: Decimal | int | None
    closingBalance: Decimal | int | None
    verdict: Verdict
    reasons: list[VerdictReasonView]
    rowCount: int
    firstPage: int
    lastPage: int
    readByOcr: bool
    dateExtracted: str


class StepCountView(TypedDict):
    step: str
    reached: int
    decided: int
    undecidable: int


class StepsView(TypedDict):
    before: list[StepCountView] | None
    after: list[StepCountView] | None


class SubjectView(TypedDict):
    name: str
    id: str
    title: str
    slug: str | None


class SubmissionTransactionsItem(TypedDict):
    """One transaction as sent. Fields that begin with `context_` are the client's own, for its model of categories."""

    date: str
    description: str
    amount: Decimal | float | str
    type: NotRequired[Literal["credit", "debit"] | None]
    balance: NotRequired[Decimal | float | str | None]
    transactionId: NotRequired[str | None]
    currency: NotRequired[Literal["AUD"] | None]
    valueDate: NotRequired[str | None]
    status: NotRequired[Literal["posted", "pending"] | None]


class Submission(TypedDict):
    """Transactions of one account. All account fields may be left out; null and `""` mean absent."""

    transactions: list[SubmissionTransactionsItem | dict[str, Any]]
    accountName: NotRequired[str | None]
    bsb: NotRequired[str | None]
    accountNumber: NotRequired[str | None]
    bankName: NotRequired[str | None]
    accountType: NotRequired[str | None]
    creditLimit: NotRequired[Decimal | float | str | None]
    currency: NotRequired[Literal["AUD", "", None]]
    mode: NotRequired[Literal["overlap", "append"]]


class SubmittedFileListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    files: list[SubmittedFileView]


class SubmittedFileView(TypedDict):
    """A file of a submission of PDF statements."""

    fileId: str
    fileName: str
    position: int
    pages: int | None
    repeats: str | None
    refused: NoteView | None


class SubscriptionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    subscriptions: list[SubscriptionView]


class SubscriptionView(TypedDict):
    webhookSubscriptionId: str
    eventType: str
    webhookUrl: str
    customerIds: list[str]
    dateCreated: str
    maxRetries: int
    pauseAfterFailures: int | None
    datePaused: str | None
    pausedBy: str | None
    failureStreak: int
    dateLastDelivered: str | None
    dateLastFailed: str | None
    isCatchAll: bool
    isPaused: bool


class SumView(TypedDict):
    known: int
    amount: Decimal | int


class SummaryView(TypedDict):
    """Summary of a subscription's deliveries, without tests."""

    webhookSubscriptionId: str
    failureStreak: int
    dateLastDelivered: str | None
    dateLastFailed: str | None
    waiting: int
    retrying: int
    dateOldestWaiting: str | None
    periods: list[PeriodView]
    isPaused: bool


class SwitchOnView(TypedDict):
    """Customers for whom rules would fire on the first day, when the ruleset is switched on."""

    customers: int
    rules: list[StartingRuleView]


class TaxonomyView(TypedDict):
    version: int
    groups: list[GroupView]
    categories: list[CategoryView]


class TimelineEntryView(TypedDict):
    """Something that happened to a customer, and the ids that it concerns."""

    kind: EntryKind
    date: str
    who: str | None
    sentence: str
    jobId: str | None
    statementId: str | None
    evaluationId: str | None
    matchId: str | None
    noteId: str | None
    attachmentId: str | None
    correctionId: str | None


class TimelineView(TypedDict):
    entries: list[TimelineEntryView]
    nextCursor: str | None


class TotalView(TypedDict):
    customers: int
    offered: int
    indeterminate: int
    amount: Decimal | int
    meanOffered: Decimal | int | None


class TotalsView(TypedDict):
    """Sums over all pages, in AUD. Pending rows count, too, unlike in reports."""

    moneyIn: Decimal | int
    moneyOut: Decimal | int
    net: Decimal | int


class TrailView(TypedDict):
    entries: list[EntryView]
    subjects: list[SubjectView] | None
    nextCursor: str | None


class TransactionView(TypedDict):
    """An enriched transaction. This model is documentation; `api.intake.transactions_json` writes the rows."""

    transactionId: str
    clientTransactionId: str | None
    customerId: str
    jobId: str
    account: AccountView
    date: str
    description: str
    cleanDescription: str
    amount: Decimal | int
    currency: Literal["AUD"]
    direction: Literal["credit", "debit"]
    balance: Decimal | int | None
    balanceVerified: bool | None
    status: Literal["posted", "pending"]
    channel: str
    reference: str | None
    location: str | None
    cardLastFour: str | None
    effectiveDate: str | None
    foreignAmount: Decimal | int | None
    foreignCurrency: str | None
    otherAccountMasked: str | None
    category: str
    categoryGroup: str
    confidence: Decimal | int
    categorySource: str
    categoryBasis: str | None
    alternatives: list[AlternativeView]
    counterparty: CounterpartyView
    intermediaries: list[str]
    relatedParty: str | None
    isTransfer: bool
    transferPairId: str | None
    recurrence: RecurrenceView | None
    facilityId: str | None
    flags: list[str]
    revision: int
    enrichmentVersion: int


class TransitionView(TypedDict):
    customers: int
    judged: int
    defaulted: int
    badRate: Decimal | int | None
    before: Literal["proceed", "conditional", "blocked", "indeterminate"]
    after: Literal["proceed", "conditional", "blocked", "indeterminate"]
    limitsChanged: int
    limits: list[LimitSumView]


class TriggeredRuleset(TypedDict):
    id: str
    slug: str
    name: str


class Unreconciled(TypedDict):
    """Figures that rest on rows of PDF statements which the printed balances do not prove."""

    rows: int
    amount: Decimal | int
    shareOfRows: Decimal | int | None
    shareOfAmount: Decimal | int | None
    figures: list[UnreconciledFigures]


class UnreconciledFigures(TypedDict):
    row: str
    shares: dict[str, Decimal | int]


class UploadView(TypedDict):
    """The jobs that read or enrich the files, and the files in the order of the request."""

    jobs: list[JobView]
    files: list[UploadedFileView]


class UploadedFileView(TypedDict):
    fileName: str
    jobIds: list[str]
    refused: NoteView | None


class UsedMetricView(TypedDict):
    metricId: str
    slug: str
    name: str
    meaning: str
    unit: Literal["AUD", "AUD per month", "ratio", "count", "per month", "days", "months"]
    format: Literal["integer", "decimal", "percent", "currency", "days", "months", "yearMonth"]
    isOwn: bool


class UserListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    users: list[UserView]


class UserView(TypedDict):
    userId: str
    email: str
    name: str
    role: Role
    dateCreated: str
    disabledAt: str | None
    lockedUntil: str | None


class VerdictReasonView(TypedDict):
    code: str
    message: str
    page: int | None


class VerdictView(TypedDict):
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"]
    recommendedActions: list[str]
    reasons: list[ReasonView]
    matchedRules: list[MatchedRuleView]
    principalReasons: list[str]


class VersionListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    versions: list[VersionView]


class VersionView(TypedDict):
    """The history of a version: when and by whom it was saved and published, and when it was retired."""

    version: int
    state: PolicyState
    fingerprint: str
    acknowledged: list[FindingView]
    dateCreated: str
    createdBy: str
    datePublished: str | None
    publishedBy: str | None
    dateRetired: str | None


class WholeStatementView(TypedDict):
    statementId: str
    jobId: str
    fileId: str
    fileName: str
    accountId: str
    bank: str | None
    bankName: str | None
    accountName: str | None
    bsb: str | None
    accountNumber: str | None
    accountType: str | None
    creditLimit: Decimal | int | None
    kind: Kind
    periodStart: str | None
    periodEnd: str | None
    openingBalance: Decimal | int | None
    closingBalance: Decimal | int | None
    verdict: Verdict
    reasons: list[VerdictReasonView]
    rowCount: int
    firstPage: int
    lastPage: int
    readByOcr: bool
    dateExtracted: str
    hadPassword: bool
    signals: list[SignalView]
    rows: list[StatementRowView]


class WorkItemView(TypedDict):
    """An alert or a decision that waits for a person."""

    kind: ItemKind
    matchId: str | None
    evaluationId: str | None
    customerId: str
    customerName: str | None
    subject: str
    subjectName: str
    outcome: str | None
    rules: list[str]
    dateOpened: str
    ageSeconds: int
    state: ItemState
    assignee: str | None


class WorkListView(TypedDict):
    totalCount: int
    currentPage: int | None
    pageSize: int
    totalPages: int
    items: list[WorkItemView]


class WrittenNoteView(TypedDict):
    noteId: str
    evaluationId: str | None
    matchId: str | None
    text: str | None
    dateCreated: str
    createdBy: str
    dateDeleted: str | None
    deletedBy: str | None


ActorKind = Literal["user", "key", "operator", "service", "anonymous", "unknown"]
Against = Literal["version", "recorded", "challenger"]
ApprovalKind = Literal["publish", "override", "activate", "lift"]
ApprovalStatus = Literal["pending", "approved", "declined", "superseded", "withdrawn"]
Cause = Literal["data", "time"]
DeliveryStatus = Literal["due", "sending", "delivered", "retrying", "failed", "cancelled"]
EntryKind = Literal[
    "item_worked",
    "alert_raised",
    "decision_overridden",
    "evaluated",
    "note_deleted",
    "note_added",
    "attachment_deleted",
    "attachment_added",
    "finding_resolved",
    "attribute_set",
    "related_parties_set",
    "correction_revoked",
    "correction_made",
    "job_ended",
    "statement_read",
    "job_received",
    "customer_created",
]
Event = (
    JobCompletedEvent
    | JobFailedEvent
    | ExtractionCompletedEvent
    | ExtractionFailedEvent
    | EnrichmentCompletedEvent
    | EnrichmentFailedEvent
    | RuleTriggeredEvent
)
Flow = Literal[
    "Enrichment",
    "Extraction",
    "Withdrawal",
    "Correction",
    "Reenrichment",
    "ReportRefresh",
    "PolicyBacktest",
    "RulesetSimulation",
]
ItemAction = Literal["acknowledge", "snooze", "close", "reopen", "assign"]
ItemKind = Literal["alert", "decision"]
ItemState = Literal["open", "acknowledged", "snoozed", "closed"]
JobStatus = Literal["Queued", "Running", "Completed", "CompletedWithErrors", "Failed"]
Kind = Literal["statement", "listing", "interim"]
Knowledge = Literal["now", "then"]
Outcome = Literal["done", "refused"]
PolicyState = Literal["draft", "published", "retired"]
ReportStatus = Literal["pending", "ready", "stale"]
Role = Literal["viewer", "analyst", "approver", "admin"]
SentParties = list[SentParty]
Severity = Literal["information", "warning", "alert"]
Verdict = Literal["reconciled", "reconciled_dates_doubtful", "partial", "unreconciled"]
