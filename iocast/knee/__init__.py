# SPDX-License-Identifier: Apache-2.0
"""Knee search: the highest load that keeps service levels, or the load of the greatest power (docs/knee.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, cast

from scipy.special import stdtrit

from iocast.runs.arrivals import number
from iocast.campaign.plan import PlannedRun
from iocast.errors import InputError
from iocast.ground.files import SCHEMA_VERSION, read_json
from iocast.knee.judge import FEW, Seen, check_levels, look
from iocast.knee.probes import FEW_RUNS, GUARD, PILOT, Probes
from iocast.knee.search import GROWTH, Ask, Done, Limits, Observation, Purpose, decide, fresh_runs, rounded, unfinished
from iocast.knee.words import load_text
from iocast.records import note_of_measurements as note
from iocast.records.note import Note
from iocast.records.knee import AnsweredLoad, Judged, KneeBounds, KneeDocument, Load, MeanOfRuns, TriedLoad
from iocast.study.levels import Level
from iocast.wording.notes import add
from iocast.wording.text import quantity

UNLOADED = 0.05
"""Share of the pilot's throughput that is taken for no load."""
FELL = 0.9
"""Where mean response time falls by more than this factor with less load, there was load."""
PAIR = 1.2
"""In a search for the greatest power two runs at load / PAIR and load * PAIR tell whether power rises."""
RISEN = 1.25
"""Service time over that of the unloaded system from which the server counts as loaded."""
MAX_HALVINGS = 6

Report = Callable[[str, int, int], None]


