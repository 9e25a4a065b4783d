"""Documents behind what people answer for, and answers to doubts: what they change, and when they fall."""

import csv
import datetime
import hashlib
import io
import json

import pytest
import yaml
from brake import FEW, HIT, PHANTOM, built, matrices, statuses, write, write_run
from gsn_rules import complaints
from run_documents import point, requirement, run

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError
from verifier.evidence.bundle.build import built_document
from verifier.evidence.bundle.check import check_files
from verifier.evidence.case.anchors import anchors_of
from verifier.evidence.case.building import build_case
from verifier.evidence.case.elements import gsn_yaml
from verifier.evidence.case.sheets import gsn_svg
from verifier.evidence.context import CaseContext, read_context
from verifier.evidence.declarations import Declarations, Disposition, Evidence, node_of_duty
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.defeaters.values import answers_to
from verifier.evidence.status import Grade
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

PEOPLE = ("requirements", "model", "test_data", "odd", "counting", "integration", "independence", "tool")
DAYS = tuple(f"day_{number:02}" for number in range(10))
ITEMS = RunOptions(confidence=ConfidenceSettings(draws=100, bounds="items", assume_independent_items=True))


def evidence(name, claim=None, **more):
    """One entry, with what is required and more."""
    told = {"claim": claim or name, "title": f"About {name}", "file": f"docs/{name}.txt", "author": "N. N."}
    told |= {"date": "2026-05-04"} | more
    lines = [
        f"{key} = {value if key in DATES else repr(value).lower() if isinstance(value, bool) else repr(value)}"
        for key, value in told.items()
        if value is not None
    ]
    return "\n".join([f"[evidence.{name}]", *lines, ""])


DATES = ("date", "valid_until")
SAID = 'reason = "Kerb"\nby = "N. N."\ndate = 2026-05-06\n'


def declared(folder, *entries, head=""):
    """A context in a folder with the documents that the tests name."""
    (folder / "docs").mkdir(exist_ok=True)
    for name in (*PEOPLE, "numbers", "training_data"):
        (folder / f"docs/{name}.txt").write_text(f"{name}\n")
    (folder / "docs/empty.txt").write_text("")
    (folder / "docs/blank.txt").write_text("\ufeff \n\0\n")
    (folder / "docs/training.txt").write_text("# trained on\ntrain_01\ntrain_02\n")
    (folder / "case.toml").write_text("\n".join([head, *entries]))
    return folder / "case.toml"


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path, HIT + PHANTOM, day=matrices("day", DAYS))


WHOLE = [evidence(name) for name in PEOPLE] + [evidence("numbers", ["memory", "statistics"])]
LISTED = '[detector]\nname = "D"\ntrained_list = "docs/training.txt"\n'


def case_of(bundle):
    content = yaml.safe_load(bundle.files["case/gsn.yaml"].decode())
    assert complaints(content) == []
    return content


def goal_about(content, text):
    (found,) = [
        each for name, each in content.items() if name[0] == "G" and text in each.get("text", "").split("\n")[0]
    ]
    return found["status"], found["grade"]


TRAINED = "was not trained on the data it was tested on"


@pytest.mark.parametrize(
    ("head", "stands"),
    [
        ("trained_on = []", ("undeveloped", "declared")),
        ('trained_on = ["dya_*"]', ("undeveloped", "declared")),
        ('trained_on = ["day_0?"]', ("violated", "declared")),
        ('trained_list = "docs/training.txt"', ("supported", "documented")),
        ('trained_on = ["Day_00"]', ("violated", "declared")),  # some systems know one folder of the two names
        ('trained_on = ["DAY_01/", "other"]', ("violated", "declared")),
        ('trained_on = ["\uff44ay_*"]', ("violated", "declared")),  # a wide d
        ('trained_on = ["d\u0430y_00"]', ("violated", "declared")),  # a Cyrillic a
        ('trained_on = ["day_00,300"]', ("defeated", "declared")),
    ],
)
def test_what_is_said_of_training_is_a_declaration_and_a_list_documents_it(head, stands, tmp_path):
    """As the case alone has it; whole bundles of lists are below."""
    found = training_goal(head, tmp_path)
    assert (found.status.value, found.grade.value) == stands
    assert bool(found.supported_by) == (stands[0] == "supported")
    assert ("Not shown by this evidence" in found.note) == (stands[0] in ("undeveloped", "defeated"))


