"""Storm as a worker process: models and formulas go in, checked probabilities come out.

The worker can always be ended, whatever it is doing, and a crash of Storm is an error here and no crash of ours.

| what happens to the worker               | what the caller sees                | the next check        |
|------------------------------------------|-------------------------------------|-----------------------|
| it answers                               | a `CheckedValues` per formula       | same worker           |
| Storm refuses the formula or the model   | EngineError with Storm's words      | same worker           |
| the time limit passes                    | NoAnswerError; the worker is killed | a fresh worker        |
| Storm needs more memory than it may have | RefusedError                        | same or fresh worker  |
| it dies of a signal or ends by itself    | EngineError naming the signal       | a fresh worker        |
| the caller is interrupted                | KeyboardInterrupt; worker is killed | a fresh worker        |
| the caller dies                          | -                                   | ends within a second  |

Private temporary folders that nobody leaves behind: what a killed process could not remove, the next start does.

A folder holds a file that its owner keeps locked. The system releases the lock when the owner is gone, however it
ended, and in whatever container it ran.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from verifier.base.budget import reached
from verifier.base.errors import EngineError, InputError, NoAnswerError, shown
from verifier.base.numbers import significant
from verifier.chains.chain import DecisionProcess, MarkovChain
from verifier.chains.texts import Model
from verifier.chains.umb import Gains, write_umb
from verifier.checking.enclosure import CheckedValues
from verifier.checking.storm import GAINS, OPERATORS
from verifier.checking.worker import DiedError, OverdueError, Worker

DEFAULT_TIME_LIMIT_S = 600.0
"""Seconds for one formula; building the model counts towards the first."""

MEMORY_FOLDER = Path("/dev/shm")
_LABEL = re.compile(r'"([^"]*)"')
LARGEST_IDLE_BYTES = 256 * 2**20
"""A worker that holds more when it has answered is ended: its allocator keeps what others may need."""

PRECISION = Fraction(1, 10**12)
"""Largest relative error that Storm's sound methods may leave; its own default is 10^-6."""


class RefusedError(EngineError):
    """Storm says that it cannot check a formula, or crashes on it."""


