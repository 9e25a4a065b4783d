"""A worker process that answers JSON lines with JSON lines, and can be waited for, killed and outlived."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from verifier.base.errors import shown

_START = "import sys; sys.path[:] = sys.argv[1:]; from verifier.checking.storm import main; main()"
_KEPT_MESSAGES = 4096  # bytes of standard error kept for the error message
_LONGEST_SLEEP_S = 3600.0  # the system call that waits does not take every float
_LAST_WORDS_S = 10.0  # how long a process may take to end after it closed its output


class OverdueError(Exception):
    """No answer came before the deadline."""


class DiedError(Exception):
    """The worker ended or no longer talks sense; the text says what is known."""


class Worker:
    """A process that runs `verifier.checking.storm.main`, started without waiting for it.

    It has its own session, so that Ctrl-C in a terminal reaches only the caller and the whole process group can
    be killed. It searches modules exactly where the caller does.
    """

    def __init__(self) -> None:
        command = [sys.executable, "-c", _START, *(entry or "." for entry in sys.path)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )
        self._outgoing = b""
        self._incoming = bytearray()
        self._messages = b""
        self._version: str | None = None
        os.set_blocking(self._stream("stdin").fileno(), False)

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] | None = getattr(self._process, name)
        if stream is None:
            raise ValueError(f"the worker has no {name}")
        return stream

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def process_id(self) -> int:
        """The process id, which is the id of its process group as well."""
        return self._process.pid

    @property
    def resident_bytes(self) -> int:
        """Memory that the process holds now; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self.process_id}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def send(self, request: dict[str, object]) -> None:
        """Send what the pipe takes at once; the rest travels while answers are waited for, so nobody can block."""
        self._outgoing += (json.dumps(request) + "\n").encode()
        self._write_some()

    def receive(self, deadline: float | None) -> dict[str, object]:
        """The next answer, before `deadline` on the clock `time.monotonic` (None: whenever it comes).

        Raises:
            OverdueError: the deadline passed.
            DiedError: the worker ended, or its answer is not JSON.
        """
        self.wait_until_ready(deadline)
        return self._read_line(deadline)

    def wait_until_ready(self, deadline: float | None) -> str:
        """Version of Storm, once it is loaded; errors as for `receive`."""
        if self._version is None:
            answer = self._read_line(deadline)
            if "version" not in answer:
                raise DiedError(f"cannot start: {answer.get('error')}")
            self._version = str(answer["version"])
        return self._version

    def end(self) -> None:
        """Kill the process group, wait until it is gone, close the pipes. Calling it again does nothing."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._process.wait()
        for name in ("stdin", "stdout", "stderr"):
            with contextlib.suppress(OSError):
                self._stream(name).close()

    def _read_line(self, deadline: float | None) -> dict[str, object]:
        searched = 0
        while (end := self._incoming.find(b"\n", searched)) < 0:
            searched = len(self._incoming)
            self._exchange(deadline)
        line = bytes(self._incoming[:end])
        del self._incoming[: end + 1]
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise DiedError(f"answered {shown(line)}")
        return answer

    def _exchange(self, deadline: float | None) -> None:
        """Send and receive what is ready, after waiting until something is."""
        remaining = _LONGEST_SLEEP_S if deadline is None else min(deadline - time.monotonic(), _LONGEST_SLEEP_S)
        if remaining <= 0:
            raise OverdueError
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream("stdout"), selectors.EVENT_READ)
            selector.register(self._stream("stderr"), selectors.EVENT_READ)
            if self._outgoing:
                selector.register(self._stream("stdin"), selectors.EVENT_WRITE)
            ready = {key.fileobj for key, _ in selector.select(remaining)}
        if self._stream("stdin") in ready:
            self._write_some()
        if self._stream("stderr") in ready:
            self._keep_messages()
        if self._stream("stdout") in ready:
            data = os.read(self._stream("stdout").fileno(), 1 << 20)
            self._incoming += data
            if not data:
                raise DiedError(self._cause_of_death())

    def _write_some(self) -> None:
        try:
            written = os.write(self._stream("stdin").fileno(), self._outgoing[: 1 << 20])
            self._outgoing = self._outgoing[written:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._outgoing = b""  # it died: reading will say so, with the cause

    def _keep_messages(self) -> bool:
        data = os.read(self._stream("stderr").fileno(), 1 << 16)
        self._messages = (self._messages + data)[-_KEPT_MESSAGES:]
        return bool(data)

    def _cause_of_death(self) -> str:
        try:
            code = self._process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            return "closed its output without an answer"
        while self._keep_messages():
            pass
        words = [line for line in self._messages.decode(errors="replace").splitlines() if line.strip()]
        last = f" ({shown(words[-1], 200)})" if words else ""
        if code >= 0:
            return f"ended with exit code {code}{last}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = "; the system may have run out of memory" if -code == signal.SIGKILL else ""
        return f"died of {name}{memory}{last}"
