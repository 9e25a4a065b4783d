"""Tests of the suite that are more than a command and its numbers: made-up data, faults, anomalous conditions."""

import csv
import errno
import itertools
import json
import math
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np

from verifier.analysis.intervals import drive_items
from verifier.base import statistics
from verifier.base.libraries import library
from verifier.evidence.identity import installed_differences
from verifier.evidence.qualification.suite import (
    FAULTS,
    RUN,
    Bench,
    DepartureError,
    NotRunError,
    altered_files,
    forged_result,
    mutated_certificates,
    same,
    signed_bundle,
)

Check: TypeAlias = Callable[[Bench], None]


def random_systems(bench: Bench) -> None:
    """P of stopping within n looks, each at another distance: over all paths, in fractions."""
    rng = random.Random(1)
    for _ in range(12):
        looks = rng.randint(1, 6)
        rates = [Fraction(rng.randint(1, 99), 100) for _ in range(looks)]
        expected = sum(
            (math.prod(rate if seen else 1 - rate for rate, seen in zip(rates, path, strict=True)) for path in
             itertools.product((True, False), repeat=looks) if any(path)), Fraction(0),
        )  # fmt: skip
        _write_looks(rates)
        point = bench.document(0, "run", "looks.ltl", "--cm", "looks.json", *RUN)["requirements"][0]["points"][0]
        if not Fraction(point["lower"]) <= expected <= Fraction(point["upper"]):
            raise DepartureError(f"P in [{point['lower']}, {point['upper']}], by enumeration {float(expected)}")
        same(abs(Fraction(point["probability"]) - expected) < Fraction(1, 10**13), True, f"P is {float(expected)}")


def _write_looks(rates: Sequence[Fraction]) -> None:
    """A car that looks once in each of so many bins, and stops for good as soon as it sees somebody."""
    count = len(rates)
    Path("looks.toml").write_text(
        f'initial = "x = 0 & s = 0"\nterminal = "x = {count} | s = 1"\n[variables]\n'
        f'x = {{ range = [0, {count}], next = "min(x + go, {count})" }}\ns = {{ range = [0, 1], next = "1 - go" }}\n'
        '[inputs]\ngo = { range = [0, 1] }\n[environments]\n'
        f'ped = [{{ class = "ped", distance_m = "{count} - x - 1/2" }}]\n[planners.careful]\n'
        'rules = [{ when = "sees(ped)", set = { go = 0 } }, { when = "true", set = { go = 1 } }]\n',
    )  # fmt: skip
    Path("looks.ltl").write_text('model "looks.toml"\nplanner careful\nstops: P = ? [ F s = 1 ]\n')
    seen = [int(rate * 100) for rate in reversed(rates)]
    bins = [{"distance_m": [k, k + 1], "counts": [[hits, 0], [100 - hits, 100]]} for k, hits in enumerate(seen)]
    head = {"schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"]}
    Path("looks.json").write_text(json.dumps({**head, "labels": ["ped", "empty"], "bins": bins}))


