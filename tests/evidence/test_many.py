"""What people state may be thousands of entries: work grows as their number does, not as its square."""

import pytest
from counted_work import lines_run
from run_documents import matrices, point, requirement, run

from verifier.evidence.case.building import build_case
from verifier.evidence.case.elements import gsn_yaml, module_texts
from verifier.evidence.case.sheets import gsn_html, gsn_svg
from verifier.evidence.context import CaseContext
from verifier.evidence.declarations import Declarations, Evidence
from verifier.evidence.defeaters.about_data import shared_sequences
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.exchange.sacm import sacm_text
from verifier.evidence.status import Grade


def stated(number, **more):
    """A context with as many documents for one claim."""
    proofs = {
        f"e{k}": Evidence(name=f"e{k}", claims=("model",), title=f"T{k}", file=f"{k}.txt", sha256=f"{k:064x}", **more)
        for k in range(number)
    }
    return CaseContext(declared=Declarations(proofs))


def argued(context):
    given = run([requirement("stops", [point(0.97, "satisfied", (0.93, 0.99))])], round_transitions=3)
    case = build_case([given], context, find_defeaters([given], context, {}), {})
    for write in (gsn_html, gsn_svg, gsn_yaml, module_texts):
        write(case)
    sacm_text(case, {})


@pytest.mark.parametrize("more", [{}, {"fault": "the file is missing"}, {"grade": Grade.DECLARED}])
def test_many_documents_for_one_claim(more):
    """Whole cases, on sheets and in one piece: with 3,000 a bundle did not end in ten minutes."""
    few, many = (lines_run(lambda n=n: argued(stated(n, **more))) for n in (40, 320))
    assert many < 1.1 * 8 * few


def test_many_names_of_training_sequences():
    """With 100,000 a bundle did not end in five minutes."""
    table = matrices(sequences=[{"name": f"day_{k:02}", "frames": 1, "counts": [[0, 0, 0, 1]]} for k in range(100)])
    few, many = (lines_run(lambda n=n: shared_sequences([table], [f"t_{k}" for k in range(n)])) for n in (500, 4000))
    assert many < 1.1 * 8 * few
