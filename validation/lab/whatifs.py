#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do changes bring what was forecast? Each server of a laboratory that protocol.py has calibrated is forecast with a
change, the forecasts are sealed with their hashes, and only then each change is made and measured: 32 ranks on eight
nodes. Prints forecast and measured gain by change.

    validation/lab/whatifs.py [SERVER...] --keep DIR [--only CHANGE]... [--json] [--page docs/scoreboard.md]

DIR is that of protocol.py. Needs root and what each server needs; 15 to 25 minutes a server. With the same DIR, what
is measured there is not measured again. With --only some changes are made, and all are forecast."""

import argparse
import json
import math
import string
import sys
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.stats import binomtest, chi2

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "validation"), str(ROOT / "validation/real"), str(ROOT / "validation/lab")]
from filesystems import iocast  # noqa: E402
from protocol import NODES, brought_up, measure, seal, seal_of, station_of  # noqa: E402
from scoreboard import put  # noqa: E402

from iocast.ground import binaries  # noqa: E402
from iocast.ground.files import write_json  # noqa: E402
from iocast.lab import laboratory  # noqa: E402
from iocast.lab.servers import Server, find  # noqa: E402
from iocast.runs.run_directory import find_runs  # noqa: E402

RANKS_PER_NODE = 4
REPEATS = 3
NO_CHANGE = 0.03
"""Gains within this share of nothing are no change, on either side."""
DEVIATIONS = 2.0
"""Standard errors of a measured gain, by which it may be another one."""
Station = dict[str, Any]


@dataclass(frozen=True)
class WhatIf:
    """A change, as the platform has it and as the laboratory is made.

    settings: of the server that change, by name the factor. edits: of the station with the server's threads, by key
    what its value becomes. ranks: by default four a node."""

    title: str
    settings: dict[str, float] = field(default_factory=dict)
    edits: dict[str, Callable[[Station], float]] = field(default_factory=dict)
    nodes: int = NODES
    ranks: int = 0
    link: str = ""
    mounts: int = 1

    @property
    def name(self) -> str:
        return self.title.replace(" ", "-")

    @property
    def ranks_per_node(self) -> int:
        return self.ranks // self.nodes or RANKS_PER_NODE

    @property
    def proportion(self) -> float:
        """Rate over the unchanged one by a rule without a model: as many times as the server has more of threads or
        parts, or is faster; all else changes nothing."""
        service = self.settings.get("service", 1.0)
        return math.prod(factor for name, factor in self.settings.items() if name != "service") / service

    def is_for(self, server: type[Server]) -> bool:
        """Whether the server has what is changed."""
        return self.settings.keys() <= server.defaults.keys() and (self.mounts == 1 or server.mounts)

    def made(self, server: type[Server]) -> dict[str, str]:
        """The changed settings of the server."""
        return {name: times(server.defaults[name], factor) for name, factor in self.settings.items()}

    def idle(self, station: Station) -> str:
        """What the edits leave as it is, as a clause, where the fitted station has it all already; "" for a change. A
        forecast of it would be that of no change, which says nothing of the server."""
        same = {key: station.get(key, 1) for key, value in self.edits.items() if value(station) == station.get(key, 1)}
        if not self.edits or self.link or len(same) < len(self.edits):
            return ""
        return " and ".join(f"{key} stays {value:g}" for key, value in same.items())

    def edits_of(self, name: str, station: Station) -> list[str]:
        """For the fitted station of this name."""
        edits = [f"stations.{name}.{key}={value(station):g}" for key, value in self.edits.items()]
        if self.link:
            edits.append(f"network.node_bandwidth={laboratory.bits_per_second(self.link) / 8:g}B/s")
        return edits


def times(setting: str, factor: float) -> str:
    """A number with or without a unit, times a factor."""
    number = setting.rstrip(string.ascii_letters)
    return f"{float(number) * factor:g}{setting[len(number) :]}"


def threads(factor: float) -> dict[str, Callable[[Station], float]]:
    return {"servers": lambda station: max(1, round(station["servers"] * factor))}


def speed(factor: float) -> dict[str, Callable[[Station], float]]:
    return {"speed": lambda station: station.get("speed", 1) * factor}


def further_servers(server: type[Server]) -> list[WhatIf]:
    """One server node more, where a setting of the server makes it."""
    base = server.nodes_of(server.defaults)
    return [
        WhatIf(f"one more of {name}", {name: 2}, {"count": lambda station: 2 * station.get("count", 1)})
        for name, value in server.defaults.items()
        if name in server.counts and value == "1" and server.nodes_of({**server.defaults, name: "2"}) > base
    ]


BASE = WhatIf("as it is")
CHANGES = (
    WhatIf("twice the threads", {"threads": 2}, threads(2)),
    WhatIf("half the threads", {"threads": 0.5}, threads(0.5)),
    WhatIf("half the service time", {"service": 0.5}, speed(2)),
    WhatIf("twice the service time", {"service": 2}, speed(0.5)),
    WhatIf("twice the threads at half the speed", {"threads": 2, "service": 2}, threads(2) | speed(0.5)),
    WhatIf("one node in place of eight", nodes=1, ranks=NODES * RANKS_PER_NODE),
    WhatIf("a node lost", nodes=NODES - 1),
    WhatIf("two mount points a node", mounts=2),
    WhatIf("links of 400 kbit per second", link="400kbit"),
)


def changes_of(server: type[Server]) -> list[WhatIf]:
    return [one for one in (*CHANGES, *further_servers(server)) if one.is_for(server)]


def forecasts_of(server: str, changes: list[WhatIf], out: Path) -> dict[str, dict[str, Any]]:
    """Forecasts of all changes, sealed together before any is made; those that are there are read. An edit that changes
    nothing in the fitted platform has none, but the key `idle` that says why."""
    directory, fitted = out / "whatifs", out / "fitted.yaml"
    settings = [f"{name}={value}" for name, value in settings_of(out).items() if name in ("iterations", "objects")]
    sets = [word for setting in settings for word in ("--set", setting)]
    if not seal_of(directory).exists():
        name = station_of(fitted)
        station = binaries.resolve_platform(str(fitted))["stations"][name]
        for change in changes:
            if why := change.idle(station):
                write_json(directory / f"{change.name}.json", {"idle": why})
                continue
            edits = [word for edit in change.edits_of(name, station) for word in ("--edit", edit)]
            place = ["--nodes", change.nodes, "--ppn", change.ranks_per_node]
            iocast("predict", fitted, *place, *sets, *edits, "--out", directory / f"{change.name}.json")
    seal(directory)
    return {change.name: json.loads((directory / f"{change.name}.json").read_text()) for change in changes}


def settings_of(out: Path) -> dict[str, Any]:
    """Of the campaign's runs without think time."""
    points = json.loads((out / "campaign" / "campaign.json").read_text())["points"]
    found: dict[str, Any] = next(
        point["settings"] for point in points if point["role"] == "check" and not point["settings"]["waiting_factor"]
    )
    return found


