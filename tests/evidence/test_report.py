"""The report tells what the documents say, all of it, and nothing else."""

import csv
import io
import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from document_edits import summed
from html_reading import read_page, section, table
from made_runs import document_of, every_verdict, on_grid, point, requirement, run_content, uncertainty
from report_documents import EVERY_KIND, document, documents

from verifier.base.errors import InputError
from verifier.evidence.report import csv_report, html_report, markdown_report


@pytest.fixture(scope="module")
def page():
    return read_page(html_report(documents("run", "explain", "require", "by_class")))


def sentences(root, anchor="verdicts"):
    return [each.text for each in section(root, anchor).all("p", "li")]


def test_the_verdicts_come_first_with_numbers_bounds_and_targets(page):
    titles = [each.text for each in page.all("h2")]
    assert titles == ["Verdicts", "Requirements", "Matrices", "Assumptions and their status", "Provenance"]
    rows = table(page, "All requirements")
    assert rows[0][:4] == ["requirement", "verdict", "target", "P (worst)"]
    conditional = "violated, if items are independent; 2 of 3 scenarios vacuous"
    assert rows[0][5] == "95 % confidence bounds (if items are independent)"
    assert rows[2][:4] == ["stops_for_pedestrians", conditional, ">= 0.95", "0.196"]
    assert rows[2][5:] == ["[0.120, 0.292]", "ped x=1 v=1"]
    open_still = "inconclusive; 1 of 3 scenarios vacuous"
    assert [row[1] for row in rows[1:]] == [open_still, conditional, "satisfied", "no target"]


def test_targets_from_above_are_told_the_other_way_round():
    bad = point("violated", 0.5, uncertainty=uncertainty(0.4, 0.6, 0.3, 0.7))
    good = point("satisfied", 0.001, uncertainty=uncertainty(0.0005, 0.002, 0.0001, 0.004))
    low = ("<=", "1/100")
    content = run_content(
        [requirement("hits", "violated", [bad], low), requirement("misses", "satisfied", [good], low)], "violated"
    )
    told = sentences(read_page(html_report([document_of(content)])))
    assert told[2] == (
        "violated hits must have a probability of at most 0.01. With the rates as measured it is 0.5 in the scenario "
        "ped x=1; with 95 % confidence it is at least 0.3."
    )
    assert told[3].endswith("it is 0.001 in the scenario ped x=1; with 95 % confidence it is at most 0.004.")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "interval",
            "; by the 95 % credible interval, with what its draws leave open, it is at most 0.61, if items are "
            "independent.",
        ),
        ("point", "With the rates as measured it is 0.5 in the scenario ped x=1."),
    ],
)
def test_the_sentence_rests_on_what_was_held_against_the_target(kind, words):
    bad = point("violated", 0.5, uncertainty=uncertainty(0.4, 0.6, 0.3, 0.97))
    bad["uncertainty"]["interval"]["upper_range"] = [0.59, 0.61]
    condition = {"condition": "if items are independent" if kind == "interval" else None}
    content = run_content([requirement("holds", "violated", [bad | condition], **condition)], "violated", **condition)
    content["settings"]["verdict_from"] = kind
    assert sentences(read_page(html_report([document_of(content)])))[2].endswith(words)


def test_the_summary_says_how_to_read_it_and_what_is_taken_for_granted(page):
    """The rule of the verdicts, what the bounds are, which spec, and the assumptions that nothing has tested."""
    told = sentences(page)
    assert told[1].endswith("The spec: car_pedestrian.ltl. The model of the system: car_pedestrian.toml.")
    assert (
        "A requirement is satisfied where the confidence bounds lie wholly on the right side of its target in every "
        "scenario, violated where they lie wholly on the wrong side in any, and inconclusive otherwise. A condition "
        "behind a verdict belongs to it. Where the data contradict the memoryless detector, the verdict is "
        "inconclusive, unless it holds whatever the detector predicts or the assumption was accepted by name."
    ) in told
    assert (
        "P lies within the bounds for all rates that the data do not rule out: 95 % confidence bounds (if items are "
        "independent)."
    ) in told
    assert any(
        each.startswith("A scenario is vacuous where the check says nothing about the system") for each in told
    )
    (granted,) = [each for each in told if each.startswith("Assumed and not tested: ")]
    untested = [
        row[0] for row in table(page, "Assumptions of")[1:] if row[1] in ("not tested", "not shown by this evidence")
    ]
    assert len(untested) == 4
    for each in untested:
        assert each[1:] in granted


