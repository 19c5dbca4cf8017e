"""Every command and query in the README and the tutorials, run from top to bottom in a fresh folder.

Each page is one Bash script that stops at the first command that fails. A block of commands is skipped, or runs beside
the rest, only where the page says so in a comment before it, which readers don't see:

    <!-- test: not run, because … -->
    <!-- test: runs beside the rest, answers on 8000 -->    in a terminal of its own; the next block waits for its port

Ports are replaced by free ones, and `duckdb` is a stand-in made of the package of that name.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.service.commands.addresses import choose_port
from tests.root import ROOT

TUTORIALS = sorted(path.name for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "README.md")
PAGES = ("README.md", *(f"docs/tutorials/{name}" for name in TUTORIALS))
BLOCK = re.compile(r"(?:<!-- test: ([^>]+) -->\n)?```sh\n(.*?)```", re.DOTALL)
NOT_RUN = "not run, because "
BESIDE = re.compile(r"runs beside the rest, answers on (\d+)")
MAX_NOT_RUN = 2  # on a page: installing, and commands that have tests of their own
PORT = re.compile(r"(?<=:|\s)(8000|3000|8443|9000)\b")
EXAMPLE = re.compile(r"```\n((?:\$ tidemark [^\n]*\n)+)(.*?)```", re.DOTALL)  # commands, and what the last one prints
COMPUTED = re.compile(r"Computed .*")
WITHIN_S = 600
DUCKDB = """#!{python}
import sys, duckdb
found = duckdb.sql(sys.argv[2]) if ";" not in sys.argv[2] else duckdb.execute(sys.argv[2])
rows = found.fetchall()
print(*(column[0] for column in found.description), sep=" | ")
for row in rows:
    print(*row, sep=" | ")
sys.exit(not rows)  # a query of the documentation finds something
"""


@dataclass(frozen=True)
class Block:
    """Commands of a page, and how they are run."""

    mark: str
    commands: str


def blocks_of(page: str) -> list[Block]:
    return [Block(mark, commands) for mark, commands in BLOCK.findall((ROOT / page).read_text())]


@pytest.mark.parametrize("page", PAGES)
def test_marks_are_known_and_few(page: str) -> None:
    blocks = blocks_of(page)
    marks = [block.mark for block in blocks if block.mark]
    assert [mark for mark in marks if not mark.startswith(NOT_RUN) and not BESIDE.fullmatch(mark)] == []
    assert sum(mark.startswith(NOT_RUN) for mark in marks) <= MAX_NOT_RUN
    assert len(marks) < len(blocks)


@pytest.mark.timeout(WITHIN_S + 30)
@pytest.mark.parametrize("page", PAGES)
def test_commands_of_page_work_in_a_fresh_folder(page: str, tmp_path: Path) -> None:
    for tool in ("curl", "jq"):
        if shutil.which(tool) is None and not os.environ.get("CI"):
            pytest.skip(f"install {tool} to run the commands of the documentation")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    tools = tmp_path / ".tools"
    tools.mkdir()
    (tools / "duckdb").write_text(DUCKDB.format(python=sys.executable))
    (tools / "duckdb").chmod(0o755)
    ports = {port: str(choose_port(0)) for port in ("8000", "3000", "8443", "9000")}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    environment = clean | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "TIDEMARK_BASE_URL": f"http://127.0.0.1:{ports['8000']}",  # where `tidemark synthetic seed` finds the service
    }
    with (tmp_path / "output").open("w") as output:
        ended = subprocess.run(
            ["bash", "-c", script_of(blocks_of(page), ports)],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=WITHIN_S,
            check=False,
        )
    assert ended.returncode == 0, (tmp_path / "output").read_text()[-5_000:]


def test_the_example_of_analyse_is_what_it_prints(tmp_path: Path) -> None:
    """Changes of enrichment or the scorecard change it: paste what the command prints, 96 characters wide."""
    example = EXAMPLE.search((ROOT / "docs" / "how-to" / "analyse.md").read_text())
    assert example is not None
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    printed = ""
    for command in example[1].replace("$ tidemark", str(ROOT / ".venv" / "bin" / "tidemark")).splitlines():
        printed = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=clean | {"COLUMNS": "96"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
        ).stdout
    assert lines_of(printed) == lines_of(example[2])


def lines_of(output: str) -> list[str]:
    """Return the lines without the time of the run and without spaces at their ends."""
    return [COMPUTED.sub("", line).rstrip() for line in output.rstrip().splitlines()]


def script_of(blocks: list[Block], ports: dict[str, str]) -> str:
    """Return the page as one script, which ends what it started beside itself."""
    lines = ["set -eo pipefail", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
    for block in blocks:
        commands = PORT.sub(lambda found: ports[found[1]], block.commands)
        commands = commands.replace("tidemark up", f"tidemark up --port {ports['8000']} --dagster-port {ports['3000']}")
        if block.mark.startswith(NOT_RUN):
            continue
        lines.append(f"echo {shlex.quote('$ ' + commands)}")
        is_beside = BESIDE.fullmatch(block.mark)
        lines.append(beside(commands, ports[is_beside[1]]) if is_beside else commands)
    return "\n".join(lines)


def beside(commands: str, port: str) -> str:
    """Return commands that run in the background, and a wait until the port answers and the service is ready."""
    answers = f"(: > /dev/tcp/127.0.0.1/{port}) 2> /dev/null"
    if "tidemark up" in commands:
        answers = f"curl -sf 127.0.0.1:{port}/health/ready -o /dev/null"
    return (
        f"(trap - EXIT; {commands.strip()}\n) &\nfor _ in $(seq 900); do {answers} && break; sleep 0.1; done\n{answers}"
    )
