"""Documents with a random defect, as a typing error or an attacker could cause."""

import random
from copy import deepcopy
from typing import Any

Json = Any

OTHERS: tuple[Json, ...] = (None, 5, 0.5, "five", "0.5", True, [], {}, {"metric": "inflow_30d"}, ["1", "2"])


def mutilate(document: Json, chance: random.Random) -> None:
    """Remove, add or replace a part at a random place."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(at[key], (dict, list)) and chance.random() < 0.85:
            at = at[key]
            continue
        match chance.choice(("remove", "replace", "replace", "add")):
            case "remove":
                del at[key]
            case "add" if isinstance(at, dict):
                at["extra"] = 1
            case _:
                at[key] = deepcopy(chance.choice(OTHERS))
        return
