"""Case, requirements and results for other tools: SACM by its metamodel, ReqIF, MLTE and Word by their libraries."""

import csv
import hashlib
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import docx
import pytest
import yaml
from gsn_cases import HOSTILE, case_of, large, small
from gsn_rules import listed
from reqif.parser import ReqIFParser
from reqif.unparser import ReqIFUnparser
from run_documents import point, requirement
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.bundle.build import Sources, build_bundle
from verifier.evidence.case.anchors import links_text, nodes_text
from verifier.evidence.exchange.reqif import reqif_into
from verifier.evidence.exchange.sacm import sacm_text
from verifier.study.options import RunOptions
from verifier.telling.blocks import Cell, Figure, Fold, Listing, Page, Paragraph, Section, Table
from verifier.telling.docx import docx_bytes
from verifier.telling.pictures import ruler

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
NAMES = {
    "sacm": "http://www.omg.org/spec/SACM/20220301",
    "xmi": "http://www.omg.org/spec/XMI/20131001",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
ID, TYPE = f"{{{NAMES['xmi']}}}id", f"{{{NAMES['xsi']}}}type"

# The metamodel, OMG formal/23-05-08, clauses 8 to 12: of each class that is used its attributes, its references with
# least and most targets and their class, and the elements that it may hold with theirs.
ARGUMENT = {
    "Claim",
    "ArgumentReasoning",
    "ArtifactReference",
    "AssertedInference",
    "AssertedEvidence",
    "AssertedContext",
}
ASSERTED = {"assertionDeclaration", "isCounter"}
MANY = 10**9
RELATION = {"source": (1, MANY, ARGUMENT), "target": (1, 1, ARGUMENT), "reasoning": (0, 1, {"ArgumentReasoning"}),
            "metaClaim": (0, MANY, {"Claim"})}  # fmt: skip
CLASSES = {
    "Claim": ({"assertionDeclaration"}, {"metaClaim": (0, MANY, {"Claim"})}),
    "ArgumentReasoning": (set(), {"structure": (0, 1, {"ArgumentPackage"})}),
    "ArtifactReference": (set(), {"referencedArtifactElement": (0, MANY, {"Artifact"})}),
    "Artifact": ({"version", "date"}, {}),
    "AssertedInference": (ASSERTED, RELATION),
    "AssertedEvidence": (ASSERTED, RELATION),
    "AssertedContext": (ASSERTED, RELATION),
    "AssuranceCasePackage": (set(), {}),
    "ArgumentPackage": (set(), {}),
    "ArtifactPackage": (set(), {}),
}
HOLDS = {
    "AssuranceCasePackage": {"argumentPackage": "ArgumentPackage", "artifactPackage": "ArtifactPackage"},
    "ArgumentPackage": {"argumentElement": None},
    "ArtifactPackage": {"artifactElement": None},
}
DECLARATIONS = {"asserted", "needsSupport", "assumed", "axiomatic", "defeated", "asCited"}


def sacm_faults(text):
    """Everything in which an XMI text departs from the metamodel."""
    root = ElementTree.fromstring(text)
    kinds, faults = {}, []

    def kind_of(element, role=None):
        stated = element.get(TYPE)
        return role if stated is None else stated.removeprefix("sacm:")

    def walk(element, kind):
        name = element.get(ID)
        if name in kinds:
            faults.append(f"{name} twice")
        kinds[name] = kind
        if kind not in CLASSES:
            faults.append(f"{kind} is no class")
            return
        if len(element.findall("name")) != 1 and not kind.startswith("Asserted"):
            faults.append(f"{name}: not one name")
        if len(element.findall("description")) > 1:
            faults.append(f"{name}: several descriptions")
        for child in element:
            if child.tag in HOLDS.get(kind, {}):
                walk(child, kind_of(child, HOLDS[kind][child.tag]))
            elif child.tag in ("description", "note"):
                shape = [[each.tag for each in child.iter()]] == [[child.tag, "content", "value"]]
                faults.extend([] if shape else [f"{name}: {child.tag}"])
            elif child.tag == "taggedValue":
                shape = [each.tag for each in child.iter()] == ["taggedValue", "key", "value", "content", "value"]
                faults.extend([] if shape else [f"{name}: taggedValue"])
            elif child.tag != "name":
                faults.append(f"{name}: {child.tag} in a {kind}")

    walk(root, root.tag.removeprefix(f"{{{NAMES['sacm']}}}"))
    for element in root.iter():
        kind = kinds.get(element.get(ID))
        if kind not in CLASSES or element.get(ID) is None:
            continue
        attributes, references = CLASSES[kind]
        stated = {key: value for key, value in element.attrib.items() if "}" not in key}
        faults += [f"{element.get(ID)}: attribute {key}" for key in stated if key not in {*attributes, *references}]
        for key, (least, most, allowed) in references.items():
            targets = stated.get(key, "").split()
            if not least <= len(targets) <= most:
                faults.append(f"{element.get(ID)}: {len(targets)} {key}")
            faults += [f"{element.get(ID)}: {key} {each}" for each in targets if kinds.get(each) not in allowed]
        if stated.get("assertionDeclaration", "asserted") not in DECLARATIONS:
            faults.append(f"{element.get(ID)}: {stated['assertionDeclaration']}")
        if stated.get("isCounter", "false") not in ("true", "false"):
            faults.append(f"{element.get(ID)}: isCounter")
    return faults


def sacm_links(text):
    """(from, to, kind) of every relation, as GSN has them: by a reasoning, two links and not one."""
    root = ElementTree.fromstring(text)
    for each in root.iter("argumentElement"):
        kind = each.get(TYPE).removeprefix("sacm:")
        if kind == "AssertedContext":
            yield each.get("target"), each.get("source"), "in context of"
        elif each.get("isCounter") == "true":
            yield each.get("source"), each.get("target"), "challenges"
        elif kind.startswith("Asserted"):
            over = each.get("reasoning")
            yield from {(each.get("target"), over, "supported by")} if over else ()
            for source in each.get("source").split():
                yield over or each.get("target"), source, "supported by"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle on disk, and its files."""
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "case.toml").write_text(
        '[document]\nid = "SC-12"\nissued = 2026-05-28\n[exposure.every]\nper_hour = 12\n'
    )
    build_bundle(Sources(*write_inputs(folder), folder / "case.toml"), folder / "bundle", FEW)
    files = {each.relative_to(folder / "bundle").as_posix(): each.read_bytes()
             for each in (folder / "bundle").rglob("*") if each.is_file()}  # fmt: skip
    return folder / "bundle", files


@pytest.fixture(scope="module")
def word(bundle):
    """The Word document of the bundle."""
    out = bundle[0].parent / "report.docx"
    assert main(["evidence", "export", str(bundle[0]), "-o", str(out)]) == 0
    return out


def yaml_links(text):
    """(from, to, kind) of every link of the YAML."""
    for name, each in yaml.safe_load(text).items():
        if name != "module":
            for key, kind in (
                ("supportedBy", "supported by"),
                ("inContextOf", "in context of"),
                ("challenges", "challenges"),
            ):
                yield from ((name, other, kind) for other in listed(each.get(key, [])))


def test_sacm_keeps_to_the_metamodel_and_has_the_nodes_and_links_of_the_yaml(bundle):
    text, whole = bundle[1]["exchange/case.sacm.xmi"].decode(), bundle[1]["case/gsn.yaml"].decode()
    assert sacm_faults(text) == []
    names = {each.get(ID) for each in ElementTree.fromstring(text).iter("argumentElement")
             if not each.get(TYPE).startswith("sacm:Asserted")}  # fmt: skip
    assert names == yaml.safe_load(whole).keys() - {"module"}
    assert sorted(set(sacm_links(text))) == sorted(yaml_links(whole))
    digests = {each.find("name").get("content"): each.find("taggedValue/content/value").get("content")
               for each in ElementTree.fromstring(text).iter("artifactElement")}  # fmt: skip
    assert digests.keys() <= bundle[1].keys()
    assert "results/run.json" in digests
    for path, digest in digests.items():
        assert digest == hashlib.sha256(bundle[1][path]).hexdigest()


def hostile():
    name = HOSTILE.replace("\ud800", "")
    return case_of([requirement(name, [point(0.5, "violated", (0.4, 0.6), environment=name)])], title=name)


@pytest.mark.parametrize("make", [small, large, hostile])
def test_every_case_is_sacm_and_tables(make):
    case = make()
    text = sacm_text(case, {})
    assert sacm_faults(text) == []
    rows = list(csv.DictReader(io.StringIO(links_text(case))))
    links = sorted((row["from"], row["to"], row["kind"]) for row in rows)
    assert sorted(set(sacm_links(text))) == links
    nodes = list(csv.DictReader(io.StringIO(nodes_text(case))))
    assert sorted(row["id"] for row in nodes) == sorted(each.id for each in case.elements)
    known = case.by_id
    declared = {each.get(ID): each.get("assertionDeclaration")
                for each in ElementTree.fromstring(text).iter("argumentElement")}  # fmt: skip
    for row in nodes:
        element = known[row["id"]]
        assert (row["undeveloped"] == "yes", row["defeated"] == "yes") == (element.undeveloped, element.defeated)
        if declared[element.id] == "asserted":
            assert not element.undeveloped
            assert not element.defeated
        if row["kind"] in ("assumption", "justification"):
            assert declared[element.id] == {"assumption": "assumed", "justification": "axiomatic"}[row["kind"]]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('target="G1"', 'target="G999"', "target G999"),
        ('source="', 'source="G1 G999 ', "source G999"),
        ('"sacm:Claim"', '"sacm:Goal"', "Goal is no class"),
        ('isCounter="false"', 'isCounter="no"', "isCounter"),
        ('assertionDeclaration="axiomatic"', 'assertionDeclaration="certain"', "certain"),
        ('<name lang="en" content="G1" />', "", "not one name"),
        ('xmi:id="G2"', 'xmi:id="G3"', "G3 twice"),
    ],
)
def test_the_metamodel_finds_what_departs_from_it(old, new, fault):
    text = sacm_text(small(), {})
    assert old in text
    assert any(fault in each for each in sacm_faults(text.replace(old, new, 1)))


def test_a_claim_point_is_the_meta_claim_of_its_inference(bundle):
    root = ElementTree.fromstring(bundle[1]["exchange/case.sacm.xmi"])
    texts = {each.get(ID): each.find("description/content/value").get("content")
             for each in root.iter("argumentElement") if each.find("description") is not None}  # fmt: skip
    meta = {name for each in root.iter("argumentElement") for name in each.get("metaClaim", "").split()}
    assert meta
    assert all("confidence argument of ACP" in texts[name] for name in meta)


def test_requirements_are_reqif_that_its_library_reads_and_writes_again(bundle, tmp_path):
    raw = bundle[1]["exchange/requirements.reqif"].decode()
    (tmp_path / "a.reqif").write_text(raw)
    read = ReqIFParser.parse(str(tmp_path / "a.reqif"))
    rows = list(csv.DictReader(io.StringIO(bundle[1]["trace.csv"].decode())))
    told = [{value.definition_ref.removeprefix("attribute-"): value.value for value in each.attributes}
            for each in read.core_content.req_if_content.spec_objects]  # fmt: skip
    assert told == [{key: value for key, value in row.items() if value} for row in rows]
    assert {row["requirement"] for row in rows} == {"stops", "drives_on", "asked"}
    (tmp_path / "b.reqif").write_text(ReqIFUnparser.unparse(read))
    again = ReqIFParser.parse(str(tmp_path / "b.reqif"))
    assert ReqIFUnparser.unparse(again) == ReqIFUnparser.unparse(read)


OWN = """<?xml version="1.0" encoding="UTF-8"?>
<REQ-IF xmlns="http://www.omg.org/spec/ReqIF/20110401/reqif.xsd">
  <THE-HEADER>
    <REQ-IF-HEADER IDENTIFIER="_h">
      <CREATION-TIME>2026-01-01T00:00:00Z</CREATION-TIME>
      <REQ-IF-TOOL-ID>own</REQ-IF-TOOL-ID>
      <REQ-IF-VERSION>1.0</REQ-IF-VERSION>
      <SOURCE-TOOL-ID>own</SOURCE-TOOL-ID>
      <TITLE>Own</TITLE>
    </REQ-IF-HEADER>
  </THE-HEADER>
  <CORE-CONTENT>
    <REQ-IF-CONTENT>
      <DATATYPES>
        <DATATYPE-DEFINITION-STRING IDENTIFIER="_d" LAST-CHANGE="2026-01-01T00:00:00Z" LONG-NAME="s" MAX-LENGTH="99"/>
      </DATATYPES>
      <SPEC-TYPES>
        <SPEC-OBJECT-TYPE IDENTIFIER="_t" LAST-CHANGE="2026-01-01T00:00:00Z" LONG-NAME="Req">
          <SPEC-ATTRIBUTES>
            <ATTRIBUTE-DEFINITION-STRING IDENTIFIER="_a" LAST-CHANGE="2026-01-01T00:00:00Z" LONG-NAME="ReqIF.Name">
              <TYPE>
                <DATATYPE-DEFINITION-STRING-REF>_d</DATATYPE-DEFINITION-STRING-REF>
              </TYPE>
            </ATTRIBUTE-DEFINITION-STRING>
          </SPEC-ATTRIBUTES>
        </SPEC-OBJECT-TYPE>
      </SPEC-TYPES>
      <SPEC-OBJECTS>
        <SPEC-OBJECT IDENTIFIER="_4711" LAST-CHANGE="2026-01-01T00:00:00Z" LONG-NAME="stops">
          <TYPE>
            <SPEC-OBJECT-TYPE-REF>_t</SPEC-OBJECT-TYPE-REF>
          </TYPE>
        </SPEC-OBJECT>
        <SPEC-OBJECT IDENTIFIER="_4712" LAST-CHANGE="2026-01-01T00:00:00Z">
          <VALUES>
            <ATTRIBUTE-VALUE-STRING THE-VALUE="drives_on">
              <DEFINITION>
                <ATTRIBUTE-DEFINITION-STRING-REF>_a</ATTRIBUTE-DEFINITION-STRING-REF>
              </DEFINITION>
            </ATTRIBUTE-VALUE-STRING>
          </VALUES>
          <TYPE>
            <SPEC-OBJECT-TYPE-REF>_t</SPEC-OBJECT-TYPE-REF>
          </TYPE>
        </SPEC-OBJECT>
        <SPEC-OBJECT IDENTIFIER="_4713" LAST-CHANGE="2026-01-01T00:00:00Z" LONG-NAME="others &amp; &lt;more>">
          <TYPE>
            <SPEC-OBJECT-TYPE-REF>_t</SPEC-OBJECT-TYPE-REF>
          </TYPE>
        </SPEC-OBJECT>
      </SPEC-OBJECTS>
    </REQ-IF-CONTENT>
  </CORE-CONTENT>
</REQ-IF>
"""


def objects(path):
    content = ReqIFParser.parse(str(path)).core_content.req_if_content
    names = {
        each.identifier: each.long_name for kind in content.spec_types for each in kind.attribute_definitions or ()
    }
    return {
        each.identifier: {names[value.definition_ref]: value.value for value in each.attributes}
        for each in content.spec_objects
    }


def test_strictdoc_reads_and_writes_requirements_without_losing_a_text(bundle, tmp_path):
    """Identifiers become its own."""
    command = shutil.which("strictdoc") or pytest.skip("strictdoc is not installed")
    for folder in ("documents", "written"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a.reqif").write_bytes(bundle[1]["exchange/requirements.reqif"])
    for step in (["convert", "a.reqif", "documents"], ["export", "documents", "--formats=reqif-sdoc"]):
        output = ["--output-dir", "written"] if step[0] == "export" else []
        subprocess.run([command, *step, *output], cwd=tmp_path, check=True, capture_output=True, timeout=120)

    def texts(path):
        objects = ReqIFParser.parse(str(path)).core_content.req_if_content.spec_objects
        names = (tuple(each.value for each in one.attributes if each.value) for one in objects)
        return [each for each in names if each]

    assert texts(next((tmp_path / "written").rglob("*.reqif"))) == texts(tmp_path / "a.reqif")


def test_verdicts_come_into_a_document_of_ones_own_whose_identifiers_stay(bundle, tmp_path, capsys):
    own, out, kept = (tmp_path / name for name in ("own.reqif", "out.reqif", "kept.reqif"))
    own.write_text(OWN)
    for given in (own, kept):  # writing into what was written replaces, and adds nothing
        assert main(["evidence", "export", str(bundle[0]), "--into", str(given), "-o", str(out)]) == 0
        found = objects(out)
        assert list(found) == ["_4711", "_4712", "_4713"]
        rows = {row["requirement"]: row for row in csv.DictReader(io.StringIO(bundle[1]["trace.csv"].decode()))}
        for name, requirement_name in (("_4711", "stops"), ("_4712", "drives_on")):
            told = {key.removeprefix("verifier-"): value for key, value in found[name].items() if "verifier" in key}
            assert told == {key: value for key, value in rows[requirement_name].items() if value}
        assert found["_4712"]["ReqIF.Name"] == "drives_on"
        assert found["_4713"] == {}
        assert 'LONG-NAME="others &amp; &lt;more>' in out.read_text().replace("&gt;", ">")
        assert given == own or out.read_bytes() == kept.read_bytes()
        shutil.copy(out, kept)
    assert "wrote" in capsys.readouterr().out


def test_what_an_earlier_export_said_of_a_requirement_goes_where_nothing_is_shown_of_it_any_more(
    bundle, tmp_path, capsys
):
    own, before, out = (tmp_path / name for name in ("own.reqif", "before.reqif", "out.reqif"))
    own.write_text(OWN)
    rows = [{"requirement": name, "status": "satisfied"} for name in ("stops", "others & <more>")]
    before.write_bytes(reqif_into(str(own), rows, ["requirement", "status"])[0])
    assert [name for name, each in objects(before).items() if each.get("verifier-status")] == ["_4711", "_4713"]
    assert main(["evidence", "export", str(bundle[0]), "--into", str(before), "-o", str(out)]) == 0
    assert [name for name, each in objects(out).items() if each.get("verifier-status")] == ["_4711", "_4712"]
    said = capsys.readouterr().out
    assert "1 requirement in it of which nothing is shown" in said
    assert "not in it: asked" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not xml", "expected ReqIF: "),
        (OWN.replace("stops", "a").replace("drives_on", "b"), "none is called stops"),
        (OWN.replace("drives_on", "stops"), "two requirements are called stops"),
        (OWN.replace("<SPEC-OBJECTS>", "<OTHER>"), "expected ReqIF"),
        (OWN.replace("2011", "1900"), "expected ReqIF, a root REQ-IF of"),
        (OWN.replace(">_t<", ">_u<"), "requirement _4711 is of no type that is there"),
        (
            f'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>{OWN[38:].replace("stops", "&b;")}',
            "expected ReqIF",
        ),
    ],
)
def test_a_document_that_does_not_fit_is_refused(text, said, tmp_path):
    (tmp_path / "own.reqif").write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        reqif_into(str(tmp_path / "own.reqif"), [{"requirement": "stops", "status": "violated"}], ["status"])


def test_export_refuses_what_it_cannot_write(bundle, tmp_path, capsys):
    own = tmp_path / "own.reqif"
    own.write_text(OWN)
    assert main(["evidence", "export", str(bundle[0]), "-o", str(tmp_path / "a.pdf")]) == 2
    assert main(["evidence", "export", str(bundle[0]), "-o", str(tmp_path / "a.reqif")]) == 2
    assert main(["evidence", "export", str(bundle[0]), "--into", str(own), "-o", str(tmp_path / "a.docx")]) == 2
    broken = tmp_path / "broken"
    shutil.copytree(bundle[0], broken)
    (broken / "trace.csv").write_text("nothing")
    assert main(["evidence", "export", str(broken), "-o", str(tmp_path / "a.docx")]) == 4
    assert "not exported, as the check finds trace.csv" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broken", "own.reqif"]


def test_the_word_document_has_report_and_case_and_is_opened_and_written_again(bundle, word, tmp_path):
    read = docx.Document(word)
    titles = [each.text for each in read.paragraphs if each.style.name == "Heading 1"]
    assert titles[0] == "Verdicts"
    assert titles[-2:] == ["Assurance case", "Provenance"]
    assert read.sections[0].header.paragraphs[0].text.startswith("SC-12, 2026-05-28, SHA-256 of inputs and results ")
    cells = {cell.text for each in read.tables for cell in each._cells}
    nodes = {row["id"] for row in csv.DictReader(io.StringIO(bundle[1]["exchange/nodes.csv"].decode()))}
    assert nodes <= cells
    assert read.paragraphs[-1].text == "End of the document."
    read.save(tmp_path / "again.docx")
    again = docx.Document(tmp_path / "again.docx")
    assert [each.text for each in again.paragraphs] == [each.text for each in read.paragraphs]
    assert len(again.tables) == len(read.tables) > 10


def test_a_word_document_opens_in_libreoffice(word, tmp_path):
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("there is no LibreOffice")
    options = ["--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--convert-to", "pdf", "--outdir"]
    subprocess.run([office, *options, tmp_path, word], check=True, capture_output=True, timeout=120)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_every_block_of_a_page_is_in_the_word_document():
    blocks = (
        Paragraph("a \x00 <b>", "note"),
        Paragraph("violated it is", "verdict", "violated"),
        Listing(("one", "two"), ordered=True),
        Table("caption", ("x", "y"), (("1", Cell("2")),)),
        Table("", (), ()),
        Fold("more", (Paragraph("inside"),)),
    )
    page = Page("Title", (Section("S", blocks, (Section("T", (Paragraph("deep"),)),)),), identity="SC-1")
    read = docx.Document(io.BytesIO(docx_bytes(page)))
    texts = [each.text for each in read.paragraphs]
    assert texts == ["Title", "S", "a \\x00 <b>", "violated it is [violated]", "one", "two", "caption", "more",
                     "inside", "T", "deep", "End of the document."]  # fmt: skip
    assert [[cell.text for cell in row.cells] for row in read.tables[0].rows] == [["x", "y"], ["1", "2"]]
    assert "PAGE" in read.sections[0].footer.paragraphs[0]._p.xml


def test_pictures_are_in_the_word_document_with_their_captions(bundle, word, monkeypatch):
    """As wide as on the page, and told to those who do not see them; without matplotlib the caption stands alone."""
    figure = Figure(ruler(0.5, None, None, 0.9, "P"), "P beside its target")
    page = Page("Title", (Section("S", (figure,)),))
    read = docx.Document(io.BytesIO(docx_bytes(page)))
    (shape,) = read.inline_shapes
    assert (shape.width, shape.height) == (440 * 9525, 66 * 9525)
    assert shape._inline.docPr.get("descr") == "P beside its target"
    assert [each.text for each in read.paragraphs] == [
        "Title",
        "S",
        "",
        "P beside its target",
        "End of the document.",
    ]
    assert len(docx.Document(word).inline_shapes) == bundle[1]["report/report.html"].count(b"<svg") > 3
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    read = docx.Document(io.BytesIO(docx_bytes(page)))
    assert [each.text for each in read.paragraphs[2:3]] == ["Picture: P beside its target"]


def test_report_is_written_as_a_word_document(bundle, tmp_path):
    out = tmp_path / "run.docx"
    assert main(["report", str(bundle[0] / "results/run.json"), "-o", str(out)]) == 0
    assert docx.Document(out).paragraphs[1].text == "Verdicts"


def test_without_its_library_a_format_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(UsageError, match=r"needs the library python-docx\n.*exchange"):
        docx_bytes(Page("t", ()))


def test_mlte_has_each_result_with_its_bounds(bundle):
    run = json.loads(bundle[1]["results/run.json"])
    artefacts = [json.loads(bundle[1][path]) for path in sorted(bundle[1]) if path.startswith("exchange/mlte/")]
    assert len(artefacts) == len(run["requirements"])
    for one, each in zip(run["requirements"], artefacts, strict=True):
        worst = min if (one["target"] or {}).get("comparison", ">=").startswith(">") else max
        values = [told["probability"] for told in one["points"]]
        assert each["body"]["value"]["real"] in (worst(values), max(values))
        assert each["header"]["identifier"] == f"evidence.{one['name']}.{one['planner']}"
        assert each["body"]["metadata"]["measurement"]["additional_data"]["verdict"] == one["verdict"]
        said = each["body"]["metadata"]["measurement"]["additional_data"]
        basis = run["settings"]["confidence"]["bounds"]
        assert said["bounds"] == f"{basis['name']}; assumed: {basis['condition']}; looks at the data: 1"


def test_mlte_loads_the_artefacts_by_its_own_library(bundle):
    model = pytest.importorskip("mlte.artifact.model", reason="mlte is not installed").ArtifactModel
    real = pytest.importorskip("mlte.evidence.types.real").Real
    for path in sorted(bundle[1]):
        if path.startswith("exchange/mlte/"):
            given = json.loads(bundle[1][path])
            evidence = real.from_model(model.from_json(given))
            assert evidence.value == given["body"]["value"]["real"]
            assert json.loads(evidence.to_model().to_json_string())["body"] == given["body"]
