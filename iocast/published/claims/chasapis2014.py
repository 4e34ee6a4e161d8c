# SPDX-License-Identifier: Apache-2.0
"""One metadata server on 6 to 48 cores of four sockets."""

from functools import partial

from iocast.published.experiment import Claim, Phase, phase, rate

SOURCE = (
    "Chasapis, Dolz, Kuhn & Ludwig 2014, *Evaluating Lustre's Metadata Server on a Multi-Socket Platform* (PDSW): "
    "platform `multisocket`"
)

INF = float("inf")
CORES = (6, 12, 24, 36, 48)


def _create(
    cores: int, mounts: int, processes: int | None = None, journal: str = "15us", operation: str = "create"
) -> Phase:
    """mdtest with private directories, two processes a core unless stated otherwise."""
    edits = {"stations.cpu.servers": cores, "limits.modifying.slots": mounts, "demands.journal.mean": journal}
    return phase("multisocket", "mdtest-easy", f"file-{operation}", 1, processes or 2 * cores, {"items": 400}, edits)


def _ratio(of: int, to: int, operation: str) -> float:
    return rate(_create(of, 6, operation=operation)) / rate(_create(to, 6, operation=operation))


def _all_cores(least: bool) -> float:
    return (min if least else max)(rate(_create(cores, 6)) for cores in CORES)


def _in_use(cores: int) -> float:
    return _cpu(_create(cores, 6))


def _cpu(found: Phase) -> float:
    return float(found["stations"]["cpu"]["utilisation"])


def _device() -> float:
    return max(rate(_create(cores, 6, journal="1us")) / rate(_create(cores, 6)) for cores in CORES)


ALL_WORK = (
    "The study's use is of Lustre's modules alone; here it is of all that the cores do, which is little with one mount."
)

CLAIMS = [
    *(
        claim
        for name, operation in (("Creating", "create"), ("Removing", "remove"))
        for claim in (
            Claim(
                f"{name} gets faster up to the cores of one socket: 12 cores over 6.",
                "slide 14",
                1.2,
                INF,
                partial(_ratio, 12, 6, operation),
            ),
            Claim(
                f"{name} gets slower with the second socket: 24 cores over 12.",
                "slides 14, 24",
                -INF,
                0.97,
                partial(_ratio, 24, 12, operation),
            ),
            Claim(
                f"{name} stays slower on four sockets: 48 cores over 12.",
                "slides 14, 24",
                -INF,
                0.97,
                partial(_ratio, 48, 12, operation),
            ),
        )
    ),
    Claim(
        "No number of cores makes fewer files than the axis begins with.",
        "slide 14",
        9000,
        INF,
        partial(_all_cores, True),
        "/s",
    ),
    Claim(
        "No number of cores makes more files than the axis ends with.",
        "slide 14",
        -INF,
        18000,
        partial(_all_cores, False),
        "/s",
    ),
    Claim("The cores' use halves from 12 to 24 of them.", "slide 14", 0.4, 0.65, lambda: _in_use(24) / _in_use(12)),
    Claim(
        "Twelve mount points make Lustre do five times as much as one.",
        "slide 20",
        3,
        6,
        lambda: _cpu(_create(12, 12, 24)) / _cpu(_create(12, 1, 24)),
        why_not=ALL_WORK,
    ),
    Claim(
        "With 24 mount points it makes no more than the axis shows.",
        "slide 20",
        -INF,
        16000,
        lambda: rate(_create(12, 24, 24)),
        "/s",
        role="fitted",
    ),
    Claim(
        "A RAM disk instead of the SSD makes no difference, whatever the cores.", "slides 23, 24", 0.95, 1.05, _device
    ),
]
