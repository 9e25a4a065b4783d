"""Small documents of `verify run` and of confusion matrices, valid and made by hand."""

import copy

import made_runs
from matrix_documents import document_of

SPEC, MODEL, MATRICES = "1" * 64, "2" * 64, "3" * 64

SETTINGS = made_runs.SETTINGS | {"environments": ["ped", "obs"]}


def document(content, name="run.json"):
    """A validated document; its hash is that of its bytes."""
    return made_runs.document_of(content, name)


def point(probability, verdict, bounds=None, environment="ped", initial=None, interval=None, **more):
    """One scenario; `bounds` and `interval` are pairs, the interval the confidence bounds if not given."""
    if bounds is not None:
        more["uncertainty"] = made_runs.uncertainty(*(interval or bounds), *bounds)
    return made_runs.point(verdict, probability, environment, **({"initial": initial} if initial else {}), **more)


def requirement(name, points, target=(">=", "9/10"), verdict=None, planner="p", worst=0, **more):
    """One requirement; its verdict is that of its worst point if not given."""
    made = made_runs.requirement(name, verdict or points[worst]["verdict"], points, target, planner, worst, **more)
    return made | {"formula": "G safe"}


def run(
    requirements,
    remarks=(),
    inputs=(SPEC, MODEL, MATRICES),
    name="run.json",
    title="made by hand",
    channel=None,
    **settings,
):
    """The document of a run; settings replace those of `SETTINGS`, `channel` that of a chain that draws nothing."""
    files = zip(("spec", "model", "confusion"), ("a.ltl", "a.toml", "a.json"), inputs, strict=True)
    content = made_runs.run_content(
        list(requirements),
        requirements[0]["verdict"],
        title,
        inputs=[{"role": role, "name": file, "sha256": sha256} for role, file, sha256 in files],
        settings=copy.deepcopy(SETTINGS) | settings,
        remarks=list(remarks),
        **({} if channel is None else {"channel": channel}),
    )
    return document(content, name)


def satisfied_run(**more):
    """One requirement, P >= 0.9, met in two scenarios."""
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.97, "satisfied", (0.93, 0.99), environment="obs"),
    ]
    return run([requirement("stops", points)], **more)


def matrices(counts=((20, 5), (1, 74)), sequences=None, name="a.json", **more):
    """Confusion matrices of one bin over the labels ped and empty."""
    content = document_of([list(row) for row in counts], edges=(0, None), **more)
    if sequences is not None:
        content["sequences"] = sequences
    return document(content, name)


def made_with(matrices_document, make=satisfied_run, **more):
    """A run of these matrices."""
    return make(inputs=(SPEC, MODEL, matrices_document.sha256), **more)


def channel(p_value):
    """The test of the channel of a chain that draws ped; None for a class that was not tested."""
    if p_value is None:
        return {"test": "untested", "classes": [{"label": "ped", "test": "untested"}]}
    said = "contradicted" if p_value < 0.01 else "not_contradicted"
    counted = tried(p_value)["classes"][0]
    names = ("p_value", "after_miss", "joint_misses", "miss_after_miss", "expected_miss_after_miss")
    return {"test": said, "classes": [{"label": "ped", "test": said, **{name: counted[name] for name in names}}]}


def tried(p_value):
    """The block `dependence` of matrices whose test has this p-value."""
    return {
        "seed": 0,
        "classes": [
            {
                "label": "ped", "objects": 90, "misses": 30, "pairs": 80, "after_miss": 25, "joint_misses": 20,
                "expected_joint_misses": 8.5, "miss_after_miss": 0.8, "expected_miss_after_miss": 0.34,
                "mean_run": 3.0, "expected_mean_run": 30 / 21.5, "p_value": p_value, "permutations": 9999,
            }
        ],
    }  # fmt: skip
