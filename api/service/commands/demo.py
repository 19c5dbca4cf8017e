"""`tidemark demo`: a tour of the service through the API, on the transactions of synthetic businesses.

The demo starts the service with a home of its own, acts as a lender's backend over HTTP, receives the signed webhooks
and shows the results. Everything but the client and its key is created through the API.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table

from api.core.commands.console import complaint, out
from api.service.commands import addresses, seed
from api.service.commands.lender import Access, Lender, grant_access, issue_key, known_attributes, last_day
from api.webhooks.listen import Received, Receiver
from pipelines.synthetic import business, portfolio, submissions
from pipelines.synthetic.pdf import statement_pdf
from storage.core.settings import Settings
from storage.core.store import Store

CUSTOMERS, MONTHS, SEED = 4, 12, 7
READY_WITHIN_S = 90
LONGEST_NAME = 30
PAGE = "report.html"  # in the home: reports of the first customer
PICTURE = "statement.png"  # in the home: a page of the statement with one row highlighted
SHORT = {  # names of the example policies
    "working-capital-loan": "capital loan",
    "line-of-credit": "line of credit",
    "merchant-cash-advance": "cash advance",
}
WATCHED_BY = "own-repayment-returned"  # a ruleset of the library
BOUNCED = (  # transactions of a customer on consecutive days, in AUD
    ("DIRECT DEBIT HARBOUR LENDING LOAN 20881", "-482.50"),
    ("DIRECT DEBIT DISHONOUR HARBOUR LENDING LOAN 20881", "482.50"),
)
WOUND_UP = {"description": "DIRECT DEBIT WINDING UP APPLICATION SETTLEMENT", "amount": "-4200.00"}  # last customer's
BAD_ROWS = (
    {"date": "2026-02-30", "description": "EFTPOS PURCHASE", "amount": "-12.00"},
    {"date": "2026-03-02", "description": "TRANSFER", "amount": "12.345"},
)


def demo(
    leave: Annotated[bool, typer.Option("--exit", help="Exit at the end, even on a terminal.")] = False,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Keep the service running at the end, even without a terminal.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address of the API.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the API; 0 for any free one.")] = 0,
    dagster_port: Annotated[int, typer.Option(help="Port of Dagster's pages; 0 for any free one.")] = 0,
) -> None:
    """Show the service at work on synthetic data, from transactions to webhooks.

    On a terminal the service keeps running at the end, with more customers, a
    link to the console, a key and a first request. Ctrl-C stops it.

    Example: tidemark demo --exit
    """
    if leave and keep_running:
        raise typer.BadParameter("--exit and --keep-running exclude each other")
    stays = keep_running or (sys.stdout.isatty() and not leave)
    home = _fresh_home()
    with Receiver(home=home) as receiver:
        environment = _environment(home, receiver)
        ports = addresses.choose_port(port), addresses.choose_port(dagster_port)
        with _service(environment, host, *ports) as base_url:
            with _open_store(home) as store:
                client_id, key = issue_key(store)
            lender = Lender(base_url, key)
            customers = _run_chapters(lender, receiver, home)
            (home / PAGE).write_bytes(lender.content(f"/customer/{customers[0]['customerId']}/reports.html"))
            access = _prepare_console(home, lender, client_id, key) if stays else None
            _farewell(home, base_url, ports[1], access)
            if stays:
                _until_interrupted()


def _fresh_home() -> Path:
    home = Settings().home / "demo"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    return home


def _environment(home: Path, receiver: Receiver) -> dict[str, str]:
    """Return the service's settings: its own home, and permission to call a receiver on this machine."""
    return os.environ | {
        "TIDEMARK_HOME": str(home),
        "TIDEMARK_DATABASE_URL": "",
        "TIDEMARK_LAKE_URL": "",
        "TIDEMARK_ENVIRONMENT": "sandbox",
        "TIDEMARK_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8",
        "TIDEMARK_WEBHOOK_CA_BUNDLE": str(receiver.ca_path),
    }


@contextmanager
def _service(environment: Mapping[str, str], host: str, port: int, dagster_port: int) -> Iterator[str]:
    """Run `tidemark up`; yield its URL when it is ready, and stop it at the end."""
    command = [sys.executable, "-m", "api.cli", "up", "--host", host, "--port", str(port)]
    command += ["--dagster-port", str(dagster_port)]
    log = Path(environment["TIDEMARK_HOME"]) / "up.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env=environment, stdout=sink, stderr=subprocess.STDOUT)
    base_url = f"http://{host}:{port}"
    try:
        with out.status("Starting the API, the worker and Dagster …"):
            addresses.wait_until_ready(base_url, process, READY_WITHIN_S)
        yield base_url
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def _open_store(home: Path) -> Iterator[Store]:
    store = Store.open(Settings(home=home, database_url="", lake_url=""))
    try:
        yield store
    finally:
        store.close()