def finished(campaign: Path) -> bool:
    """Whether all its runs are complete; one that was cut off goes on where it was."""
    file = campaign / "campaign.json"
    return file.exists() and all(point["status"] == "complete" for point in json.loads(file.read_text())["points"])


def measured(server: str, change: WhatIf, out: Path) -> list[float]:
    """Rates of each repeat with the change made."""
    campaign = out / "made" / change.name
    if not finished(campaign):
        settings = {
            name: value for name, value in settings_of(out).items() if name not in ("waiting_factor", "repeats")
        }
        plan = out / f"{change.name}.yaml"
        plan.write_text(
            "schema_version: 1\nworkload: md-workbench\nbenchmark_repeats: 1\n"
            f"settings: {json.dumps(settings)}\nrepeats: {REPEATS}\npoints:\n"
            f"  - {{nodes: {change.nodes}, ranks_per_node: {change.ranks_per_node}, role: check}}\n"
        )
        with brought_up(server, change.made(find(server)), change.link, change.mounts) as lab:
            measure(lab, str(plan), "check", campaign)
    runs, _ = find_runs([campaign], "benchmark")
    return [phase.own_rate for run in runs for phase in run.phases if phase.own_rate is not None]


def row_of(
    server: str,
    change: WhatIf,
    base: dict[str, Any],
    forecast: dict[str, Any],
    rates: dict[str, float],
    noise: float = 0.0,
) -> dict[str, Any]:
    """What was forecast and what came; without a forecast, why. noise: standard error of a gain's logarithm."""
    truth = rates[change.name] / rates[BASE.name] - 1
    known = {"server": server, "change": change.title, "measured": rates[change.name], "measured gain": truth}
    known |= {"link": bool(change.link), "proportion": change.proportion - 1, "noise": noise}
    if why := forecast.get("idle"):
        return known | {"idle": why}
    rate, before = forecast["quantities"]["rate"], base["quantities"]["rate"]
    gain = rate["value"] / before["value"] - 1
    return known | {
        "forecast": rate["value"],
        "low": rate["low"],
        "high": rate["high"],
        "forecast gain": gain,
        "direction": direction(gain, truth, noise),
        "error": _off(gain, truth),
        "inside": None if rate["low"] is None else rate["low"] <= rates[change.name] <= rate["high"],
    }


RIGHT, NOISY, WRONG = "right", "within noise", "wrong"


def direction(gain: float, truth: float, noise: float) -> str:
    """Of a forecast gain beside the measured one: "within noise" where the measured one is of another sign, but might
    be of this one by what its repeats differ."""
    if _sign(gain) == _sign(truth):
        return RIGHT
    least, most = (math.exp(math.log1p(truth) + side * DEVIATIONS * noise) - 1 for side in (-1, 1))
    return NOISY if _sign(least) <= _sign(gain) <= _sign(most) else WRONG


def _sign(gain: float) -> int:
    return 0 if abs(gain) < NO_CHANGE else 1 if gain > 0 else -1


