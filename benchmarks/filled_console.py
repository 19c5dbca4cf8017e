"""Fill a lender's console: an example of everything that has a page, for benchmarks and for tests in a browser."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastapi.routing import iter_route_contexts

from api.console.routes import PageRoute
from api.service.app import create_app
from api.service.commands.demo import BOUNCED, WATCHED_BY
from api.service.commands.lender import REQUESTS, Lender, known_attributes, last_day
from pipelines.decisions import examples
from pipelines.synthetic import business, portfolio, submissions
from pipelines.synthetic.pdf import statement_pdf
from storage.core.store import Store

CUSTOMERS, MONTHS, SEED = 3, 12, 7
RELATED = [
    {"name": "Augusta King", "role": "director"},
    {"name": "Analytical Holdings Pty Ltd", "role": "group_company", "abn": "51824753556"},
]


def fill_console(lender: Lender) -> Mapping[str, str]:
    """Make a few customers and everything else; return an id for each parameter of the console's addresses."""
    customer_ids, jobs = list[str](), list[str]()
    customers = list(portfolio(CUSTOMERS, MONTHS, SEED, until=last_day(), faults=True))
    for each in customers:
        customer_ids.append(lender.create(each)["customerId"])
        lender.put(f"/customer/{customer_ids[-1]}/related-parties", RELATED)
        jobs += lender.submit(customer_ids[-1], submissions(each))
    lender.wait_for_jobs(jobs)
    first = customer_ids[0]
    statement = statement_pdf("nab", SEED, pages=2)
    holder = {"abn": business(CUSTOMERS, MONTHS, SEED, last_day()).abn, "name": statement.accounts[0].account_name}
    read = lender.post("/customer", holder)["customerId"]
    upload = lender.upload(read, "statement.pdf", statement.content)
    [repeats] = lender.submit(first, [next(iter(submissions(customers[0])))])
    lender.wait_for_jobs([upload, repeats])
    lender.refresh([*customer_ids, read])
    evaluation = _decide(lender, customer_ids)
    ruleset, match = _watch(lender, customer_ids[1])
    hook = lender.post("/webhooks/subscriptions", {"eventType": "job.failed", "webhookUrl": "https://lender.example/"})
    lender.post(f"/webhooks/subscriptions/{hook['webhookSubscriptionId']}/test", {})
    [listed_key] = lender.get("/keys")["keys"]
    [user] = lender.get("/users")["users"]
    attachment = _write_down(lender, first, match["matchId"], customer_ids[1])
    simulation = lender.post(f"/monitoring/rulesets/{ruleset['rulesetId']}/simulate", {})["jobId"]
    lender.wait_for_jobs([simulation])
    [listed] = lender.get(f"/customer/{read}/statements")["statements"]
    return {
        "customer_id": first,
        "read_customer_id": read,
        "watched_customer_id": customer_ids[1],
        "job_id": upload,
        "repeating_job_id": repeats,
        "repeating_customer_id": first,
        "statement_id": listed["statementId"],
        "page_number": "1",
        "section_id": "monthly",
        "evaluation_id": evaluation["evaluationId"],
        "slug": next(iter(REQUESTS)),
        "version": "1",
        "backtest_id": _backtest(lender),
        "ruleset_id": ruleset["rulesetId"],
        "match_id": match["matchId"],
        "user_id": user["userId"],
        "key_id": listed_key["keyId"],
        "subscription_id": hook["webhookSubscriptionId"],
        "attachment_id": attachment,
        "transaction_id": lender.get(f"/customer/{first}/transactions", page=1, count=1)["transactions"][0][
            "transactionId"
        ],
        "simulation_id": simulation,
    }


def list_pages(store: Store, method: str = "GET") -> list[str]:
    """Return the path of each page of the console that has this method, with its parameters in braces."""
    routes = [context.original_route for context in iter_route_contexts(create_app(store).routes)]
    return [route.path for route in routes if isinstance(route, PageRoute) and method in (route.methods or ())]


def insert_ids(path: str, ids: Mapping[str, str]) -> str:
    """Put ids into a path: of the customer whose statement was read, or who is watched, if the page shows that; and of
    the submission that repeats another.
    """
    if path.endswith("/duplicates"):
        ids = {**ids, "job_id": ids["repeating_job_id"], "customer_id": ids["repeating_customer_id"]}
    elif "/statements" in path or "/upload" in path:
        ids = {**ids, "customer_id": ids["read_customer_id"]}
    if path.endswith("/monitoring"):
        ids = {**ids, "customer_id": ids["watched_customer_id"]}
    return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path)


def _decide(lender: Lender, customer_ids: list[str]) -> dict[str, Any]:
    """Publish the example policies and decide on all customers; return the first decision."""
    lender.publish_examples()
    for customer_id in customer_ids[:-1]:  # the last customer's decisions miss its attributes
        lender.put(f"/customer/{customer_id}/attributes", {"attributes": known_attributes()})
    made = [lender.evaluate(customer_id, slug) for customer_id in customer_ids for slug in REQUESTS]
    return made[0]


def _backtest(lender: Lender) -> str:
    """Compare a draft of the first policy with the published version; return the id of the backtest."""
    slug, inputs = next(iter(REQUESTS.items()))
    lender.put(f"/decision-policies/{slug}", examples.load()[slug] | {"notes": "A draft."})
    job_id: str = lender.post(f"/decision-policies/{slug}/backtest", {"inputs": inputs})["jobId"]
    lender.wait_for_jobs([job_id])
    return job_id


def _write_down(lender: Lender, customer_id: str, match_id: str, watched: str) -> str:
    """Add a note on a customer and one on an alert, acknowledge it, and return the id of an attachment."""
    lender.post(f"/customer/{customer_id}/notes", {"text": "Rang the owner: the new loan replaces the overdraft."})
    lender.post(f"/customer/{watched}/notes", {"text": "The bank confirms that it bounced.", "matchId": match_id})
    lender.post(f"/alerts/{match_id}/actions", {"action": "acknowledge"})
    file = {"fileName": "call-notes.txt", "contentBase64": "UmFuZyB0aGUgb3duZXIuCg=="}
    attached: str = lender.post(f"/customer/{customer_id}/attachments", file)["attachmentId"]
    return attached


def _watch(lender: Lender, customer_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Adopt a ruleset that a returned repayment triggers; return it and the match."""
    document = lender.get(f"/monitoring/library/{WATCHED_BY}")["document"]
    ruleset = lender.post("/monitoring/rulesets", document | {"active": True})
    rows = [
        {"date": str(last_day() + timedelta(days=nth)), "description": text, "amount": amount}
        for nth, (text, amount) in enumerate(BOUNCED)
    ]
    account = {"bsb": "062-000", "accountNumber": "44556677", "transactions": rows}
    lender.wait_for_jobs(lender.submit(customer_id, [account]))
    for _ in range(60):
        if found := lender.get("/monitoring/matches")["matches"]:
            return ruleset, found[0]
    raise AssertionError("the ruleset has not matched")