def training_goal(head, tmp_path, raw=b"", tested=DAYS[:3]):
    """What a case says of the data of a detector, with a list of these bytes."""
    declared(tmp_path)
    (tmp_path / "docs/list.txt").write_bytes(raw)
    context = read_context(declared(tmp_path, head=f"[detector]\n{head}\n"))
    names = [{"name": name, "frames": 1, "counts": [[0, 0, 0, 1]]} for name in tested]
    from run_documents import made_with
    from run_documents import matrices as table_of

    table = table_of(((3, 0), (0, 0)), sequences=names)
    given = made_with(table)
    case = build_case([given, table], context, find_defeaters([given, table], context, {}), {})
    (found,) = [each for each in case.elements if TRAINED in each.text and each.status is not None]
    return found


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"train_01\r\nday_1\r\nday_001\r\nday_00_left\r\nnight_00\r\nmonday_00\r\n", "supported"),
        (b"day_00\r\n", "violated"),
        (b"\xef\xbb\xbfday_00\n", "violated"),  # a mark of UTF-8
        ("d\u200bay_00\n".encode(), "violated"),  # a space of no width
        ("day\u00a0_00\nd\u0430y_0\ufe0f0\n".encode(), "violated"),  # a Cyrillic a, and a sign that selects a form
        (b"DAY_00\n./day_01/\n", "violated"),
        (b"day_00,300\n", "defeated"),
        (b"day_00;300\n", "defeated"),
        (b'"day_00"\n', "defeated"),
        (b"day_00\t300\n", "defeated"),
        (b"300 day_00  # night\n", "defeated"),
        (b"/data/kitti/day_00/000012.png\n", "defeated"),
        (b"C:\\data\\day_00\n", "defeated"),
        (b"day_00.bag\n", "defeated"),
        (b"day-00\nDay 01\n", "defeated"),
        (b"day_0?,300\n", "defeated"),
        (b"video/*/day_0?\n", "defeated"),
    ],
)
def test_a_list_in_other_words_shows_nothing(raw, status, tmp_path):
    """What people take for a tested sequence is one; what holds the name of one is unclear, and shows nothing."""
    found = training_goal('trained_list = "docs/list.txt"', tmp_path, raw)
    assert (found.status.value, bool(found.supported_by)) == (status, status in ("supported", "defeated"))


@pytest.mark.parametrize(
    ("tested", "raw", "status"),
    [
        ("Stra\u00dfe 1", "strasse 1", "violated"),
        ("caf\u00e9", "cafe\u0301", "violated"),
        ("cafe\u0301", "CAF\u00c9", "violated"),
        ("north/day 1", "north/day 1,20", "defeated"),
        ("v1.5", "v1.6", "supported"),
        ("0001", "2011_09_26_drive_0001_sync", "supported"),
        ("0001", "training/0001", "defeated"),
        ("[a]", "a", "defeated"),
        ("a*", "ab", "supported"),
        ("da\u200by_00", "day_00", "violated"),
    ],
)
def test_names_are_compared_as_they_look(tested, raw, status, tmp_path):
    found = training_goal('trained_list = "docs/list.txt"', tmp_path, raw.encode(), [tested])
    assert found.status.value == status


def test_a_list_of_what_cannot_be_seen_is_none(tmp_path):
    with pytest.raises(InputError, match=r"list\.txt: expected a sequence in each line, found none"):
        training_goal('trained_list = "docs/list.txt"', tmp_path, "\ufeff\u200b\n\u2060\n# day_00\n".encode())


