"""References that synthetic payers type have the slips, gaps and cases of typed text."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipelines.synthetic.world.typed_texts import mistype, typed_out, typed_reference


@given(text=st.text(max_size=40), seed=st.integers(0, 10**6))
def test_a_slip_changes_two_letters_at_most(text: str, seed: int) -> None:
    assert abs(len(mistype(Random(seed), text)) - len(text)) <= 1


def test_most_texts_are_typed_well_and_some_are_not() -> None:
    rng = Random(1)
    slips = sum(mistype(rng, "invoice 4821") != "invoice 4821" for _ in range(4_000))
    assert 0.03 < slips / 4_000 < 0.09


def test_most_payers_name_the_invoice_and_some_nothing_at_all() -> None:
    rng = Random(2)
    texts = [typed_reference(rng, 4821, "Banksia Cafe") for _ in range(4_000)]
    assert 0.55 < sum("4821" in text for text in texts) / 4_000 < 0.75
    assert 0.02 < texts.count("") / 4_000 < 0.1
    assert any("banksia cafe" in text for text in texts)
    assert len(set(texts)) > 40


def test_the_same_words_come_in_several_cases() -> None:
    rng = Random(3)
    assert {"Refund", "refund", "REFUND"} <= {typed_out(rng, ("Refund",)) for _ in range(100)}
