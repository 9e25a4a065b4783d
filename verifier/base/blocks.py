"""The same work on every block: in this process, by processes of this machine, or by the workers of a Dask scheduler.

Work is a pure function of its block, so a block that is lost with its worker, or with the scheduler, is worked on
again, and each result is taken once. Results are added in a tree whose shape depends on the number of blocks alone:
sums are the same bytes however many workers there are, and in whatever order they end.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Generic, Self, TypeVar

from verifier.base.budget import memory_limit, peak_bytes
from verifier.base.errors import EngineError, NoAnswerError, UsageError, first_line, shown
from verifier.base.libraries import __version__, library
from verifier.base.numbers import fixed, memory_text
from verifier.base.words import some_of

Block = TypeVar("Block")
Result = TypeVar("Result")
MOST_WORKERS = 1024
ADDRESS = r"([a-z]+://)?[^\s/]+:[0-9]{1,5}"
CONNECT_S = 10.0
"""So long a scheduler may take to answer, and then to have a worker."""
RETURN_S = 120.0
"""So long a scheduler that was lost, or workers where all are lost, may take to return."""
LOOK_S = 5.0
"""So often is asked, while nothing is done, whether any worker works."""
SILENT = logging.CRITICAL + 1
MOST_DEATHS = 5
"""Workers of this machine that may die of one block before it is given up."""


def nothing(done: int, total: int) -> None:
    """A report that nobody reads."""


@dataclass(frozen=True)
class Share:
    """What one worker did: blocks, seconds of work, and the most memory that its process ever held."""

    worker: str
    blocks: int
    seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        used = f"{fixed(self.seconds, 1)} s, at most {memory_text(self.peak_bytes)}"
        return f"{self.worker}: {self.blocks} blocks, {used}"


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """A result, or the error in its place, and who it is from."""

    result: Result | None
    error: Exception | None
    share: Share


@dataclass
class Pool:
    """Who works on blocks; a context where that is a scheduler.

    Attributes:
        scheduler: N processes of this machine, or the address of a Dask scheduler; None for this process.
        memory_bytes: what a block may take on a worker that is a process with one thread, see `memory_limit`; None
            for no limit.
        shares: what each worker did, in the order of their names; empty without a scheduler.
    """

    scheduler: str | None = None
    memory_bytes: int | None = None
    _shares: dict[str, Share] = field(default_factory=dict)
    _client: Any = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        """Raises UsageError and NoAnswerError as `_connect`."""
        with contextlib.ExitStack() as stack:
            if self.scheduler is not None:
                library("distributed")
                for logger in map(logging.getLogger, ("distributed", "distributed.client")):
                    stack.callback(logger.setLevel, logger.level)
                    logger.setLevel(SILENT)  # what is lost is worked on again, and what fails is raised
                self._connect(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def is_here(self) -> bool:
        """Whether nobody else is asked."""
        return self.scheduler is None

    @property
    def shares(self) -> tuple[Share, ...]:
        """What each worker did."""
        return tuple(share for _, share in sorted(self._shares.items()))

    def results(
        self, work: Callable[[Block], Result], blocks: Sequence[Block], report: Callable[[int, int], None] = nothing
    ) -> Iterator[tuple[int, Result]]:
        """The place of each block and the result of its work, as they come.

        Args:
            work: of one block; what a worker elsewhere can be sent, as are blocks and results.
            blocks: to work on.
            report: told how many of how many are done.

        Raises:
            Exception: what the work on the first block raises for which it raises anything.
            NoAnswerError: the scheduler or all workers are lost, or a block ends the processes that work on it.
        """
        report(0, len(blocks))
        results = enumerate(map(work, blocks)) if self.is_here else self._results(work, blocks)
        for done, result in enumerate(results, 1):
            report(done, len(blocks))
            yield result

    def map(self, work: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[Result]:
        """The results in the order of the blocks, each as soon as those before it are there; errors as `results`."""
        early, next_place = dict[int, Result](), 0
        for place, result in self.results(work, blocks):
            early[place] = result
            while next_place in early:
                yield early.pop(next_place)
                next_place += 1

    def sum(
        self,
        work: Callable[[Block], Result],
        blocks: Sequence[Block],
        add: Callable[[Result, Result], Result],
        report: Callable[[int, int], None] = nothing,
    ) -> Result:
        """The sum of the results of at least one block, in their order; errors as `results`."""
        waiting: dict[tuple[int, int], Result] = {}
        for place, result in self.results(work, blocks, report):
            first, size, total = place, 1, result
            while size < len(blocks):
                other = first ^ size  # where the range begins that makes one of twice the size with this one
                if other < len(blocks):
                    if (other, size) not in waiting:
                        waiting[first, size] = total
                        break
                    mine = waiting.pop((other, size))
                    total = add(mine, total) if other < first else add(total, mine)
                first, size = min(first, other), 2 * size
            else:
                return total
        raise ValueError("expected at least one block")

    def _connect(self, stack: contextlib.ExitStack) -> None:
        """Have a client with at least one worker.

        Raises:
            UsageError: there can be no such scheduler, or a worker has another program.
            NoAnswerError: it does not answer in time.
        """
        scheduler, distributed = str(self.scheduler), library("distributed")
        if scheduler.isdecimal():
            if not 1 <= int(scheduler) <= MOST_WORKERS:
                raise UsageError(f"expected from 1 to {MOST_WORKERS} processes that work, got {scheduler}")
            folder = stack.enter_context(TemporaryDirectory())
            where: Any = stack.enter_context(_own_cluster(int(scheduler), folder))
        elif re.fullmatch(ADDRESS, scheduler):
            where = scheduler
        else:
            expected = "a number of processes that work, or an address such as tcp://HOST:8786"
            raise UsageError(f"expected {expected}, got {shown(scheduler)}")
        try:
            if where is scheduler:
                _ask(where)
            self._client = distributed.Client(where, timeout=CONNECT_S, set_as_default=False)
            stack.callback(self._left)
            self._client.wait_for_workers(1, timeout=CONNECT_S)
            self._check_workers()
        except (OSError, TimeoutError):
            what = "has no worker" if self._client is not None else "does not answer"
            raise NoAnswerError(
                f"the scheduler {scheduler} {what} within {CONNECT_S:g} s",
                hint="dask scheduler starts one, dask worker ADDRESS a worker; --scheduler N needs neither",
            ) from None

    def _check_workers(self) -> None:
        """Refuse workers that have another program, which end of what they cannot load; UsageError.

        Raises:
            OSError, TimeoutError: the scheduler does not answer.
        """
        told = self._client.sync(self._client._run, _version, on_error="return", callback_timeout=CONNECT_S)
        for worker, version in told.items():
            if version != __version__ and not isinstance(version, OSError):  # which a worker that is lost gives
                raise _other_version(f"worker {worker}", first_line(version))

    def _left(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError, TimeoutError):
                client.close(timeout=CONNECT_S)

    def _results(self, work: Callable[[Block], Result], blocks: Sequence[Block]) -> Iterator[tuple[int, Result]]:
        missing = dict.fromkeys(range(len(blocks)))
        failed: tuple[int, Exception] | None = None
        while missing:
            places = [place for place in missing if failed is None or place < failed[0]]
            for place, done in self._received(work, blocks, places):
                if isinstance(done, Exception):
                    failed = place, done
                    break
                del missing[place]
                self._credit(done.share)
                if done.error is not None:
                    failed = place, done.error
                    break
                yield place, done.result
            if failed is not None and not any(place < failed[0] for place in missing):
                raise failed[1]

    def _received(
        self, work: Callable[[Block], Result], blocks: Sequence[Block], places: Sequence[int]
    ) -> Iterator[tuple[int, Any]]:
        """What comes of the blocks at these places, or an error; ends early where the scheduler was lost.

        Raises:
            NoAnswerError: no worker works on what is left, and none has come back in time.
        """
        distributed, client = library("distributed"), self._client
        once = client.submit(_sent, work, pure=False)  # a worker that needs it has it from another one
        doing, own = partial(_worked, __version__, self.memory_bytes), [blocks[place] for place in places]
        futures = client.map(doing, own, work=once, pure=False, batch_size=1000)
        place_of = {future.key: place for place, future in zip(places, futures, strict=True)}
        try:
            for future in self._completed(distributed.as_completed(futures, loop=client.loop)):
                if future is None:
                    left = [str(place_of[future.key] + 1) for future in futures if future.status == "pending"]
                    raise NoAnswerError(
                        f"all workers are lost, and none came back within {RETURN_S:g} s; "
                        f"not done, of {len(blocks)} blocks: {some_of(left)}",
                        hint="start workers again, with more memory if that ended them, and repeat the command",
                    )
                if future.status == "error":
                    yield place_of[future.key], self._fault(future.exception(), place_of[future.key])
                elif future.status == "finished":
                    yield place_of[future.key], future.result(timeout=RETURN_S)
                    future.release()
                else:
                    break
        except (OSError, TimeoutError, distributed.client.FutureCancelledError):
            pass
        finally:
            lost = client.status != "running" or any(future.status in ("lost", "cancelled") for future in futures)
            with contextlib.suppress(OSError, TimeoutError):
                client.cancel([*futures, once], force=True)
        if lost:
            self._return()

    def _completed(self, completed: Any) -> Iterator[Any]:
        """Futures as they end; None, once, where for `RETURN_S` nothing was done and no worker was at work."""
        alive = looked = time.monotonic()
        while not completed.is_empty():
            if completed.has_ready():
                yield next(completed)
                alive = looked = time.monotonic()
                continue
            with completed.thread_condition:
                completed.thread_condition.wait(0.1)
            if time.monotonic() - looked > LOOK_S:
                if self._is_at_work():
                    alive = time.monotonic()
                else:  # others may have come meanwhile
                    with contextlib.suppress(OSError, TimeoutError):
                        self._check_workers()
                looked = time.monotonic()
                if looked - alive > RETURN_S:
                    yield None

    def _is_at_work(self) -> bool:
        """Whether the scheduler answers that any worker has something to do."""
        scheduler = self._client.scheduler
        try:
            tasks = self._client.sync(scheduler.processing, workers=None, callback_timeout=CONNECT_S)
        except (OSError, TimeoutError):
            return False
        return any(tasks.values())

    def _return(self) -> None:
        """Be a client again of the scheduler that was lost."""
        end = time.monotonic() + RETURN_S
        while True:
            try:
                self._left()
                self._connect(self._stack)
            except NoAnswerError:
                if time.monotonic() > end:
                    raise
                time.sleep(1)
            else:
                return

    def _fault(self, error: Any, place: int) -> Exception:
        if isinstance(error, library("distributed").KilledWorker):
            last = error.last_worker.address
            message = f"block {place + 1} ended every process that worked on it; the last was {last}"
            hint = "give workers more memory, or make blocks smaller (of verify confusion: --chunk-rows)"
            return NoAnswerError(message, hint=hint)
        if isinstance(error, ImportError | AttributeError) or "deserializ" in str(error):
            return _other_version("a worker, or the scheduler,", first_line(error))
        return EngineError(f"block {place + 1} could not be worked on: {type(error).__name__}: {first_line(error)}")

    def _credit(self, share: Share) -> None:
        before = self._shares.get(share.worker, replace(share, blocks=0, seconds=0.0))
        self._shares[share.worker] = Share(
            share.worker,
            before.blocks + share.blocks,
            before.seconds + share.seconds,
            max(before.peak_bytes, share.peak_bytes),
        )


HERE = Pool()
"""This process."""


def _own_cluster(workers: int, folder: str) -> Any:
    """Processes of this machine, on its loopback, with their files in a folder."""
    own, distributed = "127.0.0.1", library("distributed")
    settings = {
        "distributed.scheduler.allowed-failures": MOST_DEATHS,
        "distributed.worker.profile.enabled": False,  # it keeps what every second was spent on: 10 MB a minute
        "temporary-directory": folder,
    }
    looks = {"host": own, "dashboard_address": f"{own}:0", "silence_logs": SILENT}
    try:
        with library("dask").config.set(settings):
            return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **looks)
    except BaseException:  # one that is half made cannot be closed at exit
        atexit.unregister(distributed.deploy.spec.close_clusters)
        raise


def _ask(address: str) -> None:
    """Whether a scheduler answers; OSError, TimeoutError. A client would wait for ever for one that says nothing."""
    import asyncio  # takes long to load

    distributed = library("distributed")

    async def answer() -> None:
        security = distributed.Security().get_connection_args("client")
        (await distributed.comm.connect(address, timeout=CONNECT_S, **security)).abort()

    with ThreadPoolExecutor(1) as thread:  # here a loop may run already, as in a notebook
        thread.submit(asyncio.run, asyncio.wait_for(answer(), CONNECT_S)).result()


def _other_version(who: str, version: str) -> UsageError:
    return UsageError(
        f"{who} has another version of this program than {__version__}, or none: {version}\n"
        "  hint: install the same version, with the extra 'scale', for client, scheduler and workers"
    )


def _version() -> str:
    return __version__


def _sent(work: Callable[[Block], Result]) -> Callable[[Block], Result]:
    return work


def _worked(version: str, memory_bytes: int | None, block: Block, work: Callable[[Block], Result]) -> _Done[Result]:
    """The work on a block, done by a worker: what comes of it, and what it took."""
    worker = library("distributed").get_worker()
    is_alone = worker.nanny is not None and worker.state.nthreads == 1
    limit = memory_limit(memory_bytes) if memory_bytes and is_alone else contextlib.nullcontext()
    begun, result, error = time.monotonic(), None, None
    try:
        if version != __version__:
            raise _other_version(f"worker {worker.address}", __version__)
        with limit:
            result = work(block)
    except Exception as raised:
        error = raised
    return _Done(result, error, Share(worker.address, 1, time.monotonic() - begun, peak_bytes()))
