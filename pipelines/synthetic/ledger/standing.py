"""A business's facilities at the window's end: what is left of each, how late it is, and its status."""

from collections.abc import Iterator
from datetime import date

from pipelines.synthetic.businesses.borrowing import Borrowing
from pipelines.synthetic.businesses.profile import Profile
from pipelines.synthetic.ledger.ledger import Ledger
from pipelines.synthetic.world.days import Window
from pipelines.synthetic.world.model import Facility, FacilityStatus, dollars

IN_ARREARS_FROM = 8  # days past due: a debit repeated within a week was only late
DEFAULTED_FROM = 90


def facilities(profile: Profile, ledger: Ledger, window: Window) -> tuple[Facility, ...]:
    """Return every facility drawn by the window's last day."""
    renewed = {borrowing.renews for borrowing in profile.borrowings if borrowing.drawn <= window.last}
    return tuple(
        _facility(profile, borrowing, ledger, window, borrowing.number in renewed)
        for borrowing in profile.borrowings
        if borrowing.drawn <= window.last
    )


def _facility(profile: Profile, agreed: Borrowing, ledger: Ledger, window: Window, renewed: bool) -> Facility:
    owed = ledger.owed.get(agreed.number, 0)
    late = _days_past_due(agreed, ledger, window)
    drawn_here = sum(_drawn_amounts(agreed, ledger))
    return Facility(
        number=agreed.number,
        lender=agreed.party.brand or profile.bank.name,
        product=agreed.lender.product,
        funded_on=date.fromordinal(agreed.drawn),
        amount=dollars(agreed.lent),
        to_repay=dollars(agreed.to_repay or drawn_here),
        repayment=dollars(agreed.instalment),
        schedule=agreed.lender.cadence,
        remaining_before=dollars(ledger.owed_before.get(agreed.number, 0)),
        withheld=dollars(ledger.withheld[agreed.number]),
        remaining=dollars(owed),
        days_past_due=late,
        status=_status(agreed, owed, late, renewed),
    )


def _drawn_amounts(agreed: Borrowing, ledger: Ledger) -> Iterator[int]:
    """Yield the amounts that rows of the window added to the debt."""
    for row in ledger.rows["main"]:
        movement = row.movement
        if movement.facility == agreed.number and movement.owed > 0 and movement.category != "returned_payment":
            yield movement.owed


def _days_past_due(agreed: Borrowing, ledger: Ledger, window: Window) -> int:
    if not agreed.payments:
        return max(0, window.last - ledger.unpaid_since.get(agreed.number, window.last))
    paid = agreed.to_repay - ledger.owed.get(agreed.number, 0)
    due = [day for day in agreed.due() if day <= window.last]
    unpaid = due[paid // agreed.instalment :]
    return window.last - unpaid[0] if unpaid else 0


def _status(agreed: Borrowing, owed: int, late: int, renewed: bool) -> FacilityStatus:
    if renewed:
        return "renewed"
    if late >= DEFAULTED_FROM:
        return "defaulted"
    if late >= IN_ARREARS_FROM:
        return "in_arrears"
    revolves = not agreed.payments and not agreed.withheld
    return "active" if owed or revolves else "repaid"
