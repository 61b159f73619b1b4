"""The command line as a process: streams, exit codes, pipes, a terminal, Ctrl-C.

Each test starts `strandline` as a shell would, and looks at both streams and the code.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo" / "transcripts" / "api-tests.jsonl"
STRANDLINE = [sys.executable, "-c", "from strandline.cli import main; main()"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "STRANDLINE_DEBUG", "TERM")}
    return kept | {"STRANDLINE_STORE": str(tmp_path / "store.db"), "TERM": "xterm-256color"}


def run(env: dict[str, str], *args: object) -> subprocess.CompletedProcess[str]:
    command = [*STRANDLINE, *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


def on_a_terminal(env: dict[str, str], *args: object) -> tuple[int, str]:
    """Run with a terminal as stdout and stderr, and return the code and all that it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*STRANDLINE, *map(str, args)], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:  # Linux says EIO when the other end is closed
        pass
    os.close(ours)
    return process.wait(60), shown.decode()


def test_the_whole_job(env: dict[str, str]) -> None:
    done = run(env, "compact", DEMO, "--budget", 6000)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("default/api-tests: generation 1 activated\n  imported")
    for args in (
        ("checkpoint", "--turn", 3, "--state", '{"n": 1}'),
        ("recover",),
        ("recall", "oauth-scope"),
        ("manifest",),
        ("lineage",),
        ("verify",),
    ):
        result = run(env, *args)
        assert result.returncode == 0, args
        assert (result.stderr != "") == (args == ("recover",)), args
        assert "\x1b" not in result.stdout + result.stderr
        as_json = run(env, *args, "--json")
        assert as_json.stderr == ""
        assert isinstance(json.loads(as_json.stdout), dict)
    assert json.loads(run(env, "recover").stdout) == {"n": 1}
    refused = run(env, "recover", "--needs", "never-seen-7")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "\x1b" not in refused.stderr
    assert "hint: " in refused.stderr


def test_failures_keep_to_their_streams(env: dict[str, str]) -> None:
    human = run(env, "verify")
    assert (human.returncode, human.stdout) == (7, "")
    assert human.stderr.splitlines()[0].startswith("error: ")
    assert human.stderr.splitlines()[1].startswith("hint: ")
    as_json = run(env, "verify", "--json")
    assert (as_json.returncode, as_json.stderr) == (7, "")
    assert json.loads(as_json.stdout)["error"]["type"] == "StoreUnavailableError"


def test_colours_and_progress_on_a_terminal_only(env: dict[str, str]) -> None:
    code, shown = on_a_terminal(env, "compact", DEMO, "--budget", 6000)
    assert code == 0
    assert "importing api-tests.jsonl" in shown
    assert "\x1b[1;32mdefault/api-tests: generation 1 activated\x1b[0m" in shown
    code, shown = on_a_terminal(env, "recover", "--needs", "never-seen-7")
    assert code == 3
    assert "\x1b[1;31merror:\x1b[0m" in shown
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_a_terminal(env | plain, "recover", "--needs", "never-seen-7")[1]


def test_a_pipe_that_nobody_reads_ends_quietly(env: dict[str, str]) -> None:
    run(env, "import", DEMO)
    for args in (["context"], ["context", "--json"], ["verify"]):
        process = subprocess.Popen([*STRANDLINE, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(60) == 141
        assert "error" not in said
        assert "Traceback" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(env: dict[str, str]) -> None:
    run(env, "import", DEMO)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*STRANDLINE, "verify"], env=env, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1
    assert b"No space left" in result.stderr


def test_a_stream_that_holds_no_utf_8(env: dict[str, str]) -> None:
    run(env, "append", "--workflow", "w", "--text", "é → 😀")
    plain = env | {"PYTHONIOENCODING": "ascii"}
    assert json.loads(run(plain, "context", "--json").stdout)["parts"][0]["text"] == "é → 😀"
    assert run(plain, "context").stdout == "\\xe9 \\u2192 \\U0001f600\n"


def test_ctrl_c_ends_without_a_traceback(env: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import sys, time, strandline\n"
        "def slow(*args, **options):\n"
        "    print('started', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "strandline.Workflow.compact = slow\n"
        "from strandline.cli import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "compact", str(DEMO)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"started\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"error: interrupted\n")
    assert json.loads(run(env, "verify", "--json").stdout)["ok"]


def test_the_commands_load_no_engine_before_they_need_it(env: dict[str, str]) -> None:
    code = (
        "import sys, strandline.model.outcome\n"
        "slow = ('strandline.engine', 'strandline.stores', 'strandline.client', 'rich')\n"
        "for name in [name for name in sys.modules if name.startswith(slow)]:\n"
        "    del sys.modules[name]\n"
        "import strandline.cli.app\n"
        "print([name for name in sys.modules if name.startswith(slow)])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_version(env: dict[str, str]) -> None:
    result = run(env, "--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("strandline 0.")
