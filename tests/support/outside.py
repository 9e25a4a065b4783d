"""A command watched from outside: how long it takes, and how much memory it and its children hold at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Watched:
    """`peak_bytes` is the largest sum of resident sizes over the process and all below it, read every few ms."""

    code: int
    out: str
    err: str
    seconds: float
    peak_bytes: int


def verify_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "verifier", *map(str, arguments)]


def descendants(pid: int) -> list[int]:
    """The processes below one, in any session."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def watched(command: list[str], folder: Path, most_s: float = 300) -> Watched:
    """Run a command to its end; a process that takes longer than `most_s` is killed, and its code is negative."""
    begun, peak = time.monotonic(), 0
    with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, sum(map(resident_bytes, [process.pid, *descendants(process.pid)])))
            if time.monotonic() - begun > most_s:
                process.kill()
            time.sleep(0.005)
    seconds = time.monotonic() - begun
    texts = ((folder / name).read_text() for name in ("out.txt", "err.txt"))
    return Watched(process.returncode, *texts, seconds, peak)
