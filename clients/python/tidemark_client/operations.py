"""A function for each operation of the API, which returns a request to send.

Made from the OpenAPI document by `make generated`: don't edit.
"""

from __future__ import annotations

from typing import Literal

from tidemark_client import models
from tidemark_client.requests import PagedRequest, Request, path_part


def create_customer(body: models.NewCustomer) -> Request[models.CreatedCustomerView]:
    """Create a customer, or find the existing one with this ABN and reference."""
    return Request("POST", "/v1/customer", body=body, takes_idempotency_key=True)


def get_customer(customer_id: str) -> Request[models.CustomerView]:
    """Read one customer."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}")


def list_customers(
    *, page: int | None = None, count: int | None = None, abn: str | None = None, reference: str | None = None
) -> PagedRequest[models.CustomerListView, models.CustomerView]:
    """List customers in order of creation: all of them, or those with an ABN or a reference."""
    return PagedRequest(
        "GET",
        "/v1/customers",
        query={"page": page, "count": count, "abn": abn, "reference": reference},
        items="customers",
    )


def list_customer_summaries(
    *,
    page: int | None = None,
    count: int | None = None,
    search: str | None = None,
    rating: Literal["A", "B", "C", "D", "E"] | None = None,
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"] | None = None,
    report_status: Literal["pending", "ready", "stale"] | None = None,
    open_alerts: bool | None = None,
    sort: Literal[
        "created",
        "-created",
        "name",
        "-name",
        "rating",
        "-rating",
        "riskValue",
        "-riskValue",
        "completeness",
        "-completeness",
        "dataThrough",
        "-dataThrough",
        "openAlerts",
        "-openAlerts",
    ]
    | None = None,
    cursor: str | None = None,
) -> PagedRequest[models.CustomerSummaryListView, models.CustomerSummaryView]:
    """List customers with their rating, completeness, last decision and open alerts, and search them.

    Customers that are added or change meanwhile shift the pages, but not a cursor, and a late page takes longer than an
    early one. Every change shows at once, except that an alert counts again some seconds after its snooze has ended.
    Customers with the same value are in order of creation.
    """
    return PagedRequest(
        "GET",
        "/v1/customers/summaries",
        query={
            "page": page,
            "count": count,
            "search": search,
            "rating": rating,
            "outcome": outcome,
            "reportStatus": report_status,
            "openAlerts": open_alerts,
            "sort": sort,
            "cursor": cursor,
        },
        items="customers",
    )


def get_customer_summary(customer_id: str) -> Request[models.CustomerSummaryView]:
    """Read what is known of one customer, as the list of summaries shows it."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}/summary")


def set_attributes(
    customer_id: str, body: models.SentAttributes, *, known_changes: int | None = None
) -> Request[models.AttributesView]:
    """Set, change or (by null) remove attributes; attributes that are not sent stay unchanged."""
    return Request(
        "PUT", f"/v1/customer/{path_part(customer_id)}/attributes", query={"knownChanges": known_changes}, body=body
    )


def get_attributes(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.AttributeHistoryView, models.AttributeChangeView]:
    """Read the current attributes, and the history of all changes."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/attributes",
        query={"page": page, "count": count},
        items="history",
    )


def set_related_parties(
    customer_id: str, body: models.SentParties, *, known_changes: int | None = None
) -> Request[models.PartiesView]:
    """Replace the list of the customer's directors, guarantors, group companies and other related parties."""
    return Request(
        "PUT",
        f"/v1/customer/{path_part(customer_id)}/related-parties",
        query={"knownChanges": known_changes},
        body=body,
    )


def get_related_parties(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.PartyHistoryView, models.PartyListView]:
    """Read the current list, and the history of earlier lists."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/related-parties",
        query={"page": page, "count": count},
        items="history",
    )


def submit_transactions(customer_id: str, body: models.Submission) -> Request[models.JobView]:
    """Submit transactions of one account; the job in the response enriches them."""
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/transactions", body=body, takes_idempotency_key=True)


def list_customer_transactions(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    job_id: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    text: str | None = None,
    category: str | None = None,
    account_id: str | None = None,
    direction: Literal["credit", "debit"] | None = None,
    status: Literal["posted", "pending"] | None = None,
    min_amount: str | None = None,
    max_amount: str | None = None,
    flag: Literal[
        "cash",
        "dishonour",
        "dishonoured",
        "duplicate_charge",
        "gambling",
        "information",
        "outlier",
        "payroll",
        "refund_matched",
        "related_party",
        "revenue",
        "round_amount",
        "tax",
        "unreconciled_statement",
    ]
    | None = None,
    transaction_id: str | None = None,
    transaction_ids: str | None = None,
    sort: Literal["date", "-date"] | None = None,
) -> PagedRequest[models.CustomerTransactionListView, models.TransactionView]:
    """List a customer's enriched transactions, by date and position: all of them, or those that a filter chooses."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/transactions",
        query={
            "page": page,
            "count": count,
            "jobId": job_id,
            "from": from_,
            "to": to,
            "text": text,
            "category": category,
            "accountId": account_id,
            "direction": direction,
            "status": status,
            "minAmount": min_amount,
            "maxAmount": max_amount,
            "flag": flag,
            "transactionId": transaction_id,
            "transactionIds": transaction_ids,
            "sort": sort,
        },
        items="transactions",
    )


def retract_submission(customer_id: str, job_id: str) -> Request[models.JobView]:
    """Retract a submission's rows, as if they had never been sent; poll the job in the response.

    Rows that later submissions repeated now count as theirs, and rows that the retracted ones had replaced count again.
    Repeating this request returns the same job.
    """
    return Request("DELETE", f"/v1/customer/{path_part(customer_id)}/submissions/{path_part(job_id)}")


def list_transactions(
    *, page: int | None = None, count: int | None = None, cursor: str | None = None
) -> PagedRequest[models.ClientTransactionListView, models.TransactionView]:
    """List the enriched transactions of all customers, by date, in pages or from a cursor.

    Rows that are added or removed meanwhile shift the pages, but not a cursor.
    """
    return PagedRequest(
        "GET", "/v1/transactions", query={"page": page, "count": count, "cursor": cursor}, items="transactions"
    )


def submit_statements(customer_id: str, body: models.SentFiles) -> Request[models.JobView]:
    """Submit PDF statements; the job in the response reads them and then enriches their transactions.

    A file that can't be read fails by itself: the job's warnings say why. A file that was submitted for the customer
    before is not read again; its rows count as duplicates.
    """
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/statements", body=body, takes_idempotency_key=True)


