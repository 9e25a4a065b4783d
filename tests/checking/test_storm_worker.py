"""The worker is killed, crashes, is orphaned and interrupted, and the caller never pays for it."""

import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction as Fr
from pathlib import Path

import numpy as np
import pytest

from verifier.base.errors import EngineError, InputError, NoAnswerError
from verifier.chains.chain import MarkovChain
from verifier.checking import process as process_module
from verifier.checking import worker as worker_module
from verifier.checking.process import StormProcess, private_folder, sweep

LOADS_WHEN_TOLD = """
import pathlib, time
while not pathlib.Path({loaded!r}).exists():
    time.sleep(0.01)
print('{{"version": "9"}}', flush=True)
input()
"""


def small_chain():
    """From 0 to the goal 1 with 1/3, to the trap 2 with 2/3."""
    fractions = (Fr(1, 3), Fr(2, 3), Fr(1), Fr(1))
    return MarkovChain(
        indptr=np.array([0, 2, 3, 4]),
        indices=np.array([1, 2, 1, 2]),
        probabilities=np.array([float(fraction) for fraction in fractions]),
        labels={"goal": np.array([False, True, False])},
        initial=np.array([0]),
        fractions=fractions,
    )


def slow_chain(n=220):
    """A dense chain of n + 2 states, whose exact solution takes Storm most of a minute."""
    weights = np.random.default_rng(1).integers(1, 100, size=(n, n + 2))
    fractions = [Fr(int(w), int(row.sum())) for row in weights for w in row] + [Fr(1), Fr(1)]
    return MarkovChain(
        indptr=np.r_[np.arange(0, n * (n + 2) + 1, n + 2), n * (n + 2) + 1, n * (n + 2) + 2],
        indices=np.r_[np.tile(np.arange(n + 2), n), n, n + 1],
        probabilities=np.array([float(fraction) for fraction in fractions]),
        labels={"goal": np.arange(n + 2) == n},
        initial=np.array([0]),
        fractions=tuple(fractions),
    )


@pytest.fixture(scope="module")
def slow():
    return slow_chain()


@pytest.fixture
def folders(monkeypatch):
    """The temporary folders that checks have used."""
    used = []
    write = process_module.write_umb

    def recorded(model, path, **options):
        used.append(Path(path).parent)
        write(model, path, **options)

    monkeypatch.setattr(process_module, "write_umb", recorded)
    return used


@pytest.fixture
def once_asked(monkeypatch):
    """Does something a while after the next request is written, however long that takes."""

    def begin(function, *arguments):
        write = process_module.write_umb

        def written(model, path, **options):
            monkeypatch.setattr(process_module, "write_umb", write)
            write(model, path, **options)
            threading.Timer(0.7, function, arguments).start()

        monkeypatch.setattr(process_module, "write_umb", written)

    return begin


def assert_gone(process_id):
    """No such process, not even a zombie."""
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def assert_answers(storm):
    (answer,) = storm.check(small_chain(), ['F ("goal")'], exact=True)
    assert answer.fractions == (Fr(1, 3),)


def test_the_time_limit_kills_the_worker_and_the_next_check_works(slow, folders):
    with StormProcess() as storm:
        assert_answers(storm)
        first = storm._worker.process_id
        with pytest.raises(NoAnswerError) as caught:
            storm.check(slow, ['X ("goal")', 'F ("goal")'], exact=True, timeout_s=1.5)
        message = str(caught.value)
        assert message.startswith("checking 'F (\"goal\")' took longer than the limit of 1.5 s")
        assert "allow more time, or check a smaller model" in message
        assert_gone(first)
        assert_answers(storm)
        second = storm._worker.process_id
    assert_gone(second)
    assert folders
    assert not any(folder.exists() for folder in folders)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_during_a_check_names_the_signal(slow, folders, once_asked, name):
    with StormProcess() as storm:
        storm.storm_version()
        crashed = storm._worker.process_id
        once_asked(os.kill, crashed, signal.Signals[name])
        with pytest.raises(EngineError, match=rf"died of {name}.* while checking 'F \(\"goal\"\)'"):
            storm.check(slow, ['F ("goal")'], exact=True)
        assert_gone(crashed)
        assert_answers(storm)
    assert not any(folder.exists() for folder in folders)


def test_a_worker_that_died_between_two_checks_is_replaced():
    with StormProcess() as storm:
        assert_answers(storm)
        dead = storm._worker.process_id
        os.kill(dead, signal.SIGSEGV)
        os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
        assert_answers(storm)
        assert_gone(dead)


