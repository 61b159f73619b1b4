"""Every command stands in one section of the help, and `python -m strandline` is the command line."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import typer

from strandline.cli.app import app
from strandline.cli.sections import OTHERS, SECTIONS, in_sections


def test_every_command_stands_in_one_section() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    named = Counter(name for names in SECTIONS.values() for name in names)
    assert set(named) == set(commands)
    assert set(named.values()) == {1}


def test_a_command_of_no_section_is_listed_all_the_same() -> None:
    assert in_sections(["verify", "brew", "append"]) == {"Write": ["append"], "Operate": ["verify"], OTHERS: ["brew"]}


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "strandline", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Usage: strandline " in done.stdout
    assert all(f"{title}:" in done.stdout for title in SECTIONS)