def list_statements(
    customer_id: str, *, page: int | None = None, count: int | None = None, job_id: str | None = None
) -> PagedRequest[models.StatementListView, models.StatementView]:
    """List a customer's statements, most recently read first, without those of retracted submissions."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/statements",
        query={"page": page, "count": count, "jobId": job_id},
        items="statements",
    )


def get_statement(customer_id: str, statement_id: str) -> Request[models.WholeStatementView]:
    """Read a statement with its rows, their places on the pages, and signals about its file."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}/statements/{path_part(statement_id)}")


def get_statement_page(
    customer_id: str, statement_id: str, page_number: str, *, row: int | None = None
) -> Request[bytes]:
    """Draw a page of the statement's file as a picture, with a row marked if `row` is given."""
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/statements/{path_part(statement_id)}/pages/{path_part(page_number)}.png",
        query={"row": row},
    )


def get_transaction_source(customer_id: str, transaction_id: str) -> Request[models.SourceView]:
    """Find a transaction on the pages of its statement; 404 if it was sent as JSON or CSV."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}/transactions/{path_part(transaction_id)}/source")


def submit_upload(customer_id: str, body: models.SentFiles) -> Request[models.UploadView]:
    """Submit files as people have them: PDF statements and banks' exports (CSV), in one request.

    One job reads the PDFs. Exports are read during the request: each of their accounts becomes a submission with its
    own job, whose rows may overlap those of others. A file that can't be read fails by itself: the response and a job's
    warnings say why.
    """
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/uploads", body=body, takes_idempotency_key=True)


def list_submission_files(
    customer_id: str, job_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.SubmittedFileListView, models.SubmittedFileView]:
    """List the files of a submission of PDF statements, in the order of the request; others have none."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/submissions/{path_part(job_id)}/files",
        query={"page": page, "count": count},
        items="files",
    )


def list_series(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.SeriesListView, models.SeriesView]:
    """List a customer's recurring payments and receipts, by account."""
    return PagedRequest(
        "GET", f"/v1/customer/{path_part(customer_id)}/series", query={"page": page, "count": count}, items="series"
    )


def list_facilities(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.FacilityListView, models.FacilityView]:
    """List the credit facilities that a customer's transactions until today show, in order of their start."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/facilities",
        query={"page": page, "count": count},
        items="facilities",
    )


def list_mentioned_accounts(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.MentionedAccountListView, models.MentionedAccountView]:
    """List the accounts that a customer's transfers mention and whose transactions were not supplied."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/mentioned-accounts",
        query={"page": page, "count": count},
        items="mentionedAccounts",
    )


def correct_transactions(customer_id: str, body: models.SentCorrection) -> Request[models.MadeCorrectionView]:
    """Correct one transaction, or all similar ones, including future ones.

    The job in the response changes the stored rows. A later correction overrides earlier ones, and a correction of a
    single transaction overrides all others. A `preview` responds with 200 and changes nothing; for a single
    transaction, it also offers the similar ones.
    """
    return Request(
        "POST", f"/v1/customer/{path_part(customer_id)}/transactions/corrections", body=body, takes_idempotency_key=True
    )


def list_corrections(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.CorrectionListView, models.CorrectionView]:
    """List the corrections for the customer and for all customers, newest first, including revoked ones."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/transactions/corrections",
        query={"page": page, "count": count},
        items="corrections",
    )


def revoke_correction(customer_id: str, correction_id: str) -> Request[models.JobView]:
    """Revoke a correction: its rows go back to what the enrichment and the remaining corrections give them.

    A correction for all customers is revoked for all of them. Revoking a correction again returns the same job.
    """
    return Request(
        "DELETE", f"/v1/customer/{path_part(customer_id)}/transactions/corrections/{path_part(correction_id)}"
    )


def get_taxonomy() -> Request[models.TaxonomyView]:
    """List the categories with their groups and what they mean for a lender."""
    return Request("GET", "/v1/taxonomy")


def list_jobs(
    *,
    page: int | None = None,
    count: int | None = None,
    status: Literal["Queued", "Running", "Completed", "CompletedWithErrors", "Failed"] | None = None,
    flow: Literal[
        "Enrichment",
        "Extraction",
        "Withdrawal",
        "Correction",
        "Reenrichment",
        "ReportRefresh",
        "PolicyBacktest",
        "RulesetSimulation",
    ]
    | None = None,
    customer_id: str | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
) -> PagedRequest[models.JobListView, models.JobView]:
    """List jobs, newest first."""
    return PagedRequest(
        "GET",
        "/v1/jobs",
        query={
            "page": page,
            "count": count,
            "status": status,
            "flow": flow,
            "customerId": customer_id,
            "createdAfter": created_after,
            "createdBefore": created_before,
        },
        items="jobs",
    )


def get_job_status(job_id: str, *, wait: int | None = None) -> Request[models.JobStatusView]:
    """Read a job. With `wait`, the response comes when the job has ended or the time is up."""
    return Request("GET", f"/v1/jobs/{path_part(job_id)}/status", query={"wait": wait})


def list_rejected_rows(
    job_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.RejectedRowListView, models.RejectedRowView]:
    """List the rejected rows of a submission in its order, each with its reason."""
    return PagedRequest(
        "GET", f"/v1/jobs/{path_part(job_id)}/errors", query={"page": page, "count": count}, items="errors"
    )


def list_duplicate_rows(
    job_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.DuplicateRowListView, models.DuplicateRowView]:
    """List the duplicate rows of a submission, each with the transaction that it repeated when the submission ended."""
    return PagedRequest(
        "GET", f"/v1/jobs/{path_part(job_id)}/duplicates", query={"page": page, "count": count}, items="duplicates"
    )


def refresh_reports(customer_id: str) -> Request[models.JobView]:
    """Compute all three reports from the customer's enriched transactions; poll the job in the response."""
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/reports/refresh", takes_idempotency_key=True)


def get_reports(
    customer_id: str, *, as_of: str | None = None, known_at: str | None = None, data_version: int | None = None
) -> Request[models.ReportBundleView]:
    """Read the three reports together. Check each one's `status` before its `data`.

    With any parameter they are computed for that moment and not stored: `generatedAt` is null. The same version, day
    and formulas give the same bytes.
    """
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports",
        query={"asOf": as_of, "knownAt": known_at, "dataVersion": data_version},
    )


def get_completeness(
    customer_id: str, *, as_of: str | None = None, known_at: str | None = None, data_version: int | None = None
) -> Request[models.CompletenessReportView]:
    """Read the completeness report alone."""
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/completeness",
        query={"asOf": as_of, "knownAt": known_at, "dataVersion": data_version},
    )


