"""Law: the shim answers each flush of a real program, as the kernel would, and refuses what is no open file."""

import os
import shutil
import subprocess
import sys

import pytest

from bench.store import build_shim

PROGRAM = """
import errno, os, sqlite3, tempfile, time
from pathlib import Path

def spent(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun

with tempfile.TemporaryDirectory() as folder:
    with (Path(folder) / "a").open("wb") as file:
        assert spent(lambda: os.fsync(file.fileno())) >= 0.02
        assert spent(lambda: os.fdatasync(file.fileno())) >= 0.02
    db = sqlite3.connect(Path(folder) / "a.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE a (b)")
    assert spent(lambda: db.execute("INSERT INTO a VALUES (1)")) >= 0.02
    db.close()
try:
    os.fsync(9_999)
except OSError as error:
    assert error.errno == errno.EBADF
else:
    raise AssertionError("an fsync of no file went well")
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_a_flush_costs_its_price() -> None:
    environment = {**os.environ, "LD_PRELOAD": str(build_shim()), "FIXED_FSYNC_US": "20000"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
