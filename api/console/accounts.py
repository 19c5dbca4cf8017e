"""A customer's accounts, as people name them."""

from api.console.rendering import account_name
from api.console.visits import Page


async def read_account_names(page: Page, customer_id: str) -> dict[str, str]:
    """Return the names of the customer's accounts by id, if the completeness report has been computed."""
    report = (await page.get("customer", customer_id, "reports", "completeness"))["data"]
    return {each["accountId"]: account_name(each) for each in (report or {}).get("accounts", ())}