def diff_reports(
    customer_id: str,
    *,
    from_: int | None = None,
    to: int | None = None,
    from_as_of: str | None = None,
    as_of: str | None = None,
    from_known_at: str | None = None,
    known_at: str | None = None,
    report: Literal["completeness", "risk", "aggregate"] | None = None,
) -> Request[models.DiffView]:
    """List the figures that differ between two states of the customer's reports, and why.

    A state is chosen by a day and by the time at which its data were known, or by a version of the transactions.
    Without any parameter, the current version is compared with the one before it. `report` asks for the figures of one
    report, which takes less time.
    """
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/diff",
        query={
            "from": from_,
            "to": to,
            "fromAsOf": from_as_of,
            "asOf": as_of,
            "fromKnownAt": from_known_at,
            "knownAt": known_at,
            "report": report,
        },
    )


def explain_completeness(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    figure: str | None = None,
    as_of: str | None = None,
    known_at: str | None = None,
    data_version: int | None = None,
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions that a figure adds up or counts or, for a derived figure, its formula and inputs.

    Without a moment, the figure is that of the stored report.
    """
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/completeness/lineage",
        query={
            "page": page,
            "count": count,
            "figure": figure,
            "asOf": as_of,
            "knownAt": known_at,
            "dataVersion": data_version,
        },
        items="transactions",
    )


def explain_risk(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    figure: str | None = None,
    as_of: str | None = None,
    known_at: str | None = None,
    data_version: int | None = None,
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions that a figure adds up or counts or, for a derived figure, its formula and inputs.

    Without a moment, the figure is that of the stored report.
    """
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/risk/lineage",
        query={
            "page": page,
            "count": count,
            "figure": figure,
            "asOf": as_of,
            "knownAt": known_at,
            "dataVersion": data_version,
        },
        items="transactions",
    )


def explain_aggregate(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    figure: str | None = None,
    as_of: str | None = None,
    known_at: str | None = None,
    data_version: int | None = None,
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions that a figure adds up or counts or, for a derived figure, its formula and inputs.

    Without a moment, the figure is that of the stored report.
    """
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/aggregate/lineage",
        query={
            "page": page,
            "count": count,
            "figure": figure,
            "asOf": as_of,
            "knownAt": known_at,
            "dataVersion": data_version,
        },
        items="transactions",
    )


def explain_metrics(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    figure: str | None = None,
    as_of: str | None = None,
    known_at: str | None = None,
    data_version: int | None = None,
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions that a figure adds up or counts or, for a derived figure, its formula and inputs.

    Without a moment, the figure is that of the stored report.
    """
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports/metrics/lineage",
        query={
            "page": page,
            "count": count,
            "figure": figure,
            "asOf": as_of,
            "knownAt": known_at,
            "dataVersion": data_version,
        },
        items="transactions",
    )


def get_report_page(
    customer_id: str, *, as_of: str | None = None, known_at: str | None = None, data_version: int | None = None
) -> Request[str]:
    """Read the three reports as one printable page, which fetches nothing and runs no script."""
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports.html",
        query={"asOf": as_of, "knownAt": known_at, "dataVersion": data_version},
    )


def print_report_page(
    customer_id: str, *, as_of: str | None = None, known_at: str | None = None, data_version: int | None = None
) -> Request[bytes]:
    """Read the page of the three reports as PDF, which a browser on the service's machine prints."""
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/reports.pdf",
        query={"asOf": as_of, "knownAt": known_at, "dataVersion": data_version},
    )


def resolve_finding(customer_id: str, body: models.SentResolution) -> Request[models.ResolutionsView]:
    """Resolve a finding or an event of the risk report with a reason, or revoke a resolution.

    Reports are computed again. A resolved finding or event is still shown, marked as resolved, but neither reduces
    revenue nor caps the rating.
    """
    return Request("PUT", f"/v1/customer/{path_part(customer_id)}/resolutions", body=body)


def list_resolutions(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.ResolutionHistoryView, models.ResolutionView]:
    """Read the resolutions in force, and the history of all changes."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/resolutions",
        query={"page": page, "count": count},
        items="history",
    )


def list_metrics(
    *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.MetricListView, models.MetricView]:
    """List the metrics that reports, policies and rules may read, in the registry's order."""
    return PagedRequest("GET", "/v1/metrics", query={"page": page, "count": count}, items="metrics")


def read_metrics(
    customer_id: str, *, as_of: str | None = None, known_at: str | None = None, data_version: int | None = None
) -> Request[models.ReadingsView]:
    """Compute every metric of a customer: its value, or why it has none."""
    return Request(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/metrics",
        query={"asOf": as_of, "knownAt": known_at, "dataVersion": data_version},
    )


def list_decision_policies(
    *,
    page: int | None = None,
    page_size: int | None = None,
    include_archived: bool | None = None,
    include_drafts: bool | None = None,
) -> PagedRequest[models.PolicyListView, models.PolicyView]:
    """List the policies that have been published, in order of their slugs."""
    return PagedRequest(
        "GET",
        "/v1/decision-policies",
        query={
            "page": page,
            "pageSize": page_size,
            "includeArchived": include_archived,
            "includeDrafts": include_drafts,
        },
        items="items",
    )


def get_decision_policy_schema() -> Request[models.PolicySchemaView]:
    """Read the JSON Schema of a policy's document, for editors."""
    return Request("GET", "/v1/decision-policies/schema")


def save_decision_policy(
    slug: str, body: models.SentPolicy, *, known_version: int | None = None
) -> Request[models.SavedPolicyView]:
    """Save a document as a new draft; if it equals the newest version, get that version again (200).

    All faults are listed at once. Warnings, about leniency and unreachable parts, must be acknowledged.
    """
    return Request("PUT", f"/v1/decision-policies/{path_part(slug)}", query={"knownVersion": known_version}, body=body)


def get_decision_policy(slug: str, *, version: int | None = None) -> Request[models.PolicyVersionView]:
    """Read a policy's published version, or any other version."""
    return Request("GET", f"/v1/decision-policies/{path_part(slug)}", query={"version": version})


def check_decision_policy(slug: str, body: models.SentPolicy) -> Request[models.CheckedPolicyView]:
    """Check a document as saving it would, and store nothing."""
    return Request("POST", f"/v1/decision-policies/{path_part(slug)}/check", body=body)


def list_decision_policy_versions(
    slug: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.VersionListView, models.VersionView]:
    """List all versions, newest first, with the times when each was in force."""
    return PagedRequest(
        "GET",
        f"/v1/decision-policies/{path_part(slug)}/versions",
        query={"page": page, "count": count},
        items="versions",
    )


