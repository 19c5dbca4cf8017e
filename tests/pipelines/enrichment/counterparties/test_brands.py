"""Brands of a public list count as names only where nobody else is meant."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from pipelines.enrichment.counterparties import brands, counterparties
from pipelines.enrichment.counterparties.brands import COLUMNS, Brands
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.training.brands import build
from pipelines.vocabulary.rule_files import RuleError
from pipelines.vocabulary.schemas import AccountType, Direction

NARRATIVES = {"description": pl.String(), "direction": Direction, "account_type": AccountType}


def decide_narrative(text: str, direction: str = "debit", account: str = "transaction") -> tuple[str | None, str]:
    """Return the counterparty and the category of a narrative."""
    rows = pl.DataFrame([(text, direction, account)], NARRATIVES, orient="row")
    return read_narratives(rows).select("counterparty_name", "category").row(0)


def decide_all(texts: Sequence[str]) -> dict[str, tuple[str | None, str]]:
    """Return the same for many narratives of money out, which is faster at once."""
    rows = pl.DataFrame([(text, "debit", "transaction") for text in texts], NARRATIVES, orient="row")
    return dict(zip(texts, read_narratives(rows).select("counterparty_name", "category").rows(), strict=True))


def test_a_name_that_stands_for_nobody_else_needs_nothing_more(subtests: pytest.Subtests) -> None:
    cases = {
        "PLANET FITNESS": ("Planet Fitness", "fitness"),
        "DIRECT DEBIT PLANET FITNESS 0412": ("Planet Fitness", "fitness"),
        "PRET A MANGER LONDON BRIDGE": ("Pret A Manger", "meals"),
        "SQ *BLUE BOTTLE COFFEE OAKLAND CA": ("Blue Bottle Coffee", "meals"),
    }
    for text, found in decide_all(list(cases)).items():
        with subtests.test(text):
            assert found == cases[text]


def test_a_single_word_needs_a_card_or_nothing_beside_it(subtests: pytest.Subtests) -> None:
    named = (
        "WHATABURGER",
        "WHATABURGER 612",
        "WHATABURGER LTD",
        "WHATABURGER STORE 612",
        "VISA PURCHASE WHATABURGER NEWTOWN",
    )
    others = ("WHATABURGER TRIBUTE BAND", "PAYMENT TO WHATABURGER FANS", "TRANSFER WHATABURGER JONES")
    for text, found in decide_all([*named, *others]).items():
        with subtests.test(text):
            assert found == ("Whataburger", "meals") if text in named else found[0] != "Whataburger"


def test_other_words_of_a_name_make_it_another_business(subtests: pytest.Subtests) -> None:
    others = (
        *("VISA PURCHASE NEXT LEVEL TRAINING SYDNEY NSW", "VISA PURCHASE NEXT GENERATION SYSTEMS"),
        *("EFTPOS SONIC HEALTHPLUS", "VISA PURCHASE ACME WIDGETS SYDNEY", "SQ *COOK WIDGETS LEEDS"),
        "VISA PURCHASE WHATABURGER STORE JONES",
    )
    for text, found in decide_all(others).items():
        with subtests.test(text):
            assert found[1] not in ("shopping", "fuel", "groceries", "meals")


def test_a_place_a_number_or_a_word_of_the_payment_may_follow_at_a_shop(subtests: pytest.Subtests) -> None:
    texts = (
        *("VISA PURCHASE WHATABURGER LEEDS", "VISA PURCHASE WHATABURGER NORTH SYDNEY NSW"),
        *("EFTPOS WHATABURGER 612 CORK", "VISA PURCHASE WHATABURGER GLADESVILLE", "WHATABURGER #612 GLADESVILLE"),
        *("EFTPOS WHATABURGER LTD GLADESVILLE", "EFTPOS WHATABURGER STORE 612"),
    )
    for text, found in decide_all(texts).items():
        with subtests.test(text):
            assert found == ("Whataburger", "meals")


def test_a_persons_name_needs_a_card(subtests: pytest.Subtests) -> None:
    shop = "VISA PURCHASE PAUL SMITH NEWTOWN NSW AU"
    others = ("TRANSFER TO PAUL SMITH", "PAUL SMITH", "OSKO PAUL SMITH RENT", "VISA PURCHASE PAUL SMITH CARS")
    found = decide_all([shop, *others])
    assert found[shop] == ("Paul Smith", "shopping")
    assert decide_narrative("PAUL SMITH 0412", account="credit_card")[1] == "shopping"
    for text in others:
        with subtests.test(text):
            assert found[text][1] != "shopping"


def test_a_number_is_no_sign_of_a_shop(subtests: pytest.Subtests) -> None:
    texts = ("COOK 4411", "COOK 44112299", "PAUL SMITH 0412", "PAYMENT TO PAUL SMITH 44112299")
    found = decide_all([*texts, "COOK STORE 4411"])
    for text in texts:
        with subtests.test(text):
            assert found[text][1] == "unknown_debit"
    assert found["COOK STORE 4411"] == ("Cook", "groceries")
    assert decide_narrative("COOK 4411", account="credit_card") == ("Cook", "groceries")


def test_what_follows_a_number_may_make_it_another_business(subtests: pytest.Subtests) -> None:
    for text, found in decide_all(("HOME DEPOT 12 JONES FENCING", "WHATABURGER 44 JONES")).items():
        with subtests.test(text):
            assert found[0] not in ("The Home Depot", "Whataburger")


def test_town_and_state_show_a_card_unless_they_may_be_words(subtests: pytest.Subtests) -> None:
    shops = ("WHATABURGER DALLAS TX", "WHATABURGER PORTLAND ME US", "WHATABURGER 612 PORTLAND OR")
    others = (
        *("WHATABURGER FANS IN", "WHATABURGER PAID ME", "WHATABURGER TRIBUTE BAND ACT", "WHATABURGER JONES CO"),
        *("TRANSFER WHATABURGER JONES WA", "OSKO PAYMENT WHATABURGER JONES NSW", "COOK DALLAS TX"),
    )
    for text, found in decide_all([*shops, *others]).items():
        with subtests.test(text):
            assert found == ("Whataburger", "meals") if text in shops else found[1] == "unknown_debit"


def test_ordinary_words_need_nothing_beside_them(subtests: pytest.Subtests) -> None:
    texts, other = ("THE HOME DEPOT", "HOME DEPOT 4411 PHOENIX AZ"), "VISA PURCHASE HOME DEPOT LANE BISTRO"
    found = decide_all([*texts, other])
    for text in texts:
        with subtests.test(text):
            assert found[text] == ("The Home Depot", "materials")
    assert found[other][0] != "The Home Depot"


def test_a_trade_behind_the_name_makes_it_another_business() -> None:
    texts = (
        "PLANET FITNESS CLEANING PTY LTD",
        "VISA PURCHASE JONES PRINTING NEWTOWN",
        "VISA PURCHASE WHATABURGER STREET CAFE",
    )
    fitness, printing, cafe = decide_all(texts).values()
    assert fitness[1] != "fitness"
    assert printing[1] == "printing"
    assert cafe[0] != "Whataburger"


def test_a_franchise_may_name_its_town() -> None:
    shop, other = decide_all(("CARD PURCHASE CULVERS OF PIQUA PIQUA OH", "PAYMENT TO CULVERS OF PIQUA")).values()
    assert shop[1] == "meals"
    assert other[1] != "meals"


def test_money_from_a_shop_is_a_refund() -> None:
    assert decide_narrative("PLANET FITNESS", "credit") == ("Planet Fitness", "refund_received")


def test_curated_lists_and_words_of_the_bank_come_first() -> None:
    curated, of_bank = decide_all(("WOOLWORTHS 4411 NEWTOWN", "DISHONOUR FEE PLANET FITNESS")).values()
    assert curated == ("Woolworths", "groceries")
    assert of_bank[1] == "dishonour_fee"


def test_no_spelling_stands_twice_or_in_the_curated_lists() -> None:
    listed = pl.read_csv(
        "pipelines/enrichment/rules/brands/brands.tsv", separator="\t", schema=COLUMNS, quote_char=None
    )
    assert listed.height > 5_000
    assert listed["spelling"].is_unique().all()
    purposes = counterparties.load().purposes_in(listed["spelling"].to_list())
    assert [spelling for spelling, purpose in zip(listed["spelling"], purposes, strict=True) if purpose] == []


def test_an_unknown_purpose_is_refused() -> None:
    with pytest.raises(RuleError, match="there is no purpose nonsense"):
        Brands(pl.DataFrame([("Acme", "nonsense", "nothing", "ACME")], COLUMNS, orient="row"))


def item(name: str, *places: str, **tags: str) -> dict[str, Any]:
    return {"displayName": name, "locationSet": {"include": places or ("us",)}, "tags": {"brand": name, **tags}}


def index(**items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an index with items by tag (`shop_shoes`)."""
    return {f"brands/{tag.replace('_', '/', 1)}": {"items": of_tag} for tag, of_tag in items.items()}


