# SPDX-License-Identifier: Apache-2.0
"""Understanding metadata latency with MDWorkbench, and the benchmark's web page.

The demands of each platform were set from the latencies of its smallest row of Table 2, and one number of servers from a second row (the platform files say
which). Those rows are not asked here. All others are, within a factor of 1.5, which was decided before anything was simulated: one run of a system in production."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from experiment import Claim, Phase, phase, rate

SOURCE = "J. Kunkel and G. Markomanolis: Understanding Metadata Latency with MDWorkbench. WOPSSS 2018; and md-workbench's page at vi4io.org"

WITHIN = 1.5


def benchmark(platform: str, nodes: int, ppn: int, datasets: int = 1, iterations: int = 2000, **settings: Any) -> Phase:
    workload = {"datasets": datasets, "iterations": iterations, "phases": "benchmark", **settings}
    return phase(platform, "md-workbench-large", "benchmark", nodes, ppn, workload)


def precreation(platform: str, nodes: int, ppn: int) -> Phase:
    return phase(platform, "md-workbench-large", "precreate", nodes, ppn, {"phases": "precreate"})


def creates(found: Phase) -> float:
    """Creates a second, of four operations to a create, as in the paper."""
    return rate(found) / 4


def virtual(found: Phase) -> float:
    """The same of a run with a waiting factor of 4, times 5."""
    return 5 * creates(found)


def latency(found: Phase, operation: str, which: str) -> float:
    return float(found["latency"][operation][which])


def measured(text: str, place: str, value: float, simulated: Callable[[], float], unit: str = "creates/s", why_not: str = "", within: float = WITHIN) -> Claim:
    """A number of a table."""
    return Claim(text, place, value / within, value * within, simulated, unit, why_not)


def table1(system: str, platform: str, nodes: int, before: float, throttled: float, why_not: dict[str, str] | None = None) -> list[Claim]:
    """Rates of precreation and with a waiting factor of 4; that without is a row of Table 2."""
    why = why_not or {}
    return [
        measured(f"{system}, {nodes} x 10: {before:g} creates/s in precreation.", "Table 1", before, lambda: rate(precreation(platform, nodes, 10)),
                 why_not=why.get("precreation", "")),
        measured(f"{system}, {nodes} x 10: {throttled:g} virtual creates/s with a waiting factor of 4.", "Table 1", throttled,
                 lambda: virtual(benchmark(platform, nodes, 10, waiting_factor=4)), why_not=why.get("throttled", "")),
    ]  # fmt: skip


def row(system: str, platform: str, nodes: int, ppn: int, datasets: int, creates_per_s: float, why_not: str = "", iterations: int = 2000, **q3: float) -> list[Claim]:
    """A row of Table 2: its rate, and third quartiles of operations."""
    run = partial(benchmark, platform, nodes, ppn, datasets, iterations)
    scale = f"{system}, {nodes} x {ppn}, D = {datasets}"
    found = [measured(f"{scale}: {creates_per_s:g} creates/s.", "Table 2", creates_per_s, lambda: creates(run()), why_not=why_not)]
    for operation, seconds in q3.items():
        found.append(
            measured(f"{scale}: three quarters of all {operation}s take at most {1e3 * seconds:g} ms.", "Table 2", 1e3 * seconds,
                     lambda operation=operation: 1e3 * latency(run(), {"delete": "unlink"}.get(operation, operation), "q75"), "ms", why_not)
        )  # fmt: skip
    return found


def stall_length(found: Phase) -> float:
    """The median over periods of 5 s of the longest create that began in them."""
    longest: dict[int, float] = {}
    for one in found["slowest"]:
        end = int((one["start"] + one["seconds"]) / 5)
        longest[end] = max(longest.get(end, 0), one["seconds"])
    lengths = sorted(longest.values())
    return lengths[len(lengths) // 2]


MISTRAL = [
    Claim("Mistral, 10 x 10: every 5 s precreation stalls for about a second.", "Fig. 5a, section 5.3", 0.67, 1.5,
          lambda: stall_length(precreation("mistral", 10, 10)), "s"),
    Claim("Mistral: in the read-only workload the stalls are gone (that only changes stall is in the platform).", "section 5.3", 0, 0.1,
          lambda: max(latency(benchmark("mistral", 10, 10, read_only="true"), op, "max") for op in ("stat", "read")), "s"),
    Claim("Mistral, 10 x 10: creates of the benchmark phase typically take less than 1 ms.", "Fig. 4, section 5.1", 0, 1,
          lambda: 1e3 * latency(benchmark("mistral", 10, 10), "create", "q75"), "ms"),
    Claim("Mistral, 10 x 10: precreation's creates take longer than the benchmark phase's.", "Fig. 4, section 5.1", 1.1, 10,
          lambda: latency(precreation("mistral", 10, 10), "create", "q50") / latency(benchmark("mistral", 10, 10), "create", "q50"), "times"),
    Claim("Mistral, 10 x 10: some creates of precreation take up to 10 ms (asked of the 99th percentile).", "Fig. 4, section 5.1", 2, 12,
          lambda: 1e3 * latency(precreation("mistral", 10, 10), "create", "q99"), "ms"),
    *table1("Mistral", "mistral", 10, 21800, 2220),
    Claim("Mistral: the benchmark phase makes a tenth of precreation's creates.", "Table 1, section 5.1", 0.07, 0.15,
          lambda: creates(benchmark("mistral", 10, 10)) / rate(precreation("mistral", 10, 10)), "times"),
    Claim("Mistral: waiting lowers the virtual rate.", "Table 1, section 5.1", 0, 0.97,
          lambda: virtual(benchmark("mistral", 10, 10, waiting_factor=4)) / creates(benchmark("mistral", 10, 10)), "times"),
    *row("Mistral", "mistral", 10, 10, 1, 2180, read=0.0046, stat=0.0004, create=0.00067, delete=0.00049),
    *row("Mistral", "mistral", 10, 10, 10, 2140, iterations=200),
    *row("Mistral", "mistral", 100, 1, 1, 1610, read=0.0048, create=0.00065),
    *row("Mistral", "mistral", 100, 10, 1, 4890, iterations=300, read=0.033, stat=0.00069, create=0.011, delete=0.0099),
    Claim("Mistral: 100 x 10 doubles the rate of 10 x 10.", "section 5.2", 1.7, 2.4,
          lambda: creates(benchmark("mistral", 100, 10, 1, 300)) / creates(benchmark("mistral", 10, 10)), "times"),
    measured("Mistral: at 100 x 10 the slowest operation takes 16 s.", "Table 2", 16,
             lambda: max(latency(benchmark("mistral", 100, 10, 1, 300), op, "max") for op in ("create", "unlink")), "s"),
]  # fmt: skip

DUESSELDORF = [
    *table1("Düsseldorf, Lustre", "ddn-duesseldorf", 8, 47600, 30700),
    Claim("Düsseldorf, Lustre: the benchmark phase makes less than a quarter of precreation's creates (0.26 in Table 1).", "section 5.1", 0, 0.3,
          lambda: creates(benchmark("ddn-duesseldorf", 8, 10)) / rate(precreation("ddn-duesseldorf", 8, 10)), "times"),
    *row("Düsseldorf, Lustre", "ddn-duesseldorf", 8, 1, 10, 4980, iterations=200),
    *row("Düsseldorf, Lustre", "ddn-duesseldorf", 8, 10, 10, 10390, iterations=200, read=0.0018, stat=0.00097, create=0.002, delete=0.002),
    measured("Düsseldorf, Lustre, 8 x 10: the fastest rank needs 50 % of the slowest one's time.", "Table 2", 0.495,
             lambda: float(benchmark("ddn-duesseldorf", 8, 10)["balance"]), "of the time"),
]  # fmt: skip

IME = [
    *table1("Düsseldorf, IME", "ime", 8, 4500, 4460),
    *row("Düsseldorf, IME", "ime", 8, 1, 10, 820, iterations=200),
    *row("Düsseldorf, IME", "ime", 8, 10, 10, 1460, iterations=200, read=0.0088, stat=0.023, create=0.028, delete=0.014),
    Claim("Düsseldorf, 8 x 10: reads through IME are slower than those of the Lustre beneath it.", "section 5.2", 1.2, 10,
          lambda: latency(benchmark("ime", 8, 10), "read", "q75") / latency(benchmark("ddn-duesseldorf", 8, 10), "read", "q75"), "times"),
    Claim("Düsseldorf, IME: precreation and benchmark phase create alike.", "Fig. 4, section 5.1", 0.6, 1.6,
          lambda: latency(precreation("ime", 8, 10), "create", "q50") / latency(benchmark("ime", 8, 10), "create", "q50"), "times"),
    Claim("Düsseldorf, IME: a waiting factor of 4 shortens creates significantly.", "Fig. 4, section 5.1", 0, 0.7,
          lambda: latency(benchmark("ime", 8, 10, waiting_factor=4), "create", "q50") / latency(benchmark("ime", 8, 10), "create", "q50"), "times"),
]  # fmt: skip

DATAWARP = [
    *table1("Shaheen II, 1 DataWarp node", "datawarp", 10, 3800, 14600),
    *row("Shaheen II, 1 DataWarp node", "datawarp", 10, 1, 10, 3130, iterations=200),
    *row("Shaheen II, 1 DataWarp node", "datawarp", 10, 10, 1, 3340, read=0.0047, delete=0.0079),
    *row("Shaheen II, 1 DataWarp node", "datawarp", 10, 10, 10, 3340, iterations=200),
    Claim("Shaheen II, 1 DataWarp node: with ten times as many objects the rate drops to 2190 creates/s from 3340.", "Table 2, section 5.2", 0.5, 0.85,
          lambda: creates(benchmark("datawarp", 10, 10, 10, 200, objects=10000)) / creates(benchmark("datawarp", 10, 10, 10, 200, objects=1000)), "times"),
    *table1("Shaheen II, 8 DataWarp nodes", "datawarp-8", 10, 25600, 32000),
    *row("Shaheen II, 8 DataWarp nodes", "datawarp-8", 10, 1, 1, 4650, read=0.00053, stat=0.00033, create=0.0012, delete=0.0003),
    *row("Shaheen II, 8 DataWarp nodes", "datawarp-8", 10, 1, 10, 5000, iterations=200),
    *row("Shaheen II, 8 DataWarp nodes", "datawarp-8", 10, 10, 1, 7250, stat=0.00048, create=0.0041, delete=0.0013),
    *row("Shaheen II, 8 DataWarp nodes", "datawarp-8", 10, 10, 10, 6510, iterations=200),
    *table1("Cori, 8 DataWarp nodes", "datawarp-8", 10, 19000, 35100),
    *row("Cori, 8 DataWarp nodes", "datawarp-8", 10, 1, 1, 4000, read=0.00052, stat=0.00014, create=0.00088, delete=0.000097),
    *row("Cori, 8 DataWarp nodes", "datawarp-8", 10, 1, 10, 6670, iterations=200),
    *row("Cori, 8 DataWarp nodes", "datawarp-8", 10, 10, 1, 8770, stat=0.002, delete=0.0012),
    *row("Cori, 8 DataWarp nodes", "datawarp-8", 10, 10, 10, 8730, iterations=200),
]  # fmt: skip

COOLEY = [
    *table1("Cooley, GPFS", "cooley", 10, 6500, 8300),
    Claim("Cooley, GPFS: waiting raises the virtual rate only by 25 % (47 % in Table 1).", "section 5.1", 1.2, 1.5,
          lambda: virtual(benchmark("cooley", 10, 10, waiting_factor=4)) / creates(benchmark("cooley", 10, 10)), "times"),
    *row("Cooley, GPFS", "cooley", 10, 10, 1, 5280, read=0.018, stat=0.00083, create=0.00056, delete=0.00028)[1:],
    Claim("Cooley, GPFS, 10 x 10: precreation has two bands of creates, at 1 ms ...", "Fig. 5c, section 5.3", 0.67, 1.5,
          lambda: 1e3 * latency(precreation("cooley", 10, 10), "create", "q50"), "ms"),
    Claim("... and at 50 ms (asked of the 95th percentile).", "Fig. 5c, section 5.3", 33, 75,
          lambda: 1e3 * latency(precreation("cooley", 10, 10), "create", "q95"), "ms"),
    Claim("Cooley, GPFS, 10 x 1: one directory a rank is three times as fast as ten.", "section 5.3, Table 2", 2.5, 3.6,
          lambda: creates(benchmark("cooley", 10, 1)) / creates(benchmark("cooley", 10, 1, 10, 200, objects=1000)), "times"),
    Claim("Cooley, GPFS, 10 x 1, D = 10: creates have a band at 10 ms (asked of the 75th percentile; 8.1 ms in Table 2).", "Fig. 5d, section 5.3", 5.4, 15,
          lambda: 1e3 * latency(benchmark("cooley", 10, 1, 10, 200, objects=1000), "create", "q75"), "ms"),
]  # fmt: skip


def local(name: str, access: str, ranks: int) -> Phase:
    """One machine whose memory holds new objects and directories, but not the data of old ones: only reads go to the device."""
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
    Claim("One machine: precreation is far above what a disk's seek time allows (1 / 7 ms).", "web page", 2, float("inf"),
          lambda: rate(local("precreate", DISK, 1)) * 0.007, "times"),
    Claim("One machine: removal on disk and SSD behave alike (that memory takes changes is in the platform).", "web page", 0.8, 1.25,
          lambda: rate(local("cleanup", DISK, 3)) / rate(local("cleanup", FLASH, 3)), "times"),
    Claim("One machine: three processes precreate hardly slower than one.", "web page", 0.87, float("inf"),
          lambda: rate(local("precreate", DISK, 3)) / rate(local("precreate", DISK, 1)), "times"),
    Claim("One machine: the benchmark phase shows the device.", "web page", 2, float("inf"),
          lambda: rate(local("benchmark", FLASH, 3)) / rate(local("benchmark", DISK, 3)), "times"),
]  # fmt: skip

CLAIMS = [*MISTRAL, *DUESSELDORF, *IME, *DATAWARP, *COOLEY, *LOCAL]
