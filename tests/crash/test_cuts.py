"""Law (I19): what `cuts.py` checks, on a slice of it; that it finds a store that does not read back; and its proxy.

The whole table is walked through by `python tests/crash/cuts.py --seed 0 --count 20000`.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import strandline
from strandline.engine import append as append_module
from strandline.engine import environment
from tests.crash.cut_verbs import VERBS
from tests.crash.cuts import COMMIT_CUTS, JOURNEY_CUTS, JOURNEY_EVERY, Cell, Trial
from tests.crash.proxy import Proxy

PROGRAM = Path(__file__).with_name("cuts.py")
CELLS = 8  # of each verb, in a slice
SLICE = ("append:without a key", "checkpoint")  # a log entry, and an entry of the lineage
LANDS = ("ended before the answer", "reset before the answer", "reset within the answer")
NEVER_LANDS = ("ended before the commit", "reset before the commit", "ended within the commit")


@pytest.fixture(scope="module")
def trial():
    with Trial() as trial:
        yield trial


def scene_of(trial, name):
    return trial.scene(next(verb for verb in VERBS if verb.name == name))


def faults_of(trial, name, cuts):
    """Return what is found where the first commit of a verb is cut in these ways."""
    scene = scene_of(trial, name)
    units = [trial.run(scene, Cell(1, True, cut)) for cut in COMMIT_CUTS if cut.name in cuts]
    assert [unit.met["cuts"] for unit in units] == [1] * len(cuts)
    return [fault for unit in units for fault in unit.faults]


@pytest.mark.parametrize("name", SLICE)
def test_whatever_cuts_a_commit_it_happened_once(trial, name):
    scene = scene_of(trial, name)
    for cut in COMMIT_CUTS:
        unit = trial.run(scene, Cell(scene.commits, True, cut))
        assert (unit.faults, unit.met["cuts"]) == ([], 1), (cut, unit.story)
        assert unit.met["landed"] == (cut.waits and cut.sends == "all"), cut
        answered = cut.sends == "all" and cut.then in ("", "answer", "reads") and not cut.kills
        if answered and cut.waits:
            assert unit.met["answered"] == 1, (cut, unit.story)


def test_a_journey_that_is_cut_changes_nothing(trial):
    scene = scene_of(trial, "checkpoint")
    for journey in (1, scene.journeys // 2, scene.journeys - 1):
        for cut in JOURNEY_CUTS:
            unit = trial.run(scene, Cell(journey, False, cut))
            assert unit.faults == [], (journey, cut, unit.story)


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_slice_of_each_verb(trial, verb):
    scene = trial.scene(verb)
    for cell in random.Random(1).sample(scene.cells, CELLS):
        unit = trial.run(scene, cell)
        assert unit.faults == [], (cell, unit.story)


@pytest.mark.long
def test_the_programme_says_what_it_did_and_any_unit_is_repeated_alone():
    def run(seed, count):
        command = [sys.executable, str(PROGRAM), "--seed", str(seed), "--count", str(count), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
        told = json.loads(done.stdout.splitlines()[-1])
        assert (told["count"], told["violations"]) == (count, 0)
        return {name for name in told["detail"] if name.startswith(("cut ", "verb "))}

    assert run(7, 3) == run(7, 1) | run(8, 1) | run(9, 1)


def test_the_whole_table_is_walked_through(trial):
    """In any number of units behind each other, none is left out and none comes twice before all have come."""
    scene = scene_of(trial, SLICE[0])
    alone = Trial.__new__(Trial)
    alone._verbs, alone._scenes = (scene.verb,), {scene.verb.name: scene}
    drawn = [alone.draw(seed)[1] for seed in range(JOURNEY_EVERY * len(scene.cells))]
    assert set(drawn) == set(scene.cells)
    commits = [cell for cell in drawn if cell.at_commit]
    assert len(set(commits[: len(COMMIT_CUTS)])) == len(COMMIT_CUTS)


# ---------------------------------------------------------------------------------------------- it can fail


def test_a_lost_answer_that_is_taken_for_a_failure_is_found(trial, monkeypatch):
    """Nothing is read back, and it is said that nothing was written: then it is there twice."""

    def say_no(store, scope, before, after, error):
        raise strandline.StoreUnavailableError("nothing was written") from error

    monkeypatch.setattr(environment, "read_back", say_no)
    for name in SLICE:
        assert any("all of it is there" in fault for fault in faults_of(trial, name, LANDS)), name
        assert faults_of(trial, name, NEVER_LANDS) == []


def test_a_lost_answer_that_is_taken_for_success_is_found(trial, monkeypatch):
    monkeypatch.setattr(environment, "read_back", lambda *_: None)
    for name in SLICE:
        assert any("it answered, and differs" in fault for fault in faults_of(trial, name, NEVER_LANDS)), name


def test_a_commit_that_is_done_again_without_a_look_is_found(trial, monkeypatch):
    """Who does it again where the answer was lost does it twice, and where it did not happen once."""

    def say_unknown(store, scope, before, after, error):
        raise error

    append = append_module.append

    def again(*args, **kwargs):
        try:
            return append(*args, **kwargs)
        except strandline.OutcomeUnknownError:
            return append(*args, **kwargs)

    monkeypatch.setattr(environment, "read_back", say_unknown)
    monkeypatch.setattr(append_module, "append", again)
    assert any("it answered, and differs" in fault for fault in faults_of(trial, SLICE[0], LANDS))
    assert faults_of(trial, SLICE[0], NEVER_LANDS) == []


def test_an_answer_that_comes_never_is_waited_for_no_longer_than_its_limit(trial):
    """I22: the connection stands, and the server says nothing; what came of the commit is read back."""
    (unit,) = [trial.run(scene_of(trial, SLICE[0]), Cell(1, True, cut)) for cut in COMMIT_CUTS if cut.stalls == "after"]
    assert (unit.met["answered"], unit.met["landed"], unit.faults) == (1, 1, [])


# ---------------------------------------------------------------------------------------------- the proxy


@pytest.mark.parametrize("prepare", [None, True])
def test_the_proxy_knows_commits_however_they_are_sent(postgres_url, prepare):
    target = psycopg.conninfo.conninfo_to_dict(postgres_url)
    proxy = Proxy(int(target["port"]))
    try:
        through = psycopg.conninfo.make_conninfo(
            postgres_url, host="127.0.0.1", port=str(proxy.port), sslmode="disable", gssencmode="disable"
        )
        with psycopg.connect(through, autocommit=True) as connection:
            proxy.arm(None)
            for statement in (
                "SELECT 1",
                "BEGIN",
                "SELECT 'COMMIT'",
                "COMMIT",
                "BEGIN",
                "commit;",
                "BEGIN",
                "ROLLBACK",
            ):
                connection.execute(statement, prepare=prepare)
            assert proxy.commits == 2
            assert proxy.journeys == 8 if prepare is None else proxy.journeys > 8
            with connection.transaction():
                connection.execute("SELECT 1", binary=True)
            assert proxy.commits == 3
    finally:
        proxy.close()
