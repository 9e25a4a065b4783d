"""What each benchmark measures. `python cases.py NAME` measures one in a process of its own and prints it as JSON.

A case says how long ours and a peer (another way to the same answer, or a physical limit) take in the same process,
one after the other in every round, and how much memory ours needed at its peak.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.chains.chain import MarkovChain, filled_counts, markov_chain
from verifier.checking.two_engines import abstracted
from verifier.language.ltl import to_storm
from verifier.language.specs import read_spec
from verifier.perception.confusion import ConfusionMatrices, rates, read_confusion
from verifier.study.inputs import Block, Grid, Selection, make_grid
from verifier.systems.reader import read_model
from verifier.systems.scene import SkeletonOptions, predicted_bytes, set_scene
from verifier.systems.skeleton import Skeleton, build_skeleton

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SPEC = ROOT / "specs/car_pedestrian.ltl"
CONFUSION = ROOT / "examples/nuscenes_yolov3_class.json"
SHIPPED_RUN = ["-m", "verifier", "run", str(SPEC), "--cm", str(CONFUSION)]
IMPORTS = ["-c", "import stormpy, numpy, scipy.sparse, lark"]


@dataclasses.dataclass(frozen=True)
class Measured:
    """Median seconds of ours and of the peer; `peak_mib` is the largest process; `detail` is for people."""

    ours_s: float
    peer_s: float
    peak_mib: float
    detail: str = ""


def alternately(
    rounds: int, *functions: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median seconds of each function; every round calls each of them once."""
    times = [[_seconds(function, clock) for function in functions] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _seconds(function: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    function()
    return clock() - started


def children_cpu_s() -> float:
    """Seconds of processor time of all processes that this one started and that have ended: a clock."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_mib(usage: resource.struct_rusage | None = None) -> float:
    """Largest resident memory so far, of this process or of the one that `usage` belongs to."""
    found = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    return found / (2**20 if sys.platform == "darwin" else 2**10)


def child_peak_mib(arguments: list[str], environment: dict[str, str]) -> float:
    """Largest resident memory of a Python process with these arguments, or of one that it started."""
    with Path(os.devnull).open("wb") as nowhere:
        files = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), number) for number in (1, 2)]
        process = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment, file_actions=files)
        _, _, usage = os.wait4(process, 0)
    return peak_mib(usage)


def whole_process() -> Measured:
    """`verify run` on the shipped example, against importing the libraries it needs.

    Both run from compiled modules, as an installed package has them.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def ours() -> None:
            command = [sys.executable, *SHIPPED_RUN]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 1 or "verdict: violated" not in done.stdout:
                raise ValueError(f"verify run ended with {done.returncode}: {done.stdout} {done.stderr}")

        def peer() -> None:
            subprocess.run([sys.executable, *IMPORTS], check=True, env=environment)

        ours()
        peer()
        ours_s, peer_s = alternately(9, ours, peer)
        peaks = [child_peak_mib(arguments, environment) for arguments in (SHIPPED_RUN, IMPORTS)]
    return Measured(ours_s, peer_s, peaks[0], f"importing alone {peaks[1]:.0f} MiB")


def shipped_grid(**selected: object) -> tuple[Grid, ConfusionMatrices]:
    """The scenario grid of the shipped spec for the pedestrian, and the shipped matrices."""
    spec = read_spec(SPEC)
    selection = Selection(environments=("ped",), **selected)  # type: ignore[arg-type]
    return make_grid(spec, read_model(spec.model), selection), read_confusion(CONFUSION).matrices


def skeleton_of(block: Block, grid: Grid, matrices: ConfusionMatrices) -> Skeleton:
    """The skeleton of one block."""
    options = SkeletonOptions(grid.goal_formula, grid.initial)
    return build_skeleton(block.system, block.planner, block.environment, matrices, options)


def labels_of(skeleton: Skeleton, grid: Grid) -> tuple[dict[str, NDArray[np.bool_]], list[str]]:
    """The masks of every proposition of the requirements, and the requirements for Storm."""
    formulas = abstracted([each.formula for each in grid.requirements])
    labels = {name: skeleton.mask_of(node) for each in formulas for name, node in each.propositions.items()}
    return labels, [to_storm(each.formula) for each in formulas]


def figure(canonical_too: bool = False) -> Measured:
    """The 55-point figure in one process, against a check by a running Storm for each point, its chain being there.

    With the canonical matrix too it is what `--plot` shows.
    """
    from verifier.checking.process import StormProcess
    from verifier.pipeline import RunOptions, verify_spec

    sweep = {"vmax": tuple(range(1, 11))}
    selection = Selection(environments=("ped",), sweeps=sweep, requirements=("all_three",))

    def ours() -> None:
        for canonical in (False, True) if canonical_too else (False,):
            result = verify_spec(SPEC, CONFUSION, RunOptions(selection, canonical=canonical, confidence=None))
            if len(result.requirements[0].points) != 55:
                raise ValueError("the figure has another number of points")

    grid, matrices = shipped_grid(sweeps=sweep, requirements=("all_three",))
    questions = []
    for each in (matrices, matrices.canonical()) if canonical_too else (matrices,):
        for block in grid.blocks:
            skeleton = skeleton_of(block, grid, each)
            labels, formulas = labels_of(skeleton, grid)
            chain = markov_chain(skeleton, filled_counts(skeleton, each, "error"), labels)
            questions += [(dataclasses.replace(chain, initial=np.array([s])), formulas) for s in chain.initial]
    ours()
    peak = peak_mib()
    with StormProcess() as storm:
        storm.storm_version()
        ours_s, peer_s = alternately(5, ours, lambda: [storm.check(*question) for question in questions])
    worker = peak_mib(resource.getrusage(resource.RUSAGE_CHILDREN))
    return Measured(ours_s, peer_s, peak, f"{len(questions)} points; the worker {worker:.0f} MiB")


def corridor(planner: str) -> tuple[Callable[[], Skeleton], ConfusionMatrices]:
    """Builds the skeleton of the corridor for one of its planners; and the matrices."""
    system = read_model(HERE / "corridor.toml").instantiate()
    matrices = read_confusion(CONFUSION).matrices.canonical()
    return lambda: build_skeleton(system, system.planners[planner], "ped", matrices), matrices


def million_states() -> Measured:
    """A skeleton of 10^6 states and three observations, against copying its arrays."""
    build, _ = corridor("rules")
    before = peak_mib()
    skeleton = build()
    peak = peak_mib()
    arrays = (skeleton.indptr, skeleton.indices, skeleton.entry, skeleton.memory, *skeleton.valuations.values())
    ours_s, peer_s = alternately(5, build, lambda: [np.copy(array) for array in arrays])
    detail = f"{skeleton.state_count} states, {len(skeleton.indices)} transitions, {before:.0f} MiB before"
    return Measured(ours_s, peer_s, peak, detail)


def refilled() -> Measured:
    """Filling that skeleton for a new matrix, against a plain copy of its value array."""
    build, matrices = corridor("rules")
    skeleton, new = build(), rates(matrices.counts + 1)
    filled = skeleton.fill(new)
    peak = peak_mib()
    ours_s, peer_s = alternately(25, lambda: skeleton.fill(new), lambda: np.copy(filled))
    return Measured(ours_s, peer_s, peak, f"{len(filled)} probabilities")


def predicted_memory(planner: str) -> Measured:
    """Memory at the peak of building a skeleton, against what the limits predict. Bytes in place of seconds."""
    build, _ = corridor(planner)
    before = peak_mib()
    skeleton = build()
    peak = peak_mib()
    system, observations = skeleton.system, skeleton.entry_observations.shape[1]
    predicted = predicted_bytes(system, system.planners[planner], observations, int(skeleton.memory.max()) + 1)
    return Measured((peak - before) * 2**20, predicted, peak, f"{observations} observations")


def banded_chain(states: int, per_state: int = 3, labels: int = 10) -> MarkovChain:
    """A chain in which every state moves on by 1 .. `per_state`, with end states that stay."""
    inner = states - per_state
    targets = np.minimum(np.arange(states)[:, None] + np.arange(1, per_state + 1), inner)
    targets[inner:] = np.arange(inner, states)[:, None]
    keep = np.ones(targets.shape, dtype=bool)
    keep[:, 1:] = targets[:, 1:] != targets[:, :-1]
    weights = np.random.default_rng(1).random(targets.shape) * keep + keep
    weights /= weights.sum(axis=1, keepdims=True)
    return MarkovChain(
        indptr=np.concatenate([[0], np.cumsum(keep.sum(axis=1))]),
        indices=targets[keep],
        probabilities=weights[keep],
        labels={f"p{i}": np.arange(states) % (i + 2) == 0 for i in range(labels)},
        initial=np.array([0]),
    )


def handed_over() -> Measured:
    """10^6 states with ten labels to Storm, against writing and reading the same bytes on the same file system."""
    import stormpy
    from stormpy.developer import LogLevel, set_log_level

    from verifier.chains.umb import write_umb

    set_log_level(LogLevel.OFF)
    chain = banded_chain(1_000_000)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        path, twin = Path(folder) / "m.umb", Path(folder) / "twin"

        def ours() -> None:
            write_umb(chain, path, valuations=False, storm_padding=True)
            if stormpy.build_model_from_umb(str(path)).nr_states != chain.state_count + 1:
                raise ValueError("Storm built another model")

        ours()
        peak, content = peak_mib(), path.read_bytes()

        def peer() -> None:
            twin.write_bytes(content)
            twin.read_bytes()

        ours_s, peer_s = alternately(7, ours, peer)
    detail = (
        f"{chain.transition_count} transitions, {len(chain.labels)} labels, {len(content) / 2**20:.0f} MiB of file"
    )
    return Measured(ours_s, peer_s, peak, detail)


MATRICES = 10_000
STORM_CALLS = 200


def many_matrices(planner: str = "published") -> Measured:
    """10,000 random matrices through the 65-cell chain with vmax = 10, against the fastest way to ask Storm."""
    from verifier.checking.batch import satisfaction_probabilities
    from verifier.checking.process import StormProcess
    from verifier.checking.product import build_product

    grid, matrices = shipped_grid(planners=(planner,), settings={"vmax": 10}, requirements=("stops_for_pedestrians",))
    skeleton = skeleton_of(grid.blocks[0], grid, matrices)
    labels, (text,) = labels_of(skeleton, grid)
    formula = abstracted([grid.requirements[0].formula])[0].formula
    bins, width, _ = matrices.counts.shape
    columns = np.random.default_rng(0).dirichlet(np.ones(width), size=(MATRICES, bins, width))
    sampled = np.swapaxes(columns, -1, -2)

    def ours() -> NDArray[np.float64]:
        product = build_product(skeleton.indptr, skeleton.indices, labels, formula, skeleton.starts)
        values = skeleton.entry_values(sampled)
        return satisfaction_probabilities(product, values, skeleton.entry).probability

    found = ours()
    peak = peak_mib()
    parts = (skeleton.indptr, skeleton.indices)
    filled = skeleton.fill(sampled[:STORM_CALLS])
    chains = [MarkovChain(*parts, np.ascontiguousarray(each), labels, skeleton.starts) for each in filled]
    with StormProcess() as storm, tempfile.TemporaryDirectory(dir=_memory()) as folder:
        storm.storm_version()
        in_process = _storm_in_process(Path(folder), text)
        for k, chain in enumerate(chains[:5]):
            (answer,) = storm.check(chain, [text])
            for values in (answer.value, in_process(chain)):
                if np.abs(values - found[k]).max() > 1e-9:
                    raise ValueError("Storm and the batch engine disagree")
        ours_s, worker_s, own_s = alternately(
            5,
            ours,
            lambda: [storm.check(chain, [text]) for chain in chains],
            lambda: [in_process(chain) for chain in chains],
        )
    scale = MATRICES / STORM_CALLS
    ways = f"Storm's worker {worker_s * scale:.1f} s, stormpy in process {own_s * scale:.1f} s"
    detail = f"planner {planner}, {skeleton.state_count} states; from {STORM_CALLS} calls: {ways}"
    return Measured(ours_s, min(worker_s, own_s) * scale, peak, detail)


MOST_STATES_WITH_MEMORY = 12
"""Times the states without."""


def remembered() -> Measured:
    """The published system where the detector remembers run:5 of the pedestrian, against the same without: skeleton,
    chain, and all formulas by the batch engine. Contexts have the same rates, so both have the same answers."""
    from verifier.checking.batch import check
    from verifier.perception.confusion.context_selection import divided_matrices
    from verifier.perception.confusion.contexts import Contexts
    from verifier.perception.confusion.counts import ContextCounts

    grid, plain = shipped_grid(planners=("published",), settings={"vmax": 10})
    contexts = Contexts("run", 5)
    by_context = np.repeat(plain.counts[None, :, None], contexts.count + 1, axis=2)
    by_context[:, :, -1] = 0
    whole = dataclasses.replace(plain, counts=by_context[0].sum(axis=1))
    divided = divided_matrices(whole, ContextCounts(contexts, "break", None, by_context), "backoff")
    block, skeletons = grid.blocks[0], dict[int, Skeleton]()
    formulas = [each.formula for each in abstracted([each.formula for each in grid.requirements])]

    def solved(number: int, matrices: ConfusionMatrices) -> list[NDArray[np.float64]]:
        skeletons[number] = skeleton = skeleton_of(block, grid, matrices)
        labels, _ = labels_of(skeleton, grid)
        chain = markov_chain(skeleton, filled_counts(skeleton, matrices, "prior"), labels)
        return [check(chain, formula).probability[0] for formula in formulas]

    for one, other in zip(solved(0, divided), solved(1, whole), strict=True):
        if np.abs(one - other).max() > 1e-9:
            raise ValueError("memory of equal rates changes a probability")
    ours_s, peer_s = alternately(7, lambda: solved(0, divided), lambda: solved(1, whole))
    states = [skeletons[number].state_count for number in (0, 1)]
    if states[0] > MOST_STATES_WITH_MEMORY * states[1]:
        raise ValueError(f"{states[0]} states with memory, {states[1]} without")
    return Measured(ours_s, peer_s, peak_mib(), f"{states[0]} states with memory, {states[1]} without")


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _storm_in_process(folder: Path, text: str) -> Callable[[MarkovChain], NDArray[np.float64]]:
    """What the worker does, without the worker: no process boundary, the formula parsed once."""
    import stormpy
    from stormpy import environments
    from stormpy.developer import LogLevel, set_log_level

    from verifier.chains.umb import write_umb

    set_log_level(LogLevel.OFF)
    environment = environments.sound()
    environment.solver().native().precision = stormpy.Rational("1/1000000000000")
    asked = stormpy.parse_property(f"P=? [ {text} ]")
    path = folder / "m.umb"

    def check(chain: MarkovChain) -> NDArray[np.float64]:
        write_umb(chain, path, valuations=False, storm_padding=True)
        model = stormpy.build_model_from_umb(str(path))
        result = stormpy.model_checking(model, asked, only_initial_states=True, environment=environment)
        return np.array([result.get_value(int(state)) for state in chain.initial])

    return check


def random_walk(side: int = 40) -> Measured:
    """A random walk on a square grid, one component of 1,600 states: the batch engine against Storm's check."""
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    ends = (np.arange(n) == 0) | (np.arange(n) == n - 1)
    rows, columns = [np.flatnonzero(ends)], [np.flatnonzero(ends)]
    for dx, dy in ((-1, 0), (0, -1), (0, 1), (1, 0)):
        inside = ~ends & (x + dx >= 0) & (x + dx < side) & (y + dy >= 0) & (y + dy < side)
        rows.append(np.flatnonzero(inside))
        columns.append(((x + dx) * side + y + dy)[inside])
    sources, targets = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((targets, sources))
    degree = np.bincount(sources, minlength=n)
    return _one_large_chain(
        MarkovChain(
            indptr=np.concatenate([[0], np.cumsum(degree)]),
            indices=targets[order],
            probabilities=1 / degree[sources[order]],
            labels={"goal": np.arange(n) == 0},
            initial=np.array([n // 2]),
        )
    )


def _one_large_chain(chain: MarkovChain) -> Measured:
    from verifier.checking.batch import check
    from verifier.checking.process import StormProcess
    from verifier.language.expressions.syntax import Name, Temporal

    found = check(chain, Temporal("F", (Name("goal"),)))
    peak = peak_mib()
    with StormProcess() as storm:
        (answer,) = storm.check(chain, ['F ("goal")'])
        if np.abs(answer.value - found.probability[0]).max() > 1e-9:
            raise ValueError("Storm and the batch engine disagree")
        ours_s, peer_s = alternately(
            1,
            lambda: check(chain, Temporal("F", (Name("goal"),))),
            lambda: storm.check(chain, ['F ("goal")']),
        )
    detail = f"{chain.state_count} states, probability {answer.value[0]:.4g}, error {found.error_bound.max():.0e}"
    return Measured(ours_s, peer_s, peak, detail)


def texts() -> Measured:
    """DRN and PRISM text of 10^5 states, against writing the same bytes."""
    from verifier.chains.languages import write_prism
    from verifier.chains.texts import write_drn

    chain = banded_chain(100_000)
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        folder = Path(name)

        def ours() -> None:
            write_drn(chain, folder / "m.drn")
            write_prism(chain, folder / "m.prism")

        ours()
        peak, content = peak_mib(), (folder / "m.drn").read_bytes() + (folder / "m.prism").read_bytes()
        ours_s, peer_s = alternately(3, ours, lambda: (folder / "twin").write_bytes(content))
    return Measured(ours_s, peer_s, peak, f"{len(content) / 2**20:.0f} MiB of text")


TABLED = """
initial = "x = 0 & v = 0"
terminal = "x = 60"
[variables]
x = { range = [0, 60], next = "min(x + max(v, 1), 60)" }
v = { range = [0, 11], next = "speed" }
[inputs]
speed = { range = [0, 11] }
[environments]
all = [{ class = "ped", distance_m = 5 }, { class = "obs", distance_m = 5 }, { class = "cone", distance_m = 5 }]
[planners.driver]
kind = "table"
file = "rules.csv"
"""


def planner_table() -> Measured:
    """A planner of 5,856 rows, read and tabulated, against pandas reading the rows and joining them to all cases."""
    import pandas

    labels = [frozenset({name}) for name in ("ped", "obs", "cone")]
    counts = np.ones((1, 4, 4), dtype=np.int64)
    matrices = ConfusionMatrices("class", (*labels, frozenset()), np.array([0.0, 10]), counts)
    head = ["x", "v", "sees(ped)", "sees(obs)", "sees(cone)"]
    cases = np.array(list(np.ndindex(61, 12, 2, 2, 2)))
    words = np.array(["false", "true"])
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"{x},{v},{','.join(words[seen])},,{(5 * x + 3 * v + sum(seen)) % 12}" for x, v, *seen in cases.tolist()
        ]
        (Path(folder) / "rules.csv").write_text("\n".join([",".join([*head, "->", "speed"]), *lines]))
        (Path(folder) / "model.toml").write_text(TABLED)
        found: list[Skeleton] = []

        def ours() -> None:
            system = read_model(Path(folder) / "model.toml").instantiate()
            found.append(build_skeleton(system, system.planners["driver"], "all", matrices, SkeletonOptions()))

        def peer() -> None:
            rows = pandas.read_csv(Path(folder) / "rules.csv")
            pandas.DataFrame(cases, columns=head).astype(rows[head].dtypes).merge(rows, on=head)

        times = alternately(5, ours, peer)
    return Measured(*times, peak_mib(), f"{len(cases)} rows, {found[0].state_count} states")


DECIDING = """
initial = "x = 0 & y = 0 & hit = 0"
terminal = "x = 450 | hit = 1"
[variables]
x = { range = [0, 450], next = "min(x + go, 450)" }
y = { range = [0, 430], next = "max(min(y + push, 430), 0)" }
hit = { range = [0, 1], next = "ite(y > 150 & x > 444 & go = 2, 1, 0)" }
[world]
push = { range = [-1, 1], admissible = "push >= 0 | y > 0" }
[inputs]
go = { range = [1, 2] }
[environments]
ped = [{ class = "ped", distance_m = "ite(y % 2 = 0, 5, 15)" }]
[planners.p]
rules = [{ when = "sees(ped)", set = { go = 1 } }, { set = { go = 2 } }]
"""


def deciding_world() -> Measured:
    """The least probability of an LTL formula on a decision process of 10^5 states, against Storm on the same."""
    from verifier.analysis.robust.optimum import build_optimum
    from verifier.base.arrays import ROUNDOFF
    from verifier.chains.chain import decision_process
    from verifier.checking.process import StormProcess
    from verifier.language.expressions import Source, parse_expression
    from verifier.language.ltl import parse_formula
    from verifier.systems.strategies import build_decisions

    counts = np.array([[[7, 1], [3, 9]], [[4, 2], [6, 8]]], dtype=np.int64)
    matrices = ConfusionMatrices("class", (frozenset({"ped"}), frozenset()), np.array([0.0, 10, 20]), counts)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.toml").write_text(DECIDING)
        system = read_model(Path(folder) / "model.toml").instantiate()
    choices = build_decisions(set_scene(system, system.planners["p"], "ped", matrices))
    names = {"high": "y > 100", "low": "y = 0", "hit": "hit = 1"}
    conditions = {name: parse_expression(text, Source(text)) for name, text in names.items()}
    formula = parse_formula("(G !hit) & ((F high) -> ((!high) U (low & F high)))")
    labels = {name: choices.choices.mask_of(node) for name, node in conditions.items()}
    process = decision_process(choices, counts, labels)
    error = ROUNDOFF * choices.choices.channel.rounding_steps
    found: list[float] = []

    def ours() -> None:
        optimum = build_optimum(choices, formula, conditions, 10**7, False)
        found.append(float(optimum.bracket(rates(counts), error).value[0]))

    with StormProcess() as storm:
        storm.storm_version()

        def peer() -> None:
            found.append(float(storm.check(process, [to_storm(formula)], operator="Pmin=?")[0].value[0]))

        times = alternately(3, ours, peer)
    if max(found) - min(found) > 1e-6:
        raise ValueError(f"the engines differ: {min(found)} to {max(found)}")
    return Measured(*times, peak_mib(), f"{process.state_count} states, Pmin {found[0]:.6g}")


CASES: dict[str, Callable[[], Measured]] = {
    "deciding_world": deciding_world,
    "planner_table": planner_table,
    "whole_process": whole_process,
    "figure": figure,
    "figure_with_both_matrices": lambda: figure(canonical_too=True),
    "million_states": million_states,
    "refilled": refilled,
    "handed_over": handed_over,
    "many_matrices": many_matrices,
    "many_matrices_feedback": lambda: many_matrices("feedback"),
    "random_walk": random_walk,
    "texts": texts,
    "remembered": remembered,
    "memory_rules": lambda: predicted_memory("rules"),
    "memory_runs": lambda: predicted_memory("runs"),
    "memory_synthesis": lambda: predicted_memory("synthesis"),
}

if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(CASES[sys.argv[1]]())))
