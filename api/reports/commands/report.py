"""`tidemark report`: a customer's reports on the terminal, as an HTML page or as a PDF."""

from pathlib import Path
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, opened_store, print_json
from api.reports.commands.report_output import save, show
from api.reports.schemas.reports import member
from pipelines.reports.page import About, page
from storage.customers import customers
from storage.customers.customers import Customer
from storage.reports import reports


def report(
    customer_id: Annotated[UUID, typer.Argument(parser=ids.CUSTOMER, metavar="ID", help="The customer's id.")],
    html: Annotated[Path | None, typer.Option(help="Write the reports to this file as one HTML page.")] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="Write the page to this file as PDF, with an installed Chromium or Chrome.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a customer's three reports as last computed.

    Example: tidemark report 2f0c… --html harbour.html --pdf harbour.pdf
    """
    with opened_store() as store, store.db.reading() as r:
        customer = customers.get_of_any_client(r, customer_id)
        bundle = reports.read_bundle(r, customer)
    if html is not None or pdf is not None:
        save(page(bundle, about(customer, store.settings.zone)), html, pdf)
    if as_json:
        print_json({kind: member(each) for kind, each in bundle.items()})
    elif html is None and pdf is None:
        show(bundle, about(customer, store.settings.zone))


def about(customer: Customer, zone: ZoneInfo) -> About:
    return About(customer.name, customer.abn, customer.reference, str(customer.customer_id), zone)
