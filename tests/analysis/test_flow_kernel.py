"""Certificates of bounds whatever the dependence: what the kernel accepts, and that changed ones are refused."""

import copy
import json
import math
import random
import subprocess
import sys
import zipfile
from fractions import Fraction

import pytest
from context_cases import latch
from scipy.optimize import linprog

from verifier.analysis import step_kernel
from verifier.checking.process import StormProcess
from verifier.evidence.bundle.archive import zip_bytes
from verifier.evidence.bundle.layout import free_certificate_file
from verifier.pipeline import checked_study, result_of
from verifier.study.case import Study
from verifier.study.free import checked_ends, free_certificates
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions

SPEC = 'model "m.toml"\nsome: P >= 0.75 [ F seen = 1 ]\nnever: P <= 0.9 [ F (t = 2 & seen = 1) ]\n'


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flows")
    (folder / "m.toml").write_text(latch(4, 5))
    (folder / "s.ltl").write_text(SPEC)
    document = {
        "schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"],
        "labels": ["ped", "empty"], "bins": [{"distance_m": [0, 10], "counts": [[80, 0], [20, 0]]}],
    }  # fmt: skip
    (folder / "c.json").write_text(json.dumps(document))
    result, proofs = proven(folder)
    (folder / "r.json").write_text(result.json_text())
    (folder / "p.zip").write_bytes(zip_bytes(proofs))
    return folder


def study_of(folder):
    options = RunOptions(dependence_free=True, confidence=None)
    return Study.of(read_inputs(folder / "s.ltl", folder / "c.json", options), options)


def proven(folder):
    """What a run with these bounds gives, and their certificates by path."""
    study = study_of(folder)
    with StormProcess() as storm:
        checked = checked_study(study, storm)
    return result_of(checked, study.options), free_certificates(checked.cases, free_certificate_file)


@pytest.fixture(scope="module")
def certificates(archive):
    with zipfile.ZipFile(archive / "p.zip") as files:
        return {name: json.loads(files.read(name)) for name in files.namelist()}


def test_every_end_of_the_result_is_proven(archive, certificates):
    requirements = json.loads((archive / "r.json").read_text())["requirements"]
    assert len(certificates) == 4
    for each in certificates.values():
        (found,) = (one for one in requirements if one["name"] == each["about"]["requirement"])
        end = found["points"][0]["dependence_free"][each["side"]]
        assert step_kernel.check_free(each) == Fraction(each["claimed"])
        assert float(Fraction(each["claimed"])) == pytest.approx(end, abs=1e-15)
    some = {each["side"]: Fraction(each["claimed"]) for each in certificates.values() if "some" in str(each["about"])}
    # Of a latch the least is the rate of one look, as a miss may persist; the greatest 1.
    assert some["lower"] <= Fraction(4, 5) <= some["lower"] + Fraction(1, 10**6)
    assert some["upper"] == 1


def test_bounds_and_their_proofs_are_of_one_solution(archive, monkeypatch):
    """Four ends are solved for, once each, and what is proven is what the result says."""
    solved = []

    def counted(*arguments, **more):
        solved.append(1)
        return linprog(*arguments, **more)

    monkeypatch.setattr("verifier.analysis.dependence_free.linprog", counted)
    _, proofs = proven(archive)
    assert len(solved) == 4
    assert zip_bytes(proofs) == (archive / "p.zip").read_bytes()


