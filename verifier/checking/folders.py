"""Private temporary folders that nobody leaves behind: what a killed process could not remove, the next start does.

A folder holds a file that its owner keeps locked. The system releases the lock when the owner is gone, however it
ended, and in whatever container it ran.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

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
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_uid != os.getuid():
            return False
        lock = os.open(Path(entry.path) / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - status.st_mtime > _MAKING_S
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
