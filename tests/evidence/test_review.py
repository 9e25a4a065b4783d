"""Findings of an assessor: drawn on the case, kept through rebuilds, open again when the node says something else."""

import csv
import io
import json
import re

import pytest
import yaml
from gsn_cases import large, small
from small_bundles import MATRICES, SPEC, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError
from verifier.cli import main
from verifier.evidence.bundle.archive import write_bundle
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.case.anchors import anchors_of, digests_of
from verifier.evidence.context import read_review
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
HEAD = "node,content,text,class,by,date,state\n"
CASE = '[exposure.every]\nper_hour = 12\n[responsible]\nmodel = "{}"\n'
AFTER = SPEC + "later: P >= 0.5 [ F x = 2 ]\n"
BEFORE = SPEC.replace("stops:", "first: P >= 0.5 [ F x = 2 ]\nstops:")


def built(folder, spec=SPEC, review="", matrices=MATRICES, responsible="M. M."):
    """The files of a bundle, with the rows of a review."""
    folder.mkdir(exist_ok=True)
    text = CASE.format(responsible)
    if review:
        (folder / "review.csv").write_text(HEAD + review)
        text += '[review]\nfile = "review.csv"\n'
    (folder / "case.toml").write_text(text)
    return make_bundle(Sources(*write_inputs(folder, spec, matrices), folder / "case.toml"), FEW).files


