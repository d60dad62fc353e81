"""Running: fetch structures, feeds, pruning, the order of reads and updates, the cache of signatures."""

from __future__ import annotations

from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from nets import perceptron, state

from rillet.train import (
    Graph,
    GraphError,
    Session,
    Variable,
    control_dependencies,
    group,
    initializers,
    ops,
    placeholder,
)

ONES = np.ones((2, 3), np.float32)


def test_fetches_keep_their_structure() -> None:
    Pair = namedtuple("Pair", "a b")
    with Graph().as_default():
        x = placeholder((2, 3))
        s, m = ops.sum(x, axes=(0,)), ops.max(x, axes=(0, 1))
        got = Session().run({"s": s, "l": [m, (m, s)], "p": Pair(s, m)}, {x: ONES})
    assert got["s"].tolist() == [2, 2, 2] and got["l"][1][0] == 1 and isinstance(got["p"], Pair)


def test_any_tensor_can_be_fed_and_its_producers_do_not_run() -> None:
    with Graph().as_default():
        x = placeholder((2, 3))
        s = ops.sum(x, axes=(0,))
        total = ops.sum(s, axes=(0,))
        session = Session()
        assert session.run(total, {s: [1.0, 2.0, 3.0]}) == 6
        assert session.run(s, {s: [1.0, 2.0, 3.0]}).tolist() == [1, 2, 3]


def test_refuses_missing_and_wrong_feeds() -> None:
    with Graph().as_default():
        x = placeholder((None, 3), name="x")
        s = ops.sum(x, axes=(0,))
        session = Session()
        with pytest.raises(GraphError, match=r"\[Placeholder at 'x' \(test_session.py:\d+\)\] is needed and not fed"):
            session.run(s)
        with pytest.raises(GraphError, match="is fed shape"):
            session.run(s, {x: np.zeros((2, 4))})
        with pytest.raises(GraphError, match="dtype complex"):
            session.run(s, {x: np.zeros((2, 3), complex)})


def test_named_dimensions_must_agree() -> None:
    with Graph().as_default():
        x, y = placeholder(("batch", 3)), placeholder(("batch",))
        with pytest.raises(GraphError, match="batch"):
            Session().run([ops.sum(x), ops.sum(y)], {x: ONES, y: np.ones(5)})


def test_an_uninitialised_variable_is_named() -> None:
    with Graph().as_default():
        v = Variable([1.0], name="weights")
        with pytest.raises(GraphError, match=r"'weights' \(test_session.py:\d+\) has no value yet"):
            Session().run(v)


def test_reads_are_values_from_before_the_update() -> None:
    with Graph().as_default():
        v = Variable([1.0, 2.0], name="v")
        update = v.assign_add([10.0, 10.0])
        session = Session()
        session.initialize()
        old, _ = session.run([v, update])
        assert old.tolist() == [1, 2]
        assert session.run(v).tolist() == [11, 12] and old.tolist() == [1, 2]
        fetched = session.run(v)
        fetched[...] = 0
        assert session.get(v).tolist() == [11, 12]


def test_a_control_dependency_puts_the_read_after_the_update() -> None:
    with Graph().as_default():
        v = Variable([1.0], name="v")
        with control_dependencies([v.assign_add([5.0])]):
            new = v.read_value()
        session = Session()
        session.initialize()
        assert [a.tolist() for a in session.run([v.value, new])] == [[1], [6]]


def test_a_later_read_without_a_dependency_is_old_too() -> None:
    with Graph().as_default():
        v = Variable([1.0], name="v")
        update = v.assign_add([5.0])
        later = v.read_value()
        session = Session()
        session.initialize()
        assert session.run([later, update])[0].tolist() == [1]
        assert session.get(v).tolist() == [6]


def test_an_old_value_used_after_the_update_is_kept() -> None:
    with Graph().as_default():
        v = Variable(ONES, name="v")
        with control_dependencies([v.assign_add(ONES)]):
            total_of_old = ops.sum(v.value)
            total_of_new = ops.sum(v.read_value())
        session = Session()
        session.initialize()
        assert session.run([total_of_old, total_of_new]) == [6, 12]


def test_updates_wait_for_readers_made_later() -> None:
    with Graph().as_default():
        v, w = Variable(ONES, name="v"), Variable(np.zeros((), np.float32), name="w")
        update = v.assign_add(ONES)
        record = w.assign(ops.sum(v))
        session = Session()
        session.initialize()
        session.run(group(update, record))
        assert session.get(w) == 6


