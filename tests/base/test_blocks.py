"""Work in blocks: the same sums whoever works, in whatever order; clear words where nobody can."""

import asyncio
import logging
import socket
from functools import partial

import distributed
import pytest
from dask_clusters import Killer, cluster, kept_seconds, listed, suicidal, taking

from verifier.base import blocks
from verifier.base.blocks import Pool
from verifier.base.errors import InputError, NoAnswerError, Place, UsageError


@pytest.fixture(scope="module")
def scheduler():
    with cluster(3, processes=False) as address:
        yield address


def joined(one, other):
    return one + other


def shape(one, other):
    return (one, other)


def faulty_at(places, block):
    if block in places:
        raise InputError("no number", Place("part.parquet", block), "write one")
    return [block]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
def test_a_sum_is_in_order(count):
    with Pool() as pool:
        assert pool.sum(listed, range(count), joined) == list(range(count))
        assert pool.shares == ()


def test_the_tree_is_the_same_whoever_works_and_in_whatever_order(scheduler):
    # Sums of floats would show another tree; so does a sum that is the tree itself.
    with Pool() as here, Pool(scheduler) as there:
        for count in (1, 6, 13):
            work = partial(listed, slow=0.02)
            assert there.sum(work, range(count), shape) == here.sum(listed, range(count), shape)
    assert sum(share.blocks for share in there.shares) == 20
    assert len(there.shares) == 3


def test_five_leaves_make_this_tree():
    with Pool() as pool:
        assert pool.sum(str, range(5), shape) == ((("0", "1"), ("2", "3")), "4")


def test_nothing_to_add_is_a_fault_of_the_caller():
    with Pool() as pool, pytest.raises(ValueError, match="at least one block"):
        pool.sum(listed, [], joined)


def test_progress_is_told_block_by_block(scheduler):
    for pool in (Pool(), Pool(scheduler)):
        told = []
        with pool:
            pool.sum(listed, range(5), joined, lambda done, total: told.append((done, total)))  # noqa: B023
        assert told == [(done, 5) for done in range(6)]


def test_the_error_is_that_of_the_first_faulty_block(scheduler):
    for pool in (Pool(), Pool(scheduler)):
        with pool, pytest.raises(InputError) as caught:
            pool.sum(partial(faulty_at, {7, 11, 38}), range(40), joined)
        assert str(caught.value) == "part.parquet:7: no number\n  hint: write one"


@pytest.mark.parametrize(
    "text", ["", "0", "-2", "1.5", "2000", "nowhere", "tcp://", "tcp://host", "host:port", "a b:1"]
)
def test_what_is_no_scheduler_is_refused_at_once(text):
    with pytest.raises(UsageError, match=r"expected .* processes that work"), Pool(text):
        pass


def test_a_scheduler_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(blocks, "CONNECT_S", 0.5)
    with socket.socket() as silent:  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(NoAnswerError, match=f"the scheduler {address} does not answer within 0.5 s"),
            Pool(address),
        ):
            pass


def test_a_scheduler_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(blocks, "CONNECT_S", 0.5)
    with (
        cluster(0, processes=False) as address,
        pytest.raises(NoAnswerError, match="has no worker within"),
        Pool(address),
    ):
        pass


def test_a_worker_of_another_version_works_on_nothing(scheduler, monkeypatch):
    # Workers of this process share its modules, so the client pretends to be the other version.
    with Pool(scheduler) as pool:
        worked = blocks._worked
        monkeypatch.setattr(blocks, "_worked", partial(_of_version, worked))
        with pytest.raises(UsageError, match=r"worker tcp://127\S+ has another version of this program than"):
            pool.sum(listed, range(3), joined)


def _of_version(worked, version, *more, **named):
    return worked("9.9", *more, **named)


class Heavy:
    """Work that counts how often it is sent."""

    sent = 0

    def __getstate__(self):
        Heavy.sent += 1
        return {}

    def __call__(self, block):
        return [block]