def test_ctrl_c_kills_the_worker(slow, folders, once_asked):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with StormProcess() as storm:
            storm.storm_version()
            working = storm._worker.process_id
            once_asked(signal.pthread_kill, threading.main_thread().ident, signal.SIGALRM)
            with pytest.raises(KeyboardInterrupt):
                storm.check(slow, ['F ("goal")'], exact=True)
            assert_gone(working)
            assert not folders[0].exists()
            assert_answers(storm)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_worker_outlives_neither_the_block_nor_an_error_in_it():
    storm = StormProcess()
    workers = []

    def fail():
        with storm:
            assert_answers(storm)
            workers.append(storm._worker.process_id)
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fail()
    assert_gone(workers[0])
    with pytest.raises(ValueError, match="inside its `with` block"):
        storm.check(small_chain(), ["true"])
    with storm:
        assert_answers(storm)


def test_entering_does_not_wait_for_storm_to_load(monkeypatch, tmp_path):
    loaded, waited = tmp_path / "loaded", []
    monkeypatch.setattr(worker_module, "_START", LOADS_WHEN_TOLD.format(loaded=str(loaded)))
    guard = threading.Timer(30, lambda: (waited.append(True), loaded.touch()))
    guard.start()
    try:
        with StormProcess() as storm:
            assert not waited
            loaded.touch()
            assert storm.storm_version() == "9"
    finally:
        guard.cancel()


def test_the_worker_as_a_program_of_its_own():
    command = [sys.executable, "-m", "verifier.checking.storm"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ('{"version": "2.0.0"}\n', "")


@pytest.mark.parametrize(
    "formula", ["(" * 200_000 + '"goal"' + ")" * 200_000, "(X " * 20_000 + '"goal"' + ")" * 20_000]
)
def test_a_formula_that_crashes_storm_is_an_error(formula):
    # Storm's own parser and checker recurse without a limit.
    with StormProcess() as storm:
        with pytest.raises(EngineError, match="died of SIGSEGV, while checking"):
            storm.check(small_chain(), [formula])
        assert_answers(storm)


def test_several_workers_side_by_side():
    results = {}

    def run(number):
        with StormProcess() as storm:
            answers = storm.check(small_chain(), ['G (F ("goal"))'] * 20, exact=True)
            results[number] = {answer.fractions for answer in answers}

    threads = [threading.Thread(target=run, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: {(Fr(1, 3),)} for number in range(3)}


def test_a_request_larger_than_a_pipe_holds():
    formulas = ['F ("goal")'] * 2_000
    with StormProcess() as storm:
        answers = storm.check(small_chain(), formulas)
    assert len(answers) == 2_000
    assert {answer.value[0] for answer in answers} == {1 / 3}


def test_storm_answers_before_anybody_waits():
    with StormProcess() as storm:
        storm.storm_version()
        with storm.asked(small_chain(), ['F ("goal")', 'X ("goal")']) as answers:
            answered, _, _ = select.select([storm._worker._stream("stdout")], [], [], 30)
            assert answered
            assert [float(answer.value[0]) for answer in answers] == pytest.approx([1 / 3, 1 / 3], abs=1e-11)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('Storm says hello', flush=True); input()", r"answered b'Storm says hello'"),
        ("import sys; sys.exit('no such module')", r"ended with exit code 1 \('no such module'\)"),
        ("import os; os.close(1); input(); input()", "closed its output without an answer"),
        ('print(\'{"error": "stormpy cannot be imported: x"}\')', "stormpy cannot be imported: x"),
    ],
)
def test_a_worker_that_talks_nonsense(monkeypatch, program, message):
    monkeypatch.setattr(worker_module, "_START", program)
    monkeypatch.setattr(worker_module, "_LAST_WORDS_S", 0.3)
    with StormProcess() as storm:
        with pytest.raises(EngineError, match=message):
            storm.check(small_chain(), ['F ("goal")'])
        with pytest.raises(EngineError, match=message):
            storm.storm_version()


def test_no_room_for_the_temporary_file(folders):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with StormProcess() as storm:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written: File too large"):
                storm.check(small_chain(), ['F ("goal")'])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not folders[0].exists()
        assert_answers(storm)


