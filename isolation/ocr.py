"""Pictures of pages read by tesseract, where it is installed: one process a page, as confined as a file's own child."""

import csv
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from isolation import confinement
from isolation.limits import MIB, ChildLimits
from isolation.process import Overdue, Process
from pipelines.intake.pdf.document.scanned import ScannedWord

ADVICE: Final = (
    "The pages are pictures without text, and no OCR is installed here: apt-get install tesseract-ocr, then send the "
    "file again. A statement as the bank's website gives it is read better."
)
# One block of text of one size: columns are found later, from where the words stand.
ARGUMENTS: Final = ("stdin", "stdout", "--dpi", "200", "--psm", "6", "-l", "eng", "tsv")
DATA_FOLDER: Final = "TESSDATA_PREFIX"
MOST_TSV_BYTES: Final = MIB
WORD: Final = "5"  # the level of a line that holds a word
_NUMBERS: Final = ("left", "top", "width", "height", "conf")


def program() -> str | None:
    """The path of tesseract, if there is one."""
    return shutil.which("tesseract")


def words(png: bytes, limits: ChildLimits, tesseract: str) -> tuple[ScannedWord, ...]:
    """The words of a page that was drawn at 200 dpi; none where it can't be read within the limits."""
    environment = _environment()
    readable = (str(Path(tesseract).resolve().parent.parent), environment.get(DATA_FOLDER, ""))
    bounds = (limits.memory_bytes, limits.scanned_page_s, os.getpid(), os.pathsep.join(readable))
    command = [sys.executable, "-I", "-S", confinement.__file__, *map(str, bounds), tesseract, *ARGUMENTS]
    try:
        with Process(command, environment, limits.scanned_page_s) as reader:
            reader.send(png, last=True)
            said = b"".join(_bounded(reader.said()))
    except (OSError, Overdue):
        return ()
    return tuple(_words(said.decode("utf-8", "replace")))


def _environment() -> Mapping[str, str]:
    """One thread, for other files wait, and where an operator keeps the language's data."""
    retained = {name: value for name, value in os.environ.items() if name == DATA_FOLDER}
    return {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8", **retained}


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_TSV_BYTES:
            return
        yield piece


def _words(tsv: str) -> Iterator[ScannedWord]:
    for row in csv.DictReader(tsv.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        with suppress(KeyError, TypeError, ValueError):  # a line cut off
            left, top, width, height, confidence = (float(row[name]) for name in _NUMBERS)
            if row["level"] == WORD and row["text"].strip():
                yield ScannedWord(row["text"], left, top, left + width, top + height, confidence)