def test_work_is_sent_to_each_worker_and_not_with_each_block(scheduler):
    with Pool(scheduler) as pool:
        assert pool.sum(Heavy(), range(200), joined) == list(range(200))
    assert 1 <= Heavy.sent <= 10  # to the scheduler, from there to a worker, from one worker to another


def test_a_worker_holds_to_the_limit_of_memory():
    with Pool("1", memory_bytes=1 << 28) as pool:
        assert pool.sum(taking, [1 << 20, 1 << 27], joined) == [1 << 20, 1 << 27]
        with pytest.raises(NoAnswerError, match="more memory is needed than the limit of"):
            pool.sum(taking, [1 << 20, 1 << 30], joined)


def test_a_worker_keeps_nothing_of_what_it_did_and_tells_its_own_memory():
    held = b"1" * (400 << 20)  # by the process that starts it
    with Pool("1") as pool:
        assert pool.sum(kept_seconds, [1.2], joined) == [0]
    (share,) = pool.shares
    assert 0 < share.peak_bytes < len(held) // 2


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(blocks.library.__globals__["importlib"].sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[scale\]'"), Pool("2"):
        pass


def test_loggers_are_left_as_they_were(scheduler):
    before = logging.getLogger("distributed").level
    with Pool(scheduler):
        assert logging.getLogger("distributed").level == blocks.SILENT
    assert logging.getLogger("distributed").level == before


class Retirement:
    """Takes all workers away once two blocks are done, and brings one back after a while, or none."""

    def __init__(self, pool, again_s=None):
        self.pool, self.again_s, self.told = pool, again_s, []

    def __call__(self, done, total):
        self.told.append(done)
        if done == 2:
            client = self.pool._client
            client.run(lambda dask_worker: dask_worker.loop.add_callback(dask_worker.close))  # the name is Dask's
            if self.again_s is not None:
                client.loop.add_callback(self.begin)

    async def begin(self):
        await asyncio.sleep(self.again_s)
        self.worker = await distributed.Worker(self.pool.scheduler, nthreads=1, dashboard_address="127.0.0.1:0")


def test_blocks_that_nobody_is_left_to_work_on_are_named(monkeypatch):
    monkeypatch.setattr(blocks, "RETURN_S", 1.0)
    monkeypatch.setattr(blocks, "LOOK_S", 0.2)
    with cluster(1, processes=False) as address, Pool(address) as pool:
        away = Retirement(pool)
        with pytest.raises(NoAnswerError, match="all workers are lost, and none came back within 1 s") as caught:
            pool.sum(partial(listed, slow=0.1), range(60), joined, away)
    *first, more = str(caught.value).splitlines()[0].partition("not done, of 60 blocks: ")[2].split("; ")
    assert first == [str(max(away.told) + k) for k in (1, 2, 3, 4)]  # one thread works in order
    assert more == f"and {60 - max(away.told) - 4} more"


def test_a_worker_that_comes_back_in_time_goes_on(monkeypatch):
    monkeypatch.setattr(blocks, "LOOK_S", 0.2)
    with cluster(1, processes=False) as address, Pool(address) as pool:
        away = Retirement(pool, again_s=1)
        assert pool.sum(partial(listed, slow=0.05), range(20), joined, away) == list(range(20))
    assert len(pool.shares) == 2
    assert sum(share.blocks for share in pool.shares) == 20


def test_a_killed_worker_loses_and_doubles_nothing():
    with cluster(2) as address:
        killer = Killer(address, [0.2, 0.5])
        with Pool(address) as pool:
            assert pool.sum(partial(listed, slow=0.05), range(60), joined, killer) == list(range(60))
        assert len(killer.killed) == 2


@pytest.mark.slow
def test_a_block_that_kills_every_worker_is_named():
    with pytest.raises(NoAnswerError, match="block 3 ended every process that worked on it"), Pool("1") as pool:
        pool.sum(suicidal, range(4), joined)
