"""Single faults put into the code, each judged by the tests of its own part: `python tests/support/mutation_run.py`.

A fault changes one token: a comparison, an operator of arithmetic or logic, an end or direction (`min`, `any`, `all`,
`floor`, `lower`), a constant. Docstrings, messages and annotations are left alone. Each part's tests run once without
a fault, which tells how long each takes and which functions it calls. A fault in a function is judged by the tests
that call it, then by those that call another function of its module, the quick ones first, before all the one that
noticed the last fault of the module, up to the first that fails; a fault outside of functions, or in one that no test
was seen to call, by all tests of the part. The tests are collected once for all faults within functions of a module:
for each, a child puts it into the functions that are there. A fault is *noticed* if a test fails, or takes ten times
as long as it did and twenty seconds more. Faults that cannot change what is computed are listed in `EQUIVALENT`, with
the reason, and are not judged.

    python tests/support/mutation_run.py --sample 50                                   # of every part
    python tests/support/mutation_run.py verifier/analysis/kernel.py verifier/chains   # every fault of these
    python tests/support/mutation_run.py verifier/analysis/kernel.py:120-130           # every fault of these lines
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import faulthandler
import gc
import inspect
import io
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TextIO, TypeAlias

import numpy  # noqa: F401  with all that the tests read, so that it is read once
import pandas  # noqa: F401
import pydantic  # noqa: F401
import pytest
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats  # noqa: F401
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = ROOT.parent / "shared"
"""Reference numbers and data, where they are there; tests that need them skip without."""

PARTS = {
    "verifier/language": ["tests/language"],
    "verifier/systems": ["tests/systems"],
    "verifier/chains": ["tests/chains"],
    "verifier/checking": ["tests/checking", "tests/cli/test_slow_chains.py"],
    "verifier/analysis": ["tests/analysis"],
    "verifier/perception": ["tests/perception"],
    **{
        f"verifier/perception/confusion/{name}.py": ["tests/perception", *dependence]
        for name in ("dependence", "document_dependence")
        for dependence in [[f"tests/analysis/test_dependence{rest}.py" for rest in ("", "_by_bin")]]
    },
    "verifier/analysis/robust/vertices.py": ["tests/chains"],  # which export them
    "verifier/analysis/kernel.py": [
        f"tests/analysis/test_{name}.py"
        for name in ("kernel", "certificate", "point_certificate", "betting", "region")
    ],
    **{
        f"verifier/base/{name}.py": ["tests/base", "tests/evidence/test_report_wording.py"]
        for name in ("numbers", "statistics", "graphs")
    },
}
"""Part -> the tests that judge it; the longest name that a module begins with is its part."""
for judging in PARTS.values():
    judging.append("tests/test_golden.py")  # every part has its share in what is frozen

BOUNDS = [
    *("verifier/analysis/kernel.py", "verifier/analysis/step_kernel.py"),
    *("verifier/checking/enclosure.py", "verifier/checking/two_engines.py"),
    *("verifier/checking/refinement.py", "verifier/checking/elimination.py", "verifier/checking/linear.py"),
    *("verifier/checking/powers.py", "verifier/checking/step_bounds.py", "verifier/analysis/robust/inner_bounds.py"),
    *("verifier/analysis/robust/certificate.py", "verifier/analysis/robust/point_certificate.py"),
    "verifier/analysis/robust/solutions.py",
    *("verifier/analysis/robust/solve.py", "verifier/analysis/robust/step.py"),
]
"""Where bounds, rounding and certificates are made."""

AT_FIRST = 15
"""So many tests are collected for a fault at first, and the rest if none of them notices it."""

ADDRESSES = 12 * 2**30
"""Bytes of address space that the tests of a fault may take."""

CHECKERS = ["verifier/analysis/kernel.py"]
"""What checks documents of others, where a strict `zip` decides."""

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "//": "*", "%": "*", "&": "|", "|": "&", "+=": "-=", "-=": "+=",
    "|=": "&=", "&=": "|=", "and": "or", "or": "and", "True": "False", "False": "True",
    "any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "lower": "upper", "upper": "lower", "low": "high", "high": "low",
    "logical_or": "logical_and", "logical_and": "logical_or", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip

_BOTH = "if bounds.lower is not None and bounds.upper is not None:"
_POINT = "verifier/analysis/robust/point_certificate.py"
_HALVED = "if largest <= 1 or (before is not None and 2 * largest > before):"
_LTL = "verifier/language/ltl/normal_form.py"
_NUMBERS = "verifier/language/expressions/numbers.py"
_COMMON = "verifier/analysis/robust/shared_matrix.py"
_CHANGES = "changes = value[step.following[used]] - value[own, None] + favour * value[own, None]"
_PLACE = "return Position(token.line or 1, token.column or 1, token.source if isinstance(token, _Placed) else None)"
_KNOWN = "known = Position(line, column) if line is not None and column is not None else None"
_QUOTIENT = "if size > _GREATEST and np.any(np.equal(a.data, _LEAST) & np.equal(b.data, -1)):"
_ALIKE_KINDS = "if isinstance(first, Exact | Floating) and isinstance(second, Exact | Floating):"
_BRANCH = 'return below[1] if is_choice(node) else result_kind(node) or "boolean"'
_KEPT_COMMENTS = (
    "kept = tuple(Comment(comment.offset - begin, comment.text) for comment in comments if comment.offset >= begin)"
)
_AMOUNT = 'amount = "no" if high < low else f"more than {LONGEST_SWEEP}"'
_CAUSES = "verifier/analysis/counterexamples/causes.py"
_REQUIREMENTS = "verifier/analysis/recall/requirements.py"
_COST = "verifier/analysis/recall/least_cost.py"
_PATTERNS_OF_LOSS = "verifier/analysis/counterexamples/patterns.py"
_IN_OPEN = "equations = Equations(n + 1, states, self.sources[kept], targets[kept], self.weight[kept])"
_BY_PLACE = "edges, place = numbered(self.edge, int(self.edge.max(initial=0)) + 1)"
_BYTES = "at_once = max(1, PART_BYTES // (2 * problem.rates.nbytes))"
_RUNS = "verifier/analysis/counterexamples/runs.py"
_PERFECT = "perfect = state_values(objective, np.broadcast_to(np.eye(values.rates.shape[-1]), values.rates.shape))"
_ADJOINT = "verifier/analysis/sensitivity/adjoint.py"
_BEFORE = "before = np.zeros((draws + 1, len(channel.bins), len(channel.observations)))"
_ADDING = "rarely = np.any(weight[kept][within] < _RARE) or np.any(several & (exits > 0) & (exits < _RARE))"
_ORDERED = "ordered = np.bincount(component).max() <= LARGEST_BLOCK"
_ENDING_ROWS = "rows = np.unique(objective.row[ending & (objective.row >= 0)])"
_OF_RATE_0 = "for cell in np.argwhere((through_draws(channel, rates, used)[0] > 0) & (rates == 0)).tolist():"
_AT_RANDOM = "drawn = np.random.default_rng(0).gamma(1.0, size=rates.shape)"
_PRIORITIES = "verifier/analysis/sensitivity/priorities.py"
_CORRECT = "correct = ranges[np.arange(len(columns)), columns] >= p_range * (1 - 1e-9)"
_NO_ERRORS = "perfect = np.broadcast_to(np.eye(sensitivity.rates.shape[1]), sensitivity.rates.shape)"
_PLANNED = (
    "plan = decide(product, entries[skeleton.entry] > 0).plan(accepting=satisfying, exact_one=True, matrices=1)"
)
_SHARES = "shares = np.ones(told.shape[:2]) if located is None else located.shares(self._rates.dtype)[:, row]"
_ONE_MORE = "graph.runs(start, settings.members + 1, settings.full_paths, losses.symbol, pattern.symbols)"
_FINITE_RATES = "known = np.where(np.isnan(rates), 1 / rates.shape[-2], rates)"
_RARELY = "_RARE, _MOST_ADDED = 2.0**-17, 2**23"
_FLOWING = "taken = np.array([known | reports == following for reports in added])[moves.symbol] & (flow > 0)"
_PROGRESSION = "verifier/language/ltl/progression.py"
_FORMULAS = "verifier/language/ltl/parser.py"
_TAGS = "tags[draw, label] = groups.setdefault(key, len(groups) + 1)"
_ROWS = "rows = np.full((len(group), max(map(len, group), default=1)), -1, dtype=np.int64)"
_LONG = "if len(digits) > 10 or int(digits) > _LARGEST_BOUND:"
_DRAWN = "valuations = {**valuations, **{name: np.full(index + 1, value) for name, value in drawn.items()}}"
_CHANNEL, _CONTEXTS = "verifier/systems/channel.py", "verifier/systems/contexts.py"
_EXPLORATION = "verifier/systems/exploration.py"
_EVERY_ROW = "where = slice(None) if np.all(after == observation) else after == observation"
_NOT_DRAWN = "columns = np.full(len(bins), -1, dtype=np.int64)"
_NONE_BESIDE = "beside = np.full((len(bins), len(some)), -1, dtype=np.int64)"
_NEVER_BOTH = "both = [[number_of.get(one | other, 0) for other in texts] for one in texts]"
_BITS = 'return int(format(value - variable.low, f"0{width}b")[::-1], 2)'
_BY_RUN = "return step_by(system, space, action_by(system, run, 0, view, every), every)[:, 0]"
_LAST_FOR_NONE = "number = np.full(len(following) + 1, -1, dtype=np.int64)  # the last one answers for -1"
_WAYS_TO_EXPLORE = {
    "_BLOCK_COST = 2**13": "2 13",
    "size, width, looked_at = scene.space.size, scene.width, 0": "0",
    "and size <= MOST_STATES": "<=",
    "and reached_bytes(scene, size) <= scene.options.limits.memory_bytes": "<=",
    "looked_at += _BLOCK_COST + len(states)": "+= +",
    "if at_once and looked_at > size:": ">",
    "at_once = False": "False",
    "return None if len(reached.states) > scene.options.limits.states else reached": ">",
}
_REFINED = "verifier/checking/refinement.py"
_BETTER = "better |= np.all(np.abs(other) <= 2 * other_slack, axis=0)"
_ENOUGH = "if np.all(np.abs(result) <= 2 * slack):"
_OVER = "elif Fraction(float(lost[k])) * Fraction(1 - off) > rest:"
_NEARLY = "near = (now * (1 - off - _NEAR) <= float(rest)) | (lost > float(rest))"
_PRODUCTS = "verifier/checking/product.py"
_SLOT_TABLE = "self._slots = np.zeros((0, 1 << _PAGE_BITS), dtype=np.int64)"
_MORE_ROWS = "more = max(size, 2 * len(table)) - len(table)"
_AT_ONCE_WAYS = [
    *(("LONG = 2000", "2000"), ("if len(known) * letters > _MOST_CLOSED:", ">")),
    ("open_obligations = _closed(successor, first, len(letters)) if n >= LONG else None", ">="),
]
_LARGER_TABLES = [
    *(("_PAGE_BITS = 8", "8"), ("self._pages_each = (n >> _PAGE_BITS) + 1", "1"), ("if size <= len(table):", "<=")),
    ("self._page = np.zeros(0, dtype=np.int64)", "0"),
    *((_MORE_ROWS, "2"), (_MORE_ROWS, "-"), ("self._page_count = 0", "0"), (_SLOT_TABLE, "1")),
    *(
        (f"self._{table} = _grown(self._{table}, int({numbers}.max(initial=0)) + 1)", token)
        for table, numbers in (("table", "obligation"), ("page", "code"))
        for token in "01"
    ),
]
_AT_ONCE = "numbers = max(len(outcomes.track), len(labels) * (alone + 2) * (outcomes.thresholds + 1))"
_AGREES = "if not abs(claimed - product) <= _PROBABILITY_TOLERANCE * product * max(1, run.counted / 1000) + 1e-300:"
_REGION = "verifier/analysis/robust/region.py"
_KERNEL = "verifier/analysis/kernel.py"
_STEP = "verifier/analysis/robust/step.py"
_SLACK = "slack, outcomes = 4 * (self.lower.shape[1] + 4) * ROUNDOFF, self.motion.shape[1]"
_NO_DRAW = "columns = np.full((len(objective.row), drawn.shape[1]), -1, dtype=np.int64)"
_PUT_OFF = 'self.settle(states, puts_off, proofs.get(until, {"order": [0] * len(states), "components": []}), where)'
_ONE_WAY = 'motion, moving = given.get("motion", [[1]]), given.get("moving", [0] * ways)'
_RAISED = "proven = _raised(about, np.minimum(value + (residual + 2) * steps, UNIT), target, exact)"
_WORST = "worst = about.fixed_step(values, ROUNDOFF * skeleton.channel.rounding_steps)"
_NOWHERE = (
    "following = np.repeat(space.number({variable.name: variable.low for variable in space.variables}, 1), count)"
)
_FARTHER = "row[before & (steps[row] != steps - 1)] = -1"
_WHICH_ENDS = (
    'what = f"lower ends sum to {float(lowest):g}" if lowest > 1 else f"upper ends sum to {float(highest):g}"'
)
_GATHERED = "bits = np.zeros((count + 1, (len(position) + 7) // 8), dtype=np.uint8)"
_LARGEST_END = "largest = max((int(end) for end in self.high[:, column] if end < ANY), default=0)"
_NO_CHOICE = "return StateSpace(system.inputs).size if planner.chooses else 0"
_SAME_BEFORE = "ordered[1:][ordered[1:] == ordered[:-1]] = -1"
_OVER_ALREADY = "choices = [(over, np.repeat(over[:, None], scene.width, axis=1), nothing, nothing - 1)]"
_NUMBERED = "number = np.full(scene.space.size + 1, -1, dtype=np.int64)  # the last one answers for -1"
_ELIMINATION = "verifier/checking/elimination.py"
_ENOUGH_MERGED = "enough = first_loss <= SMALL_LOSS or mergers == _MOST_MERGERS"
_LOWERING = "while loss > SMALL_LOSS and lift > _SMALLEST_LIFT:"
_DIFFERENCE = "widened = difference + 4 * 2.0**-53 * np.abs(difference)  # not below the exact difference"
_CAME_FROM = "factor[column > row] /= left[column[column > row], 0]"
_CUTHILL = "order = reverse_cuthill_mckee(graph, symmetric_mode=False)"
_PIVOTS = 'matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}'
_ONES = "result = spsolve_triangular(matrix, right, lower=self._lower, unit_diagonal=True, overwrite_A=True)"
_SHORT = "if np.all(part[sources] >= part[targets]):  # as scipy numbers them"
_LINEAR = "verifier/checking/linear.py"
_LARGEST = "self._largest = max((block.size for block in plan.blocks), default=1)"
_WIDEST_LEVEL = "widest = max((block.last_edge - block.first_edge for block in plan.blocks), default=0)"
_KEPT_SYSTEM = (
    "plan.systems.kept((id(entry), stochastic, matrices, roughly), made) if plan.size <= LARGEST_KEPT else made()"
)
_BETTER_ERROR = "better = better_ones.error[start] < error[:, concerned]"
_EXITS = "least = np.minimum(equation.least_leave, exits.min(axis=0, initial=1, where=exits > 0))"
_ROUNDED = "verifier/base/numbers.py"
_ALL_DIGITS = 'return repr(value) if value > 0.5 or moved(shown) else f"{shown:.{digits}g}"'
_FEWEST = 'fewest = 3 - missing.adjusted() if 0 < missing < Decimal("0.5") else 0'
_MEMORY = 'return f"{count / size:.4g} {unit}" if count < 9999 * size else f"{count / size:.0f} {unit}"'
_STATISTICS = "verifier/base/statistics.py"
_WRONG = "wrong = ~(np.abs(betainc(least, rest, end) / tail - 1) < _TOLERANCE)"
_CHANCES = "return float(low) if low > nearest else 0.0, float(high) if high < 1 - nearest else 1.0"
_NONE_SEEN = "least = np.where(some, events, 1).astype(np.float64)  # the end is 0 for x = 0"
_PAID = "certified = (margin >= 0.5) & np.all(solved[:, 1] >= 0, axis=0)"
_SOLVED = "x = np.zeros((self._plan.size + 2, 1, right.shape[1]))"
_EQUAL_SIZES = "chunk = -(-len(values) // -(-len(values) // chunk)) if len(values) else 1  # of equal sizes"
_LEVEL_COUNT = "self._levels = 1 + max((b.level for b in plan.blocks), default=0)"
_AT_ONCE_MOST = (
    "self.most_at_once = max(_FEW_AT_ONCE, _NUMBERS_OF_LEVEL * len(plan.blocks) // max(len(plan.edge), 1))"
)
_SYSTEMS = "at_once = max(1, _NUMBERS_AT_ONCE // (size * (first + size)))"
_POWERS = "verifier/checking/powers.py"
_LOOKED = "taken, next_look = min(next_look, most), 2 * next_look"
_MOVED = "representation = np.minimum((total[:, 2] + error) * (1 + 16 * ROUNDOFF) / scale, 1.0)"
_CUT = "matrix = csr_array((weight, (problem.source, problem.target)), shape=(count, count + 1))[:, :count]"
_PRODUCT = "result = np.zeros((digits, left.shape[1], right.shape[2]))"
_SCALE = "scale = 0.5 / steps / max(float(problem.moved.max()), 2.0**-900)"
_LEVELS = "verifier/checking/component_solving.py"
_EVEN = "if len(flow) == most * block.count and len(flow) <= FEW_EDGES:"
_ONE_WAY_ONLY = "return bool(np.all(target < source) or np.all(target > source))"
_BELOW = "below = np.zeros((len(self.plan.blocks) + 1, 2))  # a level, of which there are as many at most"
_SUM_WAYS = [
    ("if len(terms) > FEW_EDGES:", ">"),
    ("if len(terms) == most * (block.last - block.first):", "*"),
    ("if len(terms) == most * (block.last - block.first):", "-"),
    ("FEW_EDGES = 300", "300"),
]
_PER_CHOICE = "lengths = np.bincount(rows_of(skeleton.indptr)[kept], minlength=len(skeleton.indptr) - 1)"
_BLOCKED = "size = max(_BLOCK // len(self.branches.observation), 1)"
_LEFT = "left, kept, least = np.empty((min(_LEFT_AT_ONCE, self._solver.plan.size), count)), 0, np.ones(count)"
_LEAST = "self.least_leave = np.minimum(least, left[:kept].min(axis=0, initial=1))"
_ALIKE = "_, at = np.unique(state[going] * self.within + nodes[going] % self.within, return_index=True)"
_REGULAR = "return (int(key[1]) - first) // step if regular else place"
_NEXT = "other = math.nextafter(near, math.inf if Fraction(near) < number else -math.inf)"
_SUM = "return bool(np.any(np.abs(answer.value + other.value - 1) > AGREEMENT + self.asking.chain.rounding_defect))"
_BATCH = "verifier/checking/batch.py"
_SUMMED_AT_ONCE = "at_once = int(np.clip(_SUMS_AT_ONCE // len(rows), 1, _CHUNK))"
_KINDS = "_, kind = np.unique(np.ravel_multi_index((kind, digit), (n, width + 1)), return_inverse=True)"
_GIVEN = "if answer.lower is not None or outcome.direct or outcome.product is None:"
_NUMBERS_OF_BAND = "numbers.append(block.size * (2 * band.width + 4 + 3 * columns))"
_PATTERNS = "patterns, pattern = numbered(pattern * len(unique) + place, pattern_count * len(unique))"
_SORTS_BEHIND = "constant = (int(row_of_state.max()) + 1) * pattern_count  # sorts behind the code of every sum"
_HORIZON = "self._horizons[family] = max(self._horizons.get(family, 0), node.high - node.low)"
_QUOTIENTS = "fractions = tuple(a / b for a, b in pairs if a is not None and b is not None)"
_GROWN = "grown = fresh or bool(np.any(value[self.open] > old * (1 + _STILL)))"
_PROCESS = "verifier/checking/process.py"
_NO_ROOM = "free = shutil.disk_usage(memory).free if os.access(memory, os.W_OK) else 0"
_OURS = "if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _is_abandoned(entry):"
_PIPES = "command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True"
_PLAN = "verifier/checking/plan.py"
_MOST_LEVELS = "max_levels = int(1000 + matrices * u * per_state / _SECONDS_PER_BLOCK)"
_UNNUMBERED = ("following = np.full(count, -1, dtype=np.int64)", "local = np.full(g.n, -1, dtype=np.int64)")
_STEPS = "steps[unknown] = _scaled(solver.solve(np.full(len(unknown), 1.0)), 1024)"
_COUNTING = "verifier/analysis/robust/step_counting.py"
_TOTAL = "total, often = np.zeros(step.lower.shape), np.zeros(len(step.lower))"
_GRAPH = "verifier/analysis/robust/graph.py"
_NO_STATE = "state=np.concatenate([[-1, -1], np.arange(len(members))]),"
_FIRST_OF_ALIKE = "policy = self._best(target, values[alike[:1]], begun)[0][1]"
_BEHIND = "behind = np.where(weights > 0, reached[:, self.product.indices], 0)"
_ROUGHLY_TOO = "def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:"
_BLOCKS = "_LARGEST_BLOCK, _NUMBERS_AT_ONCE, _LARGEST_DENSE = 1024, 2**18, 150"
_FOUR = "quotients = np.where(numbers > others, numbers / others * (1 + 4 * ROUNDOFF), 1.0)"
_MORE = "more = max(float((worth - before).max()), 0.0) * (spans + 1) * _WIDER"
_NODES = "of = np.where(concerned, step.state_count + part, np.where(nodes.component, nodes.of, -1))"
_WIDTH = "count, width = len(self.owner), int(np.bincount(self.sources).max(initial=1))"
_STAYING = "verifier/analysis/robust/staying.py"
_LATER_TERM = "later: Terms = frozenset({frozenset({(number, max(low - 1, 0), high - (high > 0))})})"
_LOSS = "loss = np.where(weight > 0, worth - (mean * stakes).sum(axis=1), -1)"
_ITEMS = "items = by_group(counts[None, index : index + 1, :, true : true + 1], group)[0, 0, :, 0]"
_RANKS = 'order = dict(zip(states, whole(given["order"], f"{where}/order", (len(states),), -LARGEST), strict=True))'
_NO_RULE = 'columns, groups, rule, tail = Columns(), given["groups"], given["evidence"], Fraction(0)'
_FEW = "few, rare, usual = (least, billionths, other) if least <= rest else (rest, other, billionths)"
_GROUPS = (
    'demand(place in columns and group in range(len(columns[place][0])), "/tree", "the rate to cut is not there")'
)
_LATER = "(a, b), later = parts, (number, max(low - 1, 0), high - (high > 0)) in held"
_OUTER = "outer = [math.ceil(Fraction(y) * UNIT) for y in greatest_reach(worst, nodes, target).value.tolist()]"
_NEAREST = "distance = dijkstra(backwards, indices=ends, unweighted=True, min_only=True)"
_INNER = "verifier/analysis/robust/inner_bounds.py"
_SHAPE = "bins, groups, true = region.lower.shape"
_MOVING = "moving = np.flatnonzero(sign * (known.value - better.value) > _GAIN)"
_SLOPE = "slope = -sign * cells.swapaxes(1, 2).reshape(-1, region.group_count)"
_NOTHING = "return Attained(nothing, nothing, np.full((len(nothing), *region.lower.shape), np.nan))"
_NONE = "return np.unique(np.array(result), axis=0) if result else np.zeros((0, *region.lower.shape))"
_DEEPEST = "level = levels(count, part[sources[crossing]], part[targets[crossing]], count + 1)"
_LOOKED_UP = "if groups > _FEW_GROUPS or len(values) < 1 << groups**2:"
_TAKEN = "return np.take(self._masses_by_order, code * len(self.lower) + column, axis=0)"
_TILED = "ends = (np.tile(array, (len(wins), 1)) for array in (self.lower, self.upper))"
_DRAWN_FROM = "drawn = np.where(channel.columns >= 0, channel.bins * true + channel.columns, -1)"
_FREE = "inner: Floats = least + missing * free / np.maximum(free.sum(axis=1, keepdims=True), 1)"
_MASSES = (
    "least = np.maximum(lower, UNIT - (upper.sum(axis=1, keepdims=True) - upper))",
    "most = np.minimum(upper, UNIT - (lower.sum(axis=1, keepdims=True) - lower))",
)
_POSSIBLE = "possible = possible | (set(np.unique(after[:, told.often[kinds] > 0]).tolist()) - {-1})"
_CONDITIONAL = "verifier/analysis/robust/optimal_conditional.py"
_ROWS_OF_CHOICES = "skeleton, len(skeleton.indptr) - 1, rows_of(skeleton.indptr), skeleton.entry, skeleton.indices"
_RULED_OUT = "ruled_out = wins >= xlogy(hits, middle) + xlog1py(items - hits, -middle)"
_ALARMS_OF_ITEMS = "while limit < items and log_against_share(limit + 1, items, least) >= bar:"
_ALARMS_OF_HOURS = "while start < len(law) and log_against_rate(start, steps * step, most) < bar:"
_DRAWN_AT_ONCE = "size = min(at_once, max(1, PART_BYTES // (32 * max(1, len(held)))), data.needed.largest_part)"
_AT_ONCE_TOKENS = ("min", "1", "//", "32", "*")
_SUBJECT, _FIRST = "verifier/analysis/robust/subject.py", "verifier/analysis/robust/policy.py"
_LED = "following = np.where(inside < 0, objective.following[ways].ravel() - 2, inside).reshape("
_RANK = "rank = levels(int(of.max()) + 1, of[sources[~inner]], of[led[~inner]], MOST_LEVELS)"
_BEGUN = "value, begun = goal.astype(np.float64), np.searchsorted(behind, np.arange(len(owner) + 1))"
_TO_ROWS = "led, row = np.full((count, width), -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)"
_CONSTANT = "told = np.concatenate([skeleton.entry_observations, np.ones((1, width), dtype=bool)])"
_SEARCHING = "verifier/analysis/robust/policy.py"
_TRIANGULAR = "triangular = bool(np.all(entries.row <= entries.col) or np.all(entries.row >= entries.col))"
_NEAR_ENOUGH = "near = self._solver is not None and self._switched <= _FEW * len(right)"
_BY_STEPS = "return spsolve_triangular(matrix, right, lower=lower, unit_diagonal=True)"
_IN_FULL = "return solve_triangular(matrix.toarray(), right, lower=lower, unit_diagonal=True, check_finite=False)"
_EXCESS = "excess = float(np.max(np.abs(rest) / (residual * (right + np.abs(solution)) + _SMALLEST)))"
_PACE = "if not excess * _SHRINKING <= before or _still_to_do(before, excess) > _WORTH:"
_WAYS_TO_SOLVE = {
    "known = ~self._jumps | (self._column < 0)": "|",
    "self._lower = bool(np.all(known | (self._column < self._row[:, None])))": "| <",
    "self._acyclic = self._lower or bool(np.all(known | (self._column > self._row[:, None])))": "or | >",
    "inner = (column >= 0) & (share > 0) & ~self._capped[row][:, None]": ">",
    _BY_STEPS: "True",
    _IN_FULL: "True False",
    "if len(right) <= _DENSE:": "<=",
    _TRIANGULAR: "all <= or >=",
    "if self._solver is None or self._switched > 0:": ">",
    "self._switched = 0": "0",
    "solved += solver.solve(right - matrix @ solved)": "+=",
    "if solver is None or not 0 < self._switched <= _FEW * len(right):": "<= *",
    _PACE: "<= >",
}
"""Of policies: how equations are solved whose solution is judged later."""
_POLICY_BEGUN = {
    "gained = np.where(self._jumps, guide[self._behind] - guide[at, None], 0)": "- 0",
    "weights = np.where(self._jumps, self._step.weights(masses, rows), 0)": "0",
    "noise, residual = (_ROUGH, _ROUGH / 16) if rough else (_NOISE, _RESIDUAL)": "16",
    "_ROUGH = 2.0**-24": "- 24",
}
"""With which policy a search begins."""
_SOLVE = "verifier/analysis/robust/solve.py"
_ROUGHLY = "value = search.optimum(target.astype(np.float64), np.zeros(step.state_count), roughly=True)"
_DIGITS = "digits = np.floor(np.log10(np.maximum(items, 1)))"
_NO_RATES = "rates = np.where(np.isnan(measured.rates), 1 / measured.rates.shape[1], measured.rates)"
_NEXT_SIZE = "size = high if best is None else (math.sqrt(low * high) if low > 0 else high / 1024)"
_TOO_MANY = "while _rounded(shape(high)).sum() < MOST_ITEMS and high < MOST_ITEMS:"
_ALIKE_AT_ONCE = "size = max(1, _NUMBERS_AT_ONCE // max(len(self.product.edge), 1))"
_WEIGHTING = "result[self._rows] = np.where(self._leaving, (jumps / out)[self._row], 0)"
_WAIT = "steps, wait, answer = self.window.high - self.window.low, self.window.response or 0, self._answer"
_ENDLESS = "return done | coreachable(p, owner[sources], targets, (of >= 0) & ~done), first"
_DRIVES = "verifier/analysis/intervals/drive_items.py"
_WANTED = "result = rounded_to(shares / np.where(total > 0, total, 1) * wholes[:, :, None] * UNIT, wholes * UNIT)"
_BETS_AT_ONCE = "size = max(1, _AT_ONCE // max(1, len(STAKES) * len(hits)))"
_RICH = "rich = log_capital(seen[:, part], present[:, part], middle, times) >= goal"
_DRAWING = "verifier/analysis/intervals/drawing.py"
_IN_PART = "at_once = max(1, PART_BYTES // (24 * sums * skeleton.entry_observations.shape[1] + 1))"
_LEAST_COST = "return max(FEWEST_DRAWS, min(MOST_DRAWS, WORK // max(cost_of_draw(objectives), 1) // 100 * 100))"
_OF_EDGES = "apart += worth * (value_error + (np.bincount(self.behind).max(initial=0) + 8) * 2 * ROUNDOFF)"
_GAIN = "verifier/analysis/robust/optimal_steps.py"
_FINITE = "told, rough = np.where(infinite, 0, value[start]), self.gains.relative_error + 2**-40"
_CANDIDATES, _MATCHES = "verifier/perception/matching/candidates.py", "verifier/perception/matching/matches.py"
_NEXT_TO = "behind = [(detection[:, axis + 2] - detection[:, axis]) * (1 - policy.threshold) for axis in (0, 1)]"
_POLICY = "verifier/perception/matching/policy.py"
_DEPENDENCE = "verifier/perception/confusion/dependence.py"
_ALONE = "alone = 0 if outcomes.bin is None or not len(outcomes.bin) else int(outcomes.bin.max()) + 1"
_SELECTION = "verifier/perception/confusion/context_selection.py"
_RIGHT = "right = index[tracked, 2] == index[tracked, 3]"
_NO_BOXES = 'width = 4 if name == "box_2d" else 7', "return np.zeros((0, width))"
_LOSS_OF_PAIR = "pairs.value / (policy.threshold or 1.0) if policy.by_distance else 1 - pairs.value"
_UNLIKE = "chosen = np.where(best, pairs.annotation, np.iinfo(np.int64).max if least else -1)"
_TIED = "places = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])"
_OWN_COUNTS, _OWN_CONTEXTS, _MIX, _PRECISION, _TRACKS = (
    f"verifier/perception/confusion/{name}.py"
    for name in ("context_counts", "contexts", "mix", "average_precision", "tracks")
)
_DATA_SET = "verifier/perception/confusion/data_set.py"
_UNITS = "verifier/perception/confusion/drives.py"
_NUMBERS_OF_UNITS = "return int(self.identity.max(initial=-1)) + places + len(self.scene.sequence) + 2"
_SMALL_LEVELS = "level = outcomes.level[order].astype(np.int8 if outcomes.thresholds < 127 else np.int32)"
_ANY_SERIES = "items = self._items(sets.frame[present], *own, threshold, np.full(int(present.sum()), -1))"
_NEW_NUMBERS = "number[own] = distinct_rows(np.column_stack([number[own], added]))[1] + number.max() + 1"
_OTHER_SERIES = "begins = np.diff(own, prepend=own[:1] - 1) != 0"
_AT_A_TIME = "step = max(1, DRAWN_ENTRIES // max(len(kept), 1))"
_APART = "apart = np.arange(len(weight))[:, np.newaxis] * (1 + int(objects.max()))  # of which no more are hit"
_BEYOND = "reached: Floats = np.take_along_axis(np.pad(best, ((0, 0), (0, 1))), place, axis=1)  # 0 beyond the last"
_ONLY_CLASS = "told.imgIds, told.catIds = list(range(len(entries))), [0]"
_ONLY_AREA = 'told.iouThrs, told.areaRng, told.areaRngLbl = np.array([0.5]), [[0, 1e10]], ["all"]'
_NEARLY_ONE = (
    "return float(np.mean(np.where(precision > 1 - 1e-15, 1.0, precision)))  # it adds 2.2e-16 to what it divides by"
)
_TALLY, _STREAMING = "verifier/perception/confusion/tally.py", "verifier/perception/confusion/streaming.py"
_LAST_OF_PART = (
    "return Part(begun, chunk.numbers, sequence, data.sequences, int(sequence[there[0]]) if there else -1)"
)
_ALL_FRAMES = "total = int(np.minimum(counts, MOST_FRAMES + 1).sum())"
_TABLES = "verifier/perception/detections/tablefiles.py"
_CODED = 'if ours in (*TEXTS, "track") and kind != column.type:  # decoding classes takes longer than reading them'
_CODED_CLASSES = 'column = column.cast(arrow.dictionary(arrow.int32(), kind) if text and ours == "class" else kind)'
_PARQUET_FILES = "verifier/perception/detections/parquetfiles.py"
_NO_SEQUENCE = 'return [("", 0)] if len(files) else []'
_BATCHES = "for file, table in files.batches(rows, 1 << 20, [own]):"
_NUMBERED_SIDE = "for sequence, frame in side.take(None if side.exhausted else side.keys[-1]).keys:"
_STREAM = "verifier/perception/detections/stream.py"
_NOT_AFTER = "if previous is not None and key <= previous:"
_FRAME_GRID = (
    "self._grid = {key: (first, least or 1, least == common) for key, (first, least, common, _) in grids.items()}"
)
_BUFFER = "source = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)"
_ONE_ROW = "row = arrow.Table.from_arrays([arrow.nulls(1, field.type) for field in fields], names=fields.names)"
_REGIONS = 'gathered.add(part, row + 1, labels.pointer(row), values | ({"region": 1} if region else {}), attributes)'
_RIGID = "rigid = np.allclose(turn @ turn.T, np.eye(3), atol=1e-3) and np.linalg.det(turn) > 0"
_OWN_IDS = 'if set(map(type, items.values("id", 0))) <= {int}:'
_NO_RECTANGLES = "box = np.full((len(boxes), 4), np.nan) if boxes.box_2d is None else boxes.box_2d"
_UNKNOWN = "bad |= np.isnan(box).all(axis=1) & (True if absent is None else ~absent)"
_REPLAY = "verifier/perception/confusion/replay.py"
_NOT_LISTED = '[number.get(key, -1) for key in zip(own.tolist(), record["frame"][rows].tolist(), strict=True)],'
_REPORTS = "np.add.at(counts, (rows.bin[used], context[used], rows.right[used]), 1)"
_PERMUTATIONS = "permutations = max(FEWEST_PERMUTATIONS, min(MOST_PERMUTATIONS, WORK // max(len(outcomes.track), 1)))"
_POINTERS = "pointer = self.pointers.__getitem__ if any(self.pointers) else None"
_SEARCH, _COUNTS = "verifier/analysis/hidden_search.py", "verifier/analysis/step_counts.py"
_GRID = "verifier/analysis/belief_grid.py"
_DIGITS_OF = "at, begin, end = (expit(np.where(high > 0, -array, array)) for array in (odds, low, high))"
_REST = "rest = walk.rest(self._answer, self._still_waiting, self.window.response or 0, MOST_APART / windows)"
_ROUGH_DRAWS = "result = satisfaction_probabilities(at.product, self._values, at.skeleton.entry, roughly=True)"
_LOOKS_AT = "if taken and taken % _LOOK == 0 and np.array_equal(worth, before):"
_STEPPED = "most = steps if at.state_count > LARGEST_SQUARED else min(steps, STEPS_BEFORE_SQUARING)"
_MAY_NOT = (
    "rows = [np.where(may[:, [k]], world.distributions(there, len(going), k), -1) for k in range(len(world.choices))]"
)
_STEP_KERNEL = "verifier/analysis/step_kernel.py"
_ONE_WAY_ON = (
    "walk = [row if left[state] and not right[state] else [(state, 1)] for state, row in enumerate(rows)]",
    "walk.append([(lost, 1)])",
    "at_rest: Rows = [[(state, 1)] for state in range(size)]  # who comes behind the last step needs no answer",
    "rows = [row if here else [(size, 1)] for row, here in zip(rows, left, strict=True)]",
    "worth, _ = means([*rows, [(size, 1)]], low, [*worth, (0, ONE)], starts)",
)
_LABELLINGS = "verifier/perception/confusion/labellings.py"
_CONTEXTS_READ = "verifier/perception/confusion/document_contexts.py"
EQUIVALENT = {
    (
        "verifier/perception/confusion/sanity.py",
        "share = np.where(enough, items.max(axis=0, initial=0) / np.maximum(total, THIN_COLUMN), 0.0)",
        "0",
    ): "a column that has enough has an item of some drive, and the shares of others are 0; or noticed",
    (
        "verifier/perception/confusion/document_dependence.py",
        "if test.bins and test.bins[-1].bin >= (bins or 0):",
        "0",
    ): "where the number of bins is not known, tests of them are refused before",
    (_LABELLINGS, "label_of = np.zeros(1 << classes, dtype=np.int64)", "1"): "what lies beyond all sets is not read",
    (
        _LABELLINGS,
        "later = np.flatnonzero(alarms.level < rule.threshold_count)",
        "<",
    ): "items of no threshold count 0",
    (_LABELLINGS, "number, group = connected_components(links, directed=False)", "False"): "weakly connected",
    (
        _LABELLINGS,
        "index = np.column_stack([sequence, bin_of, predicted, true]).astype(np.int64, copy=False)",
        "False",
    ): ("a copy is the same"),
    (_CONTEXTS_READ, "return [-1 if value is None else value for value in row]", "1"): "any number below 0",
    (
        "verifier/perception/confusion/bins.py",
        'relation = "overlaps or precedes" if low < edges[-1] else "leaves a gap after"',
        "<",
    ): "they are not equal",
    **{(_OWN_COUNTS, _ANY_SERIES, token): "sets have no units by track, and no others look at it" for token in "-1"},
    (_OWN_COUNTS, _NEW_NUMBERS, "1"): "any numbers above those before",
    **{(_OWN_CONTEXTS, _OTHER_SERIES, token): "any other number" for token in "-1"},
    (_OWN_CONTEXTS, "missing[begins] = 0", "0"): "what is filled in before a beginning is not read",
    (_TRACKS, "step = min((after - before for before, after in pairwise(ordered)), default=1)", "1"): "of one number",
    ("verifier/perception/confusion/merging.py", "numbers_of.append(np.zeros(0, dtype=np.int64))", "0"): "of no rows",
    (_DEPENDENCE, "in_bin = _bin_of_pairs(outcomes, rows, reached.shape[1] - 1)", "-"): "no bin has that number",
    **{(_DEPENDENCE, _SMALL_LEVELS, token): "levels up to 127 have 8 bits" for token in ("<", "127")},
    (_UNITS, 'number = frame if self.memory.units == "frame" else series + 1', "1"): "any number from 0",
    **{(_UNITS, _NUMBERS_OF_UNITS, token): "more than that" for token in "-12"},
    **{(_UNITS, "return series + int(self.identity.max(initial=-1)) + 1", token): "further above" for token in "-1"},
    (
        _DATA_SET,
        "if abs(sum(ends[side] for ends in shares.values()) - 1) > 1e-9:",
        ">",
    ): "no double near 1 is so far off",
    (_MIX, "least = _extreme(np.asarray(lower), mix, 1)", "1"): "its sign alone is used",
    (_MIX, "most = _extreme(np.asarray(upper), mix, -1)", "1"): "its sign alone is used",
    **{(_PRECISION, _AT_A_TIME, token): "how many at once" for token in ("1", "//")},
    (_PRECISION, _APART, "1"): "further apart",
    (_PRECISION, _BEYOND, "1"): "more of the noughts beyond the last; or noticed",
    (_PRECISION, _ONLY_CLASS, "0"): "the name of the only class",
    (_PRECISION, _ONLY_AREA, "0"): "the only range of areas, whatever its ends",
    (_PRECISION, _NEARLY_ONE, ">"): "no share of whole numbers below 10^15 is there",
    (_REPLAY, _NOT_LISTED, "1"): "any number below 0",
    (_TALLY, "sizes = tuple(int(column.max()) + 1 for column in index.T)", "1"): "wider: keys that are only compared",
    (_STREAMING, _LAST_OF_PART, "1"): "any number below 0",
    (_STREAMING, 'return json.dumps(document, ensure_ascii=False, default=dict) + "\\n"', "False"): (
        "the same values when they are read"
    ),
    (_REPLAY, _REPORTS, "1"): "shares of doubled counts are the same",
    (
        "verifier/perception/confusion/request.py",
        "if self._counted is None or self._how is None:",
        "or",
    ): "both are there, or none",
    (_DEPENDENCE, _PERMUTATIONS, "1"): "of one outcome as many as of two",
    (_DEPENDENCE, "if len(rows[0]):", "0"): "as many of both",
    **{
        ("verifier/perception/detections/columns.py", "if np.isfinite(box).all() and (sizes >= 0).all():", token): (
            "which way, not what it finds"
        )
        for token in (">=", "0")
    },
    ("verifier/perception/detections/columns.py", _ALL_FRAMES, "1"): "too many as well",
    ("verifier/perception/detections/columns.py", "UNKNOWN_FRAME = -1", "1"): "any number below 0",
    **{(_TABLES, _CODED, token): "codes or texts of the same names" for token in ("and", "!=")},
    **{(_TABLES, _CODED_CLASSES, token): "codes or texts of the same names" for token in ("and", "==")},
    **{(_PARQUET_FILES, _BUFFER, token): "how much at once" for token in ("1", "20", "False")},
    (_PARQUET_FILES, _NO_SEQUENCE, "0"): "no part begins at the first name",
    (_PARQUET_FILES, "_add_begin(begins, told.min, row, files)", "min"): "they are equal",
    **{(_PARQUET_FILES, _BATCHES, token): "how many at once" for token in ("1", "20")},
    (_PARQUET_FILES, "if not begins or begins[-1][0] < name:", "<"): "of equal names the first is read",
    (_STREAM, _NUMBERED_SIDE, "-"): "how many at once, of two at least",
    (_STREAM, _NOT_AFTER, "<="): "a frame is handed out whole, so it does not come again",
    (_STREAM, _FRAME_GRID, "1"): "the step of one frame alone",
    (_STREAM, "with opened(files.paths[files.file_of(rows[0])]) as source:", "0"): "all have the same columns",
    (_STREAM, "self.starts = np.zeros(0, dtype=np.int64)", "0"): "it is overwritten",
    (_PARQUET_FILES, _ONE_ROW, "1"): "of each type some rows, of which none is kept",
    ("verifier/perception/detections/bdd100k.py", _REGIONS, "1"): "any number but 0; or noticed",
    ("verifier/perception/detections/openlabel.py", _RIGID, ">"): "a turn has a determinant near 1 or -1",
    ("verifier/perception/detections/coco.py", _OWN_IDS, "0"): "a whole number as well",
    ("verifier/perception/detections/cameras.py", _NO_RECTANGLES, "4"): "a column that is not read",
    ("verifier/perception/detections/assembly.py", _UNKNOWN, "all"): "a box that is partly unknown is a fault anyway",
    ("verifier/perception/detections/gathered.py", _POINTERS, "any"): "all of a format have one, or none",
    ("verifier/systems/open_system.py", _MAY_NOT, "1"): "any number below 0",
    (_SELECTION, _RIGHT, "=="): "the loss of right and wrong reports is the same if they change places",
    **{(_CANDIDATES, "BLOCK = 1 << 15", token): "how many at once" for token in ("1", "15")},
    **{
        (_MATCHES, line, token): "no row or column of it is read" for line, token in zip(_NO_BOXES, "70", strict=True)
    },
    (_MATCHES, "loss = " + _LOSS_OF_PAIR, "1"): "one more pair outweighs as well",
    (_MATCHES, _UNLIKE, "1"): "any number below 0",
    (_MATCHES, "keys = [detection * len(data.annotations) + annotation, unsure, unlike]", "*"): (
        "the same order of pairs with a common end, which alone decides"
    ),
    (_MATCHES, _TIED, "False"): "one more place is sorted again",
    (_MATCHES, "pair = np.full((len(rows), len(columns)), -1, dtype=np.int64)", "1"): "any number below 0",
    (_MATCHES, "cost[row, column] = loss - (min(pair.shape) + 1)", "min"): "one more pair outweighs as well",
    (_CANDIDATES, _NEXT_TO, "+"): "the last two of four columns, either way",
    (_POLICY, "apart = centre_distance(a[:, :2], b[:, :2])", "2"): "no more columns than the first has, or an error",
    (_POLICY, "near = np.flatnonzero(~(apart > reach))  # NaN goes through", ">"): "circles that touch share nothing",
    (_MATCHES, "ROUNDS = 32", "32"): "how many at once",
    (_MATCHES, "if sum(len(part.detection) for part in reaching) >= BLOCK:", ">="): "how many at once",
    **{(_MATCHES, "if 2 * len(places) > len(order):", token): "which way of sorting" for token in ("2", "*", ">")},
    (_MATCHES, "cost[row, column] = loss - (min(pair.shape) + 1)", "1"): "one more pair outweighs as well",
    **{(_DEPENDENCE, _ALONE, token): "a bin that nothing lies in" for token in ("0", "1")},
    ("verifier/chains/chain.py", _PER_CHOICE, "1"): "the last choice has an outcome",
    (_STEP, _SHAPE, "lower"): "the shapes are equal",
    (_STEP, _DRAWN_FROM, "1"): "any number below 0",
    (_STEP, _FREE, "1"): "where one group has a choice another has, too",
    **{(_STEP, line, token): "as `-`" for line, token in zip(_MASSES, ("upper", "lower"), strict=True)},
    **{(_STEP, line, "-"): "another point within, or noticed" for line in _MASSES},
    (_STEP, _POSSIBLE, ">"): "more observations, that nothing reaches",
    (_SOLVE, "return lift * value + _TINY", "+"): "what is tried, and checked",
    (_SOLVE, "_TINY = 2.0**-900", "900"): "what is tried, and checked",
    (_SOLVE, "_LEAST_LIFT = 2.0**-42", "42"): "what is tried, and checked",
    (_SOLVE, "lift *= 8", "8"): "what is tried, and checked",
    (_SOLVE, "lift /= 2", "2"): "what is tried, and checked",
    (_SOLVE, _ROUGHLY, "True"): "where it is begun",
    ("verifier/analysis/robust/solve.py", "_LIFTS = 12", "12"): "how long it is tried",
    (_STEP, _TILED, "1"): "columns that are not read",
    (_STEP, _TAKEN, "lower"): "as many of both",
    (_STEP, "columns, groups = self.lower.shape", "lower"): "the shapes are equal",
    (_STEP, "wins = np.zeros((1 << len(pairs), groups))", "1"): "orders that are not read",
    **{(_STEP, _LOOKED_UP, token): "which way, not what it finds" for token in (">", "or", "<", "1", "2")},
    (_STEP, "_FEW_GROUPS = 4", "4"): "which way, not what it finds",
    (_STEP, "return np.searchsorted(self.owner, np.arange(self.state_count + 1))", "1"): "an end that is not read",
    ("verifier/analysis/robust/certificate.py", _DEEPEST, "1"): "more than there are",
    **{(_INNER, line, "*"): "the sign is 1 or -1" for line in (_MOVING, _SLOPE)},
    (_INNER, _MOVING, ">"): "how long it is tried",
    (_INNER, "MOST_ROUNDS = 12", "12"): "how long it is tried",
    **{(_INNER, line, "lower"): "the shapes are equal" for line in (_NOTHING, _NONE, _SHAPE)},
    **{(_POINT, _HALVED, token): "how long a witness is looked for that the kernel checks" for token in ("<=", "1")},
    **{
        (_POINT, "times = max(8 * times, residual + 2)", token): "how fine a witness is that the kernel checks"
        for token in ("8", "2")
    },
    (_POINT, _OUTER, "ceil"): "where a witness begins that is raised, and checked",
    (_POINT, _NEAREST, "True"): "all weights are 1; or noticed",
    (_POINT, "return value, 0, steps", "0"): "it is multiplied with no steps",
    (_KERNEL, _FEW, "<="): "the same number",
    (_KERNEL, "for stake, share in zip(STAKES, SHARES, strict=True):", "True"): "constants, of equal lengths",
    (_KERNEL, _NO_RULE, "0"): "without a rule nothing is shown but ends of 0",
    (_KERNEL, _GROUPS, "0"): "as many of both",
    (_KERNEL, _LATER, ">"): "where no step is left, what is met later is not asked",
    **{(_DRAWING, _IN_PART, token): "how many at once" for token in ("1", "//", "24", "*", "+")},
    (_REGION, "return int(self.lower.shape[1])", "lower"): "the shapes are equal",
    (_REGION, "shape = (len(lower), int(group.max()) + 1, len(group))", "lower"): "the shapes are equal",
    (_REGION, "told = np.where(often[:, :, None] > 0, told, -1)", "1"): "one number for all that never is",
    (_DRAWING, _LEAST_COST, "1"): "the most draws either way",
    ("verifier/analysis/best_planner.py", "exact: bool = True", "True"): "it is overwritten",
    (
        "verifier/analysis/best_planner.py",
        "if met.size > MOST_MOVES:",
        ">",
    ): "with the next layer it is too many, too",
    (
        "verifier/analysis/hidden_game.py",
        "onward = after[:, 0]",
        "0",
    ): "an episode that is over stays, whatever is chosen",
    **{(_DRIVES, "_AT_ONCE = 2**22", token): "how many at once" for token in ("2", "22")},
    **{(_DRIVES, _BETS_AT_ONCE, token): "how many at once" for token in ("1", "//")},
    (_DRIVES, "for first in range(0, len(low), size):", "low"): "as many of both",
    (_DRIVES, "own = items[:, column] > 0", ">"): "a drive without items multiplies both sides by the same",
    (_DRIVES, _RICH, ">="): "a tie of rounded logarithms, halfway to an end that is decided exactly",
    (_DRIVES, _WANTED, "1"): "where nothing is divided",
    (_DRIVES, "full = np.ones((drives, 1), dtype=np.int64)", "1"): "only the first is read",
    **{
        ("verifier/analysis/step_counts.py", "_NUMBERS_AT_ONCE = 2**23", token): "how many at once"
        for token in ("2", "23")
    },
    ("verifier/analysis/planning.py", _TOO_MANY, "<"): "what is too large is brought down again",
    (_GRID, "for steps in range(most_steps + 1):", "1"): "as far as what is not reached",
    **{(_GRID, _DIGITS_OF, token): "where odds are small both have the digits" for token in (">", "0")},
    (_GRID, "_, *axes = np.unravel_index(np.arange(self.size), (1, *self.shape))", "1"): "an axis that is left out",
    ("verifier/analysis/vacuity.py", "if mask.any() and not mask.all():", "and"): "how it is searched",
    ("verifier/analysis/planning.py", "high *= 2", "2"): "what is too large is brought down again",
    ("verifier/analysis/planning.py", _DIGITS, "1"): "of numbers below 10 no digit is left out",
    ("verifier/analysis/planning.py", _NO_RATES, "1"): "of columns that nothing depends on",
    ("verifier/analysis/planning.py", _NEXT_SIZE, "1024"): "how it is searched",
    (
        "verifier/analysis/planning.py",
        "while best is None or high > PRECISION * low:",
        ">",
    ): "how near it is searched",
    ("verifier/analysis/recall/least_cost.py", "low, high, step = begin, family.top, 1", "1"): "how it is searched",
    ("verifier/analysis/robust/optimal_conditional.py", "_MOST_PROCESSES = 8", "8"): "how many are kept",
    **{("verifier/analysis/robust/optimum.py", _ALIKE_AT_ONCE, token): "how many at once" for token in ("1", "//")},
    ("verifier/analysis/robust/optimum.py", "np.zeros((count, 0), dtype=np.int64),", "0"): "no draw is made",
    ("verifier/analysis/robust/optimum.py", _BEHIND, "0"): "times 0; or noticed",
    ("verifier/analysis/robust/optimum.py", _ROUGHLY_TOO, "False"): "not read",
    ("verifier/analysis/robust/optimum.py", "_MOST_QUESTIONS = 4", "4"): "how many are kept",
    **{
        ("verifier/analysis/robust/optimum.py", "_NUMBERS_AT_ONCE = 2**23", token): "how many at once"
        for token in ("2", "23")
    },
    ("verifier/analysis/robust/optimum.py", _FIRST_OF_ALIKE, "1"): "which policy is begun with",
    ("verifier/analysis/robust/optimum.py", "indptr=np.concatenate([[0], np.cumsum(lengths)]),", "0"): (
        "where REJECT begins is not read"
    ),
    (
        "verifier/analysis/robust/optimum.py",
        "nothing = np.zeros((1, 1), dtype=np.int64)",
        "1",
    ): "no column is drawn from",
    ("verifier/analysis/robust/policy.py", _WEIGHTING, "0"): "a weighting, no result",
    ("verifier/analysis/robust/recurrent.py", "MOST_TERMS = 64", "64"): "how far, not what",
    ("verifier/analysis/step_counts.py", _WAIT, "0"): "above 0, or not read",
    (_FIRST, _RANK, "1"): "a part of no states",
    (_FIRST, _BEGUN, "1"): "an end that is not read",
    (_FIRST, "for _ in range(MOST_ROUNDS if circles[states].any() else 1):", "1"): "the second round finds no more",
    (_FIRST, "MOST_ROUNDS = 50", "50"): "a policy to begin with",
    **{
        (_SEARCHING, line, token): reason
        for lines, reason in ((_WAYS_TO_SOLVE, "how it is solved, not what"), (_POLICY_BEGUN, "where it is begun"))
        for line, tokens in lines.items()
        for token in tokens.split()
    },
    **{
        (_SEARCHING, line, "1"): "any number below 0"
        for line in (
            "self._place = np.full(step.state_count, -1, dtype=np.int64)",
            "best_of = np.full(len(self._owners), -1, dtype=np.int64)",
        )
    },
    **{(_SEARCHING, _NEAR_ENOUGH, token): "a weighting, no result" for token in ("<=", "*")},
    (_SEARCHING, "self._cap(before | (value[self._owners] >= 1))", ">="): "what is exactly 1 stays there or grows",
    (_SEARCHING, _EXCESS, "+"): "the last, where all is 0; the other is noticed",
    (_SEARCHING, "return bool(np.any(before != self._capped))", "!="): "one round more",
    **{
        (_SEARCHING, f"{name} = {number}", token): "how long it is tried; values are judged later"
        for name, number, tokens in (
            ("MOST_ITERATIONS", "1000", "1000"),
            ("_NOISE", "2.0**-46", "46"),
            ("_STILL", "2.0**-50", "50"),
            ("_MANY", "2000", "2000"),
            ("_WORTH", "16", "16"),
            ("_RESIDUAL", "2.0**-46", "46"),
        )
        for token in tokens.split()
    },
    ("verifier/analysis/robust/recurrent.py", "if math.prod(map(len, told)) > MOST_TERMS:", ">"): (
        "of so many conjunctions there are more ways to violate them"
    ),
    ("verifier/analysis/robust/recurrent.py", "for number in range(int(of.max(initial=-1)) + 1):", "1"): (
        "there are states; or noticed"
    ),
    **{
        ("verifier/analysis/robust/vertices.py", line, "lower"): "as many of both"
        for line in ("if len(lower) > _MOST_LABELS:", "for free in range(len(lower))")
    },
    ("verifier/analysis/robust/world_strategy.py", _ROWS_OF_CHOICES, "-"): "rows that are not read",
    ("verifier/analysis/robust/world_strategy.py", "place = np.full(count, -1, dtype=np.int64)", "1"): (
        "any number below 0"
    ),
    **{
        (
            _CONDITIONAL,
            "stays = marked(count, first.product.state[2:][of[2:] >= 0])",
            token,
        ): "component 0 is that of REJECT"
        for token in (">=", "0")
    },
    (_CONDITIONAL, "counts = np.bincount(owner, minlength=len(choices.choice_starts) - 1)", "1"): (
        "the last state has a choice"
    ),
    (
        _CONDITIONAL,
        "_known: Cache = field(default_factory=lambda: Cache(_MOST_PROCESSES), init=False, repr=False)",
        "False",
    ): ("a cache that nobody gives or shows"),
    (
        _CONDITIONAL,
        "def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:",
        "False",
    ): "not read",
    **{
        ("verifier/analysis/objective.py", line, token): "how many at once"
        for line, tokens in (
            ("size = max(1, _NUMBERS_AT_ONCE // len(objective.skeleton.indices))", "1 //"),
            ("_NUMBERS_AT_ONCE = 2**23", "2 23"),
        )
        for token in tokens.split()
    },
    (_DRAWING, "yield objective.probabilities(part[low : low + at_once], roughly=True).probability", "True"): (
        "solved more exactly than need be"
    ),
    (
        "verifier/analysis/intervals/intervals.py",
        "if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:",
        "lower",
    ): "of equal shapes either; else noticed",
    ("verifier/analysis/intervals/intervals.py", "self._tails = [np.zeros((0, width)), np.zeros((0, width))]", "0"): (
        "the last of what is negated, which is not read; else noticed"
    ),
    ("verifier/analysis/intervals/intervals.py", "if len(tail) > 2 * self._kept:", ">"): "how often it is cut back",
    **{
        ("verifier/analysis/intervals/rate_intervals.py", line, token): reason
        for line, token, reason in (
            ("return np.floor(low * UNIT * _OUTWARDS).astype(np.int64)", "low", "equal by then"),
            ("_HALVINGS = 60", "60", "how near, and rounded outwards"),
            (_RULED_OUT, ">=", "a tie of rounded logarithms, and rounded outwards"),
        )
    },
    **{
        ("verifier/analysis/sequential.py", line, token): reason
        for line, tokens, reason in (
            (_ALARMS_OF_ITEMS, "< >=", "more right than there are is no number, and a tie of rounded logarithms"),
            (_ALARMS_OF_HOURS, "<", "of no chance beyond the last, and a tie of rounded logarithms"),
            ("size = math.ceil(20 + 10 * true * step)", "ceil 20 10", "numbers of events of no chance"),
        )
        for token in tokens.split()
    },
    **{
        ("verifier/analysis/phantom_draws.py", _DRAWN_AT_ONCE, token): "how many at once" for token in _AT_ONCE_TOKENS
    },
    **{
        ("verifier/analysis/phantom_draws.py", line, "1"): "as many of both"
        for line in (
            "free, labels = data.needed.free.tolist(), data.measured.counts.shape[1]",
            "labels = data.measured.counts.shape[1]",
        )
    },
    **{
        ("verifier/analysis/phantom_draws.py", "size = max(1, _VISITS_AT_ONCE // objective.state_count)", token): (
            "how many at once; no product has 2^24 states"
        )
        for token in ("1", "//")
    },
    (_SUBJECT, "numbers = np.where(codes >= 0, len(inner) + np.searchsorted(ended, codes), -1)", "1"): (
        "any number below 0"
    ),
    (_SUBJECT, "return np.where(states <= max(REJECT, ACCEPT), 2 * letters + states, -1)", "1"): "any number below 0",
    **{
        (_SUBJECT, _LED, token): "numbers of ends are at least as many as there are states inside"
        for token in ("<", "0")
    },
    ("verifier/analysis/objective.py", _TO_ROWS, "1"): "any number below 0",
    ("verifier/analysis/objective.py", _CONSTANT, "1"): "a row that is not read",
    (_GAIN, _FINITE, "0"): "it is overwritten",
    (_GAIN, _OF_EDGES, "0"): "of no edges, where nothing is worth anything",
    **{(_GAIN, _ENDLESS, token): "component 0 is `false`, never reached here" for token in (">=", "0")},
    (_GAIN, "_effort: ClassVar[int] = 50", "50"): "a guess of seconds",
    **{(_GAIN, "_MOST_DIGITS = 10**8", token): "how far, not what" for token in ("10", "8")},
    (_GAIN, "def probabilities(self, rates: Floats, *, roughly: bool = False) -> BatchResult:", "False"): "not read",
    (_STATISTICS, "_HALVINGS = 100", "100"): "how near, and never beyond",
    **{
        (
            "verifier/checking/enclosure.py",
            "if self.lower is not None and self.upper is not None:",
            token,
        ): "bounds are pairs"
        for token in ("lower", "and", "upper")
    },
    (_KERNEL, _RANKS, "True"): "`whole` has seen to the lengths",
    ("verifier/analysis/robust/solve.py", _NODES, "1"): "any number below 0",
    (_COUNTING, "SPAN, JUMP = 1 / 32, 1 / 2", "2"): "how often it is looked, not at what",
    (_COUNTING, _MORE, "1"): "a wider margin",
    (_GRAPH, "cyclic: Mask = np.bincount(of)[of] > 1", ">"): "these are found to be unable to stay below",
    **{
        (
            _GRAPH,
            line,
            token,
        ): "no move leaves the first component that is complete, so that all of it stays; or noticed"
        for line in ("at = np.flatnonzero(of >= 0)", "at = before[of[before] >= 0]")
        for token in (">=", "0")
    },
    (
        _GRAPH,
        "asked = np.bincount(of[inner], minlength=size) > 0",
        "0",
    ): "the only way of one state to stay decides it",
    (_GRAPH, "indptr=np.concatenate([[0, 0], indptr]),", "0"): "where REJECT begins is not read; or noticed",
    **{
        (_GRAPH, "indices=target + 2,", token): "not read: the chain behind it has the targets"
        for token in ("+", "2")
    },
    **{(_GRAPH, _NO_STATE, token): "of REJECT and ACCEPT no state is read" for token in ("-", "1")},
    (_GRAPH, "if len(optional) >= most.bit_length():  # each of them has at least two ways", ">="): (
        "so many ways are too many below as well"
    ),
    (
        _GRAPH,
        "for count in range(len(free) + 1 if sum(lower) < UNIT else 1):",
        "1",
    ): "nobody chooses more than all; or noticed",
    (_COUNTING, _TOTAL, "lower"): "the shapes are equal",
    (_COUNTING, _FOUR, "4"): "1 + 5 * 2^-53 is 1 + 4 * 2^-53 in doubles",
    (
        _COUNTING,
        "_WIDER, _NARROWER = 1 + 16 * ROUNDOFF, 1 - 16 * ROUNDOFF",
        "16",
    ): "as 4 above; below 1, noticed",
    **{(_COUNTING, _BLOCKS, token): "how many at once" for token in ("1024", "2", "18", "150")},
    (_COUNTING, "if count > _LARGEST_DENSE:", ">"): "which way, not what it finds",
    (_REGION, "told = np.where(often[:, :, None] > 0, told, -1)", "-"): "the same for all, and not read",
    ("verifier/analysis/robust/optimum.py", _WIDTH, "1"): "columns without probability",
    (_STAYING, _LATER_TERM, ">"): "where no step is left, what is met later is not asked",
    (_STAYING, "if not any(less <= term for less in kept):", "<="): "no term is there twice",
    (_STAYING, "if not all(map(self.reaches, states)):", "all"): "of an end component all are reached, or none",
    (_COMMON, _LOSS, "1"): "any number below 0; or noticed",
    (_COMMON, "_FAVOUR = 2.0**-40", "40"): "a favour of another size",
    (_COMMON, "size, groups = step.lower.shape", "lower"): "the shapes are equal",
    ("verifier/analysis/robust/subject.py", _ITEMS, "1"): "only the first is read",
    (_POINT, _STEPS, "1024"): "how fine a witness is that the kernel checks",
    (_PROCESS, _NO_ROOM, "0"): "no archive is so small",
    (_PROCESS, _OURS, "False"): "what is removed is no link either",
    **{
        ("verifier/checking/worker.py", line, token): "how much at once"
        for line, tokens in {
            'data = os.read(self._stream("stdout").fileno(), 1 << 20)': "1 20",
            'written = os.write(self._stream("stdin").fileno(), self._outgoing[: 1 << 20])': "1 20",
            'data = os.read(self._stream("stderr").fileno(), 1 << 16)': "1 16",
        }.items()
        for token in tokens.split()
    },
    ("verifier/checking/worker.py", _PIPES, "0"): "bytes go through the descriptors, not through these buffers",
    (
        _PROCESS,
        "status = entry.stat(follow_symlinks=False)",
        "False",
    ): "whoever calls has seen to it that it is no link",
    (_PLAN, "_CHUNK = 512", "512"): "how many at once",
    (_PLAN, "MOST_PLANS = 4", "4"): "how much is kept, not what",
    (_PLAN, _MOST_LEVELS, "1000"): "how, not what",
    **{(_PLAN, line, "1"): "any number below 0" for line in _UNNUMBERED},
    (_PLAN, "if len(size) < u or not _has_long_path(u, above, below, max_levels):", "<"): "a quicker way to the same",
    (_PLAN, "place = np.empty(u + 2, dtype=np.int64)", "2"): "a place that is not read",
    ("verifier/checking/asking.py", "MOST_STORM_RECURRENCES = 10", "10"): "a guess of what takes too long",
    **{("verifier/analysis/robust/policy.py", _GROWN, token): "one round more" for token in (">", "*", "+")},
    ("verifier/checking/two_engines.py", _SUM, ">"): "no sum of doubles near 1 is off by just that",
    ("verifier/checking/two_engines.py", _GIVEN, "lower"): "both are given, or none",
    (_BATCH, "_FEW_MATRICES = 16", "16"): "how, not what",
    (_BATCH, "if values.min() > 0:", "0"): "a quicker way to the same",
    (_BATCH, "_CHUNK = 512", "512"): "how many at once",
    **{(_BATCH, "_SUMS_AT_ONCE = 1 << 22", token): "how many at once" for token in ("1", "22")},
    **{(_BATCH, _SUMMED_AT_ONCE, token): "how many at once" for token in ("//", "1")},
    (_BATCH, _KINDS, "1"): "a larger table, of the same numbers of each kind",
    (_LEVELS, _NUMBERS_OF_BAND, "+"): "how many at once",
    (
        "verifier/systems/planners/functions.py",
        "sets: None = field(default=None, init=False)",
        "False",
    ): "nobody gives it",
    **{
        ("verifier/systems/skeleton.py", line, token): why
        for line, tokens, why in (
            ("pattern, pattern_count = np.zeros(len(told), dtype=np.int64), 1", "1", "a wider bound of codes"),
            (
                "unique, place = numbered(bits, 1 << min(_BITS, width - word * _BITS))",
                "1 min -",
                "a wider bound of codes",
            ),
            (_PATTERNS, "+", "numbers that are only compared"),
            (_SORTS_BEHIND, "1", "farther behind every other code"),
            ("codes, entry = numbered(code, constant + 1)", "1", "a wider bound of codes"),
        )
        for token in tokens.split()
    },
    ("verifier/systems/planners/prism.py", "if not names_in(node) & meanings.keys():", "&"): "then nothing is put in",
    ("verifier/checking/expectations.py", _QUOTIENTS, "and"): "only a gain may be infinite, and have no fraction",
    **{("verifier/checking/recurrence.py", _HORIZON, token): "farther than is asked" for token in ("0", "-")},
    ("verifier/base/graphs.py", "_ROUNDS = 500", "500"): "how, not what",
    ("verifier/base/graphs.py", "found = np.zeros(n + 1, dtype=bool)", "1"): "a place that is not read",
    ("verifier/base/graphs.py", "if len(sources) <= FEW:", "<="): "which search, not what it finds",
    ("verifier/base/graphs.py", "FEW = 300", "300"): "which search, not what it finds",
    ("verifier/checking/enclosure.py", _BOTH, "lower"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "upper"): "both are given, or none",
    ("verifier/checking/enclosure.py", _BOTH, "and"): "both are given, or none",
    ("verifier/checking/enclosure.py", _NEXT, "<"): "they are not equal",
    ("verifier/checking/two_engines.py", "_FACTORISATION_LOSS = 1000", "1000"): "how far, not what",
    (_POINT, "UNIT = 2**128", "2"): "how fine a witness is that the kernel checks",
    (_POINT, "UNIT = 2**128", "128"): "how fine a witness is that the kernel checks",
    (_POINT, "_ROUNDS = 40", "40"): "how long a witness is looked for that the kernel checks",
    (_POINT, "_DIGITS = 2.0**40", "40"): "how long a witness is looked for that the kernel checks",
    (_POINT, _HALVED, "*"): "how long a witness is looked for that the kernel checks",
    (_POINT, _HALVED, "2"): "how long a witness is looked for that the kernel checks",
    (_POINT, "for _ in range(5):", "5"): "how long a witness is looked for that the kernel checks",
    (
        "verifier/analysis/robust/certificate.py",
        "at, number = np.arange(n), 0",
        "0",
    ): "numbers that are only compared",
    ("verifier/analysis/robust/certificate.py", "TARGET = -2", "2"): "a code of its own",
    ("verifier/analysis/recall/least_cost.py", "LARGEST_CHECKED = 5000", "5000"): "how far, not what",
    ("verifier/analysis/robust/certificate.py", "NO_COMPONENT = -1", "1"): "a code of its own",
    (_LTL, "PROPOSITION_DEPTH = 50", "50"): "from what depth on a condition is taken apart, not what it says",
    (_COMMON, _CHANGES, "-"): "the same for all choices in a state",
    (_COMMON, _CHANGES, "*"): "a favour of another size, and of the same sign",
    **{
        ("verifier/language/expressions/parser.py", _PLACE, token): "every token has a place" for token in ("or", "1")
    },
    ("verifier/language/expressions/parser.py", _KNOWN, "and"): "both are given, or none",
    (
        _NUMBERS,
        "return Exact(a.data // b.data, 1, -size, min(size, _GREATEST), True)",
        "min",
    ): "a wider bound, measured where it would be too wide",
    (_NUMBERS, _QUOTIENT, ">"): "what is looked at, not what is refused",
    ("verifier/language/expressions/evaluation.py", _ALIKE_KINDS, "and"): "both are numbers, or none",
    ("verifier/language/expressions/kinds.py", _BRANCH, "1"): "both branches are of one kind",
    ("verifier/language/specs/requirement_reader.py", _KEPT_COMMENTS, ">="): "no statement begins with a comment",
    ("verifier/language/specs/reader.py", _AMOUNT, "<"): "a range of one value is not refused",
    (_LTL, "return self.after(low, right)", "low"): "they are equal there",
    (_LTL, "low: int = 0", "0"): "of the kinds that have none",
    (_FORMULAS, 'if low.type == "SECONDS":', "low"): "both are in seconds, or none, by the grammar",
    (_FORMULAS, "if bound.interval.low == 0:", "low"): "one number is both ends",
    (_FORMULAS, "n = bound.interval.low", "low"): "one number is both ends",
    (
        _FORMULAS,
        "return _Bound(Interval(0, None), position_of(first), seconds=seconds)",
        "0",
    ): "not read where seconds are given",
    (_PROGRESSION, "support = 0", "0"): "what is kept apart, not what it is",
    (_PROGRESSION, "if left == right or not right:", "or"): "how much is compared, not what is left",
    (_PROGRESSION, "if left == right or right == _ANYTHING:", "or"): "how much is compared, not what is left",
    ("verifier/language/ltl/parser.py", _LONG, "10"): "eleven digits are more than the largest bound",
    ("verifier/systems/exploration.py", _DRAWN, "1"): "only what stands at the index is read",
    (
        "verifier/systems/exploration.py",
        "view = view_of(system, planner, told, there, 1)",
        "1",
    ): "only the first is read",
    ("verifier/systems/contexts.py", _TAGS, "1"): "numbers that are only compared",
    **{("verifier/systems/contexts.py", _ALIKE, token): "numbers that are only compared" for token in ("+", "%")},
    ("verifier/perception/detections/stream.py", _REGULAR, "-"): "numbers that are only compared",
    (_POINT, "_MOST_RAISED = 400", "400"): "how long a witness is looked for that the kernel checks",
    (
        "verifier/systems/contexts.py",
        "size = max(_BLOCK // len(self.branches.observation), 1)",
        "//",
    ): "how many at once",
    (_CONTEXTS, _BLOCKED, "1"): "how many at once",
    **{(_CONTEXTS, "_BLOCK = 2**20", token): "how many at once" for token in ("2", "20")},
    (_CONTEXTS, "who = np.where(remembering, plain.who + 1, 0)", "1"): "numbers that are only compared",
    (_CONTEXTS, "fresh = np.setdiff1d(led, known, assume_unique=True)", "True"): "how, not what",
    **{
        (_CHANNEL, "bins = int(self.bins.max(initial=0)) + 1", token): "matrices that are not read"
        for token in ("0", "1")
    },
    (_CHANNEL, _EVERY_ROW, "=="): "how, or noticed",
    **{(_CHANNEL, line, "1"): "any number below 0" for line in (_NOT_DRAWN, _NONE_BESIDE)},
    (_CHANNEL, _NEVER_BOTH, "0"): "not read",
    ("verifier/systems/behaviour.py", _BITS, "2"): "numbers that are only compared, in the same order",
    ("verifier/systems/behaviour.py", _BY_RUN, "0"): "not read; or noticed",
    ("verifier/systems/declarations.py", "count = -1", "1"): "any number below 0",
    ("verifier/systems/model.py", "if kept is None or kept[0] is not node:", "0"): "how often it is resolved",
    ("verifier/systems/model.py", "if len(self._answered) < _MOST_ANSWERED:", "<"): "how much is kept",
    **{
        (_EXPLORATION, line, token): "which way, not what it finds"
        for line, tokens in _WAYS_TO_EXPLORE.items()
        for token in tokens.split()
    },
    **{
        (
            _EXPLORATION,
            "if count and shape[2] > 1:",
            token,
        ): "one outcome alone can always occur; no state is led anywhere"
        for token in (">", "and")
    },
    (_EXPLORATION, _LAST_FOR_NONE, "1"): "any number below 0, and a place that is not read",
    (
        _EXPLORATION,
        "beyond = not variable.low <= moved <= variable.high",
        "<=",
    ): "a number at an end is whole, and within",
    ("verifier/systems/space.py", _ROWS, "1"): "how wide a table without rows is",
    (_LEVELS, _BELOW, "1"): "a row that is not read",
    **{(_LINEAR, _SOLVED, token): "a row or column that is not read" for token in ("2", "1")},
    (_ROUNDED, "few = abs(exact) < SMALLEST_WRITTEN_OUT", "<"): "0.0001 is spelt alike",
    (_ROUNDED, _ALL_DIGITS, ">"): "1/2 has been returned",
    (_ROUNDED, _FEWEST, "<"): "1 and 1/2 need one digit",
    (_ROUNDED, "if 10 * count >= size:", ">="): "no unit has a whole tenth",
    (_ROUNDED, _MEMORY, "<"): "9999 is spelt alike",
    (_STATISTICS, _NONE_SEEN, "1"): "the end is 0 there",
    (_STATISTICS, _WRONG, "<"): "either way is right to that",
    (_STATISTICS, "if items <= 1:", "<="): "without a degree of freedom no number comes out, which ends alike",
    **{(_STATISTICS, _CHANCES, token): "no end is just that" for token in ("<", ">")},
    ("verifier/checking/step_bounds.py", "if apart <= MOST_APART:", "<="): "both ways are right",
    ("verifier/checking/step_bounds.py", "MOST_APART = 2.0**-40", "40"): "both ways are right",
    **{(_REFINED, _BETTER, token): "when it ends, not what is proven" for token in ("<=", "2")},
    **{(_REFINED, _ENOUGH, token): "when it ends, not what is proven" for token in ("<=", "2")},
    **{(_REFINED, "_SPLITTER = 2.0**27 + 1", token): "numbers next to 2^27 split as well" for token in ("+", "1")},
    (_REFINED, "_ROUNDS = 12", "12"): "how long it is tried",
    (_REFINED, "_PROOFS = 4", "4"): "how long it is tried",
    ("verifier/checking/stepping.py", _OVER, ">"): "a tie of a number that is rounded down",
    ("verifier/checking/stepping.py", "NEVER = -1", "1"): "any number below 0",
    **{("verifier/checking/stepping.py", "_NEAR = 2.0**-40", token): "looked at nearer" for token in ("-", "40")},
    ("verifier/checking/stepping.py", _NEARLY, ">"): "equal numbers are looked at nearer, which decides nothing",
    **{(_PRODUCTS, line, token): "which way, not what it finds" for line, token in _AT_ONCE_WAYS},
    **{(_PRODUCTS, line, token): "a larger table" for line, token in _LARGER_TABLES},
    (_PRODUCTS, "MOST_DECIDED = 8", "8"): "how much is kept, not what",
    (
        _PRODUCTS,
        "self._table = np.zeros((0, len(letters)), dtype=np.int64)",
        "0",
    ): "the row of `false`, 0 for each letter",
    (_PRODUCTS, "return np.concatenate([table, np.full((more, *table.shape[1:]), -1)])", "1"): "any number below 0",
    (_PRODUCTS, "place = np.full(obligations[-1] + 1, -1, dtype=np.int64)", "1"): "room; or noticed",
    **{(_PRODUCTS, "unknown = result < 0", token): "progressed again, to the same" for token in ("<", "0")},
    **{(_PRODUCTS, "fresh = np.flatnonzero(known < 0)", token): "numbers begin at 2" for token in ("<", "0")},
    (_PRODUCTS, "code = obligation * self._pages_each + (state >> _PAGE_BITS)", "+"): "as many different numbers",
    ("verifier/checking/worker.py", "if remaining <= 0:", "<="): "the next round is late",
    ("verifier/perception/confusion/dependence.py", _AT_ONCE, "2"): "how many at once",
    ("verifier/analysis/counterexamples/replay.py", _AGREES, "1000"): "a thousandth of a tolerance",
    ("verifier/analysis/counterexamples/replay.py", "rng = np.random.default_rng(0)", "0"): "another way at random",
    (
        "verifier/analysis/counterexamples/replay.py",
        "_WANDERING = (20, 200)",
        "200",
    ): "how far it wanders before it gives up",
    ("verifier/analysis/counterexamples/replay.py", "if len(walk) > LONGEST_WORD:", ">"): "too long for `replay` too",
    **{(_RUNS, _PERFECT, token): "as many of both" for token in ("-", "1")},
    (_RUNS, _PLANNED, "1"): "for how many at once it is planned",
    (_RUNS, "_GRAIN = 2.0**-44", "44"): "how fine",
    (_RUNS, "self._step = np.full(n, -1, dtype=np.int64)", "1"): "of nodes without a step, not read",
    **{(_RUNS, "return np.full(n, np.inf), np.full(n, -1)", token): "not read" for token in ("-", "1")},
    (_RUNS, "heap = [(float(self._distance[node]), next(numbers), 0, -1)]", "0"): "not read",
    (_RUNS, "heap = [(float(self._distance[node]), next(numbers), 0, -1)]", "1"): "any number below 0",
    **{(_RUNS, "if len(heap) > 2 * wanted:", token): "how many are kept" for token in (">", "2")},
    (_RUNS, "grained = np.round(cost[order] / _GRAIN) * _GRAIN", "*"): "all costs in another unit",
    (_RUNS, "def _tree_nodes(self, node: int, until: int = -1) -> Ints:", "1"): "any number below 0",
    **{
        (_ADJOINT, _FINITE_RATES, token): "anything finite, in columns that no chain needs"
        for token in ("1", "-", "2")
    },
    (_ADJOINT, _BEFORE, "1"): "a row that is not read",
    (_ADJOINT, "size, local = len(states), np.full(n, -1, dtype=np.int64)", "1"): "any number below 0",
    (_ADJOINT, "self.number = np.full(n, -1, dtype=np.int64)", "1"): "any number below 0",
    **{(_ADJOINT, _ADDING, token): "how it is solved, not what" for token in ("<", ">")},
    (_ADJOINT, "if sum(band.numbers for _, _, band in tables) <= _MOST_ADDED:", "<="): "how it is solved, not what",
    **{(_ADJOINT, _ORDERED, token): "how it is solved, not what" for token in ("max", "<=")},
    (_ADJOINT, _ENDING_ROWS, "&"): "more cells are looked at, which open nothing",
    (_ADJOINT, "before = skeleton.entry_values(rates)[entry] > 0", "0"): "as for `rows`",
    **{(_ADJOINT, _OF_RATE_0, token): "as for `rows`" for token in (">", "&")},
    (_ADJOINT, "used = np.zeros((1, len(channel.bins), len(channel.observations)))", "1"): "a row that is not read",
    (_ADJOINT, "used[0, rows] = 1", "1"): "only whether it is above 0",
    (_ADJOINT, "back = place[columns] < place[rows]", "<"): "no factor leads to its own state",
    (_ADJOINT, "LARGEST_BLOCK = 64", "64"): "how it is solved, not what",
    **{(_ADJOINT, _RARELY, token): "how it is solved, not what" for token in ("-", "17", "2", "23")},
    (_CAUSES, _SHARES, "2"): "each is 1",
    (_PATTERNS_OF_LOSS, "leaving = np.flatnonzero((losing > 0) & ~stays)", ">"): "moves that are not made",
    ("verifier/analysis/counterexamples/explanation.py", _ONE_MORE, "1"): "one more yet, which is not told",
    (_CAUSES, "known = min(pending, key=len)  # what flows into a set comes from smaller ones", "min"): (
        "how often a set is looked at, as flows add up"
    ),
    (_CAUSES, _FLOWING, ">"): "sets that nothing flows into are looked at, too",
    (_CAUSES, "place = np.full(objective.state_count, -1, dtype=np.int64)", "1"): "any number below 0",
    **{(_REQUIREMENTS, "PART_BYTES = 2**27", token): "how many at once" for token in ("2", "27")},
    **{(_REQUIREMENTS, _BYTES, token): "how many at once" for token in ("1", "//", "2", "*")},
    ("verifier/analysis/recall/cells.py", _AT_RANDOM, "0"): "other matrices at random",
    ("verifier/analysis/recall/cells.py", "rest[np.all(rest == 0, axis=1), cells.empty] = 1", "1"): (
        "it is scaled; or noticed"
    ),
    (
        "verifier/analysis/recall/cells.py",
        "rest[cells.empty] = 1",
        "1",
    ): "all are divided by what they have in common",
    ("verifier/analysis/recall/cells.py", "for at, column in np.argwhere(visited & ~relevant).tolist():", "&"): (
        "more columns are looked at, as the others are"
    ),
    (_PRIORITIES, _CORRECT, ">="): "equal where nothing moves, and such columns are not listed",
    (_PRIORITIES, _NO_ERRORS, "1"): "as many of both",
    (_PRIORITIES, "gain = sensitivity.against(np.arange(sensitivity.rates.shape[1]))", "1"): "as many of both",
    **{
        (_PRIORITIES, "chunk = max(1, _BATCH_BYTES // rates.nbytes)", token): "how many at once"
        for token in ("1", "//")
    },
    **{(_PRIORITIES, "_BATCH_BYTES = 2**27", token): "how many at once" for token in ("2", "27")},
    (_COST, "RANDOM_STARTS = 4", "4"): "how often it is tried",
    (_COST, '"options": {"maxiter": 200, "ftol": 1e-12},', "200"): "how long it is tried",
    (_COST, "known[key] = _slack(improvement, np.clip(recall, 0, 1))", "1"): "bounds are left by roundings only",
    (_COST, "upper = np.full(self.exact.shape, Fraction(1), dtype=object)", "1"): "a region cuts it to 1",
    (_COST, "steps = max(whole - min(begin), 1)", "1"): "0 steps of 0; half a step of 1 is rounded up to it",
    (_COST, "while high > low:", ">"): "what is known to be met is looked at again",
    (_PATTERNS_OF_LOSS, _IN_OPEN, "1"): "a state that is not read",
    **{(_PATTERNS_OF_LOSS, _BY_PLACE, token): "a wider bound" for token in ("0", "1")},
    (
        _PATTERNS_OF_LOSS,
        "for several in np.flatnonzero(np.diff(ends) > 1).tolist():",
        ">",
    ): "one alone comes out as before",
    ("verifier/perception/confusion/replay.py", "counts = np.zeros((bins, contexts.count, 2))", "2"): "a column of 0",
    (_REGION, "bins, groups, true = self.lower.shape", "lower"): "the shapes are equal, or refused",
    **{
        (_COUNTS, line, token): reason
        for reason, line, tokens in (
            ("how often it is looked, not at what", "_LOOK = 64", ("64",)),
            ("how often it is looked, not at what", _LOOKS_AT, ("==", "0", "%")),
            ("which way, not what it finds", "LARGEST_SQUARED = 600", ("600",)),
            ("which way, not what it finds", _STEPPED, (">",)),
            ("how many at once", "size = _NUMBERS_AT_ONCE // product.state_count**2", ("//",)),
            ("how many at once", "size = max(1, _NUMBERS_AT_ONCE // max(len(self.product.edge), 1))", ("1",)),
            ("what waits is overwritten", "ends = self._with_constants(left > 0, np.zeros(()), meets)", ("0",)),
            ("above 0, or not read", _REST, ("0",)),
            (
                "above 0, or not read",
                "wait, transitions = self.window.response or 0, len(self.skeleton.indices)",
                ("0",),
            ),
            ("nobody asks how exact draws are", _ROUGH_DRAWS, ("True",)),
            ("a power that is not used", "power = power @ power if steps >> position > 1 else power", (">",)),
        )
        for token in tokens
    },
    (_NUMBERS, "high = max(0, b.high - 1)", "0"): "a wider bound, measured where it would be too wide",
    (_NUMBERS, "if isinstance(a, Exact) and isinstance(b, Exact):", "and"): "both are exact, or none",
    (_LTL, "return self.after(low or 1, operands[0])", "low"): "the bounds of X are equal",
    (_KERNEL, "UPWARDS = Context(50, ROUND_CEILING, MIN_EMIN, MAX_EMAX)", "50"): "rounded up, with digits to spare",
    (_KERNEL, "if term.adjusted() < -30:", "<"): "from where on the rest is bounded and not added up",
    (_KERNEL, "if term.adjusted() < -30:", "30"): "from where on the rest is bounded and not added up",
    (_KERNEL, "if end == 0 or not held or end > BILLION:", ">"): "no rate is shown to be above 1",
    (_KERNEL, "held = dict(zip(states, numbers, strict=True))", "True"): "`whole` has seen to the lengths",
    (_KERNEL, _PUT_OFF, "0"): "the same for all",
    ("verifier/systems/space.py", _NOWHERE, "low"): "it is overwritten",
    ("verifier/systems/strategies.py", _SAME_BEFORE, "1"): "any number below 0; or noticed",
    ("verifier/systems/strategies.py", "kept[:1] = True", "1"): "rows of no moves",
    ("verifier/systems/strategies.py", _OVER_ALREADY, "1"): "any number below 0; or noticed",
    ("verifier/systems/planners/tables.py", _GATHERED, "1"): "a row that is not read",
    ("verifier/systems/planners/tables.py", _LARGEST_END, "0"): "told apart more finely than any row asks",
    ("verifier/systems/scene.py", "low = max(low, math.ceil(value))", "ceil"): "the condition refuses it, too",
    ("verifier/systems/scene.py", "high = min(high, math.floor(value))", "floor"): "the condition refuses it, too",
    ("verifier/systems/scene.py", _NO_CHOICE, "0"): "a transition takes more",
    ("verifier/systems/space.py", _WHICH_ENDS, ">"): "upper ends below 1 have no lower ends that sum to 1",
    ("verifier/systems/space.py", "free = Fraction(0), Fraction(1)", "1"): "no probability is above 1",
    ("verifier/systems/strategies.py", _NUMBERED, "1"): "any number below 0, behind all others",
    ("verifier/systems/synthesis.py", _FARTHER, "1"): "any number below 0; or noticed",
    ("verifier/chains/languages.py", "return bool(mask.all())", "all"): "of all, or of none",
    ("verifier/chains/texts.py", "choices = list(range(chain.state_count + 1))", "1"): "an end that is not read",
    (
        "verifier/perception/confusion/labellings.py",
        "kept = np.flatnonzero(counted & (low < high))",
        "<",
    ): "a row of no thresholds",
    (_KERNEL, "ends = list(zip(behind, low, high, strict=True))", "True"): "`exceeds` has read the same",
    (_KERNEL, _ONE_WAY, "1"): "a chance is divided by the sum of all",
    ("verifier/analysis/robust/certificate.py", "layer = np.full(n, -1, dtype=np.int64)", "1"): "any number below 0",
    ("verifier/analysis/robust/certificate.py", "count = int(part.max()) + 1", "1"): "a part of no states",
    ("verifier/analysis/robust/solve.py", "_SMALLEST_LIFT = 2.0**-51", "51"): "how long it is tried",
    **{("verifier/analysis/robust/solve.py", _LOWERING, token): "how long it is tried" for token in (">", "and")},
    ("verifier/analysis/robust/solve.py", _ENOUGH_MERGED, "<="): "how long it is tried",
    ("verifier/analysis/robust/solve.py", _DIFFERENCE, "4"): "a wider margin",
    **{(_ELIMINATION, "_NO_NUMBER = -(1 << 40)", token): "below all others" for token in ("1", "40")},
    (_ELIMINATION, "_BEYOND_DOUBLES = 1200", "1200"): "beyond them, too",
    **{(_ELIMINATION, "_NUMBERS_AT_ONCE = 1 << 18", token): "how many at once" for token in ("1", "18")},
    **{(_ELIMINATION, _SYSTEMS, token): "how many at once" for token in ("1", "//")},
    (_ELIMINATION, _CAME_FROM, ">"): "no factor leads to its own state",
    (_ELIMINATION, _CUTHILL, "False"): "how narrow, not what",
    (_ELIMINATION, "self._lower = bool(np.all(targets < sources))", "<"): "no edge leads to its own state",
    (_ELIMINATION, "if self._lower or np.all(targets > sources):", ">"): "no edge leads to its own state",
    (_ELIMINATION, _PIVOTS, "True"): "which pivots, not what is solved",
    (_ELIMINATION, _ONES, "True"): "the diagonal holds ones, and nobody reads the matrix again",
    (_POINT, "return np.where(chain.reached, distance, 0).astype(np.int64)", "0"): "of what is not reached",
    **{(_POINT, _RAISED, token): "where a witness begins that is raised, and checked" for token in ("+", "2")},
    (_POINT, _WORST, "*"): "where a witness begins that is raised, and checked",
    ("verifier/analysis/robust/solutions.py", "boxes: int = 32", "32"): "how long it is tried",
    (_POINT, _HALVED, ">"): "how long a witness is looked for that the kernel checks",
    (_POINT, "times = 0", "0"): "how fine a witness is that the kernel checks",
    ("verifier/analysis/robust/certificate.py", "number += 1", "1"): "numbers that are only compared",
    ("verifier/analysis/robust/certificate.py", _SHORT, ">="): "how soon, not what",
    (_LINEAR, "thorough: bool = False,", "False"): "how it is solved, not what",
    (_LINEAR, _LARGEST, "1"): "of no states",
    (_LINEAR, _WIDEST_LEVEL, "0"): "of no states",
    (_LINEAR, _KEPT_SYSTEM, "<="): "how long it is kept, not what",
    (_LINEAR, _EQUAL_SIZES, "1"): "of no matrices",
    (_LINEAR, _LEVEL_COUNT, "0"): "of no states",
    (_LINEAR, _AT_ONCE_MOST, "1"): "of no edges",
    (_LINEAR, "relative[relative >= 1] = np.inf", ">="): "no whole number of roundings makes it 1",
    (_LINEAR, _BETTER_ERROR, "<"): "of equal bounds either will do",
    (_LINEAR, _EXITS, "1"): "`least_leave` is at most 1",
    (_LINEAR, _PAID, ">="): "a tie of a rounded margin; a state of 0 pays nothing",
    ("verifier/checking/step_bounds.py", "negligible=NEGLIGIBLE / (n + 1),", "1"): "how soon it is known",
    (_LINEAR, "_CHUNK = 512", "512"): "how many at once",
    (_LINEAR, "_FEW_AT_ONCE = 16", "16"): "how many at once",
    **{(_LINEAR, "memory_bytes: int = 1 << 30,", token): "how many at once" for token in ("1", "30")},
    (_POWERS, "NEGLIGIBLE = 2.0**-70", "70"): "how soon it is known",
    (_POWERS, "taken, next_look = 0, 64", "64"): "how often it is looked, not at what",
    (_POWERS, _LOOKED, "2"): "how often it is looked, not at what",
    (_POWERS, "if seconds is not None and min(stepping, squaring) > seconds:", ">"): "a guess of seconds",
    (_POWERS, "return squaring < stepping", "<"): "which way, not what it finds",
    (_POWERS, _SCALE, "900"): "where nothing is moved",
    (_POWERS, "columns = np.zeros((size, 3))", "3"): "a column of 0",
    (_POWERS, "if steps >> position > 1:", ">"): "a power that is not used",
    (_POWERS, "return len(self.low)", "low"): "as many of both",
    (_POWERS, "place = np.full(len(chain.origin), -1, dtype=np.int64)", "1"): "any number below 0",
    (_POWERS, _CUT, "1"): "a column that is cut off",
    (_POWERS, _MOVED, "16"): "1 + 17 units is 1 + 16, rounded",
    (_POWERS, "digits = 3", "3"): "3 never suffice",
    (_POWERS, _PRODUCT, "1"): "the matrix is square",
    (_LEVELS, "_LEFT_AT_ONCE = 4096", "4096"): "how many at once",
    **{(_LEVELS, _EVEN, token): "how a sum is made, not of what" for token in ("*", "<=")},
    **{(_LEVELS, line, token): "how a sum is made, not of what" for line, token in _SUM_WAYS},
    **{(_LEVELS, _ONE_WAY_ONLY, token): "no edge leads to its own state" for token in ("<", ">")},
    (_LEVELS, _LEFT, "min"): "a larger buffer",
    (_LEVELS, _LEAST, "1"): "`least` is at most 1",
    (_STEP, _SLACK, "lower"): "the shapes are equal",
    (_STEP, _NO_DRAW, "1"): "any number below 0",
    **{(_STEP_KERNEL, line, "1"): "the weight of the only transition of a row" for line in _ONE_WAY_ON},
    (_STEP_KERNEL, "values, taken = product(matrix, values, 3), taken + 1", "3"): "a place more, which is empty",
    (
        _STEP_KERNEL,
        "values, steps = product(matrix, values, 3) if steps & 1 else values, steps >> 1",
        "3",
    ): "a place more, which is empty",
    (
        _STEP_KERNEL,
        "asked = range(size) if low else starts",
        "low",
    ): "who is asked about beside them costs time alone",
}
"""(module, line, token) -> why the fault changes nothing that is computed."""


@dataclass(frozen=True)
class Fault:
    """One token replaced; `offset` counts characters from the start of the module."""

    module: str
    line: int
    text: str
    offset: int
    before: str
    after: str

    @property
    def part(self) -> str:
        """The part that its module belongs to."""
        return part_of(self.module)

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before!r} -> {self.after!r} in {self.text}"

    def applied(self, source: str) -> str:
        """The source with the fault."""
        end = self.offset + len(self.before)
        if source[self.offset : end] != self.before:
            raise ValueError(f"{self} is not there")
        return source[: self.offset] + self.after + source[end:]


def faults_of(module: str, source: str) -> Iterator[Fault]:
    """Every single-token fault of a module, in the order of the text."""
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    spared = list(_spared(ast.parse(source), module in CHECKERS))
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        after = _changed(token, previous)
        previous = token.string if token.type != tokenize.NL else previous
        if after is None or any(first <= token.start and token.end <= last for first, last in spared):
            continue
        row, column = token.start
        text = lines[row - 1].strip()
        if (module, text, token.string) not in EQUIVALENT:
            yield Fault(module, row, text, begins[row - 1] + column, token.string, after)


def _changed(token: tokenize.TokenInfo, previous: str) -> str | None:
    if token.type in (tokenize.OP, tokenize.NAME):
        unpacking = token.string == "*" and previous in ("(", ",", "[", "=", "return", "yield", "in", "", "\n")
        keyword = previous in ("import", "def", "class") or unpacking
        return None if keyword else SWAPS.get(token.string)
    if token.type == tokenize.NUMBER and token.string.isdigit():
        return str(int(token.string) + 1)
    return None


def _spared(tree: ast.AST, checks: bool) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Annotations, types, decorators, imports, and what is raised: places where a fault computes nothing.

    So does a strict `zip`, whose lengths differ by an error of the program only, unless the module checks documents,
    and the number of a negative size that an array is reshaped to, which numpy reads as -1 whatever it is.
    """
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = list(getattr(node, "decorator_list", []))
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg == "strict" and not checks:
            parts.append(node.value)
        elif isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
            parts.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            parts += [each.operand for each in node.args if isinstance(each, ast.UnaryOp)]
        for part in parts:
            if part is not None:
                yield (
                    (part.lineno, part.col_offset),  # type: ignore[attr-defined]
                    (part.end_lineno, part.end_col_offset),  # type: ignore[attr-defined]
                )


