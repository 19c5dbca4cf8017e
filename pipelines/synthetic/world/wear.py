"""What people type and what systems lose: the difference between a tidy narrative and a real one.

Payers write a reference in their own words, in a hurry, or not at all. Banks then cut what doesn't fit their field.
Wear is drawn from the same random stream as everything else, so that it is as repeatable.
"""

from random import Random

_SPOKEN_INVOICE = (
    *(
        "Inv {n}",
        "INV-{n:05}",
        "Invoice {n}",
        "{n}",
        "inv{n}",
        "Inv. {n}",
        "invoice no {n}",
        "INV{n}",
        "Tax invoice {n}",
    ),
    *(
        "payment inv {n}",
        "#{n}",
        "Inv {n} thanks",
        "inv {n} final",
        "{n} paid",
        "re {n}",
        "Invoive {n}",
        "INV {n} part pmt",
    ),
)
_WORDLESS = ("", "", "Thanks", "payment", "as discussed", "thank you", "pmt", "deposit", "final payment", "job", "Paid")
_NEIGHBOURS = str.maketrans("aeionrst", "sriomtda")


def typed_reference(rng: Random, number: int, firm: str) -> str:
    """How a payer names an invoice: mostly by number, sometimes by the firm or by nothing that helps."""
    how = rng.random()
    if how < 0.68:
        return mistyped(rng, rng.choice(_SPOKEN_INVOICE).format(n=number))
    if how < 0.82:
        return firm if rng.random() < 0.5 else firm.lower()
    return rng.choice(_WORDLESS)


def mistyped(rng: Random, text: str) -> str:
    """One text in sixteen with a slip of the finger: letters swapped, one lost, doubled, or its neighbour hit."""
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


def spoken(rng: Random, wordings: tuple[str, ...]) -> str:
    """One of several ways to put it, in the case that someone on a phone would type."""
    text = rng.choice(wordings)
    case = rng.random()
    return mistyped(rng, text.lower() if case < 0.35 else text.upper() if case < 0.45 else text)
