"""Keys are replaced during a scenario by commands, one of them killed at its n-th write: every signature
verifies, and every process that starts afterwards can open everything.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from storage.core.models import subscriptions
from storage.core.store import Store
from storage.webhooks.subscriptions import open_secret
from tests.faults.commands import run
from tests.faults.faults import KillAtWrite
from tests.faults.lender import Lender
from tests.faults.scenarios import submits
from tests.faults.survival import survives
from tests.faults.world import World
from tests.waiting import again_and_again

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROTATE, RESEAL = ("secrets", "rotate"), ("secrets", "rotate", "--reseal")
WRITES = range(1, 19)  # of a rotation of the master key
SOME_WRITES = range(1, 14, 2)  # some writes of resealing
AT_LEAST = 8  # writes of each of the two


@pytest.mark.parametrize("nth", WRITES)
def test_a_rotation_of_the_master_key_is_killed(world: World, nth: int) -> None:
    injected = survives_while_keys_change(world, ROTATE, nth)
    assert not (injected and nth == WRITES[-1]), "a rotation has more writes than are tried here"


@pytest.mark.parametrize("nth", SOME_WRITES)
def test_resealing_is_killed(world: World, nth: int) -> None:
    survives_while_keys_change(world, RESEAL, nth)


def survives_while_keys_change(world: World, command: Sequence[str], nth: int) -> bool:
    def gets_new_keys_meanwhile(lender: Lender) -> None:
        with again_and_again(lambda: change(world, command)):
            submits(lender)
        while run(world, *command) is None:  # killed
            pass

    injected = survives(world, gets_new_keys_meanwhile, KillAtWrite(world, f"api.cli {' '.join(command)}", nth), nth)
    assert injected or nth > AT_LEAST
    return injected


def change(world: World, command: Sequence[str]) -> None:
    run(world, *command)
    assert_everything_opens(world)


def assert_everything_opens(world: World) -> None:
    """Assert that a process that starts now can open all secrets."""
    store = Store.open(world.settings)
    with store.db.reading() as r:
        for subscription_id, sealed in r.execute(select(subscriptions.c.subscription_id, subscriptions.c.secret)):
            assert open_secret(store.vault, subscription_id, sealed)
    store.close()
