"""Releases of the enrichment.

Every change of rules, lists, taxonomy or the shipped model is a release, recorded in `rules/releases.yaml` with its
impact. A release also records the fingerprint of the data files that it was made with. If `fingerprint()`, computed
from the present files, differs from the last release's, the files were changed without a release.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from typing import Any

from pipelines.vocabulary.rule_files import RuleError, load_rules

FILE = "releases.yaml"
_DATA = ("rules", "learned")  # folders of `pipelines.enrichment`; Python files in them don't count
_KEYS = {"version", "taxonomy", "date", "changes", "impact", "fingerprint"}


@dataclass(frozen=True)
class Release:
    """`fingerprint` is null for releases made before fingerprints were recorded."""

    version: int  # of the enrichment
    taxonomy: int
    date: date
    changes: tuple[str, ...]
    impact: str
    fingerprint: str | None


def releases() -> tuple[Release, ...]:
    """Return the recorded releases, oldest first.

    Raises:
        RuleError: naming the file and every fault.
    """
    return parse_releases(load_rules(FILE))


def parse_releases(entries: Any) -> tuple[Release, ...]:
    """Return the file's entries as releases.

    Raises:
        RuleError: naming the file and every fault.
    """
    if faults := list(_faults(entries)):
        raise RuleError("\n".join(f"{FILE}: {fault}" for fault in faults))
    return tuple(Release(**entry | {"changes": tuple(entry["changes"])}) for entry in entries)


def fingerprint() -> str:
    """Return the SHA-256 over names and contents of the data files that enrichment reads, except the release list."""
    whole = hashlib.sha256()
    for name, content in sorted(_data_files()):
        whole.update(f"{name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def _data_files() -> Iterator[tuple[str, bytes]]:
    for folder in _DATA:
        yield from _files_in(files("pipelines.enrichment").joinpath(folder), folder)


def _files_in(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_in(each, f"{path}/{each.name}")
        elif not each.name.endswith((".py", ".pyc")) and each.name != FILE:
            yield f"{path}/{each.name}", each.read_bytes()


def _faults(entries: Any) -> Iterator[str]:
    if not isinstance(entries, list) or not entries:
        yield "takes a list of releases"
        return
    sound = []
    for number, entry in enumerate(entries, start=1):
        if found := _entry_fault(entry):
            yield f"release {number}: {found}"
        else:
            sound.append(entry)
    for earlier, later in pairwise(sound):
        if later["version"] != earlier["version"] + 1:
            yield f"release {later['version']} comes right after release {earlier['version']}: one is missing"
        if later["taxonomy"] < earlier["taxonomy"] or later["date"] < earlier["date"]:
            yield f"release {later['version']} has an older taxonomy or date than the one before"
    if sound and sound[-1]["fingerprint"] is None:
        yield "the last release has no fingerprint"


def _entry_fault(entry: Any) -> str | None:
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        return f"it takes {', '.join(sorted(_KEYS))}"
    if not (isinstance(entry["version"], int) and isinstance(entry["taxonomy"], int)):
        return "versions must be whole numbers"
    if not isinstance(entry["date"], date):
        return "the date must be a day, such as 2026-07-01"
    changes, impact = entry["changes"], entry["impact"]
    if not (isinstance(changes, list) and changes and all(isinstance(each, str) and each for each in changes)):
        return "changes must be a list of sentences"
    return None if isinstance(impact, str) and impact.strip() else "impact must be a text"
