"""Building this package: what is built records the commit that it is built from. Only setuptools loads this."""

import runpy
from pathlib import Path

from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).resolve().parents[1]


class BuildWithCommit(build_py):
    """Writes `verifier/commit.txt`, which `verifier.evidence.identity` reads, beside the modules that were built."""

    def run(self) -> None:
        """Build, and record."""
        super().run()
        recorded = Path(self.build_lib) / PACKAGE.name / "commit.txt"
        recorded.unlink(missing_ok=True)
        # By path: while it is built the package cannot be imported.
        commit = runpy.run_path(str(PACKAGE / "base" / "commit.py"))["commit_of"](PACKAGE)
        if commit and not self.editable_mode:
            recorded.write_text(commit + "\n", encoding="ascii")
