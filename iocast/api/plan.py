# SPDX-License-Identifier: Apache-2.0
"""`iocast.plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iocast.planning import plan_rates
from iocast.ground.binaries import as_settings
from iocast.api.answer import Answer, Place, Progress, Row, platform_of, quietly
from iocast.calibrate.reading import UNREPEATED
from iocast.calibrate.search import Simulations
from iocast.planning.candidate_places import candidates, limits_of, measured_settings
from iocast.ground.files import duration, write_text
from iocast.platforms.fitted import Fitted
from iocast.planning.plan import QUANTILES, Planner, campaign_file, of_family, of_fitted
from iocast.planning.proposed import Place as Target
from iocast.planning.proposed import Proposed, read_place
from iocast.runs.settings import name_for_programs
from iocast.wording.calibration import plan_text


@dataclass(frozen=True)
class Plan(Answer):
    """Runs that narrow a forecast most. `can_be_measured`: whether `iocast measure` can make them; else the results are
    another tool's, which makes them."""

    target: Target
    proposed: list[Proposed]
    repeats: int
    seconds: float | None
    """That a rank alone takes; None where the workload has sizes of its own, or another tool makes the runs."""
    workload: str
    settings: dict[str, str]
    can_be_measured: bool
    file: Path | None = None
    """The campaign that was written."""

    @property
    def settings_unknown(self) -> bool:
        """Whether the results don't say with which settings they ran, so that the campaign has iocast's own."""
        return self.seconds is not None and not self.settings

    def write(self, file: Place, command: str = "iocast.plan") -> Plan:
        """With the campaign file that `measure` takes; without one where nothing is proposed.

        @param command that the file names as its source"""
        if not self.proposed or not self.can_be_measured:
            return self
        text = campaign_file(
            self.proposed, self.target, self.seconds, self.repeats, self.workload, self.settings, command
        )
        write_text(Path(file), text)
        return replace(self, file=Path(file))

    @property
    def _file(self) -> str | None:
        return None if self.file is None else str(self.file)

    def text(self) -> str:
        return plan_text(self.target, self.proposed, self.repeats, self.seconds, self._file)

    def document(self) -> dict[str, Any]:
        return {
            "target": self.target.document(),
            "repeats": self.repeats,
            "seconds": self.seconds,
            "points": [one.document() | {"purpose": one.purpose} for one in self.proposed],
            "campaign": self._file,
        }

    def rows(self) -> list[Row]:
        keys = ("nodes", "ranks_per_node", "waiting_factor", "seconds", "before", "after", "purpose")
        return [{key: one.get(key) for key in keys} for one in self.document()["points"]]


def plan(
    platform: Place | Fitted = "local",
    target: str = "",
    *,
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    budget: str = "10min",
    workload: str = "md-workbench",
    settings: Mapping[str, object] | None = None,
    phase: str = "benchmark",
    seed: int = 0,
    progress: Progress = quietly,
) -> Plan:
    """The runs that narrow a forecast most: of a platform that will be calibrated, or after a calibration.

    @param target placement to forecast, "1000x8"; by default ten times `nodes`
    @param nodes, ranks_per_node that can be measured, at most
    @param budget time for all runs, with unit
    @param workload, settings, phase of the runs; those of a fitted platform are its measurements'
    @raises InputError, RunError with what is wrong and what is allowed"""
    seconds = duration(budget, "--budget", 1, 30 * 86400)
    fitted = platform_of(platform)
    requested = read_place(target) if target else None
    most, per_node = limits_of(fitted, nodes, ranks_per_node)
    wanted = requested or Target(10 * most, per_node)
    progress("what could be true, and what measurements would tell of it", 0, 1)
    if fitted.rates_alone:
        return _from_rates(fitted, wanted, most, per_node)
    with Simulations(about=fitted.file) as simulations:
        if fitted.fitted:
            ensemble = of_fitted(simulations, fitted, seed)
            own = measured_settings(fitted)
        else:
            own = as_settings(settings or {})
            noise = dict.fromkeys(("rate", *QUANTILES), UNREPEATED)
            ensemble = of_family(simulations, str(platform), workload, own, phase, noise, seed)
        planner = Planner(ensemble, wanted, fitted.fitted)
        proposed, repeats = planner.campaign(candidates(most, per_node, ensemble.pattern, own), seconds)
    length = planner.length if ensemble.sized else None
    return Plan(wanted, proposed, repeats, length, ensemble.pattern, own, can_be_measured=True)


def _from_rates(fitted: Fitted, wanted: Target, most: int, per_node: int) -> Plan:
    """Of a platform fitted to rates alone, whose plan has no times of runs."""
    workload = name_for_programs(fitted.fitted["campaign"]["workload"])
    proposed = plan_rates.chosen(fitted, wanted, plan_rates.candidates(most, per_node))
    if not plan_rates.can_be_measured(workload):
        return Plan(wanted, proposed, 2, None, workload, {}, can_be_measured=False)
    return Plan(wanted, proposed, 2, 1.0, workload, measured_settings(fitted), can_be_measured=True)