def part_of(module: str) -> str:
    """The part that a module belongs to."""
    return max((part for part in PARTS if module == part or module.startswith(f"{part}/")), key=len)


def named_faults(name: str) -> list[Fault]:
    """Every fault of a part, module or lines (`MODULE:LINE`, or `MODULE:FIRST-LAST`)."""
    place, _, lines = name.partition(":")
    first, _, last = lines.partition("-")
    paths = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    modules = [path.relative_to(ROOT).as_posix() for path in paths]
    own = [module for module in modules if place not in PARTS or part_of(module) == place]
    faults = [fault for module in own for fault in faults_of(module, (ROOT / module).read_text())]
    return [fault for fault in faults if not lines or int(first) <= fault.line <= int(last or first)]


def function_at(source: str, line: int) -> str | None:
    """The function or method of a module or class that a line lies in."""
    inside: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    for node, prefix in inside:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.lineno <= line <= (child.end_lineno or 0):
                if isinstance(child, ast.FunctionDef):
                    return f"{prefix}{child.name}"
                inside.append((child, f"{prefix}{child.name}."))
    return None


Run: TypeAlias = "Callable[[Any], tuple[int, Chosen]]"
"""Runs tests: those with limits (test -> seconds) up to the first that fails, or all of some files."""
Noted: TypeAlias = "dict[str, tuple[float, list[str]]]"
"""Test -> its seconds and the functions of the project that it calls (`MODULE:NAME`)."""


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods that the code of a module or class makes."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from [inner] if _is_function(inner) else functions_of(inner)


