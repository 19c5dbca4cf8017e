"""Read scanned pages with tesseract, where it is installed.

Each page is read by a process of its own, which is confined like the child process that reads a file.
"""

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
from isolation.process import DeadlineExceeded, Process
from pipelines.intake.pdf.document.scanned import ScannedWord

ADVICE: Final = (
    "The pages are pictures without text, and no OCR is installed here: apt-get install tesseract-ocr, then send the "
    "file again. A statement downloaded from the bank's website gives better results."
)
# Page segmentation mode 6: one block of text of one size. Columns are found later, from the positions of the words.
ARGUMENTS: Final = ("stdin", "stdout", "--dpi", "200", "--psm", "6", "-l", "eng", "tsv")
DATA_FOLDER: Final = "TESSDATA_PREFIX"
MAX_TSV_BYTES: Final = MIB  # some 20,000 words, far more than a page has
WORD: Final = "5"  # the level of a line that holds a word
_NUMBERS: Final = ("left", "top", "width", "height", "conf")


def find_tesseract() -> str | None:
    return shutil.which("tesseract")


def read_words(png: bytes, limits: ChildLimits, tesseract: str) -> tuple[ScannedWord, ...]:
    """Return the words of a page drawn at 200 dpi, with boxes in pixels of `png` and a confidence from 0 to 100.

    Returns no words if the page can't be read within `limits`, and only the first ones if the output is too long.

    Args:
        png: the page as a picture.
        tesseract: the path of the program.
    """
    environment = _environment()
    readable = (str(Path(tesseract).resolve().parent.parent), environment.get(DATA_FOLDER, ""))
    bounds = (limits.memory_bytes, limits.scanned_page_s, os.getpid(), os.pathsep.join(readable))
    command = [sys.executable, "-I", "-S", confinement.__file__, *map(str, bounds), tesseract, *ARGUMENTS]
    try:
        with Process(command, environment, limits.scanned_page_s) as reader:
            reader.send(png, last=True)
            output = b"".join(_limit_size(reader.read_output()))
    except (OSError, DeadlineExceeded):
        return ()
    return tuple(_parse_words(output.decode("utf-8", "replace")))


def _environment() -> Mapping[str, str]:
    """Return tesseract's environment: one thread, to leave processors to other files, and the operator's folder of
    language data.
    """
    retained = {name: value for name, value in os.environ.items() if name == DATA_FOLDER}
    return {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8", **retained}


def _limit_size(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces until they exceed MAX_TSV_BYTES; the rest is not read."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_TSV_BYTES:
            return
        yield piece


def _parse_words(tsv: str) -> Iterator[ScannedWord]:
    for row in csv.DictReader(tsv.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        with suppress(KeyError, TypeError, ValueError):  # a truncated line
            left, top, width, height, confidence = (float(row[name]) for name in _NUMBERS)
            if row["level"] == WORD and row["text"].strip():
                yield ScannedWord(row["text"], left, top, left + width, top + height, confidence)
