"""Storm behind one small door: the only module that imports stormpy, run as a worker process.

`python -m verifier.checking.storm` reads one request per line on standard input and writes one line per answer
on standard output, all of it JSON. A worker can be killed, which is the only safe way to end a Storm query:
an interrupted check in the same process returns wrong values, and some queries crash.

    request   {"umb": path, "owned": folder, "exact": bool, "direct": bool,
               "precision": "1/1000000000000", "memory": bytes | null,
               "queries": [{"formula": text, "operator": one of `OPERATORS` or `GAINS`}, ...]}
    answers   {"version": "2.0.0"} once at the start, then one per query:
              {"values": [...], "lower": [...] | null, "upper": [...] | null}   or   {"error": text}

Values belong to the initial states in increasing order, without the last state, which is padding. They are
numbers, or "numerator/denominator" in hexadecimal when exact. A direct solver factorises the equations, which takes
as long for a chain that mixes slowly as for any other, and gives no bounds. An error ends the request it belongs to.
"memory" is what the process may take beyond what it holds with Storm loaded (its address space, which the system
limits). The folder named by "owned" is removed when the parent process dies before the request is answered.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

OPERATORS = ("P=?", "Pmin=?", "Pmax=?")
GAINS = ('R{"gain"}=?', 'R{"gain"}min=?', 'R{"gain"}max=?')
"""Of what is gained until a state formula holds, `F ...`, or within some steps, `C<=N`."""


def main() -> None:
    """Answer requests until standard input ends."""
    # Storm's log and Spot write to the C-level standard output, which nothing in Python can redirect.
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.set_int_max_str_digits(0)
    _lift_inherited_limit()
    orphan = _OrphanWatch()
    threading.Thread(target=orphan.run, daemon=True).start()
    try:
        checker = _Checker()
    except ImportError as error:
        _write(answers, {"error": f"stormpy cannot be imported: {error}"})
        return
    _write(answers, {"version": checker.version})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        orphan.owned = request["owned"]
        for answer in checker.answers(request):
            _write(answers, answer)
        orphan.owned = None


def _write(descriptor: int, answer: dict[str, object]) -> None:
    data = (json.dumps(answer) + "\n").encode()
    while data:
        data = data[os.write(descriptor, data) :]


class _OrphanWatch:
    """Ends this process when its parent is gone; a query may run for hours without looking at its input."""

    def __init__(self) -> None:
        self.owned: str | None = None
        self._parent = os.getppid()

    def run(self) -> None:
        """Look once a second; Storm releases Python's lock while it computes."""
        while os.getppid() == self._parent:
            time.sleep(1)
        if self.owned is not None:
            shutil.rmtree(self.owned, ignore_errors=True)
        os._exit(1)


class _Checker:
    """stormpy, imported when this is made and silent."""

    def __init__(self) -> None:
        import stormpy
        from stormpy import environments, info
        from stormpy.developer import LogLevel, set_log_level
        from stormpy.exceptions import StormError

        set_log_level(LogLevel.OFF)
        self.version = str(info.storm_version())
        self._loaded_bytes = _address_space()
        self._stormpy = stormpy
        self._environments = environments
        # What Storm and its Python layer raise: C++ exceptions arrive as the builtin ones.
        self._failures: tuple[type[Exception], ...] = (
            StormError,
            ArithmeticError,
            LookupError,
            MemoryError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        )

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, object]]:
        """One answer per query, as long as they succeed."""
        _limit_address_space(self._loaded_bytes, request["memory"])
        try:
            model = self._stormpy.build_model_from_umb(request["umb"])
            asked = [state for state in sorted(model.initial_states) if state != model.nr_states - 1]
            environment = self._environment(request["exact"], request["direct"], request["precision"])
            for query in request["queries"]:
                answer = self._answer(model, asked, environment, query, request["exact"])
                yield {**answer, "lower": None, "upper": None} if request["direct"] else answer
        except self._failures as error:
            name = "MemoryError" if "No memory" in str(error) else type(error).__name__  # so says who reads the file
            yield {"error": f"{name}: {error}"}

    def _environment(self, exact: bool, direct: bool, precision: str) -> Any:
        if exact:
            return self._environments.exact()
        # The default is a relative 1e-6 by a method without guarantees.
        environment = self._environments.sound()
        solver = environment.solver()
        if direct:
            solver.set_linear_equation_solver_type(self._environments.EquationSolverType.EIGEN)
        solver.native().precision = self._stormpy.Rational(precision)
        solver.min_max().precision = self._stormpy.Rational(precision)
        return environment

    def _answer(
        self, model: Any, asked: list[int], environment: Any, query: dict[str, str], exact: bool
    ) -> dict[str, object]:
        parsed = self._stormpy.parse_property(f"{query['operator']} [ {query['formula']} ]")
        # For LTL the values of other states would be garbage, so only initial states are asked for and read.
        result = self._stormpy.model_checking(model, parsed, only_initial_states=True, environment=environment)
        if result is None:
            raise ValueError("Storm does not support this formula on this model")
        values = [result.get_value(state) for state in asked]
        if exact:
            # Storm's bounds of an exact result went through doubles and may even exclude it: not passed on.
            return {"values": [_hexadecimal(value) for value in values], "lower": None, "upper": None}
        bounded = result.has_lower_bounds() and result.has_upper_bounds()
        return {
            "values": values,
            "lower": [result.get_lower_bound(state) for state in asked] if bounded else None,
            "upper": [result.get_upper_bound(state) for state in asked] if bounded else None,
        }


def _lift_inherited_limit() -> None:
    """The limit on the caller's memory is none on this process, which is given one of its own with each request."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _address_space() -> int:
    """Bytes of this process's address space; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 (the worker loads as little as possible)
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _limit_address_space(loaded: int, further: int | None) -> None:
    """Let the system refuse more address space than `loaded` and `further` bytes; None for no limit."""
    if loaded == 0:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = hard if further is None else loaded + further
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))


def _hexadecimal(value: Any) -> str:
    """A rational of Storm's as "numerator/denominator"; hexadecimal because long decimals are slow to read."""
    numerator, _, denominator = str(value).partition("/")
    return f"{int(numerator):x}/{int(denominator or '1'):x}"


if __name__ == "__main__":
    main()