def test_a_verdict_from_p_alone_is_said_to_be_one():
    content = run_content([requirement("holds", "violated", [point("violated", 0.5)])], "violated")
    told = sentences(read_page(html_report([document_of(content)])))
    assert any("satisfied where P as measured, with its numerical bounds, lies wholly" in each for each in told)


def test_what_speaks_against_a_verdict_stands_before_the_table():
    """A contradicted assumption, rounded transitions, and a document that contradicts another one."""
    content = drawing(on_grid(every_verdict()), DEPENDENT)
    content["settings"]["round_transitions"] = 2
    other = json.loads(json.dumps(content))
    for name in ("probability", "lower", "upper", "second_engine"):
        other["requirements"][1]["points"][0][name] = 0.91
    verdicts = section(
        read_page(html_report([document_of(content, "a.json"), document_of(other, "b.json")])), "verdicts"
    )
    told = [each.text for each in verdicts.all("p", "caption")]
    told = told[: told.index("All requirements")]
    (contradiction,) = [each for each in told if each.startswith("Contradiction: ")]
    assert contradiction == (
        "Contradiction: of unsure in ped x=1, a.json tells P = 0.92 and b.json P = 0.91, from the same inputs and "
        "settings; one is wrong."
    )
    assert any(each.startswith("Contradicted: detection errors are independent between time") for each in told)
    assert any(each.startswith("Weakens the result: transition probabilities are rounded") for each in told)


def test_documents_that_agree_or_ask_something_else_do_not_contradict_each_other():
    content = on_grid(every_verdict())
    same = content | {"remarks": ["made again"]}
    else_where = json.loads(json.dumps(content))
    else_where["inputs"][2]["sha256"] = "f" * 64
    for name in ("probability", "lower", "upper", "second_engine"):
        else_where["requirements"][1]["points"][0][name] = 0.91
    found = [document_of(each, f"{k}.json") for k, each in enumerate((content, same, else_where))]
    assert "Contradiction" not in html_report([*found, *documents("run", "explain", "explain_fast", "sweep")])


def test_every_requirement_has_a_section_with_its_formula_and_every_scenario(page):
    for k, each in enumerate(document("run").content["requirements"], start=1):
        found = section(page, f"r{k}")
        condition = f", {each['condition']}" if each["condition"] else ""
        assert next(found.all("h3")).text == f"{each['name']} {each['verdict']}{condition}"
        assert each["formula"] in next(found.all("code")).text
        rows = table(found, "Scenarios")
        assert len(rows) == 1 + len(each["points"])
        conditions = [f", {point['condition']}" if point["condition"] else "" for point in each["points"]]
        verdicts = [point["verdict"] for point in each["points"]]
        assert [row[-1] for row in rows[1:]] == ["".join(pair) for pair in zip(verdicts, conditions, strict=True)]
        facts = dict(table(found, "Numbers of the worst scenario"))
        assert facts["Worst scenario"].startswith(each["points"][each["worst"]]["environment"])


def test_documents_of_other_settings_are_not_joined():
    """Vmax is 3 in one and 1 in the other: the explanation stands on its own, and so does the answer."""
    root = read_page(html_report(documents("sweep", "explain_fast", "require")))
    names = [each.text for each in section(root, "requirements").all("h3")]
    assert len(names) == 8
    assert sum("(explain_fast.json)" in name for name in names) == 4
    assert "How it fails" not in section(root, "r2").text
    assert "How it fails" in section(root, "r6").text
    assert any(
        each.startswith(
            "violated, if items are independent stops_for_pedestrians (planner feedback, explain_fast.json) must have"
        )
        for each in sentences(root)
    )
    assert "stops_for_pedestrians: P >= 0.95" in section(root, "asked").text
    assert "Planner published: this requirement asks for a recall" in section(root, "asked").text


