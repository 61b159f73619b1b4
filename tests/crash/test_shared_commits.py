"""Law (I1, I2): eight threads share commits, the process is killed, and what any of them was told is durable.

Checked by a child that says each acknowledged key on its stdout, and a parent that kills it after some number of them.
"""

import os
import signal
import subprocess
import sys

import pytest

import strandline

pytestmark = pytest.mark.long

CHILD = """
import sys, threading
import strandline

with strandline.open(sys.argv[1]) as db:
    wf = db.tenant("acme").workflow("release")

    def work(name):
        for number in range(10_000):
            key = f"{name}-{number}"
            wf.append([strandline.message("user", f"{key} of vol-{number % 50:04d}", key=key), strandline.note(key)])
            sys.stdout.write(key + "\\n")
            sys.stdout.flush()

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("acknowledged", [1, 9, 50, 130])
def test_what_was_acknowledged_is_durable(tmp_path, acknowledged):
    path = tmp_path / "s.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("release").append(strandline.note("first"))
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(acknowledged)]
        os.kill(child.pid, signal.SIGKILL)
        told += child.stdout.read().split("\n")[:-1]  # what was said before the kill, but for a line that was cut
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("release")
        texts = [event.text for event in wf.events(1)]
        assert [event.seq for event in wf.events(1)] == list(range(1, len(texts) + 1))
        said, noted = texts[1::2], texts[2::2]
        assert [text.split()[0] for text in said] == noted, "each batch is there whole, and nothing stands between"
        assert set(told) <= set(noted)
        assert len(noted) - len(told) <= 8, "one unacknowledged batch a thread"
        for name in {key.split("-")[0] for key in noted}:
            own = [int(key.split("-")[1]) for key in noted if key.startswith(f"{name}-")]
            assert own == list(range(len(own)))
        assert db.verify().ok
