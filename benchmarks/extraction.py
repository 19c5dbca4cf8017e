"""Measure the time and memory of reading statements, each in a child process. The peer is pdfplumber."""

import re
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pdfplumber
import psutil

from benchmarks.table import Row, mebibytes, percentile, seconds
from isolation import extract
from pipelines.synthetic.pdf import EVERY_LAYOUT, PrintedStatement, statement_pdf

TITLE = "How fast bank statements are read"
SEED, PAGES, LONGEST = 72_000, 10, 200
ALONE = re.compile(r"[-−+(]?\s*\$?\s*([\d,]+\.\d\d)\s*(?:[-)]|CR|DR|Cr|Dr|OD)?")
BY_WORDS = {"vertical_strategy": "text", "horizontal_strategy": "text"}
ABOUT = (
    f"One generated statement of {PAGES} pages in each of {len(EVERY_LAYOUT)} layouts, one after another, each read by "
    "a child process with limits. The peer is pdfplumber's table extraction on the same files in one warm process: "
    "once with its defaults (columns by drawn lines), once set to find columns by words. The peer recovers a row if a "
    "cell holds its amount and, except for signs and currency, nothing else. This is lenient: dates, balances and "
    "signs are not checked."
)


def measure() -> Sequence[Row]:
    files = [statement_pdf(layout, SEED, pages=PAGES) for layout in EVERY_LAYOUT]
    short = [statement_pdf(layout, SEED, pages=1) for layout in EVERY_LAYOUT]
    pages, rows = sum(made.pages for made in files), sum(len(made.rows) for made in files)
    spent = _cpu_of_children()
    took, read = _extract(files)
    spent = _cpu_of_children() - spent
    speed = pages / sum(took)
    return [
        Row(f"{pages} pages end to end, one child per file, on one core", f"{speed:.1f} pages/s", "≥ 25 pages/s"),
        Row("the same by the processor time of the children", f"{pages / spent:.1f} pages/s"),
        Row(f"a file of {PAGES} pages: median, slowest", f"{seconds(percentile(took, 0.5))}, {seconds(max(took))}"),
        Row("a file of 1 page, median", seconds(percentile(_extract(short)[0], 0.5))),
        Row(f"rows recovered, of {rows:,}", f"{read / rows:.4f}"),
        *_measure_longest(),
        *_measure_peer("columns by lines", files, {}, speed),
        *_measure_peer("columns by words", files, BY_WORDS, speed),
    ]


def _cpu_of_children() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _extract(files: Sequence[PrintedStatement]) -> tuple[list[float], int]:
    """Return the seconds for each file, and the number of rows that were read with their date and amount."""
    took, right = list[float](), 0
    for made in files:
        began = time.perf_counter()
        found = extract(made.content, None)
        took.append(time.perf_counter() - began)
        read = Counter((entry.date, entry.amount) for statement in found.statements for entry in statement.entries)
        right += (read & Counter((row.date, row.amount) for row in made.rows)).total()
    return took, right


def _measure_longest() -> list[Row]:
    made = statement_pdf("anz", SEED, pages=LONGEST)
    began, largest = time.perf_counter(), 0
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(extract, made.content, None)
        while not reading.done():
            largest = max(largest, _peak_rss_of_children())
            time.sleep(0.02)
    took, rows = time.perf_counter() - began, sum(len(each.entries) for each in reading.result().statements)
    return [
        Row(f"a file of {LONGEST} pages, {len(made.rows):,} rows, of which {rows:,} were read", seconds(took)),
        Row("its child's peak RSS", mebibytes(largest), "≤ 150 MB"),
    ]


def _peak_rss_of_children() -> int:
    """Return the peak memory (RSS, bytes) of a child process so far, as recorded by the kernel."""
    marks = [0]
    for child in psutil.Process().children():
        with suppress(OSError, StopIteration, psutil.NoSuchProcess):  # it has ended
            if "isolation.child" not in child.cmdline():
                continue  # it has not started its program yet
            lines = Path(f"/proc/{child.pid}/status").read_text("ascii").splitlines()
            marks.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
    return max(marks)


def _measure_peer(how: str, files: Sequence[PrintedStatement], settings: dict[str, str], speed: float) -> list[Row]:
    began = time.perf_counter()
    tables = [_tables(made.content, settings) for made in files]
    peer_speed = sum(made.pages for made in files) / (time.perf_counter() - began)
    rows = sum(len(made.rows) for made in files)
    recovered = sum(_count_recovered(made, cells) for made, cells in zip(files, tables, strict=True))
    return [
        Row(f"peer, {how}", f"{peer_speed:.1f} pages/s"),
        Row(f"peer, {how}: rows recovered", f"{recovered / rows:.4f}"),
        Row(f"ours, as a multiple of the peer, {how}", f"{speed / peer_speed:.1f} ×"),
    ]


def _tables(content: bytes, settings: dict[str, str]) -> list[Counter[str]]:
    """Return the figures in table cells that contain nothing else, for each page."""
    with pdfplumber.open(BytesIO(content)) as file:
        return [Counter(_figures(page.extract_tables(settings))) for page in file.pages]


def _figures(tables: Sequence[Sequence[Sequence[str | None]]]) -> Iterator[str]:
    cells = (cell for table in tables for row in table for cell in row if cell)
    return (figure[1] for cell in cells if (figure := ALONE.fullmatch(cell.strip())))


def _count_recovered(made: PrintedStatement, pages: Sequence[Counter[str]]) -> int:
    wanted = [Counter[str]() for _ in pages]
    for row in made.rows:
        wanted[row.page - 1][f"{abs(row.amount):,.2f}"] += 1
    return sum((cells & amounts).total() for cells, amounts in zip(pages, wanted, strict=True))
