"""The arguments of `verify run`, and what they mean.

Only light modules are imported at the top, so that `verify --help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from verifier.base.errors import UsageError, shown
from verifier.cli.bounds_arguments import (
    add_bounds_arguments,
    bounds_settings,
    refuse_without_bounds,
    source_of_verdicts,
)

if TYPE_CHECKING:
    from verifier.analysis.settings import ConfidenceSettings
    from verifier.options import RunOptions
    from verifier.scenarios import Selection

Value = TypeVar("Value")

EMPTY_COLUMNS = ("error", "prior", "neighbour", "pool", "miss")
FALSE_ALARMS = ("as_counted", "ignore", "background")
VERDICT_SOURCES = ("bounds", "interval", "point")
INTERVALS = ("auto", "posterior", "bootstrap")
SEMANTICS = ("every-state", "one-matrix")
LARGEST_SWEEP = 10_000

RUN_DESCRIPTION = """\
Check every requirement of SPEC in every scenario (true environment, initial state, swept constants) on the Markov
chain of planner and confusion matrices. Storm computes each number, a second engine checks it.
"""


def add_run_arguments(commands: Any) -> None:
    """Add the command `run`."""
    from verifier.cli.ci_arguments import add_ci_arguments

    run = commands.add_parser(
        "run",
        help="how likely a system meets the requirements of a spec",
        description=RUN_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.set_defaults(command=_run)
    run.add_argument("spec", metavar="SPEC", help="requirements in LTL (.ltl); the file names the system model")
    run.add_argument("--cm", metavar="FILE", help="confusion matrices (.json)")
    add_scenario_arguments(run.add_argument_group("scenarios (what is named here replaces what the spec names)"))
    channel = run.add_argument_group("what the matrices mean")
    add_channel_arguments(channel)
    channel.add_argument(
        "--mix",
        metavar="FILE",
        help="weigh the bins of a further variable instead of summing over them as counted: a TOML file with "
        'variable = "light" and [weights] day = 0.7, night = [0.2, 0.3] (stated, or bounded)',
    )
    add_confidence_arguments(run.add_argument_group("how sure"))
    add_engine_arguments(run.add_argument_group("engines and limits"))
    _add_output_arguments(run.add_argument_group("output"))
    add_ci_arguments(run.add_argument_group("continuous integration"))


def add_scenario_arguments(group: Any) -> None:
    """Which planners, environments, initial states and constants."""
    group.add_argument("--planner", action="append", default=[], metavar="NAME", help="planner; repeat, or 'all'")
    group.add_argument(
        "--environment", "--env", action="append", default=[], metavar="NAME", help="true environment; repeat"
    )
    group.add_argument("--initial", metavar="CONDITION", help="narrow the initial states further, as 'v = 1'")
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a constant, or PLANNER.pick=RULE; repeat"
    )
    group.add_argument(
        "--sweep", action="append", default=[], metavar="NAME=VALUES", help="as vmax=1..10 or vmax=1,2,5; repeat"
    )
    group.add_argument("--requirement", action="append", default=[], metavar="NAME", help="only this one; repeat")


def add_channel_arguments(group: Any) -> None:
    """What the matrices mean."""
    group.add_argument(
        "--where", action="append", default=[], metavar="NAME=BIN", help="only this bin of a further variable; repeat"
    )
    group.add_argument(
        "--score-threshold", type=float, metavar="X", help="which matrices of a family over score thresholds"
    )
    group.add_argument("--canonical", action="store_true", help="the sum of the matrices over all distance bins")
    group.add_argument(
        "--empty-columns",
        choices=EMPTY_COLUMNS,
        default="error",
        metavar="POLICY",
        help="rates of a column without items: " + ", ".join(EMPTY_COLUMNS) + " (default: error)",
    )
    group.add_argument(
        "--false-alarms",
        choices=FALSE_ALARMS,
        default="as_counted",
        metavar="POLICY",
        help="use of the column 'empty': " + ", ".join(FALSE_ALARMS) + " (default: as_counted)",
    )
    group.add_argument("--endless", action="store_true", help="leave out the terminal states: runs never end")
    group.add_argument(
        "--round-transitions",
        type=int,
        metavar="DECIMALS",
        help="round the chain's probabilities, as the archive of the published numbers did",
    )


def add_confidence_arguments(group: Any) -> None:
    """How intervals and confidence bounds are made."""
    group.add_argument(
        "--confidence", type=share, default=0.95, metavar="LEVEL", help="of intervals and bounds (default: 0.95)"
    )
    group.add_argument(
        "--verdict-from",
        choices=VERDICT_SOURCES,
        help="quantity compared with the target: confidence bounds, statistical interval, or point estimate "
        "(default: bounds)",
    )
    group.add_argument(
        "--interval",
        choices=INTERVALS,
        default="auto",
        help="the statistical interval: from the posterior of the matrices, or from resampled drives "
        "(default: drives where the file knows them)",
    )
    add_bounds_arguments(group)
    group.add_argument(
        "--semantics",
        choices=SEMANTICS,
        default="every-state",
        help="confidence bounds for matrices that may differ from state to state, or for one matrix throughout "
        "(default: every-state)",
    )
    group.add_argument(
        "--prior", type=prior, default="jeffreys", metavar="PRIOR", help="jeffreys, uniform or a number per label"
    )
    group.add_argument(
        "--draws",
        type=positive(int),
        metavar="N",
        help="matrices drawn (default: 10000, fewer for large chains; compare shares them among its detectors)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that is drawn (default: 0)")
    group.add_argument(
        "--strict",
        action="store_true",
        help="inconclusive instead of a verdict with a condition (items independent, channel not tested)",
    )
    group.add_argument(
        "--assume-memoryless",
        action="store_true",
        help="accept verdicts although the data do not test or even contradict the memoryless detector",
    )
    group.add_argument("--no-confidence", action="store_true", help="the point alone, without any interval")


def add_engine_arguments(group: Any) -> None:
    """How to check, and when to refuse."""
    group.add_argument("--exact", action="store_true", help="compute with rational numbers (slow on large chains)")
    group.add_argument(
        "--strategies",
        action="store_true",
        help="for synthesised planners also the range over all winning strategies",
    )
    add_limit_arguments(group)


def add_limit_arguments(group: Any) -> None:
    """How long one formula may take, and how large a system may be."""
    group.add_argument(
        "--timeout",
        type=positive(float),
        default=600.0,
        metavar="SECONDS",
        help="per formula and chain, both engines and intervals together (default: 600)",
    )
    group.add_argument(
        "--max-states",
        type=positive(int),
        default=50_000_000,
        metavar="N",
        help="refuse larger models (default: 50000000)",
    )
    group.add_argument(
        "--max-memory",
        type=positive(float),
        default=16.0,
        metavar="GIB",
        help="of all processes together, beyond the program itself (default: 16)",
    )


def _add_output_arguments(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")
    group.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")
    group.add_argument("--csv", metavar="FILE", help="write one row per requirement and scenario")
    group.add_argument("--plot", metavar="FILE", help="plot probability against initial state (.png, .svg, .pdf)")
    group.add_argument(
        "--plot-scale", choices=("linear", "log"), default="linear", help="of the probabilities (default: linear)"
    )
    group.add_argument(
        "--export",
        metavar="FILE",
        help="write the Markov chain (.umb, .drn, .prism); needs one planner, one environment and no sweep",
    )
    group.add_argument("--points", action="store_true", help="show every scenario, not only the worst")
    group.add_argument("--parse", action="store_true", help="show how the formulas are read, and stop")


def positive(kind: type) -> Callable[[str], Any]:
    """A reader of numbers above 0 of a kind, for `argparse`."""

    def convert(text: str) -> Any:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
        return value

    convert.__name__ = "number"
    return convert


def share(text: str) -> float:
    """A number between 0 and 1, both excluded, for `argparse`."""
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, both excluded, got {text!r}")
    return value


share.__name__ = "number"


def prior(text: str) -> str | float:
    """A prior for matrix columns, for `argparse`."""
    if text in ("jeffreys", "uniform"):
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected jeffreys, uniform or a number above 0, got {text!r}")
    return value


def _run(arguments: argparse.Namespace) -> int:
    from verifier.cli.run import run_command

    return run_command(arguments)


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options of the pipeline that the arguments ask for.

    Raises:
        UsageError: an argument that cannot be read.
    """
    from verifier.checking.results import EngineSettings
    from verifier.options import RunOptions
    from verifier.systems.scene import Limits

    memory_bytes = int(min(arguments.max_memory, 2.0**30) * 2**30)
    return RunOptions(
        selection=_selection(arguments),
        where=_once("--where", [_pair("--where", "NAME=BIN", text) for text in arguments.where]),
        score_threshold=arguments.score_threshold,
        mix=getattr(arguments, "mix", None),
        canonical=arguments.canonical,
        empty_columns=arguments.empty_columns,
        false_alarms=arguments.false_alarms,
        endless=arguments.endless,
        decimals=arguments.round_transitions,
        strategies=arguments.strategies,
        confidence=_confidence(arguments),
        verdict_from=_verdict_from(arguments),
        strict=arguments.strict,
        assume_memoryless=arguments.assume_memoryless,
        engines=EngineSettings(arguments.exact, arguments.timeout, arguments.max_states, memory_bytes),
        limits=Limits(arguments.max_states, memory_bytes),
    )