def test_with_documents_for_all_that_people_answer_for_the_top_goal_is_supported(folder):
    bundle = built(folder, context=declared(folder, *WHOLE, head=LISTED), options=ITEMS)
    content = case_of(bundle)
    assert (content["G1"]["status"], content["G1"]["grade"]) == ("supported", "documented")
    assert set(statuses(bundle.files)["trace.csv"].values()) == {"supported"}
    assert goal_about(content, TRAINED) == ("supported", "documented")
    assert "assurance case as a whole" not in bundle.files["report/report.md"].decode()
    assert check_files("b", bundle.files).sound
    cited = {each.get("url") for each in content.values()}
    assert "Not shown by this evidence" not in bundle.files["case/gsn.yaml"].decode()
    documents = [path for path in bundle.files if path.startswith("inputs/context/docs/")]
    assert sorted(documents) == sorted({*cited} & {*documents})
    assert len(documents) == 10
    # An altered document is found by its hash, and by what is derived from it.
    altered = {**bundle.files, "inputs/context/docs/model.txt": b"other\n"}
    assert "inputs/context/docs/model.txt" in {each.file for each in check_files("b", altered).findings}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"valid_until": "2026-01-01"}, "expired on 2026-01-01"),
        ({"file": "docs/nobody.txt"}, "the file is missing"),
        ({"file": "docs/empty.txt"}, "the file is empty"),
        ({"file": "docs/blank.txt"}, "the file is empty"),
        ({"file": "docs/away.txt", "copy": False, "sha256": hashlib.sha256().hexdigest()}, "the file is empty"),
        ({"sha256": "0" * 64}, "the file was altered: SHA-256 "),
    ],
)
def test_a_document_that_is_not_what_it_was_is_named_and_its_claim_falls(change, said, folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1793000000")  # October 2026
    entries = [each for each in WHOLE if "[evidence.model]" not in each]
    bundle = built(
        folder, context=declared(folder, *entries, evidence("model", **change), head=LISTED), options=ITEMS
    )
    content = case_of(bundle)
    assert goal_about(content, "The system model represents") == ("defeated", "declared")
    assert content["G1"]["status"] == "defeated"
    (counter,) = [each["text"] for name, each in content.items() if name.startswith("CG")]
    assert said in counter
    first = bundle.files["report/report.md"].decode().replace("\\", "").partition("**All requirements**")[0]
    assert "Evidence model (About model" in first
    assert said in first
    assert "**Status over all runs: supported**" in first
    assert "The assurance case as a whole: defeated. " in first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # whoever checks later judges by the day of the build
    report = check_files("b", bundle.files)
    assert report.sound
    assert built_document(bundle, "b").status == report.status
    assert report.status.endswith("; the assurance case as a whole: defeated")


def test_what_is_only_declared_supports_nothing(folder):
    entries = [evidence(name, grade="declared", file=None) for name in PEOPLE]
    people = "\n".join(["[responsible]", *(f'{name} = "N. N."' for name in PEOPLE)])
    bundle = built(folder, context=declared(folder, *entries, head=people), options=ITEMS)
    content = case_of(bundle)
    for text in ("The requirements and", "The system model", "The test data", "is used within", "Verification is"):
        assert goal_about(content, text) == ("undeveloped", "declared")
    assert set(statuses(bundle.files)["trace.csv"].values()) == {"conditional"}


# --- doubts


def doubted(probability=0.97, day=None, **declarations):
    """A satisfied requirement whose run has false positives left out, its case and the answers to its doubts."""
    points = [point(1.0, "satisfied", (1.0, 1.0), whatever_predicted=1, basis="any_dependence")]
    given = run([requirement("stops", points)], false_positives="ignore", round_transitions=3)
    context = CaseContext(declared=Declarations(**declarations, day=day))
    defeaters = find_defeaters([given], context, {})
    case = build_case([given], context, defeaters, {})
    (goal,) = [each for each in case.elements if each.text.startswith("stops: ")]
    assert complaints(yaml.safe_load(gsn_yaml(case))) == []
    assert "<svg" in gsn_svg(case)
    return case, goal, answers_to(defeaters, context.declared)


def answer(decision, doubt, **more):
    told = {"reason": "Kerb", "by": "N. N.", "dated": datetime.date(2026, 5, 6), "review": "SA-17", **more}
    return Disposition(decision=decision, doubt=doubt, **told)


PROOF = Evidence(name="p", claims=("model",), title="Tests", file="t.txt", sha256="0" * 64, grade=Grade.TESTED)
FALSE, ROUNDED = "no_false_positives/stops", "rounded/stops"


def test_answers_to_doubts():
    _, goal, found = doubted()
    assert goal.status.value == "defeated"
    digests = {key: each.digest for key, each in found.items()}
    assert digests.keys() == {FALSE, ROUNDED}
    refuted = answer("refuted", digests[FALSE], evidence="p")
    given = {FALSE: refuted, ROUNDED: answer("refuted", digests[ROUNDED], evidence="p")}
    case, goal, _ = doubted(dispositions=given, evidence={"p": PROOF})
    assert (goal.told, goal.grade) == ("supported", Grade.TESTED)
    for counter in case.challengers(goal.id):  # drawn, and defeated by its evidence
        assert counter.defeated
        (against,) = case.challengers(counter.id)
        assert "refuted by N. N. on 2026-05-06, SA-17: Kerb" in against.note
    given[ROUNDED] = answer("accepted", digests[ROUNDED])
    case, goal, _ = doubted(dispositions=given, evidence={"p": PROOF})
    assert goal.status.value == "conditional"
    (residual,) = goal.rests_on
    assert case.by_id[residual].text.startswith("Residual doubt D2, transition probabilities were rounded")


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"doubt": "00000000"}, "stale"),
        ({"doubt": ""}, "stale"),
        ({"decision": "open"}, "open"),
        ({"proof": {"fault": "the file is missing"}}, "open"),
        ({"proof": {"valid_until": datetime.date(2026, 5, 5)}}, "open"),
        ({"proof": {"grade": Grade.DECLARED}}, "open"),
    ],
)
def test_an_answer_to_other_numbers_or_on_no_evidence_leaves_the_doubt_open(change, state):
    from dataclasses import replace

    _, _, found = doubted()
    proof = replace(PROOF, **change.pop("proof", {}))
    given = {key: answer("refuted", each.digest, evidence="p") for key, each in found.items()}
    given[FALSE] = replace(given[FALSE], **change)
    _, goal, answers = doubted(dispositions=given, evidence={"p": proof}, day=datetime.date(2026, 6, 1))
    assert answers[FALSE].state == state
    assert goal.status.value == "defeated"


