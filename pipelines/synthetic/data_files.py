"""Load the data files of the generator (`data/`): brands, trades, wordings, layouts. They are checked when loaded.

A module loads its file on first use and caches the result, so that importing the generator reads no file.
"""

import csv
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

from pipelines.vocabulary.rule_files import RuleError, parse
from pipelines.vocabulary.typed import convert

_HERE = "pipelines.synthetic"
_Shape = TypeVar("_Shape")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record of a data file. A field that its class does not have is refused."""


def load(name: str, shape: type[_Shape]) -> _Shape:
    """Return the YAML file of that name as a value of the given type.

    Raises:
        RuleError: naming the file, the place and the reason.
    """
    return _convert(parse(_read_text(name), name), shape, name)


def load_named(name: str, record: type[_Shape], key: str) -> tuple[_Shape, ...]:
    """Return the records of a YAML mapping in the file's order. Each record's key becomes its field `key`."""
    fields = load(name, dict[str, dict[str, Any]])
    return _convert([{key: named, **rest} for named, rest in fields.items()], tuple[record, ...], name)


def load_table(name: str, record: type[_Shape]) -> tuple[_Shape, ...]:
    """Return the rows of a CSV file. An empty cell takes the field's default."""
    rows = [
        {column: cell for column, cell in row.items() if cell} for row in csv.DictReader(_read_text(name).splitlines())
    ]
    return _convert(rows, tuple[record, ...], name, strict=False)


class Folder(Mapping[str, _Shape]):
    """The YAML files of folders by their names without `.yaml`. Each is loaded when it is first asked for."""

    def __init__(self, record: type[_Shape], *folders: str) -> None:
        self._record, self._folders = record, folders
        self._loaded: dict[str, _Shape] = {}

    def __getitem__(self, name: str) -> _Shape:
        if name not in self._loaded:
            self._loaded[name] = load(f"{self._places()[name]}/{name}.yaml", self._record)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places())

    def __len__(self) -> int:
        return len(self._places())

    def _places(self) -> Mapping[str, str]:
        """Map the name of each file to its folder, sorted within a folder."""
        return {
            name.removesuffix(".yaml"): folder
            for folder in self._folders
            for name in sorted(file.name for file in files(_HERE).joinpath("data", folder).iterdir())
        }


def _read_text(name: str) -> str:
    return files(_HERE).joinpath("data", name).read_text("utf-8")


def _convert(value: object, shape: type[_Shape], name: str, *, strict: bool = True) -> _Shape:
    try:
        return convert(value, shape, strict=strict)
    except msgspec.ValidationError as error:
        raise RuleError(f"{name}: {error}") from error