def _confidence(arguments: argparse.Namespace) -> ConfidenceSettings | None:
    """How to make intervals, if at all.

    Raises:
        UsageError: a seed below 0, asked for or not: nobody learns of it after minutes of work.
    """
    from verifier.analysis.settings import ConfidenceSettings

    if arguments.seed < 0:
        raise UsageError(f"expected a seed that is a whole number from 0 on, got {arguments.seed}")
    if arguments.no_confidence:
        refuse_without_bounds(arguments)
        return None
    return ConfidenceSettings(
        level=arguments.confidence,
        interval=arguments.interval,
        prior=arguments.prior,
        draws=arguments.draws,
        seed=arguments.seed,
        semantics=arguments.semantics.replace("-", "_"),
        **bounds_settings(arguments),
    )


def _verdict_from(arguments: argparse.Namespace) -> str:
    """What is held against the targets; UsageError where that is asked for and not made."""
    asked = source_of_verdicts(arguments)
    if asked in (None, "point"):
        return asked or "bounds"
    for given, option in (
        (arguments.no_confidence, "--no-confidence"),
        (arguments.round_transitions is not None, "--round-transitions"),
    ):
        if given:
            raise UsageError(f"--verdict-from {asked} needs what {option} leaves out: name one of the two")
    return asked


