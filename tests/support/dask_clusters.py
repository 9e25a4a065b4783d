"""Dask clusters on this machine's loopback, and files that are one table in pieces."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import dask
import distributed
import pyarrow.parquet as pq

from verifier.base.blocks import MOST_DEATHS


def listed(block, slow=0.0):
    """Work for processes, which find it here: test modules are on no worker's path."""
    time.sleep(slow * random.random())
    return [block]


def taking(size):
    return [len(bytearray(size))]


def suicidal(block):
    if block == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return [block]


def kept_seconds(seconds):
    """Seconds of work of which this worker keeps what they were spent on, after so many of them."""
    time.sleep(seconds)
    worker = distributed.get_worker()
    return [len(worker.profile_history) + len(worker.profile_keys_history) + len(worker.io_loop.profile)]


@contextmanager
def cluster(workers, processes=True):
    """The address of a scheduler with so many workers: processes, or threads of this one, which start at once."""
    patience = {
        "distributed.comm.timeouts.connect": "5s",  # so long a killed worker is asked for results
        "distributed.scheduler.allowed-failures": MOST_DEATHS,  # as of our own; a block that only waited there counts
    }
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=100,
        ) as made,
    ):
        yield made.scheduler_address


def _started(dask_worker):
    """The process a nanny (the name is Dask's) watches over, once it is up: one that is starting is not replaced."""
    return dask_worker.pid if dask_worker.process.status is distributed.Status.running else None


class Killer:
    """Kills one worker of a scheduler, by SIGKILL, whenever the share of the blocks that are done passes a moment."""

    def __init__(self, address, moments):
        self.address, self.moments, self.killed = address, sorted(moments), []

    def __call__(self, done, total):
        while self.moments and done >= self.moments[0] * total:
            self.moments.pop(0)
            with distributed.Client(self.address, set_as_default=False) as client:
                pid = None
                while pid is None:
                    client.wait_for_workers(1, timeout=60)
                    started = client.run(_started, nanny=True, on_error="ignore").values()
                    pid = next((each for each in started if each not in (None, *self.killed)), None)
            assert pid != os.getpid()
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)


class OwnCluster:
    """Scheduler and workers as processes of their own, which can be lost and started again at the same address."""

    def __init__(self, port, folder, environment):
        self.address, self.folder, self.environment = f"tcp://127.0.0.1:{port}", folder, environment
        self.scheduler, self.workers = None, []

    def _process(self, *words):
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start(self, workers):
        port = self.address.rpartition(":")[2]
        self.scheduler = self._process(
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            port,
            "--dashboard-address",
            "127.0.0.1:0",
        )
        for _ in range(100):  # a worker that comes before its scheduler gives up
            try:
                distributed.Client(self.address, timeout=0.5, set_as_default=False).close()
                break
            except OSError:
                time.sleep(0.1)
        self.work(workers)

    def work(self, workers):
        self.workers += [
            self._process(
                "distributed.cli.dask_worker",
                self.address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
            )
            for _ in range(workers)
        ]

    def lose_scheduler(self):
        self.scheduler.kill()
        self.scheduler.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.scheduler, *self.workers]:
            process.terminate()
        for process in [self.scheduler, *self.workers]:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def in_pieces(source, folder, rows):
    """A Parquet file as a folder of files with so many rows each."""
    table = pq.read_table(source)
    folder.mkdir()
    for number, first in enumerate(range(0, len(table), rows)):
        pq.write_table(table.slice(first, rows), folder / f"part-{number:05}.parquet")