def test_the_kernel_needs_nothing_but_itself(archive):
    found = subprocess.run(
        [sys.executable, "-I", step_kernel.__file__, str(archive / "p.zip")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "4 of 4 certificates proven" in found.stdout


def rejected(certificate):
    try:
        step_kernel.check_free(certificate)
    except step_kernel.Rejected:
        return True
    return False


def test_more_than_is_proven_is_refused(certificates):
    for each in certificates.values():
        step = Fraction(1, 10**6) * (1 if each["side"] == "lower" else -1)
        assert rejected({**each, "claimed": str(Fraction(each["claimed"]) + step)})


CHANGES = [
    ("no multipliers", lambda c: c.pop("multipliers")),
    ("a multiplier less", lambda c: c["multipliers"]["nodes"].pop()),
    ("a text", lambda c: c["multipliers"]["nodes"].__setitem__(0, "1")),
    ("a truth value", lambda c: c["multipliers"]["nodes"].__setitem__(0, True)),
    ("a limit that pays", lambda c: c["multipliers"]["limits"].__setitem__(0, 1)),
    ("two first nodes", lambda c: c["program"]["step"].__setitem__(-1, 0)),
    ("a step back", lambda c: c["program"]["after"][0].__setitem__(0, 0)),
    ("a node that is not there", lambda c: c["program"]["after"][0].__setitem__(0, 10**6)),
    ("more than comes", lambda c: c["program"]["often"][0].__setitem__(0, 2 * c["program"]["total"])),
    ("less than nothing", lambda c: c["program"]["often"][0].__setitem__(0, -1)),
    ("a cost above 1", lambda c: c["program"]["cost"].__setitem__(0, c["program"]["total"] + 1)),
    ("ends out of order", lambda c: c["program"]["lower"].__setitem__(0, "2")),
    ("no number", lambda c: c["program"]["lower"].__setitem__(0, "nan")),
    ("a power of ten", lambda c: c["program"]["upper"].__setitem__(0, "1e9")),  # of 1e1000000000 it takes forever
    ("an infinite claim", lambda c: c.update(claimed=math.inf)),
    ("a claim beyond all doubles", lambda c: c.update(claimed=("-" if c["side"] == "upper" else "") + "9" * 400)),
    ("an end less", lambda c: c["program"]["upper"].pop()),
    ("a limit that is not there", lambda c: c["program"]["limits"][0].__setitem__(0, 10**6)),
    ("another side", lambda c: c.update(side="both")),
    ("a list", lambda c: c.update(program=[])),
]


@pytest.mark.parametrize(("what", "change"), CHANGES, ids=[what for what, _ in CHANGES])
def test_changed_certificates_are_refused(what, change, certificates):
    for each in certificates.values():
        changed = copy.deepcopy(each)
        change(changed)
        assert rejected(changed), each["about"]


def test_random_multipliers_never_prove_more(certificates):
    """Whatever the multipliers, the bound is one: of 400 changes none proves more than the optimum, .8 and 1."""
    rng = random.Random(3)
    known = {
        ("some", "lower"): Fraction(4, 5),
        ("some", "upper"): 0,
        ("never", "lower"): None,
        ("never", "upper"): None,
    }
    for each in certificates.values():
        best = known[each["about"]["requirement"], each["side"]]
        for _ in range(100):
            changed = copy.deepcopy(each["multipliers"])
            for part in changed.values():
                for at in range(len(part)):
                    part[at] += rng.choice([0, 0, 1, -1, 10**6, -(10**8), rng.randint(-(10**10), 10**10)])
            changed["limits"] = [min(number, 0) for number in changed["limits"]]
            if best is not None:
                assert step_kernel.proven_cost(each["program"], changed) <= best


# --- About the system: the programs are built again from spec, model and matrices.


def wrong(archive, files):
    """What is wrong with certificates about the system, by path."""
    raw = {path: (json.dumps(each) + "\n").encode() for path, each in files.items()}
    ends = checked_ends(study_of(archive), raw, free_certificate_file)
    return {path: message for end in ends for path, message in end.wrong}


def test_certificates_are_decided_about_the_inputs(archive, certificates):
    assert wrong(archive, certificates) == {}


RELAXED = [
    ("a limit that is left out", lambda c: c["program"]["limits"].__setitem__(0, [-1])),
    ("a wider rate", lambda c: c["program"]["lower"].__setitem__(0, "0")),
    (
        "a cost that is not there",
        lambda c: c["program"]["cost"].__setitem__(-1, c["program"]["total"] - c["program"]["cost"][-1]),
    ),
    (
        "another requirement",
        lambda c: c["about"].update(requirement="never" if "some" in str(c["about"]) else "some"),
    ),
    ("another claim", lambda c: c.update(claimed="1/3" if c["side"] == "upper" else "9999/10000")),
]


@pytest.mark.parametrize(("what", "change"), RELAXED, ids=[what for what, _ in RELAXED])
def test_certificates_about_another_system_are_refused(what, change, archive, certificates):
    """Programs that the kernel alone may accept: they are not those of spec, model and matrices."""
    for path in certificates:
        changed = copy.deepcopy(certificates)
        change(changed[path])
        assert list(wrong(archive, changed)) == [path]


def test_every_bound_needs_its_certificate(archive, certificates):
    path = sorted(certificates)[0]
    others = {name: each for name, each in certificates.items() if name != path}
    assert wrong(archive, others) == {path: "missing"}


def test_certificates_of_other_matrices_are_refused(archive, certificates):
    kept = (archive / "c.json").read_text()
    document = json.loads(kept)
    document["bins"][0]["counts"] = [[81, 0], [19, 0]]
    (archive / "c.json").write_text(json.dumps(document))
    told = wrong(archive, certificates)
    (archive / "c.json").write_text(kept)
    assert list(told.values()) == ["about another system than spec, model and matrices give"] * 4


# --- A program by hand: what its multipliers prove, in fractions.


def by_hand():
    """Of 4: r0 leads on surely, r1 in three of four runs, then r2 accepts and r3 rejects, which is 4/5 at most.

    Least are 3/4 + r0/4 - r3 = 13/16 - 4/5 = 1/80, at r0 = 1/4.
    """
    program = {
        "total": 4, "own": [0, 0, 1, 1, 2, 2], "step": [0, 0, 1, 1, 1, 1], "cost": [0, 0, 4, 0, 4, 0],
        "after": [[1, 2], [2, -1], [], [], [], []], "often": [[4, 0], [3, 1], [], [], [], []],
        "limits": [[0], [1], [2], [3], [2], [3]], "rate_of": [0, 1, 2, 3], "column_of": [0, 0, 1, 1],
        "lower": ["1/4", "1/2", "1/5", "0"], "upper": ["1/2", "3/4", "1", "4/5"],
    }  # fmt: skip
    billion = step_kernel.BILLION
    return program, {
        "nodes": [billion] * 3,
        "columns": [0, 0],
        "limits": [0, -billion // 4, 0, -billion],
    }


def multiplied(program, nodes, columns, limits):
    """A certificate of a program; multipliers as numbers, of which a billionth is the smallest part."""
    told = {"nodes": nodes, "columns": columns, "limits": limits}
    return program, {name: [int(step_kernel.BILLION * Fraction(one)) for one in own] for name, own in told.items()}


@pytest.mark.parametrize(
    ("nodes", "columns", "limits", "bound"),
    [
        ((1, 1, 1), (0, 0), (0, "-1/4", 0, -1), "1/80"),
        ((1, 2, 2), (0, 0), (0, "-1/4", 0, -1), "-79/80"),
        ((2, 1, 1), (0, 0), (0, "-1/4", 0, -1), "1/80"),
        # The rates of the first column at 1/4 each above its multiplier: 1 - 1/4 + 1/4 (1/4) + 0 (3/4) - 4/5.
        ((1, 1, 1), ("-1/4", 0), (0, "-1/4", 0, -1), "1/80"),
        # 9/8 - 1/8 + 0 (1/4) - 1/4 (3/4) - 4/5; flow 0 would gain 1/8 without its limit.
        (("9/8", 1, 1), ("-1/8", 0), ("-1/8", "-3/8", 0, -1), "1/80"),
    ],
)
def test_what_multipliers_prove_by_hand(nodes, columns, limits, bound):
    program, multipliers = multiplied(by_hand()[0], nodes, columns, limits)
    assert step_kernel.proven_cost(program, multipliers) == Fraction(bound)
    program["limits"] = [[own, -1] for [own] in program["limits"]]  # which stands for none
    assert step_kernel.proven_cost(program, multipliers) == Fraction(bound)


def test_a_program_without_rates_and_the_ends_that_are_claimed():
    program = {"total": 4, "own": [0, 0], "step": [0, 0], "cost": [3, 4], "after": [[], []], "often": [[], []]}
    program |= {"limits": [[], []], "rate_of": [], "column_of": [], "lower": [], "upper": []}
    accepted = [
        (side, claimed, y)
        for side in ("lower", "upper")
        for claimed in ("-1", "0", "1/4", "3/4", "1", "2")
        for y in ("3/4", 1, 3)  # which prove 3/4, 1 - 1/4, and 3 - 9/4
        if not rejected(certificate_of(program, side, claimed, y))
    ]
    assert accepted == [
        *(("lower", claimed, y) for claimed in ("-1", "0", "1/4", "3/4") for y in ("3/4", 1, 3)),
        *(("upper", claimed, y) for claimed in ("1/4", "3/4", "1", "2") for y in ("3/4", 1, 3)),
    ]
    # Multipliers that prove -1 - 2: nothing is known, so the ends are 0 and 1.
    paid = program | {"own": [0, 0, 1], "step": [0, 0, 1], "cost": [0, 0, 0], "limits": [[], [], []]}
    paid |= {"after": [[1], [1], []], "often": [[4], [4], []]}
    claims = ("-1/9", "0", "1/9", "8/9", "1", "10/9")
    for side, kept in (("lower", ["-1/9", "0"]), ("upper", ["1", "10/9"])):
        assert [claim for claim in claims if not rejected(certificate_of(paid, side, claim, -1, 1))] == kept


def certificate_of(program, side, claimed, *nodes):
    _, multipliers = multiplied(program, nodes, (), ())
    return {"side": side, "claimed": claimed, "program": program, "multipliers": multipliers}


@pytest.mark.parametrize(
    "change",
    [
        lambda p, m: m["columns"].append(10**12),  # it would be added up
        lambda p, m: p["often"].__setitem__(1, [5, -1]),
        lambda p, m: p.update(own=[1, 1, 0, 0, 2, 2], after=[[0, 2], [2, -1], [], [], [], []]),  # a late beginning
        lambda p, m: p.update(own=[0, 0, 1, 1, 3, 3]),
        lambda p, m: p.update(lower=["1/4", "1/2", "1/5"]),
        lambda p, m: p["limits"].__setitem__(0, [-2]),
        lambda p, m: m["nodes"].__setitem__(1, 2**2000),
        lambda p, m: m["nodes"].__setitem__(1, -(2**2000) - 1),
        lambda p, m: p.update(own=[]),
    ],
)
def test_what_would_prove_too_much_is_refused(change):
    program, multipliers = by_hand()
    change(program, multipliers)
    with pytest.raises((step_kernel.Rejected, LookupError)):
        step_kernel.proven_cost(program, multipliers)


def test_the_largest_multiplier_is_read():
    program, multipliers = by_hand()
    multipliers["nodes"][1] = 2**2000 - 1
    assert step_kernel.proven_cost(program, multipliers) < -(2**1900)


@pytest.mark.parametrize(("wrong", "code", "told"), [(0, 0, "3 of 3"), (1, 1, "2 of 3"), (3, 1, "0 of 3")])
def test_the_program_counts_what_it_rejects(wrong, code, told, tmp_path, capsys):
    program, multipliers = by_hand()
    (tmp_path / "certificates").mkdir()
    for number in range(3):
        claimed = "1/2" if number < wrong else "1/80"
        document = {"side": "lower", "claimed": claimed, "program": program, "multipliers": multipliers}
        (tmp_path / "certificates" / f"r_free_{number}.json").write_text(json.dumps(document))
    assert step_kernel.main([str(tmp_path)]) == code
    assert f"{told} certificates proven" in capsys.readouterr().out
