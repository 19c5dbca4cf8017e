"""Lines of rows, and what is retained of their document."""

import json
from typing import Any

import pytest

from pipelines.intake.as_sent import mask_rows, temporary_digest
from pipelines.intake.lines import FIELDS, Rows, as_lines, decode
from pipelines.intake.rows import land_lines
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.strict_json import MAX_OTHER_VALUES, parse

ROWS = Rows("transactions", max_rows=3)
ITEM: dict[str, Any] = {"date": "2026-06-01", "description": "COFFEE", "amount": -4.5}
CARD = "4111111111111111"


def decode_rows(items: object, **others: object) -> tuple[object, bytes]:
    """Decode a body and return its document and its lines."""
    found = decode(json.dumps({"transactions": items} | others).encode(), ROWS)
    return found.document, found.lines


def test_only_scalar_members_are_retained_of_a_document_with_rows() -> None:
    document, lines = decode_rows([ITEM, {}], bsb="062-000", limit=1.5, odd={"deep": [1]}, list=[1, 2])
    assert document == {"transactions": [{}, {}], "bsb": "062-000", "limit": "1.5", "odd": {}, "list": []}
    assert len(lines.splitlines()) == 2


@pytest.mark.parametrize(
    ("items", "retained"),
    [([], []), ([ITEM] * 9, [{}] * 4), ([ITEM, 7, [1]], [{}, None, None]), (None, None), ({"a": 1}, {}), ("x", "x")],
)
def test_enough_of_invalid_rows_is_retained_to_refuse_them(items: object, retained: object) -> None:
    document, lines = decode_rows(items)
    assert document == {"transactions": retained}
    assert lines == b""


@pytest.mark.parametrize(("body", "retained"), [(b"[1, 2]", []), (b"null", None), (b'"x"', "x"), (b"7", "7")])
def test_a_document_that_is_not_an_object_has_no_rows(body: bytes, retained: object) -> None:
    assert decode(body, ROWS).document == retained


def test_a_document_without_rows_may_have_fewer_values() -> None:
    body = b"[" + b"0," * MAX_OTHER_VALUES + b"0]"
    assert decode(body, ROWS).document == []
    with pytest.raises(InvalidRequest, match="700,000 values"):
        decode(body, None)


def test_lines_are_masked_as_a_frame_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of files and statements are masked as frames."""
    texts = [CARD, "TFN 123 456 782", "Tax File Number: 123456782", "RENT", "1 2 3 4 5 6 7 8 9 0 1 2 3", "4111 1111"]
    items = [ITEM | {"description": text, "transactionId": text, "note": {text: [text]}} for text in texts]
    items += [ITEM | {"amount": CARD}, ITEM | {"balance": int(CARD)}, ITEM | {"date": [CARD]}, {}]
    parsed: Any = parse(json.dumps(items).encode())
    masked = land_lines(as_lines(parsed), temporary_digest)
    monkeypatch.setattr("pipelines.intake.lines.may_need_masking", lambda _: False)
    as_sent = land_lines(as_lines(parsed), temporary_digest)
    assert masked.equals(mask_rows(as_sent, [*FIELDS, "extra"], temporary_digest))
    assert masked["masked"].to_list() == [True] * 3 + [False, False, False, True, True, True, False]
    assert CARD in str(as_sent.to_dicts())
    assert CARD not in str(masked.to_dicts())