def diff_decision_policy(
    slug: str, *, from_: int | None = None, to: int | None = None
) -> Request[models.PolicyDiffView]:
    """Describe in words how two versions differ."""
    return Request("GET", f"/v1/decision-policies/{path_part(slug)}/diff", query={"from": from_, "to": to})


def publish_decision_policy(slug: str, body: models.SentPublication) -> Request[models.PolicyVersionView]:
    """Publish a version: it decides from now on, and the previous one is retired.

    Publishing it again changes nothing. If the client requires a second person or key, the publication is only
    requested (202).
    """
    return Request("POST", f"/v1/decision-policies/{path_part(slug)}/publish", body=body)


def archive_decision_policy(slug: str) -> Request[models.PolicyStateView]:
    """Archive a policy: it decides nothing, and no version can be saved, until it is unarchived."""
    return Request("POST", f"/v1/decision-policies/{path_part(slug)}/archive")


def unarchive_decision_policy(slug: str) -> Request[models.PolicyStateView]:
    """Unarchive a policy. Its published version decides again."""
    return Request("POST", f"/v1/decision-policies/{path_part(slug)}/unarchive")


def set_challenger(slug: str, body: models.SentChallenger) -> Request[models.PolicyStateView]:
    """Shadow-run a draft for a share of the customers: its decisions are stored with the real ones, but not returned.

    Its inputs must be among those of the published version; publishing a version that lacks one of them removes the
    challenger.
    """
    return Request("PUT", f"/v1/decision-policies/{path_part(slug)}/challenger", body=body)


def remove_challenger(slug: str) -> Request[models.PolicyStateView]:
    """Remove the challenger, so that it no longer decides beside the published version."""
    return Request("DELETE", f"/v1/decision-policies/{path_part(slug)}/challenger")


def backtest_decision_policy(slug: str, body: models.SentBacktest) -> Request[models.JobView]:
    """Compare a version with another one, or with recorded decisions, over the whole portfolio; poll the job.

    Archived policies can be backtested, too. A backtest decides nothing.
    """
    return Request("POST", f"/v1/decision-policies/{path_part(slug)}/backtest", body=body, takes_idempotency_key=True)


def list_backtests(
    slug: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.BacktestListView, models.BacktestView]:
    """List the policy's backtests, newest first."""
    return PagedRequest(
        "GET",
        f"/v1/decision-policies/{path_part(slug)}/backtests",
        query={"page": page, "count": count},
        items="backtests",
    )


def get_backtest(slug: str, backtest_id: str) -> Request[models.BacktestResultView]:
    """Read a backtest: its request, its progress, and its result for each day."""
    return Request("GET", f"/v1/decision-policies/{path_part(slug)}/backtests/{path_part(backtest_id)}")


def get_policy_coverage(slug: str, *, version: int | None = None) -> Request[models.PolicyCoverageView]:
    """Read which rules of a version were reached, and which decided, in the newest finished backtest that used it."""
    return Request("GET", f"/v1/decision-policies/{path_part(slug)}/coverage", query={"version": version})


def list_changed_customers(
    slug: str,
    backtest_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    change: Literal["outcome", "limits"] | None = None,
) -> PagedRequest[models.ChangedListView, models.ChangedCustomerView]:
    """List the customers whose outcome or limits change, with the rules that cause it."""
    return PagedRequest(
        "GET",
        f"/v1/decision-policies/{path_part(slug)}/backtests/{path_part(backtest_id)}/customers",
        query={"page": page, "count": count, "change": change},
        items="customers",
    )


def get_backtest_page(slug: str, backtest_id: str) -> Request[str]:
    """Read a backtest as one printable page with charts, which fetches nothing and runs no script."""
    return Request("GET", f"/v1/decision-policies/{path_part(slug)}/backtests/{path_part(backtest_id)}/page.html")


def evaluate_decision_policy(
    customer_id: str, slug: str, body: models.SentEvaluation
) -> Request[models.EvaluationView]:
    """Decide on a customer by a policy, from its current transactions and attributes and the declared inputs.

    With `whatIf` or `attributeOverrides`, or by any version but the published one, the evaluation is a what-if: it
    decides nothing. Every evaluation is recorded with everything that it read.
    """
    return Request(
        "POST",
        f"/v1/customer/{path_part(customer_id)}/decision-policies/{path_part(slug)}/evaluate",
        body=body,
        takes_idempotency_key=True,
    )


def vary_decision(customer_id: str, slug: str, body: models.SentSensitivity) -> Request[models.SensitivitiesView]:
    """Report how far the decision is from a different one.

    For each number that the policy reads, the response has the nearest value that changes the outcome while everything
    else stays the same; for an unavailable number, the value that it would need. With a `grid`, it also decides for all
    combinations of two numbers' values. Nothing is recorded.
    """
    return Request(
        "POST", f"/v1/customer/{path_part(customer_id)}/decision-policies/{path_part(slug)}/sensitivity", body=body
    )


def list_evaluations(
    customer_id: str, *, page: int | None = None, count: int | None = None, policy: str | None = None
) -> PagedRequest[models.EvaluationListView, models.EvaluationSummaryView]:
    """List the customer's evaluations, newest first.

    Evaluations by a challenger are included; their `shadowOf` is the id of the real decision.
    """
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/evaluations",
        query={"page": page, "count": count, "policy": policy},
        items="evaluations",
    )


def list_all_evaluations(
    *,
    page: int | None = None,
    count: int | None = None,
    policy: str | None = None,
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"] | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
    decisions_only: bool | None = None,
) -> PagedRequest[models.AllEvaluationsView, models.EvaluationSummaryView]:
    """List evaluations of all customers, newest first, without those by challengers."""
    return PagedRequest(
        "GET",
        "/v1/evaluations",
        query={
            "page": page,
            "count": count,
            "policy": policy,
            "outcome": outcome,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "decisionsOnly": decisions_only,
        },
        items="evaluations",
    )


def get_evaluation(evaluation_id: str) -> Request[models.RecordedEvaluationView]:
    """Read an evaluation with its record: what it read, which rule compared which value with what, and the response."""
    return Request("GET", f"/v1/evaluations/{path_part(evaluation_id)}")


