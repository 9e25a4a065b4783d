"""The part of an assessment file on what a growing disturbance does to the system.

    [systems.car.degradation]
    parameter = "visibility"
    unit = "m"
    scale = "reciprocal"                         # or "linear", "log"
    allowed_change = { AP = 0.05 }
    run = { spec = "specs/car_pedestrian.ltl", planner = "published" }
    collision = { distance_m = 20, speed_mps = 10, deceleration_mps2 = 6.86, reaction_s = 0.1, at_most = 0.05 }
    trade_off = { detector = "ssd", metric = "closed_loop", at_least = 0.8 }

    [[systems.car.degradation.levels]]           # the mildest first
    at = inf
    performance = { AP = 0.41 }
    confusion = "clear.json"
    pairs = "clear.csv"
    curves = "clear_curves.json"

or, for `verify assess --make`, with the data of every level made from the source images and the detector:

    transformation = { mutation = "haze", visibility_m = "level" }          # or a list of steps
    counting = { edges_m = [0, 10, 20, inf], measure = "forward" }          # of matrices and pairs
    levels = [{ at = inf }, { at = 400 }, { at = 100 }]

Paths are from the folder of the file.

The part of an assessment file on what makes an image of some circumstance.

transformation = { mutation = "salt_and_pepper", share = { low = 0.01, high = 0.05 } }
"""

from collections.abc import Mapping

from verifier.base.toml import Element
from verifier.robustness.adr import LEVELS, AdrSettings
from verifier.robustness.assessment.circumstances import Span, Transformation, fault_of
from verifier.robustness.assessment.degradation import LEVEL, Degradation, Level, LevelRecipe
from verifier.robustness.brackets import PHYSICAL, SCALES
from verifier.robustness.campaign.data_reader import keys_of, plain_number, read_record, values_of
from verifier.robustness.mutators.catalogue import Plain


def read_transformation(element: Element) -> Transformation:
    """A transformation whose mutation and parameters exist; InputError."""
    name, parameters = _named(element)
    _refuse(element, name, parameters)
    return Transformation(name, parameters)


def read_step(element: Element, variable: str) -> tuple[str, dict[str, Plain]]:
    """A mutation with fixed parameters, of which some may be the word `variable` in place of a value; InputError."""
    name, parameters = _named(element)
    fixed: dict[str, Plain] = {}
    for key, value in parameters.items():
        if isinstance(value, Span):
            raise element.at(key).fail("expected one value: nothing is drawn here")
        fixed[key] = value
    _refuse(element, name, fixed, variable)
    return name, fixed


def _named(element: Element) -> tuple[str, dict[str, Plain | Span]]:
    entries = dict(element.entries())
    if "mutation" not in entries:
        raise element.fail("missing key 'mutation'")
    name = entries.pop("mutation").string()
    return name, {key: _parameter(entry) for key, entry in entries.items()}


def _refuse(element: Element, name: str, parameters: Mapping[str, Plain | Span], variable: str | None = None) -> None:
    fault = fault_of(name, parameters, variable)
    if fault is not None:
        raise element.at(fault[0]).fail(*fault[1:])


def _parameter(element: Element) -> Plain | Span:
    """A number, a word, or a table with the ends of a span."""
    if isinstance(element.value, dict):
        element.table(("low", "high"), required=("low", "high"))
        low, high = (plain_number(element.at(key)) for key in ("low", "high"))
        return element.made(lambda: Span(low, high))
    if isinstance(element.value, str):
        return element.string()
    return plain_number(element)


RECIPE_KEYS = keys_of(LevelRecipe, "steps")
KEYS = (*keys_of(Degradation, "recipe"), "transformation", *RECIPE_KEYS)
LEVEL_KEYS = ("at", "confusion", "pairs", "curves", "performance", "unchanged")


def read_degradation(element: Element) -> Degradation:
    """The degradation that a table of the file describes; InputError."""
    element.table(KEYS, required=("parameter", "levels"))
    levels = tuple(read_record(level, Level, LEVEL_KEYS) for level in element.at("levels").items(least=2))
    recipe = _recipe(element)
    unit = element.given("unit", Element.string, "", empty=True)
    usual = PHYSICAL.get(recipe.parameter if recipe else "", "linear")
    scale = element.given("scale", Element.one_of, usual, SCALES)
    return read_record(element, Degradation, KEYS, levels=levels, recipe=recipe, unit=unit, scale=scale)


def _recipe(element: Element) -> LevelRecipe | None:
    if not element.has("transformation"):
        for key in RECIPE_KEYS:
            if element.has(key):
                raise element.at(key).fail(f"'{key}' goes with a transformation, which makes the levels")
        return None
    given = element.at("transformation")
    steps = given.items(least=1) if isinstance(given.value, list) else [given]
    values = values_of(element, LevelRecipe, "steps", "adr_levels")
    levels = tuple(float(level.number()) for level in element.list_at("adr_levels")) or LEVELS
    if element.has("adr_levels"):
        element.at("adr_levels").made(lambda: AdrSettings(levels))
    return given.made(
        lambda: LevelRecipe(tuple(read_step(step, LEVEL) for step in steps), adr_levels=levels, **values)
    )
