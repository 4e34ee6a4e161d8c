# SPDX-License-Identifier: Apache-2.0
"""Understanding metadata latency with MDWorkbench, and the benchmark's web page.

The numbers of its tables are rows of `platforms/facts/mdworkbench2018.csv`; here are the statements that are not one
number: ratios of two rows, time lines, bands, and those of the web page. A number counts as met within a factor of
1.5, decided before anything was simulated: the numbers are of single runs on systems in production. The platforms'
mechanisms were chosen in sight of the tables, so that their forecasts are weaker evidence than those of rows that were
kept apart (platforms/facts/README.md)."""

from __future__ import annotations

from functools import cache
from typing import Any

from iocast.published.experiment import Claim, Phase, phase, rate
from iocast.published.facts import Fact, claims_of, read_facts, simulated
from iocast.records.simulated import time_line

SOURCE = (
    "J. Kunkel and G. Markomanolis: Understanding Metadata Latency with MDWorkbench. WOPSSS 2018; and md-workbench's "
    "page at vi4io.org"
)

NAME = "mdworkbench2018"
WITHIN = 1.5


def benchmark(platform: str, nodes: int, ppn: int, datasets: int = 1, iterations: int = 2000, **settings: Any) -> Phase:
    workload = {"datasets": datasets, "objects": 10000, "iterations": iterations, "phases": "benchmark", **settings}
    return phase(platform, "md-workbench-large", "benchmark", nodes, ppn, workload)


def precreation(platform: str, nodes: int, ppn: int) -> Phase:
    workload = {"datasets": 1, "objects": 10000, "phases": "precreate"}
    return phase(platform, "md-workbench-large", "precreate", nodes, ppn, workload)


def latency(found: Phase, operation: str, which: str) -> float:
    return float(found["latency"][operation][which])


@cache
def _facts() -> list[Fact]:
    return read_facts(NAME)


def number(
    platform: str,
    scale: str,
    quantity: str = "rate",
    operation: str = "create",
    datasets: int = 1,
    objects: int = 10000,
    phase: str = "benchmark",
    place: str = "Table 2",
) -> Fact:
    """The row of a table with this number; `scale` is nodes x ranks per node."""
    return next(
        fact
        for fact in _facts()
        if (fact.platform, f"{fact.nodes} x {fact.ppn}", fact.quantity, fact.operation, fact.phase, fact.place)
        == (platform, scale, quantity, operation, phase, place)
        and (fact.settings["datasets"], fact.settings["objects"]) == (str(datasets), str(objects))
    )


def ratio(
    text: str, place: str, above: Fact, below: Fact, why_not: str = "", low: float = 0, high: float = 0, role: str = ""
) -> Claim:
    """A ratio of two rows, within a factor of 1.5 of theirs, or between `low` and `high`."""
    value = above.value / below.value
    return Claim(
        f"{text[:-1]} ({value:.3g} times in the table).",
        place,
        low or value / WITHIN,
        high or value * WITHIN,
        lambda: simulated(above) / simulated(below),
        "times",
        why_not,
        role or ("fitted" if "forecast" not in (above.role, below.role) else "forecast"),
    )


def table1(platform: str, scale: str, quantity: str = "rate", phase: str = "benchmark") -> Fact:
    return number(platform, scale, quantity, phase=phase, place="Table 1")