def temporal_operators(bench: Bench) -> None:
    """What formulas say of words of three letters, the last of which goes on for ever."""
    words = [(a, b) for a in range(8) for b in range(8)]
    formulas: dict[str, Callable[[Sequence[bool], Sequence[bool], int], bool]] = {
        "X a": lambda a, b, i: a[min(i + 1, 2)],
        "F a": lambda a, b, i: any(a[i:]),
        "G a": lambda a, b, i: all(a[i:]),
        "a U b": lambda a, b, i: any(b[k] and all(a[i:k]) for k in range(i, 3)),
        "a W b": lambda a, b, i: all(a[i:]) or any(b[k] and all(a[i:k]) for k in range(i, 3)),
        "a R b": lambda a, b, i: all(b[i:]) or any(a[k] and all(b[i : k + 1]) for k in range(i, 3)),
        "F<=1 (a & !b)": lambda a, b, i: any(a[k] and not b[k] for k in {i, min(i + 1, 2)}),
    }
    at = {
        name: " | ".join(
            f"(x = {k} & floor({name}m / {2**k}) - 2 * floor({name}m / {2 ** (k + 1)}) = 1)" for k in range(3)
        )
        for name in "ab"
    }
    Path("words.toml").write_text(
        'initial = "x = 0"\n[constants]\nam = 0\nbm = 0\n'
        '[variables]\nx = { range = [0, 2], next = "min(x + 1, 2)" }\n'
        f'[labels]\na = "{at["a"]}"\nb = "{at["b"]}"\n[environments]\n'
        'empty = [{ class = "empty", distance_m = 5 }]\n[planners.none]\nrules = [{}]\n'
    )
    lines = [f"r{k}: P = ? [ {text} ]" for k, text in enumerate(formulas)]
    Path("words.ltl").write_text("\n".join(['model "words.toml"', "planner none", *lines, ""]))
    bench.write("two_looks")
    sweeps = ("--sweep", "am=0..7", "--sweep", "bm=0..7")
    requirements = bench.document(0, "run", "words.ltl", "--cm", "seen.json", *RUN, *sweeps)["requirements"]
    for requirement, (text, meaning) in zip(requirements, formulas.items(), strict=True):
        told = {
            (int(p["constants"]["am"]), int(p["constants"]["bm"])): p["probability"] for p in requirement["points"]
        }
        same(sorted(told), words, f"words asked about in {text}")
        for pair in words:
            a, b = ([bool(mask >> k & 1) for k in range(3)] for mask in pair)
            same(told[pair], float(meaning(a, b, 0)), f"{text} with a = {a}, b = {b}")


def binomial_coverage(bench: Bench) -> None:
    """The probability that an end misses the rate, summed over all outcomes."""
    for items, tail in itertools.product((1, 2, 5, 20, 60), (0.025, 0.0005)):
        outcomes = np.arange(items + 1)
        ends = statistics.binomial_lower_end(outcomes, np.full(items + 1, items), tail)
        for rate in (Fraction(k, 40) for k in range(1, 40)):
            law = [math.comb(items, x) * rate**x * (1 - rate) ** (items - x) for x in range(items + 1)]
            missed = sum(part for part, end in zip(law, ends.tolist(), strict=True) if end > rate)
            if missed > Fraction(tail) * (1 + Fraction(1, 10**9)):
                raise DepartureError(f"{items} items, rate {rate}: missed with {float(missed)}, allowed {tail}")


def drive_coverage(bench: Bench) -> None:
    """Lower ends from drives of 1 to 10 items whose difficulty differs, and is worse where drives are long."""
    rng, tail, missed, sets = np.random.default_rng(3), Fraction(1, 20), 0, 400
    rate = sum(n * 4 / (4.2 + n / 10) for n in range(1, 11)) / 55  # E[X] / E[N] of those drives
    for _ in range(sets):
        items = rng.integers(1, 11, 25)
        hits = rng.binomial(items, rng.beta(4.0, 0.2 + items / 10))
        ends = drive_items.lower_ends(hits[:, None], items[:, None], np.array([10]), tail)
        missed += int(ends[0]) / drive_items.UNIT > rate
    if missed > 36:  # more than 36 of 400 have probability below 0.001 at 1/20
        raise DepartureError(f"the lower end exceeds the rate in {missed} of {sets} data sets; 20 are allowed")


