"""The lender's own software, which uses the TypeScript client: what the service answers."""

import json
import os
import subprocess
from typing import Any

from tests.browser.house import House
from tests.root import ROOT
from tests.tools import build_clients


def can_read_customer(house: House, key: str) -> bool:
    """Return whether the software reads a customer with this key; if not, it must have been refused as unknown."""
    customer_id = house.ids["customer_id"]
    answer = ask_service(house, "customer", key, customerId=customer_id)
    assert answer == {"refused": 401} or answer["customerId"] == customer_id
    return "customerId" in answer


def ask_service(house: House, question: str, key: str | None = None, **ids: str) -> Any:
    """Return the service's answer to a question of `lender.mjs`."""
    build_clients()
    service = {"TIDEMARK_BASE_URL": house.service.base_url, "TIDEMARK_KEY": key or house.key}
    command = ["node", ROOT / "tests" / "browser" / "lender.mjs", question]
    asked = subprocess.run(
        command, input=json.dumps(ids), env=os.environ | service, check=True, text=True, stdout=subprocess.PIPE
    )
    return json.loads(asked.stdout)
