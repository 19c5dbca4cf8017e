"""The cache of a bucket's files is bounded, and a damaged copy is never used."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from storage.core.file_cache import ABANDONED_S, IN_USE_S, SHARE_BETWEEN_TRIMS, FileCache

KIB = 2**10
CONTENT = bytes(8 * KIB)
FILLING = """
import hashlib, sys
from pathlib import Path
from storage.core import file_cache
file_cache.IN_USE_S = -1
cache = file_cache.FileCache(Path(sys.argv[1]), int(sys.argv[2]))
content = bytes(8 * 2**10)
for nth in range(200):
    path = f"{sys.argv[3]}/{nth}"
    assert cache.fill(path, [content], hashlib.sha256(content).digest())
    for earlier in range(0, nth, 37):
        held = cache.holds(f"{sys.argv[3]}/{earlier}", hashlib.sha256(content).digest())
"""


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def fill(cache: FileCache, path: str, content: bytes = CONTENT) -> None:
    assert cache.fill(path, [content], digest(content))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_copies_are_held_until_they_are_dropped(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 2**20)
    assert not cache.holds("landing/a", digest(CONTENT))
    fill(cache, "landing/a")
    assert cache.holds("landing/a", digest(CONTENT))
    assert cache.path_of("landing/a").read_bytes() == CONTENT
    cache.drop("landing/a")
    assert not cache.touch("landing/a")


def test_a_wrong_content_is_not_kept(tmp_path: Path) -> None:
    assert not FileCache(tmp_path, 2**20).fill("a", [b"wro", b"ng"], digest(b"right"))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_copy_is_removed(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 2**20)
    fill(cache, "a")
    cache.path_of("a").write_bytes(b"rot")
    assert not cache.holds("a", digest(CONTENT))
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_copies_are_removed(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, 2**20)
    for nth in range(4):
        fill(cache, f"{nth}")
        os.utime(cache.path_of(f"{nth}"), times=(time.time() - 10_000 + nth,) * 2)
    cache.touch("0")
    FileCache(tmp_path, 3 * len(CONTENT)).trim()
    assert {path.name for path in tmp_path.iterdir()} == {"0", "3"}  # less than the bound, so that there is room


def test_copies_in_use_stay(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, len(CONTENT))
    for nth in range(4):
        fill(cache, f"{nth}")
    assert all(cache.holds(f"{nth}", digest(CONTENT)) for nth in range(4))


def test_a_copy_that_is_being_written_stays_until_it_is_abandoned(tmp_path: Path) -> None:
    slow, other = FileCache(tmp_path, 2**20), FileCache(tmp_path, len(CONTENT) // 2)

    def trim_meanwhile() -> Iterator[bytes]:
        yield CONTENT
        (draft,) = tmp_path.iterdir()
        os.utime(draft, times=(time.time() - 2 * IN_USE_S,) * 2)
        other.trim()

    assert slow.fill("a", trim_meanwhile(), digest(CONTENT))
    assert slow.holds("a", digest(CONTENT))
    abandoned = tmp_path / ".abandoned"
    abandoned.write_bytes(CONTENT)
    os.utime(abandoned, times=(time.time() - 2 * ABANDONED_S,) * 2)
    other.trim()
    assert not abandoned.exists()


def test_two_processes_share_a_bounded_cache(tmp_path: Path) -> None:
    bound = 32 * len(CONTENT)
    commands = [[sys.executable, "-c", FILLING, str(tmp_path), str(bound), name] for name in ("a", "b")]
    filling = [subprocess.Popen(command) for command in commands]
    assert [process.wait(60) for process in filling] == [0, 0]
    assert 0 < size_of(tmp_path) <= bound + 2 * bound // SHARE_BETWEEN_TRIMS
    cache = FileCache(tmp_path, bound)
    assert all(cache.holds(path.name, digest(CONTENT)) for path in tmp_path.iterdir())
