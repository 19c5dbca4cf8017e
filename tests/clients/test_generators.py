"""Generators of others make clients from the OpenAPI document without a warning."""

import compileall
import json
import subprocess
from pathlib import Path

import pytest

from tests.api.core.operations import document
from tests.root import ROOT
from tests.tools import tool

GENERATORS = {
    "openapi-python-client": (
        *("build/generators/bin/openapi-python-client", "generate", "--fail-on-warning", "--meta", "none"),
        *("--config", "clients/openapi-python-client.yaml", "--path", "{document}", "--output-path", "{target}/python"),
    ),
    "openapi-typescript": (
        *("clients/typescript/node_modules/.bin/openapi-typescript", "{document}"),
        *("--output", "{target}/schema.d.ts"),
    ),
    "hey-api": (
        *("clients/typescript/node_modules/.bin/openapi-ts", "--no-log-file"),
        *("--input", "{document}", "--output", "{target}/hey-api"),
    ),
}
COMPILE = (
    "clients/typescript/node_modules/.bin/tsc --noEmit --strict --target es2022 --lib es2022,dom,dom.iterable"
    " --module esnext --moduleResolution bundler"
)
COMPLAINT = "warn", "error", "⚠", "skip"


@pytest.mark.service  # installs and runs three generators, and compiles what they made
@pytest.mark.timeout(600)
def test_generators_have_nothing_to_complain_about(tmp_path: Path, subtests: pytest.Subtests) -> None:
    tool("npm")
    subprocess.run(["make", "build/generators"], cwd=ROOT, check=True)
    served = tmp_path / "openapi.json"
    served.write_text(json.dumps(document()))
    for name, command in GENERATORS.items():
        with subtests.test(name):
            filled = [each.format(document=served, target=tmp_path) for each in command]
            ended = subprocess.run(filled, cwd=ROOT, check=True, capture_output=True, text=True)
            output = ended.stdout + ended.stderr
            assert [word for word in COMPLAINT if word in output.lower()] == [], output
    made = [tmp_path / name for name in ("schema.d.ts", "hey-api/index.ts", "hey-api/client.gen.ts")]
    with subtests.test("what was made compiles"):
        subprocess.run([*COMPILE.split(), *made], cwd=ROOT, check=True)
        assert compileall.compile_dir(tmp_path / "python", quiet=1)
