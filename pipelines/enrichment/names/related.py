"""Find payments with related parties that the client declared for a customer, and keep them apart from trade.

A director's money is not a sale, however much its text looks like one. A row names a declared party if its text
contains the party's name or ABN. Names are compared by whole words:

- **a person**: given name and surname next to each other in either order; the given name may be an initial (`J SMITH`
  for John Smith);
- **a company, trust or fund**: its name without legal forms, or cut as banks cut it: within a word or to the width of
  a field, and never to less than CUT_FROM characters.

The party is written to `related_party`. It also decides the category, unless the payment is with somebody else and
only mentions the party (tax paid for a director, the name of a super fund's member). The first line that fits counts:

| party | side | text or category | becomes |
|---|---|---|---|
| company, trust, fund | both | | `related_entity` |
| person | out | category is payroll or rent | unchanged: the business pays for work and premises |
| | out | says WAGES | `wages` |
| | in | a refund, or the customer's own payment coming back | unchanged |
| | both | says LOAN | `director_loan_in`, `director_loan_out` |
| | out | says DIVIDEND or DISTRIBUTION | `dividend_paid` |
| | out | anything else | `owner_drawings`: taken by an owner without a stated reason |
| | in | anything else, also CAPITAL and CONTRIBUTION | `owner_contribution`: never revenue, and not owed back |

The client's corrections and rules are not overwritten.
"""

import re
import unicodedata
from collections.abc import Iterator

import polars as pl

from pipelines.enrichment.wording.phrases import Phrasebook, bare_words, words_of
from pipelines.enrichment.wording.text import matching_text
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.schemas import TRANSACTIONS, CategorySource
from pipelines.vocabulary.taxonomy import RELATED_ENTITY, TAXONOMY

CUT_FROM = 10  # characters (our judgement)
FIELD_WIDTHS = (16, 18, 20, 22)  # of a remitter's name and a reference in direct entry, and of what banks print
NAME_FROM = 5  # characters: a shorter name is an ordinary word as well (our judgement)
ABN_CONFIDENCE, NAME_CONFIDENCE, INITIAL_CONFIDENCE = 0.99, 0.95, 0.85  # not calibrated

_GROUP_ROLES = ("group_company",)
_ENTITY_WORDS = {
    *("PTY", "LTD", "LIMITED", "PROPRIETARY", "INC", "INCORPORATED", "TRUST", "TRUSTEE", "TRUSTEES", "ATF", "COMPANY"),
    *("CORPORATION", "HOLDINGS", "GROUP", "PARTNERSHIP", "ENTERPRISES", "INVESTMENTS", "FUND", "SUPERFUND", "SMSF"),
}
_LEGAL_FORMS = r"\b(?:(?:PTY|PROPRIETARY)? ?(?:LTD|LIMITED)|PTY|P L|INC|INCORPORATED)\b"
_TITLES = ("MR", "MRS", "MS", "MISS", "MX", "DR", "PROF")

# A merchant may have the same name as a party, and nobody pays a person at a terminal or a machine.
_NEVER_PAID_BY = ("card", "eftpos", "atm", "cash", "fee", "interest")
_OTHERS = ("government", "lender", "processor", "bank")
_SET_BY_CLIENT = ("client_rule", "correction")
_EXCLUDED_CATEGORIES = (*(slug for slug, each in TAXONOMY.categories.items() if each.group == "payroll"), "rent")
_RETAINED_CATEGORIES = ("returned_payment", "refund_received")
_LOAN, _WAGES = r"\b(?:LOAN|LOANS|LENT|DIV ?7A)\b", r"\b(?:WAGES?|SALARY|SALARIES|PAYROLL|PAYSLIP)\b"
_DIVIDEND = r"\b(?:DIVIDENDS?|DISTRIBUTIONS?)\b"

_OPTIONAL = ("counterparty_abn", "counterparty_kind", "counterparty_name", "channel", "category_basis")
_PHRASES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "related_party": pl.String(),
        "party_is_entity": pl.Boolean(),
        "party_confidence": pl.Float64(),
        "party_basis": pl.String(),  # the phrase to search for, and later the one found
    }
)
_COLUMNS = tuple(name for name in _PHRASES if name != "customer_number")


