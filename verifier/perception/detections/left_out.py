"""What is left out while reading: how to ask for it, and how many annotations it was."""


def ledger(read: int, sound: int, chosen: int, kept: int, regions: int) -> dict[str, int]:
    """Of how many annotations that were read, how many are left out while reading, and why."""
    return {
        "read": read,
        "faulty or in no known frame": read - sound,
        "in frames that are left out": sound - chosen,
        "of classes that are left out": chosen - kept - regions,
        "regions that are not judged": regions,
    }


def ignore_hint(fault: str) -> str:
    """How to leave out what has this kind of fault."""
    return f"--ignore {fault} (in Python ignore=({fault!r},)) leaves these out and counts them"
