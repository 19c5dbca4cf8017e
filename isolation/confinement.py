"""A process gives up what it doesn't need, for good, before it touches what a stranger sent.

Limits hold anywhere. Linux also takes away the network (a namespace of its own, where a process may make one) and the
file system (Landlock, since 5.13): nothing is written, and only programs and their data are read, no key and no lake.

This file imports nothing but the standard library and can be run: it confines itself and becomes another program.

    python -I -S confinement.py MEMORY_BYTES CPU_S PARENT READABLE PROGRAM [ARGUMENT…]
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

OPEN_FILES: Final = 32
NICENESS: Final = 5  # whoever answers requests goes first
OF_THE_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")

_NEW_USER_AND_NETWORK: Final = 0x10000000 | 0x40000000  # CLONE_NEWUSER | CLONE_NEWNET
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38  # of prctl
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls of Landlock, the same on all machines
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_RULESET, _RULE = struct.Struct("=QQQ"), struct.Struct("=Qi")
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
# By version: what of files is forbidden, then of TCP, then of signals and abstract sockets. Starting programs is bit 0.
_FILES: Final = {1: (1 << 13) - 2, 2: (1 << 14) - 2, 3: (1 << 15) - 2}
_BIND_AND_CONNECT, _SOCKETS_AND_SIGNALS = 3, 3


def confine(memory_bytes: int, cpu_s: int, parent: int, readable: Iterable[str]) -> None:
    """Bound this process: it writes no file, starts no process, has no network and dies with its parent.

    Args:
        memory_bytes: of addresses, beyond what it has now.
        parent: the process that started it. If that has ended already, this one ends here.
        readable: files and folders that it may still read.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(_NEW_USER_AND_NETWORK)  # before the next, which new credentials would undo
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _keep_from_files(libc, readable)
    if os.getppid() != parent:
        sys.exit(1)
    os.nice(NICENESS)
    _limit(resource.RLIMIT_AS, _addresses() + memory_bytes)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)  # told at the first, killed at the second
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit(resource.RLIMIT_NPROC, 0)  # root isn't held by it


def _limit(what: int, most: int, hard: int | None = None) -> None:
    """At most what is allowed already: a limit that an operator set stays."""
    allowed = resource.getrlimit(what)[1]
    soft, hard = (each if allowed == resource.RLIM_INFINITY else min(each, allowed) for each in (most, hard or most))
    with suppress(OSError, ValueError):  # macOS knows the limit of addresses by name only
        resource.setrlimit(what, (soft, hard))


def _addresses() -> int:
    """Bytes of addresses that this process has; 0 where the system doesn't say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _keep_from_files(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    """A ring around this process, as tight as the version of Landlock makes it; none where there is none."""
    version = libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:
        return
    forbidden = _RULESET.pack(
        _FILES[min(version, max(_FILES))],
        _BIND_AND_CONNECT if version >= 4 else 0,
        _SOCKETS_AND_SIGNALS if version >= 6 else 0,
    )
    rules = libc.syscall(_CREATE_RULESET, forbidden, len(forbidden) if version >= 6 else 16 if version >= 4 else 8, 0)
    if rules < 0:
        return
    for path in (*OF_THE_SYSTEM, *readable):
        _let_read(libc, rules, path)
    libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _let_read(libc: ctypes.CDLL, rules: int, path: str) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not every system has all of them
        return
    allowed = _READ_FILE | _READ_FOLDER if os.path.isdir(path) else _READ_FILE
    libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, _RULE.pack(allowed, place), 0)
    os.close(place)


if __name__ == "__main__":
    memory, cpu, started_by, folders, *command = sys.argv[1:]
    confine(int(memory), int(cpu), int(started_by), folders.split(os.pathsep))
    os.execv(command[0], command)
