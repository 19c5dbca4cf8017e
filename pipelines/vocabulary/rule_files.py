"""Read YAML data files strictly, such as those of `rules/`: a broken file is refused with its name, line and reason."""

from collections.abc import Hashable
from importlib.resources import files
from typing import Any

import yaml


class RuleError(Exception):
    """A rule file can't be loaded. The message says which file, where, and why."""


class _StrictLoader(yaml.CSafeLoader):  # takes a tenth of the time of the loader in Python
    """A YAML loader that refuses repeated keys (which would silently lose a value) and locates invalid values."""

    def construct_whole(self, node: yaml.ScalarNode) -> int | str:
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
            key = self.construct_object(key_node)
            if key in keys:
                mark = key_node.start_mark
                raise yaml.MarkedYAMLError(problem=f"{key!r} occurs twice", problem_mark=mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_whole)
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
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise RuleError(f"{name}, line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise RuleError(f"{name}: {error}") from error
