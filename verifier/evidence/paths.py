r"""Names of files in a bundle and in what it cites: the same on every system, and none leads out of it.

| rule                                             | because                                                     |
|--------------------------------------------------|-------------------------------------------------------------|
| relative, parts between single `/`, no `.`, `..` | nothing outside the bundle can be named                     |
| no `\ : * ? " < > |`, nothing unprintable         | each has a meaning of its own on some system                |
| no part ends in a dot or a space, none is a name of a device such as `NUL` | Windows reads another name        |
| composed characters (Unicode NFC)                | one name, one spelling                                      |
| no two names equal without regard to case        | such files overwrite each other on some systems             |
"""

from __future__ import annotations

import re
import unicodedata

LONGEST_PART = 200
"""Bytes of one part of a path."""
LONGEST_PATH = 400
_FORBIDDEN = set('\\:*?"<>|')
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def fault_of(path: str) -> str | None:
    """What is wrong with a path inside a bundle; None where nothing is."""
    if not path or path.startswith("/"):
        return "an absolute or empty name"
    if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
        return f"a name of more than {LONGEST_PATH} bytes"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "a name that leads elsewhere: a part of it is empty, '.' or '..'"
        if not part.isprintable() or _FORBIDDEN & set(part):
            return "a character that not every system accepts in a name"
        if part != part.strip(" ") or part.endswith(".") or _DEVICES.fullmatch(part):
            return "a name that some systems read as another one"
        if len(part.encode()) > LONGEST_PART:
            return f"a part of more than {LONGEST_PART} bytes"
    if unicodedata.normalize("NFC", path) != path:
        return "characters that are not composed (Unicode NFC)"
    return None
