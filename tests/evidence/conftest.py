"""A real browser for what people open, and results that many bundles share."""

import shutil
from pathlib import Path

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


@pytest.fixture(scope="module")
def results_made_once(known_results):
    """Bundles of the same system, matrices and options, which differ in what is declared, share their results.

    For modules about what is declared; that a second making gives the same bytes is shown in `test_bundle.py`. Every
    check makes them again, here too.
    """
    from verifier.evidence.bundle import build
    from verifier.systems.model_parts import files_of

    make = build.make_results

    def known(rebuilt, storm, *progress):
        spec, model, matrices = rebuilt.inputs.spec, rebuilt.inputs.model, rebuilt.inputs.confusion
        if progress != (iter,) or files_of(model.planners):
            return make(rebuilt, storm, *progress)
        names = tuple(Path(name).name for name in (spec.model, model.file, matrices.name))
        key = (spec.sha256, model.sha256, matrices.sha256, names, repr(rebuilt.options))
        if key not in known_results:
            known_results[key] = make(rebuilt, storm)
        return known_results[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "make_results", known)
        yield
