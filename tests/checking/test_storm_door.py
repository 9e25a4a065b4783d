"""The door to Storm without Storm: what goes through it and what is done about it, with a worker that is made up."""

import errno
import json
import math
import os
import signal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_chains import chain_of, process_of

from verifier.base.errors import EngineError, NoAnswerError
from verifier.checking import process as process_module
from verifier.checking import worker as worker_module
from verifier.checking.process import RefusedError, StormProcess, _checked_values, private_folder, sweep
from verifier.checking.storm import GAINS, OPERATORS
from verifier.checking.worker import DiedError, OverdueError, Worker

CHAIN = chain_of([{0: 0.5, 1: 0.5}, {1: 1}], {"a": {1}}, (0, 1))
PROCESS = process_of([[{0: 0.5, 1: 0.5}], [{1: 1}]], {"a": {1}}, (0, 1))
ANSWER = {"values": [0.25, 0.75], "lower": None, "upper": None}


class MadeUp:
    """A worker that gives the answers of a list, and fails where one is an exception."""

    all, answers, is_alive, resident_bytes = [], [], True, 0

    def __init__(self):
        self.sent, self.ended, self.deadlines = [], False, []
        self.left = iter(self.answers)
        self.all.append(self)

    def send(self, request):
        self.sent.append(request)

    def receive(self, deadline):
        self.deadlines.append(deadline)
        answer = next(self.left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait_until_ready(self, deadline):
        return "9" if deadline is None else self.receive(deadline)

    def end(self):
        self.ended = True


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """`MadeUp` in place of the worker, and what is written for it."""
    MadeUp.all, MadeUp.answers, MadeUp.is_alive, MadeUp.resident_bytes = [], [ANSWER] * 9, True, 0
    MadeUp.written = []
    monkeypatch.setattr(process_module, "Worker", MadeUp)
    monkeypatch.setattr(process_module, "MEMORY_FOLDER", tmp_path)
    monkeypatch.setattr(process_module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(process_module, "write_umb", lambda model, path, **options: MadeUp.written.append(options))
    monkeypatch.setattr(process_module.time, "monotonic", lambda: 100.0)
    return MadeUp


def test_a_request_says_all_that_the_worker_must_know(made_up):
    with StormProcess() as storm:
        one, two = storm.check(CHAIN, ['F ("a")', 'G ("a")'], timeout_s=5)
        (worker,) = made_up.all
        (request,) = worker.sent
        umb, owned = Path(request.pop("umb")), Path(request.pop("owned"))
        assert request == {
            "exact": False,
            "direct": False,
            "precision": "1/1000000000000",
            "memory": None,
            "queries": [{"formula": 'F ("a")', "operator": "P=?"}, {"formula": 'G ("a")', "operator": "P=?"}],
        }
        assert (umb.parent, owned.exists()) == (owned, False)
        plain = {"exact": False, "labels": {"a"}, "valuations": False, "storm_padding": True, "gains": None}
        assert made_up.written == [plain]
        assert (worker.deadlines, one.engine, one.most, two.value.tolist()) == (
            [105, 105],
            "Storm 9",
            1,
            [0.25, 0.75],
        )
        storm.check(CHAIN, ["C<=5"], operator=GAINS[0], gains=np.ones(2), direct=True, memory_bytes=7, timeout_s=None)
        assert [worker.sent[1][key] for key in ("exact", "direct", "memory")] == [False, True, 7]
        assert (worker.deadlines[2], made_up.written[1]["labels"]) == (None, frozenset())
        (gained,) = storm.check(CHAIN, ['F ("a")'], operator=GAINS[0])
        assert (gained.most, worker.ended) == (math.inf, False)
    assert worker.ended
    assert storm._worker is None


@pytest.mark.parametrize(
    ("memory", "resident", "taken", "ended"),
    [(None, 2**40, 2, False), (7, 256 * 2**20, 2, False), (7, 256 * 2**20 + 1, 2, True), (None, 0, 1, True)],
)
def test_a_worker_is_ended_that_holds_much_or_has_not_been_heard(made_up, memory, resident, taken, ended):
    made_up.resident_bytes = resident
    with StormProcess() as storm, storm.asked(CHAIN, ["true"] * 2, memory_bytes=memory) as answers:
        assert (answers.waiting, answers.usable) == (2, True)
        for _ in range(taken):
            next(answers)
        assert (answers.waiting, answers.usable) == (2 - taken, taken < 2)
    assert len(made_up.all) == 1
    with StormProcess() as storm:
        with storm.asked(CHAIN, ["true"] * 2, memory_bytes=memory) as answers:
            [next(answers) for _ in range(taken)]
        assert made_up.all[1].ended is ended
        storm.check(CHAIN, ["true"])
        assert len(made_up.all) == 2 + ended  # a fresh one where there is none


def test_after_an_answer_that_failed_there_are_no_more(made_up):
    made_up.answers = [{"error": "MemoryError: std::bad_alloc"}, ANSWER]
    text = '(!("a")) & ' * 20 + '("a")'
    with StormProcess() as storm:
        with storm.asked(CHAIN, [text, "true"]) as answers:
            with pytest.raises(RefusedError) as refused:
                next(answers)
            assert str(refused.value) == f"Storm cannot check '{text[:195]}...': 'MemoryError: std::bad_alloc'"
            assert (answers.waiting, answers.usable, list(answers)) == (0, False, [])
        assert not made_up.all[0].ended
        made_up.is_alive = False  # and then it dies
        made_up.answers = [DiedError("died of boredom"), OverdueError(), ANSWER, ANSWER]
        with storm.asked(CHAIN, ["true", "true"]) as answers:
            with pytest.raises(EngineError, match="the Storm worker died of boredom, while checking 'true'"):
                next(answers)
            assert (answers.waiting, answers.usable) == (2, False)
        assert [worker.ended for worker in made_up.all] == [True, True]
        made_up.answers, made_up.is_alive = [OverdueError()], True
        with pytest.raises(NoAnswerError, match=r"loading Storm took longer than the limit of 2\.5 s"):
            storm.storm_version(2.5)
        assert made_up.all[2].ended
        made_up.answers = ["8"]
        assert storm.storm_version(2.5) == "8"
        assert not made_up.all[3].ended
        with storm.asked(CHAIN, ["true"]) as answers:
            answers.abandon()
            assert not answers.usable
        with storm.asked(CHAIN, []) as answers:
            assert (answers.usable, list(answers)) == (False, [])
        assert not any(request["direct"] or request["exact"] for request in made_up.all[0].sent)
    for outside in (storm, StormProcess()):
        with pytest.raises(ValueError, match="inside its `with` block"):
            outside.check(CHAIN, ["true"])


@pytest.mark.parametrize("model", [CHAIN, PROCESS])
@pytest.mark.parametrize("operator", [*OPERATORS, *GAINS])
def test_operators_of_chains_and_of_processes(made_up, model, operator):
    with StormProcess() as storm:
        if (operator in (OPERATORS[0], GAINS[0])) == (model is CHAIN):
            storm.check(model, ['F ("a")'], operator=operator)
            storm.check(model, ["true"], operator=operator)  # a label of the model need not occur
        else:
            with pytest.raises(ValueError, match="does not fit a"):
                storm.check(model, ['F ("a")'], operator=operator)
        assert len(made_up.all[0].sent) == 2 * ((operator in (OPERATORS[0], GAINS[0])) == (model is CHAIN))


@pytest.mark.parametrize(
    ("formula", "more", "wrong"),
    [
        ('F ("b")', {}, r"no labels \['b'\]"),
        ('F ("b")', {"operator": GAINS[0]}, r"no labels \['b'\]"),
        ("true", {"exact": True}, "needs the fractions"),
    ],
)
def test_what_a_caller_must_not_pass(made_up, formula, more, wrong):
    with StormProcess() as storm, pytest.raises(ValueError, match=wrong):
        storm.check(CHAIN, [formula], **more)


def test_answers_become_numbers():
    bounded = _checked_values({"values": [0.5], "lower": [0.25], "upper": [0.75]}, "Storm", 1, 1.0)
    assert (bounded.lower.tolist(), bounded.upper.tolist(), bounded.fractions) == ([0.25], [0.75], None)
    exact = _checked_values({"values": ["1/10", "a/f"], "lower": None, "upper": None}, "Storm", 2, 1.0)
    assert (exact.fractions, exact.value[0]) == ((Fraction(1, 16), Fraction(2, 3)), 1 / 16)
    assert len(_checked_values({"values": [], "lower": None, "upper": None}, "Storm", 0, 1.0).value) == 0
    with pytest.raises(EngineError, match="answered 1 values for 2 initial states"):
        _checked_values({"values": [1.0], "lower": None, "upper": None}, "Storm", 2, 1.0)


@pytest.mark.parametrize(("spare", "in_memory"), [(1, True), (0, False), (None, False)])
def test_a_folder_is_in_memory_where_there_is_room_for_twice_what_is_expected(
    made_up, spare, in_memory, monkeypatch, tmp_path
):
    expected = process_module._expected_bytes(CHAIN, 0, False)
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    (disk if spare is None else memory).mkdir()
    disk.mkdir(exist_ok=True)
    monkeypatch.setattr(process_module, "MEMORY_FOLDER", memory)
    monkeypatch.setattr(process_module.tempfile, "tempdir", str(disk))
    free = SimpleNamespace(free=2 * expected + (spare or 0))
    monkeypatch.setattr(process_module.shutil, "disk_usage", lambda place: free if place.is_dir() else place.stat())
    with StormProcess() as storm:
        storm.check(CHAIN, ["true"])
    assert Path(made_up.all[0].sent[0]["owned"]).parent == (memory if in_memory else disk)


def abandoned(above, name="left", age_s=None):
    """A folder of ours whose owner is gone; where an age is given one without a lock, so old."""
    folder = above / f"{process_module.PREFIX}{name}"
    folder.mkdir()
    if age_s is None:
        (folder / process_module._LOCK).touch()
    else:
        os.utime(folder, (1000 - age_s, 1000 - age_s))
    return folder


def test_what_is_swept_is_ours_and_has_no_owner(monkeypatch, tmp_path):
    monkeypatch.setattr(process_module.time, "time", lambda: 1000.0)
    other, plain = abandoned(tmp_path).rename(tmp_path / "other"), tmp_path / f"{process_module.PREFIX}file"
    plain.touch()
    abandoned(tmp_path)
    abandoned(tmp_path, "old", 60.5)
    young = abandoned(tmp_path, "young", 60)
    with private_folder(tmp_path) as name:
        sweep([tmp_path, tmp_path / "missing"])
        assert set(tmp_path.iterdir()) == {young, other, plain, Path(name)}
    foreign = abandoned(tmp_path)
    monkeypatch.setattr(process_module.os, "getuid", lambda: foreign.stat().st_uid + 1)
    sweep([tmp_path])
    assert foreign.is_dir()


def test_what_cannot_be_removed_stays_and_is_no_error(monkeypatch, tmp_path):
    abandoned(tmp_path, "one"), abandoned(tmp_path, "two")
    remove, refused = os.rmdir, []

    def busy(*path, **options):
        if not refused:
            refused.append(path)
            raise OSError(errno.EBUSY, "in use")
        remove(*path, **options)

    monkeypatch.setattr(os, "rmdir", busy)
    sweep([tmp_path])
    assert len(list(tmp_path.iterdir())) == 1
    refused.clear()
    with private_folder(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 2


# ---------------------------------------------------------------------------------------------------------------
# The worker, with pipes in place of a process.


@pytest.fixture
def piped():
    """A worker whose process is made up, and the ends of its pipes that a process would have."""
    worker = object.__new__(Worker)
    worker._outgoing, worker._incoming, worker._messages, worker._version = b"", bytearray(), b"", "9"
    pipes = {name: os.pipe() for name in ("stdin", "stdout", "stderr")}
    mine = {
        name: os.fdopen(ends[name == "stdin"], "rb" if name != "stdin" else "wb", buffering=0)
        for name, ends in pipes.items()
    }
    worker._process = SimpleNamespace(**mine)
    ends = {
        name: os.fdopen(ends[name != "stdin"], "wb" if name != "stdin" else "rb", buffering=0)
        for name, ends in pipes.items()
    }
    yield worker, SimpleNamespace(**ends)
    for stream in (*mine.values(), *ends.values()):
        stream.close()


def test_answers_are_lines_one_after_the_other(piped):
    worker, process = piped
    process.stdout.write(b'{"k": 1}\n{"k":')
    assert worker.receive(None) == {"k": 1}
    process.stdout.write(b' 2}\n\n[3]\nnonsense\n{"k": 4}\n')
    assert worker.receive(None) == {"k": 2}
    for said in ("", "[3]", "nonsense"):
        with pytest.raises(DiedError) as died:
            worker.receive(None)
        assert str(died.value) == f"answered {said.encode()!r}"
    assert worker.receive(None) == {"k": 4}


def test_nothing_is_waited_for_after_the_deadline(piped, monkeypatch):
    worker, process = piped
    process.stdout.write(b'{"k": 1}\n')
    monkeypatch.setattr(worker_module.time, "monotonic", lambda: 100.0)
    for late in (100.0, 99.0):
        with pytest.raises(OverdueError):
            worker.receive(late)
    monkeypatch.setattr(worker_module, "_LONGEST_SLEEP_S", 0.0)
    with pytest.raises(OverdueError):
        worker.receive(10.0**9)
    monkeypatch.setattr(worker_module, "_LONGEST_SLEEP_S", 3600.0)
    assert worker.receive(100.5) == {"k": 1}


def test_a_request_goes_on_while_answers_are_waited_for(piped):
    worker, process = piped
    os.set_blocking(worker._process.stdin.fileno(), False)
    request = {"text": "x" * 2**18}  # more than a pipe holds
    worker.send(request)
    worker.send({"k": 2})
    process.stdout.write(b'{"k": 1}\n')
    assert worker.receive(None) == {"k": 1}
    text = b""
    while text.count(b"\n") < 2:
        text += process.stdin.read(1 << 16)
        process.stdout.write(b"0")
        worker._exchange(None)
    assert [json.loads(line) for line in text.splitlines()] == [request, {"k": 2}]
    process.stdin.close()
    worker.send({"k": 3})  # it died: reading will say so
    assert worker._outgoing == b""


@pytest.mark.parametrize(
    ("code", "messages", "cause"),
    [
        (0, b"", "ended with exit code 0"),
        (3, b"first\n\nlast words\n \n", "ended with exit code 3 ('last words')"),
        (-signal.SIGSEGV, b"", "died of SIGSEGV"),
        (-signal.SIGKILL, b"x", "died of SIGKILL; the system may have run out of memory ('x')"),
        (-40, b"", "died of signal 40"),
    ],
)
def test_why_a_worker_died(piped, code, messages, cause):
    worker, process = piped
    worker._process.wait = lambda seconds: code
    process.stderr.write(messages)
    process.stdout.close()
    process.stderr.close()
    with pytest.raises(DiedError) as died:
        worker.receive(None)
    assert str(died.value) == cause


def test_the_last_messages_are_kept(piped):
    worker, process = piped
    process.stderr.write(b"a" * 3000)
    assert worker._keep_messages()
    process.stderr.write(b"b" * 2000)
    assert worker._keep_messages()
    assert worker._messages == b"a" * 2096 + b"b" * 2000
    process.stderr.close()
    assert not worker._keep_messages()


def test_a_worker_has_its_own_session_and_never_blocks_its_caller(monkeypatch):
    monkeypatch.setattr(worker_module, "_START", "print(flush=True); input()")
    monkeypatch.setattr(worker_module.sys, "path", ["", "/elsewhere"])
    worker = Worker()
    try:
        assert os.getsid(worker.process_id) == worker.process_id
        assert not os.get_blocking(worker._process.stdin.fileno())
        worker._process.stdout.read(1)  # it has started
        assert worker._process.args[3:] == [".", "/elsewhere"]
        status = Path(f"/proc/{worker.process_id}/status").read_text()
        resident = int(status.partition("VmRSS:")[2].split()[0]) * 1024
        assert worker.resident_bytes == pytest.approx(resident, rel=0.1)
    finally:
        worker.end()
    assert worker.resident_bytes == 0
