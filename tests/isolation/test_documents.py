"""A child decodes a JSON document like this process would. Without memory for it, the service responds "busy"."""

import json
from dataclasses import replace

import pytest

from isolation import decode
from isolation.child import MAX_ELEMENTS, decode_document
from isolation.limits import DECODING, MIB
from isolation.messages import OUT_OF_MEMORY, Document, Elements, FromChild, frame_message, read_messages
from pipelines.vocabulary import strict_json
from pipelines.vocabulary.errors import InvalidRequest, Unavailable

ROWS = [{"amount": 0.1, "retained": {"deep": [1, "1", None, True]}}] * (2 * MAX_ELEMENTS + 1)
BODY = json.dumps(
    {"transactions": ROWS, "none": [], "name": "café 🏦", "limit": 10**400, "nested": {"list": [1]}}
).encode()


def test_a_child_decodes_like_this_process() -> None:
    decoded, expected = decode(BODY).document, strict_json.parse(BODY)
    assert decoded == expected
    assert repr(decoded) == repr(expected)
    assert {type(number) for number in numbers(decoded)} == {strict_json.Number}


def test_a_child_refuses_like_this_process() -> None:
    with pytest.raises(InvalidRequest) as refused:
        decode(b'{"a": 1, "a": 2}')
    assert (refused.value.code, refused.value.detail) == ("Request.DuplicateKey", "An object names a member twice.")


def test_a_child_without_memory_makes_the_service_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unavailable):
        decode(b"[" + b"{}," * 300_000 + b"{}]", limits=replace(DECODING, memory_bytes=16 * MIB))
    assert OUT_OF_MEMORY in caplog.text


def send(body: bytes) -> list[FromChild]:
    return list(read_messages(map(frame_message, decode_document(body)), longest=64 * 1024))


def test_a_document_is_sent_in_messages_of_bounded_length() -> None:
    assert [type(message) for message in send(BODY)] == [Elements] * 3 + [Document]


def test_a_list_is_sent_in_parts_too() -> None:
    body = json.dumps(ROWS).encode()
    assert [type(message) for message in send(body)] == [Elements] * 3 + [Document]
    assert decode(body).document == strict_json.parse(body)


@pytest.mark.parametrize("document", ["[]", '"text"', "7", "null"])
def test_a_document_need_not_be_an_object(document: str) -> None:
    [message] = send(document.encode())
    assert isinstance(message, Document)
    assert message.document == strict_json.parse(document.encode())


def numbers(document: object) -> list[str]:
    """Return the amounts, the limit and the numbers of nested lists."""
    assert isinstance(document, dict)
    return [document["limit"], *document["nested"]["list"], *(row["amount"] for row in document["transactions"])]
