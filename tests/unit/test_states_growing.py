"""Law (I3, I4): a list that is saved by what is new of it is kept as if it had been saved whole: the same parts in the
same blocks, each once. What is read in part, replaced in part, or pruned up to a position leaves the rest as it was.
"""

import random

import pytest

from strandline import InvalidInputError, StateValue, StateWrite
from strandline.limits import STATE_BLOCK_NODES
from tests.unit.test_engine_stage import STORES, open_store
from tests.unit.test_states import many, one, texts_of


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def states(db):
    return db.tenant("acme").workflow("thread-1").states


def behind(after, *texts):
    return StateValue(many(*texts).parts, many=True, after=after)


def held(states):
    """Return how each state holds its list, and how many nodes there are."""
    with states._env.read() as tx:
        rows = {row.state_id: [list(map(len, value.digits)) for _, value in row.values] for row in tx.states.all()}
        return rows, len(list(tx.nodes.all()))


class TestAListThatGrows:
    def test_is_kept_as_if_it_were_saved_whole(self, db):
        chance = random.Random(7)
        new, whole = (db.tenant("acme").workflow(name).states for name in ("by-what-is-new", "whole"))
        texts, parent = [], None
        for number in range(60):
            after = chance.choice([len(texts), len(texts), chance.randint(0, len(texts))])
            more = [f"message {chance.randint(0, 10**9)}" for _ in range(chance.choice([0, 1, 1, 2, 17, 40, 300]))]
            texts = texts[:after] + more
            new.save(f"s{number}", {"m": behind(after, *more) if after else many(*more)}, parent=parent)
            whole.save(f"s{number}", {"m": many(*texts)}, parent=parent)
            parent = f"s{number}"
            assert texts_of(new.load().values["m"]) == texts
        assert held(new) == held(whole)
        db.verify()

    def test_repeated_it_answers_as_before(self, states):
        states.save("s1", {"m": many("a", "b")})
        first = states.save("s2", {"m": behind(2, "c")}, parent="s1")
        again = states.save("s2", {"m": behind(1, "b", "c")}, parent="s1")
        assert (first.created, again.created, again.position) == (True, False, first.position)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (behind(4, "x"), "fewer"),
            (StateValue(one("x").parts, after=1), "after=1 is of lists"),
            (behind(-1, "x"), "after=-1"),
        ],
    )
    def test_of_more_than_there_is_it_is_refused(self, states, value, said):
        states.save("s1", {"m": many("a", "b", "c"), "n": one("y")})
        with pytest.raises(InvalidInputError, match=said):
            states.save("s2", {"m": value}, parent="s1")
        with pytest.raises(InvalidInputError, match="fewer"):
            states.save("s2", {"n": behind(1, "x")}, parent="s1")
        with pytest.raises(InvalidInputError, match="does not hold 'q'"):
            states.save("s2", {"q": behind(1, "x")}, parent="s1")
        with pytest.raises(InvalidInputError, match="is whole"):
            states.write("s1", [StateWrite(task="t", index=0, channel="c", value=behind(1, "x"))])
        assert states.load().state_id == "s1"

    def test_what_it_costs_follows_what_is_new(self, states):
        texts = [f"message {number}" for number in range(STATE_BLOCK_NODES**2)]
        states.save("s0", {"m": many(*texts)})
        _, before = held(states)
        states.save("s1", {"m": behind(len(texts), "one more")}, parent="s0")
        assert held(states)[1] == before + 1


class TestInPart:
    def test_values_of_some_names_come_with_the_writes(self, states):
        states.save("s1", {"a": one("x"), "b": one("y")})
        states.write("s1", [StateWrite(task="t", index=0, channel="c", value=one("w"))])
        found = states.load(values=["b"])
        assert (set(found.values), len(found.writes)) == ({"b"}, 1)
        found = states.load(values=False)
        assert (set(found.values), len(found.writes)) == (set(), 0)
        assert [set(state.values) for state in states.list(values=())] == [set()]

    def test_some_writes_are_replaced_and_others_stay(self, states):
        def written(*pairs):
            return [StateWrite(task="t", index=index, channel="c", value=one(text)) for index, text in pairs]

        states.save("s1", {})
        states.write("s1", written((0, "first"), (-3, "asked")))
        states.write("s1", written((0, "second"), (-3, "asked again"), (1, "new")), replace=[-3])
        assert {w.index: texts_of(w.value) for w in states.load().writes} == {
            -3: ["asked again"],
            0: ["first"],
            1: ["new"],
        }

    def test_a_prune_ends_at_the_position_that_was_seen(self, states):
        for number in range(4):
            states.save(f"s{number}", {"a": one(str(number))}, parent=f"s{number - 1}" if number else None)
        states.write("not yet", [StateWrite(task="t", index=0, channel="c", value=one("w"))])
        assert states.prune([("", "s1")], through=2) == 1
        assert [state.state_id for state in states.list()] == ["s3", "s2", "s1"]
        states.save("not yet", {}, parent="s3")
        assert len(states.load().writes) == 1
