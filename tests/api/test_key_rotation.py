"""The operator rotates a key while two API processes serve one home."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from storage.core.settings import Settings
from tests.api.conftest import HTTP, answering
from tests.conftest import open_store, prepare_home


def run(*arguments: str, fails: bool = False) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert (result.exit_code != 0) is fails, result.output
    return None if fails else json.loads(result.stdout)


def test_a_rotated_key_ends_in_every_process_when_its_overlap_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(prepare_home(tmp_path)))
    client_id = run("clients", "create", "Harbour Lending")["clientId"]
    first = run("keys", "create", "--client", client_id, "--scope", "customer:reports")
    stores = [open_store(Settings(home=tmp_path)) for _ in range(2)]
    with answering(stores[0]) as one, answering(stores[1]) as other:

        def statuses(key: str) -> list[int]:
            answers = [HTTP.get(f"{url}/v1/jobs", headers={"x-api-key": key}, timeout=10) for url in (one, other)]
            return [answer.status_code for answer in answers]

        assert statuses(first["key"]) == [200, 200]
        second = run("keys", "rotate", first["keyId"])
        assert second["scopes"] == first["scopes"]
        assert statuses(first["key"]) == statuses(second["key"]) == [200, 200]

        third = run("keys", "rotate", second["keyId"], "--overlap", "0s")
        assert statuses(second["key"]) == [401, 401]
        assert statuses(first["key"]) == statuses(third["key"]) == [200, 200]

    for store in stores:
        store.close()
    run("keys", "rotate", first["keyId"], fails=True)  # its successor is the one to rotate
    listed = run("keys", "list", "--client", client_id)
    assert [key["rotatedTo"] for key in listed] == [second["keyId"], third["keyId"], None]
    assert [key["expiresAt"] is None for key in listed] == [False, False, True]
