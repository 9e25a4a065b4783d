"""Exported models, read back and checked by Storm."""

from fractions import Fraction

import stormpy
from stormpy.developer import LogLevel, set_log_level

set_log_level(LogLevel.OFF)


def read(path):
    if path.suffix == ".umb":
        return stormpy.build_model_from_umb(str(path), options=stormpy.io.UmbImportOptions())
    if path.suffix == ".drn":
        return stormpy.build_model_from_drn(str(path))
    options = stormpy.BuilderOptions()
    options.set_build_all_labels(True)
    if path.suffix == ".prism":
        return stormpy.build_model(stormpy.parse_prism_program(str(path)), options=options)
    model, _ = stormpy.parse_jani_model(str(path))
    return stormpy.build_model(model, options=options)


def optimum(model, query):
    environment = stormpy.environments.sound()
    for solver in (environment.solver().native(), environment.solver().min_max()):
        solver.precision = stormpy.Rational("1/1000000000000")
    found = stormpy.model_checking(model, stormpy.parse_property(query), environment=environment)
    return sorted(float(Fraction(str(found.get_value(state)))) for state in model.initial_states)
