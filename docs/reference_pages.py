"""The pages of docs/reference/ that are made from the code, for `make generated`.

    python -m docs.reference_pages docs/reference

The API is described by the OpenAPI document alone, commands by their help, settings and events by their models, and
error codes by their catalogue.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from api.cli import COMMANDS, import_command
from api.service.app import create_app
from api.service.described import Data, fields, first_line, operations, tags, type_of, values
from api.webhooks.event_schemas import as_json_schema
from pipelines.vocabulary.codes import catalogue
from pipelines.webhooks.addresses import Ports
from pipelines.webhooks.events import EventType
from storage.core.settings import PREFIX, Quota, Settings
from storage.core.short_ids import MIN_DIGITS
from storage.core.store import Store

NOTICE = "Made from the code by `make generated`: don't edit this page."
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
FOLDERS = ("api",)


def main(target: Path) -> None:
    for folder in FOLDERS:
        shutil.rmtree(target / folder, ignore_errors=True)
    for name, text in pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, "utf-8")


def pages() -> dict[str, str]:
    """Return the text of every page by its path in docs/reference/."""
    document = create_app(cast(Store, None)).openapi()
    return {
        "settings.md": _lines(_settings()),
        "commands.md": _lines(_commands()),
        "events.md": _lines(_events()),
        "errors.md": _lines(_errors()),
        "api/README.md": _lines(_api(document)),
        **{f"api/{_slug(tag)}.md": _lines(_subject(document, tag)) for tag in tags(document)},
        "api/models.md": _lines(_models(document)),
    }


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines).strip() + "\n"


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(columns)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"
    yield ""


def _cell(text: str) -> str:
    """Return text that a table can hold: on one line, its bars escaped."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def _slug(text: str) -> str:
    return text.lower().replace(" ", "-")


# Settings


def _settings() -> Iterator[str]:
    yield from ("# Settings", "", NOTICE, "")
    yield "Settings are read from environment variables, a `.env` in the working directory, and `tidemark.toml` in the"
    yield "home (names in lower case, without `TIDEMARK_`). The first of these that gives a setting counts. An unknown"
    yield "name is refused. How to use the keys: [operations](../how-to/operations.md#keys). Where webhooks may go:"
    yield "[webhooks](../how-to/webhooks.md#where-webhooks-go)."
    yield ""
    fields = Settings.model_fields.items()
    rows = ((f"`{PREFIX}{name}`".upper(), _default(field.default), field.description or "") for name, field in fields)
    yield from _table(("Variable", "Default", "Meaning"), rows)


def _default(value: object) -> str:
    """Write a default as in an environment variable."""
    match value:
        case bool():
            text = "on" if value else "off"
        case timedelta():
            text = _duration(int(value.total_seconds()))
        case Quota():
            text = f"{value.requests}/{_duration(value.window_s)}"
        case Path():
            text = f"./{value}"
        case float():
            text = f"{value:g}"
        case None | () | Ports():
            text = ""
        case _:
            text = str(value)  # empty for a secret
    return f"`{text}`" if text else "–"


def _duration(seconds: int) -> str:
    return next(f"{seconds // size}{unit}" for size, unit in UNITS if seconds % size == 0)


# Commands


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", NOTICE, "")
    yield "Every command takes `--home DIR` before its name (`tidemark --home DIR doctor`). An expected failure"
    yield "prints one line on standard error; the exit status is 1."
    yield ""
    yield "A list is a table as wide as the terminal, with the first digits of ids; an argument or option accepts these"
    yield f"digits, {MIN_DIGITS} at least. Without a terminal, a list is TSV, with names, whole ids and"
    yield "times in ISO 8601. `--json` prints JSON."
    yield ""
    for panel, listed in groupby(COMMANDS, lambda name: COMMANDS[name].panel):
        yield from (f"## {panel}", "")
        for name in listed:
            yield from _command(f"tidemark {name}", import_command(name))


