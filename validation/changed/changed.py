#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a changed question change the answer? Every value of platforms, workloads, studies, campaigns and of the files
that iocast writes (files.py) is changed, one at a time. The answer must move by more than seeds differ, or the reader
must refuse.

    validation/changed/changed.py [platforms|workloads|studies|campaigns|runs|forecasts|fitted...] [--only NAME...]

A platform is simulated under some workloads of the catalogue, with the same random numbers before and after; a workload
on `lustre`; a study is answered from one store. Values that only describe stand in DESCRIPTIVE, with the reason. Exit
status 4 when something else changes nothing. About four minutes on two cores for platforms, one each for workloads and
studies. `tests/python/test_changed.py` runs a sample of it."""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]
from iocast.ground import binaries  # noqa: E402
from iocast.campaign.plan import CAMPAIGNS, read_plan  # noqa: E402
from iocast.platforms.content import content_hash, whole  # noqa: E402
from iocast.errors import InputError, RunError  # noqa: E402
from iocast.ground.files import sha256  # noqa: E402
from iocast.platforms.fitted import Fitted  # noqa: E402
from iocast.platforms.documents import PLATFORMS, dump, set_path  # noqa: E402
from iocast.platforms.platform_names import is_unused, unused  # noqa: E402
from iocast.published.serves import Serves  # noqa: E402
from iocast.study.documents import number  # noqa: E402

Path_ = tuple[Any, ...]
"""Keys and places on the way to a value."""
Answer = dict[str, float]
"""Logarithms of rates, mean times and tails by workload, phase and operation."""
QUESTIONS = [
    ("md-workbench", {"datasets": "3", "objects": "20", "iterations": "20"}, 2, 20),
    ("md-workbench", {"datasets": "2", "objects": "8", "iterations": "8"}, 150, 2),
    (
        "md-workbench",
        {"datasets": "2", "objects": "20", "iterations": "20", "waiting_factor": "1", "object_size": "5MB"},
        2,
        3,
    ),
    ("md-workbench", {"datasets": "2", "objects": "60", "iterations": "60", "think_time": "200ms"}, 2, 4),
    ("md-workbench", {"datasets": "1", "objects": "800", "iterations": "800", "think_time": "5ms"}, 1, 4),
    ("mdtest-shared", {"items": "40", "think_time": "100ms"}, 2, 4),
    ("mdtest-shared", {"items": "20"}, 8, 8),
    ("ior-easy", {"per_process": "64MiB"}, 3, 4),
    ("ior-easy", {"per_process": "8MiB"}, 12, 2),
    ("ior-hard", {"segments": "40"}, 2, 4),
    ("postmark", {"number": "40", "transactions": "80"}, 2, 2),
    ("browse", {}, 2, 2),
    ("operation-mix", {"files": "30", "operations": "150", "readdir": "1", "append": "1"}, 2, 4),
]
"""Workload, settings, nodes, ranks a node: between them all operations, small and large transfers, thinking, more ranks
a node than clients have slots, many nodes, runs longer than the periods of stalls, shared files, and a directory that
many ranks create in at once."""
FACTORS = (4.0, 0.25, 16.0, 1 / 256, 1e-6)
"""By which numbers are changed, one after the other until the answer moves: some are limits that only a small value
reaches."""
QUESTIONS_ON = ("lustre", "mistral", "pvfs2-gigabit", "cori")
"""Platforms that a workload is simulated on, until one answers otherwise: not all heed where in a file an access
goes."""
FAR_AWAY = 1e7
"""Nodes or ranks, beyond what is published of any system."""
CLEAR = 3.0
"""Times what seeds differ by, that an answer must move; with common random numbers a change is clear of them."""
LEAST = 1e-4
"""Of a logarithm: what seven digits could hide."""
DESCRIPTIVE = {
    "platform": {
        "description": "prose",
        "source": "prose",
        "schema_version": "the format's version",
        "extends": "merged before the values are changed",
        "calibration": "what may be fitted, not how it behaves",
        "fitted": "what a calibration found; the platform is written beside it",
    },
    "workload": {
        "description": "prose",
        "source": "prose",
        "schema_version": "the format's version",
        "small": "settings for tests",
    },
    "parameter": {"meaning": "prose"},
    "campaign": {"description": "prose", "source": "prose", "schema_version": "the format's version"},
    "study": {
        "title": "a heading",
        "question": "prose",
        "schema_version": "the format's version",
        "source": "prose",
        "why": "prose",
        "note": "prose",
    },
}


BESIDE = {("multisocket", "stations.cpu.sockets.remote"): {"stations.cpu.servers": 48}}
"""What is changed together with a value, before and after: all of multisocket's cores are in one socket, so that no
access is remote."""


@dataclass(frozen=True)
class Change:
    """A value that was changed; `moved` is how far the answer moved, in multiples of the difference between seeds;
    `refused` the reader's sentence."""

    what: str
    path: str
    before: Any
    after: Any
    moved: float
    refused: str = ""
    # no platform here heeds it, but ranks do other operations: where in a file accesses go, or tests that are not run
    # by default
    operations: bool = False

    @property
    def noticed(self) -> bool:
        return bool(self.refused) or self.operations or self.moved > CLEAR


