"""A tap on the system calls by which a program changes files: seen, failed, shortened, or the last that it ever makes.

    tap = Tap(folder)
    run = tap.record(program)                                   # every change of a file under the folder, in order
    run = tap.strike(program, Strike(7, Deed.TORN, keep_bytes=512))  # the eighth of them is cut short, then SIGKILL

`program` runs in a fork of this process, so that what this one has imported is there at once. It is given a function
`report(text)`, for what its parent must know although it dies: reports outlive it.

How: the child asks to be traced (ptrace) and filters its own calls (seccomp), so that it stops only at those of
`calls.py`, before each; the rest costs nothing. A call that is failed never reaches the kernel: it gets the number -1.
A process that gets SIGKILL in such a stop does not make the call. Threads and forks of the child are followed.

What is changed through a mapping of memory makes no call. In a SQLite store that is only the index of the WAL
(`…-shm`), which is worth nothing once no process is left.

Linux on x86_64 only; `why_not()` says whether it goes here.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn

from tests.crash.calls import (
    NAMES,
    NUMBERS,
    OPENS,
    Create,
    Link,
    Mark,
    Operation,
    Reader,
    Rename,
    Sync,
    Truncate,
    Unlink,
    Write,
)

__all__ = [
    "Create",
    "Deed",
    "Link",
    "Mark",
    "Operation",
    "Program",
    "Rename",
    "Report",
    "Run",
    "Strike",
    "Sync",
    "Tap",
    "Truncate",
    "Unlink",
    "Write",
    "why_not",
]

Report = Callable[[str], None]
Program = Callable[[Report], None]

HUNG_S: Final = 60  # a program that runs longer gets SIGALRM

# ------------------------------------------------------------------------------------------------ what is done


class Deed(Enum):
    """What becomes of the call that is struck."""

    BEFORE = "before"  # SIGKILL instead of it
    AFTER = "after"  # SIGKILL when it is done
    TORN = "torn"  # a write of `keep_bytes` only, then SIGKILL; of a call that is no write: as BEFORE
    EIO = "EIO"  # not made; answers that the disk failed
    ENOSPC = "ENOSPC"  # not made; answers that the disk is full
    FULL = "full"  # as ENOSPC, and so is every later call that needs space, until the program reports something


_ERRORS: Final = {Deed.EIO: errno.EIO, Deed.ENOSPC: errno.ENOSPC, Deed.FULL: errno.ENOSPC}


@dataclass(frozen=True, slots=True)
class Strike:
    """Which call, counted from 0 in the order of `Run.operations`, and what becomes of it."""

    call: int
    deed: Deed
    keep_bytes: int = 0


@dataclass(slots=True)
class Run:
    """What one run of a program did, and how it ended."""

    operations: list[Operation | Mark] = field(default_factory=list)  # of a recorded run only
    reports: list[str] = field(default_factory=list)
    calls: int = 0
    struck: Operation | None = None  # the call that the strike met; None: the program ended before
    exit: int = 0  # the exit code; of a signal the number, negative


# ------------------------------------------------------------------------------------------------ Linux, x86_64

_ARCH: Final = 0xC000003E
_SIZE = ctypes.c_ulong * 27  # struct user_regs_struct
_ORIG_RAX, _RAX = 15, 10
_ARGUMENTS: Final = (14, 13, 12, 7, 9, 8)  # rdi rsi rdx r10 r8 r9
_LENGTH: Final = 12  # rdx: of write and pwrite64

_TRACEME, _CONT, _GETREGS, _SETREGS, _SYSCALL, _SETOPTIONS = 0, 7, 12, 13, 24, 0x4200
_OPTIONS: Final = 0x1 | 0x2 | 0x4 | 0x8 | 0x80 | 0x100000  # SYSGOOD, FORK, VFORK, CLONE, SECCOMP, EXITKILL
_AT_SECCOMP: Final = signal.SIGTRAP | 7 << 8
_WALL: Final = 0x40000000
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_LOAD, _IF_EQUAL, _IF_ANY, _RETURN = 0x20, 0x15, 0x45, 0x06  # BPF
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16  # struct seccomp_data

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)


def _filter() -> bytes:
    """Return the BPF program that stops at the calls of `calls.py`; at an open only where it may change a file."""

    def line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    lines = [line(_LOAD, _ARCH_AT), line(_IF_EQUAL, _ARCH, 1, 0), line(_RETURN, _ALLOW), line(_LOAD, _NUMBER_AT)]
    for name, number in NUMBERS.items():
        if name in OPENS:
            lines += [
                line(_IF_EQUAL, number, 0, 4),
                line(_LOAD, _ARGUMENTS_AT + 8 * OPENS[name]),
                line(_IF_ANY, os.O_CREAT | os.O_TRUNC, 0, 1),
                line(_RETURN, _TRACE),
                line(_RETURN, _ALLOW),
            ]
        else:
            lines += [line(_IF_EQUAL, number, 0, 1), line(_RETURN, _TRACE)]
    return b"".join([*lines, line(_RETURN, _ALLOW)])


def _install(program: bytes) -> None:
    lines = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HxxxxxxQ", len(program) // 8, ctypes.addressof(lines))  # struct sock_fprog
    if _libc.prctl(_NO_NEW_PRIVS, 1, None, 0, 0) or _libc.prctl(_SET_SECCOMP, _FILTER, pointer, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp is not permitted")


def why_not() -> str | None:
    """Return why nothing can be tapped here, or None."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the tap reads registers of x86_64 on Linux; this is {platform.machine()} on {sys.platform}"
    try:
        run = Tap(Path(os.devnull)).record(lambda report: report("here"))
    except OSError as error:
        return f"tracing is not permitted here: {error}"
    return None if run.reports == ["here"] else f"a traced process does not run here: {run.reports}"