def around(source: str) -> list[Any] | None:
    """What the text of a module does itself, whatever its functions do; None where it is none."""

    def outside(code: CodeType) -> list[Any]:
        inner = [const for const in code.co_consts if isinstance(const, CodeType)]
        plain = [repr(const) for const in code.co_consts if const not in inner]
        return [code.co_code, code.co_names, plain, *(outside(each) for each in inner if not _is_function(each))]

    with contextlib.suppress(SyntaxError):
        return outside(compile(source, "", "exec"))
    return None


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and (code.co_name == "<lambda>" or code.co_name[0] != "<")


def put_in(path: Path, text: str) -> None:
    """Let the functions of a module that has been read do what they do in another text with the same lines."""
    new = {(code.co_qualname, code.co_firstlineno): code for code in functions_of(compile(text, path, "exec"))}
    gc.unfreeze()  # what the tests' own set-up has put out of its sight
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == str(path):
            each.__code__ = new.get((each.__code__.co_qualname, each.__code__.co_firstlineno), each.__code__)


@dataclass(eq=False)
class Chosen:
    """A plugin of pytest that runs some of the tests, in the order of their limits, or notes what each of all calls.

    Attributes:
        most_s: test -> the seconds after which its process ends; None to note.
        noted: see `Judge`.
        failed: the tests that failed.
    """

    most_s: Mapping[str, float] | None = None
    noted: Noted = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the tests that are asked for, in their order."""
        if self.most_s is not None:
            found = {item.nodeid: item for item in items}
            items[:] = [found[test] for test in self.most_s if test in found]

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that a module left when it was read."""
        if excinfo.errisinstance(SystemExit):
            self.failed.append("SystemExit")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which test failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note how long a test takes and the functions of the project that it calls, or hold it to its limit."""
        if self.most_s is not None:
            faulthandler.dump_traceback_later(self.most_s[item.nodeid], exit=True)
            yield
            faulthandler.cancel_dump_traceback_later()
            return
        if any(mark.name == "skip" for mark in item.iter_markers()):
            yield
            return
        met: dict[int, CodeType] = {}

        def called(frame: FrameType, event: str, argument: Any) -> None:
            met.setdefault(id(frame.f_code), frame.f_code)

        threading.settrace(called)
        sys.settrace(called)
        begun = time.monotonic()
        yield
        sys.settrace(None)
        above = f"{item.config.rootpath}/"
        functions = {
            f"{code.co_filename.removeprefix(above)}:{code.co_qualname.partition('.<locals>')[0]}"
            for code in met.values()
            if code.co_filename.startswith(f"{above}verifier/")
        }
        self.noted[item.nodeid] = (time.monotonic() - begun, sorted(functions))


@dataclass(eq=False)
class InTurn:
    """A plugin of pytest that judges one fault after another once the tests are collected, each in a child.

    Attributes:
        told: where a line is written for each: what `Judge.noticed` says.
    """

    judge: Judge
    faults: Sequence[Fault]
    told: TextIO

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge them."""
        items = {item.nodeid: item for item in session.items}
        for fault in self.faults:

            def run(most_s: Mapping[str, float], fault: Fault = fault) -> tuple[int, Chosen]:
                module, chosen = self.judge.place / fault.module, Chosen(most_s)
                put_in(module, module.read_text())
                session.config.pluginmanager.register(chosen)
                for test, after in pairwise([*(items[test] for test in most_s if test in items), None]):
                    if test is not None and not chosen.failed:
                        test.ihook.pytest_runtest_protocol(item=test, nextitem=after)
                return len(chosen.failed), chosen

            print(json.dumps(self.judge.noticed(fault, run)), file=self.told, flush=True)
        return True


