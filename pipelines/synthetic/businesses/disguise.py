"""Hide who lends, to measure what behaviour alone shows: lenders get invented names, or none.

Amounts and days stay. The letters of references are replaced, too, because they abbreviate the lender or its product.
The tax office and the business's own bank, whose wording names no lender, stay as they are.
"""

from dataclasses import replace
from random import Random
from re import sub
from typing import Literal

from pipelines.synthetic.businesses.borrowing import Borrowing
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.world.names import names

Disguise = Literal["renamed", "nameless"]

_TAX_OFFICE = "tax_payment_plan"
# Half of the endings say that the firm lends.
_ENDINGS = ("CAPITAL", "FINANCE", "FUNDING", "LENDING", "PARTNERS", "GROUP", "PTY LTD", "HOLDINGS")


def disguise(profile: Profile, how: Disguise) -> Profile:
    """Return the business with its lenders disguised. A lender has the same invented name in all its facilities."""
    return replace(profile, borrowings=tuple(_disguise(each, how, profile.stream) for each in profile.borrowings))


def _disguise(borrowing: Borrowing, how: Disguise, stream: str) -> Borrowing:
    if not borrowing.lender.name or borrowing.lender.product == _TAX_OFFICE:
        return borrowing
    rng = Random(f"{stream}/{borrowing.lender.name}")
    name = _invented_name(rng) if how == "renamed" else ""
    letters = "".join(rng.choices("QXZ", k=2))
    return replace(
        borrowing,
        party=borrowing.party._replace(name=name),
        reference=sub("[A-Z]{2,}", letters, borrowing.reference),
        pays_out=borrowing.pays_out and _disguise(borrowing.pays_out, how, stream),
    )


def _invented_name(rng: Random) -> str:
    return f"{rng.choice(names().first_words + names().family)} {rng.choice(_ENDINGS)}".upper()
