"""Programs are ended in many ways; none leaves temporary folders, files in shared memory or workers behind."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from looping_systems import write_system
from outside import descendants, verify_command

from verifier.checking.process import MEMORY_FOLDER, PREFIX, StormProcess, sweep

SLOW = " & ".join(f"(G F x = {k})" for k in range(10))  # half a minute in Storm, nothing in the other engine


def until(holds, what, seconds=300):
    for _ in range(50 * seconds):
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError(what)


def folder_of(pid):
    """The temporary folder whose lock the process holds."""
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = link.readlink()
        except OSError:
            continue
        if target.parent.name.startswith(PREFIX) and (target.parent / "model.umb").exists():
            return target.parent
    return None


@pytest.fixture
def checking(tmp_path):
    """A run in the middle of a check: the process, its worker, its temporary folder."""
    spec, matrices = write_system(tmp_path, SLOW)
    process = subprocess.Popen(
        verify_command("run", spec, "--cm", matrices, "-o", tmp_path / "run.json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    try:
        folder = until(lambda: folder_of(process.pid), "no check was begun")
        (worker,) = descendants(process.pid)
        yield process, worker, folder
    finally:
        process.kill()
        process.communicate()


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (signal.SIGINT, 130, "verify: interrupted\n"),
        (signal.SIGTERM, 143, "verify: ended by SIGTERM\n"),
        pytest.param(signal.SIGHUP, 129, "verify: ended by SIGHUP\n", marks=pytest.mark.slow),
    ],
)
def test_signals_leave_nothing_behind(checking, tmp_path, how, code, said):
    process, worker, folder = checking
    process.send_signal(how)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (code, "", said)
    assert not folder.exists()
    until(lambda: gone(worker), "the worker lives on")
    assert not (tmp_path / "run.json").exists()


def test_the_next_start_sweeps_what_a_kill_left_and_nothing_in_use_or_of_others(checking, tmp_path):
    process, worker, folder = checking
    strange = tmp_path / f"{PREFIX}link"
    strange.symlink_to(tmp_path)
    other = tmp_path / "verifier-other"
    other.mkdir()
    fresh = tmp_path / f"{PREFIX}fresh"  # being made: its owner has no lock yet
    fresh.mkdir()
    old = tmp_path / f"{PREFIX}old"
    old.mkdir()
    os.utime(old, (1, 1))
    sweep([MEMORY_FOLDER, Path(tempfile.gettempdir()), tmp_path, tmp_path / "missing"])
    assert folder.exists()
    assert process.poll() is None
    assert sorted(path.name for path in tmp_path.iterdir() if "verifier" in path.name) == [
        "verifier-other",
        f"{PREFIX}fresh",
        f"{PREFIX}link",
    ]
    os.kill(worker, signal.SIGSTOP)  # or it would tidy up itself
    process.kill()
    process.wait()
    os.kill(worker, signal.SIGKILL)
    assert (folder / "model.umb").exists()
    with StormProcess():
        assert not folder.exists()


def test_an_orphaned_worker_removes_the_folder_itself(checking):
    process, worker, folder = checking
    process.kill()
    process.wait()
    until(lambda: not folder.exists() and gone(worker), "the worker or its folder lives on")