@dataclass
class Judge:
    """Tests that judge faults in a copy of the project.

    Attributes:
        place: the copy.
        most_s: seconds that the tests of a fault may have taken without it, all together.
        noted: the tests.
        last: module -> the test that noticed the last fault of it.
        passing: the tests that noticed a fault and pass without.
    """

    place: Path
    most_s: float = math.inf
    noted: Noted = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    _written: int = field(default_factory=lambda: int(time.time()))

    def note(self, tests: Sequence[str], kept: Path | None) -> None:
        """Run the tests of a part without a fault; what is noted of a file may be kept in a folder.

        A test that fails then, as some do on a busy machine, judges no fault, and is printed.

        Raises:
            ValueError: tests cannot even be collected.
        """
        paths = sorted(path for test in tests for path in [ROOT / test, *(ROOT / test).rglob("test_*.py")])
        for path in paths:
            if path.suffix != ".py":
                continue
            name = path.relative_to(ROOT).as_posix()
            told = kept and kept / f"{name.replace('/', '.')}.json"
            text = path.read_text()
            if told and told.exists() and (known := json.loads(told.read_text()))["text"] == text:
                self.noted |= known["noted"]
                continue
            how, noted = self._run([name], self.collected)
            if how and not noted:
                raise ValueError(f"the tests fail without a fault: {how}")
            self.noted |= noted
            if told:
                told.write_text(json.dumps({"text": text, "noted": noted}))

    def each_noticed(self, faults: Sequence[Fault]) -> Iterator[tuple[Fault, str | None]]:
        """What `noticed` says of some faults of one module."""
        source = (self.place / faults[0].module).read_text()
        whole = around(source)
        within = [fault for fault in faults if around(fault.applied(source)) == whole]
        paths = sorted({test.partition("::")[0] for fault in within for test in self.tests_of(fault, source)})
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with Path(os.devnull).open("w") as nowhere, os.fdopen(write, "w") as told:
                self._begin(nowhere)
                pytest.main(["-q", "-p", "no:cacheprovider", *paths], plugins=[InTurn(self, within, told)])
                os._exit(0)
        os.close(write)
        judged = set()
        with os.fdopen(read) as told:
            for fault, line in zip(within, told, strict=False):
                judged.add(fault)
                yield fault, json.loads(line)
        os.waitpid(child, 0)
        self._written += 2 * len(within)
        for fault in faults:
            if fault not in judged:
                yield fault, self.noticed(fault)

    def noticed(self, fault: Fault, run: Run | None = None) -> str | None:
        """The test that noticed a fault, or how else it was; None if it was not."""
        module = self.place / fault.module
        source = module.read_text()
        tests = self.tests_of(fault, source)
        self._write(module, fault.applied(source))
        try:
            how = None
            for some in (tests[:AT_FIRST], tests[AT_FIRST:]) if run is None else (tests,):
                if some and not how:
                    how, _ = self._run({test: 20 + 10 * self.noted[test][0] for test in some}, run or self.collected)
        finally:
            self._write(module, source)
        if how in self.noted:
            if how not in self.passing and self._run({how: 20 + 10 * self.noted[how][0]}, run or self.collected)[0]:
                del self.noted[how]  # it fails without a fault, too
                return self.noticed(fault, run)
            self.passing.add(how)
            self.last[fault.module] = how
        return how

    def tests_of(self, fault: Fault, source: str) -> list[str]:
        """The tests that judge a fault, in their order."""
        function = f"{fault.module}:{function_at(source, fault.line)}"
        own = {test: note for test, note in self.noted.items() if test.startswith(tuple(PARTS[fault.part]))}
        calling = {test for test, (_, called) in own.items() if function in called}
        near = {test for test, (_, called) in own.items() if any(name.startswith(fault.module) for name in called)}
        last = self.last.get(fault.module)
        tests = sorted(
            calling | near if calling else own,
            key=lambda test: (test != last, test not in calling, test not in near, own[test][0]),
        )
        spent = accumulate(own[test][0] for test in tests)
        return [
            test for number, (test, s) in enumerate(zip(tests, spent, strict=True)) if not number or s <= self.most_s
        ]

    def _write(self, module: Path, text: str) -> None:
        """Write a module with a time of its own, so that no bytecode of an earlier text is taken for its."""
        module.write_text(text)
        self._written += 1
        os.utime(module, (self._written, self._written))

    def _begin(self, shown: TextIO) -> None:
        """Leave the group of this process, and stand in the copy."""
        os.setsid()
        os.chdir(self.place)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what they put behind ignore it
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.RLIM_INFINITY))
        for stream in (1, 2):
            os.dup2(shown.fileno(), stream)
        os.environ["PYTHONPATH"] = str(self.place)
        if sys.path[0] != str(self.place):
            sys.path.insert(0, str(self.place))

    def collected(self, tests: Mapping[str, float] | Sequence[str]) -> tuple[int, Chosen]:
        """Run tests that are collected for it: those with limits up to the first that fails, or all of some files."""
        chosen = Chosen(tests if isinstance(tests, Mapping) else None)
        paths, stop = dict.fromkeys(test.partition("::")[0] for test in tests), ["-x"] * isinstance(tests, Mapping)
        code = pytest.main(["-q", *stop, "-p", "no:cacheprovider", *paths], plugins=[chosen])
        return int(code), chosen

    def _run(self, tests: Mapping[str, float] | Sequence[str], run: Run) -> tuple[str | None, Noted]:
        """The test that failed, or how else the tests did, or None; and what was noted if they have no limits.

        They run in a child of this process, which has read the libraries already, but nothing of the project.
        """
        with tempfile.TemporaryFile("w+") as shown, tempfile.TemporaryFile("w+") as told:
            child = os.fork()
            if child == 0:
                self._begin(shown)
                code, chosen = run(tests)
                json.dump([chosen.failed, chosen.noted], told)
                for file in (told, sys.stdout):
                    file.flush()
                os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            for file in (told, shown):
                file.seek(0)
            failed, noted = json.loads(told.read() or '[["out of time"], {}]')
            lines = shown.read().splitlines()
        for test in failed if not isinstance(tests, Mapping) else ():
            print(f"left out, as it fails without a fault: {test}", flush=True)
            noted.pop(test, None)
        if code == pytest.ExitCode.INTERNAL_ERROR and not failed:
            raise RuntimeError("\n".join(lines))
        if code == 0:
            return None, noted
        return failed[0] if failed else f"exit code {code}: {' '.join(lines[-3:])}", noted


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A copy of the project, for faults to be put into, with what tests read beside it."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        place = Path(folder) / "project"
        place.mkdir()
        if REFERENCES.is_dir():
            (place.parent / REFERENCES.name).symlink_to(REFERENCES)
        for name in ("verifier", "tests", "specs", "models", "examples"):
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy(path, place)
        yield place