def mark_related_parties(rows: pl.DataFrame, related_parties: pl.DataFrame) -> pl.DataFrame:
    """Fill `related_party`, and set the category of payments with a related party.

    Args:
        rows: categorised transactions of any customers.
        related_parties: as declared by their clients (schema RELATED_PARTIES).
    """
    missing = {name: TRANSACTIONS[name] for name in _OPTIONAL if name not in rows.columns}
    blank = rows.drop("related_party", strict=False)
    if related_parties.is_empty():
        return blank.with_columns(related_party=pl.lit(None, pl.String))
    return (
        blank.with_columns(pl.lit(None, kind).alias(name) for name, kind in missing.items())
        .pipe(_find_parties, related_parties)
        .pipe(_set_category)
        .drop(*(name for name in _COLUMNS if name != "related_party"), *missing)
    )


def _find_parties(rows: pl.DataFrame, parties: pl.DataFrame) -> pl.DataFrame:
    """Add the party that each row names (_COLUMNS): by ABN, else by the longest name."""
    numbered = rows.with_row_index("row")
    concerned = numbered.select(
        *("row", "customer_number", "counterparty_abn"),
        text=words_of(matching_text(pl.col("description")), Phrasebook(parties["name"].unique().to_list()).numbers),
        by_hand=~pl.col("channel").is_in(_NEVER_PAID_BY).fill_null(value=False),
    ).join(parties, on="customer_number", how="semi")
    found = pl.concat([_find_by_abn(concerned, parties), _find_by_name(concerned.filter("by_hand"), parties)])
    best = found.unique("row", keep="first", maintain_order=True)
    return add_by_row(rows, best)


