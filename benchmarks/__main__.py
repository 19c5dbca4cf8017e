"""Run benchmarks, all or those named (`python -m benchmarks doors reads`), and write `benchmarks/RESULTS.md`."""

import sys
import tempfile
from pathlib import Path

from benchmarks import backlog, doors, growth, history, reads, refresh, spine
from benchmarks.table import write

PARTS = {
    module.__name__.removeprefix("benchmarks."): module
    for module in (spine, doors, reads, refresh, backlog, history, growth)
}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    order = [part.TITLE for part in PARTS.values()]
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix=f"tidemark-bench-{name}-", ignore_cleanup_errors=True) as folder:
            section = PARTS[name].measure(Path(folder))
        write(section, order)
        print(section.printed(), flush=True)  # noqa: T201  # the command's whole purpose


if __name__ == "__main__":
    main()
