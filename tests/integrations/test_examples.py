"""Law: every example runs by itself, without a key and without a network, and ends with the line that it promises.

The last line of an example's docstring says it: ``It ends with: …``. Those that take a store run on PostgreSQL, too.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ON_ANY_STORE = [path for path in EXAMPLES if "sys.argv[1]" in path.read_text("utf-8")]
TIMEOUT_S = 300
NO_NETWORK = """
import socket

_found = socket.getaddrinfo

def _only_here(host, *rest, **named):
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        raise OSError(f"an example asks for the network: {host}")
    return _found(host, *rest, **named)

socket.getaddrinfo = _only_here
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    run(path, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("path", ON_ANY_STORE, ids=lambda path: path.stem)
def test_example_runs_on_postgres(path: Path, tmp_path: Path, postgres_url: str) -> None:
    run(path, tmp_path, postgres_url)


def test_every_guest_runs_on_postgres() -> None:
    elsewhere = {"claude_code", "mcp_server"}  # programs of their own: the first keeps its file beside the sessions
    assert {path.stem for path in EXAMPLES} - {path.stem for path in ON_ANY_STORE} == elsewhere


def run(path: Path, folder: Path, *arguments: str) -> None:
    """Run an example without keys and without a network, and hold it to its promise."""
    promised = re.findall(
        r"^It ends with: (.+)$", ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "", re.MULTILINE
    )
    assert len(promised) == 1, f"{path.name}: its docstring must say `It ends with: …` once"
    (folder / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == promised[0]
