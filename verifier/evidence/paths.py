r"""Names of files in a bundle: paths that mean the same on every system, and can never lead out of the bundle.

| rule                                             | because                                                     |
|--------------------------------------------------|-------------------------------------------------------------|
| relative, parts between single `/`, no `.`, `..` | nothing outside the bundle can be named                     |
| no `\ : * ? " < > |`, nothing unprintable         | each has a meaning of its own on some system                |
| no part ends in a dot or a space, none is a name of a device such as `NUL` | Windows reads another name        |
| composed characters (Unicode NFC)                | one name, one spelling                                      |
| no two names equal without regard to case        | such files overwrite each other on some systems             |
"""

import re
import unicodedata
from collections.abc import Iterable

from verifier.base.errors import InputError, Place, shown

LONGEST_PART = 200
"""Bytes of one part of a path."""
LONGEST_PATH = 400
_ALIKE = str.maketrans("авсԁеһіјкмнорԛѕтѵԝхуαβεζηικμνορτυχγ", "abcdehijkmhopqstvwxyabezhikmvoptuxy")
"""Letters of other scripts -> the Latin ones that they look like."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00\ufe01\ufe0e\ufe0f")
"""What counts as printable and prints nothing."""
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


def collision_in(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths that some systems take for the same, or of which one would be a folder of the other; None if none."""
    given = list(paths)
    seen: dict[str, str] = {}
    for path in given:
        if (other := seen.setdefault(folded(path), path)) != path:
            return other, path
    if len(set(given)) < len(given):
        twice = next(path for path in given if given.count(path) > 1)
        return twice, twice
    for path in given:
        parts = folded(path).split("/")
        for depth in range(1, len(parts)):
            if (above := seen.get("/".join(parts[:depth]))) is not None:
                return above, path
    return None


def check_paths(paths: Iterable[str], bundle: str | None = None) -> None:
    """Refuse paths that cannot stand in a bundle. Raises InputError: naming the first of them."""
    given = list(paths)
    for path in given:
        if (fault := fault_of(path)) is not None:
            raise InputError(f"{shown(path)}: {fault}", Place(bundle))
    if (clash := collision_in(given)) is not None:
        raise InputError(f"{shown(clash[0])} and {shown(clash[1])} cannot stand beside each other", Place(bundle))


def folded(path: str) -> str:
    """The same for names that some system takes for one: letters in both cases, characters of several forms."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def as_seen(name: str) -> str:
    """The same for names that people take for one: as `folded`, with letters of other scripts that look alike, and
    without what cannot be seen."""
    signs = (text for text in " ".join(folded(name).split()) if text.isprintable() and text not in _UNSEEN)
    return "".join(signs).translate(_ALIKE).strip()
