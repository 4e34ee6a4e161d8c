# SPDX-License-Identifier: Apache-2.0
"""What a server's own counters say of why it is slow: the requests that keep it busiest, and what would help.

Rate times mean time is the number of requests at the server at a time (Little's law), and of the work of threads the
number of busy ones (utilisation law; Denning & Buzen 1978)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from iocast.importers.statistics import HANDLING, REQUESTS, TRIP, TRIPS, WAIT, Server
from iocast.records.simulated import ObservedDocument
from iocast.report import units
from iocast.report.sources import Run, Sources
from iocast.report.table import Column, Table
from iocast.wording.text import table as text_table

MAX_NAMED = 3
"""Servers that the question and the first screen name."""
IDLE = 0.01
"""Requests at a time below which a server has hardly anything to do. Chosen by hand."""
ALONE = 0.1
"""Likewise, below which requests hardly meet each other: the number that an arriving one finds there on average."""
WAITS = 0.2
"""Share of the time from which a wait is worth shortening. Chosen by hand."""
NEARLY_ALL = 0.8
"""Share of busy threads from which more of them may help. Chosen by hand."""
TIMED = 0.9
"""Share of requests that must have times, for shares of the time to be those of the server. Chosen by hand."""
LONG = 3600.0
"""Seconds from which a mean hides the busy hours. Chosen by hand."""
ALL_REQUESTS = "request"
"""Name under which a service of Lustre counts all its requests together."""
HANDLES = ("sequence", "putfh", "getfh", "putrootfh", "savefh", "restorefh")
"""Parts of compounds of NFSv4 that go with all others."""
OTHERS = "(not timed apart)"
AT_A_TIME = {HANDLING: "threads busy with it at a time", TRIPS: "under way at a time", REQUESTS: "there at a time"}
HELP = (
    (
        r"(obd_|ost_|mds_)?(ping|statfs|get_info|set_info|connect|disconnect|get_root)|null",
        "Clients ask this to watch the server, not for a program: longer intervals of their checks take it away.",
    ),
    (
        r"(mds_)?(lookupp?|f?stat|getattr|access|getxattr|listxattr|readlink|readdirp?|readpage)|read_page|intent_lock"
        r"|head\w*|list\w*",
        "Clients that keep names and attributes for longer, and programs that list and check less, make fewer of them; "
        "faster writes don't.",
    ),
    (
        r"(mds_)?(open|close|flush|opendir)",
        "Programs that keep files open, or pack many small files into few large ones, make fewer of them.",
    ),
    (
        r"create|mkdir|mknod|unlink|rmdir|remove|rename|link|symlink|setattr|setxattr|(mds_)?reint\w*",
        "Fewer objects, a journal on faster devices, or names spread over more servers help; caches at clients don't.",
    ),
    (r"p?read|get|get_?obj(ect)?", "Larger requests, memory for what is read again, and faster devices help."),
    (r"p?write|put|put_?obj(ect)?", "Larger requests, and devices or a buffer that take them faster, help."),
    (r"fsync|commit|sync", "Fewer commits, or devices that make data safe sooner, help; more bandwidth doesn't."),
    (
        r"ldlm_\w+|\w*lk|lock\w*",
        "Clients that take locks from each other make these: files and directories of their own avoid them.",
    ),
)
"""What makes a kind of request rarer or faster, by what it does; no counter tells whether it would here."""


@dataclass(frozen=True)
class Request:
    """Requests of a kind. `mean`: seconds of one, None where no times are counted; `wait`: the part of it that is
    waiting, where that is counted; `part`: of another kind, whose count and time hold these."""

    name: str
    count: int
    rate: float
    mean: float | None = None
    largest: float | None = None
    wait: float | None = None
    part: bool = False

    @property
    def at_a_time(self) -> float | None:
        return None if self.mean is None else self.rate * self.mean


@dataclass(frozen=True)
class Load:
    """What a server or a mount counted, the busiest requests first. `wait`: mean for each of all requests, where the
    server counts that by itself; `moved`: bytes."""

    name: str
    tool: str
    about: ObservedDocument
    server: Server | None
    seconds: float
    requests: list[Request]
    wait: float | None
    moved: float | None

    @property
    def title(self) -> str:
        return self.tool if self.name.lower() == self.tool.lower() else f"{self.tool} {self.name}"

    @property
    def whole(self) -> list[Request]:
        return [one for one in self.requests if not one.part]

    @property
    def rate(self) -> float:
        return sum(one.rate for one in self.whole)

    @property
    def busy(self) -> float | None:
        """Requests at a time, of all that have times."""
        known = [one.at_a_time for one in self.whole if one.at_a_time is not None]
        return sum(known) if known else None

    def share(self, one: Request) -> float | None:
        """Of the time of all requests; where none has times, or all are 0, of their number."""
        if one.part:
            return None
        if not self.busy:
            return one.rate / self.rate
        return one.at_a_time / self.busy if one.at_a_time is not None else None

    @property
    def busiest(self) -> Request:
        """Of those without times the most frequent one; its own parts tell more than a compound of NFSv4."""
        return self.requests[0]

    @property
    def telling(self) -> Request:
        """The busiest, or its most frequent part."""
        own = f"{self.busiest.name}."
        return next(
            (one for one in self.requests if one.name.startswith(own) and one.name[len(own) :] not in HANDLES),
            self.busiest,
        )

    @property
    def waiting(self) -> float | None:
        """Share of the time that is waiting, of the requests for which both are known."""
        if self.wait is not None:
            if self.timed < TIMED:
                return None
            inside = self.busy or 0.0
            waits = self.wait * self.rate
            return waits / (waits + inside) if waits + inside else None
        known = [(one.rate * one.wait, one.at_a_time) for one in self.whole if one.wait is not None and one.at_a_time]
        return sum(wait for wait, _ in known) / sum(inside for _, inside in known) if known else None

    @property
    def densest(self) -> float | None:
        """Requests at a time if all of a longer time had come within an hour, which its mean would hide."""
        return None if self.busy is None else self.busy * max(1.0, self.seconds / LONG)

    @property
    def is_idle(self) -> bool:
        return self.densest is not None and self.densest < IDLE and self.timed >= TIMED

    @property
    def timed(self) -> float:
        """Share of its requests that have times."""
        return sum(one.rate for one in self.whole if one.mean is not None) / self.rate if self.rate else 0.0


class ServerNumbers(TypedDict):
    """A server in the JSON of numbers."""

    name: str
    tool: str
    seconds: float
    holds: str
    rate: float
    at_a_time: float | None
    waiting: float | None
    threads: int | None
    busiest: str | None
    answer: str
    help: list[str]
    cautions: list[str]


def loads(sources: Sources) -> list[Load]:
    """The busiest server first; those without times last."""
    found = [load for run in sources.servers if (load := _load(run)) is not None]
    return sorted(found, key=lambda one: (-(one.busy if one.busy is not None else -1.0), -one.rate))


def _load(run: Run) -> Load | None:
    phase, about = run.phase("observed"), run.observed
    seconds = phase.get("seconds") if phase else None
    if phase is None or about is None or not seconds:
        return None
    latency = phase.get("latency") or {}
    made = []
    for name, one in latency.items():
        count, mean = one.get("count"), one.get("mean")
        whole, _, part = name.partition(".")
        if not count or (part and (mean is not None or whole not in latency)):
            continue
        made.append(
            Request(name, int(count), count / seconds, mean, one.get("max"), _wait(latency, name, mean), bool(part))
        )
    everything = latency.get(ALL_REQUESTS + TRIP) or {}
    if (count := everything.get("count")) and (mean := everything.get("mean")) is not None:
        made = _with_others(made, int(count), mean, seconds)
    made.sort(key=lambda one: (-(one.at_a_time if one.at_a_time is not None else -1.0), one.part, -one.rate))
    wait = (latency.get(ALL_REQUESTS + WAIT) or {}).get("mean")
    tool = (run.document.get("tool") or {}).get("name") or run.workload
    return Load(run.name, tool, about, run.server, seconds, made, wait, phase.get("bytes"))


def _wait(latency: dict[str, dict[str, float]], name: str, mean: float | None) -> float | None:
    """Mean wait of a request: counted, what it isn't worked on, or none where a client counts its slots' waits."""
    means = {part: one["mean"] for part, one in latency.items() if one.get("mean") is not None}
    for end in (WAIT, ".queue"):
        if (known := means.get(name + end)) is not None:
            return known
    if mean is not None and (worked := means.get(f"{name}.process")) is not None:
        return max(mean - worked, 0.0)
    return 0.0 if name + TRIP in latency else None


def _with_others(made: list[Request], count: int, mean: float, seconds: float) -> list[Request]:
    """With what a client's device counted of all its requests, less those of which it tells more."""
    timed = [one for one in made if one.mean is not None]
    left = count - sum(one.count for one in timed)
    time = count * mean - sum(one.count * one.mean for one in timed if one.mean is not None)
    return [*timed, Request(OTHERS, left, left / seconds, max(time, 0.0) / left)] if left > 0 else timed


