"""`tidemark demo`: the whole story through the front doors, on a synthetic business's statements.

It starts the real service in a home of its own, plays a lender's backend over HTTP, receives the signed webhook as that
backend would, and shows what was computed. Nothing here reaches past the API but the making of a client and its key.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table

from api.commands import addresses
from api.commands.console import out
from api.commands.lender import UNTIL, Lender, complaint, issue_key
from api.listen import Receiver
from pipelines.sandbox import book, submissions
from storage.settings import Settings
from storage.store import Store

CUSTOMERS, MONTHS, SEED = 4, 12, 7
READY_WITHIN_S = 90
LONGEST_NAME = 30
PAGE = "report.html"  # in the home: the first customer's reports
BAD_ROWS = (
    {"date": "2026-02-30", "description": "EFTPOS PURCHASE", "amount": "-12.00"},
    {"date": "2026-03-02", "description": "TRANSFER", "amount": "12.345"},
)


def demo(
    leave: Annotated[bool, typer.Option("--exit", help="End when the story is told, also on a terminal.")] = False,
    host: Annotated[str, typer.Option(help="Address that the API listens on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the API; 0 takes a free one.")] = 0,
    dagster_port: Annotated[int, typer.Option(help="Port of Dagster's pages; 0 takes a free one.")] = 0,
) -> None:
    """Run the whole story: transactions in, reports and a signed webhook out.

    Example: tidemark demo --exit
    """
    home = _fresh_home()
    with Receiver(home=home) as receiver:
        environment = _environment(home, receiver)
        ports = addresses.chosen(port), addresses.chosen(dagster_port)
        with _service(environment, host, *ports) as base_url:
            lender = Lender(base_url, _key(home))
            customers = _tell(lender, receiver)
            (home / PAGE).write_text(lender.text(f"/customer/{customers[0]['customerId']}/reports.html"))
            _farewell(home, base_url, ports[1])
            if sys.stdout.isatty() and not leave:
                _until_interrupted()


def _fresh_home() -> Path:
    home = Settings().home / "demo"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    return home


def _environment(home: Path, receiver: Receiver) -> dict[str, str]:
    """The service's settings: a home of its own, and leave to call a receiver on this machine."""
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
    """`tidemark up`, from ready to ended."""
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


def _key(home: Path) -> str:
    store = Store.open(Settings(home=home, database_url="", lake_url=""))
    text = issue_key(store)
    store.close()
    return text


def _tell(lender: Lender, receiver: Receiver) -> list[dict[str, Any]]:
    """The story, chapter by chapter; its customers."""
    _chapter("1", "A lender subscribes to finished jobs")
    subscription = _subscribe(lender, receiver)
    _chapter("2", f"{CUSTOMERS} small businesses send {MONTHS} months of bank transactions")
    customers = _submit_all(lender)
    _chapter("3", "Cleaned, categorised and linked")
    _show_transactions(lender, customers[0])
    _chapter("4", "Three reports, refreshed")
    first = _show_reports(lender, customers)
    _chapter("5", "A figure, followed down to its transactions")
    _show_lineage(lender, customers[0], first)
    _chapter("6", "The webhook, verified")
    _show_webhook(receiver, subscription)
    return customers


def _subscribe(lender: Lender, receiver: Receiver) -> dict[str, Any]:
    body = {"eventType": "job.completed", "webhookUrl": receiver.url, "customerIds": []}
    subscription = lender.post("/webhooks/subscriptions", body)
    receiver.learn(subscription["secret"])
    out.print(f"POST /v1/webhooks/subscriptions → {subscription['webhookSubscriptionId']}, secret shown this once")
    return subscription


def _submit_all(lender: Lender) -> list[dict[str, Any]]:
    """Create the customers, send every account, wait for every job; the first account gets two bad rows."""
    businesses = list(book(CUSTOMERS, MONTHS, SEED, until=UNTIL, faults=True))
    bodies = {business.abn: list(submissions(business)) for business in businesses}
    bodies[businesses[0].abn][0]["transactions"] += BAD_ROWS
    customers = [lender.create(business) for business in businesses]
    jobs: list[str] = []
    with _progress() as progress:
        total = sum(map(len, bodies.values()))
        sent, done = progress.add_task("submitted", total=total), progress.add_task("enriched", total=total)
        for customer, business in zip(customers, businesses, strict=True):
            jobs += lender.submit(customer["customerId"], bodies[business.abn], partial(progress.advance, sent))
        ended = lender.finished(jobs, partial(progress.advance, done))
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
        out.print(f"  rejected row {error['index']}: [b]{error['code']}[/] {error['message']}")


