"""The curves of the four levels of context that are not simulated."""

import numpy as np

from verifier.closedloop.closed_loop_curve import judged_sums
from verifier.closedloop.detection_outcomes import judge_pathifier, judge_roboticizer, judge_roc_a, judge_roc_b
from verifier.closedloop.logs import IOU_HALF


def curve_of(judged, logs, levels, fpr_max):
    return judged_sums(judged, np.array(levels, dtype=float), np.asarray(logs.positive), fpr_max).curve


def roc_a(logs, source, standardizer, levels, policy=IOU_HALF, fpr_max=0.1):
    return curve_of(judge_roc_a(logs, source, standardizer, policy), logs, levels, fpr_max)


def roc_b(logs, source, standardizer, levels, policy=IOU_HALF, fpr_max=0.1):
    return curve_of(judge_roc_b(logs, source, standardizer, policy), logs, levels, fpr_max)


def roboticizer_curve(logs, source, standardizer, levels, fpr_max=0.1):
    return curve_of(judge_roboticizer(logs, source, standardizer), logs, levels, fpr_max)


def pathifier_curve(logs, source, standardizer, levels, radius_m, first="forgiven", fpr_max=0.1, settings=None):
    judged = judge_pathifier(logs, source, standardizer, radius_m, first, settings)
    return curve_of(judged, logs, levels, fpr_max)