def test_two_variables_that_swap() -> None:
    with Graph().as_default():
        a, b = Variable([1.0], name="a"), Variable([2.0], name="b")
        swap = group(a.assign(b), b.assign(a))
        session = Session()
        session.initialize()
        session.run(swap)
        assert (session.get(a), session.get(b)) == (2, 1)


def test_a_repeated_signature_does_no_graph_work() -> None:
    with Graph().as_default():
        x = placeholder((None, 3))
        s = ops.sum(x, axes=(0,))
        session = Session()
        for _ in range(3):
            session.run(s, {x: ONES})
        assert session.compilations == 1
        session.run(s, {x: np.ones((4, 3))})
        assert session.compilations == 2


def test_step_counts_the_runs_that_update() -> None:
    with Graph().as_default() as graph:
        v = Variable([1.0], name="v")
        update = v.assign_add([1.0])
        session = Session()
        session.initialize()
        session.run(v)
        assert session.step == 0 and session.run(graph.step) == 0
        session.run(update)
        assert session.step == 1 and session.run(graph.step) == 1


def test_a_graph_that_grows_in_the_loop_is_noticed_once() -> None:
    with Graph().as_default():
        x = placeholder((2, 3))
        session = Session()
        with pytest.warns(UserWarning, match=r"last by \[Sum at 'sum_\d+' \(test_session.py:\d+\)\]") as caught:
            for _ in range(30):
                session.run(ops.sum(x), {x: ONES})
    assert len(caught) == 1


def test_variables_start_from_their_own_name_only() -> None:
    """Made first or last, among others or alone: the same value; another seed: another value."""

    def value(seed: int, *others: str) -> bytes:
        with Graph(seed).as_default() as graph:
            for name in others:
                Variable(initializers.uniform(), (4,), name=name)
            v = Variable(initializers.uniform(), (4,), name="v")
            session = Session(graph)
            session.initialize()
            return session.get(v).tobytes()

    assert value(1) == value(1, "a", "b") != value(2)


def test_eager_calls_give_the_bits_of_the_graph() -> None:
    at = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    with Graph().as_default():
        x = placeholder((7, 5))
        y = ops.softmax(ops.tanh(x) * ops.exp(x))
        in_graph = Session().run(y, {x: at})
    assert ops.softmax(ops.mul(ops.tanh(at), ops.exp(at))).tobytes() == in_graph.tobytes()


def test_many_threads_may_run_one_session() -> None:
    """Each caller gets the function of its own feed, and no update is lost."""
    with Graph().as_default():
        x = placeholder((None, 3))
        total = ops.sum(ops.square(x), axes=(0, 1))
        count = Variable(np.zeros((), np.float32), name="count")
        both = [total, count.assign_add(1.0)]
        session = Session()
        session.initialize()

        def caller(k: int) -> bool:
            feeds = {x: np.full((1 + k % 2, 3), k, np.float32)}
            return all(session.run(both, feeds)[0] == k * k * 3 * (1 + k % 2) for _ in range(50))

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(caller, range(8)))
        assert session.get(count) == 400 == session.step


def test_an_initializer_of_the_wrong_shape_is_named() -> None:
    with Graph().as_default():
        Variable(lambda shape, seed, stream: np.zeros((2, 2)), (4,), name="w")
        with pytest.raises(GraphError, match=r"'w' \(test_session.py:\d+\) gave shape \(2, 2\), expected \(4,\)"):
            Session().initialize()


def test_a_run_that_fails_on_its_data_updates_no_weights() -> None:
    net = perceptron()
    session = net.session()
    before = state(session)
    feeds = net.feeds(0)
    feeds[net.labels][3] = 9
    with pytest.raises(ValueError, match="got 9|out of range|label"):
        session.run([net.train, net.loss], feeds)
    assert state(session) == before and session.step == 0


