"""A client's own rules: what is refused and how it is said, what wins, and what bounds the search."""

import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.enrichment import own_rules
from pipelines.enrichment.counterparties import counterparties, lists, patterns
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import CORRECTIONS, Activated, Knowledge
from pipelines.enrichment.own_rules import OwnRules, load_own_rules, parse_own_rules
from pipelines.vocabulary.rule_files import RuleError
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.enrichment.examples import accepted_rows

NOTHING = pl.DataFrame(schema=TRANSACTIONS)
NAMES, DECISIVE, INDICATIVE = "counterparties/mine.yaml", "patterns/decisive.yaml", "patterns/indicative.yaml"
EXAMPLES = "  matches: [DEPOT COVER 4, THE DEPOT COVER]\n  not: [DEPOT]\n"
RULE = f"- category: insurance\n  any: [DEPOT COVER]\n{EXAMPLES}"


def load_refused(**files: str) -> list[str]:
    """Return the lines of the refusal. Arguments are the files' contents, by the names above in lower case."""
    with pytest.raises(RuleError) as caught:
        parse_own_rules({globals()[name.upper()]: text for name, text in files.items()})
    return str(caught.value).splitlines()


def categories(own: OwnRules | None, *rows: dict[str, Any], **known: Any) -> list[str]:
    knowledge = Knowledge(lists=None if own is None else own.lists, **known)
    transactions = enrich(NOTHING, accepted_rows(*rows), knowledge=knowledge).transactions.collect()
    return transactions.sort("position")["category"].to_list()


def rows_described(*texts: str) -> list[dict[str, Any]]:
    return [{"description": text, "amount": Decimal("-50.00")} for text in texts]


def test_each_fault_is_one_line_with_file_and_line(subtests: pytest.Subtests) -> None:
    faults = {
        "no category insurence: did you mean insurance?": (
            "decisive",
            RULE.replace("insurance", "insurence"),
            1,
        ),
        "insurance does not belong on the side credit": ("decisive", f"# a note\n{RULE}  side: credit\n", 2),
        "there is no side left": ("decisive", f"{RULE}  side: left\n", 5),
        "confidence is not between": ("decisive", f"{RULE}  confidence: high\n", 5),
        "does not match 'DEPO COVER'": ("decisive", RULE.replace("THE DEPOT", "DEPO"), 3),
        "matches 'DEPOT COVER'": ("decisive", RULE.replace("[DEPOT]", "[DEPOT COVER]"), 4),
        "'(DEPOT|COVER)+' is not plain words": ("decisive", RULE.replace("[DEPOT COVER]", "['(DEPOT|COVER)+']"), 2),
        "'...' has no letter": ("decisive", RULE.replace("[DEPOT COVER]", "['...']"), 2),
        "there is no field when": ("decisive", f"{RULE}  when: [X]\n", 5),
        "there is no field mathces: did you mean matches?": ("decisive", f"{RULE}  mathces: [X]\n", 5),
        "lacks category, matches, not": ("decisive", "- any: [X]\n", 1),
        "is not a rule": ("decisive", f"{RULE}- insurance\n", 5),
        "takes a list of rules": ("decisive", "category: insurance\n", 1),
        "'depot-cover' is already in rule 1": ("indicative", RULE + RULE.replace("[DEPOT COVER]", "[depot-cover]"), 6),
        "there is no purpose feul: did you mean fuel?": ("names", "feul:\n  ACME: [ACME FUEL]\n", 1),
        "takes a list of phrases": ("names", "fuel:\n  ACME: []\n", 2),
        "takes counterparties by name (a number in quotes)": ("names", "fuel:\n  7: [SEVEN]\n", 1),
        "'ACME' is already listed under counterparties/mine.yaml, fuel, A": (
            "names",
            "fuel:\n  A: [ACME]\n  B: [A-C-M-E, ACME]\n",
            3,
        ),
        "'A' occurs twice": ("names", "fuel:\n  A: [ACME]\n  A: [ACME TOO]\n", 3),
        "expected": ("names", "fuel:\n  A: [ACME\n  B: ]x", 3),
        "aliases are not allowed": ("names", "fuel:\n  A: &a [ACME]\n  B: *a\n", 3),
        "control characters": ("names", "fuel:\n  A: [AC\x07ME]\n", 2),
        "nested too deeply": ("names", f"fuel: {'[' * 9}{']' * 9}", 1),
        "matches too much": ("names", "fuel:\n  A: [AC*]\n", 2),
        "more than 100 letters": ("names", f"fuel:\n  A: [{'ACME ' * 30}]\n", 2),
        "a counterparty's name has 1 to 100 letters": ("names", f"fuel:\n  {'A' * 101}: [ACME]\n", 2),
    }
    for says, (name, text, line) in faults.items():
        with subtests.test(says):
            [shown] = load_refused(**{name: text})
            assert shown.startswith(f"{globals()[name.upper()]}:{line}: ")
            assert says in shown