def _prepare_console(home: Path, lender: Lender, client_id: UUID, key: str) -> Access:
    """Add a customer of each profile, with decisions, refresh what is stale, and return how to look at them."""
    with out.status("Filling the console …"):
        seed.fill(lender)
        listed = lender.get("/customers/summaries", page=1, count=100)["customers"]
        lender.refresh(each["customerId"] for each in listed if each["reportStatus"] != "ready")
    with _open_store(home) as store:
        return grant_access(store, client_id, lender.base_url, key)


def _run_chapters(lender: Lender, receiver: Receiver, home: Path) -> list[dict[str, Any]]:
    """Run all chapters, and return the customers."""
    _chapter("1", "A lender subscribes to finished jobs")
    subscription = _subscribe(lender, receiver)
    _chapter("2", f"Bank transactions of {CUSTOMERS} small businesses over {MONTHS} months")
    customers = _submit_all(lender)
    _chapter("3", "Cleaned, categorised and linked")
    _show_transactions(lender, customers[0])
    _chapter("4", "Three reports, refreshed")
    first = _show_reports(lender, customers)
    _chapter("5", "A figure, followed down to its transactions")
    _show_lineage(lender, customers[0], first)
    _chapter("6", "Three lending policies decide, and say why")
    _show_decisions(lender, customers)
    _chapter("7", "A PDF statement, read and proved")
    _show_statement(lender, home)
    _chapter("8", "The webhook, verified")
    _show_webhook(receiver, subscription)
    _chapter("9", "Watching the loan")
    _show_watching(lender, receiver, customers)
    return customers


def _subscribe(lender: Lender, receiver: Receiver) -> dict[str, Any]:
    body: dict[str, Any] = {"eventType": "job.completed", "webhookUrl": receiver.url, "customerIds": []}
    subscription = lender.post("/webhooks/subscriptions", body)
    receiver.learn(subscription["secret"])
    shown = subscription["webhookSubscriptionId"][:8]
    out.print(f"POST /v1/webhooks/subscriptions → {shown}…, and a secret that is shown only now")
    return subscription


def _submit_all(lender: Lender) -> list[dict[str, Any]]:
    """Create the customers, send all accounts and wait for the jobs.

    The first account has two invalid rows; the last customer settles an application to wind it up.
    """
    businesses = list(portfolio(CUSTOMERS, MONTHS, SEED, until=last_day(), faults=True))
    bodies = {business.abn: list(submissions(business)) for business in businesses}
    bodies[businesses[0].abn][0]["transactions"] += BAD_ROWS
    bodies[businesses[-1].abn][0]["transactions"].append({"date": last_day().isoformat(), **WOUND_UP})
    customers = [lender.create(business) for business in businesses]
    jobs: list[str] = []
    with _progress() as progress:
        total = sum(map(len, bodies.values()))
        sent, done = progress.add_task("submitted", total=total), progress.add_task("enriched", total=total)
        for customer, business in zip(customers, businesses, strict=True):
            jobs += lender.submit(customer["customerId"], bodies[business.abn], partial(progress.advance, sent))
        ended = lender.wait_for_jobs(jobs, partial(progress.advance, done))
    _show_jobs(ended)
    return customers


def _show_jobs(jobs: list[dict[str, Any]]) -> None:
    counts = ("totalReceivedTransactions", "enrichedCount", "duplicateCount", "rejectedCount")
    received, enriched, duplicates, rejected = (sum(job[name] or 0 for job in jobs) for name in counts)
    out.print(
        f"{len(jobs)} jobs, {received:,} rows: [b]{enriched:,} enriched[/],"
        f" {duplicates} duplicates, {rejected} rejected"
    )
    for error in [error for job in jobs for error in job["errors"]][:3]:
        _print_indented(f"rejected row {error['index']}: [b]{error['code']}[/] {error['message']}")


def _show_transactions(lender: Lender, customer: Mapping[str, Any]) -> None:
    listed = lender.get(f"/customer/{customer['customerId']}/transactions", page=1, count=14)
    table = _table(customer["name"], "date", "description, cleaned", "amount >", "category")
    for row in listed["transactions"]:
        names = (_cut(row["cleanDescription"], 22), f"{row['amount']:,.2f}", row["category"])
        table.add_row(row["date"], *names, style=None if row["direction"] == "debit" else "green")
    out.print(table)
    out.print(f"… and {listed['totalCount'] - len(listed['transactions']):,} more of this customer")