def test_no_answer_turns_what_is_violated_green():
    points = [point(0.5, "violated", (0.4, 0.6))]
    given = run([requirement("stops", points)], round_transitions=3)
    digest = answers_to(find_defeaters([given], CaseContext(), {}), Declarations())[ROUNDED].digest
    for decision in ("refuted", "accepted"):
        kept = Declarations({"p": PROOF}, {ROUNDED: answer(decision, digest, evidence="p")})
        context = CaseContext(declared=kept)
        case = build_case([given], context, find_defeaters([given], context, {}), {})
        assert case.status.value == "violated"


def test_answers_in_a_bundle_go_stale_when_the_numbers_change(folder):
    """The false positives that a first build ignores are accepted; of other data the doubt is open again."""
    import dataclasses

    options = dataclasses.replace(ITEMS, false_positives="ignore")
    numbers = evidence("numbers", ["memory", "statistics"])
    first = built(folder, context=declared(folder, numbers), options=options)
    rows = list(csv.DictReader(io.StringIO(first.files["trace.csv"].decode())))
    assert rows[0]["status"] == "defeated"
    summary = first.files["report/report.md"].decode().partition("**All requirements**")[2].partition("**What was")[0]
    (row,) = [line.replace("\\", "") for line in summary.splitlines() if "no\\_hit" in line]
    assert "satisfied, if" in row
    assert "; its status: defeated |" in row
    told = [each.split(" ") for each in rows[0]["doubts"].split("; ")]
    entries = [
        f'[disposition."{key}"]\ndecision = "accepted"\ndoubt = "{digest}"\n{SAID}'
        for key, digest, state in told
        if state == "open"
    ]
    accepted = built(folder, context=declared(folder, numbers, *entries), options=options)
    row = next(csv.DictReader(io.StringIO(accepted.files["trace.csv"].decode())))
    assert (row["status"], row["defeated_by"]) == ("conditional", "")
    page = accepted.files["report/report.md"].decode().replace("\\", "")
    assert "Residual doubt, no_false_positives/no_hit: accepted by N. N. on 2026-05-06: Kerb" in page

    def rebuilt():
        again = built(folder, context=declared(folder, numbers, *entries), options=options)
        return again, next(csv.DictReader(io.StringIO(again.files["trace.csv"].decode())))

    # Another requirement, and words that mean nothing: the answers stand.
    spec = (folder / "aeb.ltl").read_text()
    (folder / "aeb.ltl").write_text(f"// of the second draft\n{spec}also: P >= 0.1 [ G (ped -> x < line) ]\n")
    (folder / "aeb.toml").write_text(f"# of the second draft\n{(folder / 'aeb.toml').read_text()}")
    assert rebuilt()[1]["status"] == "conditional"
    (folder / "aeb.ltl").write_text(spec)
    # Ten of 100,000 more are missed: the doubt says the same, and is about other numbers.
    data = matrices("day", DAYS)
    hit, miss = data["bins"][0]["counts"]
    first = data["sequences"][0]["counts"]
    for row, left, column in ((hit, 0, 0), (miss, 1, 0)):
        moved = 10 if row is miss else -10
        row[column] += moved
        first[2 * left][3] += moved
    (folder / "day.json").write_text(json.dumps(data))
    again, row = rebuilt()
    assert (row["verdict"], row["status"]) == ("satisfied", "defeated")
    said = again.files["report/report.md"].decode().replace("\\", "")
    (decided,) = {entry.partition('doubt = "')[2][:8] for entry in entries if "no_false_positives/no_hit" in entry}
    assert f"Doubt reopened, no_false_positives/no_hit: stale: decided on {decided}, now " in said


