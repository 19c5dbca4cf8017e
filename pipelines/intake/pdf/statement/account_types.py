"""Find the type of an account by the words at the head of its statement.

Adverts have such words, too: `Apply for a credit card` is printed on statements of other accounts. So an account counts
as a debt only if several words or a title say so, or the statement has an amount to pay.
"""

import re
from collections.abc import Iterator, Sequence

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.labels import cells, find_label, has_amount, is_row, states_money, text_of
from pipelines.intake.pdf.page.page import Line

_LABEL = re.compile(r"\b(?:account|product) type[: ]*", re.IGNORECASE)
_WORDS = {  # in this order, because more general words may be printed beside the specific ones
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
_BRANCH = re.compile(r"\bBSB\b")  # cards have none
_LIMIT = re.compile(r"\b(?:credit limit|available credit)\b", re.IGNORECASE)  # may also be of an overdraft
_TO_PAY = {  # with an amount, which adverts don't have, so one is enough
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
# The holder may be a broker or lender: `Sydney Mortgage Brokers Pty Ltd` has no mortgage.
_BUSINESS = re.compile(
    r"\b(?:pty|ltd|limited|inc|llc|plc|brokers?|broking|solutions|services|lending|lawyers?|consult\w*)\b",
    re.IGNORECASE,
)
_OFFSET = re.compile(r"\boffset\b", re.IGNORECASE)
_SHORT_WORD = 3  # letters: `of` and `and` are in lower case even in titles
_LONGEST_TITLE = 9  # words; a longer text is a sentence, perhaps about other products
_ENOUGH_FEATURES = 2  # features that only cards, loans or term deposits have


def account_type(head: Sequence[Line], layout: Layout | None) -> str | None:
    """Return the type by label, else by an amount to pay, else by features of cards, loans or term deposits, else by
    layout, else by titles.
    """
    for found in find_label(head, _LABEL):
        if named := _type_in(found.first_cell or found.text_after):
            return named
    titles = [text for line in head for text in _titles(line)]
    if any(_BRANCH.search(line.text) for line in head):
        titles = [text for text in titles if not _LIMIT.search(text)]
    features = {name: sum(bool(words.search(text)) for text in titles) for name, words in _TYPES.items()}
    to_be_paid = (name for name, label in _TO_PAY.items() if any(map(states_money, find_label(head, label))))
    likely = [name for name in _DEBTS_AND_TERMS if features[name] >= _ENOUGH_FEATURES]
    certain = next(to_be_paid, None) or max(likely, key=features.__getitem__, default=None)
    of_document = layout.account_type if layout else None
    return certain or of_document or _by_title(titles, layout)


def _titles(line: Line) -> Iterator[str]:
    """Return the short cells of a line that have no amount and name no business, unless the line is a row."""
    if is_row(line):
        return iter(())
    texts = (text_of(cell) for cell in cells(line.words) if len(cell) <= _LONGEST_TITLE)
    return (text for text in texts if not has_amount(text) and not _BUSINESS.search(text))


def _by_title(titles: Sequence[str], layout: Layout | None) -> str | None:
    """Return the type of the first title that names the bank's own product, else of the first that names a type."""
    names = [(name.lower(), kind) for kind, names in (layout.products if layout else {}).items() for name in names]
    product = next((kind for title in titles for name, kind in names if name in title.lower()), None)
    return product or next((named for title in titles if (named := _title_type(title))), None)


def _title_type(title: str) -> str | None:
    """Return the type that a title names. `Low Rate Credit Card` is a title; `Ask for a credit card` is an advert."""
    if _CARD_BRAND.fullmatch(title):
        return "credit_card"
    named = _type_in(title)
    is_capital = all(not word[0].islower() for word in title.split() if len(word) > _SHORT_WORD)
    return named if is_capital or named not in _DEBTS_AND_TERMS else None


def _type_in(text: str) -> str | None:
    if _OFFSET.search(text):  # its name includes the loan that it offsets
        return "transaction"
    return next((name for name, words in _TYPES.items() if words.search(text)), None)
