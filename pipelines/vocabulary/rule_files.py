"""Read YAML data files strictly, such as those of `rules/`: a broken file is refused with its name, line and reason."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Literal

import yaml

Excess = Literal["alias", "size"]


@dataclass(frozen=True)
class Fault:
    """What is wrong in a file, and where: at a line, or at the place that the keys and positions of `path` lead to."""

    file: str
    says: str
    path: Sequence[Hashable] = ()
    place: str = ""  # the path in words
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}, {self.place}: {self.says}" if self.place else f"{self.file}: {self.says}"


class RuleError(Exception):
    """A rule file can't be loaded. The message says which file, where, and why."""

    def __init__(self, *faults: Fault | str) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = [each for each in faults if isinstance(each, Fault)]


def suggest(wrong: object, known: Iterable[str], listed_in: str) -> str:
    """Return what to write instead of a wrong word: the known word most like it, or where the known ones are listed."""
    near = get_close_matches(str(wrong)[:64], list(known), n=1)
    return f": did you mean {near[0]}?" if near else f": write one of {listed_in}"


class _StrictLoader(yaml.CSafeLoader):  # takes a tenth of the time of the loader in Python
    """A YAML loader that refuses repeated keys (which would silently lose a value) and locates invalid values."""

    def construct_integer(self, node: yaml.ScalarNode) -> int | str:
        """Read a whole number. YAML 1.1 reads `12:30` in base 60 as 750; here it is a text, as in YAML 1.2."""
        text = str(self.construct_scalar(node))
        return text if ":" in text else int(super().construct_yaml_int(node))

    def construct_decimal(self, node: yaml.ScalarNode) -> float | str:
        text = str(self.construct_scalar(node))
        return text if ":" in text else float(super().construct_yaml_float(node))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # an impossible date, a number of a thousand digits
            problem = "this value can't be read: put texts and decimals in quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(problem="a name must be a text", problem_mark=key_node.start_mark)
            if key in keys:
                mark = key_node.start_mark
                raise yaml.MarkedYAMLError(problem=f"{key!r} occurs twice", problem_mark=mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_integer)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _StrictLoader.construct_decimal)


def load_rules(name: str) -> Any:
    """Load a file of `rules/` as plain data."""
    return parse(files("pipelines.enrichment").joinpath("rules", name).read_text("utf-8"), name)


def parse(text: str, name: str) -> Any:
    """Parse YAML text of a file of that name as plain data.

    Raises:
        RuleError: names the file, the line and the reason.
    """
    try:
        return yaml.load(text, _StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(Fault(name, str(error.problem), place=f"line {line}", line=line)) from error
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise RuleError(Fault(name, str(error.reason), place=f"line {line}", line=line)) from error


def find_excess(text: str, max_levels: int, max_values: int) -> tuple[Excess, int] | None:
    """Return the first thing that is not allowed in a YAML text, and its line; None if there is none.

    Not allowed are aliases, and more levels or values (names count as values) than these limits. This is checked before
    the text is parsed, because aliases of aliases can expand to more than memory holds.

    Raises:
        yaml.YAMLError: the text is not YAML.
    """
    level = values = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            return "alias", line
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        if level > max_levels or values > max_values:
            return "size", line
    return None


def line_of(text: str, path: Sequence[Hashable]) -> int:
    """Return the line of the value that keys and positions lead to in a YAML text.

    If the path leads nowhere, return the line of the last value on it.
    """
    node = yaml.compose(text, yaml.CSafeLoader)
    line = 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if pair[0].value == str(step)]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            pairs = [(item, item) for item in node.value[step : step + 1]]
        else:
            break
        if not pairs:
            break
        name, node = pairs[0]
        line = name.start_mark.line + 1
    return line
