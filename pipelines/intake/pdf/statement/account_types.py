"""What kind of account a statement is of, by the words at its head.

Adverts stand there, too: `Apply for a credit card` is printed on statements of accounts that are none. So a debt is
believed where several words speak for it, a title does, or the statement says how much is to be paid of it.
"""

import re
from collections.abc import Iterator, Sequence

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.labels import cells, has_amount, is_row, labelled, states_money, text_of
from pipelines.intake.pdf.page.page import Line

_LABEL = re.compile(r"\b(?:account|product) type[: ]*", re.IGNORECASE)
_WORDS = {  # the more special before what may stand beside them
    "term_deposit": ("term deposits?", "fixed deposit", "maturity (?:date|instructions?)"),
    "credit_card": (
        "credit ?cards?", "charge card", "visa card", "mastercard account", "card account", "card number",
        "min(?:imum|\\.)? (?:monthly )?(?:payment|amount due)", "payment due date", "available credit",
        "cash advances?", "credit limit",
    ),
    "loan": (
        "(?:home|personal|business|car|investment|equity|term|commercial)(?: (?:variable|fixed))?(?: rate)? ?loan",
        "loan ?(?:account|acct|number|details|balance|statement|term|purpose|summary)", "mortgage", "line of credit",
        "(?:scheduled|minimum) repayment", "repayment (?:amount|due)", "payout figure", "redraw",
    ),
    "savings": (
        "savings?", "(?:[a-z]+)?saver", "maximi[sz]er", "cash management", "bonus interest", "provision account",
    ),
    "transaction": (
        "(?:transaction|cheque|trading|current|spending|everyday|business|personal)(?: [a-z]+)? account", "everyday",
        "classic", "access", "cheque", "business (?:cheque|everyday)", "overdraft",
    ),
}  # fmt: skip
_TYPES = {name: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE) for name, words in _WORDS.items()}
_CARD_BRAND = re.compile(
    r"(?!.*\bdebit\b)(?:[\w'’&.-]+ )+(?:visa|mastercard|amex|american express)(?: (?:card|account|statement))*",
    re.IGNORECASE,
)
_BRANCH = re.compile(r"\bBSB\b")  # that cards have none of
_LIMIT = re.compile(r"\b(?:credit limit|available credit)\b", re.IGNORECASE)  # of an account in overdraft, too
_TO_PAY = {  # at an amount, as adverts don't have it: one is enough
    "credit_card": re.compile(
        r"\bmin(?:imum|\.)? (?:monthly )?(?:payment|amount)(?: due| payable)?[: ]*", re.IGNORECASE
    ),
    "loan": re.compile(
        r"\b(?:(?:minimum|scheduled|required) (?:monthly )?repayment|repayment (?:amount|due)|payout (?:figure|amount)|"
        r"(?:available )?redraw(?: available)?)[: ]*",
        re.IGNORECASE,
    ),
}
_DEBTS_AND_TERMS = ("credit_card", "loan", "term_deposit")
_OFFSET = re.compile(r"\boffset\b", re.IGNORECASE)
_SHORT_WORD = 3  # letters: `of` and `and` are small in titles, too
_LONGEST_TITLE = 9  # words; more is a sentence, and speaks of what the bank also sells
_ENOUGH_SAID = 2  # things that only cards or loans have


def account_type(head: Sequence[Line], layout: Layout | None) -> str | None:
    """By label; by what is to be paid; by what only cards or loans have; by what the document is of; else by titles."""
    for found in labelled(head, _LABEL):
        if named := _type_in(found.first_cell or found.behind):
            return named
    titles = [text for line in head for text in _titles(line)]
    if any(_BRANCH.search(line.text) for line in head):
        titles = [text for text in titles if not _LIMIT.search(text)]
    said = {name: sum(bool(words.search(text)) for text in titles) for name, words in _TYPES.items()}
    to_be_paid = (name for name, label in _TO_PAY.items() if any(map(states_money, labelled(head, label))))
    said_of = [name for name in _DEBTS_AND_TERMS if said[name] >= _ENOUGH_SAID]
    certain = next(to_be_paid, None) or max(said_of, key=said.__getitem__, default=None)
    of_document = layout.account_type if layout else None
    return certain or of_document or _by_title(titles, layout)


def _titles(line: Line) -> Iterator[str]:
    """The cells of a line that say something shortly; of a line with an amount what is a label of it."""
    if is_row(line):
        return iter(())
    texts = (text_of(cell) for cell in cells(line.words) if len(cell) <= _LONGEST_TITLE)
    return (text for text in texts if not has_amount(text))


def _by_title(titles: Sequence[str], layout: Layout | None) -> str | None:
    """The first title that names a kind; an account of the bank's by its own name before any."""
    names = [(name.lower(), kind) for kind, names in (layout.products if layout else {}).items() for name in names]
    product = next((kind for title in titles for name, kind in names if name in title.lower()), None)
    return product or next((named for title in titles if (named := _title_type(title))), None)


def _title_type(title: str) -> str | None:
    """`Ask for a credit card` stands on many an account that is none; `Low Rate Credit Card` is a title."""
    if _CARD_BRAND.fullmatch(title):
        return "credit_card"
    named = _type_in(title)
    is_capital = all(not word[0].islower() for word in title.split() if len(word) > _SHORT_WORD)
    return named if is_capital or named not in _DEBTS_AND_TERMS else None


def _type_in(text: str) -> str | None:
    if _OFFSET.search(text):  # it bears the name of the loan that it is set off against
        return "transaction"
    return next((name for name, words in _TYPES.items() if words.search(text)), None)