def test_all_faults_are_reported_at_once_but_not_without_end() -> None:
    wrong = "".join(f"  N{number}: []\n" for number in range(30))
    lines = load_refused(names=f"fuel:\n{wrong}")
    assert len(lines) == own_rules.MAX_FAULTS + 1
    assert lines[-1] == "and 10 more"


def test_faults_of_all_files_are_reported_together() -> None:
    lines = load_refused(
        names="feul:\n  ACME: [ACME FUEL]\nfuel:\n  A: [AC*]\n",
        decisive=f"{RULE.replace('insurance', 'insurence')}{RULE.replace('THE DEPOT', 'DEPO')}",
        indicative="category: insurance\n",
    )
    assert [line.partition(": ")[0] for line in lines] == [
        f"{INDICATIVE}:1",
        f"{NAMES}:4",
        f"{NAMES}:1",
        f"{DECISIVE}:1",
    ]
    lines = load_refused(
        names="feul:\n  ACME: [ACME FUEL]\n",
        decisive=f"{RULE.replace('insurance', 'insurence')}{RULE.replace('THE DEPOT', 'DEPO')}",
    )
    assert [line.partition(": ")[0] for line in lines] == [f"{NAMES}:1", f"{DECISIVE}:1", f"{DECISIVE}:7"]


def test_a_broken_name_makes_no_rule_that_needs_it_look_broken() -> None:
    rule = RULE.replace("  any:", "  of: [fuel]\n  any:").replace("DEPOT COVER 4", "ZORBLY DEPOT COVER")
    rule = rule.replace("THE DEPOT COVER", "ZORBLY THE DEPOT COVER")
    names = "fuel:\n  Zorbly: [ZORBLY]\n"
    assert parse_own_rules({NAMES: names, DECISIVE: rule}).rules
    assert len(load_refused(names=f"{names}  Broken: []\n", decisive=rule)) == 1


def test_a_file_that_cannot_be_read_hides_no_other() -> None:
    lines = load_refused(names="fuel:\n  A: [ACME\n  B: ]x", decisive=RULE.replace("insurance", "insurence"))
    assert [line.partition(":")[0] for line in lines] == [NAMES, DECISIVE]


def test_files_with_other_names_and_shipped_purposes_are_refused() -> None:
    for name, text, says in (
        ("surnames.yaml", "a: b", "surnames.yaml:1: is no file of rules"),
        ("counterparties/mine.yml", "", "counterparties/mine.yml:1: is no file of rules"),
        ("purposes.yaml", "fuel: {kind: business}", "purposes.yaml:1: fuel is a shipped purpose"),
        ("purposes.yaml", "depots: {kind: business, debit: insurence}", "did you mean insurance?"),
    ):
        with pytest.raises(RuleError) as caught:
            parse_own_rules({name: text})
        assert says in str(caught.value)


