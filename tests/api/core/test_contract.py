"""Schemathesis against the real server: examples, enumerated and generated requests, valid and invalid, and chains of
requests along the links of the OpenAPI document.

All of its checks are on, and a warning is a failure. The client's key calls all operations except those that need a
person: a signed-in user calls them wherever the key is right.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from storage.access import keys, users
from storage.access.keys import Principal
from storage.access.roles import GRANTS, Role
from storage.core.settings import Quota, Settings
from storage.core.store import Store
from tests.api.conftest import Client, belongings, new_client, serving
from tests.api.core.operations import NO_IDS, list_operations
from tests.api.places import ALSO_CALLED, LISTS_OF, Place, places
from tests.api.worker import working

HOOKS = Path(__file__).with_name("contract_hooks.py")
SETS = 6  # of existing resources; none is ever deleted
SHARES = 6  # of the operations, each with a short run of its own
OFTEN = 0.9  # share of generated requests with existing ids; with one example per operation, all have them
# A valid request may meet a bad state: an unknown id in the body (400), nothing enriched (422), a refresh that runs
# (409), an attachment that another request deleted (410).
MEETING_A_STATE = ["2xx", "400", "404", "409", "410", "422"]
DECIDES = {"approveRequest", "declineRequest"}  # another person than the requester, which is the key
# These answer an invalid document with its faults (200); a check in the hooks requires that there are some.
LISTING_FAULTS = ["checkDecisionPolicy", "checkRuleset"]

CONFIG = """
continue-on-failure = true
request-timeout = 60
suppress-health-check = ["all"]  # they complain about slow machines and large examples, not about the service
hooks = {hooks}
headers = {{ x-api-key = {key} }}
generation = {{ allow-x00 = false }}  # NUL is refused in every text, in ignored fields too
warnings = {{ fail-on = true }}
checks.positive_data_acceptance = {{ expected-statuses = {expected} }}
[[operations]]
include-operation-id = {listing_faults}
checks.negative_data_rejection = {{ expected-statuses = ["2xx", "4xx"] }}
[[operations]]
include-operation-id = "getJobStatus"
checks.max_response_time = 40  # `wait` lasts up to 30 seconds, if nothing ends the job
"""


@dataclass
class Caller(Client):
    """A client, and the id of its key, which no request may revoke."""

    key_id: str


@dataclass(frozen=True)
class WithPerson:
    """The application, in which a user calls what needs a person, wherever this key is sent."""

    app: ASGIApp
    key: str
    user: Principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._calls(scope):
            scope["state"]["principal"] = self.user
        await self.app(scope, receive, send)

    def _calls(self, scope: Scope) -> bool:
        return Headers(scope=scope).getlist("x-api-key") == [self.key] and needs_person(scope["method"], scope["path"])


def needs_person(method: str, path: str) -> bool:
    return any(
        each.method == method and re.fullmatch(re.sub("{.+?}", "[^/]*", each.path), path)
        for each in list_operations()
        if each.is_for_users or each.documented["operationId"] in DECIDES
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A Tidemark for one run, because lists get long, with limits that a run does not reach."""
    settings = Settings(
        home=tmp_path / "home",
        max_json_bytes=200_000,
        max_transactions=30,
        rate_limit=Quota(1_000_000, 60),
        wrong_key_limit=Quota(1_000_000, 60),
    )
    opened = Store.open(settings)
    yield opened
    opened.close()


@pytest.fixture
def client(store: Store) -> Iterator[Caller]:
    """A client of a running service, with an admin."""
    made = new_client(store, "")
    with store.db.writing() as w:
        [key] = keys.find_keys(w, made.client_id)
        admin = users.create(w, made.client_id, "ada@lender.example", "Ada Lovelace", Role.ADMIN, key.created_at)
    user = Principal(made.client_id, admin.user_id, GRANTS[Role.ADMIN], decision_policies=True, is_user=True)
    with serving(store, lambda app: app.add_middleware(WithPerson, key=made.key, user=user)) as url:
        yield Caller(url, made.client_id, made.key, str(key.key_id))


@pytest.fixture
def own(store: Store, client: Caller) -> Iterator[Mapping[str, list[str]]]:
    """Ids of the client's resources, by their name in a path, and by other names in a query or a body."""
    sets = [belongings(store, client) for _ in range(SETS)]
    ids = {name: [each[name] for each in sets] for name in sets[0]} | {
        name: [one] * SETS for name, one in NO_IDS.items()
    }
    for customer_id in ids["customerId"]:  # a report has the finding that may be resolved
        client.post(f"/v1/customer/{customer_id}/reports/refresh")
    with working(store):
        yield ids | {name: ids[kind] for name, kind in (LISTS_OF | ALSO_CALLED).items()}


def run(
    client: Caller, own: Mapping[str, list[str]], folder: Path, seed: int, examples: int, only: Sequence[str] = ()
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
        env=os.environ
        | {
            "TIDEMARK_TEST_OWN_IDS": json.dumps(own),
            "TIDEMARK_TEST_API_KEY": client.key,
            "TIDEMARK_TEST_API_KEY_ID": client.key_id,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def config(client: Caller, own: Mapping[str, list[str]], often: float) -> str:
    """Return the configuration. Texts, numbers and lists are written as JSON, which is valid TOML for them."""
    made = CONFIG.format(
        hooks=json.dumps(str(HOOKS)),
        key=json.dumps(client.key),
        expected=json.dumps(MEETING_A_STATE),
        listing_faults=json.dumps(LISTING_FAULTS),
    )
    for name, ids in own.items():
        made += f"[dictionaries.{name}]\nvalues = {json.dumps(ids)}\n"
    made += "[parameters]\n"
    kinds = {name_in_schemathesis(place): place.kind for place in places()} | {f"path.{name}": name for name in NO_IDS}
    for name, kind in kinds.items():
        probability = 1.0 if "[" in name else often  # of a list's ids one unknown would be enough for a refusal
        made += f'"{name}" = {{ dictionary = "{kind}", probability = {probability} }}\n'
    return made


def name_in_schemathesis(place: Place) -> str:
    """Return a place as `query.customerId` or `body.outcomes[*].customerId`."""
    return f"{place.within}.{'.'.join(map(str, place.steps))}".replace(".0", "[*]")


@pytest.mark.service
@pytest.mark.parametrize("share", range(SHARES))
def test_a_short_run_over_a_share_of_the_operations_finds_nothing(
    client: Caller, own: Mapping[str, list[str]], tmp_path: Path, share: int
) -> None:
    mine = [operation.documented["operationId"] for operation in list_operations()[share::SHARES]]
    only = [f"--include-operation-id={name}" for name in mine]
    run(client, own, tmp_path, 1, 1, ["--phases=examples,coverage,fuzzing", *only])


@pytest.mark.service
def test_a_short_run_along_the_links_finds_nothing(
    client: Caller, own: Mapping[str, list[str]], tmp_path: Path
) -> None:
    run(client, own, tmp_path, 1, 1, ["--phases=stateful"])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [11, 12])
def test_a_long_run_finds_nothing(client: Caller, own: Mapping[str, list[str]], tmp_path: Path, seed: int) -> None:
    """Only what the seed changes: the short runs have all examples and enumerated requests.

    A run takes four minutes on an idle machine. Two are our judgement: 100 generated requests for each operation.
    """
    run(client, own, tmp_path, seed, 50, ["--phases=fuzzing,stateful"])