def nodes(files):
    """Anchor -> row of every node."""
    return {row["anchor"]: row for row in csv.DictReader(io.StringIO(files["exchange/nodes.csv"].decode()))}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return nodes(built(tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize("spec", [AFTER, BEFORE])
def test_anchors_stay_when_a_requirement_is_added(plain, spec, tmp_path):
    more = nodes(built(tmp_path, spec))
    assert len(more) > len(plain)
    gone = {anchor: row for anchor, row in plain.items() if anchor not in more}
    told = [row for row in gone.values() if row["kind"] != "context"]  # contexts list what there is
    assert told == []
    for anchor, row in plain.items():  # and they are still those of the same claims
        if row["kind"] == "goal" and anchor in more and " holds: " in row["text"]:
            assert more[anchor]["text"] == row["text"]
    assert any(row["id"] != more[anchor]["id"] for anchor, row in plain.items() if anchor in more)


@pytest.mark.parametrize("make", [small, large])
def test_every_node_has_an_anchor_of_its_own(make):
    case = make()
    anchors = anchors_of(case)
    assert anchors.keys() == {each.id for each in case.elements}
    assert len({*anchors.values()}) == len(anchors)
    assert all(re.fullmatch(r"[A-Za-z]+-[0-9a-f]{8}", each) for each in anchors.values())
    assert anchors == anchors_of(make())
    assert digests_of(case) == digests_of(make())


def test_findings_are_drawn_told_and_kept(plain, tmp_path):
    goal = next(row for row in plain.values() if row["text"].startswith("The system model represents"))
    top = next(row for row in plain.values() if row["id"] == "G1")
    review = (
        f'{goal["anchor"]},,"No test, of the model",major,A. B.,2026-05-04,open\n'
        f"{top['anchor']},{top['content']},Wording,minor,A. B.,2026-05-05,closed\n"
        "G-00000000,0000abcd,Where is it?,observation,A. B.,2026-05-06,answered\n"
    )
    files = built(tmp_path, review=review)
    case = yaml.safe_load(files["case/gsn.yaml"])
    assert case[goal["id"]]["review"] == "Review finding open (major, A. B., 2026-05-04): No test, of the model"
    gone = "Review finding its node is gone (observation, A. B., 2026-05-06): Where is it?"
    assert case["G1"]["review"] == f"Review finding closed (minor, A. B., 2026-05-05): Wording\n{gone}"
    for path in ("case/gsn.svg", "case/gsn_print.html"):
        assert "No test," in re.sub(r"</text>\s*<text[^>]*>", " ", files[path].decode())
    report = files["report/report.md"].decode().replace("\\", "")
    assert f"Review finding at {goal['id']}, open (major, A. B., 2026-05-04): No test, of the model" in report
    assert "Review finding at G-00000000, its node is gone" in report
    assert "Review finding at G1, closed" not in report  # page one has what is open
    assert "## Review findings" in report
    assert "inputs/context/review.csv" in files
    assert check_files("b", files).sound
    assert {each: row["status"] for each, row in nodes(files).items()} == {
        each: row["status"] for each, row in plain.items()
    }  # a finding changes no status


def test_a_finding_on_a_changed_node_reopens_and_one_on_another_does_not(plain, tmp_path):
    leaf = next(row for row in plain.values() if row["text"].startswith("In ped") and "stops holds" in row["text"])
    duty = next(row for row in plain.values() if row["text"].startswith("The system model represents"))
    review = "".join(f"{row['anchor']},{row['content']},Said,major,A. B.,2026-05-04,closed\n" for row in (leaf, duty))
    same = nodes(built(tmp_path / "same", AFTER, review))
    assert [same[row["anchor"]]["review"].split(" (")[0] for row in (leaf, duty)] == ["Review finding closed"] * 2
    better = json.loads(json.dumps(MATRICES).replace("300", "3000"))
    changed = nodes(built(tmp_path / "better", SPEC, review, better))
    assert changed[leaf["anchor"]]["review"].startswith("Review finding reopened")
    assert changed[duty["anchor"]]["review"].startswith("Review finding closed")
    other = nodes(built(tmp_path / "other", SPEC, review, responsible="N. N."))
    assert other[leaf["anchor"]]["review"].startswith("Review finding closed")
    assert other[duty["anchor"]]["review"].startswith("Review finding reopened")


def test_a_comparison_says_which_findings_a_new_bundle_does_not_have(tmp_path, capsys):
    """Answered ones stay the same; one that is left out or told otherwise is gone, and that is no success."""
    row = "G-1,ab,{},{},A. B.,2026-05-04,{}\n"
    first = row.format("Late", "major", "open") + row.format("Why?", "minor", "closed")
    for name, review in (
        ("old", first),
        ("answered", first.replace(",open", ",answered")),
        ("softer", first.replace("major", "minor")),
        ("none", ""),
    ):
        write_bundle(built(tmp_path / f"in_{name}", review=review), tmp_path / name)
    for name, code, gone in (("answered", 0, 0), ("softer", 3, 1), ("none", 3, 2)):
        words = ["evidence", "diff", str(tmp_path / "old"), str(tmp_path / name)]
        assert main([*words, "-o", str(tmp_path / "diff.json")]) == code
        assert len(json.loads((tmp_path / "diff.json").read_text()).get("findings_gone", ())) == gone
        assert ("G-1 (major, A. B., 2026-05-04): Late" in capsys.readouterr().out) == (gone > 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected the columns node, content, text, class, by, date, state, found nothing"),
        ("node,text\n", "expected the columns"),
        (HEAD + "G-1,,t,major,A,2026-05-04\n", "expected 7 cells, found 6"),
        (HEAD + "G-1,,t,grave,A,2026-05-04,open\n", "class: expected major, minor, observation, found 'grave'"),
        (HEAD + "G-1,,t,major,A,2026-05-04,done\n", "state: expected open, answered, closed"),
        (HEAD + "G-1,,t,major,A,2026-05-04,closed\n", "content: expected a text, found nothing"),
        (HEAD + "G-1,,,major,A,2026-05-04,open\n", "text: expected a text, found nothing"),
        (HEAD + "G-1,,t,major,A,4.5.26,open\n", "expected a date such as 2026-05-04"),
        (HEAD + "G-1,,t,major,A,2999-05-04,open\n", "expected a day that has been, today is "),
        (HEAD + '"G-1,,t\n', "not a readable CSV file"),
    ],
)
def test_a_file_that_is_no_review_is_refused_with_its_line(text, said, tmp_path):
    (tmp_path / "review.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read_review(tmp_path / "review.csv")
    assert str(tmp_path) in str(caught.value)
