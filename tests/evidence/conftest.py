"""A real browser for what people open, and results that many bundles share."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)


@pytest.fixture(scope="module")
def browser():
    """Chromium of the distribution; tests that need it skip where it, or what drives it, is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not BROWSER:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def known_results():
    """What was made for bundles: inputs and options -> results."""
    return {}


@pytest.fixture(scope="session")
def known_studies():
    """What was rebuilt for checks of bundles: inputs and options -> study; the last few."""
    return {}


@pytest.fixture(scope="module")
def results_made_once(known_results, known_studies):
    """Bundles of the same system, matrices and options share their results, and their checks what is rebuilt of them.

    For modules about what is declared, written or altered; that a second making gives the same bytes is shown in
    `test_bundle.py`, and that a check makes it again where nothing was made before in those without this. What is
    made on request (`recompute`) is made here too.
    """
    from verifier.cli.evidence import _RESULTS_BAR
    from verifier.evidence.bundle import build, check

    def known(rebuilt, storm, *progress):
        key = key_of(rebuilt.inputs, rebuilt.options)
        if progress[0] not in (iter, _RESULTS_BAR) or key is None:
            return make(rebuilt, storm, *progress)
        if key not in known_results:
            known_results[key] = make(rebuilt, storm)
        return known_results[key]

    def study_of(inputs, options):
        key = key_of(inputs, options)
        if key is None:
            return study(inputs, options)
        known_studies[key] = known_studies.pop(key, None) or study(inputs, options)
        for oldest in list(known_studies)[:-4]:
            del known_studies[oldest]
        return known_studies[key]

    make, study = build.make_results, check.Study.of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "make_results", known)
        patch.setattr(check, "Study", SimpleNamespace(of=study_of))
        yield


def key_of(inputs, options):
    """What tells inputs and options apart; None where planners are files of their own."""
    from verifier.systems.model_parts import files_of

    spec, model, matrices = inputs.spec, inputs.model, inputs.confusion
    names = tuple(Path(name).name for name in (spec.model, model.file, matrices.name))
    digests = spec.sha256, model.sha256, matrices.sha256
    return None if files_of(model.planners) else (digests, names, repr(options))


@pytest.fixture
def made_anew(monkeypatch):
    """What is asked for is made, whatever is known."""
    from verifier.evidence.bundle import build, check, making
    from verifier.study.case import Study

    monkeypatch.setattr(build, "make_results", making.make_results)
    monkeypatch.setattr(check, "Study", Study)
