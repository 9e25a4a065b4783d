"""Random changes to certificates, by somebody who wants a false bound to pass: claims are made to fit the values."""

import copy
from fractions import Fraction

import numpy as np

BILLION = 10**9


def mutated(rng, content):
    """(what was changed, the certificate with one to three changes)."""
    changed = copy.deepcopy(content)
    kinds = [str(rng.choice(list(MUTATIONS))) for _ in range(rng.integers(1, 4))]
    for kind in kinds:
        MUTATIONS[kind](rng, changed)
    if rng.random() < 0.9:
        claim(changed)
    return kinds, changed


def claim(content):
    """Claim what the values say, rounded outwards."""
    for k, state in enumerate(content["subject"]["starts"]):
        if content["claimed"][k] is None:
            continue
        worst = max(Fraction(box["value"][state]) / box["unit"] for box in content["boxes"])
        bound = 1 - worst if content["side"] == "lower" else worst
        rounded, outwards = float(bound), -1 if content["side"] == "lower" else 1
        if outwards * rounded < outwards * bound:
            rounded = float(np.nextafter(rounded, outwards * np.inf))
        content["claimed"][k] = rounded


def place(rng, values):
    return int(rng.integers(len(values)))


def box_of(rng, content):
    return content["boxes"][place(rng, content["boxes"])]


def less_value(rng, content):
    value = box_of(rng, content)["value"]
    if rng.random() < 0.3:
        value[:] = [y if rng.random() < 0.5 else 0.0 for y in value]
    else:
        k = place(rng, value)
        value[k] = (
            value[k] * float(rng.choice([0.0, 0.5, 0.9, 1 - 1e-9, 1.1])) if rng.random() < 0.9 else value[k] - 1
        )


def other_order(rng, content):
    order = box_of(rng, content)["order"]
    if rng.random() < 0.2:
        order[:] = rng.permutation(order).tolist()
    else:
        order[place(rng, order)] = int(rng.integers(-1, max(order) + 2))


def other_component(rng, content):
    component = box_of(rng, content)["component"]
    k = place(rng, component)
    component[k] = int(rng.choice([-2, -1, *component, k]))
    if rng.random() < 0.3:
        component[:] = [component[k] if own >= 0 and rng.random() < 0.5 else own for own in component]


def no_target(rng, content):
    """What should be a target is called a component, of value 0."""
    box = box_of(rng, content)
    targets = [k for k, own in enumerate(box["component"]) if own == -2]
    if targets:
        k = targets[place(rng, targets)]
        box["component"][k], box["value"][k] = int(rng.choice([k, -1])), 0.0


def other_move(rng, content):
    following = content["subject"]["following"]
    row = following[place(rng, following)]
    row[place(rng, row)] = place(rng, following)


def other_letter(rng, content):
    letters = content["subject"]["letters"]
    letters[place(rng, letters)] ^= 1 << int(rng.integers(max(len(content["subject"]["propositions"]), 1)))


def other_end(rng, content):
    ends = content["region"][str(rng.choice(["lower", "upper"]))]
    row = ends[place(rng, ends)]
    row = row[place(rng, row)]
    k = place(rng, row)
    row[k] = int(np.clip(row[k] + rng.choice([-BILLION, -(10**8), -10, -1, 1, 10, 10**8, BILLION]), 0, BILLION))


def other_node(rng, content):
    nodes = content["subject"]["formula"]
    k = place(rng, nodes)
    kind, operands, low, high = nodes[k]
    dual = {"holds": "fails", "fails": "holds", "&": "|", "|": "&", "U": "R", "R": "U"}
    change = rng.integers(4)
    if change == 0:
        kind = dual[kind]
    elif change == 1 and operands:
        operands = [*operands[1:], int(rng.integers(k))]
    elif change == 2 and kind in ("U", "R"):
        high = None if high is not None else low + int(rng.integers(4))
    else:
        low = max(low + int(rng.integers(-1, 2)), 0)
    nodes[k] = [kind, operands, low, high]


def other_unit(rng, content):
    """What a column's rates, or a box's values, are parts of."""
    row = content["region"]["unit"]
    row = row[place(rng, row)]
    holder, key = (row, place(rng, row)) if rng.random() < 0.7 else (box_of(rng, content), "unit")
    holder[key] = max(holder[key] + int(rng.choice([-1, 1, 10, -10])), 1) if rng.random() < 0.7 else 2 * holder[key]


def other_start(rng, content):
    starts = content["subject"]["starts"]
    starts[place(rng, starts)] = place(rng, content["subject"]["row"])


MUTATIONS = {
    "value": less_value,
    "order": other_order,
    "component": other_component,
    "target": no_target,
    "following": other_move,
    "letters": other_letter,
    "region": other_end,
    "formula": other_node,
    "unit": other_unit,
    "starts": other_start,
}
SYSTEM = {"following", "letters", "region", "unit", "formula", "starts"}
