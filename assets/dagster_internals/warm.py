"""A warm process (`python -m assets.dagster_internals.warm`), which imports Dagster and the code location in advance.

It executes the runs that its parent sends one after another, in the main thread, where an interrupt can stop them.
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
from assets.workers.queues import INTERRUPT, RUN, Signals
from pipelines.enrichment.enrichment import prepare
from storage.core import logs
from storage.core.memory import freeze_loaded
from storage.core.models import Queue
from storage.core.settings import Settings

log = logging.getLogger(__name__)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.dagster_internals.warm", description=__doc__)
    parser.add_argument("queue", help="the queue whose runs it executes; `enrichment` also loads lists and rules")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    parser.add_argument("--nice", type=int, default=0, help="the niceness to add: a higher one gives way to others")
    options = parser.parse_args()
    os.nice(options.nice)
    logs.log_to_stderr(f"worker {options.queue}", Settings())
    line = line_to_parent()
    signals = Signals(line)
    run_ids = receive_runs(line)  # before the instance, which may wait for its database: this notices a dead parent
    with capture_interrupts(), DagsterInstance.get() as instance:
        repository = warm_repository(options.module)
        signals.report_free()
        if options.queue == Queue.ENRICHMENT:
            prepare()  # after `report_free`: a run that is sent now would have to load the same itself
        freeze_loaded()
        while (run_id := run_ids.get()) is not None:
            pop_captured_interrupt()  # an interrupt that came too late for the previous run
            execute(instance, repository, run_id)
            signals.report_free()


def receive_runs(line: Connection) -> "SimpleQueue[str | None]":
    """Return a queue of the ids of runs that the parent sends, and of None for its message STOP.

    A thread fills it, which ends the process at once when the parent is gone.
    """
    run_ids: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(line, run_ids), name="receive", daemon=True).start()
    return run_ids


def warm_repository(module: str) -> ReconstructableRepository:
    """Import the code location and build every job once, so that the first run doesn't have to."""
    [target] = loadable_targets_from_python_module(module, working_directory=None)
    repository = ReconstructableRepository(ModuleCodePointer(module, target.attribute))
    repository.get_definition().get_all_jobs()
    return repository


def execute(instance: DagsterInstance, repository: ReconstructableRepository, run_id: str) -> None:
    """Execute one run. Dagster itself records failures with the run."""
    run = instance.get_run_by_id(run_id)
    if run is None:
        log.error("run %s is unknown to Dagster", run_id)
        return
    try:
        for event in core_execute_run(
            repository.get_reconstructable_job(run.job_name), run, instance, inject_env_vars=False
        ):
            if event.is_step_failure:
                error = event.step_failure_data.error
                log.error("step %s of run %s failed with %s", event.step_key, run_id, " < ".join(_error_types(error)))
    except BaseException as error:  # an interrupt is not an Exception, and must not end the process
        log.error("run %s ended with %s", run_id, type(error).__name__)


def _error_types(error: SerializableErrorInfo | None) -> Iterator[str]:
    """Yield the types of an error and its causes, but no messages, which may quote a row."""
    while error is not None:
        yield str(error.cls_name)
        error = error.cause


def _receive(line: Connection, run_ids: "SimpleQueue[str | None]") -> None:
    while True:
        try:
            command, run_id = line.recv()
        except (EOFError, OSError):
            os._exit(1)
        if command == INTERRUPT:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            run_ids.put(run_id if command == RUN else None)


if __name__ == "__main__":
    main()
