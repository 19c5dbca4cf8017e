"""Card lines with listed names: the same each time, labelled by the lists, and no family in both parts."""

import pytest

from pipelines.synthetic.card_lines import WIDTHS, card_lines, family_of, lists_without_held_out
from pipelines.synthetic.world.brands import is_held_out
from pipelines.vocabulary.taxonomy import TAXONOMY


def test_a_family_is_the_first_word_without_the(subtests: pytest.Subtests) -> None:
    for name, family in {
        "The Home Depot": "home",
        "Shell Recharge": "shell",
        "THE": "the",
        "Dunkin'": "dunkin",
    }.items():
        with subtests.test(name):
            assert family_of(name) == family


def test_lines_are_the_same_each_time_and_labelled_with_categories_of_money_out() -> None:
    lines = card_lines(held_out=True)
    assert lines.equals(card_lines(held_out=True))
    assert all(TAXONOMY.categories[label].sign != "credit" for label in lines["label"].unique())
    assert (lines["amount"] < 0).all()


def test_no_line_is_in_both_parts() -> None:
    learned, held_out = (set(card_lines(held_out=part)["description"]) for part in (False, True))
    assert not learned & held_out
    assert 0.1 < len(held_out) / len(learned | held_out) < 0.3


def test_a_name_is_cut_at_a_banks_width() -> None:
    names = card_lines(held_out=True)["description"].str.extract("^TST[*] (.+)$").drop_nulls()
    assert 0 < names.str.len_chars().max() <= max(WIDTHS)  # pyrefly: ignore[unsupported-operation]


def test_lists_without_held_out_families_name_none_of_them() -> None:
    listed = lists_without_held_out()
    spellings = listed.brands.phrases["phrase"].str.strip_prefix("^ ")
    assert not any(is_held_out(family_of(spelling)) for spelling in spellings)
