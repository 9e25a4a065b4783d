"""Whether limits of time and memory are kept: `pytest tests/benchmarks/test_limits.py --benchmark -s` prints both."""

import time
from pathlib import Path

import pytest
from looping_systems import FORMULAS, write_system
from outside import verify_command, watched

from verifier.checking.batch import check
from verifier.language.ltl import parse_formula

TIMEOUT_S, LIMIT_GIB = 5, 0.5


def measured(folder: Path, *arguments):
    return watched(verify_command("run", *arguments), folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Seconds and bytes of the program and its libraries: a question that takes no work."""
    folder = tmp_path_factory.mktemp("base")
    spec, matrices = write_system(folder, "F hit & G x < 15")
    runs = [measured(folder, spec, "--cm", matrices) for _ in range(3)]
    return min(run.seconds for run in runs), min(run.peak_bytes for run in runs)


@pytest.mark.benchmark
@pytest.mark.parametrize("mode", [["--point-only"], []], ids=["point", "confidence"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_answered_or_refused_within_both_limits(tmp_path, base, name, mode):
    system, formula = FORMULAS[name]
    spec, matrices = write_system(tmp_path, formula, system)
    found = measured(tmp_path, spec, "--cm", matrices, "--timeout", TIMEOUT_S, "--max-memory", LIMIT_GIB, *mode)
    seconds, gib = found.seconds - base[0], (found.peak_bytes - base[1]) / 2**30
    print(
        f"\n{name} {' '.join(mode)}: exit code {found.code}, {seconds:.1f} s of {TIMEOUT_S}, "
        f"{gib:.2f} GiB of {LIMIT_GIB}"
    )
    assert found.code in (0, 1, 3, 6), found.err
    assert seconds <= 1.2 * TIMEOUT_S
    assert gib <= 1.2 * LIMIT_GIB


@pytest.mark.benchmark
def test_parity_of_recurrences_takes_no_longer_than_their_number(tmp_path):
    """Equal parts were built again and again: 18 parts took 100 s, 40 would have taken years."""
    from small_chains import chain_of

    chain = chain_of([{x: 0.8, (x + 1) % 40: 0.2} for x in range(40)], {f"x{k}": {k} for k in range(40)})
    begun = time.monotonic()
    check(chain, parse_formula(" xor ".join(f"(G F x{k})" for k in range(40))))
    print(f"\nparity of 40 recurrences: {time.monotonic() - begun:.1f} s")
    assert time.monotonic() - begun < 10