def stall_length(found: Phase) -> float:
    """The median over periods of 5 s of the longest create that began in them."""
    longest: dict[int, float] = {}
    width, series = time_line(found)
    for i, seconds in enumerate(series["create"]["max"]):
        period = int(i * width / 5)
        longest[period] = max(longest.get(period, 0), seconds or 0)
    return sorted(longest.values())[len(longest) // 2]


REASONS = {
    "one-by-one": (
        "A node's opens, creates and deletes pass one by one, as Lustre 2.5 has it, and so wait for each other; that "
        "shifts precreation as it was measured, but this mix too. With fewer fair turns (0.99) most would not wait, "
        "but precreation in a run of 2017 has the shape of 0.75."
    ),
    "serial": (
        "With 100 nodes what runs alone at the target is busy enough for creates and deletes to wait there; measured "
        "quartiles are as with ten nodes."
    ),
    "stats": (
        "Measured stats wait under load for something that the paper does not name; here they pass no turn, and "
        "servers have time for them."
    ),
    "slower-precreation": (
        "Precreation is a third slower than measured, so that fewer changes come between two commits."
    ),
    "hundred-faster": (
        "The rate of 10 x 10 is 3 % below the table's and that of 100 x 10 is 11 % above it, each well within a factor "
        "of 1.5; their ratio leaves its narrower range."
    ),
    "waiting-node": (
        "With a waiting factor of 4 hardly anybody waits for the node's turn here; measured creates have the same "
        "quartiles with and without it."
    ),
    "phase-1": (
        "Of this file system the paper gives three rows and no configuration: its disks under load, and why ten "
        "directories a rank are slower, are unknown."
    ),
    "targets": (
        "Ranks advance by how many share their metadata target. Here the directories of a rank go to both targets by "
        "chance, which evens out with ten of them; in the table ten directories are as uneven as one."
    ),
    "unfair-turns": (
        "Creates and deletes wait for their node's turn, and unfair turns leave three quarters of them short; measured "
        "ones wait more evenly."
    ),
    "alone-as-mixed": "A simulated create takes a thread as long alone as in the mix.",
    "quick-stops": (
        "What this system stops for now and then, and for how long, is unknown; such a run sees few stops or many."
    ),
    "daemon-reads": (
        "Reads of files that were looked up pass no turn of the daemon here; measured ones take ten times as long "
        "under load, for which the paper has no reason."
    ),
    "daemon-stats": "Here all that names a file shares one turn a node, so that stats and deletes wait as long.",
    "threads-shared": (
        "What waits for a write-back holds one of the threads, for which reads and stats wait as well; measured ones "
        "don't."
    ),
    "one-node": (
        "Measured iterations last twice as long as the sum of quartiles, as if one of eight nodes were slow; here "
        "everybody waits evenly at one metadata server."
    ),
    "rare-long": (
        "The quartiles of the same row, which are met, add up to 6100 creates/s: rare long operations, of which the "
        "paper says nothing, make its rate."
    ),
    "creates-wait": (
        "Under load measured creates take three times as long as stats and reads, so they wait for something of their "
        "own, which the paper does not name; here all wait for threads, and creates little for journals."
    ),
    "lower-band": (
        "Creates that need not stop cost the node what they cost it in the benchmark phase, where three quarters took "
        "at most 0.56 ms; what makes them take twice as long in precreation, such as the locks that the paper "
        "presumes, is not in the platform."
    ),
    "tokens": (
        "A token's move takes as long before a delete as before a create, and reads need none; measured deletes take "
        "half of that, and reads half longer than with one directory."
    ),
    "even-ranks": "Ranks of this system advance unevenly in the table, without a reason in the paper; here they don't.",
    "long-stops": (
        "Measured stragglers outlast several commits; here whoever waits goes on after one, and turns are less unfair."
    ),
    "others-share": (
        "What others do to the disks of an OST is one share for all rows; it differs between the days of the runs."
    ),
}
"""Why rows and statements are not met, by the name that a row gives: what the simulated systems do not have."""

WHY = {
    "ddn-duesseldorf precreation": "alone-as-mixed",
    "cori rate": "rare-long",
    "mistral hundred stat": "stats",
    "mistral doubles": "hundred-faster",
    "mistral hundred unlink": "one-by-one",
    "ime lustre read": "daemon-reads",
    "ime lustre stat": "stats",
    "ime lustre unlink": "unfair-turns",
    "cori 10 x 1 datasets": "rare-long",
    "cooley directories read": "tokens",
    "cooley directories unlink": "tokens",
    "mistral stall": "slower-precreation",
    "mistral creates": "one-by-one",
    "mistral some": "unfair-turns",
    "mistral alike": "waiting-node",
    "cooley lower band": "lower-band",
}
"""Reasons of the statements below, by statement."""

SYSTEMS = {
    "cooley": ("Cooley, GPFS", "10 x 10"),
    "ddn-duesseldorf": ("Düsseldorf, Lustre", "8 x 10"),
    "ime": ("Düsseldorf, IME", "8 x 10"),
    "mistral": ("Mistral", "10 x 10"),
    "datawarp": ("Shaheen II, 1 DataWarp node", "10 x 10"),
    "datawarp-8": ("Shaheen II, 8 DataWarp nodes", "10 x 10"),
    "cori": ("Cori, 8 DataWarp nodes", "10 x 10"),
}
KINDS = {"read": "reads", "stat": "stats", "create": "creates", "unlink": "deletes"}


def why(statement: str) -> str:
    return REASONS.get(WHY.get(statement, ""), "")


RATIOS = [
    *(
        claim
        for platform, (system, scale) in SYSTEMS.items()
        for claim in (
            ratio(
                f"{system}: the benchmark phase's creates, of those of precreation.",
                "Table 1, section 5.1",
                table1(platform, scale),
                table1(platform, scale, phase="precreate"),
                why(f"{platform} precreation"),
            ),
            ratio(
                f"{system}: a waiting factor of 4 changes the virtual rate.",
                "Table 1, section 5.1",
                table1(platform, scale, "virtual_rate"),
                table1(platform, scale),
                why(f"{platform} waiting"),
            ),
        )
    ),
    ratio(
        "Eight DataWarp nodes create faster than one.",
        "Table 1, section 5.1",
        table1("datawarp-8", "10 x 10"),
        table1("datawarp", "10 x 10"),
    ),
    ratio(
        "IME is several times slower than the Lustre beneath it.",
        "Table 1, section 5.1",
        table1("ime", "8 x 10"),
        table1("ddn-duesseldorf", "8 x 10"),
    ),
    *(
        ratio(
            f"Shaheen II and Cori with eight DataWarp nodes are alike{words}.",
            "Table 1, section 5.1",
            table1("cori", "10 x 10", quantity),
            table1("datawarp-8", "10 x 10", quantity),
            why(f"cori {quantity}"),
        )
        for quantity, words in (("rate", ""), ("virtual_rate", " with a waiting factor of 4"))
    ),
    ratio(
        "Mistral: 100 x 10 doubles the rate of 10 x 10.",
        "section 5.2",
        number("mistral", "100 x 10"),
        number("mistral", "10 x 10"),
        why("mistral doubles"),
        1.7,
        2.4,
    ),
    *(
        ratio(
            f"Mistral: {KINDS[kind]} take longer at 100 x 10 than at 10 x 10 (third quartiles).",
            "section 5.2",
            number("mistral", "100 x 10", "q75", kind),
            number("mistral", "10 x 10", "q75", kind),
            why(f"mistral hundred {kind}"),
        )
        for kind in KINDS
    ),
    *(
        ratio(
            f"Düsseldorf, 8 x 10: {KINDS[kind]} take longer through IME than on Lustre (third quartiles).",
            "section 5.2, Table 2",
            number("ime", "8 x 10", "q75", kind),
            number("ddn-duesseldorf", "8 x 10", "q75", kind),
            why(f"ime lustre {kind}"),
        )
        for kind in KINDS
    ),
    ratio(
        "Shaheen II, 1 DataWarp node: ten times as many objects slow it down.",
        "section 5.2, Table 2",
        number("datawarp", "10 x 10", datasets=10),
        number("datawarp", "10 x 10", datasets=10, objects=1000),
        why("datawarp working set"),
        role="fitted",
    ),
    ratio(
        "Shaheen II: with eight DataWarp nodes that is more severe.",
        "section 5.2, Table 2",
        number("datawarp-8", "10 x 10", datasets=10),
        number("datawarp-8", "10 x 10", datasets=10, objects=1000),
        why("datawarp-8 working set"),
    ),
    *(
        ratio(
            f"{system}, {scale}: ten datasets a rank have no influence.",
            "section 5.2, Table 2",
            number(platform, scale, datasets=10, objects=objects),
            number(platform, scale),
            why(f"{platform} {scale} datasets"),
        )
        for platform, system, scale, objects in (
            ("ddn-duesseldorf", "Düsseldorf, Lustre", "8 x 1", 1000),
            ("ddn-duesseldorf", "Düsseldorf, Lustre", "8 x 10", 1000),
            ("mistral", "Mistral", "10 x 10", 10000),
            ("datawarp", "Shaheen II, 1 DataWarp node", "10 x 10", 1000),
            ("datawarp-8", "Shaheen II, 8 DataWarp nodes", "10 x 10", 1000),
            ("cori", "Cori, 8 DataWarp nodes", "10 x 1", 1000),
            ("cori", "Cori, 8 DataWarp nodes", "10 x 10", 1000),
        )
    ),
    ratio(
        "Cooley, GPFS, 10 x 1: one directory a rank is three times as fast as ten.",
        "section 5.2, Table 2",
        number("cooley", "10 x 1"),
        number("cooley", "10 x 1", datasets=10, objects=1000),
        why("cooley directories"),
    ),
    *(
        ratio(
            f"Cooley, GPFS, 10 x 1: {KINDS[kind]} with ten directories a rank take as long as with one, or longer.",
            "section 5.2, Table 2",
            number("cooley", "10 x 1", "q75", kind, datasets=10, objects=1000),
            number("cooley", "10 x 1", "q75", kind),
            why(f"cooley directories {kind}"),
        )
        for kind in ("stat", "read", "unlink")
    ),
    ratio(
        "Cooley, GPFS, with 100 ranks is as fast as Mistral with 1000.",
        "section 5.2",
        number("cooley", "10 x 10"),
        number("mistral", "100 x 10"),
        why("cooley mistral"),
    ),
]

BANDS = [
    Claim(
        "Mistral, 10 x 10: every 5 s precreation stalls for about a second.",
        "Fig. 5a, section 5.3",
        0.67,
        1.5,
        lambda: stall_length(precreation("mistral", 10, 10)),
        "s",
        why("mistral stall"),
    ),
    Claim(
        "Mistral: in the read-only workload the stalls are gone (tested on stats; that only changes stall is in the "
        "platform).",
        "section 5.3",
        0,
        0.1,
        lambda: latency(benchmark("mistral", 10, 10, read_only="true"), "stat", "max"),
        "s",
        role="given",
    ),
    Claim(
        "Mistral, 10 x 10: creates of the benchmark phase typically take less than 1 ms.",
        "Fig. 4, section 5.1",
        0,
        1,
        lambda: 1e3 * latency(benchmark("mistral", 10, 10), "create", "q75"),
        "ms",
        why("mistral creates"),
    ),
    Claim(
        "Mistral, 10 x 10: precreation's creates take longer than the benchmark phase's.",
        "Fig. 4, section 5.1",
        1.1,
        10,
        lambda: (
            latency(precreation("mistral", 10, 10), "create", "q50")
            / latency(benchmark("mistral", 10, 10), "create", "q50")
        ),
        "times",
        why("mistral shifted"),
    ),
    Claim(
        "Mistral, 10 x 10: some creates of precreation take up to 10 ms (tested on the 99th percentile).",
        "Fig. 4, section 5.1",
        2,
        12,
        lambda: 1e3 * latency(precreation("mistral", 10, 10), "create", "q99"),
        "ms",
        why("mistral some"),
    ),
    *(
        Claim(
            f"{system}: creates take as long with a waiting factor of 4 as without (medians).",
            "Fig. 4, section 5.1",
            1 / WITHIN,
            WITHIN,
            lambda platform=platform: (  # type: ignore[misc]
                latency(benchmark(platform, 10, 10, waiting_factor=4), "create", "q50")
                / latency(benchmark(platform, 10, 10), "create", "q50")
            ),
            "times",
            why(f"{platform} alike"),
        )
        for platform, system in (("mistral", "Mistral"), ("cooley", "Cooley, GPFS"))
    ),
    Claim(
        "Düsseldorf, IME: precreation and benchmark phase create alike.",
        "Fig. 4, section 5.1",
        0.6,
        1.6,
        lambda: latency(precreation("ime", 8, 10), "create", "q50") / latency(benchmark("ime", 8, 10), "create", "q50"),
        "times",
        why("ime alike"),
    ),
    Claim(
        "Düsseldorf, IME: a waiting factor of 4 shortens creates significantly.",
        "Fig. 4, section 5.1",
        0,
        0.7,
        lambda: (
            latency(benchmark("ime", 8, 10, waiting_factor=4), "create", "q50")
            / latency(benchmark("ime", 8, 10), "create", "q50")
        ),
        "times",
        why("ime shortens"),
    ),
    Claim(
        "Cooley, GPFS, 10 x 10: precreation has two bands of creates, at 1 ms ...",
        "Fig. 5c, section 5.3",
        0.67,
        1.5,
        lambda: 1e3 * latency(precreation("cooley", 10, 10), "create", "q50"),
        "ms",
        why("cooley lower band"),
    ),
    Claim(
        "... and at 50 ms (tested on the 95th percentile; fitted: how much is written back before creates go on).",
        "Fig. 5c, section 5.3",
        33,
        75,
        lambda: 1e3 * latency(precreation("cooley", 10, 10), "create", "q95"),
        "ms",
        role="fitted",
    ),
    Claim(
        "Cooley, GPFS, 10 x 1, D = 10: creates have a band at 10 ms (tested on the 75th percentile).",
        "Fig. 5d",
        5.4,
        15,
        lambda: 1e3 * latency(benchmark("cooley", 10, 1, 10, 200, objects=1000), "create", "q75"),
        "ms",
        why("cooley ten"),
    ),
]


def local(name: str, access: str, ranks: int) -> Phase:
    """One machine whose memory holds new objects and directories, but not the data of old ones: only reads go to the
    device."""
    device = {
        "stations.cpu.servers": 8,  # E31275, as the page counts
        "stations.device": {"per": "node", "servers": 1},
        "demands.access": {"law": "lognormal", "mean": access, "sigma": 0.3},
        "operations.read.read": [{"station": "cpu", "demand": "read.read"}, {"station": "device", "demand": "access"}],
    }
    workload = {"datasets": 50, "objects": 10000 // ranks, "iterations": 50}
    return phase("local", "md-workbench", name, 1, ranks, workload, device)


DISK, FLASH = "7ms", "100us"  # the page's seek time of the disk; a round number for a SATA SSD of 2010

LOCAL = [
    Claim(
        "One machine: precreation is far above what a disk's seek time allows (1 / 7 ms).",
        "web page",
        2,
        float("inf"),
        lambda: rate(local("precreate", DISK, 1)) * 0.007,
        "times",
    ),
    Claim(
        "One machine: removal on disk and SSD behave alike (that memory takes changes is in the platform).",
        "web page",
        0.8,
        1.25,
        lambda: rate(local("cleanup", DISK, 3)) / rate(local("cleanup", FLASH, 3)),
        "times",
    ),
    Claim(
        "One machine: three processes precreate hardly slower than one.",
        "web page",
        0.87,
        float("inf"),
        lambda: rate(local("precreate", DISK, 3)) / rate(local("precreate", DISK, 1)),
        "times",
    ),
    Claim(
        "One machine: the benchmark phase shows the device.",
        "web page",
        2,
        float("inf"),
        lambda: rate(local("benchmark", FLASH, 3)) / rate(local("benchmark", DISK, 3)),
        "times",
    ),
]

CLAIMS = [*claims_of(NAME, REASONS), *RATIOS, *BANDS, *LOCAL]
