"""A warm process (`python -m assets.dagster_internals.warm`): Dagster and the code location are imported early.

It executes the runs that its parent sends, one after another, in its main thread, where an interrupt can reach them.
"""

import argparse
import logging
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from queue import SimpleQueue

from dagster import DagsterInstance
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module
from dagster._grpc.impl import core_execute_run
from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt
from dagster_shared.error import SerializableErrorInfo

from assets.core.processes import line_to_parent
from assets.core.runs import DEFINITIONS_MODULE
from assets.workers.queues import INTERRUPT, RUN, Reports
from pipelines.enrichment.enrichment import prepare
from storage.core import logs
from storage.core.models import Queue
from storage.core.settings import Settings

log = logging.getLogger(__name__)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.dagster_internals.warm", description=__doc__)
    parser.add_argument("queue", help="shown by ps; that of enrichment reads lists and rules first")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    parser.add_argument("--nice", type=int, default=0, help="how far behind the other processes it stands")
    options = parser.parse_args()
    os.nice(options.nice)
    logs.to_stderr(f"worker {options.queue}", Settings())
    line = line_to_parent()
    reports = Reports(line)
    with capture_interrupts(), DagsterInstance.get() as instance:
        sent = listen(line)
        repository = warm_repository(options.module)
        reports.free()
        if options.queue == Queue.ENRICHMENT:
            prepare()  # a run that comes meanwhile waits no longer than if it had to do so itself
        while (run_id := sent.get()) is not None:
            pop_captured_interrupt()  # one that came too late for the run before
            execute(instance, repository, run_id)
            reports.free()


def listen(line: Connection) -> "SimpleQueue[str | None]":
    """The runs that the parent sends, None when it says stop. When the parent is gone, the process ends at once."""
    sent: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_hear, args=(line, sent), name="listen", daemon=True).start()
    return sent


def warm_repository(module: str) -> ReconstructableRepository:
    """The code location, with every job built once."""
    [target] = loadable_targets_from_python_module(module, working_directory=None)
    repository = ReconstructableRepository(ModuleCodePointer(module, target.attribute))
    repository.get_definition().get_all_jobs()
    return repository


def execute(instance: DagsterInstance, repository: ReconstructableRepository, run_id: str) -> None:
    """Execute one run. Whatever goes wrong is recorded with the run by Dagster itself."""
    run = instance.get_run_by_id(run_id)
    if run is None:
        log.error("run %s is not known to Dagster", run_id)
        return
    try:
        for event in core_execute_run(
            repository.get_reconstructable_job(run.job_name), run, instance, inject_env_vars=False
        ):
            if event.is_step_failure:
                error = event.step_failure_data.error
                log.error("step %s of run %s failed with %s", event.step_key, run_id, " < ".join(_names(error)))
    except BaseException as error:  # an interrupt is no Exception, and must not end the process
        log.error("run %s ended with %s", run_id, type(error).__name__)


def _names(error: SerializableErrorInfo | None) -> Iterator[str]:
    """The types of an error and of what it came from; their messages may quote a row."""
    while error is not None:
        yield str(error.cls_name)
        error = error.cause


def _hear(line: Connection, sent: "SimpleQueue[str | None]") -> None:
    while True:
        try:
            what, run_id = line.recv()
        except (EOFError, OSError):
            os._exit(1)
        if what == INTERRUPT:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            sent.put(run_id if what == RUN else None)


if __name__ == "__main__":
    main()
