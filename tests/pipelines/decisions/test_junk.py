"""Any value at any place of a document: the check answers, and accepted documents can be evaluated."""

import copy
import random
from collections.abc import Iterator

import pytest

from pipelines.decisions import check
from pipelines.decisions.plan import plan_policy
from tests.pipelines.decisions import drawn
from tests.pipelines.decisions.comparing import Case, rows
from tests.pipelines.decisions.interpreter import Json

JUNK: tuple[Json, ...] = ([], {}, None, 5, True, "x", "customer_number", [[]], {"a": []}, float("inf"), -0.0, "\ud800")
Place = tuple[str | int, ...]


def places(document: Json, at: Place = ()) -> Iterator[Place]:
    yield at
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, each in inner:
        if isinstance(each, (dict, list)):
            yield from places(each, (*at, key))
        else:
            yield (*at, key)


def with_junk(document: Json, at: Place, junk: Json) -> Json:
    changed = holder = copy.deepcopy(document)
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = junk
    return changed


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_junk_anywhere_is_refused_or_harmless(seed: int) -> None:
    chance = random.Random(seed)
    document = drawn.document(chance)
    everywhere = [(at, junk) for at in places(document) if at for junk in JUNK]
    for at, junk in chance.sample(everywhere, 200):
        changed = with_junk(document, at, junk)
        checked = check.check_document(changed)
        if checked.policy is None:
            assert checked.faults
        else:
            case = Case(changed, [drawn.customer(chance)], drawn.inputs(chance))
            assert rows(plan_policy(checked.policy), case).height == 1
