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
