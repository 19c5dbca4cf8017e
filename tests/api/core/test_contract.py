"""Schemathesis against the real server: examples, enumerated and generated requests, valid and invalid, and chains of
requests along the links of the OpenAPI document.

All of its checks are on, and a warning is a failure.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from storage.core.settings import Quota, Settings
from storage.core.store import Store
from tests.api.conftest import Client, belongings, new_client, serving
from tests.api.core.operations import NO_IDS, documented
from tests.api.places import LISTS_OF, places
from tests.api.worker import working

HOOKS = Path(__file__).with_name("contract_hooks.py")
SETS = 6  # of existing resources; none is ever deleted
SHARES = 6  # of the operations, each with a short run of its own
OFTEN = 0.9  # share of generated requests with existing ids; with one example per operation, all have them
# A valid request may meet a bad state: an unknown id in the body (400), nothing enriched (422), a refresh that runs.
# The key has every scope, so 403 is what only a signed-in user may do.
MEETING_A_STATE = ["2xx", "400", "403", "404", "409", "422"]


CONFIG = """
continue-on-failure = true
request-timeout = 60
suppress-health-check = ["all"]  # they complain about slow machines and large examples, not about the service
hooks = {hooks}
headers = {{ x-api-key = {key} }}
generation = {{ allow-x00 = false }}  # NUL is refused in every text, in ignored fields too
warnings = {{ fail-on = true }}
checks.positive_data_acceptance = {{ expected-statuses = {expected} }}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A Tidemark with limits that a long run does not reach."""
    settings = Settings(
        home=tmp_path_factory.mktemp("home"),
        max_json_bytes=200_000,
        max_transactions=30,
        rate_limit=Quota(1_000_000, 60),
        wrong_key_limit=Quota(1_000_000, 60),
    )
    opened = Store.open(settings)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(store: Store) -> Iterator[Client]:
    """A client of a running service."""
    with serving(store) as url:
        yield new_client(store, url)


@pytest.fixture(scope="module")
def own(store: Store, client: Client) -> Iterator[Mapping[str, list[str]]]:
    """Ids of the client's resources, by their name in a path, and for lists by their name in a body."""
    sets = [belongings(store, client) for _ in range(SETS)]
    ids = {name: [each[name] for each in sets] for name in sets[0]} | {
        name: [one] * SETS for name, one in NO_IDS.items()
    }
    for customer_id in ids["customerId"]:  # a report has the finding that may be resolved
        client.post(f"/v1/customer/{customer_id}/reports/refresh")
    with working(store):
        yield ids | {name: ids[kind] for name, kind in LISTS_OF.items()}


def run(
    client: Client, own: Mapping[str, list[str]], folder: Path, seed: int, examples: int, only: Sequence[str] = ()
) -> None:
    """Run all checks of Schemathesis against this service; fail with its findings.

    Args:
        only: further options, to run only a part.
    """
    written = folder / "schemathesis.toml"
    written.write_text(config(client, own, OFTEN if examples > 1 else 1.0))
    schemathesis = Path(sys.executable).with_name("schemathesis")
    options = ["--checks", "all", "--seed", str(seed), "--max-examples", str(examples), "--no-color", *only]
    found = subprocess.run(
        [schemathesis, "--config-file", written, "run", f"{client.base_url}/openapi.json", *options],
        cwd=folder,
        env=os.environ | {"TIDEMARK_TEST_OWN_IDS": json.dumps(own), "TIDEMARK_TEST_API_KEY": client.key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def config(client: Client, own: Mapping[str, list[str]], often: float) -> str:
    """Return the configuration. Texts, numbers and lists are written as JSON, which is valid TOML for them."""
    made = CONFIG.format(hooks=json.dumps(str(HOOKS)), key=json.dumps(client.key), expected=json.dumps(MEETING_A_STATE))
    for name, ids in own.items():
        made += f"[dictionaries.{name}]\nvalues = {json.dumps(ids)}\n"
    made += "[parameters]\n"
    for place in {f"{place.within}.{place.kind}": place.kind for place in places() if place.within != "body"}.items():
        made += '"{}" = {{ dictionary = "{}", probability = {} }}\n'.format(*place, often)
    for name in LISTS_OF:
        made += f'"body.{name}[*]" = {{ dictionary = "{name}", probability = 1.0 }}\n'
    return made


@pytest.mark.service
@pytest.mark.parametrize("share", range(SHARES))
def test_a_short_run_over_a_share_of_the_operations_finds_nothing(
    client: Client, own: Mapping[str, list[str]], tmp_path: Path, share: int
) -> None:
    mine = [operation.documented["operationId"] for operation in documented()[share::SHARES]]
    only = [f"--include-operation-id={name}" for name in mine]
    run(client, own, tmp_path, 1, 1, ["--phases=examples,coverage,fuzzing", *only])


@pytest.mark.service
def test_a_short_run_along_the_links_finds_nothing(
    client: Client, own: Mapping[str, list[str]], tmp_path: Path
) -> None:
    run(client, own, tmp_path, 1, 1, ["--phases=stateful"])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [11, 12, 13, 14, 15])
def test_a_long_run_finds_nothing(client: Client, own: Mapping[str, list[str]], tmp_path: Path, seed: int) -> None:
    run(client, own, tmp_path, seed, examples=50)