def nudged(each):
    for name in ("probability", "lower", "upper", "second_engine"):
        each["point"][name] *= 1 - 1e-8
    each["point"].pop("whatever_predicted", None)  # it is no longer 0 or 1
    if each["point"]["basis"] == "any_dependence":
        condition = {"condition": "if items are independent"}
        each |= condition
        each["point"] |= {"basis": "memoryless", **condition}


def asked_for_a_half(each):
    """Of something that is surely less or surely more."""
    each["target"] = {"comparison": ">=", "probability": "1/2"}
    free = "whatever_predicted" in each["point"]
    condition = {"condition": None if free else "if items are independent"}
    verdict = {"verdict": "violated" if each["point"]["probability"] < 0.5 else "satisfied", **condition}
    each |= verdict
    each["point"] |= verdict | {"basis": "any_dependence" if free else "memoryless", "reason": None}


@pytest.mark.parametrize(
    "change",
    [
        nudged,
        lambda each: each.update(formula="true"),
        asked_for_a_half,
        lambda each: each["point"].update(environment="other"),
    ],
    ids=["number", "formula", "target", "scenario"],
)
def test_an_explanation_of_something_else_is_not_joined(change):
    content = json.loads(json.dumps(document("explain").content))
    for each in content["explanations"]:
        change(each)
    other = document_of(content, "other.json")
    root = read_page(html_report([document("run"), other]))
    assert "How it fails" not in section(root, "r2").text
    assert "How it fails" in section(root, "r6").text


@pytest.mark.parametrize("change", ["matrices", "settings"])
def test_an_explanation_of_other_inputs_or_settings_is_not_joined(change):
    content = json.loads(json.dumps(document("explain").content))
    if change == "matrices":
        content["inputs"][2]["sha256"] = "0" * 64
    else:
        content["settings"]["false_positives"] = "ignore"
    root = read_page(html_report([document("run"), document_of(content, "other.json")]))
    assert "How it fails" not in section(root, "r2").text


def test_an_explanation_of_another_scenario_is_not_joined():
    """That of the worst one is; that of another start would tell of another failure."""
    content = json.loads(json.dumps(document("explain").content))
    name = document("run").content["requirements"][3]["name"]
    told = next(each for each in content["explanations"] if each["name"] == name)
    told["point"]["initial"]["x"] = 9
    for pattern in told["violation"]["patterns"]:
        for run in pattern["members"]:
            run["initial"]["x"] = 9
    root = read_page(html_report([document("run"), document_of(content, "explain.json")]))
    assert "How it fails" in section(root, "r2").text
    assert "How it fails" not in section(root, "r4").text
    assert next(section(root, "r5").all("h3")).text.startswith("all_three (explain.json)")


def test_matrices_are_matched_by_hash_and_strays_are_named():
    both = read_page(html_report(documents("run", "by_class", "by_set")))
    assert "No result was made from the matrices nuscenes_yolov3_proposition.json." in sentences(both)
    about = dict(table(section(both, "m1"), "About these matrices"))
    assert about["Used by"] == "run.json"
    assert dict(table(section(both, "m2"), "About these matrices"))["Used by"] == "no result among the documents"
    none = read_page(html_report(documents("run")))
    assert "The matrices of run.json were not given to this report." in sentences(none)
    digest = document("by_class").sha256
    assert f"Not among the documents: nuscenes_yolov3_class.json (SHA-256 {digest}), used by run.json." in sentences(
        none, "matrices"
    )


DEPENDENT = {
    "label": "ped",
    "objects": 50,
    "misses": 20,
    "pairs": 40,
    "after_miss": 15,
    "joint_misses": 12,
    "expected_joint_misses": 6.0,
    "miss_after_miss": 0.8,
    "expected_miss_after_miss": 0.4,
    "mean_run": 2.5,
    "expected_mean_run": 20 / 14,
    "p_value": 0.001,
    "permutations": 999,
}


