"""Whether tables and choices of a trade-off follow from its curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from verifier.base.documents import json_values
from verifier.base.errors import UsageError
from verifier.evidence.following.numbers import Misfits, misfits, ordered

if TYPE_CHECKING:
    from verifier.closedloop.trade_offs import TradeOffsResult


def trade_offs_misfits(result: TradeOffsResult) -> Misfits:
    """Everything but the bootstrap follows from the curves."""
    from verifier.closedloop.comparison import NamedCurve, compare
    from verifier.closedloop.curvefiles import NUMBERS
    from verifier.closedloop.curves import TradeOffCurve
    from verifier.closedloop.trade_offs import TradeOffs

    groups, tables = result.settings.get("groups"), []
    named = result.settings.get("severities")
    for k, told in enumerate(result.metrics):
        severities = {condition.name: condition.severity for condition in told.conditions}
        severities |= named if isinstance(named, dict) else {}
        curves = []
        for n, each in enumerate(told.curves):
            try:
                curve = TradeOffCurve(*(np.array(getattr(each, name), dtype=np.float64) for name in NUMBERS))
            except ValueError as error:
                yield f"/metrics/{k}/curves/{n}", str(error)
                return
            severity = severities.get(each.condition, "")
            curves.append(NamedCurve(told.metric, each.detector, each.condition, curve, severity))
        try:
            tables.append(compare(curves, groups))
        except (UsageError, AttributeError, LookupError, TypeError) as error:  # no curve, one twice, no such groups
            yield f"/metrics/{k}/curves", str(error)
            return
    again = TradeOffs(result.title, (), {}, {}, (), tuple(tables)).document()
    for name in ("metrics", "flips"):
        stated, follows = (_undrawn(json_values(getattr(one, name))) for one in (result, again))
        yield from misfits(f"/{name}", stated, follows)
    for k, table in enumerate(result.metrics):
        for n, row in enumerate(table.rows):
            for m, cell in enumerate(row.cells):
                where = f"/metrics/{k}/rows/{n}/cells/{m}"
                yield from ordered(f"{where}/area_interval", cell.area_interval, 0, 1)
                yield from ordered(f"{where}/robustness_interval", cell.robustness_interval, 0)


def _undrawn(value: Any) -> Any:
    """JSON values without what was drawn."""
    drawn = ("area_interval", "robustness_interval", "best_probability", "probability")
    if isinstance(value, dict):
        return {key: _undrawn(inner) for key, inner in value.items() if key not in drawn}
    return [_undrawn(inner) for inner in value] if isinstance(value, list) else value
