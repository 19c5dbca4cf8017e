"""Fill a running Tidemark with synthetic businesses (`tidemark up --seed-demo`) and print a key to read them with.

Everything goes through the API, as from any client. A home that was seeded before is left as it is.
"""

import os

import typer

from api.core.commands.console import opened_store, out
from api.service.commands.lender import NAME, Lender, issue_key, last_day
from pipelines.synthetic import portfolio, submissions
from storage.access import keys

CUSTOMERS, MONTHS, SEED = 12, 12, 7


def main() -> None:
    with opened_store() as store:
        with store.db.reading() as r:
            if any(client.name == NAME for client in keys.find_clients(r)):
                out.print(f"Already seeded: the client {NAME} exists.")
                return
        key = issue_key(store)
    lender = Lender(os.environ["TIDEMARK_BASE_URL"], key)
    customer_ids, jobs = list[str](), list[str]()
    for business in portfolio(CUSTOMERS, MONTHS, SEED, until=last_day(), faults=True):
        customer_ids.append(lender.create(business)["customerId"])
        jobs += lender.submit(customer_ids[-1], submissions(business))
    rows = sum(job["enrichedCount"] for job in lender.finished(jobs))
    lender.refresh(customer_ids)
    out.print(f"Seeded {CUSTOMERS} businesses with {rows:,} enriched transactions and their reports.")
    out.print(f"Key of {NAME}   {key}", soft_wrap=True, highlight=False)
    out.print(
        f'Try   curl -s "{lender.base_url}/v1/customer/{customer_ids[0]}/reports" -H "x-api-key: {key}"',
        soft_wrap=True,
        highlight=False,
    )


if __name__ == "__main__":
    typer.run(main)
