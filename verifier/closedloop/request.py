"""What `verify closed-loop` is asked for: the logs that its choices name, and everything found in them."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from verifier.base.documents import InputFile
from verifier.base.errors import UsageError, shown
from verifier.base.files import hashes_of_files, read_bytes
from verifier.closedloop.data import ListedFile, data_record, input_files, logs_and_validation
from verifier.closedloop.logs import Logs
from verifier.closedloop.settings import ClosedLoopSettings
from verifier.closedloop.study import Progress, study, study_trace
from verifier.closedloop.study_settings import StudySettings, study_settings
from verifier.closedloop.traces import Trace
from verifier.closedloop.trade_offs import TradeOffs
from verifier.study.provenance import own_versions


def trade_offs(settings: ClosedLoopSettings, progress: Progress = iter) -> TradeOffs:
    """Everything that `verify closed-loop` finds.

    Args:
        settings: every choice; outputs that they name are not written.
        progress: wraps the list of sources, for a progress bar.

    Raises:
        VerifierError: see `verifier.base.errors`; each says what to do.
    """
    return ClosedLoopRequest(settings).trade_offs(progress)


class ClosedLoopRequest:
    """A study that settings ask for, step by step: its choices are checked at once, its logs read when asked for.

    Attributes:
        settings: every choice, as it was made.
        study: the choices of the study itself.

    Raises:
        UsageError: as `verifier.closedloop.study_settings.study_settings`.
    """

    def __init__(self, settings: ClosedLoopSettings) -> None:
        self.settings = settings
        self.study = study_settings(settings)

    @cached_property
    def files(self) -> tuple[ListedFile, ...]:
        """Every file that the logs are read from; listed once."""
        return tuple(input_files(self.settings))

    @cached_property
    def data(self) -> tuple[Logs, Logs | None]:
        """The logs to judge by, and those that standardize the scores, None where they are the same; read once.

        Raises:
            UsageError, InputError: as `verifier.closedloop.data.logs_and_validation`; or matching asks for rectangles
                that the logs have not.
        """
        return self._read[:2]

    @cached_property
    def _read(self) -> tuple[Logs, Logs | None, tuple[InputFile, ...]]:
        """As `data`, with the files as they were when they were read; one that no reader opened as it is now."""
        files = self.files
        with hashes_of_files() as hashes:
            logs, validation = logs_and_validation(self.settings)
            for file in files:
                if os.path.realpath(file.path) not in hashes:
                    read_bytes(file.path)
        _check_rectangles(logs, self.settings)
        inputs = (InputFile(file.role, file.name, hashes[os.path.realpath(file.path)]) for file in files)
        return logs, validation, tuple(inputs)

    def trace(self) -> Trace | None:
        """The steps of the run that the settings name, None where they name none; see `study_trace`."""
        return None if self.settings.trace is None else _trace(self.settings.trace[0], *self.data, self.study)

    def trade_offs(self, progress: Progress = iter) -> TradeOffs:
        """Everything found; see the function of this name."""
        logs, validation, files = self._read
        found = study(logs, validation, self.study, progress)
        return TradeOffs(
            f"{Path(self.settings.logs).resolve().name}: {', '.join(found.tables[0].detectors)}",
            tuple(map(vars, files)),
            data_record(self.settings) | self.study.record(),
            own_versions(),
            found.remarks,
            found.tables,
            found.logs,
            found.second,
        )


def _check_rectangles(logs: Logs, settings: ClosedLoopSettings) -> None:
    """Refuse to match by rectangles what has none; UsageError."""
    if settings.match_distance is None and logs.person_box_2d is None and len(logs.person_image):
        raise UsageError(
            "these logs have no rectangles in the image: say from which distance on the ground on a detection "
            "matches a person, --match-distance M"
        )


def _trace(run: str, logs: Logs, validation: Logs | None, study: StudySettings) -> Trace:
    """The steps of one run, LOG,SOURCE,SENSITIVITY or LOG,truth."""
    refusal = UsageError(f"--trace: expected LOG,SOURCE,SENSITIVITY or LOG,truth, got {shown(run)}")
    log, comma, last = run.rpartition(",")
    if last == "truth" and comma:
        return study_trace(logs, validation, study, log, None, None)
    log, comma, source = log.rpartition(",")
    try:
        level = float(last)
    except ValueError:
        raise refusal from None
    if not comma or not level >= 0:
        raise refusal
    return study_trace(logs, validation, study, log, source, level)