def constructed_counts(bench: Bench) -> None:
    """Objects 20 m apart in their frames, each reported as designed."""
    rng, design = random.Random(7), Counter[tuple[int, str, str]]()
    there, seen = ["frame,class,x,y"], ["frame,class,score,x,y"]
    for frame, lane in itertools.product(range(200), range(3)):
        name, x = rng.choice(("obs", "ped")), round(rng.uniform(0.5, 29.5), 3)
        told = rng.choices((name, "empty", "obs" if name == "ped" else "ped"), (7, 2, 1))[0]
        y = 20 * lane - 20 + 0.0
        distance = math.hypot(x, y)
        design[min(int(distance // 10), 3), told, name] += 1
        there.append(f"{frame},{name},{x},{y}")
        if told != "empty":
            seen.append(f"{frame},{told},{round(rng.uniform(0.1, 1), 3)},{round(x + rng.uniform(-0.4, 0.4), 3)},{y}")
    Path("truth.csv").write_text("\n".join(there) + "\n")
    Path("found.csv").write_text("\n".join(seen) + "\n")
    Path("frames.csv").write_text("\n".join(["frame", *map(str, range(200)), ""]))
    matrices = _counted(bench, "--bins", "0,10,20,30,50")
    labels = matrices["labels"]
    for at, part in enumerate(matrices["bins"]):
        for (row, told), (column, name) in itertools.product(enumerate(labels), enumerate(("obs", "ped"))):
            same(part["counts"][row][column], design[at, told, name], f"bin {at}, {name} reported as {told}")


def _counted(bench: Bench, *words: str) -> Any:
    tables = "--format table --annotations truth.csv --detections found.csv --frames frames.csv"
    return bench.document(0, "confusion", *tables.split(), *words)


def merged_counts(bench: Bench) -> None:
    """Two sets of drives under different names, as one."""
    bench.write("drives")
    first = _counted(bench, "--bins", "0,10,20", "-o", "first.json")
    for name in ("truth.csv", "found.csv", "frames.csv"):
        text = Path(name).read_text()
        Path(name).write_text(text.replace("\na,", "\nc,").replace("\nb,", "\nd,"))
    _counted(bench, "--bins", "0,10,20", "-o", "second.json")
    both = bench.document(0, "confusion", "merge", "first.json", "second.json")
    twice = [[[2 * count for count in row] for row in entry["counts"]] for entry in first["bins"]]
    same([entry["counts"] for entry in both["bins"]], twice, "counts of both")
    same([entry["name"] for entry in both["sequences"]], ["a", "b", "c", "d"], "drives of both")


def driven_logs(bench: Bench) -> None:
    """Two drives towards a person at 33 m, two that are free: by hand, who sees always is safe in both, who sees
    in one of them in one, and none is slowed down."""
    drives = {"person 1": 30, "person 2": 30, "free 1": 41, "free 2": 41}
    images = [(log, x, x, x, 0) for log, length in drives.items() for x in range(length)]
    people = [(log, x, 33, 0) for log in ("person 1", "person 2") for x in range(30)]
    head = ("log", "image", "strength", "x_m", "y_m")
    logs = [(name, int("person" in name)) for name in drives]
    Path("logs/detections").mkdir(parents=True)
    Path("validation/detections").mkdir(parents=True)
    _table("logs/logs.csv", ("log", "positive"), logs)
    _table("logs/images.csv", ("log", "image", "time_s", "x_m", "y_m"), images)
    _table("logs/people.csv", ("log", "image", "x_m", "y_m"), people)
    _table("logs/detections/both.csv", head, [(log, x, 0.9, 33, 0) for log, x, *_ in people])
    _table("logs/detections/one.csv", head, [(log, x, 0.9, 33, 0) for log, x, *_ in people if log == "person 1"])
    _table("validation/logs.csv", ("log", "positive"), [("v", 0)])
    _table("validation/images.csv", ("log", "image", "time_s", "x_m", "y_m"), [("v", x, x, x, 0) for x in range(10)])
    _table("validation/people.csv", ("log", "image", "x_m", "y_m"), [])
    for name in ("both", "one"):
        _table(f"validation/detections/{name}.csv", head, [("v", 0, 0.5, 0, 9)])
    words = ("--validation", "validation", "--control-radius", "2", "--match-distance", "1", "--safety-radius", "1.5")
    result = bench.document(0, "closed-loop", "logs", *words, "--engine", "events", "--levels", "9", "--draws", "50")
    (table,) = (entry for entry in result["metrics"] if entry["metric"] == "closed_loop")
    areas = {cell["detector"]: cell["area"] for cell in table["rows"][0]["cells"]}
    same(areas, {"both": 1.0, "one": 0.5}, "areas under safety and efficiency")


def _table(path: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def hazy_image(bench: Bench) -> None:
    """I = J t + 255 (1 - t) with t = exp(-3.912 d / V): grey 100 at 25 m in a visibility of 100 m."""
    image = library("PIL.Image")
    for folder in ("images", "depth"):
        Path(folder).mkdir()
    image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save("images/0.png")
    image.fromarray(np.full((8, 8), 25 * 256, np.uint16)).save("depth/0.png")
    haze = "haze:visibility_m=100,red=255,green=255,blue=255"
    bench.expect(0, "mutate", "images", "--mutation", haze, "--depth", "depth", "-o", "out")
    (path,) = Path("out").rglob("0.png")
    kept = math.exp(-3.912 * 25 / 100)
    expected = round(100 * kept + 255 * (1 - kept))
    same(set(np.asarray(image.open(path)).ravel().tolist()), {expected}, "grey levels")


def refused_studies(bench: Bench) -> None:
    """Files that are none end with exit code 4 and one complaint."""
    Path("junk.toml").write_text("[x]\ny = [1, 2\n")
    Path("junk.csv").write_text("a,b\n1\n")
    begun = ("campaign", "init", "--onnx", "junk.toml", "--images", ".", "--annotations", "junk.csv", "-o", "c.toml")
    for words in (("campaign", "junk.toml", "-o", "out"), begun, ("assess", "junk.toml"), ("predict", "junk.csv")):
        ran = bench.expect(4, *words)
        same("internal error" in ran.err, False, f"an internal error in verify {words[0]}")


def every_schema(bench: Bench) -> None:
    """Each name that `verify schema` lists has one, and another than the rest."""
    names = bench.expect(0, "schema").out.split()
    schemas = {bench.expect(0, "schema", name).out for name in names}
    same((len(names) > 20, len(schemas)), (True, len(names)), "kinds of documents, and schemas that differ")
    same(all("$schema" in json.loads(name) for name in schemas), True, "schemas are JSON Schema")


def full_disk(bench: Bench) -> None:
    """No space where the result is written."""
    bench.write("two_looks")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with mock.patch("verifier.base.files.os.fsync", full):
        ran = bench.run("run", "two_looks.ltl", "--cm", "seen.json", *RUN, "-o", "run.json")
    same(ran.code in (4, 5), True, f"exit code {ran.code} is that of a fault")
    same(sorted(path.name for path in Path().iterdir() if "run" in path.name), [], "files that are left")


def interrupted(bench: Bench) -> None:
    """Ctrl-C while a system of 650,000 states is built."""
    if threading.current_thread() is not threading.main_thread():
        raise NotRunError("signals reach the main thread only")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise NotRunError("a program in the background of a shell ignores Ctrl-C")
    bench.expect(0, "init", "acc")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        bench.expect(130, "run", "acc.ltl", "--cm", "acc.json", *RUN, "-o", "run.json")
    finally:
        timer.cancel()
    same(Path("run.json").exists(), False, "a result of an interrupted run")


def seeded_faults(bench: Bench) -> None:
    """Each fault is put in, and the tests that should find it are run; the share that is found must be all."""
    tests = {table["id"]: table for table in bench.tables["test"]}
    unnoticed = []
    for fault in FAULTS:
        with fault.put_in():
            states = {name: bench.record(tests[name]).state for name in fault.found_by}
        if set(states.values()) != {"failed"}:
            unnoticed.append(f"{fault.about} ({states})")
    if unnoticed:
        raise DepartureError(f"{len(unnoticed)} of {len(FAULTS)} faults not found: {'; '.join(unnoticed)}")


def problems_of_results(bench: Bench) -> None:
    """Bounds for independent items are a known limitation of a run; intervals of collisions are none of it."""
    bench.write("two_looks")
    bench.expect(3, "run", "two_looks.ltl", "--cm", "seen.json", *RUN, "-o", "run.json")
    document = bench.document(3, "known-problems", "run.json")
    names = [entry["id"] for entry in document["problems"]]
    same(("KP-8" in names, "KP-6" in names), (True, False), "KP-8 of bounds by items, KP-6 of collisions")


def installed_files(bench: Bench) -> None:
    """Every file of the package is what the installer recorded."""
    differing = installed_differences()
    if differing is None:
        raise NotRunError("the program runs from a source folder, of which no installer recorded the files")
    same(differing, (), "installed files that are not as recorded")


CHECKS: Mapping[str, Check] = {
    bench.__name__: bench
    for bench in (
        random_systems, temporal_operators, binomial_coverage, drive_coverage, mutated_certificates, altered_files,
        forged_result, signed_bundle, constructed_counts, merged_counts, driven_logs, hazy_image, refused_studies,
        every_schema,
        full_disk, interrupted, seeded_faults, problems_of_results, installed_files,
    )
}  # fmt: skip
"""Name in the suite -> the test."""
