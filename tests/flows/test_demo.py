"""`tidemark demo --keep-running`: it fits a terminal, and what it prints at the end works."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import requests

from api.service.commands.lender import NAME, REQUESTS, Lender

pytestmark = pytest.mark.timeout(600)

WIDTH = 80
TO_COPY = re.compile(r"tm_sandbox_|/demo\b")  # lines that nothing may break, however long
LAST = "The service keeps running"
CUT_DATE = re.compile(r"\b20\d\d-(\d\d-)?\W*$")


@contextmanager
def demo(home: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run the demo until its last line; yield the process and the lines."""
    command = [sys.executable, "-m", "api.cli", "demo", "--keep-running"]
    environment = os.environ | {"TIDEMARK_HOME": str(home), "COLUMNS": str(WIDTH)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if line.startswith(LAST):
                    break
            yield process, lines
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def after(lines: list[str], heading: str, count: int = 1) -> str:
    at = lines.index(heading)
    return "\n".join(lines[at + 1 : at + 1 + count])


def test_the_demo_fits_and_leaves_what_it_promises(tmp_path: Path, subtests: pytest.Subtests) -> None:
    with demo(tmp_path) as (process, lines):
        assert lines, "it printed nothing"
        assert lines[-1].startswith(LAST), "\n".join(lines)
        with subtests.test("lines"):
            assert [line for line in lines if len(line) > WIDTH and not TO_COPY.search(line)] == []
            assert [line for line in lines if CUT_DATE.search(line)] == []
        with subtests.test("command"):
            command = after(lines, "A first request:", 2)
            answer = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
            assert len(msgspec.json.decode(answer)["data"]["customers"]) == 3
        with subtests.test("link"):
            (link,) = (line for line in lines if "/sign-in/link?token=" in line)
            assert link.startswith("http"), "it is alone on its line"
            base_url = link.partition("/sign-in")[0]
            with requests.Session() as browser:
                browser.trust_env = False
                assert browser.get(link, timeout=20).status_code == 200
                token = parse_qs(urlsplit(link).query)["token"][0]
                form = {"data": {"token": token}, "headers": {"origin": base_url}, "allow_redirects": False}
                signed_in = browser.post(f"{base_url}/sign-in/link", timeout=20, **form)
                assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
        with subtests.test("customers"):
            lender = Lender(base_url, after(lines, f"API key of {NAME}:").strip())
            for customer in lender.get("/customers/summaries", page=1, count=100)["customers"]:
                assert customer["reportStatus"] == "ready", customer["name"]
                for slug in REQUESTS:
                    outcome = lender.evaluate(customer["customerId"], slug)["verdict"]["outcome"]
                    assert outcome != "indeterminate", (customer["name"], slug)
    assert process.returncode == 0