# --- errors


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (evidence("a", "modell"), "evidence.a.claim", "'modell'"),
        (
            evidence("a", node_of_duty("model")[:-1] + "x"),
            "evidence.a.claim",
            f"did you mean '{node_of_duty('model')}'?",
        ),
        (evidence("a", "model", titel="x"), "evidence.a.titel", "unknown key 'titel'"),
        (evidence("a", "model", author=None), "evidence.a", "missing key 'author'"),
        (evidence("a", "model", file=None), "evidence.a", "missing key 'file'"),
        (evidence("a", "model", file="../a.txt"), "evidence.a.file", "found '../a.txt'"),
        (evidence("a", "model", file="/etc/passwd"), "evidence.a.file", "found '/etc/passwd'"),
        (evidence("a", "model", file="case.toml"), "evidence.a.file", "found the file that declares it"),
        (evidence("a", "model", grade="proven"), "evidence.a.grade", "'proven'"),
        (evidence("a", "model", valid_until='"soon"'), "evidence.a.valid_until", "expected a date"),
        (evidence("a", "model", date="2999-05-04"), "evidence.a.date", "expected a day that has been, today is "),
        (
            '[disposition.x]\ndecision = "open"\nreason = "r"\nby = "b"\ndate = 2999-05-04',
            "disposition.x.date",
            ", found 2999-05-04",
        ),
        ('[document]\nid = "a"\nissued = 2999-05-04', "document.issued", "expected a day that has been"),
        (evidence("a") + evidence("'\u0430'", "model"), "evidence.'\u0430'", "a name that looks like 'a'"),
        ("[condition.day]\nshare = 0\n[condition.Day]\nshare = 1", "condition.Day", "a name that looks like 'day'"),
        (evidence("a", "model", copy=False), "evidence.a", "missing key 'sha256'"),
        (
            evidence("a", "model", file="docs/model.txt", copy=False, sha256="0" * 64),
            "evidence.a.sha256",
            "expected ",
        ),
        (evidence("a", "model", sha256="0"), "evidence.a.sha256", "64 hexadecimal digits"),
        (
            '[disposition.x]\ndecision = "done"\nreason = "r"\nby = "b"\ndate = 2026-05-04',
            "disposition.x.decision",
            "'done'",
        ),
        (
            '[disposition.x]\ndecision = "refuted"\nreason = "r"\nby = "b"\ndate = 2026-05-04',
            "disposition.x",
            "'evidence'",
        ),
        (
            evidence("a", "model")
            + '[disposition.x]\ndecision = "refuted"\nevidence = "a"\nreason = "r"\nby = "b"\ndate = 2026-05-03',
            "disposition.x.date",
            "expected no day before that of the evidence it rests on, 2026-05-04, found 2026-05-03",
        ),
        ('[disposition.x]\ndecision = "open"\nreason = "r"\ndate = 2026-05-04', "disposition.x", "missing key 'by'"),
        (
            '[disposition.x]\ndecision = "accepted"\nevidence = "e"\nreason = "r"\nby = "b"\ndate = 2026-05-04',
            "disposition.x.evidence",
            "'e'",
        ),
        ('[detector]\ntrained_list = "docs/none.txt"', None, "no such file"),
        (
            '[detector]\ntrained_list = "docs/empty.txt"',
            None,
            "empty.txt: expected a sequence in each line, found none",
        ),
        ('[detector]\ntrained_list = "../training.txt"', "detector.trained_list", "beside this one or below"),
    ],
)
def test_what_is_wrong_is_named(text, path, said, tmp_path):
    with pytest.raises(InputError) as caught:
        read_context(declared(tmp_path, text))
    assert said in str(caught.value)
    assert caught.value.place.path == path
    if path is not None:
        assert caught.value.place.file.endswith("case.toml")
        assert caught.value.place.line is not None


