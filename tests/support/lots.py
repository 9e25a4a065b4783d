"""The best a planner that draws lots may do against the worst of many environments, in sequence form."""

import numpy as np
from scipy.optimize import linprog


def best_with_lots(rows, ends, count, environments):
    """max over plans with lots of the least environment.

    `rows` holds, for every history, the number of the choice before it (or None) and those of its own choices; `ends`
    the number of a choice and what it wins in each environment, times the chance of getting there.
    """
    equal, right = np.zeros((len(rows), count + 1)), np.zeros(len(rows))
    for k, (parent, mine) in enumerate(rows):
        equal[k, mine] = 1
        if parent is None:
            right[k] = 1
        else:
            equal[k, parent] -= 1
    worth = np.zeros((environments, count + 1))
    for parent, gain in ends:
        worth[:, parent] -= gain
    worth[:, -1] = 1
    found = linprog(
        np.append(np.zeros(count), -1), A_ub=worth, b_ub=np.zeros(environments), A_eq=equal, b_eq=right,
        bounds=[(0, None)] * count + [(None, None)], method="highs",
    )  # fmt: skip
    return -found.fun
