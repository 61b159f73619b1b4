"""Where a store's file stands: permissions, file system, disk space, and what a flush costs there. Nothing is kept."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Final

from strandline.limits import (
    DISK_FREE_BYTES_MIN,
    DISK_FREE_SHARE,
    FLUSH_BYTES,
    FLUSH_FAST_US,
    FLUSH_PROBES,
    FLUSH_SLOW_US,
)
from strandline.model.diagnosis import Check, Trouble, failed, passed, warned

_NETWORK: Final = re.compile(
    r"nfs\d?|cifs|smb\w*|afs|ceph|lustre|glusterfs|gfs2?|ocfs2|beegfs|gpfs|fuse\.(sshfs|glusterfs|ceph\S*|s3fs|gcsfuse)"
)
_SHARED: Final = re.compile(r"9p|virtiofs|vboxsf|prl_fs|fuse\S*|drvfs")
_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    point: str
    type: str
    source: str


def look_at_place(path: Path) -> Iterator[Check]:
    """Yield the checks of a store's folder; the file itself need not be there."""
    folder = path.resolve().parent
    yield _file_system(mount_of(folder, _read_mounts()))
    yield _disk_space(path, folder)
    yield _flush(folder)


def look_at_files(path: Path) -> Iterator[Check]:
    """Yield the checks of who may read and write a store's files."""
    files = [file for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if file.exists()]
    closed = [file.name for file in files if not os.access(file, os.R_OK)]
    locked = [file.name for file in files if not os.access(file, os.W_OK)]
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    said = ", ".join(f"{name} {mode:03o}" for name, mode in modes.items())
    modes_told = {name: f"{mode:03o}" for name, mode in modes.items()}
    owner = f"chown or chmod {', '.join(closed or locked)}, or run as its owner."
    private = f"chmod o-rwx {shlex.join(map(str, files))}"
    if closed:
        yield failed("permissions", f"{said}; not readable", owner, Trouble.UNAVAILABLE, modes=modes_told)
    elif locked:
        yield failed("permissions", f"{said}; not writable", owner, Trouble.UNAVAILABLE, modes=modes_told)
    elif not os.access(path.resolve().parent, os.W_OK):
        advice = f"Make {path.resolve().parent} writable: SQLite keeps {path.name}-wal and -shm beside the file."
        yield failed("permissions", f"{said}; the folder is not writable", advice, Trouble.UNAVAILABLE)
    elif os.name != "posix":
        yield passed("permissions", "readable and writable")
    elif any(mode & stat.S_IWOTH for mode in modes.values()):
        advice = f"Anybody on this machine can change it: {private}"
        yield failed("permissions", f"{said}; writable for everyone", advice, Trouble.UNSAFE, modes=modes_told)
    elif any(mode & stat.S_IROTH for mode in modes.values()):
        advice = f"Anybody on this machine can read what the agents said: {private}"
        yield warned("permissions", f"{said}; readable for everyone", advice, modes=modes_told)
    else:
        yield passed("permissions", said, modes=modes_told)


def _read_mounts() -> str:
    return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape") if _MOUNTS.exists() else ""


def mount_of(folder: Path, mountinfo: str) -> Mount | None:
    """Return the file system that a folder stands on, by the text of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    found = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kinds) < 2:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        if folder.is_relative_to(point) and (found is None or len(point) >= len(found.point)):
            found = Mount(point, kinds[0], kinds[1])  # of two on one point the later hides the earlier
    return found


def _file_system(mount: Mount | None) -> Check:
    if mount is None:
        return passed("file system", f"unknown on {sys.platform}; keep the store on a local disk")
    value, told = f"{mount.type} at {mount.point}", {"type": mount.type, "mount": mount.point}
    if _NETWORK.fullmatch(mount.type):
        advice = "Move the store to a local disk: SQLite's WAL needs memory that all its processes share."
        return failed("file system", f"{value}: over the network", advice, Trouble.UNSAFE, **told)
    if _SHARED.fullmatch(mount.type):
        advice = "Keep all processes that open the store on one machine and one mount, or move it to a local disk."
        return warned("file system", f"{value}: shared with another system", advice, **told)
    if mount.type in _MEMORY:
        return warned("file system", f"{value}: in memory", "A restart loses the store: move it to a disk.", **told)
    if mount.type == "overlay":
        advice = "A container's own layer goes with the container: put the store on a volume."
        return warned("file system", f"{value}: a container's layer", advice, **told)
    return passed("file system", value, **told)


def _disk_space(path: Path, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    size, wal = size_of(path), size_of(Path(f"{path}-wal"))
    wanted = max(DISK_FREE_BYTES_MIN, wal + int(size * DISK_FREE_SHARE))
    value = f"{in_bytes(free)} free; store {in_bytes(size)}, WAL {in_bytes(wal)}"
    told = {"free_bytes": free, "store_bytes": size, "wal_bytes": wal, "wanted_bytes": wanted}
    if free < max(wal, DISK_FREE_BYTES_MIN // 4):
        advice = f"Free {in_bytes(wanted)} on this disk: appends are about to fail."
        return failed("disk space", value, advice, Trouble.UNAVAILABLE, **told)
    if free < wanted:
        return warned("disk space", value, f"Free {in_bytes(wanted)} on this disk before it runs full.", **told)
    return passed("disk space", value, **told)


def _flush(folder: Path) -> Check:
    """Measure what it takes until the disk says that it has written: FLUSH_PROBES times, in a file that is not kept."""
    flush = getattr(os, "fdatasync", os.fsync)
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".strandline-doctor-") as file:
            took = []
            for _ in range(FLUSH_PROBES + 1):  # the first one makes the file longer, and is not counted
                os.lseek(file.fileno(), 0, os.SEEK_SET)
                os.write(file.fileno(), os.urandom(FLUSH_BYTES))
                began = perf_counter_ns()
                flush(file.fileno())
                took.append((perf_counter_ns() - began) // 1_000)
    except OSError as error:
        return warned("flush", f"not measured: {error.strerror}", "Make the folder writable, or free some space.")
    micros = int(median(took[1:]))
    value, told = f"{micros:,} µs for {FLUSH_BYTES} bytes, median of {FLUSH_PROBES}", {"median_us": micros}
    if micros < FLUSH_FAST_US:
        advice = "No disk is so fast: this one, or the virtual machine, may not flush. Power loss may cost commits."
        return warned("flush", value, advice, **told)
    if micros > FLUSH_SLOW_US:
        return warned("flush", value, "Each commit waits so long: append in batches, or use a faster disk.", **told)
    return passed("flush", value, **told)


def size_of(path: Path) -> int:
    """Return the bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def in_bytes(number: float) -> str:
    """Return a size for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} TiB"
