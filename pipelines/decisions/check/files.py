"""Read a document's file: YAML or JSON as plain data, or why it can't be read."""

import yaml as library

from pipelines.decisions.check.bounds import MAX_CHARACTERS, MAX_LEVELS, MAX_VALUES
from pipelines.decisions.check.findings import Finding, finding
from pipelines.vocabulary import strict_json
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.rule_files import RuleError, find_excess, parse

Read = tuple[object, Finding | None]  # the document, or what is wrong with the text


def parse_file(text: str, yaml: bool) -> Read:
    if len(text) > MAX_CHARACTERS:
        return _refusal("TooLarge", f"The file may have at most {MAX_CHARACTERS:,} characters.")
    try:
        return _parse_yaml(text) if yaml else (strict_json.parse(text.encode()), None)
    except (RuleError, library.YAMLError) as error:
        return _refusal("NotYaml", f"The file is not valid YAML: {_place_in_yaml(error, text)}.")
    except InvalidRequest as error:
        return _refusal("NotJson", f"The file is not valid JSON. {error.detail}")


def _place_in_yaml(error: RuleError | library.YAMLError, text: str) -> str:
    """Return the line and column of the error, and what is wrong there."""
    match error.__cause__ if isinstance(error, RuleError) else error:
        case library.MarkedYAMLError(problem_mark=mark, problem=problem) if mark is not None:
            return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
        case library.reader.ReaderError(position=int(position), reason=str(reason)):
            before = text.encode()[:position].decode(errors="ignore").split("\n")
            return f"line {len(before)}, column {len(before[-1]) + 1}: {reason}"
        case other:
            return str(other)


def _parse_yaml(text: str) -> Read:
    beyond = _beyond_bounds(text)
    return (None, beyond) if beyond else (parse(text, "document"), None)


def _beyond_bounds(text: str) -> Finding | None:
    match find_excess(text, MAX_LEVELS, 2 * MAX_VALUES):
        case None:
            return None
        case "alias", _:
            return finding("", "NoAliases", "YAML aliases are not allowed: write the value out.")
        case _:
            return finding("", "TooLarge", "The file is nested too deeply or contains too many values.")


def _refusal(code: str, says: str) -> Read:
    return None, finding("", code, says)