def test_own_entries_win_over_shipped_ones_of_their_layer() -> None:
    own = parse_own_rules(
        {
            "purposes.yaml": "depots: {kind: business, debit: insurance}",
            NAMES: "depots:\n  Own Tyres: [BUNNINGS]\nfuel:\n  Zorbly: [ZORBLY]\n",
            DECISIVE: "- category: software\n  any: [DISHONOUR FEE]\n  matches: [DISHONOUR FEE, A DISHONOUR FEE]\n"
            "  not: [FEE]\n",
        }
    )
    rows = rows_described("BUNNINGS WAREHOUSE 0441", "ZORBLY 0441", "DISHONOUR FEE ZORBLY", "AMPOL 0441")
    assert categories(None, *rows)[0] == "materials"
    assert categories(own, *rows) == ["insurance", "fuel", "software", "fuel"]


def test_a_shipped_decisive_rule_stays_above_an_own_name() -> None:
    own = parse_own_rules({NAMES: "fuel:\n  Zorbly: [ZORBLY]\n"})
    assert categories(own, *rows_described("DISHONOUR FEE ZORBLY", "ZORBLY 0441")) == ["dishonour_fee", "fuel"]


def test_an_own_short_phrase_wins_over_a_longer_shipped_one() -> None:
    own = parse_own_rules({NAMES: "materials:\n  Tyro Tools: [TYRO]\n"})
    assert categories(own, *rows_described("TYRO BUSINESS LOAN 4411")) == ["materials"]


def test_corrections_stay_above_own_rules() -> None:
    own = parse_own_rules({NAMES: "fuel:\n  Zorbly: [ZORBLY]\n"})
    blank = dict.fromkeys(CORRECTIONS.names())
    correction = {
        "customer_number": 1,
        "correction_id": b"c" * 16,
        "position": 1,
        "words": "ZORBLY",
        "category": "meals",
    }
    corrections = pl.DataFrame([blank | correction], schema=CORRECTIONS)
    assert categories(own, *rows_described("ZORBLY 0441"), corrections=corrections) == ["meals"]


def test_only_the_clients_own_customers_are_read_by_its_rules() -> None:
    own = parse_own_rules({NAMES: "fuel:\n  Zorbly: [ZORBLY]\n"})
    rows = [{**row, "customer_number": number} for number in (1, 2) for row in rows_described("ZORBLY 0441")]
    knowledge = Knowledge(own_lists=[Activated(frozenset({2}), own.lists)])
    found = enrich(NOTHING, accepted_rows(*rows), knowledge=knowledge).transactions.collect().sort("customer_number")
    assert (found["category"] == "fuel").to_list() == [False, True]
    backwards = enrich(NOTHING, accepted_rows(*rows[::-1]), knowledge=knowledge).transactions.collect()
    assert backwards.sort("customer_number")["category"].to_list() == found["category"].to_list()
    assert enrich(NOTHING, accepted_rows(), knowledge=knowledge).transactions.collect().is_empty()


def test_stored_content_is_equal_for_equal_files_and_loads_the_same_rules() -> None:
    files = {NAMES: "fuel:\n  Zorblé: [ZORBLÉ]\n", DECISIVE: RULE}
    own, other = parse_own_rules(files), parse_own_rules(dict(reversed(files.items())))
    assert (own.content, own.fingerprint) == (other.content, other.fingerprint)
    assert load_own_rules(own.content) == own
    assert parse_own_rules({**files, DECISIVE: f"{RULE}# a note\n"}).fingerprint != own.fingerprint


def test_the_documented_rules_are_sound() -> None:
    [block] = re.findall("```yaml\n(.*?)```", Path("docs/how-to/own-rules.md").read_text(), re.DOTALL)
    parts = re.split(r"^# (\S+\.yaml)\n", block, flags=re.MULTILINE)[1:]
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    own = parse_own_rules(files)
    assert len(files) == 3
    assert categories(own, *rows_described("ZORBLY 4", "HARBOUR DEPOT 4", "DEPOT COVER LEVY")) == [
        "materials",
        "rent",
        "insurance",
    ]