def _find_by_abn(rows: pl.DataFrame, parties: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and the party whose ABN is in the text."""
    known = parties.drop_nulls("abn").sort("customer_number", "name").unique(["customer_number", "abn"], keep="first")
    described = known.select(
        *("customer_number", "abn"),
        related_party="name",
        party_is_entity=pl.Series(
            [is_entity(name, role) for name, role in known.select("name", "role").rows()], dtype=pl.Boolean
        ),
        party_confidence=pl.lit(ABN_CONFIDENCE),
        party_basis=pl.format("ABN {}", "abn"),
    )
    matched = rows.drop_nulls("counterparty_abn").join(
        described, left_on=["customer_number", "counterparty_abn"], right_on=["customer_number", "abn"], validate="m:1"
    )
    return matched.select("row", *_COLUMNS)


def _find_by_name(rows: pl.DataFrame, parties: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and the party whose name is in the text; of several, the surest and longest.

    Distinct texts are searched for all names. Each hit counts only for customers who declared that party.
    """
    key = ("customer_number", "text")
    phrases = pl.DataFrame(list(_list_phrases(parties)), _PHRASES, orient="row")
    distinct = phrases["party_basis"].unique(maintain_order=True)
    texts = rows["text"].unique(maintain_order=True)
    hits = Phrasebook(distinct.to_list()).find(texts)
    named = pl.DataFrame({"text": texts.gather(hits["text_number"]), "party_basis": distinct.gather(hits["phrase"])})
    longest = pl.col("party_basis").str.len_chars()
    best = (
        rows.select(key)
        .unique()
        .join(named, on="text")
        .join(phrases, on=["customer_number", "party_basis"])
        .sort("party_confidence", longest, "related_party", "party_basis", descending=[True, True, False, False])
        .unique(key, keep="first", maintain_order=True)
    )
    return rows.join(best, on=key, validate="m:1").select("row", *_COLUMNS)


def _list_phrases(parties: pl.DataFrame) -> Iterator[tuple[int, str, bool, float, str]]:
    """Yield a row of _PHRASES for every form in which a party's name may be printed."""
    for number, name, role in parties.select("customer_number", "name", "role").unique(maintain_order=True).rows():
        entity = is_entity(name, role)
        for phrase, confidence in sorted(list_printed_forms(name, entity=entity).items()):
            yield number, name, entity, confidence, phrase


def is_entity(name: str, role: str) -> bool:
    """Return whether the declared party is a company, trust or fund rather than a person."""
    return role in _GROUP_ROLES or not _ENTITY_WORDS.isdisjoint(_bare_words(_without_accents(name)).split())


def list_printed_forms(name: str, *, entity: bool) -> dict[str, float]:
    """Return the forms in which texts print a name, as phrases, each with the confidence that it means this party."""
    ways: dict[str, float] = {}
    for spelled in (unicodedata.normalize("NFKC", name), _without_accents(name)):
        words = _bare_words(spelled)
        ways |= _list_company_forms(words) if entity else _list_person_forms(words)
    return {phrase: sure for phrase, sure in ways.items() if len(phrase) >= NAME_FROM or " " in phrase}


def _bare_words(name: str) -> str:
    """Return the bare words in upper case, as they are searched for."""
    words: list[str] = re.findall(r"[^\W_]+", re.sub("['’]", "", name.upper()))
    return " ".join(words)


def _without_accents(name: str) -> str:
    """Remove accents, because payment rails don't transmit them."""
    return "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))


def _list_company_forms(words: str) -> dict[str, float]:
    bare = " ".join(re.sub(_LEGAL_FORMS, " ", words).split()) or words
    cuts = [bare[:end] for end in range(CUT_FROM, len(bare))]
    within_word = [cut for cut in cuts if bare[len(cut)] != " " and not cut.endswith(" ")]
    to_width = [bare[:width].strip() for width in FIELD_WIDTHS if width < len(bare)]
    return dict.fromkeys((*within_word, *to_width), INITIAL_CONFIDENCE) | {bare: NAME_CONFIDENCE}


def _list_person_forms(words: str) -> dict[str, float]:
    names = [each for each in words.split() if each not in _TITLES]
    if len(names) < 2:
        return {words: NAME_CONFIDENCE}
    *given, surname = names
    whole, initials = " ".join(given), " ".join(each[0] for each in given)
    first, initial = given[0], given[0][0]
    mixed = " ".join([first, *(each[0] for each in given[1:])])
    sure = dict.fromkeys((initials, initial), INITIAL_CONFIDENCE) | dict.fromkeys(
        (whole, first, mixed), NAME_CONFIDENCE
    )
    return {way: at for each, at in sure.items() for way in (f"{each} {surname}", f"{surname} {each}")}


def _set_category(rows: pl.DataFrame) -> pl.DataFrame:
    """Set the category of payments with the party, unless the client has set another."""
    settled = pl.when(_is_with_party()).then(_related_category())
    group = settled.replace_strict({slug: each.group for slug, each in TAXONOMY.categories.items()}, default=None)
    changed = settled.is_not_null() & settled.ne_missing(pl.col("category"))
    return rows.with_columns(
        category=pl.coalesce(settled, "category"),
        category_group=pl.coalesce(group, "category_group"),
        confidence=pl.when(changed).then("party_confidence").otherwise("confidence"),
        category_source=pl.when(changed).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
        category_basis=pl.when(changed).then("party_basis").otherwise("category_basis"),
    )


def _is_with_party() -> pl.Expr:
    """Return whether the payment is with the party, not with oneself or with a bank or office that only mentions it."""
    kind = pl.col("counterparty_kind")
    others = kind.is_in(_OTHERS) | (kind == "own") | _is_another_business()
    stands = pl.col("category_source").is_in(_SET_BY_CLIENT)
    named = pl.col("related_party").is_not_null()
    return named & ~others.fill_null(value=False) & ~stands.fill_null(value=False)


def _is_another_business() -> pl.Expr:
    """Return whether the counterparty is a business without the party's name: a super fund next to a member's name."""
    named = pl.format(" {} ", bare_words(matching_text(pl.col("counterparty_name"))))
    is_party = named.str.contains(pl.format(" {}", "party_basis"), literal=True)
    by_abn = pl.col("party_basis").str.starts_with("ABN ")
    return (pl.col("counterparty_kind") == "business") & ~is_party & ~by_abn


def _related_category() -> pl.Expr:
    """Return the category by the table in the module's docstring."""
    text, category, out = matching_text(pl.col("description")), pl.col("category"), pl.col("amount") < 0
    loan = text.str.contains(_LOAN)
    paid = (
        pl.when(category.is_in(_EXCLUDED_CATEGORIES))
        .then(category)
        .when(text.str.contains(_WAGES))
        .then(pl.lit("wages"))
        .when(loan)
        .then(pl.lit("director_loan_out"))
        .when(text.str.contains(_DIVIDEND))
        .then(pl.lit("dividend_paid"))
        .otherwise(pl.lit("owner_drawings"))
    )
    received = (
        pl.when(category.is_in(_RETAINED_CATEGORIES))
        .then(category)
        .when(loan)
        .then(pl.lit("director_loan_in"))
        .otherwise(pl.lit("owner_contribution"))
    )
    person = pl.when(out).then(paid).otherwise(received)
    return pl.when("party_is_entity").then(pl.lit(RELATED_ENTITY.slug)).otherwise(person)
