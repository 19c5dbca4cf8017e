"""What people type and what systems lose: the difference between a tidy narrative and a real one (`words.yaml`).

Payers write a reference in their own words, in a hurry, or not at all. Slips are drawn from the same random stream as
everything else, so they are just as repeatable.
"""

from functools import cache
from random import Random

from pipelines.synthetic.data_files import Record, load

_NEIGHBOURS = str.maketrans("aeionrst", "sriomtda")  # of keys on a keyboard


class Words(Record, frozen=True):
    """The content of `words.yaml`, which explains the fields."""

    invoice: tuple[str, ...]
    invoice_without_number: tuple[str, ...]
    refund: tuple[str, ...]
    overpaid: tuple[str, ...]
    wages: tuple[str, ...]
    drawings: tuple[tuple[str, ...], ...]
    director_loan: tuple[str, ...]
    pooling: tuple[str, ...]
    tax_plan: tuple[str, ...]
    tax_interest: tuple[str, ...]
    payg_instalment: tuple[str, ...]
    income_tax: tuple[str, ...]
    fringe_benefits_tax: tuple[str, ...]


@cache
def words() -> Words:
    return load("words.yaml", Words)


def typed_reference(rng: Random, number: int, firm: str) -> str:
    """Return a payer's reference to an invoice: mostly its number, sometimes the firm or nothing that helps."""
    how = rng.random()
    if how < 0.68:
        return mistype(rng, rng.choice(words().invoice).format(n=number))
    if how < 0.82:
        return firm if rng.random() < 0.5 else firm.lower()
    return rng.choice(words().invoice_without_number)


def mistype(rng: Random, text: str) -> str:
    """Return the text, one in sixteen with a slip: letters swapped, one lost, doubled, or its neighbour hit."""
    if len(text) < 4 or rng.random() >= 1 / 16:
        return text
    at = rng.randrange(len(text) - 2)
    slips = (
        text[:at] + text[at + 1] + text[at] + text[at + 2 :],
        text[:at] + text[at + 1 :],
        text[:at] + text[at] + text[at:],
        text[:at] + text[at].translate(_NEIGHBOURS) + text[at + 1 :],
    )
    return rng.choice(slips)


def typed_out(rng: Random, wordings: tuple[str, ...]) -> str:
    """Return one of several wordings, in the case that someone on a phone would type."""
    text = rng.choice(wordings)
    case = rng.random()
    return mistype(rng, text.lower() if case < 0.35 else text.upper() if case < 0.45 else text)