class StormProcess:
    """One Storm worker, to be used as a context manager and by one thread at a time.

    The worker starts when the block is entered and loads Storm while the caller goes on. Several may run side by
    side: Storm itself must not check two LTL formulas at once in one process, in two it may.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._entered = False

    def __enter__(self) -> StormProcess:
        self._entered = True
        self._worker = Worker()
        with contextlib.suppress(OSError):  # no folder for temporary files: whoever needs one will say so
            sweep([MEMORY_FOLDER, Path(tempfile.gettempdir())])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        self._end_worker()

    def check(
        self,
        model: MarkovChain | DecisionProcess,
        formulas: Sequence[str],
        *,
        exact: bool = False,
        direct: bool = False,
        operator: str = "P=?",
        timeout_s: float | None = DEFAULT_TIME_LIMIT_S,
        memory_bytes: int | None = None,
        gains: Gains | None = None,
    ) -> list[CheckedValues]:
        """Probabilities of each formula at the initial states of the model, in increasing order of the states.

        For state formulas and for a single F, G, X or U of state formulas Storm gives bounds, which differ by
        about the precision; for other LTL formulas of a chain it gives values only. No bound is widened here.

        Args:
            model: the chain, or the decision process for Pmin and Pmax (values only, no scheduler).
            formulas: as `verifier.language.ltl.to_storm` writes them, over labels of the model.
            exact: compute with the fractions of the model, without any error, which can be very much slower.
            direct: factorise the equations in place of iterating, for chains that mix slowly; without bounds.
            operator: "P=?" for a chain; "Pmin=?" or "Pmax=?" for a decision process; those of `GAINS` where there are
                gains, for `F ...` that is surely reached and `C<=N`.
            timeout_s: seconds for each formula, or None for no limit.
            memory_bytes: what the worker may take beyond what Storm holds when it is loaded, or None for no limit.
            gains: what a step from each state gains; fractions where `exact`.

        Raises:
            NoAnswerError: Storm exceeds the time limit.
            EngineError: Storm refuses, crashes, exceeds its memory, or answers what cannot be.
            InputError: the model cannot be written to a temporary file (disk full, for example).
            ValueError: a formula, label, operator or model that a caller must not pass.
        """
        settings: dict[str, Any] = {"direct": direct, "timeout_s": timeout_s, "memory_bytes": memory_bytes}
        settings["gains"] = gains
        with self.asked(model, formulas, exact=exact, operator=operator, **settings) as answers:
            return list(answers)

    @contextlib.contextmanager
    def asked(
        self,
        model: MarkovChain | DecisionProcess,
        formulas: Sequence[str],
        *,
        exact: bool = False,
        direct: bool = False,
        operator: str = "P=?",
        timeout_s: float | None = DEFAULT_TIME_LIMIT_S,
        memory_bytes: int | None = None,
        gains: Gains | None = None,
    ) -> Iterator[Answers]:
        """As `check`, but Storm computes while the caller goes on:

            with storm.asked(chain, formulas) as answers:
                ...                                 # work of the caller's own
                for answer in answers: ...          # waits until each is there; or answers.within(seconds)

        The time limit of a formula counts from when its answer is waited for. A worker whose answers are not all
        taken when the block ends is killed, with whatever it is doing.
        """
        names = self._checked_arguments(model, formulas, exact, operator)
        most = math.inf if operator in GAINS else 1.0
        if not formulas:
            yield Answers(None, formulas, exact, len(model.initial), timeout_s, most)
            return
        with _temporary_folder(_expected_bytes(model, len(names), exact)) as folder:
            path = Path(folder) / "model.umb"
            write_umb(model, path, exact=exact, labels=names, valuations=False, storm_padding=True, gains=gains)
            request = {
                "umb": str(path),
                "owned": folder,
                "exact": exact,
                "direct": direct,
                "precision": str(PRECISION),
                "memory": memory_bytes,
                "queries": [{"formula": formula, "operator": operator} for formula in formulas],
            }
            worker = self._live_worker()
            answers = Answers(worker, formulas, exact, len(model.initial), timeout_s, most)
            try:
                worker.send(request)
                yield answers
            finally:
                if answers.waiting or (memory_bytes is not None and worker.resident_bytes > LARGEST_IDLE_BYTES):
                    self._end_worker()

    def storm_version(self, timeout_s: float | None = DEFAULT_TIME_LIMIT_S) -> str:
        """Version of the Storm that answers, for example "2.0.0"; waits until the worker has loaded it.

        Raises:
            EngineError: Storm cannot be loaded; NoAnswerError: not in time.
        """
        worker, done = self._live_worker(), False
        try:
            with _failures_named("loading Storm", timeout_s):
                version = worker.wait_until_ready(_deadline(timeout_s))
            done = True
        finally:
            if not done:
                self._end_worker()
        return version

    def _live_worker(self) -> Worker:
        if not self._entered:
            raise ValueError("a StormProcess is used inside its `with` block")
        if self._worker is not None and not self._worker.is_alive:
            self._end_worker()
        if self._worker is None:
            self._worker = Worker()
        return self._worker

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _checked_arguments(self, model: Model, formulas: Sequence[str], exact: bool, operator: str) -> frozenset[str]:
        """The labels that occur in the formulas, when everything fits together."""
        one = slice(1, None) if isinstance(model, DecisionProcess) else slice(1)
        allowed = (*OPERATORS[one], *GAINS[one])
        if operator not in allowed:
            raise ValueError(f"{operator!r} does not fit a {type(model).__name__}; expected one of {allowed}")
        if exact and model.fractions is None:
            raise ValueError("an exact check needs the fractions of the model")
        names = frozenset(_LABEL.findall(" ".join(formulas)))
        if not names <= model.labels.keys():
            raise ValueError(f"the model has no labels {sorted(names - model.labels.keys())}")
        return names


@dataclass(eq=False)
class Answers:
    """The answers to one request, formula by formula, as they come.

    Attributes:
        waiting: how many answers are still to come.
        usable: whether the next one can be waited for; after one that failed there are no more.
    """

    _worker: Worker | None
    _formulas: Sequence[str]
    _exact: bool
    _state_count: int
    _timeout_s: float | None
    _most: float = 1.0

    def __post_init__(self) -> None:
        self.waiting = len(self._formulas)
        self.usable = self.waiting > 0

    def __iter__(self) -> Answers:
        return self

    def __next__(self) -> CheckedValues:
        return self.within(self._timeout_s)

    def within(self, timeout_s: float | None) -> CheckedValues:
        """The next answer; errors as `StormProcess.check`, and StopIteration when there are no more."""
        if not self.usable or self._worker is None:
            raise StopIteration
        self.usable = False  # unless this succeeds
        formula = shown(self._formulas[-self.waiting], 200)
        with _failures_named(f"checking {formula}", timeout_s):
            answer = self._worker.receive(_deadline(timeout_s))
        if "error" in answer:
            self.waiting = 0  # an error ends the request
            message = f"Storm cannot check {formula}: {shown(answer['error'], 500)}"
            raise RefusedError(reached(message) if str(answer["error"]).startswith("MemoryError") else message)
        engine = f"Storm {self._worker.wait_until_ready(None)}" + (" (exact)" if self._exact else "")
        values = _checked_values(answer, engine, self._state_count, self._most)
        self.waiting -= 1
        self.usable = self.waiting > 0
        return values

    def abandon(self) -> None:
        """Wait for no more answers."""
        self.usable = False


def _deadline(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


@contextlib.contextmanager
def _failures_named(doing: str, timeout_s: float | None) -> Iterator[None]:
    """Say what was being done when the worker failed."""
    try:
        yield
    except OverdueError:
        assert timeout_s is not None
        advice = "allow more time, or check a smaller model, a simpler formula, or without exact arithmetic"
        message = f"{doing} took longer than the limit of {significant(timeout_s, 4)} s"
        raise NoAnswerError(reached(message), hint=advice) from None
    except DiedError as error:
        raise RefusedError(reached(f"the Storm worker {error}, while {doing}")) from None


@contextlib.contextmanager
def _temporary_folder(expected_bytes: int) -> Iterator[str]:
    """A private folder, in memory where there is room for twice what is expected."""
    memory = MEMORY_FOLDER
    with contextlib.ExitStack() as stack:
        try:
            free = shutil.disk_usage(memory).free if os.access(memory, os.W_OK) else 0
            place = memory if free > 2 * expected_bytes else Path(tempfile.gettempdir())
            name = stack.enter_context(private_folder(place))
        except OSError as error:
            message = f"no folder for temporary files: {error.strerror or error}"
            raise InputError(message, hint="set TMPDIR to a folder that can be written") from None
        yield name


def _expected_bytes(model: Model, label_count: int, exact: bool) -> int:
    """About how large the archive of a model is; fractions are taken to need four words on each side."""
    per_transition = 72 if exact else 16
    return per_transition * model.transition_count + (32 + label_count) * model.state_count + 2**20


def _checked_values(answer: dict[str, Any], engine: str, count: int, most: float) -> CheckedValues:
    """An answer of the worker's as arrays; `CheckedValues` refuses what cannot be."""
    values = answer["values"]
    if len(values) != count:
        raise EngineError(f"{engine} answered {len(values)} values for {count} initial states")
    fractions = None
    if values and isinstance(values[0], str):
        fractions = tuple(Fraction(*(int(part, 16) for part in value.split("/"))) for value in values)
        values = [float(fraction) for fraction in fractions]
    lower, upper = (
        None if answer[key] is None else np.array(answer[key], dtype=np.float64) for key in ("lower", "upper")
    )
    return CheckedValues(np.array(values, dtype=np.float64), lower, upper, fractions, engine, most)


