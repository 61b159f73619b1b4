"""Law: the documentation says what the code does.

1. Every Python block runs: those of one file in order, in one namespace, in an empty folder.
2. Every command line runs, with the exit code that its comment names, and its commands and options exist.
3. Every relative link leads to a file.
4. Names are spelled as in the code: constants with their values, classes, exported errors, files, places.
5. The glossary has every class that the other pages speak of, and every exported error.
6. Each guarantee is named by a test where the page says so.
7. Every decision has its sections and stands in the index.
"""

import builtins
import importlib
import inspect
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import UnionType

import pytest

import strandline
from strandline import limits

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "strandline"
GLOSSARY = DOCS / "glossary.md"
DECISIONS = sorted((DOCS / "adr").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")), *DECISIONS]
SECTIONS = ("## Context", "## Decision", "## Consequences", "## Why someone could have decided otherwise")

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
CONSTANT = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`(?: \(([\d.,]+)\))?")
CLASS = re.compile(r"[A-Z][a-z]+[A-Za-z]*")
FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|sql|toml|md)|(?:[\w.-]+/)+")
MAIN = "import strandline.cli; strandline.cli.main()"
EXIT_CODE = re.compile(r"# exit code (\d+)")

# what the page on references shows of what the extractor finds
EXAMPLES = {"MAX_RETRIES", "CheckpointStore", "JavaScript", "Makefile"}
HOOKS = {"PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "Stop", "PreToolUse"}  # events of Claude Code
FOREIGN = {"BaseCheckpointSaver", "BaseStore", "SummarizationMiddleware", *HOOKS, *vars(builtins)}


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(path.read_text(encoding="utf-8")) if language in languages]


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def modules() -> list[str]:
    found = pkgutil.walk_packages(strandline.__path__, "strandline.")
    return [name for _, name, _ in found if name.split(".")[1] != "cli"]


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """Every name that stands at the top of a module; the command line has none that a page speaks of."""
    found: dict[str, object] = {}
    for module in modules():
        found.update(vars(importlib.import_module(module)))
    return found


def command_lines() -> list[tuple[Path, str]]:
    lines = []
    for page in PAGES:
        for body in blocks(page, "console", "bash", "sh"):
            lines += [(page, line) for line in body.splitlines() if line.startswith("strandline ")]
    return lines


# ---------------------------------------------------------------------------------------------- what runs


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=page_id)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "docs"}
    for number, body in enumerate(blocks(page, "python"), start=1):
        exec(compile(body, f"{page_id(page)}, block {number}", "exec"), namespace)


def test_readme_example_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    bodies, shown = blocks(ROOT / "README.md", "python"), blocks(ROOT / "README.md", "text")
    assert len(bodies) == len(shown) == 2
    for body, printed in zip(bodies, shown, strict=True):
        exec(compile(body, "README.md", "exec"), namespace)
        assert capsys.readouterr().out == printed
    (line,) = re.findall(r"`(strandline [^`]* --tenant acme)`", prose(ROOT / "README.md"))  # shows what was written
    words, wide = [sys.executable, "-c", MAIN, *shlex.split(line)[1:]], {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(words, env=wide, capture_output=True, text=True, check=True)
    assert "logs/run-7.txt" in done.stdout


@pytest.mark.parametrize("page", sorted({page for page, _ in command_lines()}), ids=page_id)
def test_command_lines_run(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "demo" / "transcripts", tmp_path / "demo" / "transcripts")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
    for of, line in command_lines():
        if of == page:
            words = [sys.executable, "-c", MAIN, *shlex.split(line, comments=True)[1:]]
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            wanted = EXIT_CODE.search(line)
            assert done.returncode == (int(wanted[1]) if wanted else 0), f"{line}\n{done.stdout}{done.stderr}"


def test_commands_and_options_exist() -> None:
    import typer

    from strandline.cli.app import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for page, line in command_lines():
        command, *words = shlex.split(line, comments=True)[1:]
        assert command in commands, f"{page_id(page)}: {line}"
        found = commands[command]
        if words and hasattr(found, "commands"):  # a group
            found = found.commands[words[0]]
        options = {option for parameter in found.params for option in parameter.opts}
        given = {word for word in words[: words.index("--") if "--" in words else None] if word.startswith("--")}
        assert given <= options, f"{page_id(page)}: {line}"
    for page in PAGES:
        for code in CODE.findall(prose(page)):
            if match := re.match(r"strandline ([a-z]+(?:-[a-z]+)*)\b", code):
                assert match[1] in commands, f"{page_id(page)}: {code}"


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        for code in CODE.findall(prose(page)):
            if match := re.match(r"make ([a-z]+(?:-[a-z]+)*)", code):
                assert match[1] in targets, f"{page_id(page)}: {code}"


# ---------------------------------------------------------------------------------------------- what is named


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_relative_links_lead_to_files(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, _ = target.partition("#")
            assert (page.parent / path).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_constants_are_those_of_the_code(page: Path, names: dict[str, object]) -> None:
    for name, value in CONSTANT.findall(prose(page)):
        if name in EXAMPLES or name.startswith(("STRANDLINE_", "OPENAI_", "ANTHROPIC_")):
            continue
        assert name in names, name
        if value:
            assert float(value.replace(",", "")) == names[name], f"{name} is {names[name]}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_classes_are_those_of_the_code_and_stand_in_the_glossary(page: Path, names: dict[str, object]) -> None:
    glossary = GLOSSARY.read_text(encoding="utf-8")
    for code in CODE.findall(prose(page)):
        name = code.split(".")[0].split("(")[0]
        if not CLASS.fullmatch(name) or name in EXAMPLES | FOREIGN:
            continue
        if page.name == "references.md" and name not in names:
            continue  # an example of a reference
        assert inspect.isclass(names.get(name)) or isinstance(names.get(name), UnionType), f"{name} is no class"
        assert re.search(rf"\b{name}\b", glossary), f"{name} is not in the glossary"


def test_every_exported_error_stands_in_the_glossary() -> None:
    exported = {name: getattr(strandline, name) for name in strandline.__all__}
    errors = {name for name, kind in exported.items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    section = GLOSSARY.read_text(encoding="utf-8").split("## Errors")[1]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == errors


@pytest.mark.parametrize("page", [GLOSSARY, DOCS / "architecture.md", DOCS / "guarantees.md"], ids=page_id)
def test_places_in_the_code_exist(page: Path) -> None:
    rooms = {path.stem for path in PACKAGE.iterdir()}
    for code in CODE.findall(prose(page)):
        dotted = code.removeprefix("strandline.")
        if re.fullmatch(r"[a-z_]+(\.\w+)+", dotted) and dotted.split(".")[0] in rooms and not FILE.fullmatch(dotted):
            resolve(f"strandline.{dotted}")


def resolve(dotted: str) -> object:
    """Return what a dotted name means, or fail."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


@pytest.mark.parametrize("page", [DOCS / "architecture.md", *DECISIONS], ids=page_id)
def test_files_that_are_named_exist(page: Path) -> None:
    for code in CODE.findall(prose(page)):
        if FILE.fullmatch(code) and not code.startswith("."):
            assert any((folder / code).exists() for folder in (PACKAGE, ROOT)), code


def test_every_file_of_the_core_is_named_in_the_architecture() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for room in ("model", "rules", "engine", "client"):
        for path in (PACKAGE / room).glob("*.py"):
            if path.name != "__init__.py":
                assert path.name in text, f"{room}/{path.name}"


def test_every_limit_has_a_use() -> None:
    """A limit that nothing obeys would be a promise that nobody keeps (I22)."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "limits.py")
    unused = {name for name in vars(limits) if name.isupper() and not re.search(rf"\b{name}\b", sources)}
    assert not unused


def test_each_guarantee_is_named_where_the_page_says_that_it_is_tested() -> None:
    rows = re.findall(r"^\| I(\d+) \|.*\| (.*)\|$", (DOCS / "guarantees.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 23))
    for number, places in rows:
        for folder in LINK.findall(places):
            sources = (path.read_text(encoding="utf-8") for path in (DOCS / folder).glob("*.py"))
            assert any(int(number) in invariants(source) for source in sources), f"I{number} in {folder}"


def invariants(text: str) -> set[int]:
    """Return the numbers of the invariants that a text names, alone or as a range."""
    found = {int(number) for number in re.findall(r"\bI(\d{1,2})\b", text)}
    for first, last in re.findall(r"\bI(\d{1,2})[–-]I?(\d{1,2})\b", text):
        found.update(range(int(first), int(last) + 1))
    return found


# ---------------------------------------------------------------------------------------------- the decisions


@pytest.mark.parametrize("page", DECISIONS, ids=page_id)
def test_a_decision_has_its_sections_and_stands_in_the_index(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert "**Status:** " in text
    places = [text.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert f"(adr/{page.name})" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_index_has_each_decision_once_in_order() -> None:
    listed = re.findall(
        r"^- \[(\d{4})\]\(adr/([\w-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for _, name in listed] == [page.name for page in DECISIONS]
    assert all(name.startswith(number) for number, name in listed)
