"""`make run`: it does the main job on real transcripts, every claim holds, and the page can't be made to run data.

The demo runs as its users run it, in a process of its own; each test looks at what it printed and wrote.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import strandline
from demo.choices import look_at
from demo.crash import hits_in_store
from demo.markup import tag
from demo.visible import visible

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "demo" / "transcripts" / "api-tests.jsonl"
SCRIPT = "<script>alert(1)</script>"
BREAKOUT = f"</pre></details></table></style></title>{SCRIPT}<img src=x onerror=alert(1)>"


def run_demo(out: Path, file: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo.main_job", "--out", str(out)]
    command += ["--file", str(file)] if file else []
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


class Page(HTMLParser):
    """What a browser would make of the page: its elements, their attributes, its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("bundled")
    return out, run_demo(out)


def test_every_claim_holds_on_the_bundled_transcript(bundled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, ran = bundled
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert "FAILED" not in ran.stdout
    held = re.search(r"(\d+) of (\d+) checks held", ran.stdout)
    assert held is not None
    assert held[1] == held[2]
    assert ran.stdout.count("\n    ok  ") == int(held[1]) >= 20
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_the_report_says_what_the_main_job_promises(bundled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, ran = bundled
    said = " ".join(ran.stdout.split())
    for claim in (
        "it died by SIGKILL",
        "its half draft is nowhere in the store: 0 hits",
        "generation 1 is still the active summary, to the byte",
        "no gap, no overlap",
        "restore: the checkpoint (lineage 2) is newer",
        "sbx-7f3a91c2 survived, verbatim",
        "SummaryReconciliationError: generation 1",
        "recall finds it in the log, verbatim",
        "attempt 2 of the same job",
        "replay: the checkpoint (lineage 2) is older",
        "180 of 180 events stand in the log, byte for byte",
        "180 of 180 say what the file says",
        "importing the file once more adds 0 events",
        "verify: 180 events, 0 problems",
        "cut off at a length limit: malformed, in the end rejected; all events stay",
        "with an approval that nobody gave: semantic, in the end",
        "told what was wrong, it leaves the approval out: activated by attempt 2",
        "facts in force stand word for word, whatever the model forgot",
    ):
        assert claim in said


def test_the_store_that_it_leaves_holds_what_it_printed(
    bundled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, _ = bundled
    with strandline.open(out / "store.db", create=False) as db:
        log = db.tenant("default").workflow("transcript")
        context = log.context()
        assert (context.generation, context.revision) == (2, 180)
        assert db.verify().ok
        kinds = [entry.kind.value for entry in log.lineage()]
    assert kinds == ["compaction", "checkpoint", "restore", "answer", "compaction", "replay"]


def test_the_page_needs_no_network_and_runs_one_script_of_its_own(
    bundled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    page = Page(bundled[0] / "report.html")
    assert len(page.named("script")) == 1
    policy = next(m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    loading = {"src", "srcset", "data", "poster", "action", "ping"}
    for name, attributes in page.elements:
        assert name not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert not loading & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in (ROOT / "demo" / "templates" / "report.css").read_text(encoding="utf-8")


def test_each_dropped_reference_links_to_the_event_where_it_still_stands(
    bundled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    page = Page(bundled[0] / "report.html")
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    targets = {(a["href"] or "")[1:] for a in page.named("a")}
    assert targets <= ids
    assert {f"e{seq}" for seq in range(1, 181)} <= ids
    assert "/run/sbx/keys/db.pem" in page.words


def test_wide_things_stand_in_boxes_and_dates_in_one_piece(
    bundled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    html = (bundled[0] / "report.html").read_text(encoding="utf-8")
    tables = re.findall(r'<div class="[^"]*\bscroll\b[^"]*"[^>]*><table', html)
    assert len(tables) == html.count("<table") == 3
    assert '<span class="nowrap">2026-03-12T12:00:00+00:00</span>' in html
    assert re.search(r'<dd><span class="nowrap">[\d,]+ → [\d,]+</span>', html)


def test_hostile_data_stays_data(tmp_path: Path) -> None:
    """Law: whatever a transcript holds, the page's elements are ours, and no control reaches the terminal."""
    records: list[dict[str, object]] = [
        {
            "kind": "message",
            "role": "user" if number % 2 else "assistant",
            "actor": f"{SCRIPT}\x1b[31m",
            "text": f"{BREAKOUT} handle-{number:04d}-zz9 \x1b[2J\u202e\x00 [red]x[/red] " + "so many words " * 30,
            "refs": [f'"><script>alert({number})</script>', f"https://x.example/{number}?<b>"],
        }
        for number in range(80)
    ]
    records.append({"kind": "constraint", "subject": f'"><{SCRIPT}', "text": BREAKOUT})
    records.append({"kind": "artifact", "subject": BREAKOUT, "handle": "<svg/onload=alert(1)>", "text": BREAKOUT})
    file = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    try:
        file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    except OSError:  # a file system without such names
        file = tmp_path / "hostile.jsonl"
        file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    ran = run_demo(tmp_path / "out", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not {"\x1b", "\x00", "\u202e"} & set(ran.stdout)
    page = Page(tmp_path / "out" / "report.html")
    assert len(page.named("script")) == 1
    assert not page.named("img")
    assert not page.named("b")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert SCRIPT in page.words
    assert "[U+202E]" in page.words


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"kind":"message","role":"user","text":"x"}\n{"kind":"mess', "line 2, byte 44"),
        (b'{"a": 1}\n', "line 1, byte 0"),
        (b'{"kind":"message","role":"user","text":"\xff"}\n', "line 1, byte 40"),
    ],
    ids=["torn", "unknown", "not UTF-8"],
)
def test_a_file_that_cannot_be_imported_gets_a_typed_error(tmp_path: Path, content: bytes, error: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(content)
    ran = run_demo(tmp_path / "out", file)
    assert ran.returncode == 1
    assert "error: " + error in ran.stderr
    assert "\nhint: " in ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("what", ["none", "folder", "pipe"])
def test_a_file_that_cannot_be_read_is_an_error_and_leaves_no_old_page(tmp_path: Path, what: str) -> None:
    file, out = tmp_path / "given", tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("of an earlier run", encoding="utf-8")
    if what == "folder":
        file.mkdir()
    elif what == "pipe":
        os.mkfifo(file)
    ran = run_demo(out, file)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: '")
    assert "\nhint: Give a transcript" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (out / "report.html").exists()


def test_a_file_without_the_right_to_read_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)  # chmod stops no test that runs as root
    with pytest.raises(strandline.InvalidInputError, match="can't be read: Permission denied") as refused:
        look_at(BUNDLED)
    assert "make run FILE=path" in refused.value.hint


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_events_shows_nothing_and_claims_nothing(tmp_path: Path, content: bytes) -> None:
    file, out = tmp_path / "empty.jsonl", tmp_path / "out"
    file.write_bytes(content)
    ran = run_demo(out, file)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "the file holds no event; nothing to show" in ran.stdout
    assert "held" not in ran.stdout
    assert not (out / "report.html").exists()


def test_a_file_too_small_to_compact_says_so(tmp_path: Path) -> None:
    file = tmp_path / "small.jsonl"
    file.write_bytes(BUNDLED.read_bytes().splitlines(keepends=True)[0])
    ran = run_demo(tmp_path / "out", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "nothing to compact" in ran.stdout
    assert (tmp_path / "out" / "report.html").exists()


def test_small_files_of_every_length_go_through(tmp_path: Path) -> None:
    """Where a budget can't hold what must stay verbatim, the demo says so and takes a larger one."""
    whole = BUNDLED.read_bytes().splitlines(keepends=True)
    for lines in (7, 12):
        file = tmp_path / f"{lines}.jsonl"
        file.write_bytes(b"".join(whole[:lines]))
        ran = run_demo(tmp_path / "out", file)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_conversations_of_openai_go_through(tmp_path: Path) -> None:
    function = {"name": "t", "arguments": '{"n": 1}'}
    talk = [
        {"role": "user", "content": "look up \u00e4-7f3a"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
    ]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"task_id": n, "messages": talk} for n in range(3)]))
    ran = run_demo(tmp_path / "out", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "9 of 9 say what the file says" in ran.stdout


@pytest.mark.parametrize("form", ["list", "indented list", "request", "list of one", "conversations"])
def test_one_json_document_is_cut_by_its_messages_and_shows_the_whole_job(tmp_path: Path, form: str) -> None:
    messages: list[dict[str, object]] = [{"role": "system", "content": "Be brief."}]
    for n in range(120):
        messages.append({"role": "user", "content": f"Look at /srv/app/{n}.py and at job-{n:04x}. " + "Mind it. " * 20})
        messages.append({"role": "assistant", "content": f"I looked at job-{n:04x}. " + "All is well there. " * 20})
    forms: dict[str, object] = {
        "request": {"model": "m", "messages": messages, "n": 1},
        "list of one": [{"messages": messages}],
        "conversations": [{"messages": messages[n : n + 24]} for n in range(0, 240, 24)],
    }
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(forms.get(form, messages), indent=1 if form == "indented list" else None))
    ran = run_demo(tmp_path / "out", file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    parts = "first 6 of 10 conversations" if form == "conversations" else "first 144 of 241 messages"
    assert f"Import the {parts}" in ran.stdout
    assert "it died by SIGKILL" in ran.stdout
    assert "Recover" in ran.stdout


def test_blocks_and_items_are_found_in_the_file_in_whatever_order_its_members_stand(tmp_path: Path) -> None:
    blocks = [
        {"role": "user", "content": "look up k-7f3a"},
        {"content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"q": 1}}], "role": "assistant"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]},
        {"role": "assistant", "content": "It is there.", "reasoning_content": "Let me see."},
    ]
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": '{"q": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "found"},
    ]
    for content, events in (({"messages": blocks, "system": "Be brief."}, 6), (items, 4)):
        file = tmp_path / "chat.json"
        file.write_text(json.dumps(content))
        ran = run_demo(tmp_path / "out", file)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert f"{events} of {events} say what the file says" in ran.stdout


def test_it_does_not_remove_what_it_did_not_make(tmp_path: Path) -> None:
    theirs = tmp_path / "store.db"
    theirs.write_text("not ours", encoding="utf-8")
    ran = run_demo(tmp_path, theirs)
    assert ran.returncode == 2
    assert theirs.read_text(encoding="utf-8") == "not ours"


def test_the_search_for_a_half_draft_finds_what_is_there(tmp_path: Path) -> None:
    """Without this, 0 hits would prove nothing: the search sees plain values and compressed ones."""
    store = tmp_path / "s.db"
    short, long = "needle-in-a-short-body", "needle-in-a-long-body " + "hay " * 200
    with strandline.open(store) as db:
        db.tenant("default").workflow("w").append([strandline.message("user", text) for text in (short, long)])
        assert hits_in_store(store, "needle-in-a-short-body") > 0
        assert hits_in_store(store, "needle-in-a-long-body") > 0
        assert hits_in_store(store, "needle-nowhere") == 0


def test_markup_escapes_text_and_attributes() -> None:
    assert tag("a", '<&"', href='"><b>') == '<a href="&quot;&gt;&lt;b&gt;">&lt;&amp;&quot;</a>'
    assert visible("a\x1bb\ud800\u202ec\n\t") == "a␛b[U+D800][U+202E]c\n\t"
