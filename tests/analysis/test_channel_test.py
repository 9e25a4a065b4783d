"""What tests of single classes say about a channel: of contexts, of replays and of several classes, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from verifier.analysis.channel_test import (
    Channel,
    ContextTest,
    CountedTest,
    ReplayCheck,
    Untested,
    channel_condition,
    channel_test,
    class_tests,
    classes_drawn,
    contradicted_text,
    dependence_remark,
    detector_text,
    memory_remark,
)
from verifier.checking.verdicts import ChannelTest
from verifier.perception.confusion.contexts import OfTracks, ReplayTest, ResidualTest
from verifier.perception.confusion.document_types import LikelihoodRatio, UsedContexts


def contexts(tests=(), e_values=(), replays=(), tracks=None):
    return UsedContexts(
        kind="run", cap=3, of="outcome", gaps="break", used="run:3", tracks=tracks,
        tests=tuple(tests), e_values=tuple(e_values), replays=tuple(replays),
    )  # fmt: skip


def replay(p_value, label="ped", not_confirmed=3):
    return ReplayTest(label, "run:3", "2/3", "[0, 20)", 3, 9, not_confirmed, 1.5, p_value)


def residual(p_value, z=2.5, label="ped"):
    return ResidualTest(label, "run:3", z, p_value, 999)


def ratio(log10_e, label="ped"):
    return LikelihoodRatio(label, "run:5", log10_e)


def of_tracks(longest):
    return OfTracks(longest, *[(0, 0)] * (len(OfTracks.__dataclass_fields__) - 1))


@pytest.mark.parametrize(
    ("known", "test", "least_p"),
    [
        (contexts([residual(0.02)]), "not_contradicted", 0.02),
        (contexts([residual(0.01)]), "not_contradicted", 0.01),
        (contexts([residual(0.0099)]), "contradicted", 0.0099),
        (contexts([residual(0.0099, label="car"), residual(0.5)]), "not_contradicted", 0.5),
        (contexts(e_values=[ratio(2.0)]), "not_contradicted", 0.01),
        (contexts(e_values=[ratio(3.0)]), "contradicted", 0.001),
        (contexts(e_values=[ratio(-3.0)]), "not_contradicted", 1),
        (contexts(e_values=[ratio(3.0, "car"), ratio(0.5)]), "not_contradicted", 10**-0.5),
        (contexts(replays=[replay(0.003)]), "contradicted", 0.003),
        (contexts(replays=[replay(0.7), replay(0.004), replay(0.8)]), "not_contradicted", 0.012),
        (contexts(replays=[replay(0.7), replay(0.8)]), "not_contradicted", 1),
        (contexts(replays=[replay(0.001, "car"), replay(0.5)]), "not_contradicted", 0.5),
        (contexts([residual(0.2)], [ratio(1.0)], [replay(0.3)]), "not_contradicted", 0.1),
        (contexts([residual(0.2)], [ratio(0.1)], [replay(0.03)]), "not_contradicted", 0.03),
        (contexts([residual(1.0, None)], [ratio(0.0)]), "not_contradicted", 1),
        (contexts([residual(1.0, None)], replays=[replay(0.25)]), "not_contradicted", 0.25),
        (contexts([residual(0.02)], tracks={"ped": of_tracks(1), "car": of_tracks(0)}), "not_contradicted", 0.02),
    ],
)
def test_the_test_of_contexts_by_hand(known, test, least_p):
    (said,) = class_tests(None, known, {"ped": [0]})
    assert (said.test, said.least_p, said.bins) == (test, pytest.approx(least_p), None)
    assert (said.contexts, said.label) == ("run:3", "ped")
    assert channel_test([said]) == (
        ChannelTest("contradicted", "ped", pytest.approx(least_p), "run:3")
        if test == "contradicted"
        else ChannelTest("not_contradicted", contexts="run:3")
    )
    assert (memory_remark(said) is None) == (test != "contradicted")


@pytest.mark.parametrize(
    ("known", "silent"),
    [
        (contexts(), False),
        (contexts([residual(0.5, label="car")], [ratio(3, "car")], [replay(0.1, "car")]), False),
        (contexts([residual(1.0, None)]), False),
        (contexts([residual(0.001)], tracks={"ped": of_tracks(0)}), True),
        (contexts(tracks={"ped": of_tracks(2)}), False),
    ],
)
def test_what_contexts_leave_untested(known, silent):
    (said,) = class_tests(None, known, {"ped": [0]})
    assert said == Untested(label="ped", contexts="run:3", no_misses=silent)
    assert channel_test([said]) == ChannelTest("untested", contexts="run:3")
    assert memory_remark(said) is None


def counted(label, p_value, after_miss=10, joint_misses=4):
    test = "contradicted" if p_value < 0.01 else "not_contradicted"
    return CountedTest(
        label=label, test=test, p_value=p_value, after_miss=after_miss, joint_misses=joint_misses,
        miss_after_miss=joint_misses / after_miss if after_miss else None,
        expected_miss_after_miss=0.1 if after_miss else None,
    )  # fmt: skip


def test_a_channel_is_what_the_classes_say_that_a_chain_draws():
    known = [counted("car", 0.002), counted("ped", 0.001), counted("bus", 0.5), Untested(label="van")]
    for drawn, said in (
        (None, ChannelTest("contradicted", "ped", 0.001)),
        (["car", "bus"], ChannelTest("contradicted", "car", 0.002)),
        (["bus", "van"], ChannelTest("untested")),
        (["bus", "nobody knows"], ChannelTest("untested")),
        (["bus"], ChannelTest("not_contradicted")),
        ([], ChannelTest("not_contradicted")),
    ):
        assert channel_test(known, drawn) == said
    assert channel_test([]) == ChannelTest("not_contradicted")
    assert (Channel(classes=tuple(known)).test, Channel(classes=tuple(known)).contexts) == ("contradicted", None)
    assert Channel(classes=(Untested(label="a", contexts="run:3"),)).contexts == "run:3"
    # Of a detector that is contradicted, the numbers assume it nevertheless.
    assert channel_condition(ChannelTest("not_contradicted")) is None
    assert channel_condition(ChannelTest("untested")).startswith("if the detector is memoryless")
    assert channel_condition(ChannelTest("contradicted", "ped", 0.001)).startswith("if the detector is memoryless")
    assert channel_condition(ChannelTest("contradicted", "ped", 0.001, "run:3")) is not None


def test_remarks_word_for_word():
    assert dependence_remark([counted("ped", 0.001), counted("bus", 0.5), counted("van", 0.001, 0, 0)]) == (
        "warning: memoryless assumption rejected: after a missed ped the next frame misses it with probability 0.40, "
        "not 0.10 (4 of 10 frame pairs, p = 0.001). P and bounds may be wrong in either direction."
    )
    assert dependence_remark([counted("van", 0.001, 0, 0), counted("bus", 0.01)]) is None
    check = ReplayCheck(
        confirm="2/3", range="[0, 20)", frames=3, tracks=9, not_confirmed=3, expected=1.5, p_value=0.25
    )
    told = "replayed on 9 tracks in [0, 20) m, 2/3 reports in 3 frames did not come on 3, and were to fail on 1.5"
    (said,) = class_tests(None, contexts([residual(0.5)], [ratio(4.25)], [replay(0.125), replay(0.5)]), {"ped": [0]})
    assert (said.replay, str(said.replay)) == (check, f"{told} (p = 0.25)")
    head, tail = "warning: errors of ped depend on more of the past than run:3", "P and bounds may be wrong in either"
    assert memory_remark(said) == (
        f"{head}: residual test p = 0.5, 2.5 standard deviations, e-value 10^4.25 for run:5, {told} (p = 0.25). "
        f"{tail} direction."
    )
    (said,) = class_tests(None, contexts([residual(0.002, None)], [ratio(0.5)]), {"ped": [0]})
    assert memory_remark(said) == (f"{head}: residual test p = 0.002, e-value 10^0.5 for run:5. {tail} direction.")
    assert memory_remark(counted("ped", 0.001)) is None
    assert contradicted_text("ped", 0.001) == "the data contradict a memoryless detector (ped, p = 0.001)"
    assert detector_text("persist:4") == "a detector whose errors last 4 frames at most"
    assert detector_text("run:3") == "a detector that remembers run:3 and nothing else"
    assert isinstance(said, ContextTest)


def test_the_estimated_columns_that_a_chain_draws():
    """Column 2 of bin 0 is held fixed; column 1 is of two classes, and the last of none: false positives."""
    labels = (frozenset({"ped"}), frozenset({"car", "bus"}), frozenset({"van"}), frozenset())
    needed = np.array([[0, 0], [0, 2], [1, 1], [1, 3], [2, 0], [2, 2]])
    skeleton = SimpleNamespace(channel=SimpleNamespace(labels=labels), columns_needed=lambda: needed)
    fixed = np.zeros((3, 4), dtype=bool)
    fixed[0, 2] = True
    assert classes_drawn(skeleton, SimpleNamespace(fixed=fixed)) == {
        "bus": [1], "car": [1], "empty": [1], "ped": [0, 2], "van": [2],
    }  # fmt: skip
