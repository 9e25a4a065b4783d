"""The command `verify`: reads arguments, calls the pipeline, prints. Nothing is computed here."""

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TextIO

from verifier.base.errors import ExitCode, InputError, Place, VerifierError, one_line
from verifier.base.files import stated_second
from verifier.base.libraries import __version__
from verifier.base.options import add_common
from verifier.cli.invocation import PROGRAM, invocation, with_config
from verifier.cli.parser import HelpText, VerbParser, add_verbs

DESCRIPTION = """\
Probability that a perception-driven system meets its requirements, from the detector's confusion matrices.

  verify confusion --format NAME --annotations PATH --detections PATH -o RESULTS.json
  verify run SPEC.ltl --cm RESULTS.json
"""

EXIT_CODES = """\
exit codes:
  0 satisfied   1 violated   2 wrong usage   3 inconclusive   4 bad input   5 internal error or engines disagree
  6 no answer within the limits of time, memory and size
"""

UNUSABLE_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of a file's name alone, which a user gave: too long, or links that lead in a circle."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit codes are those of `ExitCode`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end the run
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = command_parser(given)
    try:
        with _ended_like_interrupted():
            given = with_config(given)
            options = parser.parse_args(given)
            stated_second()  # libraries read it as well, and fail in their own ways
            options.invocation = invocation(given)
            code = int(options.command(options))
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
    except VerifierError as error:
        _complain(str(error))
        return int(error.exit_code)
    except _EndedError as error:
        _complain(f"ended by {signal.Signals(error.number).name}")
        return 128 + error.number
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        _forget(sys.stdout)
        return 141
    except MemoryError:
        _complain(
            "out of memory; ask for less at a time, or lower the limits (of a model: --max-states, --max-memory)"
        )
        return int(ExitCode.NO_ANSWER)
    except Exception as error:  # a fault of this program must not look like a violated requirement (exit 1)
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EIO):
            _complain(f"standard output cannot be written: {error.strerror}")
            _forget(sys.stdout)
            return int(ExitCode.INTERNAL)
        if isinstance(error, OSError) and error.filename is not None and error.errno in UNUSABLE_NAMES:
            name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename)
            _complain(str(InputError(f"no file can have this name: {error.strerror}", Place(one_line(name)))))
            return int(ExitCode.BAD_INPUT)
        if os.environ.get("VERIFIER_DEBUG"):
            import traceback

            traceback.print_exc()
        _complain(
            f"internal error: {type(error).__name__}: {error}\n"
            "  hint: please report it; VERIFIER_DEBUG=1 shows where it happened"
        )
        return int(ExitCode.INTERNAL)


class _EndedError(KeyboardInterrupt):
    """The system, or whoever uses it, asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as Ctrl-C does, so that everything temporary is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _EndedError(number)

    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _forget(stream: TextIO) -> None:
    """Keep Python from writing once more at exit what a stream does not take, which changes the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str) -> None:
    """Say what is wrong on stderr, without control characters; a full or closed stderr changes nothing."""
    lines = [one_line(line) for line in f"verify: {message}".split("\n")]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        try:
            print("\n".join(lines), file=sys.stderr, flush=True)
        except OSError:
            _forget(sys.stderr)


def command_parser(given: Sequence[str] = ()) -> VerbParser:
    """The parser of the whole command line; the version has its commit where that is `given` as what is asked for."""
    version = __version__
    if "--version" in given:  # looked up for nothing else, for it starts a process
        from verifier.evidence.identity import full_version

        version = full_version()
    parser = VerbParser(prog=PROGRAM, description=DESCRIPTION, epilog=EXIT_CODES, formatter_class=HelpText)
    add_common(parser, f"{PROGRAM} {version}")
    add_verbs(parser.add_subparsers(title="commands", metavar="COMMAND", required=True))
    return parser
