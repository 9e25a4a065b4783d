"""Settings as options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Literal

import pytest

from verifier.base.errors import UsageError
from verifier.base.files import named_file, named_files
from verifier.base.options import Option, Part, add_options, options_of, settings_of

Rule = Literal["by_hand", "at-random"]


def pair(text):
    name, _, value = text.partition("=")
    return name, int(value)


@dataclass(frozen=True)
class Uncertainty:
    level: Annotated[float, Option("of intervals", name="confidence", metavar="LEVEL", group="how sure")] = 0.95
    shift: Annotated[Fraction, Option("of rates", parse=Fraction)] = Fraction(0)

    def __post_init__(self):
        if not 0 < self.level < 1:
            raise UsageError("no level")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    files: Annotated[tuple[str, ...], Option("read", metavar="FILE", positional=True, role="file")]
    output: Annotated[str, Option("written", also=("-o",), metavar="FILE", role="output", alone=True)]
    draws: Annotated[int | None, Option("made", metavar="N", group="drawing")] = None
    rule: Annotated[Rule, Option("one of {choices}", metavar="RULE")] = "by_hand"
    kept: Annotated[tuple[Rule, ...], Option("of {choices}; repeat")] = ()
    constants: Annotated[Mapping[str, int], Option("constants", name="set", metavar="NAME=N", parse=pair)] = field(
        default_factory=dict
    )
    trace: Annotated[tuple[str, str] | None, Option("of a run", metavar=("RUN", "FILE"))] = None
    aware: Annotated[bool | None, Option("of classes", opposite=("blind", "to classes"))] = None
    plain: Annotated[bool, Option("without colour")] = False
    uncertainty: Annotated[Uncertainty | None, Part(absent=Option("the point alone", name="point-only"))] = (
        Uncertainty()
    )
    inner: int = 3


def typed(text, settings=Chosen):
    parser = argparse.ArgumentParser(prog="test")
    add_options(parser, settings)
    return settings_of(parser.parse_args(text.split()), settings)


@dataclass(frozen=True)
class Drawn:
    plot: Annotated[str | None, Option("drawn")] = None
    plot_scale: Annotated[int, Option("of it", of="plot")] = 1


@pytest.mark.parametrize(
    ("text", "settings", "refusal"),
    [
        ("--plot-scale 2", Drawn, "--plot-scale belongs to --plot"),
        ("a -o c --point-only --confidence 0.9", Chosen, "--confidence needs what --point-only leaves out: name one"),
        ("a -o c --shift 1/2 --point-only", Chosen, "--shift needs what --point-only leaves out: name one"),
    ],
)
def test_options_of_which_nothing_would_come_are_refused(text, settings, refusal):
    with pytest.raises(UsageError, match=refusal):
        typed(text, settings)
    assert typed("--plot-scale 2 --plot a", Drawn) == Drawn("a", 2)


def test_an_option_that_stands_alone_is_given_once(capsys):
    with pytest.raises(SystemExit):
        typed("a -o c -o d")
    assert "argument -o/--output: given twice, with different values: name one" in capsys.readouterr().err
    assert typed("a -o c -o c --draws 5 --draws 6") == Chosen(files=("a",), output="c", draws=6)


def test_what_is_not_typed_has_the_default_of_the_class():
    assert typed("a b -o c") == Chosen(files=("a", "b"), output="c")


def test_every_type_is_read():
    found = typed(
        "a --output c --draws 7 --rule at_random --kept by-hand --kept at-random --set x=1 --set y=2 --trace r f "
        "--blind --plain --confidence 0.5 --shift 1/3"
    )
    assert found == Chosen(
        files=("a",),
        output="c",
        draws=7,
        rule="at-random",
        kept=("by_hand", "at-random"),
        constants={"x": 1, "y": 2},
        trace=("r", "f"),
        aware=False,
        plain=True,
        uncertainty=Uncertainty(0.5, Fraction(1, 3)),
    )
    assert typed("a -o c --point-only --aware").uncertainty is None


@pytest.mark.parametrize("text", ["a", "-o c", "a -o c --rule other", "a -o c --aware --blind", "a -o c --draws x"])
def test_what_cannot_be_is_refused_as_usual(text, capsys):
    with pytest.raises(SystemExit):
        typed(text)
    assert "usage: test" in capsys.readouterr().err


def test_a_name_is_given_once_and_the_class_has_its_say():
    with pytest.raises(UsageError, match="--set: x is given twice"):
        typed("a -o c --set x=1 --set x=1")
    with pytest.raises(UsageError, match="no level"):
        typed("a -o c --confidence 2")


def test_help_tells_choices_and_defaults_once(capsys):
    with pytest.raises(SystemExit):
        typed("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "--rule RULE one of by_hand, at-random (default: by_hand)" in told
    assert "how sure: --confidence LEVEL of intervals (default: 0.95)" in told
    assert "--point-only the point alone" in told
    assert "SUPPRESS" not in told


@dataclass(frozen=True)
class Outer:
    part: Annotated[Uncertainty, Part(fixed={"shift": Fraction(1, 2)}, titles={"how sure": "uncertainty"})] = (
        Uncertainty()
    )
    again: Annotated[float, Option("shares its name", name="confidence")] = 0.5

    def check_given(self, names):
        if "confidence" not in names:
            raise UsageError("name the level")


def test_a_part_can_be_fixed_renamed_and_shared():
    assert [(title, each.name) for title, each in options_of(Outer)] == [("uncertainty", "confidence")]
    assert typed("--confidence 0.8", Outer) == Outer(Uncertainty(0.8, Fraction(1, 2)), 0.8)
    with pytest.raises(UsageError, match="name the level"):
        typed("", Outer)


def test_a_name_and_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named_file("--cm", "new = runs/x=y.json") == ("new", "runs/x=y.json")
    assert named_file("--cm", "runs/a.json") == ("", "runs/a.json")
    (tmp_path / "a=b.json").write_text("")
    assert named_file("--cm", "a=b.json") == ("", "a=b.json")
    assert named_files("--cm", ["runs/a.json", "b=c.json"]) == {"a": "runs/a.json", "b": "c.json"}
    for text in ("=x.json", "x=", "x\ny=z"):
        with pytest.raises(UsageError, match="--cm: expected FILE or NAME=FILE, got"):
            named_file("--cm", text)
    with pytest.raises(UsageError, match="--cm: two are called 'a': name them, as --cm NAME=FILE"):
        named_files("--cm", ["1/a.json", "2/a.json"])
