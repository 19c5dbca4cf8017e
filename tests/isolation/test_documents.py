"""A JSON document decoded by a child is the one that would be decoded here, and a child that breaks is no answer."""

import json
from dataclasses import replace

import pytest

from isolation import decode
from isolation.child import ELEMENTS_AT_ONCE, decoded
from isolation.limits import DECODING, MIB
from isolation.messages import Document, Elements, framed, messages
from pipelines.vocabulary import strict_json
from pipelines.vocabulary.errors import InvalidRequest, Unavailable

ROWS = [{"amount": 0.1, "retained": {"deep": [1, "1", None, True]}}] * (2 * ELEMENTS_AT_ONCE + 1)
BODY = json.dumps(
    {"transactions": ROWS, "none": [], "name": "café 🏦", "limit": 10**400, "nested": {"list": [1]}}
).encode()


def test_a_child_decodes_what_would_be_decoded_here() -> None:
    found, expected = decode(BODY).document, strict_json.parse(BODY)
    assert found == expected
    assert repr(found) == repr(expected)
    assert {type(number) for number in numbers(found)} == {strict_json.Number}


def test_a_child_refuses_what_would_be_refused_here() -> None:
    with pytest.raises(InvalidRequest) as refused:
        decode(b'{"a": 1, "a": 2}')
    assert (refused.value.code, refused.value.detail) == ("Request.DuplicateKey", "An object names a member twice.")


def test_a_child_without_an_answer_means_to_try_again() -> None:
    with pytest.raises(Unavailable):
        decode(b"[" + b"{}," * 300_000 + b"{}]", limits=replace(DECODING, memory_bytes=16 * MIB))


def test_a_document_is_said_in_messages_of_bounded_length() -> None:
    said = list(messages(map(framed, decoded(BODY)), longest=64 * 1024))
    assert [type(each) for each in said] == [Elements] * 3 + [Document]


def test_a_list_is_said_in_parts_too() -> None:
    body = json.dumps(ROWS).encode()
    assert [type(each) for each in messages(map(framed, decoded(body)), 64 * 1024)] == [Elements] * 3 + [Document]
    assert decode(body).document == strict_json.parse(body)


@pytest.mark.parametrize("document", ["[]", '"text"', "7", "null"])
def test_a_document_need_not_be_an_object(document: str) -> None:
    [said] = messages(map(framed, decoded(document.encode())), longest=64 * 1024)
    assert isinstance(said, Document)
    assert said.document == strict_json.parse(document.encode())


def numbers(document: object) -> list[str]:
    """The amounts, the limit and the numbers of nested lists."""
    assert isinstance(document, dict)
    return [document["limit"], *document["nested"]["list"], *(row["amount"] for row in document["transactions"])]