# ------------------------------------------------------------------------------------------------ the tap


class Tap:
    """Runs programs and watches the calls by which they change files under one folder.

    Raises, from `record` and `strike`:
        OSError: tracing is not permitted.
        NotImplementedError: the program changed a file by a call that is not understood (`calls.py`).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())
        self._filter = _filter()

    def record(self, program: Program) -> Run:
        """Run the program to its end; `operations` of the answer has each change of a file, and each report."""
        return self._run(program, None)

    def strike(self, program: Program, strike: Strike) -> Run:
        """Run the program, and strike one of its calls."""
        return self._run(program, strike)

    def _run(self, program: Program, strike: Strike | None) -> Run:
        sys.stdout.flush()
        sys.stderr.flush()
        with _reports() as reports:
            child = os.fork()
            if child == 0:
                self._be_traced(program, reports)
            try:
                run = _Watch(child, reports, self._folder, strike).until_the_end()
            except BaseException:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, _WALL)
                raise
            size = os.fstat(reports).st_size
            run.reports = [json.loads(line) for line in os.pread(reports, size, 0).splitlines()]
            return run

    def _be_traced(self, program: Program, reports: int) -> NoReturn:
        """Be the child."""

        def report(text: str) -> None:
            os.write(reports, json.dumps(text).encode() + b"\n")

        code = 1
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(HUNG_S)
            if _libc.ptrace(_TRACEME, 0, None, None):
                os._exit(ctypes.get_errno())
            os.kill(os.getpid(), signal.SIGSTOP)
            _install(self._filter)
            program(report)
            code = 0
        except BaseException:  # noqa: BLE001 - told; a fork must not go on as its parent
            report(traceback.format_exc())
        os._exit(code)


@contextmanager
def _reports() -> Iterator[int]:
    """Yield a file in memory, which a program and its parent share."""
    reports = os.memfd_create("reports")
    try:
        yield reports
    finally:
        os.close(reports)


class _Watch:
    """One run, seen from the parent: lets the child go on from stop to stop."""

    def __init__(self, child: int, reports: int, folder: str, strike: Strike | None) -> None:
        self._child = child
        self._reader = Reader(folder, os.fstat(reports).st_ino)
        self._strike = strike
        self._run = Run()
        self._full = False
        self._registers = _SIZE()
        self._place = ctypes.addressof(self._registers)

    def until_the_end(self) -> Run:
        _, status = os.waitpid(self._child, _WALL)
        if not os.WIFSTOPPED(status):
            raise PermissionError(os.WEXITSTATUS(status), f"ptrace: {os.strerror(os.WEXITSTATUS(status))}")
        self._trace(_SETOPTIONS, self._child, _OPTIONS)
        self._trace(_CONT, self._child)
        self._follow()
        return self._run

    def _follow(self) -> None:
        known = {self._child}
        while True:
            thread, status = os.waitpid(-self._child, _WALL)  # its process group
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                known.discard(thread)
                if thread == self._child:
                    self._run.exit = os.waitstatus_to_exitcode(status)
                    return
            elif status >> 8 == _AT_SECCOMP:
                self._at_call(thread)
            else:
                first, number = thread not in known, os.WSTOPSIG(status)
                known.add(thread)  # a new thread begins in a SIGSTOP of its own
                self._trace(_CONT, thread, 0 if first or number == signal.SIGTRAP else number)

    def _trace(self, request: int, thread: int, data: int = 0) -> None:
        if _libc.ptrace(request, thread, None, data) == -1 and ctypes.get_errno() != errno.ESRCH:  # ESRCH: killed
            raise OSError(ctypes.get_errno(), f"ptrace({request})")

    # -------------------------------------------------------------------------------------------- one call

    def _at_call(self, thread: int) -> None:
        """Look at a call that is about to be made, and do what the strike says."""
        self._trace(_GETREGS, thread, self._place)
        registers = self._registers
        name = NAMES[registers[_ORIG_RAX]]
        arguments = [registers[at] for at in _ARGUMENTS]
        strike = self._strike
        operation = self._reader.understand(
            thread, name, arguments, read=strike is None or strike.call == self._run.calls
        )
        if isinstance(operation, Mark):
            self._full = False
            if strike is None:
                self._run.operations.append(operation)
        elif operation is not None:
            self._run.calls += 1
            if strike is None:
                self._record(thread, name, operation)
                return
            if strike.call == self._run.calls - 1:
                self._run.struck = operation
                self._hit(thread, strike, isinstance(operation, Write))
                return
            if self._full and isinstance(operation, Write | Create):
                self._fail(thread, errno.ENOSPC)
                return
        self._trace(_CONT, thread)

    def _record(self, thread: int, name: str, operation: Operation) -> None:
        """Let it be made, and keep it."""
        answer = self._finish(thread)
        if answer < 0 or (isinstance(operation, Write) and answer < len(operation.data)):
            raise OSError(-answer, f"undisturbed, {name} was not done: {operation}")
        self._run.operations.append(operation)
        self._trace(_CONT, thread)

    def _hit(self, thread: int, strike: Strike, is_write: bool) -> None:
        if strike.deed in _ERRORS:
            self._full = strike.deed is Deed.FULL
            self._fail(thread, _ERRORS[strike.deed])
            return
        torn = strike.deed is Deed.TORN and is_write
        if torn:
            self._registers[_LENGTH] = min(strike.keep_bytes, self._registers[_LENGTH])
            self._trace(_SETREGS, thread, self._place)
        if torn or strike.deed is Deed.AFTER:
            self._finish(thread)
        os.kill(self._child, signal.SIGKILL)

    def _fail(self, thread: int, number: int) -> None:
        self._registers[_ORIG_RAX] = ctypes.c_ulong(-1).value
        self._registers[_RAX] = ctypes.c_ulong(-number).value
        self._trace(_SETREGS, thread, self._place)
        self._trace(_CONT, thread)

    def _finish(self, thread: int) -> int:
        """Let the call be made, and return its answer."""
        self._trace(_SYSCALL, thread)
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError(f"somebody else ended process {self._child}")
        self._trace(_GETREGS, thread, self._place)
        return ctypes.c_long(self._registers[_RAX]).value