def _show_reports(lender: Lender, customers: list[dict[str, Any]]) -> dict[str, Any]:
    """Refresh and show the reports, and return those of the first customer."""
    ids = [customer["customerId"] for customer in customers]
    lender.refresh(ids)
    bundles = [lender.get(f"/customer/{customer_id}/reports") for customer_id in ids]
    table = _table("Reports", "customer", "completeness", "risk", "confidence")
    for customer, bundle in zip(customers, bundles, strict=True):
        summary, risk = bundle["completeness"]["data"]["summary"], bundle["risk"]["data"]
        table.add_row(
            _cut(customer["name"]),
            f"{summary['completenessScore']:.2f} {summary['completenessTier']}",
            f"{risk['value']} {risk['rating']}",
            f"{risk['pdConfidenceScore']:.2f} {risk['pdConfidenceRating']}",
        )
    out.print(table)
    out.print("The probability of default is only indicative, as the model is not calibrated: Risk.Uncalibrated")
    _show_limits(customers, bundles)
    _show_cash_flow(customers[0], bundles[0])
    return bundles[0]


def _show_limits(customers: Iterable[Mapping[str, Any]], bundles: Iterable[Mapping[str, Any]]) -> None:
    """Show the events that limit ratings, whatever the points say."""
    for customer, bundle in zip(customers, bundles, strict=True):
        risk = bundle["risk"]["data"]
        for event in (each for each in risk["events"] if each["code"] in risk["limitedBy"]):
            out.print(f"[b]{customer['name']} is rated {risk['rating']}[/]: {event['sentence']}.")


def _show_lineage(lender: Lender, customer: Mapping[str, Any], bundle: Mapping[str, Any]) -> None:
    """Show the transactions whose sum is the revenue of the second-to-last month."""
    nth = len(_find_table(bundle, "monthly")["values"]) - 2
    figure = f"/tables/monthly_cash_flow/values/{nth}/revenue"
    path = f"/customer/{customer['customerId']}/reports/aggregate/lineage"
    found = lender.get(path, figure=figure, page=1, count=5)
    table = _table(f"Revenue of {customer['name']}", "date", "description", "adds >")
    for row in found["transactions"]:
        table.add_row(row["date"], _cut(row["description"]), _money(row["contribution"]))
    out.print(table)
    more = found["totalCount"] - len(found["transactions"])
    out.print(f"… and {more:,} more: together {_money(found['total'])}, exactly the figure in the report")


def _show_decisions(lender: Lender, customers: list[dict[str, Any]]) -> None:
    """Publish the example policies, evaluate all customers, and show reasons."""
    lender.publish_examples()
    for customer in customers:
        lender.put(f"/customer/{customer['customerId']}/attributes", {"attributes": known_attributes()})
    decisions = {
        (customer["name"], slug): lender.evaluate(customer["customerId"], slug)
        for customer in customers
        for slug in SHORT
    }
    table = _table("Decisions, AUD", "customer", *SHORT.values())
    for customer in customers:
        table.add_row(
            _cut(customer["name"], 18), *(_describe_decision(decisions[customer["name"], slug]) for slug in SHORT)
        )
    out.print(table)
    _show_reasons(decisions)


def _describe_decision(evaluation: Mapping[str, Any]) -> str:
    """Describe the outcome and the highest limit that is offered."""
    offered = [each["amount"] for each in evaluation["computedLimits"] if each["kind"] == "computed"]
    outcome: str = evaluation["verdict"]["outcome"]
    return f"{outcome} {max(offered):,.0f}" if any(offered) else outcome


