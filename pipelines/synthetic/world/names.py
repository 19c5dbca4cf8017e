"""Made-up people, places and firms (`names.yaml`). Only well-known merchants in other data files are real.

Two thirds of local firms say in their name what they do. The others are families, places and invented words, as on
real statements, where a name alone often says nothing.
"""

from collections.abc import Callable
from functools import cache
from random import Random

from pipelines.synthetic.data_files import Record, load
from pipelines.synthetic.world.brands import is_held_out
from pipelines.synthetic.world.model import Part, Party


class Names(Record, frozen=True):
    """The content of `names.yaml`, which explains the fields."""

    businesses_per_state: dict[str, int]
    suburbs: dict[str, tuple[str, ...]]
    streets: tuple[str, ...]
    given: tuple[str, ...]
    family: tuple[str, ...]
    first_words: tuple[str, ...]
    syllables: tuple[str, ...]
    client_kinds: tuple[str, ...]
    plain_endings: tuple[str, ...]
    trade_endings: dict[str, tuple[str, ...]]


@cache
def names() -> Names:
    return load("names.yaml", Names)


@cache
def states_by_weight() -> tuple[str, ...]:
    """Return the states, each as often as it occurs among a hundred businesses."""
    return tuple(state for state, businesses in names().businesses_per_state.items() for _ in range(businesses))


def person(rng: Random) -> str:
    return f"{rng.choice(names().given)} {rng.choice(names().family)}"


def payee(rng: Random, code: str = "") -> Party:
    """Return a person, in one of the forms in which banks print names."""
    name = person(rng)
    given, _, family = name.partition(" ")
    form = rng.choice(
        (
            name,
            name,
            name,
            f"{given[0]} {family}",
            name.upper(),
            f"{family} {given}",
            f"{given[0]} & {rng.choice(names().given)[0]} {family}",
        )
    )
    return Party(form, code=code, brand=name, person=True)


def trading_name(rng: Random, owner: str, endings: tuple[str, ...]) -> str:
    """Return a firm's name as small firms choose it: with the owner's family name, or something local."""
    family = owner.rsplit(maxsplit=1)[-1]
    first = rng.choice((rng.choice(names().first_words), rng.choice(names().first_words), family))
    return f"{first} {rng.choice(endings)}"


def client_firm(rng: Random, part: Part | None = None) -> str:
    """Return a firm that buys from small businesses."""
    return make_not_held_out(part, lambda: f"{_plain_first_word(rng)} {rng.choice(names().client_kinds)}")


def firm_of_kind(rng: Random, kind: str, part: Part | None = None) -> str:
    """Return a firm whose name ends in what it does, such as ` Wholesale`."""
    return make_not_held_out(part, lambda: f"{_plain_first_word(rng)}{kind}")


def firm_in_suburb(rng: Random, name: str, part: Part | None = None) -> str:
    """Fill `{suburb} Fruit Barn` in with a suburb of any state."""
    suburbs = names().suburbs
    states = tuple(suburbs)
    return make_not_held_out(part, lambda: name.replace("{suburb}", rng.choice(suburbs[rng.choice(states)]).title()))


def _plain_first_word(rng: Random) -> str:
    return rng.choice((rng.choice(names().first_words), rng.choice(names().family)))


def local_firm(rng: Random, kind: str, part: Part | None = None) -> str:
    """Return a firm that small businesses buy from. `kind` is a key of `trade_endings`."""
    return make_not_held_out(part, lambda: _local_firm(rng, kind))


def related_names(rng: Random, owner: str, firm: str, part: Part | None = None) -> tuple[str, ...]:
    """Return the companies and trusts beside a business. Most owners have one or two."""
    family, first = owner.rsplit(maxsplit=1)[-1], firm.split(maxsplit=1)[0]
    usual = (
        f"{family} Family Trust",
        f"{first} Holdings",
        f"{family} Property Holdings",
        f"{family} Superannuation Fund",
    )
    chosen = rng.sample(usual, rng.choice((0, 1, 1, 2)))
    return tuple(name for name in chosen if part != "train" or not is_held_out(name))


def _local_firm(rng: Random, kind: str) -> str:
    endings = names().trade_endings[kind] if rng.random() < 2 / 3 else names().plain_endings
    return f"{_first_word(rng)} {rng.choice(endings)}"


def _first_word(rng: Random) -> str:
    how = rng.random()
    if how < 0.35:
        return rng.choice(names().first_words)
    if how < 0.65:
        return rng.choice(names().family)
    if how < 0.75:
        return f"{rng.choice(names().streets)} Street"
    if how < 0.85:
        return f"{rng.choice(names().given)}'s"
    return "".join(rng.sample(names().syllables, rng.choice((2, 3)))).capitalize()


def make_not_held_out(part: Part | None, make: Callable[[], str]) -> str:
    """Make a name. For training, make it again until it is not held out."""
    while is_held_out(name := make()) and part == "train":
        pass
    return name
