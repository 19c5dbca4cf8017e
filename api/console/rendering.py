"""Templates of the console, with the filters that write figures as the reports do."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx
import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.datastructures import URL
from starlette.responses import HTMLResponse, Response

from api.console.assets import address_of
from api.console.compared import name_figure
from pipelines.pages import wording
from pipelines.pages.document import UNPRINTABLE

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with a stricter policy, browsers would send no `Origin` with forms
}

_encode = msgspec.json.Encoder(decimal_format="number").encode


def render_page(template: str, values: Mapping[str, Any], zone: ZoneInfo, status: int = 200) -> HTMLResponse:
    """Return a page. Values are written as text, never as markup; UNPRINTABLE becomes U+FFFD."""
    html = _templates(zone).get_template(template).render(values)
    return HTMLResponse(UNPRINTABLE.sub("\ufffd", html), status, HEADERS)


@cache
def _templates(zone: ZoneInfo) -> Environment:
    templates = Environment(
        loader=ChoiceLoader([PackageLoader("api.console"), PackageLoader("pipelines.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["asset"] = address_of
    templates.filters |= {**FILTERS, "moment": partial(_moment, zone)}
    return templates


def _exact(write: Callable[[Decimal | None], str]) -> Callable[[Decimal | int | None], str]:
    """Adapt a function that writes a Decimal to numbers of the API's JSON, where whole numbers are ints."""
    return lambda number: write(None if number is None else Decimal(number))


def _moment(zone: ZoneInfo, time: str | datetime | None) -> str:
    """Write a time of the API as `3 Mar 2026, 14:05` in the service's time zone."""
    if time is None:
        return wording.UNKNOWN
    moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    with suppress(OverflowError):  # the last day of the calendar, which may stand for never
        moment = moment.astimezone(zone)
    return wording.moment(moment)


def _formula(words: str) -> str:
    """Write the names of columns in a formula as words: `Money in − Money out` for `moneyIn − moneyOut`."""
    return re.sub(r"\b[a-z]+[A-Z]\w*", lambda name: wording.spell_out(name[0]), words)


def as_sent(response: httpx.Response) -> Response:
    """Return a page or file of the API as it is, with its own content policy."""
    passed_on = ("content-type", "content-security-policy", "content-disposition")
    headers = {name: value for name in passed_on if (value := response.headers.get(name)) is not None}
    return Response(response.content, headers=headers)


def as_json(value: object) -> str:
    """Write a document of the API as indented JSON, with exact decimals."""
    return msgspec.json.format(_encode(value)).decode()


def account_name(account: Mapping[str, Any]) -> str:
    """Write how people name an account: `Business Saver xxxxx5638`."""
    named = account["accountName"] or account["bankName"]
    name = named or wording.spell_out(account["accountType"] or "Account without a name")
    return f"{name} {account['accountNumberMasked'] or ''}".rstrip()


def without_host(url: URL) -> str:
    """Return an address of this site without its host."""
    return f"{url.path}?{url.query}"


FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "money": _exact(wording.money),
    "dollars": _exact(wording.dollars),
    "decimal": Decimal,
    "number": _exact(wording.plain),
    "percent": _exact(wording.percent),
    "score": _exact(wording.score),
    "abn": wording.abn,
    "bsb": wording.bsb,
    "masked": wording.masked,
    "day": wording.day,
    "words": wording.spell_out,
    "account": account_name,
    "label": wording.label,
    "title_of": wording.title,
    "quantity": wording.quantity,
    "reading": wording.reading,
    "formula": _formula,
    "figure_name": lambda pointer, report="": name_figure(report, pointer),
    "local": without_host,
    "kind": lambda part: type(part).__name__,  # for the parts of reports' pages
    "json": as_json,
}