def test_no_rules_change_nothing() -> None:
    own = parse_own_rules({NAMES: "# nothing yet\n"})
    rows = rows_described(
        "BUNNINGS WAREHOUSE 0441", "DISHONOUR FEE", "COURIERS 44", "TYRO BUSINESS LO", "SOMEBODY ELSE"
    )
    assert categories(own, *rows) == categories(None, *rows)
    assert own.lists.rulebook.numbers == patterns.load().numbers
    assert own.lists.directory.phrases.equals(counterparties.load().phrases)
    assert own.lists.directory.phrases.height == lists.load().directory.phrases.height


# Hostile files

WORDS = st.sampled_from(["fuel", "rent", "category", "any", "matches", "not", "with"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["fuel", "rent", "any"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["category", "any", "matches", "not", "with"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.sampled_from([NAMES, DECISIVE, "purposes.yaml"]), VALUES)
def test_any_yaml_is_read_or_refused_with_lines(name: str, value: Any) -> None:
    check_refusal({name: yaml.safe_dump(value, allow_unicode=True)})


@settings(max_examples=40)
@given(st.text(alphabet="{}[]:,-&*!?|>'\"%@# \nafuel\x00\x85", max_size=60))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    check_refusal({NAMES: text, DECISIVE: text})


def check_refusal(files: dict[str, str]) -> None:
    try:
        parse_own_rules(files)
    except RuleError as error:
        for line in str(error).splitlines():
            assert line.startswith("and ") or line.split(":")[0] in files
            assert line.startswith("and ") or int(line.split(":")[1]) > 0


def test_too_much_is_refused_before_it_is_built(subtests: pytest.Subtests) -> None:
    many = "\n".join(f"  N{number}: [NAME {number} X]" for number in range(own_rules.MAX_PHRASES + 1))
    rule = "- {{category: insurance, any: [DEPOT], unless: [X{0}Y], matches: [DEPOT, A DEPOT], not: [B]}}\n"
    hostile = {
        "more than 20,000 phrases": {"names": f"fuel:\n{many}"},
        "more than 2,000,000 characters": {"names": "#" * (own_rules.MAX_CHARACTERS + 1)},
        "more than 100,000 values": {"names": f"fuel: [{'a,' * 100_001}]"},
        "nested too deeply": {"names": "[" * 500_000},
        "more than 200 rules": {"decisive": "".join(map(rule.format, range(201)))},
        "'DEPOT' occurs more than 10 times": {"decisive": "".join(map(rule.format, range(11)))},
        "'ACME' occurs more than 10 times": {"names": f"fuel:\n  A: [{'ACME,' * 11}]\n"},
        "begins with more than 7 other phrases": {
            "names": "fuel:\n" + "".join(f"  N{n}: [A{'B' * n}*]\n" for n in range(2, 12))
        },
    }
    for says, files in hostile.items():
        with subtests.test(says):
            assert any(says in line for line in load_refused(**files))


@pytest.mark.service  # its subject is time
def test_the_largest_rules_are_searched_within_the_time_limit_of_a_test() -> None:
    """Ten thousand names and rules with many phrases that most texts match, on texts that repeat their words."""
    chosen = random.Random(7)
    words = [f"{first}{second}{third}" for first in "ABCDE" for second in "AEIOU" for third in "LMNRS"]
    names = {" ".join(chosen.choices(words, k=3)) for _ in range(10_000)}
    listed = "".join(f"  N{number}: [{name}]\n" for number, name in enumerate(sorted(names)))
    rules = "".join(
        f"- {{category: insurance, any: [{', '.join(words[number::12])}], unless: [X{number}Y],"
        f" matches: [{words[number]}, {words[number]} A], not: [B]}}\n"
        for number in range(12)
    )
    own = parse_own_rules({NAMES: f"fuel:\n{listed}", DECISIVE: rules})
    rows = rows_described(*(" ".join(chosen.choices(words, k=60)) for _ in range(300)))
    assert set(categories(own, *rows)) == {"insurance"}
