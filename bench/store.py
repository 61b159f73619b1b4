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
from pathlib import Path

from bench.page import write_page, write_readme

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
RESULTS = ROOT / "docs" / "results"
SHIM_SOURCE = ROOT / "bench" / "fixed_fsync.c"
FSYNC_US = 500
WAITING_SECTIONS = ("append", "clients", "peers")


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
            fixed = {**os.environ, "LD_PRELOAD": str(shim), "FIXED_FSYNC_US": str(FSYNC_US)}
            runs.append(measure(options, fixed))
            options += ["--reuse", *(word for name in WAITING_SECTIONS for word in ("--only", name))]
        runs.append(measure(options, dict(os.environ)))
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


def measure(options: list[str], environment: dict[str, str]) -> dict[str, object]:
    """Run `strandline bench store` with the Python that runs this."""
    program = "from strandline.cli import main; main()"
    words = [sys.executable, "-c", program, "bench", "store", "--json", *options]
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the benchmark ended with {done.returncode}: {done.stdout}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _options(asked: argparse.Namespace) -> list[str]:
    options = []
    for name in ("file", "events", "runs"):
        if (value := getattr(asked, name)) is not None:
            options += [f"--{name}", value]
    return options


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", help="a transcript; without one it is made")
    parser.add_argument("--events", help="sizes, as in `strandline bench store`")
    parser.add_argument("--runs", help="rounds that count")
    parser.add_argument("--dir", help="the folder on the disk that is to be measured", default=None)
    parser.add_argument("--page-only", action="store_true", help="write the page from store.json, measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
