"""JSON is read exactly or refused: two readings, depth, size and digits are limited before parsing."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.strict_json import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_MEMBERS,
    MAX_VALUES,
    PIECE_BYTES,
    Number,
    parse,
)

plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
documents = st.recursive(
    st.none() | st.booleans() | plain_text,
    lambda inner: st.lists(inner) | st.dictionaries(plain_text, inner),
    max_leaves=20,
)


def refusal(body: bytes) -> str:
    """Return the code with which a body is refused."""
    with pytest.raises(InvalidRequest) as refused:
        parse(body)
    return refused.value.code


@given(documents, st.booleans())
def test_output_of_the_standard_library_is_read_back(document: object, ascii_only: bool) -> None:
    assert parse(json.dumps(document, ensure_ascii=ascii_only).encode()) == document


@pytest.mark.parametrize("value", [b"{}", b"[]", b'","', b"1"])
def test_too_many_values_are_refused_before_parsing(value: bytes) -> None:
    assert refusal(b"[" + b",".join([value] * (MAX_VALUES + 1)) + b"]") == "Request.TooManyValues"


def test_names_of_members_count_as_values() -> None:
    rows = b",".join([b'{"a":1,"b":2}'] * (MAX_VALUES // 5 + 1))  # two names, two values and the row itself
    assert refusal(b"[" + rows + b"]") == "Request.TooManyValues"


def test_an_object_of_too_many_members_is_refused() -> None:
    members = {str(number): 0 for number in range(MAX_MEMBERS)}
    assert parse(json.dumps([members]).encode()) == [dict.fromkeys(members, "0")]
    assert refusal(json.dumps([members | {"one": "more"}]).encode()) == "Request.TooManyValues"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"]":', b"}]")])
def test_depth_is_limited_whatever_texts_contain(opening: bytes, closing: bytes) -> None:
    levels = MAX_DEPTH // len(closing)
    parse(opening * levels + b"0" + closing * levels)
    assert refusal(opening * (levels + 1) + b"0" + closing * (levels + 1)) == "Request.TooDeep"


def test_digits_are_limited_in_numbers_and_not_in_texts() -> None:
    digits = "1" * MAX_DIGITS
    assert parse(f'[-{digits}, {digits}.{digits}e{digits}, "1{digits}"]'.encode())
    for number in (f"1{digits}", f"0.1{digits}", f"1e1{digits}"):
        assert refusal(f"[{number}]".encode()) == "Request.TooManyDigits"


def test_counting_values_takes_time_in_proportion_to_the_body(subtests: pytest.Subtests) -> None:
    """In quadratic time, each of these would take hours and hit the time limit of the suite."""
    for ending in (b'"\\' * 1_000_000, b'"' + b'\\"' * 1_000_000, b'"' + b"\\" * 2_000_001, b'\\"' * 1_000_000 + b"\\"):
        with subtests.test(str(ending[:6])), pytest.raises(InvalidRequest):
            parse(b"," * 2_100_000 + ending)


def test_millions_of_texts_are_left_out_in_little_memory() -> None:
    """A list of all texts at once would take sixty times the body, more than a child process may use."""
    body = b"[" + b'"",' * 2_100_000 + b'""]'
    tracemalloc.start()
    try:
        assert refusal(body) == "Request.TooManyValues"
        assert tracemalloc.get_traced_memory()[1] < 10 * len(body)
    finally:
        tracemalloc.stop()


def test_text_may_span_several_pieces() -> None:
    for before in range(3):
        text = "," * (PIECE_BYTES - 4 + before) + '"' + "," * MAX_VALUES
        assert parse(json.dumps([text, 1]).encode()) == [text, "1"]


def test_commas_and_braces_in_texts_do_not_count_as_values() -> None:
    text = "\\" + '"' + "[{,]" * MAX_VALUES
    assert parse(json.dumps([text, text]).encode()) == [text, text]


@pytest.mark.parametrize("text", ["0", "-0.0", "0.10", "1e400", "9007199254740993", "1" * 4_300])
def test_a_number_keeps_its_digits(text: str) -> None:
    parsed = parse(text.encode())
    assert parsed == text
    assert type(parsed) is Number


def test_number_is_distinguished_from_its_text() -> None:
    assert [type(each) for each in _list(parse(b'[1, "1"]'))] == [Number, str]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "Request.EmptyBody"),
        (b"  \n", "Request.EmptyBody"),
        (b"{", "Request.MalformedJson"),
        (b"{} {}", "Request.MalformedJson"),
        (b"[1,]", "Request.MalformedJson"),
        (b"NaN", "Request.MalformedJson"),
        (b'{"amount": -Infinity}', "Request.MalformedJson"),
        (b'{"a": 1, "a": 1}', "Request.DuplicateKey"),
        (b'{"a": "\\u0000"}', "Request.NullCharacter"),
        (b'{"\\u0000": 1}', "Request.NullCharacter"),
        (b'{"a": "\0"}', "Request.MalformedJson"),
        (b'["\\ud800"]', "Request.LoneSurrogate"),
        (b'["\\uDC00\\uD800"]', "Request.LoneSurrogate"),
        (b'"\xff"', "Request.NotUtf8"),
        ("\ufeff{}".encode(), "Request.MalformedJson"),
        ('{"a": 1}'.encode("utf-16"), "Request.NotUtf8"),
        (b"[" * 100_000, "Request.TooDeep"),
    ],
)
def test_json_that_two_parsers_could_read_differently_is_refused(body: bytes, code: str) -> None:
    assert refusal(body) == code


def check_read_or_refused(body: bytes) -> None:
    """Check that a body is refused, or read like the standard library with every number as written."""
    try:
        read = parse(body)
    except InvalidRequest:
        return
    assert read == json.loads(body.decode(), parse_int=str, parse_float=str)


somewhat_json = st.lists(
    st.sampled_from([*b'{}[]",:\\0123456789-+.eE \n', *b"truefalsnN"]).map(lambda byte: bytes([byte]))
    | st.sampled_from(
        [b"\\u0000", b"\\ud800", b"\\uDFFF", b"\\\\u0000", b'"":', b"NaN", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0"]
    )
    | st.binary(max_size=3)
).map(b"".join)


@given(st.binary() | somewhat_json)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    check_read_or_refused(body)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=100_000)
@given(st.binary() | somewhat_json)
def test_very_many_bytes_are_read_or_refused(body: bytes) -> None:
    check_read_or_refused(body)


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def _list(document: object) -> list[object]:
    assert isinstance(document, list)
    return document