def _command(name: str, command: Any) -> Iterator[str]:
    """Describe a command and its subcommands. `command` is Typer's kind of a Click command or group."""
    text, _, example = (command.help or "").partition("Example:")
    yield from (f"### `{name}`", "", *(line.strip() for line in text.strip().splitlines()), "")
    if example:
        yield from ("```", " ".join(example.split()), "```", "")
    for inner, subcommand in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {inner}", subcommand)
    if rows := [_parameter(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]:
        yield from _table(("Parameter", "Meaning"), rows)


def _parameter(parameter: Any) -> tuple[str, str]:
    is_option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if is_option else str(parameter.name).upper()
    needed = " Required." if is_option and parameter.required else ""
    return f"`{name}`", (parameter.help or "") + needed


# Events


def _events() -> Iterator[str]:
    yield from ("# Events", "", NOTICE, "")
    yield "What [webhooks](../how-to/webhooks.md) carry. A payload may gain fields without notice."
    yield ""
    for event_type in EventType:
        schema = as_json_schema(event_type)
        yield from (f"## `{event_type.value}`", "", schema["description"], "")
        yield f"JSON Schema with an example: [`{event_type}.schema.json`](events/{event_type}.schema.json)."
        yield ""
        yield from _table(("Field", "Type", "Meaning"), fields(schema, link=False))


# Errors


def _errors() -> Iterator[str]:
    yield from ("# Error codes", "", NOTICE, "")
    yield "The `code` of a problem, of one of its `errors`, of a job or of a failing command. A problem's `type` is"
    yield "`/docs/errors/` and the code: the service has a page for each there while it serves `/docs`. Reasons in"
    yield "reports are described under [completeness](../explanation/completeness.md#reasons) and"
    yield "[risk](../explanation/risk.md)."
    yield ""
    for where, codes in groupby(sorted(catalogue().values(), key=lambda code: code.where), key=lambda code: code.where):
        yield from (f"## {where}", "")
        rows = ((f"`{code.name}`", str(code.status or "–"), code.meaning, code.remedy) for code in codes)
        yield from _table(("Code", "Status", "Meaning", "What to do"), rows)


# The API


def _api(document: Data) -> Iterator[str]:
    yield from ("# API", "", NOTICE, "")
    yield from (document["info"]["description"], "")
    for tag in tags(document):
        yield from (f"## [{tag}]({_slug(tag)}.md)", "")
        named = [each for each in operations(document) if each[2]["tags"][0] == tag]
        rows = ((f"`{method} {path}`", first_line(operation)) for method, path, operation in named)
        yield from _table(("Operation", "What it does"), rows)


def _subject(document: Data, tag: str) -> Iterator[str]:
    yield from (f"# {tag}", "", NOTICE, "")
    for method, path, operation in operations(document):
        if operation["tags"][0] == tag:
            yield from (f"## {method} {path}", "", operation["description"], "")
            yield from _operation(operation)


def _operation(operation: Data) -> Iterator[str]:
    if parameters := operation.get("parameters"):
        rows = ((f"`{each['name']}`", each["in"], type_of(each["schema"]), _meaning(each)) for each in parameters)
        yield from _table(("Parameter", "In", "Type", "Meaning"), rows)
    contents = operation.get("requestBody", {}).get("content", {})
    for media, content in contents.items():
        yield from (f"Body, `{media}`: {type_of(content['schema'])}", "")
    yield from _table(("Status", "Response"), _responses(operation["responses"]))


def _meaning(parameter: Data) -> str:
    """Return a parameter's description and, if it has one, its default."""
    default = parameter["schema"].get("default")
    written = "" if default in (None, "") else f" Default: `{json.dumps(default)}`."
    return f"{parameter['description']}{written}"


def _responses(responses: Data) -> Iterator[tuple[str, str]]:
    for status, response in responses.items():
        for content in response["content"].values():
            examples = content.get("examples", {})
            codes = ", ".join(f"`{code}`" for code in examples)
            yield status, codes or type_of(content.get("schema", {}))


def _models(document: Data) -> Iterator[str]:
    yield from ("# Models", "", NOTICE, "", "What requests and responses hold.", "")
    for name, schema in document["components"]["schemas"].items():
        yield from (f"## {name}", "")
        if about := schema.get("description"):
            yield from (about, "")
        if "enum" in schema:
            yield from (f"One of {values(schema['enum'])}.", "")
        elif schema.get("properties"):
            yield from _table(("Field", "Type", "Meaning"), fields(schema))
        else:
            yield from (type_of(schema), "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
