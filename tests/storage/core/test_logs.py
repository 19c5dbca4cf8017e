"""A log entry is one line in one form, without secrets and personal data."""

import json
import logging
import sys
import threading
from io import StringIO

import pytest

from pipelines.vocabulary.errors import Corrupt
from storage.core import logs
from storage.core.logs import Json, Line, Text
from storage.core.settings import LogFormat, Settings

KEY = "tm_sandbox_xKiViWBXvLjaZWCeK3faVNKFsddywqgJjmupiFESFDM670888"
FORMS = [Text("api"), Json("api")]
each_form = pytest.mark.parametrize("form", FORMS, ids=["text", "json"])


def line(form: Line, message: str, *arguments: object, logger: str = "tidemark.api", **more: object) -> str:
    record = logging.LogRecord(logger, logging.INFO, "", 0, message, arguments, more.pop("exc_info", None))  # pyrefly: ignore[bad-argument-type]
    record.__dict__.update(more)
    return form.format(record)


def raise_and_catch(error: Exception, cause: Exception | None = None) -> object:
    try:
        raise error from cause
    except Exception:
        return sys.exc_info()


def test_both_forms_have_the_same_fields() -> None:
    with logs.add_fields(requestId="lender 7"):
        text, as_json = (line(form, "GET %s", "/v1/jobs", fields={"ms": 2.5}) for form in FORMS)
    found = json.loads(as_json)
    time = found.pop("time")
    assert time.endswith("Z")
    assert found == {
        "level": "INFO",
        "part": "api",
        "logger": "tidemark.api",
        "message": "GET /v1/jobs",
        "requestId": "lender 7",
        "ms": 2.5,
    }
    assert text.partition(" ")[2] == 'INFO api tidemark.api: GET /v1/jobs requestId="lender 7" ms=2.5'


@each_form
@pytest.mark.parametrize(
    "evil", ["a\r\nINFO forged", "\x1b[31mred", "\x9b31m", "a\u2028b", "\u202egnp.exe", "\ud800", "\0"]
)
def test_value_cannot_start_a_line_or_control_the_terminal(form: Line, evil: str) -> None:
    with logs.add_fields(requestId=evil):
        written = line(form, "name: %s", evil)
    assert written.isprintable()
    written.encode()


@each_form
@pytest.mark.parametrize("secret", [KEY, "51824753556", "51 824 753 556", f"x-api-key={KEY}"])
def test_keys_and_abns_are_masked(form: Line, secret: str) -> None:
    with logs.add_fields(requestId=secret):
        written = line(form, "called with\n%s", secret)
    assert secret not in written
    assert "670888" not in written
    assert "824753" not in written.replace(" ", "")


@each_form
def test_request_id_is_not_masked_as_an_abn(form: Line) -> None:
    with logs.add_fields(requestId="4f1c8f0e-8d0b-4b52-9b43-518247535561"):
        assert "518247535561" in line(form, "reported")


@each_form
def test_foreign_error_is_logged_with_type_and_place_only(form: Line) -> None:
    error = raise_and_catch(ValueError("COFFEE at Nora's"), cause=KeyError("12345678"))
    written = line(form, "failed", exc_info=error)
    assert "ValueError < KeyError" in written
    assert "test_logs.py" in written
    assert "COFFEE" not in written
    assert "12345678" not in written


@each_form
def test_our_own_and_system_errors_are_logged_in_full(form: Line) -> None:
    ours = raise_and_catch(Corrupt("Lake.ChecksumMismatch", "The data file a.parquet is not what was written."))
    assert "Lake.ChecksumMismatch: The data file a.parquet" in line(form, "failed", exc_info=ours)
    assert "No space left on device" in line(
        form, "failed", exc_info=raise_and_catch(OSError(28, "No space left on device"))
    )


@each_form
def test_foreign_message_is_logged_with_its_first_line_only(form: Line) -> None:
    written = line(form, "a tick failed\nStack Trace: COFFEE", logger="dagster.daemon")
    assert "a tick failed" in written
    assert "COFFEE" not in written


@pytest.mark.parametrize(
    ("chosen", "as_json"), [(LogFormat.TEXT, False), (LogFormat.JSON, True), (LogFormat.AUTO, True)]
)
def test_a_process_logs_in_the_chosen_form(monkeypatch: pytest.MonkeyPatch, chosen: LogFormat, as_json: bool) -> None:
    """Automatic means JSON unless on a terminal. An error that ends a thread is logged, too."""
    retained = logging.root.handlers[:], logging.root.level, sys.excepthook, threading.excepthook
    monkeypatch.setattr(sys, "stderr", written := StringIO())
    try:
        logs.log_to_stderr("worker", Settings(log_format=chosen))
        logging.getLogger("somebody.else").info("of no interest")
        logging.getLogger("assets.workers.queues").info("of interest")
        thread = threading.Thread(target=lambda: 1 // 0, name="lost")
        thread.start()
        thread.join()
    finally:
        logging.captureWarnings(False)
        logging.root.handlers[:], level, sys.excepthook, threading.excepthook = retained
        logging.root.setLevel(level)
    reported, lost = written.getvalue().splitlines()
    assert "of interest" in reported
    assert "lost" in lost
    assert "ZeroDivisionError" in lost
    assert all(text.startswith("{") is as_json for text in (reported, lost))