def explain_evaluation(
    evaluation_id: str, *, page: int | None = None, count: int | None = None, figure: str | None = None
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions behind a metric as the evaluation read it, or the formula and inputs of a derived metric.

    The policy's own metrics can be explained, too. The default is the first metric that the policy reads.
    """
    return PagedRequest(
        "GET",
        f"/v1/evaluations/{path_part(evaluation_id)}/lineage",
        query={"page": page, "count": count, "figure": figure},
        items="transactions",
    )


def override_decision(evaluation_id: str, body: models.SentOverride) -> Request[models.DecisionOverrideView]:
    """Record that a person decided differently, who and why. The evaluation itself stays unchanged.

    What-ifs and a challenger's evaluations can't be overridden, because they decided nothing. If the client requires a
    second person or key, the override is only requested (202).
    """
    return Request(
        "POST", f"/v1/evaluations/{path_part(evaluation_id)}/override", body=body, takes_idempotency_key=True
    )


def get_letter(evaluation_id: str) -> Request[str]:
    """Read the letter that tells the applicant the outcome: a printable page with the policy's messages for customers.

    After an override, the letter has the outcome that the person decided. If the policy's outcome was another one, its
    reasons are left out. What-ifs, a challenger's evaluations and indeterminate outcomes have no letter.
    """
    return Request("GET", f"/v1/evaluations/{path_part(evaluation_id)}/letter.html")


def get_letter_as_pdf(evaluation_id: str) -> Request[bytes]:
    """Read the letter as PDF. The service needs an installed Chromium or Chrome for it."""
    return Request("GET", f"/v1/evaluations/{path_part(evaluation_id)}/letter.pdf")


def create_ruleset(body: models.SentRuleset) -> Request[models.SavedRulesetView]:
    """Create a ruleset. All faults of the document are listed at once.

    If it is active, all customers that it applies to are evaluated soon, after the work that is already waiting. If the
    client requires a second person or key for that, an active ruleset is only requested (202).
    """
    return Request("POST", "/v1/monitoring/rulesets", body=body, takes_idempotency_key=True)


def list_rulesets(
    *, page: int | None = None, count: int | None = None, include_archived: bool | None = None
) -> PagedRequest[models.RulesetListView, models.RulesetView]:
    """List rulesets in order of their slugs, including inactive ones."""
    return PagedRequest(
        "GET",
        "/v1/monitoring/rulesets",
        query={"page": page, "count": count, "includeArchived": include_archived},
        items="rulesets",
    )


def check_ruleset(body: models.SentRuleset) -> Request[models.CheckedRulesetView]:
    """Check a document as creating it would, and store nothing. Whether its slug is free is not checked."""
    return Request("POST", "/v1/monitoring/check", body=body)


def get_ruleset(ruleset_id: str) -> Request[models.RulesetView]:
    """Read a ruleset, and how often its rules fired in the last 30 days."""
    return Request("GET", f"/v1/monitoring/rulesets/{path_part(ruleset_id)}")


def replace_ruleset(
    ruleset_id: str, body: models.SentRuleset, *, known_version: int | None = None
) -> Request[models.SavedRulesetView]:
    """Replace a ruleset's document by a new version; an equal document changes nothing.

    If the new version is active, a rule that keeps its code doesn't fire again for the same customers because of the
    change alone. `active` switches the ruleset on and off. If the client requires a second person or key for active
    rulesets, such a version is only requested (202).
    """
    return Request(
        "PUT", f"/v1/monitoring/rulesets/{path_part(ruleset_id)}", query={"knownVersion": known_version}, body=body
    )


def archive_ruleset(ruleset_id: str) -> Request[models.RulesetView]:
    """Archive a ruleset: it watches nobody. When it is unarchived, all its rules are ready to fire again."""
    return Request("POST", f"/v1/monitoring/rulesets/{path_part(ruleset_id)}/archive")


def unarchive_ruleset(ruleset_id: str) -> Request[models.RulesetView]:
    """Unarchive a ruleset. If it is active, it watches again."""
    return Request("POST", f"/v1/monitoring/rulesets/{path_part(ruleset_id)}/unarchive")


def list_ruleset_versions(
    ruleset_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.RulesetVersionListView, models.RulesetVersionView]:
    """List all versions, newest first, each with its document and time."""
    return PagedRequest(
        "GET",
        f"/v1/monitoring/rulesets/{path_part(ruleset_id)}/versions",
        query={"page": page, "count": count},
        items="versions",
    )


def list_matches(
    *,
    page: int | None = None,
    count: int | None = None,
    customer_id: str | None = None,
    ruleset_id: str | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
) -> PagedRequest[models.MatchListView, models.MatchView]:
    """List matches, newest first, with the values that their rules read."""
    return PagedRequest(
        "GET",
        "/v1/monitoring/matches",
        query={
            "page": page,
            "count": count,
            "customerId": customer_id,
            "rulesetId": ruleset_id,
            "createdAfter": created_after,
            "createdBefore": created_before,
        },
        items="matches",
    )


def get_match(match_id: str) -> Request[models.MatchView]:
    """Read a match. Its id is the `eventId` of the webhook that reported it."""
    return Request("GET", f"/v1/monitoring/matches/{path_part(match_id)}")


def explain_match(
    match_id: str, *, page: int | None = None, count: int | None = None, figure: str | None = None
) -> PagedRequest[models.LineageView, models.ContributionView]:
    """List the transactions behind a metric as the rule read it; for a baseline metric, those up to the baseline's day.

    The default is the first metric that was read.
    """
    return PagedRequest(
        "GET",
        f"/v1/monitoring/matches/{path_part(match_id)}/lineage",
        query={"page": page, "count": count, "figure": figure},
        items="transactions",
    )


def list_library() -> Request[models.LibraryView]:
    """List the rulesets that come with the service. They watch customers only after you create them."""
    return Request("GET", "/v1/monitoring/library")


def get_library_ruleset(library_slug: str) -> Request[models.LibraryRulesetView]:
    """Read a ruleset of the library: the document to send, and the same as YAML with comments."""
    return Request("GET", f"/v1/monitoring/library/{path_part(library_slug)}")


def simulate_ruleset(ruleset_id: str, body: models.SentSimulation) -> Request[models.JobView]:
    """Try a ruleset, or another document for it, on past days before it is switched on; poll the job.

    Archived and inactive rulesets can be simulated, too. No events are sent, and the ruleset doesn't change.
    """
    return Request(
        "POST", f"/v1/monitoring/rulesets/{path_part(ruleset_id)}/simulate", body=body, takes_idempotency_key=True
    )


def list_simulations(
    ruleset_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.SimulationListView, models.SimulationView]:
    """List the ruleset's simulations, newest first."""
    return PagedRequest(
        "GET",
        f"/v1/monitoring/rulesets/{path_part(ruleset_id)}/simulations",
        query={"page": page, "count": count},
        items="simulations",
    )


def get_simulation(simulation_id: str) -> Request[models.SimulationResultView]:
    """Read a simulation: its request, its progress, and its result for each month."""
    return Request("GET", f"/v1/monitoring/simulations/{path_part(simulation_id)}")


def list_firings(
    simulation_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.FiringListView, models.FiringView]:
    """List the rules that would have fired, by customer and day, with the values that matched."""
    return PagedRequest(
        "GET",
        f"/v1/monitoring/simulations/{path_part(simulation_id)}/firings",
        query={"page": page, "count": count},
        items="firings",
    )


def get_simulation_page(simulation_id: str) -> Request[str]:
    """Read a simulation as one printable page with charts, which fetches nothing and runs no script."""
    return Request("GET", f"/v1/monitoring/simulations/{path_part(simulation_id)}/page.html")


def list_work(
    *,
    page: int | None = None,
    count: int | None = None,
    assignee: str | Literal["me", "none"] | None = None,
    kind: Literal["alert", "decision"] | None = None,
) -> PagedRequest[models.WorkListView, models.WorkItemView]:
    """List what waits for people, newest first: alerts that are neither closed nor snoozed, and decisions.

    A decision waits if it is the latest one of its customer and policy, its outcome is `conditional` or
    `indeterminate`, and nobody has overridden it. What-ifs and evaluations by a challenger decide nothing.
    """
    return PagedRequest(
        "GET", "/v1/work", query={"page": page, "count": count, "assignee": assignee, "kind": kind}, items="items"
    )


def list_colleagues() -> Request[models.ColleagueListView]:
    """List the client's users to whom work can be assigned, ordered by name."""
    return Request("GET", "/v1/colleagues")


def get_assignee(evaluation_id: str) -> Request[models.DecisionAssigneeView]:
    """Read who works on a decision, and whether it still waits for a person."""
    return Request("GET", f"/v1/evaluations/{path_part(evaluation_id)}/assignee")


def assign_decision(evaluation_id: str, body: models.SentAssignee) -> Request[models.WorkItemView]:
    """Assign a decision that waits for a person to a user or a key, or to nobody."""
    return Request("PUT", f"/v1/evaluations/{path_part(evaluation_id)}/assignee", body=body)


def list_alerts(
    *,
    page: int | None = None,
    count: int | None = None,
    assignee: str | Literal["me", "none"] | None = None,
    state: Literal["open", "acknowledged", "snoozed", "closed"] | None = None,
    customer_id: str | None = None,
    ruleset_id: str | None = None,
) -> PagedRequest[models.AlertListView, models.AlertSummaryView]:
    """List alerts, newest first, with what their rules say and recommend. Every match is an alert.

    A snoozed alert is open again once its time has come.
    """
    return PagedRequest(
        "GET",
        "/v1/alerts",
        query={
            "page": page,
            "count": count,
            "assignee": assignee,
            "state": state,
            "customerId": customer_id,
            "rulesetId": ruleset_id,
        },
        items="alerts",
    )


def get_alert(match_id: str) -> Request[models.AlertView]:
    """Read an alert with the values that its rules read, and what people did with it."""
    return Request("GET", f"/v1/alerts/{path_part(match_id)}")


def act_on_alert(match_id: str, body: models.SentAlertAction) -> Request[models.AlertView]:
    """Acknowledge, snooze, close, reopen or assign an alert. Every action applies in any state, and is recorded.

    The match and its webhook do not change, and a closed alert doesn't keep its rules from triggering again.
    """
    return Request("POST", f"/v1/alerts/{path_part(match_id)}/actions", body=body, takes_idempotency_key=True)


def list_notes(
    customer_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    evaluation_id: str | None = None,
    match_id: str | None = None,
) -> PagedRequest[models.NoteListView, models.WrittenNoteView]:
    """List notes on a customer, newest first. A deleted note has no text, only who wrote and deleted it, and when."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/notes",
        query={"page": page, "count": count, "evaluationId": evaluation_id, "matchId": match_id},
        items="notes",
    )


def add_note(customer_id: str, body: models.SentNote) -> Request[models.NewNoteView]:
    """Add a note on a customer, or on one of its evaluations or matches. Card and tax file numbers are masked."""
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/notes", body=body, takes_idempotency_key=True)


def delete_note(customer_id: str, note_id: str) -> Request[models.WrittenNoteView]:
    """Delete a note's text. That there was a note stays on the record."""
    return Request("DELETE", f"/v1/customer/{path_part(customer_id)}/notes/{path_part(note_id)}")


def list_attachments(
    customer_id: str, *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.AttachmentListView, models.AttachmentView]:
    """List the files attached to a customer, newest first, also those that were deleted."""
    return PagedRequest(
        "GET",
        f"/v1/customer/{path_part(customer_id)}/attachments",
        query={"page": page, "count": count},
        items="attachments",
    )


def attach_file(customer_id: str, body: models.SentAttachment) -> Request[models.NewAttachmentView]:
    """Attach a file of any type to a customer. It is stored encrypted, and never opened by the service."""
    return Request("POST", f"/v1/customer/{path_part(customer_id)}/attachments", body=body, takes_idempotency_key=True)


def download_attachment(customer_id: str, attachment_id: str) -> Request[str]:
    """Download an attached file as it was sent. Browsers save it, and don't show it."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}/attachments/{path_part(attachment_id)}/content")


def delete_attachment(customer_id: str, attachment_id: str) -> Request[models.AttachmentView]:
    """Delete an attached file and its name. That there was one stays on the record."""
    return Request("DELETE", f"/v1/customer/{path_part(customer_id)}/attachments/{path_part(attachment_id)}")


def get_timeline(
    customer_id: str, *, cursor: str | None = None, count: int | None = None
) -> Request[models.TimelineView]:
    """Read what happened to a customer, newest first: submissions, reports, decisions, alerts and people's work."""
    return Request("GET", f"/v1/customer/{path_part(customer_id)}/timeline", query={"cursor": cursor, "count": count})


def list_approvals(
    *,
    page: int | None = None,
    count: int | None = None,
    kind: Literal["publish", "override", "activate", "lift"] | None = None,
    status: Literal["pending", "approved", "declined", "superseded", "withdrawn"] | None = None,
    evaluation_id: str | None = None,
) -> PagedRequest[models.ApprovalListView, models.ApprovalView]:
    """List requests for actions that need a second person or key, newest first, with what became of them."""
    return PagedRequest(
        "GET",
        "/v1/approvals",
        query={"page": page, "count": count, "kind": kind, "status": status, "evaluationId": evaluation_id},
        items="approvals",
    )


def get_approval(approval_id: str) -> Request[models.ApprovalView]:
    """Read a request for an action, and what became of it."""
    return Request("GET", f"/v1/approvals/{path_part(approval_id)}")


def approve_request(approval_id: str) -> Request[models.ApprovalView]:
    """Approve a request, and perform its action at once.

    It needs the scope of the action, and another person or key than the requester's; for `lift`, another person. If the
    action is refused, it is not performed, and the request stays pending: decline it, or request the action again.
    """
    return Request("POST", f"/v1/approvals/{path_part(approval_id)}/approve")


def decline_request(approval_id: str, body: models.SentDecline) -> Request[models.ApprovalView]:
    """Decline a request: its action is not performed.

    It needs the scope of the action, and another person or key than the requester's.
    """
    return Request("POST", f"/v1/approvals/{path_part(approval_id)}/decline", body=body)


def withdraw_request(approval_id: str) -> Request[models.ApprovalView]:
    """Withdraw a request, by the person or key that made it: its action is not performed."""
    return Request("POST", f"/v1/approvals/{path_part(approval_id)}/withdraw")


def get_four_eyes() -> Request[models.FourEyesView]:
    """Read which actions another person or key must approve."""
    return Request("GET", "/v1/four-eyes")


def set_four_eyes(body: models.SentFourEyes) -> Request[models.FourEyesView]:
    """Set which actions another person or key must approve. Only signed-in users can do this.

    A change that leaves out an action that needs an approval now is requested: another admin must approve it. Every
    other change applies at once.
    """
    return Request("PUT", "/v1/four-eyes", body=body)


def create_subscription(body: models.NewSubscription) -> Request[models.CreatedSubscriptionView]:
    """Subscribe a URL to one type of event. The signing secret is in this response and in no other."""
    return Request("POST", "/v1/webhooks/subscriptions", body=body, takes_idempotency_key=True)


def list_subscriptions(
    *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.SubscriptionListView, models.SubscriptionView]:
    """List subscriptions in order of creation."""
    return PagedRequest(
        "GET", "/v1/webhooks/subscriptions", query={"page": page, "count": count}, items="subscriptions"
    )


def get_subscription(subscription_id: str) -> Request[models.SubscriptionView]:
    """Read one subscription."""
    return Request("GET", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}")


def change_subscription(subscription_id: str, body: models.ChangedSubscription) -> Request[models.SubscriptionView]:
    """Change how failures are handled: `maxRetries`, `pauseAfterFailures`. A field that isn't sent stays unchanged."""
    return Request("PATCH", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}", body=body)


def delete_subscription(subscription_id: str) -> Request[models.SubscriptionView]:
    """Delete a subscription. Nothing more is sent to it; a delivery under way may still arrive, within 30 s."""
    return Request("DELETE", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}")


def pause_subscription(subscription_id: str) -> Request[models.SubscriptionView]:
    """Pause a subscription: nothing is sent until it is resumed.

    Events that happen in the meantime are kept. A delivery under way is completed.
    """
    return Request("POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/pause")


def resume_subscription(subscription_id: str) -> Request[models.SubscriptionView]:
    """Resume a subscription: waiting events are sent in order, then new ones. Failures count from zero."""
    return Request("POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/resume")


def get_subscription_summary(subscription_id: str) -> Request[models.SummaryView]:
    """Summarise the deliveries of the last 24 hours and 7 days, and those that are waiting."""
    return Request("GET", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/summary")


def test_subscription(subscription_id: str) -> Request[models.DeliveryView]:
    """Send a signed sample event of the subscription's type, with `"test": true`.

    It is sent even while the subscription is paused, and is not retried.
    """
    return Request("POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/test", takes_idempotency_key=True)


def resend_deliveries(subscription_id: str, body: models.Resending) -> Request[models.ResentView]:
    """Send again all failed deliveries that were created since a time: the same bytes, oldest first."""
    return Request(
        "POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/resend", body=body, takes_idempotency_key=True
    )


def rotate_secret(subscription_id: str) -> Request[models.RotatedSecretView]:
    """Replace the signing secret. Everything sent from now on is signed with the new one, older events too.

    A delivery under way may still arrive with the old signature, within 30 s.
    """
    return Request("POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/secret/rotate")


def add_customers(subscription_id: str, body: models.ScopedCustomers) -> Request[models.SubscriptionView]:
    """Add customers to the subscription's scope."""
    return Request("POST", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/customers", body=body)


def remove_customers(subscription_id: str, body: models.ScopedCustomers) -> Request[models.SubscriptionView]:
    """Remove customers from the scope. If none is left, the subscription receives all customers' events."""
    return Request("DELETE", f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/customers", body=body)


def list_deliveries(
    subscription_id: str,
    *,
    page: int | None = None,
    count: int | None = None,
    status: Literal["due", "sending", "delivered", "retrying", "failed", "cancelled"] | None = None,
    event_type: Literal[
        "job.completed",
        "job.failed",
        "job.extraction.completed",
        "job.extraction.failed",
        "job.enrichment.completed",
        "job.enrichment.failed",
        "monitoring.rule.triggered",
    ]
    | None = None,
    customer_id: str | None = None,
    event_id: str | None = None,
    error: Literal["dns", "connect", "tls", "timeout", "refused", "reset", "protocol", "secret", "status"]
    | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
    before: str | None = None,
) -> PagedRequest[models.DeliveryListView, models.DeliveryView]:
    """List a subscription's deliveries, newest first, with every attempt."""
    return PagedRequest(
        "GET",
        f"/v1/webhooks/subscriptions/{path_part(subscription_id)}/deliveries",
        query={
            "page": page,
            "count": count,
            "status": status,
            "eventType": event_type,
            "customerId": customer_id,
            "eventId": event_id,
            "error": error,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "before": before,
        },
        items="deliveries",
    )


def list_all_deliveries(
    *,
    page: int | None = None,
    count: int | None = None,
    status: Literal["due", "sending", "delivered", "retrying", "failed", "cancelled"] | None = None,
    event_type: Literal[
        "job.completed",
        "job.failed",
        "job.extraction.completed",
        "job.extraction.failed",
        "job.enrichment.completed",
        "job.enrichment.failed",
        "monitoring.rule.triggered",
    ]
    | None = None,
    customer_id: str | None = None,
    event_id: str | None = None,
    error: Literal["dns", "connect", "tls", "timeout", "refused", "reset", "protocol", "secret", "status"]
    | None = None,
    created_after: str | None = None,
    created_before: str | None = None,
    before: str | None = None,
) -> PagedRequest[models.DeliveryListView, models.DeliveryView]:
    """List the deliveries of all subscriptions, including deleted ones, newest first, with every attempt."""
    return PagedRequest(
        "GET",
        "/v1/webhooks/deliveries",
        query={
            "page": page,
            "count": count,
            "status": status,
            "eventType": event_type,
            "customerId": customer_id,
            "eventId": event_id,
            "error": error,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "before": before,
        },
        items="deliveries",
    )


def resend_delivery(delivery_id: str) -> Request[models.DeliveryView]:
    """Send a delivery once more: the same bytes, with the same `eventId`."""
    return Request("POST", f"/v1/webhooks/deliveries/{path_part(delivery_id)}/resend", takes_idempotency_key=True)


def list_roles() -> Request[models.RoleListView]:
    """List the roles and the scopes that each grants."""
    return Request("GET", "/v1/roles")


def list_users(
    *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.UserListView, models.UserView]:
    """List users by email address, including disabled ones."""
    return PagedRequest("GET", "/v1/users", query={"page": page, "count": count}, items="users")


def create_user(body: models.NewUser) -> Request[models.InvitedUserView]:
    """Create a user. Only signed-in users can do this. The link to sign in is in this response and in no other."""
    return Request("POST", "/v1/users", body=body)


def get_user(user_id: str) -> Request[models.UserView]:
    """Read one user."""
    return Request("GET", f"/v1/users/{path_part(user_id)}")


def change_user(user_id: str, body: models.ChangedUser) -> Request[models.UserView]:
    """Change a user's name or role. Only signed-in users can do this.

    A role applies from the user's next request on.
    """
    return Request("PATCH", f"/v1/users/{path_part(user_id)}", body=body)


def erase_user(user_id: str) -> Request[models.ErasedUserView]:
    """Erase a user's name, email address and password. Only signed-in users can do this. The sessions end.

    What the user did stays recorded under the user's id, which `GET /v1/actors` then calls a removed user. Texts that
    people typed stay, too: notes, reasons, and who is named as having decided on an override.
    """
    return Request("DELETE", f"/v1/users/{path_part(user_id)}")


def disable_user(user_id: str) -> Request[models.UserView]:
    """Disable a user. Only signed-in users can do this. The sessions end; what the user did stays recorded."""
    return Request("POST", f"/v1/users/{path_part(user_id)}/disable")


def enable_user(user_id: str) -> Request[models.UserView]:
    """Enable a user who is disabled, or locked out after wrong passwords. Only signed-in users can do this."""
    return Request("POST", f"/v1/users/{path_part(user_id)}/enable")


def make_link(user_id: str) -> Request[models.LinkView]:
    """Make a link that signs a user in once, for example after a forgotten password.

    Only signed-in users can do this.
    """
    return Request("POST", f"/v1/users/{path_part(user_id)}/link")


def list_keys(*, page: int | None = None, count: int | None = None) -> PagedRequest[models.KeyListView, models.KeyView]:
    """List API keys, newest first, including those that have ended. The keys themselves are not stored."""
    return PagedRequest("GET", "/v1/keys", query={"page": page, "count": count}, items="keys")


def create_key(body: models.NewKey) -> Request[models.IssuedKeyView]:
    """Create an API key. Only signed-in users can do this. The key is in this response and in no other."""
    return Request("POST", "/v1/keys", body=body)


def get_key(key_id: str) -> Request[models.KeyView]:
    """Read one API key, without its text."""
    return Request("GET", f"/v1/keys/{path_part(key_id)}")


def rotate_key(key_id: str, body: models.Rotation) -> Request[models.IssuedKeyView]:
    """Replace an API key by a new one with the same scopes. Both are valid until the overlap ends.

    Only signed-in users can do this. The new key is in this response and in no other. A key that has ended can't be
    rotated.
    """
    return Request("POST", f"/v1/keys/{path_part(key_id)}/rotate", body=body)


def revoke_key(key_id: str) -> Request[models.KeyView]:
    """Revoke an API key. Only signed-in users can do this.

    The next request with the key is refused; this can't be undone.
    """
    return Request("POST", f"/v1/keys/{path_part(key_id)}/revoke")


def list_audit_entries(
    *,
    who: str | None = None,
    action: str | None = None,
    since: str | None = None,
    include_subjects: bool | None = None,
    count: int | None = None,
    cursor: str | None = None,
) -> Request[models.TrailView]:
    """List what was done by or for the client, newest first. Entries are never changed or deleted."""
    return Request(
        "GET",
        "/v1/audit",
        query={
            "who": who,
            "action": action,
            "since": since,
            "includeSubjects": include_subjects,
            "count": count,
            "cursor": cursor,
        },
    )


def list_audit_actions() -> Request[models.ActionListView]:
    """List the actions that are in the audit trail, each once."""
    return Request("GET", "/v1/audit/actions")


def list_actors(*, who: str | None = None) -> Request[models.ActorListView]:
    """Return the names behind values of `who`, `madeBy` or `setBy`: of users, API keys, the operator or the service.

    A value that stands for nobody at this client has the kind `unknown`.
    """
    return Request("GET", "/v1/actors", query={"who": who})


def get_liveness() -> Request[models.LiveView]:
    """Check that the process answers."""
    return Request("GET", "/health/live")


def get_readiness() -> Request[models.ReadyView]:
    """Check that the service can do its work.

    It can if the database answers, jobs are dispatched and processed, no schedule or sensor that should run is stopped,
    the lake can be written, and the disk has free space.
    """
    return Request("GET", "/health/ready")


def get_service_metrics() -> Request[str]:
    """Count webhook deliveries and jobs of all clients together, in Prometheus's text format."""
    return Request("GET", "/metrics")


def create_sandbox_customer(body: models.NewSandboxCustomer) -> Request[models.SandboxCustomerView]:
    """Create a synthetic business as a customer, with attributes, related parties, and transactions until yesterday.

    Only in a sandbox. For a year, its transactions of the past day are submitted every night.
    """
    return Request("POST", "/v1/sandbox/customers", body=body, takes_idempotency_key=True)


def list_sandbox_profiles(
    *, page: int | None = None, count: int | None = None
) -> PagedRequest[models.SandboxProfileListView, models.SandboxProfileView]:
    """List the profiles of synthetic businesses. Only in a sandbox."""
    return PagedRequest("GET", "/v1/sandbox/profiles", query={"page": page, "count": count}, items="profiles")
