"""Records in a built package the commit that it was built from; all else is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).resolve().parent / "verifier"


class BuildWithCommit(build_py):
    """Writes `verifier/commit.txt`, which `verifier.evidence.identity` reads, beside the modules that were built."""

    def run(self):
        """Build, and record."""
        super().run()
        recorded = Path(self.build_lib) / PACKAGE.name / "commit.txt"
        recorded.unlink(missing_ok=True)
        commit = runpy.run_path(str(PACKAGE / "base" / "version.py"))["commit_of"](PACKAGE)
        if commit and not self.editable_mode:
            recorded.write_text(commit + "\n", encoding="ascii")


setup(cmdclass={"build_py": BuildWithCommit})
