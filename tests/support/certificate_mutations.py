"""Random changes to certificates, by somebody who wants a false bound to pass: claims are made to fit the values."""

import copy
import json
from fractions import Fraction

import numpy as np

from verifier.analysis import kernel
from verifier.analysis.robust.certificate import BoxArrays, content_document

BILLION = 10**9
SHOWN = "shown again"
"""Among what was changed: the obligations are those that the program finds for the changed certificate."""


def mutated(rng, content):
    """(what was changed, the certificate with one to three changes, half of them with obligations to fit)."""
    changed = copy.deepcopy(content)
    kinds = [str(rng.choice(list(MUTATIONS))) for _ in range(rng.integers(1, 4))]
    for kind in kinds:
        MUTATIONS[kind](rng, changed)
    again = shown_again(changed) if rng.random() < 0.5 else None
    if again is not None:
        kinds, changed = [*kinds, SHOWN], again
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


def all_components(box):
    """The components of a box, and those that puts-off of untils end in."""
    pending, found = list(box["components"]), []
    while pending:
        found.append(pending.pop())
        pending += [part for each in found[-1]["without"] for part in each["components"]]
    return found


def other_component(rng, content):
    """States that change their component, that are in none, or in one of their own."""
    box = box_of(rng, content)
    state, found = place(rng, box["value"]), all_components(box)
    for component in found:
        if state in component["states"] and rng.random() < 0.8:
            k = component["states"].index(state)
            del component["states"][k], component["obligations"][k]
    own = {"states": [state], "obligations": [place(rng, content["obligations"])], "without": []}
    if found and rng.random() < 0.5:
        component = found[place(rng, found)]
        component["states"].append(state)
        component["obligations"].append(own["obligations"][0])
    elif rng.random() < 0.5:
        box["components"].append(own)


def other_obligation(rng, content):
    """Another obligation for a state or in a component, another term or atom in an obligation, or nothing put off."""
    found = [component for box in content["boxes"] for component in all_components(box)]
    table, change = content["obligations"], rng.integers(5)
    holders = [content["obligation"], *(component["obligations"] for component in found if component["obligations"])]
    if change < 2 or not table:
        numbers = holders[place(rng, holders)]
        numbers[place(rng, numbers)] = int(rng.integers(max(len(table), 1)))
    elif change == 2:
        terms = table[place(rng, table)]
        if terms and rng.random() < 0.5:
            del terms[place(rng, terms)]
        else:
            terms.append([list(atom_of(rng, content)) for _ in range(rng.integers(3))])
    elif change == 3:
        terms = table[place(rng, table)]
        if terms:
            term = terms[place(rng, terms)]
            if term and rng.random() < 0.5:
                del term[place(rng, term)]
            else:
                term.append(list(atom_of(rng, content)))
    elif found:
        component = found[place(rng, found)]
        if component["without"]:
            each = component["without"][place(rng, component["without"])]
            if rng.random() < 0.5:
                each["until"] = place(rng, content["subject"]["formula"])
            else:
                each["order"][place(rng, each["order"])] = int(rng.integers(4))


def atom_of(rng, content):
    """A node of the formula, with its own window or another."""
    nodes = content["subject"]["formula"]
    number = place(rng, nodes)
    low, high = nodes[number][2:]
    return number, low, -1 if high is None else high if rng.random() < 0.5 else max(high - 1, 0)


def no_target(rng, content):
    """What should be a target is called a component, of value 0."""
    box = box_of(rng, content)
    targets = [k for k, y in enumerate(box["value"]) if y >= box["unit"]]
    if targets:
        k = targets[place(rng, targets)]
        box["value"][k] = 0.0
        if rng.random() < 0.5:
            own = {"states": [k], "obligations": [content["obligation"][k]], "without": []}
            box["components"].append(own)


def refitted(content):
    """The certificate with the obligations that the program finds for its system, values, order and components."""
    boxes = []
    for box in content["boxes"]:
        component = [-1] * len(box["value"])
        for number, part in enumerate(box["components"]):
            for state in part["states"]:
                component[state] = number
        boxes.append(BoxArrays(box["unit"], box["value"], box["order"], component))
    about = (content[key] for key in ("side", "claimed", "subject", "region"))
    return json.loads(json.dumps(content_document(*about, boxes, content["tree"])))


def shown_again(content):
    """The same; None where its system is none, or nothing is found."""
    try:
        return refitted(content)
    except (kernel.Rejected, LookupError, ValueError, TypeError):
        return None


def other_move(rng, content):
    following = content["subject"]["following"]
    row = following[place(rng, following)]
    row[place(rng, row)] = place(rng, content["subject"]["letters"])


def other_letter(rng, content):
    letters = content["subject"]["letters"]
    letters[place(rng, letters)] ^= 1 << int(rng.integers(max(len(content["subject"]["propositions"]), 1)))


def other_end(rng, content):
    columns = content["region"]["columns"]
    if not columns:
        return
    row = columns[place(rng, columns)][str(rng.choice(["lower", "upper"]))]
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
    columns = content["region"]["columns"]
    holder, key = columns[place(rng, columns)] if columns and rng.random() < 0.7 else box_of(rng, content), "unit"
    holder[key] = max(holder[key] + int(rng.choice([-1, 1, 10, -10])), 1) if rng.random() < 0.7 else 2 * holder[key]


def other_start(rng, content):
    starts = content["subject"]["starts"]
    starts[place(rng, starts)] = place(rng, content["subject"]["letters"])


def other_told(rng, content):
    """Another report for a group of labels, or another frequency of a way of telling."""
    subject = content["subject"]
    kind = subject["told"][place(rng, subject["told"])]
    way = kind[place(rng, kind)]
    k = place(rng, way)
    way[k] = int(rng.integers(1, 9)) if k == 0 else place(rng, subject["then"][0])


def other_then(rng, content):
    """Another observation after a report, or draws told in another way."""
    subject = content["subject"]
    rows = subject["kinds"] if rng.random() < 0.5 and subject["kinds"] else subject["then"]
    row = rows[place(rng, rows)]
    if row:
        row[place(rng, row)] = place(rng, subject["told"] if rows is subject["kinds"] else subject["then"])


MUTATIONS = {
    "value": less_value,
    "order": other_order,
    "component": other_component,
    "obligation": other_obligation,
    "target": no_target,
    "following": other_move,
    "letters": other_letter,
    "region": other_end,
    "formula": other_node,
    "unit": other_unit,
    "starts": other_start,
    "told": other_told,
    "then": other_then,
}
SYSTEM = {"told", "then", "following", "letters", "region", "unit", "formula", "starts"}
