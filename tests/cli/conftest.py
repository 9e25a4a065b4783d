"""The command as a user calls it, without a process of its own."""

import pytest

from verifier.cli import main


@pytest.fixture
def verify(capfd):
    """Run `verify` with some arguments: exit code, standard output, standard error."""

    def call(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stop:
            code = stop.code
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def shipped(root, monkeypatch, verify):
    """What runs a command of some name on the shipped spec and matrices, or others, in the project's folder."""
    monkeypatch.chdir(root)

    def command(name):
        def call(*arguments, cm="examples/nuscenes_yolov3_class.json", spec="specs/car_pedestrian.ltl"):
            return verify(name, spec, *(["--cm", cm] if cm else []), *arguments)

        return call

    return command
