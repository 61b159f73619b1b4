"""Measure the store for its page: `make bench`.

Twice, in processes of their own: all sections with each fsync at a fixed price (`bench/fixed_fsync.c`, preloaded);
then, as the disk is, those whose time is mostly waiting for it. What was measured goes to `docs/results/store.json`,
and from there to `docs/results/store.md`. Without a C compiler, or elsewhere than on Linux, there is no fixed price.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.page import write_page, write_readme
from tools.servers import missing_postgres, start_postgres

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
RESULTS = ROOT / "docs" / "results"
SHIM_SOURCE = ROOT / "bench" / "fixed_fsync.c"
FSYNC_US = 500
POSTGRES_VERSION = 18
WAITING_SECTIONS = ("append", "clients", "peers", "postgres")


def main() -> None:
    """Measure, and write the page."""
    asked = _arguments()
    if asked.page_only:
        publish()
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    shim = build_shim()
    with tempfile.TemporaryDirectory(prefix="strandline-bench-", dir=asked.dir) as folder:
        options = ["--dir", folder, *_options(asked)]
        runs = []
        if shim:
            runs.append(measure(options, {"LD_PRELOAD": str(shim), "FIXED_FSYNC_US": str(FSYNC_US)}, asked.dir))
            if not asked.only:
                options += [word for name in WAITING_SECTIONS for word in ("--only", name)]
            options.append("--reuse")
        runs.append(measure(options, {}, asked.dir))
    if asked.only:
        runs = merged(json.loads((RESULTS / "store.json").read_text(encoding="utf-8"))["runs"], runs, asked.only)
    command = f"make bench{' FILE=' + Path(asked.file).name if asked.file else ''}"
    (RESULTS / "store.json").write_text(json.dumps({"command": command, "runs": runs}, indent=1, ensure_ascii=False))
    publish()
    print(f"written: {RESULTS / 'store.md'}, and the table of peers in README.md")


def publish() -> None:
    """Write the page and the README's table from what is stored."""
    write_page(RESULTS)
    write_readme(ROOT / "README.md", json.loads((RESULTS / "store.json").read_text(encoding="utf-8")))


def build_shim() -> Path | None:
    """Compile the shim, where there is a compiler."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        print("bench: no C compiler on Linux: fsync is measured as it is only", file=sys.stderr)
        return None
    BUILD.mkdir(parents=True, exist_ok=True)
    built = BUILD / "fixed_fsync.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", built, SHIM_SOURCE], check=True)
    return built


def measure(options: list[str], added: dict[str, str], folder: str | None) -> dict[str, object]:
    """Run `strandline bench store` with the Python that runs this, beside a PostgreSQL server that is started for it.

    What is added to the environment is added to the server's, too: both pay the same for a flush.
    """
    program = "from strandline.cli import main; main()"
    words = [sys.executable, "-c", program, "bench", "store", "--json", *options]
    with ExitStack() as stack:
        if missing := missing_postgres(POSTGRES_VERSION):
            print(f"bench: {missing}", file=sys.stderr)
        else:
            place = None if folder is None else Path(folder)
            started = start_postgres(POSTGRES_VERSION, durable=True, folder=place, environment=added)
            words += ["--postgres", stack.enter_context(started).url()]
        environment = {**os.environ, **added}
        done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the benchmark ended with {done.returncode}: {done.stdout}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]], only: list[str]) -> list[dict[str, Any]]:
    """Return the stored runs with the figures of the sections that were measured again, and the higher load."""
    runs = []
    for before, after in zip(old, new, strict=True):
        kept = [figure for figure in _listed(before, "figures") if figure["section"] not in only]
        busiest = [max(pair) for pair in zip(_listed(before, "load"), _listed(after, "load"), strict=True)]
        runs.append({**before, "load": busiest, "figures": [*kept, *_listed(after, "figures")]})
    return runs


def _listed(run: dict[str, Any], name: str) -> list[Any]:
    found = run[name]
    if not isinstance(found, list):
        raise TypeError(f"a run has a list of {name}")
    return found


def _options(asked: argparse.Namespace) -> list[str]:
    options = []
    for name in ("file", "events", "runs"):
        if (value := getattr(asked, name)) is not None:
            options += [f"--{name}", value]
    options += [word for name in asked.only for word in ("--only", name)]
    return options


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", help="a transcript; without one it is made")
    parser.add_argument("--events", help="sizes, as in `strandline bench store`")
    parser.add_argument("--runs", help="rounds that count")
    parser.add_argument("--only", action="append", default=[], help="this section only; the others stay as they are")
    parser.add_argument("--dir", help="the folder on the disk that is to be measured", default=None)
    parser.add_argument("--page-only", action="store_true", help="write the page from store.json, measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
