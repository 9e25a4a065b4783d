"""What `pip install .` installs: built from a copy of the project by its own build backend, and run from there."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "from setuptools import build_meta; build_meta.build_wheel('dist')"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The files of the wheel of a copy that is committed, unpacked, and the commit."""
    project, place = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "verifier", project / "verifier", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, project)
    own = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*own, *words], cwd=project, check=True)
    made = subprocess.run([sys.executable, "-c", BUILD], cwd=project, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(next((project / "dist").glob("*.whl"))) as wheel:
        wheel.extractall(place)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=project, capture_output=True, text=True, check=True)
    return place, head.stdout.strip()


def test_every_file_of_the_package_is_installed_and_the_commit_beside_them(built):
    place, commit = built
    installed = {path.relative_to(place) for path in (place / "verifier").rglob("*") if path.is_file()}
    there = subprocess.run(["git", "ls-files", "verifier"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    links = [Path(name) for name in there if (ROOT / name).is_symlink()]
    linked = {link / path.name for link in links for path in (ROOT / link).iterdir()}
    assert {*map(Path, there), *linked} - set(links) <= installed
    assert (place / "verifier" / "commit.txt").read_text() == commit + "\n"


def test_the_main_job_runs_from_what_is_installed(built, tmp_path):
    place, _ = built
    run = ["-c", f"import sys; sys.path.insert(0, {str(place)!r}); from verifier.cli import main; sys.exit(main())"]
    spec, counts = ROOT / "specs/car_pedestrian.ltl", ROOT / "examples/nuscenes_yolov3_class.json"
    asked = ["run", str(spec), "--cm", str(counts)]
    done = subprocess.run([sys.executable, "-P", *run, *asked], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("verdict: violated, if items are independent\n")
