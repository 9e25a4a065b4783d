"""How fast and how light reports are: `pytest tests/benchmarks/test_report.py --benchmark -s` prints a line per case.

The peer, measured in the same process, is pandas' plain HTML table of the same rows, without sections, pictures,
sorting or escaping beyond the cells; it needs the library, and the case is skipped without it.
"""

from __future__ import annotations

import json
import time

import pytest
from made_runs import point, requirement, run_content, uncertainty

from verifier.base.checksums import with_checksums
from verifier.evidence.documents import checked_document
from verifier.evidence.report import csv_report, html_report, markdown_report


def made_run(requirements: int, scenarios: int) -> bytes:
    """A run with so many requirements, each in so many scenarios, all with intervals and targets."""
    sure = uncertainty(0.14, 0.262, 0.12, 0.292)
    found = [
        requirement(
            f"requirement_{k}",
            "violated",
            [
                point("violated", 0.2 + n / 1e4, uncertainty=sure, initial={"x": n, "v": n % 7})
                for n in range(scenarios)
            ],
        )
        for k in range(requirements)
    ]
    return with_checksums(json.dumps(run_content(found, "violated"), indent=2)).encode()


@pytest.mark.benchmark
@pytest.mark.parametrize(("requirements", "scenarios"), [(1000, 1), (100, 10), (10, 100), (1, 1000)])
def test_a_thousand_requirements_and_scenarios(requirements: int, scenarios: int) -> None:
    pandas = pytest.importorskip("pandas")
    raw = made_run(requirements, scenarios)
    start = time.perf_counter()
    document = checked_document(json.loads(raw), raw, "run.json")
    read = time.perf_counter()
    page = html_report([document])
    written = time.perf_counter()
    others = markdown_report([document]), csv_report([document])
    everything = time.perf_counter()
    rows = pandas.json_normalize(document.content["requirements"], "points", ["name", "planner", "formula"])
    begun = time.perf_counter()
    peer = rows.to_html()
    peer_s = time.perf_counter() - begun
    size = len(page.encode())
    print(
        f"\n{requirements} requirements x {scenarios} scenarios: HTML {written - read:.3g} s, with reading "
        f"{written - start:.3g} s (target <= 3 s), {size / 1e6:.3g} MB (target <= 5 MB); Markdown and CSV "
        f"{everything - written:.3g} s, {sum(map(len, others)) / 1e6:.3g} MB; pandas.to_html {peer_s:.3g} s, "
        f"{len(peer) / 1e6:.3g} MB; ratio {(written - read) / peer_s:.3g} in time, {size / len(peer):.3g} in bytes"
    )
    assert written - start <= 3
    assert size <= 5e6