def _show_reasons(decisions: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """Show the reasons of one decision for each outcome: matched rules, or what would resolve it."""
    described = set[str]()
    for (name, slug), evaluation in decisions.items():
        verdict = evaluation["verdict"]
        reasons = [each["message"] for each in verdict["matchedRules"]]
        reasons += [f"{each['message']} {each['settle']}" for each in verdict["reasons"]]
        if reasons and verdict["outcome"] not in described:
            described.add(verdict["outcome"])
            out.print(f"[b]{verdict['outcome']}[/]: {name}, {slug}")
            for reason in reasons[:3]:
                _print_indented(reason)


def _show_statement(lender: Lender, home: Path) -> None:
    """Upload a PDF statement of a new customer, and highlight one row on its page."""
    pdf = statement_pdf("nab", SEED, pages=2)
    account = pdf.accounts[0]
    abn = business(CUSTOMERS, MONTHS, SEED, last_day()).abn
    path = f"/customer/{lender.post('/customer', {'abn': abn, 'name': account.account_name})['customerId']}"
    # The policies need more than one statement, but refuse a customer in hardship before they read it.
    lender.put(f"{path}/attributes", {"attributes": known_attributes() | {"hardship_flag": True}})
    [job] = lender.wait_for_jobs([lender.upload(path.rpartition("/")[2], "statement.pdf", pdf.content)])
    [listed] = lender.get(f"{path}/statements")["statements"]
    out.print(
        f"{listed['bankName']}, {account.account_name}, {listed['periodStart']} to {listed['periodEnd']}: "
        f"{job['enrichedCount']} rows, [b]{listed['verdict']}[/]"
    )
    opening, closing = _money(listed["openingBalance"]), _money(listed["closingBalance"])
    _print_indented(f"the rows explain every balance, from {opening} to {closing}")
    whole = lender.get(f"{path}/statements/{listed['statementId']}")
    row = max(whole["rows"], key=lambda each: abs(each["amount"]))
    page = row["boxes"][0]["page"]
    picture = lender.content(f"{path}/statements/{listed['statementId']}/pages/{page}.png", row=row["row"])
    (home / PICTURE).write_bytes(picture)
    _print_indented(f"highlighted in {PICTURE}, page {page}:")
    _print_indented(f"{row['date']} {_cut(row['description'])} {_money(row['amount'])}")


def _show_cash_flow(customer: Mapping[str, Any], bundle: Mapping[str, Any]) -> None:
    table = _table(
        f"Cash flow of {customer['name']}", "month", "money in >", "money out >", "net >", "count >", "at month's end >"
    )
    for row in _find_table(bundle, "monthly")["values"]:
        money = (row["moneyIn"], row["moneyOut"], row["net"])
        count = row["creditCount"] + row["debitCount"]
        table.add_row(row["month"][:7], *map(_money, money), str(count), _money(row["closingBalance"]))
    out.print(table)


def _table(title: str, *columns: str) -> Table:
    """Return a table that fits in 80 columns. Columns whose name ends in `>` are right-aligned."""
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name.removesuffix(" >"), justify="right" if name.endswith(">") else "left", no_wrap=True)
    return table


def _print_indented(text: str, spaces: int = 2) -> None:
    """Print text whose further lines begin below its first."""
    out.print(Padding(text, (0, 0, 0, spaces)))


def _cut(name: str, width: int = LONGEST_NAME) -> str:
    return shorten(name, width, placeholder=" …")


