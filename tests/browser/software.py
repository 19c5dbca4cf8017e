"""The lender's own software, which uses the TypeScript client: what the service answers."""

import json
import os
import subprocess
from typing import Any

from tests.browser.filled_console import FilledConsole
from tests.root import ROOT
from tests.tools import build_clients


def can_read_customer(console: FilledConsole, key: str) -> bool:
    """Return whether the software reads a customer with this key; if not, it must have been refused as unknown."""
    customer_id = console.ids["customer_id"]
    answer = ask_service(console, "customer", key, customerId=customer_id)
    assert answer == {"refused": 401} or answer["customerId"] == customer_id
    return "customerId" in answer


def ask_service(console: FilledConsole, question: str, key: str | None = None, **ids: str) -> Any:
    """Return the service's answer to a question of `lender.mjs`."""
    build_clients()
    service = {"TIDEMARK_BASE_URL": console.service.base_url, "TIDEMARK_KEY": key or console.key}
    command = ["node", ROOT / "tests" / "browser" / "lender.mjs", question]
    asked = subprocess.run(
        command, input=json.dumps(ids), env=os.environ | service, check=True, text=True, stdout=subprocess.PIPE
    )
    return json.loads(asked.stdout)