def question(known: Sequence[Load]) -> str:
    return f"Which requests keep {_names(known)} busiest?"


def _names(known: Sequence[Load]) -> str:
    left = len(known) - MAX_NAMED
    tools = ["", *(one.tool for one in known)]
    shown = [
        one.name if one.tool == before and one.title != one.tool else one.title
        for one, before in zip(known[:MAX_NAMED], tools, strict=False)
    ] + ([f"{left} more"] if left > 0 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def number(value: float) -> str:
    """Of requests at a time, which may be next to none."""
    return "fewer than 0.001" if 0 < value < 1e-3 else units.digits(value)


def answer(load: Load) -> str:
    """The busiest request, in a sentence."""
    if not load.requests:
        moved = units.bandwidth((load.moved or 0.0) / load.seconds)
        return f"{load.title} moves {moved}. Its counters have bytes alone, and no requests."
    one, share = load.busiest, load.share(load.busiest)
    if one.mean is None or one.at_a_time is None or not load.busy:
        often = f"{units.rate(one.rate)}, {units.share(share)} of its requests"
        inside = load.telling
        part = inside.name.rpartition(".")[2]
        parts = f" In them {part} is the most frequent: {units.rate(inside.rate)}." if inside.part else ""
        return (
            f"{load.title} gets {one.name} requests most often: {often}.{parts} No time of theirs was counted, so that "
            "these counters don't say how busy it is."
        )
    name = "requests that it doesn't time by kind" if one.name == OTHERS else one.name
    words = AT_A_TIME.get(load.about["holds"], AT_A_TIME[REQUESTS])
    of = "the time of its requests" if load.about["holds"] != HANDLING else "the time that its threads work"
    return (
        f"{load.title} is busiest with {name}: {units.rate(one.rate)} of {units.seconds(one.mean)} each on average, "
        f"{number(one.at_a_time)} {words}, {units.share(share)} of {of}."
    )


def reach(known: Sequence[Load]) -> str:
    """What the headline rests on."""
    first = known[0]
    since = {True: " since it began to count", False: " between two snapshots", None: ""}[
        first.about["since_counting_began"]
    ]
    busy = "" if first.busy is None else f", {number(first.busy)} at a time"
    who = f"by the {first.about['who']} itself" if first.about["who"] else "by itself"
    return (
        f"Counted {who} in {_length(first.seconds)}{since}, of any program: "
        f"{units.rate(first.rate)} in all{busy}. It is no measurement of how much the server could do."
    )


def facts(known: Sequence[Load]) -> list[tuple[str, str]]:
    """What would help the busiest server, what counters can't tell, and the same of the next ones."""
    first, others = known[:1], [load for load in known[1:MAX_NAMED] if not load.is_idle]
    limits = dict.fromkeys(sentence for load in [*first, *others] for sentence in cautions(load))
    found = [
        *(("What would help", " ".join(advice(load))) for load in first),
        ("What counters can't tell", " ".join(limits)),
        *(("Beside it", " ".join([answer(load), *advice(load)])) for load in others),
    ]
    return [(about, text) for about, text in found if text]


def advice(load: Load) -> list[str]:
    """What would help, as far as its counters tell."""
    if not load.requests:
        return ["Counters of its requests say more: their kinds, and how long they take."]
    one, busy, share = load.busiest, load.busy, load.share(load.busiest)
    if load.is_idle and busy is not None:
        what = "another server" if load.about["holds"] == TRIPS else "the network, another server, or another client"
        little = f"hardly anything to do: {units.rate(load.rate)}, {number(busy)} at a time."
        if load.about["part"]:
            return [
                f"It gives the server {little} These are some of the server's requests: whether it is busy with others "
                "is in the counters of the whole."
            ]
        elsewhere = f" Whoever waits, waits for something else: {what}." if load.about["part"] is False else ""
        return [f"It has {little}{elsewhere}"]
    found = [*_of_threads(load), *_of_waits(load)]
    if one.name == OTHERS:
        found.append("Its md_stats count these by kind.")
    elif share is not None and busy is not None and share < 1:
        rest = "" if share > 0.95 else f" All other requests together have {units.share(1 - share)} of the time."
        found.append(f"Half as many {one.name} requests take away {units.share(share / 2)} of the time.{rest}")
    kind = load.telling.name.rpartition(".")[2]
    if load.server is not None and load.server.helps:
        found.append(load.server.helps)
    else:
        known = next((sentence for names, sentence in HELP if re.fullmatch(names, kind)), "")
        if known and busy is None:  # what doesn't help would follow from times alone
            known = f"{known.partition(';')[0].rstrip('.')}. Rarer requests that take longer may keep it busier."
        found += [known] * bool(known)
    moves = sum(r.count for r in load.whole if r.name in ("pread", "pwrite"))
    if load.moved and moves and kind in ("pread", "pwrite"):
        found.append(f"A read or write moves {units.digits(load.moved / moves / 1024)} KiB on average.")
    return found


def _of_threads(load: Load) -> list[str]:
    threads, busy = load.about["threads"].get("most"), load.busy
    if not threads:
        return []
    many = f"{threads:,} thread{'s' * (threads != 1)}"
    if busy is None:
        return [
            f"It has {many}: if a request holds one for {units.seconds(threads / load.rate)} on average, all are busy "
            "(utilisation law). Clients' mountstats say how long requests take."
        ]
    if load.about["holds"] != HANDLING or load.timed < TIMED:
        return []
    started = load.about["threads"].get("started", threads)
    of = f"{started:,} started threads of at most {threads:,}" if started < threads else f"at most {many}"
    sentence = f"Of {of} {number(busy)} are busy on average"
    if load.waiting is not None or load.seconds >= LONG:  # which says more, or hides the hours that count
        return [f"{sentence}."]
    if busy < NEARLY_ALL * started:
        return [f"{sentence}: more of them would not help."]
    more = "it starts more when requests wait" if started < threads else "more of them help"
    return [f"{sentence}: {more}, where neither processors nor disks are what they share."]


def _of_waits(load: Load) -> list[str]:
    server, waiting = load.server, load.waiting
    waits_for = server.waits_for if server is not None and waiting is not None else ""
    is_worth = bool(waits_for) and waiting is not None and waiting >= WAITS
    alone = load.densest is not None and load.densest < ALONE and load.about["part"] is False
    others = f"{number(load.busy or 0.0)} others there on average"
    if alone and load.about["holds"] != TRIPS and not is_worth:
        return [
            f"An arriving request finds {others}, so that hardly any waits for another: faster service or fewer "
            "requests help, more threads don't."
        ]
    if server is None or waiting is None or not waits_for:
        return []
    part = f"{units.chance(waiting).capitalize()} of the time of its requests is the wait for {waits_for}"
    if not is_worth:
        return [f"{part}: a shorter one would hardly help."]
    if alone:
        return [
            f"{part}, although an arriving request finds {others}: they come in bursts, or wait for something else "
            "than each other."
        ]
    return [f"{part}. It gets shorter by {server.relief}."]


def cautions(load: Load) -> list[str]:
    found = []
    if load.seconds >= LONG:
        found.append(
            f"Means over {_length(load.seconds)} hide the hours in which it is slow: take two snapshots a minute apart "
            "while it is."
        )
    if load.busy is None:
        return found
    if load.timed < TIMED:
        found.append(f"{units.share(load.timed)} of its requests have times; shares of the time are of these.")
    if load.about["holds"] == HANDLING:
        found.append("The work of a thread holds its waits for disks, for locks and for other servers.")
    elif load.waiting is None and load.busy >= ALONE:
        found.append(
            "Work and waiting for other requests are one time here. Observe it in a quiet hour as well: by as much as "
            "its requests are faster then, they wait now."
        )
    elif load.about["holds"] == TRIPS:
        found.append("How much of the way to the server and back is the network isn't counted.")
    return found


def _length(seconds: float) -> str:
    if seconds < LONG:
        return units.seconds(seconds)
    hours = seconds / 3600
    return f"{units.digits(hours / 24)}{units.SPACE}days" if hours >= 48 else f"{units.digits(hours)}{units.SPACE}hours"


def table(sources: Sources) -> Table:
    """Each kind of request of each server, the busiest first."""
    rows: list[dict[str, object]] = [
        {
            "server": load.title,
            "request": one.name,
            "count": one.count,
            "rate": one.rate,
            "mean": one.mean,
            "largest": one.largest,
            "wait": one.wait,
            "share": load.share(one),
            "at_a_time": one.at_a_time,
        }
        for load in loads(sources)
        for one in load.requests
    ]
    columns = [
        Column("server", "server"),
        Column("request", "request"),
        Column("count", "requests", "count"),
        Column("rate", "rate", "rate"),
        Column("mean", "mean time", "seconds"),
        Column("largest", "largest", "seconds"),
        Column("wait", "of it waiting", "seconds"),
        Column("share", "share", "share"),
        Column("at_a_time", "in each second", "seconds"),
    ]
    kept = [one for one in columns if any(row[one.key] is not None for row in rows)]
    note = (
        "In each second: rate times mean time, seconds that all of them together spend there. As a number it is how "
        "many are there at a time (Little's law), and of the work of threads how many are busy (utilisation law). "
        "Shares are of a server's sum of that, or of its number of requests where no times are counted; a name with a "
        "dot is part of a request."
    )
    return Table("servers", "What servers counted", note, kept, rows, leads=True)


def numbers(sources: Sources) -> list[ServerNumbers]:
    return [
        {
            "name": load.name,
            "tool": load.tool,
            "seconds": load.seconds,
            "holds": load.about["holds"],
            "rate": load.rate,
            "at_a_time": load.busy,
            "waiting": load.waiting,
            "threads": load.about["threads"].get("most"),
            "busiest": load.busiest.name if load.requests else None,
            "answer": answer(load),
            "help": advice(load),
            "cautions": cautions(load),
        }
        for load in loads(sources)
    ]


def document(sources: Sources) -> dict[str, object]:
    """The page's answer, as JSON."""
    shown = table(sources)
    return {"schema_version": 1, "kind": "servers", "servers": numbers(sources), "requests": shown.numbers()}


def text(sources: Sources) -> str:
    """The page's answer, as text."""
    known = loads(sources)
    shown = table(sources)
    cells = [[column.text(row) for column in shown.columns] for row in shown.rows]
    return "\n\n".join(
        [
            f"{question(known)}\n{answer(known[0])}\n{reach(known)}",
            text_table([column.title for column in shown.columns], cells, keys=2),
            "\n".join(f"{about}: {what}" for about, what in facts(known)),
        ]
    )
