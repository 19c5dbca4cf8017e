"""Give all spellings of a counterparty's name one group.

A name's group is its words in lower case without the parts in which spellings differ: legal forms, a leading THE, the
country, punctuation. Banks also cut names: STRINGYBARK WHOLESA and STRINGYBARK WHOLESALE. Within a customer, a group
that ends in the middle of a word is merged with the only longer group that it can be cut from. If there are two, it
stays separate.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.names import name_words

SHORTEST_CUT = 10  # characters: a shorter beginning fits too many names (our judgement)

# Words left out wherever they occur, and words written in one spelling.
_LEGAL = (
    *("pty", "ltd", "lt", "limited", "limite", "limit", "ptyltd", "pl", "inc", "llc", "llp", "plc", "gmbh", "corp"),
    *("corporation", "incorporated", "pte", "bv", "nv", "and"),
)
_ALIKE = {
    "grp": "group",
    "svc": "services",
    "svcs": "services",
    "svs": "services",
    "serv": "services",
    "mgmt": "management",
    "mgt": "management",
    "bros": "brothers",
    "assoc": "associates",
    "intl": "international",
    "const": "constructions",
    "constr": "constructions",
    "fin": "finance",
    "tst": "trust",
}
_COUNTRY = r"-(?:australia|australasia|aust|aus|au)$"
_CUT_LEGAL = r"-(?:p-l|pt|p|l)$"  # the beginnings of PTY and LTD: hardly any business's name ends so


def slug(name: pl.Expr) -> pl.Expr:
    """Return the words in lower case, joined by hyphens; null if the name has no letter or digit."""
    plain = (
        name.str.to_lowercase()
        .str.replace_all("['\u2019]", "")
        .str.replace_all(r"[^\p{L}\p{N}]+", "-")
        .str.strip_chars("-")
    )
    return pl.when(plain != "").then(plain)


def group_of(names: pl.DataFrame) -> pl.Series:
    """Return the group of each name that was read from text.

    Args:
        names: `bare` (the name, upper case), `name_shape` (its letters, see `name_words`), `kind` (person or not).
    """
    keyed = names.select("kind", "name_shape", key=_group_key(pl.col("bare")), business=business_groups(names["bare"]))
    return keyed.select(_group()).to_series()


@cache
def _group() -> pl.Expr:
    person = pl.col("kind").eq_missing("person") | pl.col("name_shape").str.contains("^[GgXxSsIP]+$")
    surname_first = person & pl.col("name_shape").str.contains("^SP?[GX]")
    turned = pl.col("key").str.replace(r"^([^-]+)-(.+)$", "$2-$1")
    return pl.when(surname_first).then(turned).when(person).then("key").otherwise("business")


def business_groups(names: pl.Series) -> pl.Series:
    """Return the groups of businesses: their names without legal forms and country, common words in one spelling.

    In steps, because Polars computes a part of an expression anew wherever it occurs.
    """
    keyed = names.to_frame("name").with_columns(key=_group_key(pl.col("name")))
    cut = keyed.with_columns(core=_core()).with_columns(short=_short())
    return cut.select(pl.when(pl.col("short").str.len_chars() > 1).then("short").otherwise("key")).to_series()


@cache
def _core() -> pl.Expr:
    """Return the `key` without legal forms and leading words."""
    left_out = {f"-{word}-": "--" for word in _LEGAL}
    alike = {f"-{word}-": f"-{other}-" for word, other in _ALIKE.items()}
    # Each word gets hyphens of its own, which its neighbours don't share.
    apart = "-" + pl.col("key").str.replace_all("-", "--", literal=True) + "-"
    changed = apart.str.replace_many(list(left_out | alike), list((left_out | alike).values()))
    return (
        changed.str.replace_all("-{2,}", "-")
        .str.strip_chars("-")
        .str.strip_prefix("the-")
        .str.strip_prefix("trustee-for-")
        .str.strip_prefix("the-")
    )


@cache
def _short() -> pl.Expr:
    """Return the `core` without CO, a cut legal form and the country. CO stays in HARRIS & CO."""
    partners = pl.col("name").str.to_uppercase().str.contains(r"(?:&|\bAND) CO\b")
    alone = pl.when(partners).then("core").otherwise(pl.col("core").str.strip_suffix("-co"))
    return alone.str.replace(_CUT_LEGAL, "").str.replace(_COUNTRY, "")


def _group_key(name: pl.Expr) -> pl.Expr:
    return slug(name.str.replace_all("(?i)P/L", "PL"))


def merge_cut_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace `counterparty_group` of a cut name by the group it was cut from, within each customer.

    Args:
        rows: any columns, including `customer_number` and `counterparty_group`; the others and the order stay.
    """
    key = ["customer_number", "counterparty_group"]
    whole = rows.select(key).drop_nulls("counterparty_group").unique().pipe(_find_whole_groups)
    found = rows.select(key).join(whole, on=key, how="left", validate="m:1", maintain_order="left")
    return rows.with_columns(pl.coalesce(found["whole"], rows["counterparty_group"]).alias("counterparty_group"))


def _find_whole_groups(distinct: pl.DataFrame) -> pl.DataFrame:
    """Return the cut groups of each customer, and the `whole` group that each was cut from.

    In sorted order, all groups that begin with a given group follow right after it. If each of these is the beginning
    of the next, they form one chain, and its last group is the whole. The group after the chain must not begin with
    the cut group, or there would be two candidates.
    """
    group, customer = pl.col("counterparty_group"), pl.col("customer_number")
    goes_on = pl.col("next").str.starts_with(group).fill_null(value=False)
    ordered = (
        distinct.sort("customer_number", "counterparty_group")
        .with_columns(pl.when(customer.shift(-1) == customer).then(group.shift(-1)).alias("next"))
        .with_columns(goes_on=goes_on)
    )
    if not ordered["goes_on"].any():
        return distinct.clear().with_columns(whole="counterparty_group")
    return (
        ordered.with_columns(cut=pl.col("goes_on") & _is_cut())
        .with_columns(
            last=pl.when(~pl.col("goes_on")).then(group).backward_fill(),
            after=pl.when(~pl.col("goes_on")).then(pl.col("next").fill_null("")).backward_fill(),
            chain=pl.when(~pl.col("goes_on") | ~pl.col("cut")).then(pl.col("goes_on")).backward_fill(),
        )
        .filter("cut", ~pl.col("chain"), ~pl.col("after").str.starts_with(group))
        .select("customer_number", "counterparty_group", whole="last")
    )


@cache
def _is_cut() -> pl.Expr:
    """Return whether a group ends in the middle of a word of the next group, and its last part is not a whole word."""
    group = pl.col("counterparty_group")
    length = group.str.len_bytes()
    goes_on = pl.col("next").cast(pl.Binary).bin.slice(length, 1) != pl.lit(b"-")
    is_word = group.str.extract(r"([^-]+)$", 1).is_in(_whole_words())
    return (length >= SHORTEST_CUT) & goes_on & ~is_word


@cache
def _whole_words() -> list[str]:
    """List known whole words. A name that ends in one was not cut there."""
    return sorted({word.lower().replace("'", "") for word in name_words.load().letters})
