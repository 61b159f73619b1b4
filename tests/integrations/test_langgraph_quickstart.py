"""Law (I18): the agent of the quickstart goes on after kill -9, wherever it dies, and does nothing twice."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import strandline

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "langgraph-quickstart.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
_, COMMANDS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PARTS = 12
SEEDS = range(2)
HUNG_S = 120
POLL_S = 0.01
DEATHS = ROOT / "tests" / "integrations" / "quickstart_deaths.py"
DIED = 9
MIN_DEATHS = 100  # 53 crossings, each twice

pytestmark = pytest.mark.long


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the program runs in: `python` is this one."""
    (tmp_path / "agent.py").write_text(PROGRAM, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.parametrize("seed", SEEDS)
def test_it_goes_on_after_each_kill_and_uploads_each_part_once(
    seed: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    chance = random.Random(seed)
    for part in sorted(chance.sample(range(1, PARTS), k=3)):
        kill_after(part, chance.uniform(0, 0.4), tmp_path, environment)
    run = [sys.executable, "agent.py"]
    for _ in range(2):  # what is done is done: running it again adds nothing
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"All {PARTS} parts are uploaded.\n"), done.stderr
        check(tmp_path)


def test_it_goes_on_wherever_it_dies_beside_the_checkpointer(tmp_path: Path, environment: dict[str, str]) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(PROGRAM.replace("time.sleep(0.2)", "time.sleep(0.002)"), encoding="utf-8")
    run = [sys.executable, str(DEATHS), str(agent), str(tmp_path)]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(deaths) > MIN_DEATHS
    for death in deaths:
        assert death["codes"] == [DIED, 0]
        assert death["told"] == f"All {PARTS} parts are uploaded.\n", death
        check(Path(death["folder"]))


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, environment: dict[str, str]) -> None:
    run = ["bash", "-c", COMMANDS]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"All {PARTS} parts are uploaded." in done.stdout, done.stderr
    check(tmp_path)


def kill_after(part: int, wait_s: float, folder: Path, environment: dict[str, str]) -> None:
    """Start the program, and kill it some time after it uploaded a part."""
    running = subprocess.Popen([sys.executable, "agent.py"], cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + HUNG_S
    while len(uploaded(folder)) < part and running.poll() is None:
        assert time.monotonic() < deadline, "the program hangs"
        time.sleep(POLL_S)
    time.sleep(wait_s)
    running.kill()
    assert running.wait() in (-signal.SIGKILL, 0)


def uploaded(folder: Path) -> list[str]:
    bucket = folder / "bucket.txt"
    return bucket.read_text(encoding="utf-8").splitlines() if bucket.exists() else []


def check(folder: Path) -> None:
    assert sorted(uploaded(folder)) == sorted(f"part-{n}" for n in range(1, PARTS + 1))
    with strandline.open(folder / "agent.db") as db:
        workflow = db.tenant("acme").workflow("release-42")
        assert workflow.context().generation > 0, "it was to be compacted on the way"
        assert not workflow.cases()
        assert db.verify().ok
