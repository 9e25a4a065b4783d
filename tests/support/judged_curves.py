"""The curves of the four levels of context that are not simulated."""

from verifier.closedloop.curves import judged_curve
from verifier.closedloop.detection_outcomes import judge_pathifier, judge_roboticizer, judge_roc_a, judge_roc_b
from verifier.closedloop.logs import IOU_HALF


def roc_a(logs, source, standardizer, levels, policy=IOU_HALF, fpr_max=0.1):
    return judged_curve(judge_roc_a(logs, source, standardizer, policy), levels, fpr_max)


def roc_b(logs, source, standardizer, levels, policy=IOU_HALF, fpr_max=0.1):
    return judged_curve(judge_roc_b(logs, source, standardizer, policy), levels, fpr_max)


def roboticizer_curve(logs, source, standardizer, levels, metric=None, fpr_max=0.1):
    return judged_curve(judge_roboticizer(logs, source, standardizer, metric), levels, fpr_max)


def pathifier_curve(logs, source, standardizer, levels, radius_m, metric=None, fpr_max=0.1, settings=None):
    judged = judge_pathifier(logs, source, standardizer, radius_m, metric, settings)
    return judged_curve(judged, levels, fpr_max)
