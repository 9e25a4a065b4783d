"""Files and folders of object stores (`s3://`, `gs://`, whatever fsspec reads) as copies on this machine.

Readers want files. So as much of a store as is read is copied into a temporary folder, and messages name addresses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from verifier.base.errors import InputError, Place, files_named, first_line
from verifier.perception.detections.parquetfiles import filesystem, is_address
from verifier.perception.settings import IMAGE_SUFFIXES, CountSettings

FOLDERS = ("annotations", "detections")
FIELDS = (*FOLDERS, "frames", "class_map", "distance_file", "calibration", "depth_folder")
"""Settings that may be addresses."""


@dataclass(frozen=True)
class Copies:
    """Settings with paths of this machine, and the address of each."""

    settings: CountSettings
    addresses: Mapping[str, str]

    def told(self, text: str) -> str:
        """The text with addresses in place of paths."""
        for path, address in self.addresses.items():
            text = text.replace(path, address)
        return text

    def here(self, address: str) -> Iterator[str]:
        """The copies of a file; an address that is none is a path already."""
        if not is_address(address):
            yield address
        for path, folder in self.addresses.items():
            if address.startswith(f"{folder}/"):
                yield path + address[len(folder) :]


@contextlib.contextmanager
def copied(
    settings: CountSettings,
    shared: Container[str] = (),
    mine: Container[str] = (),
    names_only: bool = False,
) -> Iterator[Copies]:
    """The settings with copies of what is in stores.

    Args:
        settings: of `verify confusion`.
        shared: addresses of files that are shared out, of which only `mine` are copied.
        mine: some of them.
        names_only: whether files are empty, and of annotations and detections alone.

    Raises:
        InputError: nothing there, or it cannot be read.
        UsageError: nothing reads such an address.
    """
    given = {name: str(getattr(settings, name) or "") for name in (FOLDERS if names_only else FIELDS)}
    given = {name: address.rstrip("/") for name, address in given.items() if is_address(address)}
    with TemporaryDirectory() if given else contextlib.nullcontext("") as folder:
        own = {name: Path(folder, name, PurePosixPath(address).name) for name, address in given.items()}
        for name, address in given.items():
            images = settings.format == "yolo" or name not in FOLDERS
            _copy(address, own[name], shared, mine, names_only, images)
        addresses = {str(own[name]): address for name, address in given.items()}
        paths: dict[str, Any] = {name: str(path) for name, path in own.items()}
        copies = Copies(replace(settings, **paths), addresses)
        with files_named(copies.told):
            yield copies


def _copy(
    address: str, target: Path, shared: Container[str], mine: Container[str], names_only: bool, images: bool
) -> None:
    """A file, or all files of a folder; of what readers look at by name alone there are empty files."""
    store = filesystem(address)
    try:
        store.invalidate_cache()  # a process that lives long sees what is there now
        root = store._strip_protocol(address)
        found = [root] if store.isfile(address) else store.find(address)
        remote, local = list[str](), list[str]()
        for each in found:
            own = store.unstrip_protocol(each)
            if own in shared and own not in mine and not names_only:
                continue
            path = target if each == root else target / each[len(root) + 1 :]
            path.parent.mkdir(parents=True, exist_ok=True)
            looked_at = path.suffix.lower() in IMAGE_SUFFIXES and not images
            if names_only or looked_at or "sensors" in path.relative_to(target).parts:
                path.touch()
            else:
                remote.append(each)
                local.append(str(path))
        if remote:
            store.get(remote, local)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or first_line(error)}", Place(address)) from None
    if not found:
        raise InputError("no such file", Place(address))
