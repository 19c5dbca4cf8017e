"""The console's pages, by subject."""

from api.console import assets, openid, signing_in
from api.console.pages import (
    access,
    approvals,
    audit,
    comparison,
    customers,
    decisions,
    details,
    four_eyes,
    operations,
    policies,
    records,
    reports,
    resolutions,
    rulesets,
    start,
    transactions,
    uploads,
    webhooks,
    work,
)

ROUTERS = (
    *(assets.router, signing_in.router, openid.router, start.router),
    *(
        customers.router,
        details.router,
        reports.router,
        comparison.router,
        resolutions.router,
        transactions.router,
        uploads.router,
    ),
    *(decisions.router, policies.router, approvals.router),
    *(work.router, records.router, rulesets.router),
    *(access.router, four_eyes.router, audit.router, webhooks.router, operations.router),
)