def drawing(content, found=None):
    """The values of a run whose first scenario draws ped, which has this test; None for none."""
    dependence = {} if found is None else {"dependence": {"seed": 0, "classes": [found]}}
    content["matrices"] = {
        "labelling": "class", "labels": ["ped", "empty"], "bins": ["[0, 10) m"], "items": 9, "sequences": None,
        **dependence,
    }  # fmt: skip
    test = {"label": "ped", "test": "untested"}
    if found is not None:
        names = ("p_value", "after_miss", "joint_misses", "miss_after_miss", "expected_miss_after_miss")
        test = {"label": "ped", "test": "contradicted" if found["p_value"] < 0.01 else "not_contradicted"}
        test |= {name: found[name] for name in names}
    content["channel"] = {"test": test["test"], "classes": [test]}
    first = content["requirements"][0]["points"][0]
    first["draws"] = ["ped"]
    if test["test"] == "contradicted":
        reason = {
            "kind": "dependence",
            "label": "ped",
            "p_value": found["p_value"],
            "model_verdict": first["verdict"],
        }
        first |= {"verdict": "inconclusive", "basis": None, "reason": reason}
    elif test["test"] == "untested":
        first["condition"] = "if the detector is memoryless (not tested)"
    return content


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        (None, "not tested", "ped: not tested"),
        (
            DEPENDENT,
            "contradicted",
            "after a miss the next frame misses with 0.80, not 0.40 (12 of 15 pairs of frames)",
        ),
        (DEPENDENT | {"p_value": 0.5}, "tested", "ped: not contradicted, p = 0.5"),
    ],
)
def test_whether_reports_have_a_memory_is_told_as_the_data_say_it(found, status, words):
    content = drawing(on_grid(every_verdict()), found)
    row = table(read_page(html_report([document_of(content)])), "Assumptions of")[1]
    assert row[1] == status
    assert words in row[2]


def test_gates_are_told_in_the_summary_and_in_a_section():
    one = {"requirement": "stops", "planner": "p", "scenario": "ped x=1", "value": 0.25, "failed": True}
    one |= {"condition": None, "reason": ""}
    drop = {"spec": "s", "requirement": "stops", "planner": "p", "before": 0.5, "now": 0.25, "drop": 0.25}
    told = [requirement("stops", "violated", [point("violated", 0.25)])]
    told.append(requirement("holds", "satisfied", [point("satisfied", 0.999)]))
    content = run_content(told, "violated")
    content["settings"]["verdict_from"] = "point"
    content["gates"] = {
        "fail_under": {
            "least": "0.9",
            "from": "point",
            "failed": True,
            "requirements": [one, one | {"requirement": "holds", "value": 0.999, "failed": False}],
        },
        "regression": {
            "baseline": {"name": "old.json", "sha256": "e" * 64},
            "max_drop": "0.3",
            "drop_from": "point",
            "failed": False,
            "compared": "P in words",
            "drops": [drop | {"failed": False, "chance": None}],
            "not_in_baseline": [],
        },
    }
    root = read_page(html_report([document_of(content)]))
    assert "violated Gate of result.json, no requirement under 0.9 (P itself): failed by 1" in sentences(root)
    assert "satisfied Gate of result.json, no drop by more than 0.3 against old.json: passed" in sentences(root)
    rule = "A drop counts by the point estimates; their statistical uncertainty is ignored (point)."
    assert rule in sentences(root, "g1")
    content["gates"]["regression"]["drop_from"] = "probability:0.95"
    rule = "A drop counts where the probability of that is 0.95 or more, by common draws of the matrices."
    assert rule in sentences(read_page(html_report([document_of(content)])), "g1")
    assert table(section(root, "g1"), "At least 0.9")[1] == ["stops", "p", "ped x=1", "0.25", "-", "failed"]
    assert table(section(root, "g1"), "Drop against old.json")[1][3:] == [
        "0.5",
        "0.25",
        "+0.25",
        "not known",
        "passed",
    ]