def test_today_is_that_of_the_clock_or_of_the_build_and_it_is_tomorrow_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "4102444800")  # 2100-01-01, behind the clock
    for day in ("2099-12-31", "2100-01-02"):
        read_context(declared(tmp_path, evidence("a", "model", date=day)))
    with pytest.raises(InputError, match="today is 2100-01-01, found 2100-01-03"):
        read_context(declared(tmp_path, evidence("a", "model", date="2100-01-03")))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    read_context(declared(tmp_path, evidence("a", "model")))


def test_a_day_before_a_document_was_written_is_none_to_judge_it_on(tmp_path, monkeypatch):
    """Whoever turns back the day of the build makes nothing valid again that has expired."""
    path = declared(tmp_path, evidence("model", valid_until="2026-06-01"))
    for seconds, fault in (
        ("1767225600", "dated 2026-05-04, after 2026-01-01, on which it is judged"),
        ("1777939200", ""),  # 2026-05-05
        ("1793000000", "expired on 2026-06-01"),
    ):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        found = read_context(path).declared
        assert found.evidence["model"].fault_on(found.day) == fault
        assert bool(found.shown("model")) == (not fault)


def test_an_answer_to_no_doubt_is_refused(folder):
    text = '[disposition."rounding/no_hit"]\ndecision = "open"\nreason = "r"\nby = "b"\ndate = 2026-05-04\n'
    with pytest.raises(InputError, match="rounded/no_hit"):
        built(folder, context=declared(folder, text), options=FEW)