def noise_of(repeats: Collection[Sequence[float]]) -> float:
    """Standard error of the logarithm of a gain, of two means of as many repeats as the fewest states of a server have:
    by the median variance of all states, which one slow run moves little."""
    fewest = min(map(len, repeats))
    if fewest < 2:
        return 0.0
    of_chance = float(chi2.median(fewest - 1)) / (fewest - 1)
    variance = median(float(np.var(np.log(rates), ddof=1)) for rates in repeats) / of_chance
    return math.sqrt(2 * variance / fewest)


def _off(gain: float, truth: float) -> float:
    """The factor between both, less 1."""
    return math.exp(abs(math.log((1 + gain) / (1 + truth)))) - 1


def by_proportion(rows: list[dict[str, Any]]) -> str:
    """How WhatIf.proportion fares, a sentence; on links beside the forecasts."""
    off = [_off(row["proportion"], row["measured gain"]) for row in rows]
    ways = [direction(row["proportion"], row["measured gain"], row.get("noise", 0.0)) for row in rows]
    right = f"{sum(way != WRONG for way in ways)} of {len(rows)} directions"
    found = f"A rule of proportion: {right}, {100 * median(off):.1f} % in the median"
    links = [(one, row["error"]) for one, row in zip(off, rows, strict=True) if row["link"] and "error" in row]
    if not links:
        return f"{found}."
    rule, own = (100 * fmean(column) for column in zip(*links, strict=True))
    return f"{found}; on links {rule:.0f} % in the mean, forecasts {own:.0f} %."


def table(rows: list[dict[str, Any]]) -> list[str]:
    """As Markdown, a line each, with what they come to below."""
    lines = [
        "| server | change | forecast gain | measured gain | direction | size off by | forecast rate | 90 % interval"
        " | measured rate | inside |",
        "|---" * 10 + "|",
    ]
    forecast = [row for row in rows if "idle" not in row]
    for row in rows:
        if why := row.get("idle"):
            gain, rate = f"{100 * row['measured gain']:+.0f} %", f"{row['measured']:.0f} /s"
            lines.append(
                f"| {row['server']} | {row['change']} | - | {gain} | not forecast: {why} | - | - | - | {rate} | - |"
            )
            continue
        between = "-" if row["low"] is None else f"{row['low']:.0f} to {row['high']:.0f} /s"
        cells = [
            row["server"],
            row["change"],
            f"{100 * row['forecast gain']:+.0f} %",
            f"{100 * row['measured gain']:+.0f} %",
            row["direction"],
            f"{100 * row['error']:.1f} %",
            f"{row['forecast']:.0f} /s",
            between,
            f"{row['measured']:.0f} /s",
            {True: "yes", False: "no", None: "-"}[row["inside"]],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if not forecast:
        return lines
    known = [row["inside"] for row in forecast if row["inside"] is not None]
    ways = [row["direction"] for row in forecast]
    noisy = f" ({ways.count(NOISY)} within noise)" if NOISY in ways else ""
    refused = len(rows) - len(forecast)
    of_them = f" forecasts of {len(rows)} changes; {refused} changes nothing in the fitted platform" if refused else ""
    share = float(binomtest(sum(known), len(known), 0.9).pvalue) if known else 1.0
    middle = median(row["error"] for row in forecast)
    right = len(ways) - ways.count(WRONG)
    summary = (
        f"Direction right in {right}{noisy} of {len(forecast)}{of_them}; size off by {100 * middle:.1f} % in the "
        f"median. Of {len(known)} rates {sum(known)} lie within their intervals, "
        f"{'not ' if share < 0.05 else ''}consistent with 90 % (exact binomial, 95 %). {by_proportion(rows)}"
    )
    return [*lines, "", *textwrap.wrap(summary, 120)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="by default all that protocol.py has finished")
    parser.add_argument("--keep", type=Path, required=True, help="the directory of protocol.py")
    parser.add_argument("--only", action="append", metavar="CHANGE", help="its title, as the table has it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="put the table there, between its marks")
    given = parser.parse_args()
    servers = given.servers or sorted(file.parent.name for file in given.keep.glob("*/fitted.yaml"))
    known = {one.title for server in servers for one in changes_of(find(server))}
    if unknown := set(given.only or ()) - known:
        parser.error(f"these servers have no change {', '.join(sorted(unknown))}; allowed: {', '.join(sorted(known))}")
    if given.only and given.page:
        parser.error("--page has all changes of its servers; leave out --only")
    rows = []
    for server in servers:
        out = given.keep / server
        changes = [BASE, *changes_of(find(server))]
        forecasts = forecasts_of(server, changes, out)
        changes = [one for one in changes if not given.only or one is BASE or one.title in given.only]
        if len(changes) == 1:
            continue
        repeats = {change.name: measured(server, change, out) for change in changes}
        rates = {name: math.exp(fmean(map(math.log, found))) for name, found in repeats.items()}
        noise = noise_of(repeats.values())
        rows += [row_of(server, one, forecasts[BASE.name], forecasts[one.name], rates, noise) for one in changes[1:]]
    lines = table(rows)
    print(json.dumps(rows, indent=1) if given.json else "\n".join(lines))
    if given.page:
        put(given.page, "checked what-ifs", lines)


if __name__ == "__main__":
    main()
