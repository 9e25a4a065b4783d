"""Blocks of a study without the memory of its detector: what bounds whatever the dependence are about."""

from dataclasses import replace

from verifier.study.case import Case


def forgetful(case: Case) -> Case:
    """The same block of the study without memory; itself where there is none."""
    study = case.study.forgetful
    return case if study is case.study else replace(case, study=study)


def forgetful_starts(case: Case) -> tuple[int, ...]:
    """For each initial state the start of the block without memory, which knows no contexts there."""
    number = {tuple(initial.values()): k for k, initial in enumerate(forgetful(case).initial_states)}
    kept = len(case.system.variables)
    return tuple(number[tuple(initial.values())[:kept]] for initial in case.initial_states)
