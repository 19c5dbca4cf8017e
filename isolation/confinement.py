"""Give up a process's rights, for good, before it reads an untrusted file.

Resource limits apply on every system that has them (macOS has none for memory). On Linux the process also moves to an
empty network namespace, if the system lets it create one, and so has no network. Since Linux 5.13, Landlock also
restricts files: the process can't write any, and can read programs and their data, but no key and no file of the
lake.

This file imports only the standard library, so that it can be run as a script, which confines itself and then executes
another program:

    python -I -S confinement.py MEMORY_BYTES CPU_S PARENT_PID READABLE PROGRAM [ARGUMENT…]

READABLE is a list of paths joined as in the variable PATH.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

OPEN_FILES: Final = 32  # pipes, and the libraries and data files that are open at the same time; our judgement
NICENESS: Final = 5  # processes that answer requests go first
SYSTEM_PATHS: Final = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")

_NEW_USER_AND_NETWORK: Final = 0x10000000 | 0x40000000  # CLONE_NEWUSER | CLONE_NEWNET
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38  # options of prctl
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock's system calls, the same on all architectures
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_RULESET, _RULE = struct.Struct("=QQQ"), struct.Struct("=Qi")
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
# File access to forbid, by Landlock version: every bit that the version knows except bit 0, executing a program. From
# version 4 also TCP (bind, connect), from version 6 also abstract sockets and signals.
_FILES: Final = {1: (1 << 13) - 2, 2: (1 << 14) - 2, 3: (1 << 15) - 2}
_BIND_AND_CONNECT, _SOCKETS_AND_SIGNALS = 3, 3


def confine(
    memory_bytes: int, cpu_s: int, parent_pid: int, readable: Iterable[str], *, starts_threads: bool = False
) -> None:
    """Confine this process as far as the system can.

    Afterwards it can write no file, start no process and use no network, and it dies with its parent.

    Args:
        memory_bytes: address space that it may take, beyond what it has now.
        cpu_s: processor time, in seconds.
        parent_pid: the id of the process that started this one. If the parent has already ended, this process exits.
        readable: files and folders that this process may still read.
        starts_threads: whether it may start threads. Then it may also start processes, because the kernel has one limit
            for both; they are confined like it.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(_NEW_USER_AND_NETWORK)  # first: the change of credentials would undo the next setting
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _restrict_files(libc, readable)
    if os.getppid() != parent_pid:
        sys.exit(1)
    os.nice(NICENESS)
    _limit(resource.RLIMIT_AS, _address_space() + memory_bytes)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)  # SIGXCPU at the first, SIGKILL at the second
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    if not starts_threads:
        _limit(resource.RLIMIT_NPROC, 0)  # has no effect on root


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    """Set a resource limit, but never above one that the operator has set."""
    allowed = resource.getrlimit(what)[1]
    soft, hard = (limit if allowed == resource.RLIM_INFINITY else min(limit, allowed) for limit in (soft, hard or soft))
    with suppress(OSError, ValueError):  # macOS doesn't support RLIMIT_AS
        resource.setrlimit(what, (soft, hard))


def _address_space() -> int:
    """Return the address space of this process in bytes; 0 where the system doesn't report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    """Restrict file access as far as this kernel's version of Landlock can; do nothing where there is no Landlock."""
    version = libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:
        return
    forbidden = _RULESET.pack(
        _FILES[min(version, max(_FILES))],
        _BIND_AND_CONNECT if version >= 4 else 0,
        _SOCKETS_AND_SIGNALS if version >= 6 else 0,
    )
    # Only the members that this kernel's version of Landlock knows.
    known_bytes = len(forbidden) if version >= 6 else 16 if version >= 4 else 8
    rules = libc.syscall(_CREATE_RULESET, forbidden, known_bytes, 0)
    if rules < 0:
        return
    for path in (*SYSTEM_PATHS, *readable):
        _allow_reading(libc, rules, path)
    libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow_reading(libc: ctypes.CDLL, rules: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not every system has all of these paths
        return
    allowed = _READ_FILE | _READ_FOLDER if os.path.isdir(path) else _READ_FILE
    libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, _RULE.pack(allowed, descriptor), 0)
    os.close(descriptor)


if __name__ == "__main__":
    memory, cpu, started_by, folders, *command = sys.argv[1:]
    confine(int(memory), int(cpu), int(started_by), folders.split(os.pathsep))
    os.execv(command[0], command)