def build_rows(**items: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return build(index(**items)).rows()


def test_the_list_has_names_of_our_markets_with_a_trade_that_people_pay_for() -> None:
    found = build_rows(
        shop_shoes=[item("Zorbal Shoe Barnyard"), item("Schuhhaus Zorbal", "de")], amenity_bench=[item("Zorbal Seats")]
    )
    assert found == [("Zorbal Shoe Barnyard", "personal_retail", "nothing", "ZORBAL SHOE BARNYARD")]


def test_what_a_brand_does_besides_is_no_second_trade() -> None:
    fuel = [item("Zorbal Qwix")]
    assert build_rows(amenity_fuel=fuel, shop_convenience=fuel) == [("Zorbal Qwix", "fuel", "nothing", "ZORBAL QWIX")]
    assert build_rows(amenity_fuel=fuel, shop_shoes=fuel) == [("Zorbal Qwix", "fuel", "card", "ZORBAL QWIX")]


def test_short_ordinary_and_personal_names_need_more() -> None:
    names = ("Zorbal", "Qx", "Coffee Depot", "John Smith", "Bunnings Trade Desk")
    needs = {name: sign for name, _, sign, _ in build_rows(shop_shoes=[item(name) for name in names])}
    assert needs == {"Zorbal": "whole", "Qx": "card", "Coffee Depot": "alone", "John Smith": "card"}


def test_every_spelling_gets_the_shortest_name() -> None:
    both = [item("Zorbal Express Nook", short_name="Zorbal"), item("Zorbal")]
    assert ("Zorbal", "personal_retail", "whole", "ZORBAL") in build_rows(shop_shoes=both)


def test_a_spelling_that_is_a_brands_own_name_is_that_brands() -> None:
    petrol, shop = item("Qwix", alt_name="Giant Zorbal"), item("Giant Zorbal", short_name="Giant Zorbal Food")
    found = build_rows(amenity_fuel=[petrol], shop_supermarket=[shop])
    assert ("Giant Zorbal", "groceries", "nothing", "GIANT ZORBAL") in found
    assert ("Qwix", "fuel", "whole", "QWIX") in found


def test_a_name_of_two_brands_needs_a_card_if_their_trades_differ() -> None:
    both = {"shop_shoes": [item("Zorbals")], "amenity_fuel": [item("Zorbal's")]}
    assert [needs for _, _, needs, spelling in build_rows(**both) if spelling == "ZORBALS"] == ["card"]


def test_a_supermarket_is_not_its_petrol_station() -> None:
    cases = {
        "CHECKCARD 0412 GIANT EAGLE 4411 PLYMOUTH /MA US": ("Giant Eagle", "groceries"),
        "CHECKCARD 0412 GETGO 3312 PLYMOUTH /MA US": ("GetGo", "fuel"),
    }
    assert decide_all(list(cases)) == cases


def test_the_shipped_list_can_be_loaded() -> None:
    texts = dict.fromkeys(("clean_description", "whole_name"), pl.String())
    signs = dict.fromkeys(("is_at_shop", "is_by_card"), pl.Boolean())
    assert brands.load().find(pl.DataFrame(schema=texts | signs)).is_empty()