def _selection(arguments: argparse.Namespace) -> Selection:
    from verifier.language.expressions import Source, parse_expression
    from verifier.scenarios import Selection

    initial = None
    if arguments.initial is not None:
        initial = parse_expression(arguments.initial, Source(arguments.initial, "--initial"))
    return Selection(
        planners=tuple(arguments.planner),
        environments=tuple(arguments.environment),
        initial=initial,
        settings=_once("--set", [_setting(text) for text in arguments.set]),
        sweeps=_once("--sweep", [_sweep(text) for text in arguments.sweep]),
        requirements=tuple(arguments.requirement),
    )


def _once(option: str, pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    """The pairs as a mapping; UsageError where a name occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{option}: {twice} is given twice")
    return found


def _setting(text: str) -> tuple[str, int | Fraction | str]:
    name, value = _pair("--set", "NAME=VALUE", text)
    number = _number(value)
    return name, value if number is None else number


def _pair(option: str, expected: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{option}: expected {expected}, got {shown(text)}")
    return name.strip(), value.strip()


def _sweep(text: str) -> tuple[str, tuple[int | Fraction, ...]]:
    name, equals, listed = text.partition("=")
    refusal = UsageError(f"--sweep: expected NAME=LOW..HIGH or NAME=VALUE,VALUE,..., got {shown(text)}")
    if not equals or not name.strip():
        raise refusal
    ends = re.fullmatch(r"\s*(-?\d{1,15})\s*\.\.\s*(-?\d{1,15})\s*", listed)
    if ends:
        low, high = int(ends[1]), int(ends[2])
        if low > high or high - low >= LARGEST_SWEEP:
            raise UsageError(f"--sweep: expected 1 to {LARGEST_SWEEP} values, got {shown(text)}")
        return name.strip(), tuple(range(low, high + 1))
    values = [_number(part) for part in listed.split(",")]
    numbers = tuple(value for value in values if value is not None)
    if len(numbers) != len(values):
        raise refusal
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--sweep: a value occurs twice in {shown(text)}")
    return name.strip(), numbers


def _number(text: str) -> int | Fraction | None:
    """An exact number as `3`, `0.25` or `1/3`; None when it is none."""
    if not re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?(/\d{1,30})?", text.strip()):
        return None
    top, _, bottom = text.strip().partition("/")
    if bottom and int(bottom) == 0:
        return None
    value = Fraction(top) / int(bottom or 1)
    return value.numerator if value.denominator == 1 else value