def _show_transactions(lender: Lender, customer: Mapping[str, Any]) -> None:
    listed = lender.get(f"/customer/{customer['customerId']}/transactions", page=1, count=14)
    table = _table(customer["name"], "date", "description, cleaned", "amount >", "category")
    for row in listed["transactions"]:
        names = (_cut(row["cleanDescription"]), f"{row['amount']:,.2f}", row["category"])
        table.add_row(row["date"], *names, style=None if row["direction"] == "debit" else "green")
    out.print(table)
    out.print(f"… and {listed['totalCount'] - len(listed['transactions']):,} more of this customer")


def _show_reports(lender: Lender, customers: list[dict[str, Any]]) -> dict[str, Any]:
    """The first customer's bundle."""
    ids = [customer["customerId"] for customer in customers]
    lender.refresh(ids)
    bundles = [lender.get(f"/customer/{customer_id}/reports") for customer_id in ids]
    table = _table("Reports", "customer", "completeness", "risk", "confidence")
    for customer, bundle in zip(customers, bundles, strict=True):
        summary, risk = bundle["completeness"]["data"]["summary"], bundle["risk"]["data"]
        table.add_row(
            _cut(customer["name"]),
            f"{summary['completenessScore']} {summary['completenessTier']}",
            f"{risk['value']} {risk['rating']}",
            f"{risk['pdConfidenceScore']} {risk['pdConfidenceRating']}",
        )
    out.print(table)
    out.print(
        "The chance of default is indicative, for it was never fitted to defaults, and says so: Risk.Uncalibrated"
    )
    _show_cash_flow(customers[0], bundles[0])
    return bundles[0]


def _show_lineage(lender: Lender, customer: Mapping[str, Any], bundle: Mapping[str, Any]) -> None:
    """The revenue of the last month but one: what it is the sum of."""
    nth = len(_table_named(bundle, "monthly")["values"]) - 2
    figure = f"/tables/monthly_cash_flow/values/{nth}/revenue"
    path = f"/customer/{customer['customerId']}/reports/aggregate/lineage"
    found = lender.get(path, figure=figure, page=1, count=5)
    table = _table(f"Revenue of {customer['name']}", "date", "description", "adds >")
    for row in found["transactions"]:
        table.add_row(row["date"], _cut(row["description"]), _money(row["contribution"]))
    out.print(table)
    more = found["totalCount"] - len(found["transactions"])
    out.print(f"… and {more:,} more: together {_money(found['total'])}, to the cent the figure that the report shows")


def _show_cash_flow(customer: Mapping[str, Any], bundle: Mapping[str, Any]) -> None:
    table = _table(
        f"Cash flow of {customer['name']}", "month", "money in >", "money out >", "net >", "count >", "at month's end >"
    )
    for row in _table_named(bundle, "monthly")["values"]:
        money = (row["moneyIn"], row["moneyOut"], row["net"])
        count = row["creditCount"] + row["debitCount"]
        table.add_row(row["month"][:7], *map(_money, money), str(count), _money(row["closingBalance"]))
    out.print(table)


def _table(title: str, *columns: str) -> Table:
    """A table that fits on 80 columns; names that end in `>` are of figures."""
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name.removesuffix(" >"), justify="right" if name.endswith(">") else "left", no_wrap=True)
    return table


def _cut(name: str) -> str:
    return shorten(name, LONGEST_NAME, placeholder=" …")


def _money(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def _table_named(bundle: Mapping[str, Any], start: str) -> dict[str, Any]:
    tables: list[dict[str, Any]] = bundle["aggregate"]["data"]["tables"]
    return next(table for table in tables if table["id"].lower().startswith(start))


def _show_webhook(receiver: Receiver, subscription: Mapping[str, Any]) -> None:
    delivery = receiver.wait_for(lambda each: each.verified is True, timeout_s=20)
    if delivery is None:
        raise complaint("no verified webhook arrived within 20 s")
    lines = [
        f"POST {subscription['webhookUrl']}",
        f"X-Service-Webhook-Signature: {delivery.headers['x-service-webhook-signature']}",
        "",
        delivery.body.decode(),
    ]
    out.print(Panel("\n".join(lines), title="[green]✔ signature verified[/]", title_align="left", expand=False))
    verified = sum(each.verified is True for each in receiver.received)
    out.print(f"{verified} of {len(receiver.received)} deliveries verified so far")


def _farewell(home: Path, base_url: str, dagster_port: int) -> None:
    out.print(Rule("Have a look"))
    out.print(f"API documentation   {base_url}/docs")
    out.print(f"The report to read  {home / PAGE}", soft_wrap=True)
    out.print(f"Dagster             http://127.0.0.1:{dagster_port}")
    out.print(f"The lake            TIDEMARK_HOME={home} tidemark lake manifest", soft_wrap=True)
    out.print(f"State and logs      {home}", soft_wrap=True)


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
