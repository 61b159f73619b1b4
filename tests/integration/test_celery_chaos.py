"""Law (C26, C35, I5, I6): the chaos of `bench/celery_chaos.py`, small: workers, broker and PostgreSQL are killed, and
each compaction is activated exactly once.
"""

import json

import pytest

from bench.celery_chaos import main

pytestmark = pytest.mark.long

JOBS = 24
WITHIN_S = 180
WORDS = f"--broker pgmq --jobs {JOBS} --workers 2 --kill-each 5 --lease-s 3 --sweep-s 1 --within-s {WITHIN_S}"


def test_each_compaction_is_activated_once_whatever_dies(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*WORDS.split(), "--json", "--quiet"])
    counts = json.loads(capsys.readouterr().out)
    assert (counts["violations"], code) == ([], 0)
    assert counts["activated_once"] == JOBS
    assert counts["workers_killed"] >= 3
    assert (counts["broker_killed"], counts["postgres_killed"]) == (1, 1)