PREFIX = "verifier-storm-"
_LOCK = "owner"
_MAKING_S = 60.0
"""A folder without a lock is younger than this while it is made."""


@contextlib.contextmanager
def private_folder(above: Path) -> Iterator[str]:
    """A new folder in `above`, removed at the end of the block; OSError where none can be made."""
    folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=above, ignore_cleanup_errors=True)
    with folder as name:
        making = Path(name) / f"{_LOCK}.new"
        lock = os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            making.rename(Path(name) / _LOCK)  # who sweeps never meets it unlocked
            yield name
        finally:
            os.close(lock)


def sweep(places: Iterable[Path]) -> None:
    """Remove the folders of ours in these places whose owners are gone; what cannot be removed stays."""
    for place in set(places):
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(place)):
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _is_abandoned(entry):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    made = math.inf  # whoever made it may have removed it by now
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_uid != os.getuid():
            return False
        made = status.st_mtime
        lock = os.open(Path(entry.path) / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - made > _MAKING_S
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


class _Own(threading.local):
    storm: StormProcess | None = None


_OWN = _Own()


def own_storm() -> StormProcess:
    """One Storm of each thread that asks, for the worker of a pool: it ends when that does."""
    if _OWN.storm is None:
        _OWN.storm = StormProcess().__enter__()
    return _OWN.storm