def test_the_command_is_told():
    content = on_grid(every_verdict()) | {"command": ["verify", "run", "a b.ltl"]}
    settings = dict(table(read_page(html_report([document_of(content)])), "Settings of"))
    assert settings["command"] == "verify run 'a b.ltl'"


def test_provenance_names_every_file_by_hash(page):
    text = section(page, "provenance").text
    for each in documents("run", "explain", "require", "by_class"):
        assert each.sha256 in text
        for file in each.content.get("inputs", ()):
            assert file["sha256"] in text
        for version in each.content.get("versions", {}).values():
            assert version in text
    settings = dict(table(page, "Settings of run.json"))
    unset = settings.pop("none, or no").split(", ")
    assert {*settings, *unset} >= set(document("run").content["settings"])
    assert settings["empty_columns"] == "error"
    assert settings["where"] == "none"
    assert {"score_threshold", "exact"} <= set(unset)


def test_every_kind_of_document_is_told_and_nothing_leaves_the_page():
    text = html_report(documents(*EVERY_KIND))
    root = read_page(text)
    for name in EVERY_KIND:
        assert document(name).name in section(root, "provenance").text
    loading = {"src", "srcset", "data", "action", "background", "poster", "style", "xlink:href", "formaction"}
    for each in root.all():
        assert not loading & set(each.attributes), each.attributes
        assert each.tag not in {"link", "img", "iframe", "object", "embed", "form", "base", "use", "image"}
        assert each.attributes.get("href", "#").startswith("#")
        assert not [name for name in each.attributes if name.startswith("on")]
    for style in root.all("style"):
        assert not re.search(r"url\(|@import", style.text)
    assert len(list(root.all("script"))) == len(list(root.all("style"))) == 1
    (policy,) = [each for each in root.all("meta") if each.attributes.get("http-equiv")]
    assert policy.attributes["content"].startswith("default-src 'none'; script-src 'sha256-")
    assert "/work" not in text
    assert "/tmp" not in text


