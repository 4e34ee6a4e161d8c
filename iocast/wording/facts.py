# SPDX-License-Identifier: Apache-2.0
"""A fit to published numbers as a terminal shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from iocast.calibrate.facts import FactsFit
from iocast.published.facts import QUANTITIES
from iocast.wording.text import quantity, table


FAR = 10.0
"""Factor between a fact and what the others forecast of it, from which on it is named."""


def facts_text(fit: FactsFit) -> str:
    """The numbers that were fitted, each fact beside the fit and what the others forecast, and what was kept."""
    numbers = [[path, one["family"], one["value"], "; ".join(one["from"])] for path, one in fit.numbers.items()]
    rows = [
        [
            one["place"], f"{one['nodes']} x {one['ppn']}", f"{one['operation']} {one['quantity']}".strip(),
            shown(one, "published"), shown(one, "fitted"), shown(one, "left_out"),
            one["role"] if one["left_out"] is None else _off(one),
        ]
        for one in fit.rows
    ]  # fmt: skip
    lines = [
        table(["fitted demand", "family", "fitted", "most of it from"], numbers), "",
        table(["fact", "nodes x ranks", "quantity", "published", "fitted", "left out", "then off by"], rows),
    ]  # fmt: skip
    lines += [
        f"{one['place']} is {_off(one)} off what the others forecast: is it in seconds or per "
        "second, and of this system?"
        for one in fit.rows
        if one["left_out"] is not None and abs(math.log(one["left_out"] / one["published"])) > math.log(FAR)
    ]
    if fit.kept:
        lines.append(f"As the family has them, since the facts tell too little of each: {', '.join(fit.kept)}.")
    return "\n".join(lines)


def _off(one: Mapping[str, Any]) -> str:
    return f"x {math.exp(abs(math.log(one['left_out'] / one['published']))):.2f}"


def shown(one: Mapping[str, Any], which: str) -> str:
    """A value of a fact's row in its unit, "-" where there is none."""
    if one[which] is None:
        return "-"
    unit = QUANTITIES[one["quantity"]][1]
    return f"{one[which]:.2f}" if not unit else quantity("" if unit == "ms" else "rate", one[which])
