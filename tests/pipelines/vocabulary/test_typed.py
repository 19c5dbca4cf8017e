"""Threads that convert to a type for the first time take turns: otherwise msgspec ends the process."""

import subprocess
import sys

# Each round defines new types, and two threads use them for the first time. Without turns, one of the rounds crashes.
ROUNDS = """
import sys
from threading import Barrier, Thread
from types import ModuleType

from pipelines.vocabulary.typed import convert

TYPES = '''
from typing import Literal
import msgspec
class Inner(msgspec.Struct):
    kind: Literal["x", "y"]
    texts: tuple[str, ...] = ()
class Outer(msgspec.Struct):
    one: Inner
    many: dict[str, Inner]
'''
sys.setswitchinterval(1e-6)
value = {"k": {"one": {"kind": "x"}, "many": {"z": {"kind": "y"}}}}
for n in range(600):
    module = sys.modules[f"types_{n}"] = ModuleType(f"types_{n}")
    exec(TYPES, module.__dict__)
    start = Barrier(2)
    threads = [Thread(target=lambda: (start.wait(), convert(value, dict[str, module.Outer]))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del sys.modules[f"types_{n}"]
"""


def test_two_threads_may_use_a_type_for_the_first_time() -> None:
    assert subprocess.run([sys.executable, "-c", ROUNDS], check=False).returncode == 0
