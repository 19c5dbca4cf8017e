"""Read the API's own JSON as statements: submissions, and responses of `GET …/transactions`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

import polars as pl

from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.exports.sheet import refusal
from pipelines.intake.exports.signs import Signs
from pipelines.intake.exports.statements import NO_ROW, REFUSED, Contents, Statement
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import land_lines
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.strict_json import parse

_ACCOUNT_FIELDS = {  # a submission's field: the statement's attribute
    "accountName": "account_name",
    "bsb": "bsb",
    "accountNumber": "account_number",
    "bankName": "bank_name",
    "accountType": "account_type",
}
_RESPONSE_FIELDS = ("date", "description", "amount", "balance", "currency", "status")


def contents_of_json(content: bytes) -> Contents:
    """Read a submission's body, an array of such bodies, or a response with enriched transactions.

    Raises:
        InvalidRequest: it is not valid JSON, or none of these.
    """
    try:
        document = parse(content.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest as error:
        raise refusal("NotJson", f"is not valid JSON: {error.detail}") from None
    statements = tuple(_statements(document))
    if not statements:
        raise refusal("Empty", "has no submission")
    items = sum(statement.rows.height for statement in statements)
    return Contents(
        statements,
        pl.DataFrame(schema=REFUSED),
        pl.DataFrame(schema=NO_ROW),
        headings=0,
        lines=items,
        signs=Signs.STATED,
    )


def _statements(document: object) -> Iterator[Statement]:
    if isinstance(document, list):
        for body in document:
            yield from _statements_of_body(body)
    else:
        answer = document.get("data") if isinstance(document, dict) else None
        yield from _statements_of_body(answer if isinstance(answer, dict) else document)


def _statements_of_body(body: object) -> Iterator[Statement]:
    items = body.get("transactions") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise refusal("NoTransactions", "has no `transactions`: it is neither a submission nor a response of this API")
    if any(isinstance(item.get("account"), dict) for item in items):
        yield from _statements_of_response(items)
    else:
        yield _statement_of_submission(body, items)


def _statement_of_submission(body: Mapping[str, object], items: Sequence[Mapping[str, object]]) -> Statement:
    rows, stated = land_lines(as_lines(items), temporary_digest), _text(body, "currency")
    return Statement(
        rows=rows.with_columns(pl.when(pl.col("currency") != "").then("currency").otherwise(pl.lit(stated, pl.String))),
        lines=pl.int_range(1, len(items) + 1, dtype=pl.UInt32, eager=True),
        **{name: _text(body, field) for field, name in _ACCOUNT_FIELDS.items()},
        credit_limit=_credit_limit(body),
    )


def _text(body: Mapping[str, object], field: str) -> str | None:
    value = body.get(field)
    if value is not None and type(value) is not str:
        raise refusal("WrongType", f"has a {field} that is not text")
    return value or None


def _credit_limit(body: Mapping[str, object]) -> Decimal | None:
    value = body.get("creditLimit")
    if value is None or value == "":
        return None
    try:
        limit = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        limit = Decimal("NaN")
    if not (limit.is_finite() and 0 <= limit < 10**13):
        raise refusal("WrongType", "has a creditLimit that is not an amount of at least 0")
    return limit.quantize(Decimal("0.01"))


def _statements_of_response(items: Sequence[Mapping[str, object]]) -> Iterator[Statement]:
    """Group a response's transactions by customer and account, with the client's own ids, as in submissions.

    Masked ids and numbers may look the same. The service's own ids then distinguish rows and accounts.
    """
    groups: dict[tuple[str, str], list[tuple[int, Mapping[str, object]]]] = {}
    for number, item in enumerate(items, start=1):
        account = item.get("account")
        account_id = account.get("accountId") if isinstance(account, dict) else None
        groups.setdefault((str(item.get("customerId")), str(account_id)), []).append((number, item))
    for (customer, account_id), group in groups.items():
        account = group[0][1].get("account")
        fields = account if isinstance(account, dict) else {}
        number = _text(fields, "accountNumberMasked")
        yield Statement(
            rows=land_lines(as_lines(list(_as_submitted([item for _, item in group]))), temporary_digest),
            lines=pl.Series([number for number, _ in group], dtype=pl.UInt32),
            customer=customer,
            account_name=_text(fields, "accountName"),
            bsb=_text(fields, "bsb"),
            account_number=number,
            bank_name=_text(fields, "bankName"),
            account_type=_text(fields, "accountType"),
            account_key=account_id if number else None,
        )


def _as_submitted(items: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    client_ids = [item.get("clientTransactionId") for item in items]
    counts = Counter(client_id for client_id in client_ids if isinstance(client_id, str))
    for item, client_id in zip(items, client_ids, strict=True):
        repeated = isinstance(client_id, str) and counts[client_id] > 1
        known = {name: item.get(name) for name in _RESPONSE_FIELDS}
        yield {**known, "transactionId": item.get("transactionId") if repeated else client_id}