@pytest.mark.parametrize("engine", [True, False])
def test_a_fed_tensor_keeps_its_value_where_its_operation_runs_all_the_same(
    engine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine:
        monkeypatch.setattr("rillet.train.executor.runs_natively", lambda *given: (False, False))
    with Graph().as_default():
        a, b = ops.split(placeholder((4,), name="x"), num=2, axis=0)
        fetches, x = [ops.square(a), b, a], a.graph.get_tensor("x")
        twice, other, same = Session().run(fetches, {x: [1.0, 2.0, 3.0, 4.0], a: [10.0, 20.0]})
        assert twice.tolist() == [100, 400] and other.tolist() == [3, 4] and same.tolist() == [10, 20]
        with control_dependencies([b.operation]):
            late = ops.neg(b)
        assert Session().run(late, {x: [1.0, 2.0, 3.0, 4.0], b: [5.0, 6.0]}).tolist() == [-5, -6]


@pytest.mark.parametrize("engine", [True, False])
def test_a_fed_read_keeps_its_value_where_the_read_runs_all_the_same(
    engine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine:
        monkeypatch.setattr("rillet.train.executor.runs_natively", lambda *given: (False, False))
    with Graph().as_default():
        v = Variable([1.0, 2.0], name="v")
        with control_dependencies([v.value.operation]):
            y = ops.neg(v)
        session = Session()
        session.initialize()
        assert session.run(y, {v: [5.0, 6.0]}).tolist() == [-5, -6]


def test_results_are_the_callers_to_change() -> None:
    with Graph().as_default():
        x = placeholder((None, 3))
        session, fetches = Session(), [ops.shape(x), x]
        first = session.run(fetches, {x: ONES})
        first[0][0] = first[1][0, 0] = 99
        again = session.run(fetches, {x: ONES})
        assert again[0].tolist() == [2, 3] and again[1].tolist() == ONES.tolist()


def test_numbers_that_a_dtype_cannot_hold_are_refused() -> None:
    with Graph().as_default():
        x = placeholder((2,), np.int32, name="x")
        v = Variable(np.zeros(2, np.int32), name="v")
        session = Session()
        session.initialize()
        with pytest.raises(ValueError, match=r"\[Mul at 'mul' \(test_session.py:\d+\)\].*got 0.5.*i32"):
            _ = x * 0.5
        with pytest.raises(ValueError, match="got 0.5.*i32"):
            ops.mul(np.ones(2, np.int32), 0.5)
        with pytest.raises(GraphError, match="beyond the range of int32"):
            session.run(x, {x: [1, 2**40]})
        with pytest.raises(GraphError, match="do not fit"):
            session.set(v, [1.0, np.nan])
        with pytest.raises(ValueError, match="got 1.5"):
            v.assign_add(1.5)
        assert session.run(x * 2.0, {x: [1, 2]}).tolist() == [2, 4]
        session.set(v, [1.0, 3.0])
        assert session.get(v).tolist() == [1, 3]


def test_prediction_sees_what_a_run_changed_before_it_failed() -> None:
    with Graph().as_default():
        v = Variable([1.0, 2.0], name="v")
        x = placeholder((2,))
        y, update = x * v, v.assign([5.0, 6.0])
        with control_dependencies([update]):
            broken = ops.gather(x, np.array([7]))
        session = Session()
        session.initialize()
        before = session.predict(y, {x: [1.0, 1.0]})
        with pytest.raises(ValueError):
            session.run(broken, {x: [1.0, 1.0]})
        assert session.get(v).tolist() == session.predict(y, {x: [1.0, 1.0]}).tolist() != before.tolist()


def test_plain_int8_numbers_need_no_scales() -> None:
    x = np.arange(16, dtype=np.int8).reshape(1, 4, 4, 1)
    assert ops.add(x, x).tolist() == (x + x).tolist()
    with Graph().as_default():
        p = placeholder(x.shape, np.int8)
        assert Session().run(p + p, {p: x}).tolist() == (x + x).tolist()


@pytest.mark.parametrize("threads", [0, -1, 1025, 2.5, "2", None])
def test_threads_are_a_number_of_threads(threads: Any) -> None:
    with pytest.raises(GraphError, match="threads"):
        Session(Graph(), threads=threads)


def test_feeds_are_a_dict_of_arrays() -> None:
    with Graph().as_default() as graph:
        x = placeholder((None, 2), name="x")
    with pytest.raises(GraphError, match="feed_dict is a list"):
        Session(graph).run(x, [np.zeros((1, 2))])  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="'x'.*unequal lengths"):
        Session(graph).run(x, {x: [[1.0], [2.0, 3.0]]})


def test_an_initializer_of_fractions_is_refused_for_integers() -> None:
    with Graph().as_default():
        Variable(initializers.normal(1.0), (4,), name="w", dtype=np.int32)
        with pytest.raises(GraphError, match=r"'w' \(test_session.py:\d+\) gave values that int32 cannot hold"):
            Session().initialize()
