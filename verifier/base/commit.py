"""The commit of the repository; the package is built with it by path, so it imports the standard library only."""

import subprocess
from pathlib import Path


def commit_of(package: Path) -> str:
    """The commit of the repository whose folder holds a package, `+` where files of the package differ from it.

    Empty where there is no such repository, or git cannot read it.
    """
    if not (package.parent / ".git").exists():
        return ""
    git = ("git", "-C", str(package.parent))
    try:
        head, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", str(package)))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")