def values(content: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every single value of a document with the way to it. A list of numbers is one value."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from values(value, (*path, key))
    elif isinstance(content, list) and any(isinstance(value, dict | list) for value in content):
        for place, value in enumerate(content):
            yield from values(value, (*path, place))
    else:
        yield path, content


def replaced(content: Any, path: Path_, value: Any) -> Any:
    """A copy with another value at the path."""
    made = copy.deepcopy(content)
    here = made
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return made


def others(value: Any) -> list[Any]:
    """Other values of the same kind; a name becomes one that nobody knows."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, list):
        return [value[:-1], value[1:]] if len(value) > 1 else [[*value, *value]] if value else []
    found = number(value)
    if found is None:
        return [f"{value}-else"]
    number_, unit = found
    if number_ == 0:
        return [f"{one}{unit}" if unit else one for one in (1, 2)] + (
            [] if isinstance(value, int) else [f"0.5{unit}" if unit else 0.5]
        )
    made = [number_ * factor for factor in FACTORS]
    if number_ == int(number_):  # things, bytes: 1.5 of them would only be refused
        made = [max(1.0, float(round(one))) if unit in ("", "B") else one for one in made]
    return [
        f"{one:.12f}".rstrip("0").rstrip(".") + unit if unit else int(one) if one == int(one) else one
        for one in dict.fromkeys(made)
        if one != number_
    ]


def farthest_of(what: str, path: str, value: Any, tried: Iterator[tuple[Any, float | str]]) -> Change:
    """The change that moved the answer most, of values with how far each moved it or why it was refused; a refusal
    where every value was refused."""
    best = Change(what, path, value, None, 0.0)
    refusal = None
    for other, outcome in tried:
        if isinstance(outcome, str):
            refusal = refusal or Change(what, path, value, other, 0.0, outcome)
        elif best.after is None or outcome > best.moved:
            best = Change(what, path, value, other, outcome)
        if best.noticed:
            break
    return refusal if refusal is not None and best.after is None else best


def answer_of(run: Any, prefix: str) -> Answer:
    found: Answer = {}
    for phase in run["phases"]:
        name = f"{prefix} {phase['name']}#{phase.get('repeat', 0)}"
        found[f"{name} rate"] = math.log(max(phase["rate"] or 0, 1e-12))
        for operation, known in phase["latency"].items():
            if known.get("count"):
                found |= {
                    f"{name} {operation} {key}": math.log(max(known[key], 1e-12))
                    for key in ("mean", "q50", "q99", "max")
                }
    return found


def farthest(before: Answer, after: Answer, noise: Answer) -> float:
    """How far an answer moved, in multiples of the difference between seeds; infinity where it has other quantities."""
    if before.keys() != after.keys():
        return math.inf
    return max((abs(after[key] - before[key]) / max(noise.get(key, 0.0), LEAST) for key in before), default=0.0)


class Asker:
    """Asks iocast-sim in parallel. Use as a context manager."""

    def __enter__(self) -> Asker:
        self._directory = tempfile.TemporaryDirectory(prefix="iocast-changed-")
        self._pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self._number = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._directory.cleanup()

    def write(self, content: Any, name: str) -> Path:
        self._number += 1
        file = Path(self._directory.name) / f"{name}-{self._number}.yaml"
        file.write_text(dump(content))
        return file

    def noise(self, answers: list[Answer]) -> Answer:
        """What seeds differ by: the standard deviation of each quantity that all have."""
        found = {}
        for key in answers[0]:
            known = [answer[key] for answer in answers if key in answer]
            mean = sum(known) / len(known)
            found[key] = math.sqrt(sum((one - mean) ** 2 for one in known) / max(len(known) - 1, 1))
        return found

    def simulated(self, platform: str | Path, rows: list[Any], seed: int = 0) -> Answer:
        """@raises InputError, RunError with the simulator's sentences"""
        found: Answer = {}
        for place, (workload, settings, nodes, per_node) in enumerate(rows):
            found |= answer_of(
                binaries.simulate(platform, str(workload), settings, nodes, per_node, seed), f"{place} {workload}"
            )
        return found

    def of_platform(self, content: Any, name: str, rows: list[Any], seed: int = 0) -> Answer:
        """What is simulated, and how far a scale lies beyond a platform's published numbers: that widens intervals and
        refuses forecasts, and moves nothing that is simulated.

        @raises InputError, RunError with the simulator's sentences"""
        file = self.write(content, name)
        found, serves = self.simulated(file, rows, seed), Serves.of(Fitted.open(str(file)))
        if serves.nodes:
            found |= {
                "beyond nodes": math.log(serves.beyond(FAR_AWAY, 0)),
                "beyond ranks": math.log(serves.beyond(0, FAR_AWAY)),
            }
        return found

    def operations(self, content: Any, name: str, settings: dict[str, str]) -> str:
        """Hash of the operations of each rank; "" where the simulator refuses."""
        with tempfile.TemporaryDirectory(dir=self._directory.name) as scratch:
            streams = Path(scratch) / "streams"
            command = [
                binaries.find("iocast-sim"),
                "--json",
                "--platform",
                "lustre",
                "--workload",
                str(self.write(content, name)),
                "--nodes",
                "2",
                "--ppn",
                "4",
            ]
            command += [
                "--dump-ops",
                str(streams),
                *(word for key, printed in settings.items() for word in ("--set", f"{key}={printed}")),
            ]
            try:
                binaries.run_json(command)
            except (InputError, RunError):
                return ""
            return content_hash({file.name: sha256(file) for file in streams.iterdir()})

    def each(self, tasks: list[Any], ask: Any) -> list[Any]:
        return list(self._pool.map(ask, tasks))


def changed_platform(
    asker: Asker, name: str, document: dict[str, Any], sample: slice = slice(None), rows: list[Any] = QUESTIONS
) -> list[Change]:
    """Every value of a platform, changed one at a time."""
    seeds = [asker.of_platform(document, name, rows, seed) for seed in (0, 1, 2)]
    noise = asker.noise(seeds)
    chosen = [
        (path, value)
        for path, value in values(document)
        if path[0] not in DESCRIPTIVE["platform"] and value not in (None, [], {})
    ][sample]

    resolved = binaries.resolve_platform(asker.write(document, name))

    def one(place: tuple[Path_, Any]) -> Change:
        path, value = place
        dotted = ".".join(map(str, path))
        if is_unused(dotted, document, resolved):  # inherited, and refused wherever it is edited
            return Change(name, dotted, value, None, 0.0, unused(dotted, name))
        beside = copy.deepcopy(document)
        for other_path, other_value in BESIDE.get((name, dotted), {}).items():
            set_path(beside, other_path, other_value)
        start = seeds[0] if beside == document else asker.of_platform(beside, name, rows)

        def tried() -> Iterator[tuple[Any, float | str]]:
            for other in others(value):
                try:
                    after = asker.of_platform(replaced(beside, path, other), name, rows)
                    yield other, farthest(start, after, noise)
                except (InputError, RunError) as error:
                    yield other, math.inf if path[0] == "serves" else str(error)  # what it says is what is refused

        return farthest_of(name, dotted, value, tried())

    return asker.each(chosen, one)


def changed_workload(asker: Asker, name: str, document: dict[str, Any], sample: slice = slice(None)) -> list[Change]:
    """Every value of a workload file, changed one at a time, under the first of its small settings."""
    small = dict(one.partition("=")[::2] for one in str((document.get("small") or [""])[0]).split())
    chosen = [
        (path, value)
        for path, value in values(document)
        if path[0] not in DESCRIPTIVE["workload"] and path[-1] not in DESCRIPTIVE["parameter"] and value is not None
    ][sample]

    def one(place: tuple[Path_, Any]) -> Change:
        path, value = place
        parameter = path[-2] if path[-1] == "default" else path[-1]
        own = next((key for key in small if key == parameter or key == ".".join(map(str, path[1:]))), None)
        settings = {key: printed for key, printed in small.items() if key != own}
        shown = ".".join(map(str, path))

        def ask(platform: str, printed: Any, seed: int = 0) -> Answer:
            file = asker.write(replaced(document, path, printed), name)
            return {
                key.partition(str(file))[2]: log
                for key, log in asker.simulated(platform, [(file, settings, 2, 4)], seed).items()
            }

        start = small[own] if own else value  # as small as the others, where that is what keeps the run short

        def tried() -> Iterator[tuple[Any, float | str]]:
            for platform in QUESTIONS_ON:
                try:
                    seeds = [ask(platform, start, seed) for seed in (0, 1, 2)]
                except (InputError, RunError) as error:
                    yield start, f"as it is: {error}"
                    continue
                noise = asker.noise(seeds)
                for other in others(start):
                    try:
                        yield other, farthest(seeds[0], ask(platform, other), noise)
                    except (InputError, RunError) as error:
                        yield other, str(error)

        best = farthest_of(name, shown, value, tried())
        if best.noticed:
            return best
        streams = [
            asker.operations(replaced(document, path, printed), name, settings) for printed in (start, *others(start))
        ]
        return replace(best, operations=any(one != streams[0] for one in streams[1:] if one))

    return asker.each(chosen, one)


def platforms(asker: Asker, only: list[str]) -> list[Change]:
    names = [file.stem for file in sorted(PLATFORMS.glob("*.yaml")) if not only or file.stem in only]
    return [change for name in names for change in changed_platform(asker, name, whole({"extends": name}))]


def workloads(asker: Asker, only: list[str]) -> list[Change]:
    files = [file for file in sorted((ROOT / "workload" / "catalogue").glob("*.yaml")) if not only or file.stem in only]
    return [
        change
        for file in files
        for change in changed_workload(asker, file.stem, yaml.load(file.read_text(), Loader=yaml.BaseLoader))
    ]


def studies(asker: Asker, only: list[str]) -> list[Change]:
    """The small study of the tests with each key of tests/python/test_changed.py changed."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]
    import test_changed as tests

    found = []
    with tempfile.TemporaryDirectory(prefix="iocast-changed-") as scratch:
        directory = Path(scratch)
        before = tests.answer(directory, tests.small(), directory / "store")
        for path, value in (one for one in tests.STUDY_CHANGES if one[0] not in tests.WITHOUT_A_LEVEL):
            study = tests.with_value(tests.small(), path, value)
            after = tests.answer(directory, study, directory / "store")
            refused = after if isinstance(after, str) else ""
            moved = math.inf if after != before else 0.0
            found.append(Change("study", ".".join(map(str, path)), None, value, moved, refused))
    return found


def campaigns(asker: Asker, only: list[str]) -> list[Change]:
    """Every value of the campaigns: another plan is read, or the reader refuses."""
    files = [file for file in sorted(CAMPAIGNS.glob("*.yaml")) if not only or file.stem in only]
    return [change for file in files for change in changed_campaign(asker, file)]


def changed_campaign(asker: Asker, file: Path) -> list[Change]:
    """Every value of a campaign file, changed one at a time."""
    document = yaml.safe_load(file.read_text())

    def plan(content: Any) -> Any:
        return asdict(replace(read_plan(str(asker.write(content, file.stem))), file=file))

    before = plan(document)

    def outcome(path: Path_, other: Any) -> float | str:
        try:
            return math.inf if plan(replaced(document, path, other)) != before else 0.0
        except InputError as error:
            return str(error)

    found = []
    for path, value in values(document):
        if path[0] not in DESCRIPTIVE["campaign"]:
            tried = ((other, outcome(path, other)) for other in others(value))
            found.append(farthest_of(file.stem, ".".join(map(str, path)), value, tried))
    return found


def files(kind: str) -> Callable[[Asker, list[str]], list[Change]]:
    """Of a run directory, a forecast or a fitted platform; `--only` names sections of the file."""

    def ask(asker: Asker, only: list[str]) -> list[Change]:
        sys.path[:0] = [str(Path(__file__).parent)]
        import files as written

        with tempfile.TemporaryDirectory(prefix="iocast-changed-") as scratch:
            given = written.make(Path(scratch))
            return written.changed_file(written.FILES[kind](given), only=only)

    return ask


KINDS = {
    "platforms": platforms,
    "workloads": workloads,
    "studies": studies,
    "campaigns": campaigns,
    "runs": files("runs"),
    "forecasts": files("forecasts"),
    "fitted": files("fitted"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="|".join(KINDS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"there is no kind '{min(unknown)}'; allowed: {', '.join(KINDS)}")
    with Asker() as asker:
        found = [change for kind in given.kinds or KINDS for change in KINDS[kind](asker, given.only)]
    unnoticed = [change for change in found if not change.noticed]
    refused, elsewhere = (
        sum(bool(change.refused) for change in found),
        [change for change in found if change.operations],
    )
    if given.json:
        print(
            json.dumps(
                {"changed": len(found), "refused": refused, "unnoticed": [vars(change) for change in unnoticed]},
                indent=1,
            )
        )
    else:
        moving = len(found) - refused - len(elsewhere) - len(unnoticed)
        print(
            f"{len(found)} values changed: {moving} move the answer, {refused} are refused, {len(elsewhere)} change"
            f" operations alone, {len(unnoticed)} change nothing."
        )
        for change in unnoticed:
            print(
                f"  {change.what}: {change.path} = {change.before} -> {change.after} (moved {change.moved:.2g} times"
                " what seeds differ by)"
            )
    return 4 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
