"""Keep one server process for as long as the program that asked for it lives, and not longer.

`tools/servers.py` starts this file as a process of its own, with what to keep as one JSON object, and talks to it by
lines. The keeper is the server's parent, so it can tell a death from a slow answer. When its own parent is gone, in
whatever way, it ends the server and removes the folder.

    start   -> "started PID"
    alive   -> "alive", or "ended CODE"
    kill    -> "killed N": SIGKILL of the server and its children at once; none of the N is left
    stop    -> "stopped": the server is ended, the folder removed, the keeper leaves

Only the standard library, so that it starts in a few milliseconds.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

PARENT_LOOK_S = 0.5  # how often a parent that left its pipe to somebody else is noticed
POLL_S = 0.005
END_DEADLINE_S = 10  # of a server that was asked to end; then it is killed
GONE_DEADLINE_S = 10  # of killed processes
PR_SET_PDEATHSIG, IPC_RMID = 1, 0
SHARED_MEMORY_LINE = 6  # of PostgreSQL's postmaster.pid: "key id"


class Kept(TypedDict):
    """What to keep."""

    command: list[str]
    environment: dict[str, str]
    folder: str  # the server's own, removed at the end
    log: str
    user: int | None  # None: this process's own
    group: int | None
    stop_signal: int


def children_of(pid: int) -> Iterator[int]:
    """Yield the processes whose parent is `pid`; none where there is no /proc."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(after_name[1]) == pid:
            yield int(stat.parent.name)


def runs(pid: int) -> bool:
    """Tell whether the process is there and no zombie that only waits to be reaped by somebody else."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return not Path("/proc/self").exists()


def die_with_parent() -> None:
    """Ask the kernel for a SIGQUIT when the keeper dies; where it can't be asked, only the keeper ends the server."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Keeper:
    """The parent of one server."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server, unless it runs."""
        if self.process is None or self.process.poll() is not None:
            with Path(self.kept["log"]).open("ab") as log:
                self.process = subprocess.Popen(
                    self.kept["command"],
                    env=self.kept["environment"],
                    cwd=self.kept["folder"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    user=self.kept["user"],
                    group=self.kept["group"],
                    extra_groups=None if self.kept["user"] is None else [],
                    preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
                )
        return f"started {self.process.pid}"

    def alive(self) -> str:
        """Say whether the server runs."""
        code = None if self.process is None else self.process.poll()
        return "alive" if self.process is not None and code is None else f"ended {code}"

    def kill(self) -> str:
        """SIGKILL the server and its children; when this returns, none of them runs."""
        if self.process is None or self.process.poll() is not None:
            return "killed 0"
        pid = self.process.pid
        os.kill(pid, signal.SIGSTOP)  # so that it starts no child meanwhile
        doomed = [pid, *children_of(pid)]
        for each in doomed:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        deadline = time.monotonic() + GONE_DEADLINE_S
        while any(runs(each) for each in doomed[1:]):
            if time.monotonic() > deadline:
                return f"failed: of {doomed[1:]} some still run {GONE_DEADLINE_S} s after SIGKILL"
            time.sleep(POLL_S)
        return f"killed {len(doomed)}"

    def stop(self) -> str:
        """End the server in the quickest orderly way and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.kept["stop_signal"])
            try:
                self.process.wait(END_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self._remove_shared_memory()
        shutil.rmtree(self.kept["folder"], ignore_errors=True)
        return "stopped"

    def _remove_shared_memory(self) -> None:
        """Remove the segment that a killed PostgreSQL leaves behind; it is a few bytes, but the system has few."""
        try:
            lines = (Path(self.kept["folder"]) / "data" / "postmaster.pid").read_text().splitlines()
            segment = int(lines[SHARED_MEMORY_LINE].split()[1])
        except (OSError, IndexError, ValueError):
            return
        ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def main() -> None:
    """Obey until told to stop or left alone."""
    keeper = Keeper(json.loads(sys.argv[1]))
    parent = int(sys.argv[2])
    commands = {"start": keeper.start, "alive": keeper.alive, "kill": keeper.kill}
    heard = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], PARENT_LOOK_S)[0]:
            continue
        piece = os.read(0, 4096)
        if not piece:
            break
        heard += piece
        while b"\n" in heard:
            line, _, heard = heard.partition(b"\n")
            if line == b"stop":
                print(keeper.stop(), flush=True)
                return
            print(commands[line.decode()](), flush=True)
    keeper.stop()


if __name__ == "__main__":
    main()