def test_a_page_is_one_for_screen_readers_and_keyboards():
    root = read_page(html_report(documents(*EVERY_KIND)))
    (whole,) = root.all("html")
    assert whole.attributes["lang"] == "en"
    levels = [int(each.tag[1]) for each in root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [each.attributes["id"] for each in root.all() if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    for link in root.all("a"):
        assert link.attributes["href"][1:] in ids
    for each in root.all("table"):
        assert next(each.all("caption")).text
        for head in each.all("th"):
            assert head.attributes["scope"] in ("col", "row")
        widths = {len(list(row.all("th", "td"))) for row in each.all("tr")}
        assert len(widths) == 1
        assert each.parent.attributes["tabindex"] == "0"
    for picture in root.all("svg"):
        assert picture.attributes["role"] == "img"
        assert picture.attributes["aria-label"]
        assert picture.parent.tag == "figure"


def test_equal_documents_give_equal_bytes_and_the_title_can_be_set():
    found = documents(*EVERY_KIND)
    assert html_report(found) == html_report(found)
    assert markdown_report(found) == markdown_report(found)
    root = read_page(html_report(found, "Crossing, release 7"))
    assert next(root.all("title")).text == next(root.all("h1")).text == "Crossing, release 7"


def test_files_of_one_name_are_told_apart():
    first = document_of(on_grid(every_verdict()), "result.json")
    second = document_of(run_content([requirement("b", "satisfied", [point("satisfied", 1.0)])], "satisfied"))
    names = {row[0] for row in table(read_page(html_report([first, second])), "Documents of this report")[1:]}
    assert names == {f"result.json [{each.sha256[:8]}]" for each in (first, second)}


def test_long_lists_of_requirements_are_told_in_the_table_only():
    many = [requirement(f"r{k}", "violated", [point("violated", 0.1)]) for k in range(30)]
    root = read_page(html_report([document_of(run_content(many, "violated"))]))
    assert len(table(root, "All requirements")) == 31
    assert "18 more stand in the table above only." in sentences(root)
    assert len(list(section(root, "requirements").all("h3"))) == 30


def test_a_report_of_no_requirement_says_so():
    root = read_page(html_report(documents("by_set")))
    assert sentences(root) == ["No document of this report verifies a requirement."]
    assert dict(table(root, "About these matrices"))["Used by"] == "no result among the documents"


def test_a_rate_says_what_is_not_in_it():
    rate = document("rate")
    told = sentences(read_page(html_report([rate])))
    assert any("in the worst scenario of each environment; " in each for each in told)
    part = replace(rate, content=summed(dict(rate.content) | {"left_out": ["obs", "empty"]}))
    told = sentences(read_page(html_report([part])))
    part_only = "in the worst scenario of each environment and without what happens in obs and empty; "
    assert any(part_only in each for each in told)


def test_a_study_of_collisions_says_what_its_words_mean_and_which_detector_is_closer():
    content = json.loads(json.dumps(document("collision").content))
    policy = content["policies"][0]
    detector = policy["detectors"][0]
    shape = len(detector["probability"]), len(detector["probability"][0])
    area = [[1] * shape[1] if k == 0 else [0] * shape[1] for k in range(shape[0])]
    chance = [[0.01] + [0.5] * (shape[1] - 1) for _ in range(shape[0])]
    policy["detectors"] = [detector | {"title": "a"}, detector | {"title": "b"}]
    pair = {"first": 0, "second": 1, "threshold": 0.05, "objects": 9, "common_objects": 8, "subsamples": 4}
    policy["comparisons"] = [pair | {"subsample_size": 3, "area": area, "p_value": chance, "bootstrap_p_value": None}]
    policy["ranking"] = {
        "weight": "uniform",
        "heavy": "below",
        "scores": [  # lines from 0.1 and 0.529, which cross in 0.67 at the ratio 3
            {"above": 0.1, "below": 0.19, "covered": 1.0},
            {"above": 1 - 10 * 0.33 / 7, "below": 0.33 / 7, "covered": 1.0},
        ],
        "ratios": [
            {"ratio": 10.0, "order": [1, 0], "loss": [2, 1], "lower": [2, 1], "upper": [2, 1], "best_share": [0, 1]}
        ],
        "crossings": [{"ratio": 3.0, "better_below": 0, "better_above": 1}],
    }
    content["settings"] |= {"alpha": 1.0, "beta": 10.0, "level": 0.9}
    root = read_page(html_report([document_of(content)]))
    assert any(
        each.endswith("for a and b; at the ratio 10 of the penalties, b loses least.") for each in sentences(root)
    )
    told = section(root, "d1")
    assert any("The oracle reports every true distance" in each.text for each in told.all("li"))
    share = table(told, "a (first) against b (second)")
    assert share[0] == ["area", "share of the grid", "of this with p <= 0.1"]
    assert share[2][0] == "the first is closer to its oracle"
    assert share[2][2] == f"{100 / shape[1]:.3g} %"  # one of the cells of the first row
    assert table(told, "Ranking")[1] == ["10", "b, a", "a 0 %, b 100 %", "b 1 [1, 1], a 2 [2, 2]"]
    assert "a scores better below the ratio 3, b above it." in [each.text for each in told.all("p")]


def test_swept_fractions_are_drawn():
    found = [point("violated", p, constants={"gain": gain}) for gain, p in (("1/3", 0.1), ("1/2", 0.2), ("1", 0.3))]
    root = read_page(html_report([document_of(run_content([requirement("r", "violated", found)], "violated"))]))
    (picture,) = [each for each in section(root, "r1").all("svg") if "against gain" in each.attributes["aria-label"]]
    assert {"0.3333", "0.5", "1"} <= {each.text for each in picture.all("text")}


def test_what_pictures_show_also_stands_in_tables():
    content = json.loads(json.dumps(document("compare").content))
    content["specs"][0]["requirements"][1]["curves"] = [
        {
            "axis": "initial v",
            "places": ["1", "2"],
            "probability": [[0.5, 0.25], [0.4, None]],
            "lower": [[0.4, 0.125], [0.3, None]],
            "upper": [[0.6, 0.375], [0.5, None]],
            "ranking_changes": [],
        }
    ]
    root = read_page(html_report([document("robroc"), document_of(content, "compare.json")]))
    points = table(root, "Safety against efficiency, trade_off: the points")
    assert points[1:3] == [["a, baseline", "0.5", "1"], ["a, baseline", "1", "0.5"]]
    assert table(root, "P of stops_for_pedestrians against initial v: the points")[1:] == [
        ["one", "1", "0.5", "[0.4, 0.6]"],
        ["one", "2", "0.4", "[0.3, 0.5]"],
        ["two", "1", "0.25", "[0.125, 0.375]"],
    ]


def test_of_matrices_that_are_partly_given_only_the_others_are_missed():
    root = read_page(html_report(documents("compare", "by_class", "run")))
    assert "Some of the matrices of compare.json were not given to this report." in sentences(root)


def test_the_csv_has_a_row_for_every_probability():
    rows = list(csv.DictReader(io.StringIO(csv_report(documents("run", "explain", "require", "compare", "robroc")))))
    runs = [row for row in rows if row["kind"] == "run"]
    points = [(each, found) for each in document("run").content["requirements"] for found in each["points"]]
    assert len(runs) == len(points) == 12
    for row, (each, found) in zip(runs, points, strict=True):
        assert (row["requirement"], row["planner"], row["verdict"]) == (
            each["name"],
            each["planner"],
            found["verdict"],
        )
        assert float(row["probability"]) == found["probability"]
        assert float(row["bounds_upper"]) == found["uncertainty"]["confidence_bounds"]["upper"]
    assert [row["state"] for row in rows if row["kind"] == "require"] == ["measured", "required", "perfect"]
    assert {row["detector"] for row in rows if row["kind"] == "compare"} == {"one", "two"}
    (other,) = [row for row in rows if row["kind"] == "trade_offs"]
    assert other["document"] == "robroc.json"
    assert other["probability"] == ""


def test_the_csv_holds_nothing_that_a_spreadsheet_would_compute():
    names = ("=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "plain", "\uff1d1+1")
    found = [
        requirement(name, "violated", [point("violated", 0.1, "=env")], planner=planner)
        for name in names
        for planner in names
    ]
    text = csv_report([document_of(run_content(found, "violated"))])
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = ["'=HYPERLINK(1)", "+1", "-1", "'@x", "\\t=1", "plain", "'\uff1d1+1"]
    assert [row["requirement"] for row in rows[:: len(names)]] == expected
    assert [row["planner"] for row in rows[: len(names)]] == expected
    assert {row["comparison"] for row in rows} == {">="}


def test_markdown_has_the_same_sections_sentences_and_rows(page):
    text = markdown_report(documents("run", "explain", "require", "by_class"))
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == [each.text for each in page.all("h2")]
    plain = text.replace("\\", "")
    for sentence in sentences(page)[2:5]:
        assert sentence.partition(" must ")[2] in plain
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| --- |")]
    assert len(rows) == len(list(page.all("tr"))) + len(
        [each for each in page.all("table") if not list(each.all("thead"))]
    )


def test_no_document_is_refused():
    with pytest.raises(InputError, match="at least one document"):
        html_report([])


def test_a_rate_whose_run_is_not_there_says_so_in_every_export():
    said = "is not beside this rate: its probabilities, bounds and verdict are taken from it as it states them"
    for given, times in (([document("rate")], 1), ([document("rate"), document("run")], 0)):
        root = read_page(html_report(given))
        assert sum(said in each for each in sentences(root)) == times  # the summary
        assert sum(said in each for each in sentences(root, "d1")) == times
        assert markdown_report(given).count(said) == 2 * times
        rows = list(csv.DictReader(io.StringIO(csv_report(given))))
        assert [said in row["note"] for row in rows if row["kind"] == "rate"] == [bool(times)]
        assert not any(row["note"] for row in rows if row["kind"] == "run")
