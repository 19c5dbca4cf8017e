"""Mutants are small changes of a line that occurs once in its function."""

from tests.mutants import Mutant, find_mutants

SOURCE = '''
LIMIT = 10

def fee(amount: int = 3) -> int:
    """Not "3"."""
    if amount > LIMIT:
        return 100
    again = amount
    again = amount
    return amount * 2

def is_free(amount: int, known: bool) -> bool:
    return not known or amount in (0,)
'''


def test_mutants_are_valid_programs_with_one_changed_line() -> None:
    mutants = list(find_mutants("fees.py", SOURCE))
    assert [(mutant.function, mutant.new.strip()) for mutant in mutants] == [
        ("fee", "if not (amount > LIMIT):"),
        ("fee", "if amount >= LIMIT:"),
        ("fee", "return None"),
        ("fee", "return 101"),
        ("fee", "return None"),
        ("fee", "return amount / 2"),
        ("fee", "return amount * 3"),
        ("is_free", "return None"),
        ("is_free", "return  known or amount in (0,)"),
        ("is_free", "return not known and amount in (0,)"),
        ("is_free", "return not known or amount not in (0,)"),
        ("is_free", "return not known or amount in (1,)"),
    ]
    for mutant in mutants:
        compile(mutant.apply(SOURCE), "fees.py", "exec")
        assert mutant.apply(SOURCE).replace(mutant.new, mutant.old) == SOURCE


def test_a_mutant_is_found_in_another_commit_by_its_line_and_function() -> None:
    mutant = Mutant("fees.py", "fee", "    return amount * 2", "    return None")
    assert mutant.line_in(SOURCE) == 10
    assert mutant.line_in("\n" + SOURCE) == 11
    assert mutant.line_in(SOURCE.replace("def fee", "def cost")) == 0
    assert mutant.line_in(SOURCE.replace("again = amount\n", "return amount * 2\n")) == 0
