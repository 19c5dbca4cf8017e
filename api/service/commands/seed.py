"""Fill a running Tidemark with synthetic businesses (`tidemark up --seed-demo`), and print how to look at them.

Everything but the client, its key and its user goes through the API, as from any client. A home that was seeded before
is left as it is.
"""

import os

import typer

from api.core.commands.console import opened_store, out
from api.service.commands.lender import NAME, REQUESTS, Lender, grant_access, issue_key
from storage.access import keys

MONTHS = 12


def main() -> None:
    with opened_store() as store:
        with store.db.reading() as r:
            if any(client.name == NAME for client in keys.find_clients(r)):
                out.print(f"Already seeded: the client {NAME} exists.")
                return
        client_id, key = issue_key(store)
        lender = Lender(os.environ["TIDEMARK_BASE_URL"], key)
        lender.publish_examples()
        count = fill(lender)
        access = grant_access(store, client_id, lender.base_url, key)
    out.print(f"Seeded {count} businesses, one of each profile, with reports and decisions.")
    for line in access.lines:
        out.print(line, soft_wrap=True, highlight=False, markup=False)


def fill(lender: Lender) -> int:
    """Create a business of each profile, and decide on each by the published example policies. Return their number."""
    customer_ids = lender.create_of_each_profile(MONTHS)
    for customer_id in customer_ids:
        for slug in REQUESTS:
            lender.evaluate(customer_id, slug)
    return len(customer_ids)


if __name__ == "__main__":
    typer.run(main)
