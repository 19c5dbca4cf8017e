"""The log: one line per event, in the same form from every process, as text for people or JSON for machines.

A line holds nothing personal and no secret. Callers log only ids and counts; this module takes care of the rest. For
errors that are not our own it logs only the type and where it was raised, since the message may quote a row. API keys
and ABNs are masked in all values. Characters that aren't printable are escaped, so that no value can start a new line
or control a terminal.
"""

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Any

from pipelines.vocabulary.errors import TidemarkError
from storage.core.settings import LogFormat, Settings

OURS = ("tidemark", "api", "assets", "isolation", "storage", "uvicorn", "__main__")  # loggers whose level is INFO
MAX_FRAMES = 12
MAX_FOREIGN_CHARACTERS = 300
MASKED = re.compile(r"tm_(?:sandbox|live)_[\w-]+|(?<![\w-])[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}(?![\w-])")
MASK = "***"

_fields_added: ContextVar[Mapping[str, object]] = ContextVar("fields_added", default=MappingProxyType({}))

log = logging.getLogger(__name__)


def log_to_stderr(part: str, settings: Settings) -> None:
    """Make this process log to standard error: warnings of all loggers, and information of our own.

    Args:
        part: the process's name in each line.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(part, settings.log_format, on_terminal=sys.stderr.isatty()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _uncaught_in_thread


@contextmanager
def add_fields(**fields: object) -> Iterator[None]:
    """Add fields, such as `requestId`, to every line that is logged inside."""
    before = _fields_added.set({**_fields_added.get(), **fields})
    try:
        yield
    finally:
        _fields_added.reset(before)


class Line(logging.Formatter):
    """Common base of both forms: a line's fields."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        reported: dict[str, object] = {
            "time": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
            "level": record.levelname,
            "part": self._part,
            "logger": record.name,
            "message": record.getMessage() if record.name.startswith(OURS) else _shorten(record.getMessage()),
            **_fields_added.get(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            reported |= {"error": _name(record.exc_info[1]), "raisedAt": _frames(record.exc_info[1])}
        return {name: _mask(value) for name, value in reported.items()}


class Json(Line):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.fields(record), default=str)


class Text(Line):
    def format(self, record: logging.LogRecord) -> str:
        fields = self.fields(record)
        time, level, part, logger, message = (fields.pop(name) for name in list(fields)[:5])
        rest = "".join(f" {name}={_quote(value)}" for name, value in fields.items())
        return printable(f"{time} {level} {part} {logger}: {message}{rest}")


def printable(text: str) -> str:
    """Escape everything in a text that isn't printable, so that it stays one line and can't control a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _formatter(part: str, chosen: LogFormat, *, on_terminal: bool) -> Line:
    as_text = chosen is LogFormat.TEXT or (chosen is LogFormat.AUTO and on_terminal)
    return Text(part) if as_text else Json(part)


def _mask(value: object) -> object:
    return MASKED.sub(MASK, value) if isinstance(value, str) else value


def _shorten(message: str) -> str:
    """Return the beginning of another library's message; the rest may quote data."""
    return message.partition("\n")[0][:MAX_FOREIGN_CHARACTERS]


def _quote(value: object) -> str:
    """Return a value as text, quoted unless it is plainly one word."""
    text = " < ".join(value) if isinstance(value, list) else str(value)
    return text if re.fullmatch(r"[\w./:+-]+", text) else json.dumps(text, ensure_ascii=False)


def _name(error: BaseException) -> str:
    """Return the error's type, its message if it is our own error, and its cause."""
    name = type(error).__name__
    if isinstance(error, TidemarkError):
        name = f"{name} {error.code}: {error.detail}"
    elif isinstance(error, OSError) and error.strerror:
        name = f"{name}: {error.strerror}"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return name if cause is None else f"{name} < {_name(cause)}"


def _frames(error: BaseException) -> list[str]:
    """Return where the error was raised, innermost frame first."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno} {frame.name}" for frame in reversed(frames)]


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("the process ends because of an error", exc_info=error)


def _uncaught_in_thread(args: Any) -> None:
    log.critical("the thread %s ends because of an error", args.thread and args.thread.name, exc_info=args.exc_value)