def test_a_check_says_what_expired_after_the_build(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1793000000")  # October 2026
    entry = evidence("model", valid_until="2027-05-04")
    bundle = built(folder, context=declared(folder, entry), options=FEW)
    assert not [each for each in check_files("b", bundle.files).unchecked if "expired" in each]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1893456000")  # 2030
    report = check_files("b", bundle.files)
    assert report.sound
    assert "evidence model, which expired on 2027-05-04, after this bundle was built" in report.unchecked


def test_documents_known_by_their_hash_alone_are_named_as_not_checked(folder):
    entry = evidence("model", file="docs/away.pdf", copy=False, sha256="1" * 64)
    bundle = built(folder, context=declared(folder, entry, evidence("odd")), options=FEW)
    (told,) = [each for each in check_files("b", bundle.files).unchecked if each.startswith("documents")]
    assert told == "documents of which the bundle has the SHA-256 alone: model (docs/away.pdf)"
    content = case_of(bundle)
    assert [each["text"].endswith("; the file is not here") for each in content.values() if "away.pdf" in str(each)]


@pytest.mark.parametrize(
    ("own", "more"),
    [
        ("aeb.ltl", {}),
        ("aeb.toml", {}),
        ("day.json", {}),
        ("night_run.json", {}),
        ("another_run.json", {}),
        ("aeb.toml", {"copy": False}),
    ],
)
@pytest.mark.parametrize("blanks", [b"", b" \r\n"])
def test_what_a_case_is_about_is_no_evidence_for_it(own, more, blanks, folder):
    """By its content, whatever it is called: that a model is right is not shown by the model."""
    write_run(folder, "night", "night_run.json", options=FEW)
    write_run(folder, "day", "another_run.json", lambda content: content.update(title="forged"))
    raw = (folder / own).read_bytes()
    path = declared(folder, evidence("odd"), evidence("model", file="docs/validation.pdf", **more))
    (folder / "docs/validation.pdf").write_bytes(raw + blanks)
    if more:
        digest = hashlib.sha256(raw).hexdigest()
        path = declared(folder, evidence("model", file="docs/away.pdf", sha256=digest, **more))
    with pytest.raises(InputError, match=r"(validation|away)\.pdf' is .*, which the case is about, and") as caught:
        built(folder, "night_run.json", "night.json", context=path, options=FEW)
    assert caught.value.place.path == "evidence.model.file"
    assert caught.value.place.file == str(path)


def frames(folder, trained, tested):
    """Lists of frames as sha256sum writes them, of these contents."""
    (folder / "docs").mkdir(exist_ok=True)
    for name, contents in (("training", trained), ("test", tested)):
        lines = [f"{hashlib.sha256(each.encode()).hexdigest()}  {name}/{k}.png" for k, each in enumerate(contents)]
        (folder / f"docs/{name}.sha256").write_text("\n".join([*lines, ""]))


ENOUGH = "defghijklm"  # as many as the days, of a frame each
BY_FRAME = 'trained_frames = "docs/training.sha256"\ntested_frames = "docs/test.sha256"\n'


@pytest.mark.parametrize(
    ("more", "trained", "tested", "stands"),
    [
        ("", "abc", ENOUGH, ("supported", "documented")),
        ("", "abc", "defg", ("undeveloped", "untested")),  # fewer than were counted: others may be the same
        ('trained_on = ["train_*"]', "abc", "de", ("undeveloped", "declared")),
        ("", "abc", "bcd", ("violated", "declared")),  # the same frames under other names and in other sequences
        ('trained_on = ["train_*"]', "abc", "cde", ("violated", "declared")),
        ('trained_on = ["train_*"]', "abc", ENOUGH, ("supported", "documented")),
        ('trained_on = ["day_0?"]', "abc", "de", ("violated", "declared")),  # whatever the frames say
    ],
)
def test_frames_that_both_sets_have_are_found_by_their_hashes(more, trained, tested, stands, folder):
    frames(folder, trained, tested)
    for path in folder.rglob("day*.json"):
        path.write_text(path.read_text().replace('"frames": 1000000', '"frames": 1'))
    bundle = built(folder, context=declared(folder, head=f"[detector]\n{more}\n{BY_FRAME}"), options=FEW)
    content = case_of(bundle)
    assert goal_about(content, TRAINED) == stands
    text = bundle.files["case/gsn.yaml"].decode()
    count = len(set(trained) & set(tested))
    if count:
        assert f"{count} of the {len(tested)} listed frames it was tested on" in text
        assert "trained_on_tests/no_hit" in bundle.files["trace.csv"].decode()
    assert {"inputs/context/docs/training.sha256", "inputs/context/docs/test.sha256"} <= set(bundle.files)
    assert check_files("b", bundle.files).findings == ()


def test_the_list_of_tested_frames_is_the_one_that_was_counted(folder):
    """By its SHA-256 in the matrices: as many frames of another list show nothing."""
    frames(folder, "abc", ENOUGH)
    head = f'[detector]\ntrained_on = ["train_*"]\n{BY_FRAME}'
    counted = hashlib.sha256((folder / "docs/test.sha256").read_bytes()).hexdigest()
    for digest, stands in ((counted, ("supported", "documented")), ("0" * 64, ("undeveloped", "declared"))):
        for path in folder.rglob("day*.json"):
            content = json.loads(path.read_text().replace('"frames": 1000000', '"frames": 1'))
            path.write_text(json.dumps(content | {"version": 2, "data_set": {"frames": {digest: 10}}}))
        bundle = built(folder, context=declared(folder, head=head), options=FEW)
        assert goal_about(case_of(bundle), TRAINED) == stands


@pytest.mark.parametrize(
    ("head", "lines", "said"),
    [
        ('trained_frames = "docs/training.sha256"', "", "expected both trained_frames and tested_frames"),
        (BY_FRAME, "abc  a.png\n", "test.sha256:1: expected 64 hexadecimal digits"),
        (BY_FRAME, "0" * 64 + "\n\n" + "A" * 64 + "\n", "test.sha256:3: expected 64 hexadecimal digits"),
        (BY_FRAME, "\n", "test.sha256: expected the SHA-256 of a frame in each line, found none"),
        (BY_FRAME.replace("docs/test", "../test"), "", "beside this one or below"),
    ],
)
def test_lists_of_frames_that_are_none_are_refused(head, lines, said, tmp_path):
    frames(tmp_path, "abc", "def")
    (tmp_path / "docs/test.sha256").write_text(lines)
    with pytest.raises(InputError) as caught:
        read_context(declared(tmp_path, head=f"[detector]\n{head}\n"))
    assert said in str(caught.value)


def test_evidence_may_name_the_node_that_it_supports(folder):
    """Names of nodes are those of the exchange files, the same in every build."""
    context = read_context(declared(folder))
    case = build_case([run([requirement("stops", [point(0.5, "violated")])])], context, [], {})
    anchors = anchors_of(case)
    assert {duty: anchors[name] for duty, name in case.duties.items()} == {
        duty: node_of_duty(duty) for duty in case.duties
    }
    named = read_context(declared(folder, evidence("model", node_of_duty("model"))))
    assert named.declared.evidence["model"].claims == ("model",)
    bundle = built(folder, context=declared(folder, evidence("model", ["odd", node_of_duty("model")])), options=FEW)
    assert goal_about(case_of(bundle), "system model represents")[0] == "supported"
    assert goal_about(case_of(bundle), "used within its operational")[0] == "supported"
    with pytest.raises(InputError, match="expected one of requirements, model"):
        read_context(declared(folder, evidence("model", "G-00000000")))