def test_no_folder_for_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr(process_module.shutil, "disk_usage", lambda _: _Full())
    monkeypatch.setattr(process_module.tempfile, "tempdir", str(tmp_path / "missing"))
    with StormProcess() as storm, pytest.raises(InputError, match="no folder for temporary files"):
        storm.check(small_chain(), ["true"])


class _Full:
    free = 0


def test_a_full_memory_disk_is_not_used(monkeypatch, tmp_path, folders):
    monkeypatch.setattr(process_module.shutil, "disk_usage", lambda _: _Full())
    monkeypatch.setattr(process_module.tempfile, "tempdir", str(tmp_path))
    with StormProcess() as storm:
        assert_answers(storm)
    assert [folder.parent for folder in folders] == [tmp_path]
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------
# Callers of their own, as separate processes.

CALLER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("cases", {cases!r})
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
from verifier.checking.process import StormProcess
"""


def caller(body):
    return CALLER.format(cases=__file__) + textwrap.dedent(body)


def test_standard_output_of_the_caller_stays_clean():
    body = """
        with StormProcess() as storm:
            storm.check(cases.small_chain(), ['F ("goal")', 'G (F ("goal"))'])
            try:
                storm.check(cases.small_chain(), ['X (F<0 ("goal"))'])
            except Exception:
                pass
        print("the only line")
    """
    done = subprocess.run([sys.executable, "-c", caller(body)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("the only line\n", "")


@pytest.mark.every(3)
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&-", "2>&-", ">&-", "</dev/null >/dev/null"])
def test_the_caller_may_have_no_standard_streams(closed, tmp_path):
    body = f"""
        with StormProcess() as storm:
            answers = storm.check(cases.small_chain(), ['F ("goal")'], exact=True)
        from pathlib import Path
        Path({str(tmp_path / "answer")!r}).write_text(str(answers[0].fractions[0]))
    """
    script = tmp_path / "caller.py"
    script.write_text(caller(body))
    subprocess.run(["/bin/sh", "-c", f"{sys.executable} {script} {closed}"], check=True, timeout=60)
    assert (tmp_path / "answer").read_text() == "1/3"


def test_modules_in_the_working_folder_are_not_run(tmp_path):
    # A user may well have a file of this name among the models.
    (tmp_path / "json.py").write_text("raise SystemExit('read the wrong json')")
    (tmp_path / "caller.py").write_text("")
    body = """
        with StormProcess() as storm:
            assert storm.storm_version() == "2.0.0"
    """
    subprocess.run([sys.executable, "-P", "-c", caller(body)], cwd=tmp_path, check=True, timeout=60)


def test_an_orphaned_worker_ends_and_takes_its_file_along():
    body = """
        with StormProcess() as storm:
            write = sys.modules["verifier.checking.process"].write_umb
            def told(model, path, **options):
                write(model, path, **options)
                print(storm._worker.process_id, path.parent, flush=True)
            sys.modules["verifier.checking.process"].write_umb = told
            storm.check(cases.slow_chain(), ['F ("goal")'], exact=True)
    """
    parent = subprocess.Popen([sys.executable, "-c", caller(body)], stdout=subprocess.PIPE, text=True)
    worker, folder = parent.stdout.readline().split()
    time.sleep(1)  # the worker has read the request by now
    assert Path(folder).exists()
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 300  # not judged: without one a failure would hang
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(worker), 0)


def test_a_folder_that_is_being_made_is_not_taken_for_an_abandoned_one(tmp_path, monkeypatch):
    lock = fcntl.flock

    def swept_before(*arguments):
        if arguments[1] == fcntl.LOCK_EX:  # the owner's, who waits; whoever sweeps does not
            sweep([tmp_path])
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", swept_before)
    with private_folder(tmp_path) as name:
        assert Path(name).is_dir()
        sweep([tmp_path])
        assert Path(name).is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_while_it_is_looked_at_is_not_swept(tmp_path):
    """Whoever made it may remove it after it was listed."""
    (tmp_path / f"{process_module.PREFIX}gone").mkdir()
    (entry,) = os.scandir(tmp_path)
    (tmp_path / entry.name).rmdir()
    assert not process_module._is_abandoned(entry)


def test_a_folder_whose_lock_is_a_link_is_not_swept(tmp_path):
    folder = tmp_path / f"{process_module.PREFIX}linked"
    folder.mkdir()
    (folder / process_module._LOCK).symlink_to(tmp_path)
    os.utime(folder, (1, 1))
    sweep([tmp_path])
    assert folder.is_dir()