class Search:
    """One search. `levels` empty: for the greatest power. Times in seconds."""

    def __init__(
        self, probes: Probes, levels: list[Level], *, budget: float, confidence: float, precision: float
    ) -> None:
        self.probes, self.levels, self.search = probes, levels, probes.search
        self.budget, self.confidence, self.precision = budget, confidence, precision
        self.began = time.monotonic()
        self.before = probes.seconds  # of an earlier process
        self._looks: dict[str, Seen] = {}

    # ---- loads and settings -------------------------------------------------------------------------------------

    @property
    def cap(self) -> float:
        """Ranks that are inside an operation at T = 0. How much of a rate the ranks can do is not known before.

        A rank's share of --max-rate bounds it, where there is that limit."""
        if self.search.over == "waiting_factor":
            return float(self.search.ranks)
        limit = self.probes.max_rate / self.search.ranks
        return rounded(limit, down=True) if limit < math.inf else limit

    def settings(self, load: float) -> dict[str, Any]:
        if self.search.over == "rate":
            return {"rate": f"{load:.10g}/s", **self.probes.sized(load * self.search.length)}
        factor = max(0.0, self.search.ranks / load - 1)
        return {
            "waiting_factor": factor,
            **self.probes.sized(self.search.length / ((1 + factor) * self._response_near(load))),
        }

    def load(self, run: PlannedRun) -> float:
        """Operations a second and rank, or ranks that are inside an operation on average, N / (1 + T)."""
        if self.search.over == "rate":
            return number(run.settings, "rate")
        factor = float(run.settings["waiting_factor"])
        return rounded(self.search.ranks / (1 + factor)) if factor > 0 else float(self.search.ranks)

    def _response_near(self, load: float) -> float:
        """Of the run whose load is closest, to size another."""
        loads = [r for r in self.probes.made("bracket", "search", "confirm") if r.status == "complete"]
        best = (
            min(loads, key=lambda r: abs(math.log(self.load(r) / load)), default=None) or self.probes.made("pilot")[0]
        )
        return max(self.look(best).response, 1e-9)

    def look(self, run: PlannedRun) -> Seen:
        if run.name not in self._looks:
            self._looks[run.name] = look(self.probes.path(run), self.search.phase, self.levels)
        return self._looks[run.name]

    # ---- the search ---------------------------------------------------------------------------------------------

    def run(self, report: Report) -> KneeDocument:
        """The content of knee.json, which is also written after every run."""
        self._make("pilot", {"waiting_factor": 0, **self.probes.sized(PILOT)}, report, role="beside", seconds=None)
        pilot = self.look(self.probes.made("pilot")[0])
        if not self.levels:
            self._make(
                "full",
                {"waiting_factor": 0, **self.probes.sized(self.search.length / pilot.response)},
                report,
                seconds=None,
            )
        rate = self.search.over == "rate"
        lowest = rounded(UNLOADED * (pilot.rate / self.search.ranks if rate else self.search.ranks))
        self._check_lowest(lowest)
        self.lowest = lowest if rate else self._unloaded(lowest, report)
        while True:
            step = self._next()
            if isinstance(step, Done):
                break
            for word, load in self._runs_of(step):
                self._make(word, self.settings(load), report)
            self.probes.write("knee.json", self.answer(Done("unfinished", None, None, None, None, 0)))
        answer = self.answer(step)
        self.probes.leave()
        self.probes.write("knee.json", answer)
        return answer

    def _make(
        self,
        step: str,
        settings: dict[str, Any],
        report: Report,
        *,
        role: str = "fit",
        seconds: float | None = math.nan,
    ) -> None:
        if step in ("pilot", "full") and self.probes.made(step):
            return
        load = settings.get("rate") or f"T = {number(settings, 'waiting_factor'):.4g}"
        report(
            f"{step}: {self.search.ranks} ranks, {load}", min(int(self._spent()), int(self.budget)), int(self.budget)
        )
        self.probes.make(
            step,
            settings,
            role=role,
            seconds=None if seconds is None else self._planned(settings),
            within=max(1.0 if not self.probes.reuses else GUARD[1], self.budget - self._spent()),
        )

    def _spent(self) -> float:
        return self.before + time.monotonic() - self.began

    def _planned(self, settings: dict[str, Any]) -> float:
        """Seconds of a run with these settings."""
        if self.probes.size:
            return self.search.length
        if self.search.over == "rate":
            rate = number(settings, "rate")
        else:
            factor = number(settings, "waiting_factor")
            rate = 1 / ((1 + factor) * self._response_near(self.search.ranks / (1 + factor)))
        return self.probes.extent.seconds(rate)

    def _check_lowest(self, load: float) -> None:
        """@raises InputError when a run at the lowest load would end after the budget"""
        if self.probes.size or self.probes.made("bracket"):
            return
        planned = self._planned(self.settings(load))
        if self._spent() + planned > self.budget:
            self.probes.leave()
            raise InputError(
                f"A run at the lowest load, {load_text(self.search.over, load, self.search.ranks)}, would take "
                f"{quantity('', planned)}, and {max(0.0, self.budget - self._spent()):.3g} s are left of the budget of "
                f"{self.budget:g} s. Give a larger --budget, or make the run smaller "
                f"{self.probes.smaller_run(self.budget / FEW_RUNS / planned)}."
            )

    def _unloaded(self, load: float, report: Report) -> float:
        """Downwards, until response times fall no more."""
        while True:
            made = sorted((r for r in self.probes.made("bracket") if r.status == "complete"), key=self.load)
            low = [r for r in made if self.load(r) <= load]
            if (
                len(low) > 1
                and self.look(low[0]).response > FELL * self.look(low[1]).response
                or len(low) > MAX_HALVINGS
            ):
                return self.load(low[0])
            lower = rounded(self.load(low[0]) / GROWTH**2) if low else load
            if low and self._short(1, lower):
                return self.load(low[0])
            self._make("bracket", self.settings(lower), report)

    def _short(self, runs: float, load: float | None = None) -> bool:
        """Whether the time left is not enough for this many runs, at this load if there is one."""
        if self.probes.size:
            each = max(self.probes.slowest, self.search.length + 1.0)
        else:
            each = self.probes.slowest if load is None else self._planned(self.settings(load))
        return self._spent() + runs * each > self.budget

    def _next(self) -> Ask | Done:
        limits = self._limits()
        seen = self.observations()
        if not self.levels:
            ask = self._next_of_power(seen)
            if ask is not None:
                return unfinished(seen, limits) if self._short(1, ask.load) else ask
        hurry = self._short((fresh_runs(limits, 1) if self.levels else limits.unanimous) + 2)
        step = decide(seen, limits, hurry=hurry)
        if isinstance(step, Ask) and self._short(1 if self.levels or step.purpose == "confirm" else 2, step.load):
            return unfinished(seen, limits)
        return step

    def _limits(self) -> Limits:
        if self.levels:
            return Limits(self.lowest, self.cap, self.confidence, self.precision)
        lowest = min((o.load for o in self.observations()), default=self.lowest)
        return Limits(
            lowest,
            rounded(self.cap / PAIR, down=True) if self.cap < math.inf else math.inf,
            self.confidence,
            self.precision,
            confirms=False,
        )

    def _bracket(self) -> list[PlannedRun]:
        return sorted(self.probes.made("bracket"), key=self.load)

    def _next_of_power(self, seen: list[Observation]) -> Ask | None:
        """While the greatest power is not enclosed."""
        made = self._bracket()
        if not made:
            return Ask(self.lowest, "bracket")
        bracket = [o for o in seen if o.purpose == "bracket"]
        bottom, top = self.load(made[0]), self.load(made[-1])
        if all(o.met for o in bracket):
            return (
                Ask(rounded(top * GROWTH) if top * GROWTH < self.cap else self.cap, "bracket")
                if top < self.cap
                else None
            )
        if not any(o.met for o in bracket) and bottom > self.lowest / GROWTH**MAX_HALVINGS:
            return Ask(rounded(bottom / GROWTH), "bracket")
        return None

    def _runs_of(self, ask: Ask) -> list[tuple[str, float]]:
        if ask.purpose == "confirm":
            return [(f"confirm {ask.attempt}", ask.load)]
        if self.levels or ask.purpose == "bracket":
            return [(ask.purpose, ask.load)]
        pairs = self._pairs()
        centre = min(ask.load, rounded(self.cap / PAIR, down=True)) if self.cap < math.inf else ask.load
        number_, halves = next(((n, h) for n, (_, h) in pairs.items() if len(h) < 2), (len(pairs) + 1, []))
        if halves:
            centre = pairs[number_][0]
        loads = (
            [centre / PAIR, centre * PAIR] if number_ % 2 else [centre * PAIR, centre / PAIR]
        )  # whatever drifts favours neither
        done = {self.load(r) for r in halves}
        return [(f"search {number_} {centre:.10g}", load) for load in map(rounded, loads) if load not in done]

    def _pairs(self) -> dict[int, tuple[float, list[PlannedRun]]]:
        pairs: dict[int, tuple[float, list[PlannedRun]]] = {}
        for run in self.probes.made("search"):
            _, place, centre = run.step.split()
            pairs.setdefault(int(place), (float(centre), []))[1].append(run)
        return pairs

    def met(self, run: PlannedRun) -> bool:
        return run.status == "complete" and self.look(run).met

    def power(self, run: PlannedRun) -> float:
        return self.look(run).power if run.status == "complete" else 0.0

    def observations(self) -> list[Observation]:
        """What the runs say, in their order."""
        if self.levels:
            return [
                Observation(self.load(r), self.met(r), *_purpose(r))
                for r in self.probes.made("bracket", "search", "confirm")
            ]
        made = self._bracket()
        seen = [
            Observation(rounded(math.sqrt(self.load(a) * self.load(b))), self.power(b) > self.power(a), "bracket")
            for a, b in zip(made, made[1:], strict=False)
        ]
        for centre, halves in self._pairs().values():
            if len(halves) == 2:
                low, high = sorted(halves, key=self.load)
                seen.append(Observation(centre, self.power(high) > self.power(low)))
        return seen + [Observation(self.load(r), True, *_purpose(r)) for r in self.probes.made("confirm")]

    # ---- the answer ---------------------------------------------------------------------------------------------

    def answer(self, done: Done) -> KneeDocument:
        a = self.search
        loads = self._loads()
        by_load = {entry["load"]: entry for entry in loads}
        low, high, reason = done.low, done.high, done.reason
        limit = self._client_limit(done, loads)
        if limit == "ranks":
            high = None
        fresh = [
            r
            for r in self.probes.made("confirm")
            if done.answer is not None and self.load(r) == done.answer and r.status == "complete"
        ]
        shown: AnsweredLoad | None = None
        if done.answer is not None:
            mine = fresh or [
                r
                for r in self.probes.made("bracket", "search", "confirm")
                if self.load(r) == done.answer and r.status == "complete"
            ]
            seen = [self.look(r) for r in mine]
            shown = {
                **self._of_load(done.answer),
                "runs": [r.name for r in mine],
                "confirmed": done.confirmed,
                "rate": _interval([s.rate for s in seen], self.confidence),
                "response": _interval([s.response for s in seen], self.confidence),
                "rates": {
                    op: _interval([s.rates[op] for s in seen if op in s.rates], self.confidence)
                    for op in self.probes.operations
                },
                "values": {
                    level.text: _interval([s.values[level.text] for s in seen], self.confidence)
                    for level in self.levels
                },
            }
        content: KneeDocument = {
            "schema_version": SCHEMA_VERSION,
            "kind": "knee",
            "workload": a.workload,
            "phase": a.phase,
            "backend": a.backend,
            "over": a.over,
            "operations": self.probes.operations,
            "placement": {
                "ranks": a.ranks,
                "nodes": a.nodes,
                "ranks_per_node": a.ranks_per_node,
                "threads_per_rank": a.threads_per_rank,
            },
            "levels": [{"text": level.text, "quantity": level.quantity, "limit": level.limit} for level in self.levels],
            "confidence": self.confidence,
            "precision": self.precision,
            "length_seconds": a.length,
            "budget_seconds": self.budget,
            "reason": reason,
            "answer": shown,
            "knee": {"estimate": done.estimate, "low": low, "high": high},
            "limited_by": limit,
            "unloaded": by_load.get(loads[0]["load"]) if loads else None,
            "bounds": self._bounds(loads),
            "loads": loads,
            "runs": len(self.probes.runs),
            "seconds": self._spent(),
            "notes": [],
            "cautions": [],
        }
        add(content, self._notes(content))
        return content

    def _of_load(self, load: float) -> Load:
        if self.search.over == "rate":
            return {"load": load, "rate_of_a_rank": load, "offered": load * self.search.ranks}
        return {"load": load, "waiting_factor": max(0.0, self.search.ranks / load - 1), "asking": load}

    def _loads(self) -> list[TriedLoad]:
        """Every load tried, ascending, its runs together."""
        runs: dict[float, list[PlannedRun]] = {}
        for run in self.probes.made("bracket", "search", "confirm"):
            runs.setdefault(self.load(run), []).append(run)
        return [self._tried(load, runs[load]) for load in sorted(runs)]

    def _tried(self, load: float, runs: list[PlannedRun]) -> TriedLoad:
        seen = [self.look(r) for r in runs if r.status == "complete"]
        met = sum(s.met for s in seen)
        judged: Judged = {}
        if self.levels:
            judged = {"met": met, "missed": len(runs) - met}
            judged["verdict"] = "met" if met == len(runs) else "mixed" if met else "missed"

        def mean(key: str) -> float | None:
            return fmean(getattr(s, key) for s in seen) if seen else None

        entry: TriedLoad = {
            **self._of_load(load),
            "runs": [r.name for r in runs],
            "cut_off": sum(r.status == "failed" for r in runs),
            **judged,
            "kept_up": sum(s.kept_up for s in seen),
            "rate": mean("rate"),
            "response": mean("response"),
            "service": mean("service"),
            "busy": mean("busy"),
            "power": mean("power"),
            "seconds": mean("seconds"),
            "values": {
                level.text: median(s.values[level.text] for s in seen) if seen else None for level in self.levels
            },
            "rates": {
                op: fmean(rates) if (rates := [s.rates[op] for s in seen if op in s.rates]) else None
                for op in self.probes.operations
            },
            "few": sorted({text for s in seen for text in s.few}),
        }
        return entry

    def _client_limit(self, done: Done, loads: list[TriedLoad]) -> str | None:
        """ "ranks" or "server", where throughput ended before any level was missed; None where a level did."""
        if done.reason == "always met":
            return "ranks" if self.search.over == "waiting_factor" else "max_rate"
        known = [entry for entry in loads if entry["service"]]
        if not self.levels or not known or done.answer is None or all(entry.get("verdict") == "met" for entry in known):
            return None
        over = [entry for entry in known if entry["kept_up"] < len(entry["runs"])]
        if not over or any(
            level.margin(v) < 0
            for entry in known
            for level in self.levels
            if (v := entry["values"][level.text]) is not None
        ):
            return None
        # Medians: a single disturbed run must not decide.
        risen = median(e["service"] or 0.0 for e in over) / median(e["service"] or 0.0 for e in known[:3])
        return "ranks" if risen < RISEN and not any(e["cut_off"] for e in loads) else "server"

    def _bounds(self, loads: list[TriedLoad]) -> KneeBounds | None:
        """N* = (D + Z) / D_max, here with Z = 0: the number of ranks in closed loop beyond which they must queue
        (Denning & Buzen 1978)."""
        full = [self.look(r) for r in self.probes.made("full") if r.status == "complete"]
        if not full or not loads or not loads[0]["service"]:
            return None
        most = max([s.rate for s in full] + [entry["rate"] for entry in loads if entry["rate"]])
        demand = loads[0]["service"]
        return {"demand": demand, "saturated_rate": most, "largest_demand": 1 / most, "ranks": demand * most}

    def _notes(self, content: KneeDocument) -> Iterator[Note]:
        ranks, answer = self.search.ranks, content["answer"]
        known = [entry for entry in content["loads"] if entry["service"]]
        if content["limited_by"] == "ranks":
            held = "levels" if self.levels else "power"
            yield note.RanksEndSearch(ranks, held if content["reason"] == "always met" else "busy")
        elif content["limited_by"] == "max_rate":
            yield note.MaxRateEndsSearch(str(self.probes.use.max_rate))
        elif content["limited_by"] == "server":
            yield note.PaceEndsSearch()
        if self.search.over == "rate" and answer and known and content["limited_by"] is None:
            here = min(known, key=lambda e: abs(e["load"] - answer["load"]))
            response, service = here["response"] or 0.0, here["service"] or 0.0
            waits, above = response - service, response - (known[0]["response"] or 0.0)
            if above > 0.1 * response and waits > 0.5 * above and service < RISEN * (known[0]["service"] or 0.0):
                yield note.WaitsForItsRank(waits / response)
        if few := sorted({text for entry in content["loads"] for text in entry["few"]}):
            yield note.FewBeyondQuantile(FEW, few)
        short = [s for entry in known if (s := entry["seconds"]) is not None and s < 0.5 * self.search.length]
        if short and self.probes.size:
            yield note.DataSetTooSmall(self.search.length, min(short))
        if not self.probes.reuses:
            yield note.WholeWorkloadEachRun(self.search.phase)
        elif not self.probes.size:
            yield note.WorkOfItsOwn()
        if cut := sum(entry["cut_off"] for entry in content["loads"]):
            yield note.RunsCutOff(cut)


def _purpose(run: PlannedRun) -> tuple[Purpose, int]:
    word, _, rest = run.step.partition(" ")
    return ("confirm", int(rest)) if word == "confirm" else ("bracket", 0) if word == "bracket" else ("search", 0)


def _interval(values: list[float], confidence: float) -> MeanOfRuns:
    """Mean over runs, with Student's interval; open for a single run."""
    if not values:
        return {"value": None, "low": None, "high": None}
    mean = fmean(values)
    if len(values) < 2:
        return {"value": mean, "low": None, "high": None}
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * stdev(values) / math.sqrt(len(values))
    return {"value": mean, "low": max(0.0, mean - half), "high": mean + half}


def knee_of(directory: Path) -> KneeDocument | None:
    """The content of a campaign's knee.json; None for a campaign that is no search."""
    file = directory / "knee.json"
    return cast(KneeDocument, read_json(file, "knee")) if file.is_file() else None


__all__ = ["Search", "check_levels", "knee_of"]