def _money(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def _find_table(bundle: Mapping[str, Any], start: str) -> dict[str, Any]:
    tables: list[dict[str, Any]] = bundle["aggregate"]["data"]["tables"]
    return next(table for table in tables if table["id"].lower().startswith(start))


def _show_webhook(receiver: Receiver, subscription: Mapping[str, Any]) -> None:
    _show_delivery(subscription, _wait_for_delivery(receiver, "job.completed"))
    verified = sum(each.verified is True for each in receiver.received)
    out.print(f"{verified} of {len(receiver.received)} deliveries verified so far")


def _wait_for_delivery(receiver: Receiver, event_type: str) -> Received:
    """Return the first delivery of this type with a verified signature."""
    found = receiver.wait_for(lambda each: each.verified is True and each.json["eventType"] == event_type, timeout_s=20)
    if found is None:
        raise complaint(f"no verified webhook {event_type} arrived within 20 s")
    return found


def _show_delivery(subscription: Mapping[str, Any], delivery: Received) -> None:
    lines = [
        f"POST {subscription['webhookUrl']}",
        f"X-Service-Webhook-Signature: {delivery.headers['x-service-webhook-signature']}",
        "",
        json.dumps(delivery.json, indent=2, ensure_ascii=False),  # of one long line, the terminal would break words
    ]
    out.print(Panel("\n".join(lines), title="[green]✔ signature verified[/]", title_align="left", expand=False))


def _show_watching(lender: Lender, receiver: Receiver, customers: list[dict[str, Any]]) -> None:
    """Adopt a ruleset, send a returned repayment, and show the webhook and its match."""
    nth = _soundest(lender, customers)
    customer = customers[nth]
    subscription = _watch(lender, receiver, customer)
    body = _bounced_repayment(nth)
    lender.wait_for_jobs(lender.submit(customer["customerId"], [body]))
    out.print(f"POST …/transactions → a repayment of {customer['name']} comes back:")
    for row in body["transactions"]:
        out.print(f"  {row['date']} {row['description']} {row['amount']}", soft_wrap=True)
    delivery = _wait_for_delivery(receiver, "monitoring.rule.triggered")
    _show_delivery(subscription, delivery)
    _show_match(lender, delivery.json["eventId"])


def _soundest(lender: Lender, customers: list[dict[str, Any]]) -> int:
    """Return the position of the customer with the fewest missed repayments, but not the first."""

    def missed(nth: int) -> float:
        read = lender.get(f"/customer/{customers[nth]['customerId']}/metrics")["metrics"]
        return next(each["value"] or 0 for each in read if each["slug"] == "missed_repayments_180d")

    return min(range(1, len(customers)), key=missed)


def _watch(lender: Lender, receiver: Receiver, customer: Mapping[str, Any]) -> dict[str, Any]:
    """Subscribe to rules for one customer, adopt the ruleset, and return the subscription."""
    body = {"eventType": "monitoring.rule.triggered", "webhookUrl": receiver.url}
    subscription = lender.post("/webhooks/subscriptions", body | {"customerIds": [customer["customerId"]]})
    receiver.learn(subscription["secret"])
    found = lender.get(f"/monitoring/library/{WATCHED_BY}")
    ruleset = lender.post("/monitoring/rulesets", found["document"] | {"active": True})
    out.print(f"POST /v1/monitoring/rulesets → [b]{ruleset['slug']}[/] of the library, switched on")
    for rule in ruleset["document"]["rules"]:
        _print_indented(f"{rule['code']}: {rule['message']}")
    return subscription


def _bounced_repayment(nth: int) -> dict[str, Any]:
    """Return a submission of the returned repayment for the n-th business's first account."""
    account = next(submissions(business(nth, MONTHS, SEED, last_day())))
    days = (last_day() + timedelta(days=day) for day in range(len(BOUNCED)))
    rows = [
        {"date": day.isoformat(), "description": description, "amount": amount}
        for day, (description, amount) in zip(days, BOUNCED, strict=True)
    ]
    return account | {"transactions": rows}


def _show_match(lender: Lender, match_id: str) -> None:
    """Show the match of an event: its rules, the values that they read, and the transactions behind the first value."""
    match = lender.get(f"/monitoring/matches/{match_id}")
    out.print(f"GET /v1/monitoring/matches/{match_id[:8]}… → what matched")
    for rule in match["rules"]:
        _print_indented(f"[b]{rule['code']}[/], {rule['severity']}: {rule['message']}")
        for each in rule["values"]:
            out.print(f"    {each['name']} = {each['value']:g}")
        for action in rule["recommendedActions"]:
            _print_indented(f"→ {action}", 4)
    behind = lender.get(f"/monitoring/matches/{match_id}/lineage")
    out.print(f"GET …/{match_id[:8]}…/lineage → the rows behind it")
    for row in behind["transactions"]:
        _print_indented(f"{row['date']} {row['description']} {_money(row['amount'])}")


def _farewell(home: Path, base_url: str, dagster_port: int, access: Access | None) -> None:
    out.print(Rule("What to open next"))
    for line in access.lines if access else ():
        out.print(line, soft_wrap=True, highlight=False, markup=False)
    out.print(f"API documentation   {base_url}/docs")
    out.print(f"Reports as a page   {home / PAGE}", soft_wrap=True)
    out.print(f"Page of a statement {home / PICTURE}", soft_wrap=True)
    out.print(f"Dagster             http://127.0.0.1:{dagster_port}")
    out.print(f"  operator's token  {home / 'operator.token'}", soft_wrap=True)
    out.print(f"The lake            {_program()} --home {home} lake manifest", soft_wrap=True)
    out.print(f"Data and logs       {home}", soft_wrap=True)


def _program() -> Path:
    """Return the installed command: its folder need not be on the PATH."""
    program = Path(sys.executable).with_name("tidemark")
    return program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program


def _until_interrupted() -> None:
    out.print("\nThe service keeps running until you press [b]Ctrl-C[/].")
    try:
        while True:
            addresses.pause()
    except KeyboardInterrupt:
        out.print("Stopping …")


def _chapter(number: str, title: str) -> None:
    out.print()
    out.print(Rule(f"[b]{number}. {title}[/]", align="left"))


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=out)
