# SPDX-License-Identifier: Apache-2.0
"""What answers are made of: the name of a quantity, and a value with its interval."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from iocast.records.declared import Amount


ACCELERATORS: dict[str, Literal["rate", "bytes", "share"]]
ACCELERATORS = {"au": "share", "samples": "rate", "accelerator_bandwidth": "bytes", "stall_share": "share"}
"""What accelerators do, with the kind of its unit: utilisation after the first step (of the whole phase where that is
not recorded), samples a second of all, bytes a second of one, and the share of the time that checkpoints stall them."""
MORE_IS_BETTER = ("rate", "au", "samples", "accelerator_bandwidth")
"""Quantities of which less is a loss; of all others, times and stalls, more is."""
SHARES_OF_TIME = tuple(name for name, kind in ACCELERATORS.items() if kind == "share")
"""Shares that end at 100 %, so that what changes by a factor is the share over the rest."""


def unit_of(name: str) -> Literal["rate", "bytes", "share", "seconds"]:
    """The kind of a quantity's unit: operations or samples a second, bytes a second, a share of 1, or seconds."""
    what = name.rpartition(".")[2]
    if what in ACCELERATORS:
        return ACCELERATORS[what]
    return (
        "rate"
        if what == "rate"
        else "bytes"
        if what == "bandwidth"
        else "share"
        if what == "utilisation"
        else "seconds"
    )


def odds(share: float) -> float:
    """A share over the rest; of none and of all of it the nearest numbers that have a logarithm."""
    held = min(max(share, 1e-9), 1 - 1e-9)
    return held / (1 - held)


def share_of(ratio: float) -> float:
    """The share whose odds these are."""
    return ratio / (1 + ratio)


class Quantity(Struct, frozen=True):
    """What is forecast and measured: "rate", "create.q99", or of a part of an operation "create.open.q99"."""

    operation: str
    """Empty for all operations together."""
    part: str
    """A step of the operation, or "response": from when an operation of an open loop is due. Empty for the whole."""
    kind: str
    """rate, mean, q50, q75, q95, q99 or max."""

    @classmethod
    def of(cls, name: str) -> Quantity:
        """From its name in a document."""
        rest, _, kind = name.rpartition(".")
        operation, _, part = rest.partition(".")
        return cls(operation, part, kind)

    @property
    def is_part(self) -> bool:
        """Whether it is of a step of an operation: not so "create.q50" and "create.response.q50"."""
        return bool(self.part) and self.part != "response"


class Interval(Struct, frozen=True):
    """A value in SI units, and the ends between which it lies at the level of its document; None where these are not
    known."""

    value: Amount
    low: Amount | None = None
    high: Amount | None = None
    model: Annotated[Amount, Meta(description="the value before it was shifted")] | None = None
    calibrated: Annotated[Amount, Meta(description="the calibrated platform's, before simple rules")] | None = None
    unit: Literal["bytes"] | None = None

    def holds(self, value: float) -> bool | None:
        """Whether it holds this value; None where its ends are not known."""
        if self.low is None or self.high is None:
            return None
        return self.low <= value <= self.high
