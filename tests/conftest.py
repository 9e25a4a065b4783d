"""Options and fixtures of the whole suite."""

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

try:
    import resource
except ImportError:  # not on every system
    resource = None

ROOT = Path(__file__).resolve().parent.parent

# The plain suite decides whether a change may land, so it draws the same examples each time; slow runs draw new ones.
for profile, examples, same in (("plain", 25, True), ("slow", 300, False)):
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        derandomize=same,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("plain")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the slow tests (minutes)")
    parser.addoption("--benchmark", action="store_true", help="also run the benchmarks; use -s to see their ratios")


def pytest_configure(config):
    settings.load_profile("slow" if config.getoption("--slow") else "plain")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is made while tests are collected stays: nobody looks for garbage in it, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    met = Counter()
    for item in items:
        share = item.get_closest_marker("every")
        if share is not None and met[item.nodeid.partition("[")[0]] % share.args[0]:
            item.add_marker("slow")
        met[item.nodeid.partition("[")[0]] += 1
    for marker in ("slow", "benchmark"):
        if not config.getoption(f"--{marker}"):
            skip = pytest.mark.skip(reason=f"runs with --{marker}")
            for item in items:
                if marker in item.keywords:
                    item.add_marker(skip)


@pytest.fixture(autouse=True)
def limits_end_with_the_test():
    """Whoever leaves a limit on memory behind fails, and not the hundreds of tests after it."""
    if resource is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield
    left = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (before[0], left[1]))
    assert left == before


@pytest.fixture(autouse=True, scope="session")
def models_read_once():
    """A file of a model that is as it was when a command read it last is not read again, but for one with planners
    in files of their own, which may have changed."""
    from verifier.base.files import read_text
    from verifier.study import inputs
    from verifier.systems.model_parts import files_of

    known = {}
    read = inputs.read_model

    def read_once(path):
        key = str(path), read_text(path)[1]
        if key not in known:
            known[key] = read(path)
        model = known[key]
        if files_of(model.planners) or len(known) > 50:
            del known[key]
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "read_model", read_once)
        yield


@pytest.fixture(autouse=True, scope="session")
def wide_terminal():
    """Each text stands in one line here: tests of what is said do not depend on where lines are broken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        yield


@pytest.fixture
def no_terminal(monkeypatch):
    """Lines are as wide as where no terminal is."""
    monkeypatch.delenv("COLUMNS")


@pytest.fixture(scope="session")
def storm():
    """One Storm for all tests that only ask it: each that is started loads it again."""
    from verifier.checking.process import StormProcess

    with StormProcess() as process:
        yield process


@pytest.fixture(scope="session")
def thorough(pytestconfig) -> bool:
    """Whether the slow suite runs: a test that loops over cases then takes all of them, and otherwise some."""
    return bool(pytestconfig.getoption("--slow"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference numbers and data beside the project; tests that need it skip where it is missing."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the reference folder is not there")
    return folder


@pytest.fixture(scope="session")
def idle_storms():
    """Storm workers without work: where they were started (process, modules, environment), and they."""
    idle = []
    yield idle
    for _, worker in idle:
        worker.end()


@pytest.fixture(autouse=True, scope="module")
def kept_storm(request, idle_storms):
    """Storm is loaded once for many commands, where neither Storm's door is tested nor how often it is opened.

    A worker that has answered all it was asked is what the next command is given, if that would start its own with
    the same modules and environment. One that fails, is late or is forged ends as ever.
    """
    if request.path.parent.name == "checking" or request.path.name == "test_built_once.py":
        yield
        return
    from verifier.checking import process

    def origin():
        others = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        return os.getpid(), tuple(sys.path), others

    class Worker(process.Worker):
        """A worker that knows where it was started."""

        def __init__(self):
            self.origin = origin()
            super().__init__()

    def worker():
        here = origin()
        for at, (started, kept) in enumerate(idle_storms):
            if started == here and kept.is_alive:
                del idle_storms[at]
                return kept
        return Worker()

    def left(storm, *error):
        if hasattr(storm._worker, "origin"):
            idle_storms.append((storm._worker.origin, storm._worker))
            storm._worker = None
            for _, oldest in idle_storms[:-2]:
                oldest.end()
            del idle_storms[:-2]
        leave(storm, *error)

    leave = process.StormProcess.__exit__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "Worker", worker)
        patch.setattr(process.StormProcess, "__exit__", left)
        yield