def table(found: Mapping[str, Counter[bool]]) -> str:
    """A row for each module: judged, noticed, and the share."""
    rows = [f"{'module':60} {'judged':>6} {'noticed':>7}"]
    for name, counts in [*sorted(found.items()), ("all", sum(found.values(), Counter()))]:
        rows.append(f"{name:60} {counts.total():6} {counts[True]:7} {counts[True] / max(counts.total(), 1):7.1%}")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Judge faults, and print each that was not noticed; exit code 1 if there are any, 2 if the tests fail anyway."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PART|MODULE[:LINE[-LINE]]", help="every part by default")
    parser.add_argument("--sample", type=int, help="so many faults of each name in place of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="folder for what is noted of the tests, to run them once only")
    parser.add_argument(
        "--most", type=float, default=math.inf, help="seconds of tests that judge a fault, without it"
    )
    asked = parser.parse_args(arguments)
    if asked.kept is not None:
        asked.kept.mkdir(parents=True, exist_ok=True)
    settings.register_profile("judged", phases=[Phase.explicit, Phase.generate])  # what failed need not be made small
    settings.load_profile("judged")  # which the profiles of the suite begin with
    faults: list[Fault] = []
    for name in asked.names or PARTS:
        of_name = named_faults(name)
        at_most = len(of_name) if asked.sample is None else min(asked.sample, len(of_name))
        faults += sorted(random.Random(asked.seed).sample(of_name, at_most), key=of_name.index)
    found: dict[str, Counter[bool]] = {}
    with copied() as place:
        judge = Judge(place, asked.most)
        try:
            judge.note(sorted({test for fault in faults for test in PARTS[fault.part]}), asked.kept)
        except ValueError as error:
            print(error)
            return 2
        by_module = groupby(faults, key=lambda fault: fault.module)
        for fault, how in chain.from_iterable(judge.each_noticed(list(some)) for _, some in by_module):
            found.setdefault(fault.module, Counter())[how is not None] += 1
            print(f"NOT NOTICED {fault}" if how is None else f"noticed {fault} ({how})", flush=True)
    print(table(found))
    return int(any(counts[False] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())
