"""The drawing in a real browser: its texts, in the browser's own fonts, lie within their shapes."""

import json
import re
import shutil
import subprocess

import pytest
from gsn_cases import HOSTILE, case_of, large, small
from run_documents import point, requirement

from verifier.evidence.case.sheets import gsn_svg

LOOK = """
<script>
const found = [];
for (const group of document.querySelectorAll('svg > g > g')) {
  let box = null;
  for (const child of group.children) {
    if (child.tagName === 'a') box = null;
    for (const each of child.tagName === 'a' ? child.children : [child]) {
      if (each.tagName === 'g') box = each.getBBox();
      if (each.tagName === 'text' && box) {
        const text = each.getBBox();
        const mark = ['A', 'J'].includes(each.textContent);
        if (!mark && (text.x < box.x || text.x + text.width > box.x + box.width ||
                      text.y < box.y || text.y + text.height > box.y + box.height))
          found.push(each.textContent);
      }
    }
  }
}
document.title = JSON.stringify({outside: found, texts: document.querySelectorAll('svg > g > g text').length});
</script>
"""


def seen(svg, tmp_path):
    """What the browser says of a drawing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed")
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{svg}{LOOK}", encoding="utf-8")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
    ]
    done = subprocess.run([browser, *options, page.as_uri()], capture_output=True, timeout=100, check=True)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout.decode())
    return json.loads(title[1].replace("&quot;", '"').replace("&amp;", "&"))


@pytest.mark.parametrize("make", [small, large])
def test_texts_lie_within_their_shapes(make, tmp_path):
    found = seen(gsn_svg(make()), tmp_path)
    assert found["texts"] > 100
    assert found["outside"] == []


def test_nothing_hostile_runs(tmp_path):
    name = HOSTILE.replace("\ud800", "") + "<script>document.title='gone'</script>"
    svg = gsn_svg(case_of([requirement(name, [point(0.5, "violated", (0.4, 0.6), environment=name)])], title=name))
    found = seen(svg, tmp_path)  # reads the title that our own script sets last; an alert would block it
    assert found["outside"] == []
