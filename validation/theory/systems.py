# SPDX-License-Identifier: Apache-2.0
"""Small systems with known answers, and those answers, written down independently of iocast (textbook formulas)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.special import gammaln, logsumexp, ndtr, ndtri
from scipy.stats import expon, gamma

Law = tuple[
    Any, ...
]  # ("exponential", mean) | ("lognormal", mean, sigma) | ("constant", value) | ("two", p, mean, mean)


def yaml_law(law: Law) -> str:
    kind, *numbers = law
    if kind == "constant":
        return f"{{law: constant, value: {numbers[0] * 1e6:.17g}us}}"
    if kind == "exponential":
        return f"{{law: exponential, mean: {numbers[0] * 1e6:.17g}us}}"
    if kind == "lognormal":
        return f"{{law: lognormal, mean: {numbers[0] * 1e6:.17g}us, sigma: {numbers[1]}}}"
    p, a, b = numbers
    parts = ", ".join(f"{{weight: {w}, law: exponential, mean: {m * 1e6:.17g}us}}" for w, m in ((p, a), (1 - p, b)))
    return f"{{law: mixture, parts: [{parts}]}}"


def moments(law: Law) -> tuple[float, float]:
    """Mean and second moment."""
    kind, *x = law
    if kind == "constant":
        return x[0], x[0] ** 2
    if kind == "exponential":
        return x[0], 2 * x[0] ** 2
    if kind == "lognormal":
        return x[0], x[0] ** 2 * math.exp(x[1] ** 2)
    return x[0] * x[1] + (1 - x[0]) * x[2], 2 * (x[0] * x[1] ** 2 + (1 - x[0]) * x[2] ** 2)


def cumulative(law: Law, x: float) -> float:
    """P(value <= x) of an exponential or lognormal law."""
    kind, mean, *rest = law
    if kind == "exponential":
        return -math.expm1(-x / mean)
    assert kind == "lognormal"
    return float(ndtr((math.log(x / mean) + rest[0] ** 2 / 2) / rest[0]))


def resolved_law(law: Law) -> dict[str, Any]:
    mean, second = moments(law)
    u = (np.arange(1001) + 0.5) / 1001
    kind = law[0]
    if kind == "lognormal":
        values = mean * np.exp(law[2] * ndtri(u) - law[2] ** 2 / 2)
    elif kind == "constant":
        values = np.full(1001, mean)
    else:  # the mixture's table is only used for quantiles, which no test here asks of it
        values = -mean * np.log1p(-u)
    return {"name": "", "law": kind, "mean": mean, "variance": second - mean**2, "quantiles": values}


def station(
    servers: int = 1, count: int = 1, discipline: str = "fcfs", per: str = "system", **more: Any
) -> dict[str, Any]:
    base = {
        "per": per,
        "count": count,
        "spread": "object",
        "servers": servers,
        "discipline": discipline,
        "quantum": 0.003,
    }
    return base | {"contention": 0, "coherency": 0} | more


def resolved(
    stations: Mapping[str, Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], **sections: Any
) -> dict[str, Any]:
    """A resolved platform with the one operation `stat`; laws in `steps` and `background` as tuples."""

    def walk(step: Mapping[str, Any]) -> dict[str, Any]:
        if "steps" in step:
            return {**step, "steps": [walk(s) for s in step["steps"]]}
        key = "delay" if "delay" in step else "demand"
        return {**step, key: resolved_law(step[key])}

    background = {k: {**v, "demand": resolved_law(v["demand"])} for k, v in sections.pop("background", {}).items()}
    return {
        "name": "test",
        "clients": {"speed_sigma": 0, "think_overshoot": 0},
        "stations": {k: dict(v) for k, v in stations.items()},
        "limits": {}, "locks": {}, "stalls": {}, "network": {},
        "background": background,
        "operations": {"stat": [{"part": "", "steps": [walk(s) for s in steps]}]},
    } | sections  # fmt: skip


def yaml(
    platform_stations: Mapping[str, Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], **sections: Any
) -> str:
    """The same platform for the simulator: `stat` has the steps, all else costs nothing."""

    def show(step: Mapping[str, Any]) -> str:
        if "steps" in step:
            return f"{{limit: {step['limit']}, steps: [{', '.join(show(s) for s in step['steps'])}]}}"
        words = [f"{k}: {yaml_law(v) if k in ('delay', 'demand') else v}" for k, v in step.items()]
        return "{" + ", ".join(words) + "}"

    lines = ["schema_version: 1", "description: a system with a known answer", "source: theory", "stations:"]
    for name, spec in platform_stations.items():
        kept = {k: v for k, v in spec.items() if k != "quantum" and not (k == "count" and spec["per"] == "node")}
        lines.append(f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in kept.items())}}}")
    for section, entries in sections.items():
        lines.append(f"{section}:")
        for name, spec in entries.items():
            words = [f"{k}: {yaml_law(v) if k == 'demand' else str(v).replace(chr(39), '')}" for k, v in spec.items()]
            lines.append(f"  {name}: {{{', '.join(words)}}}")
    lines += ["operations:", "  mkdir: []", "  create: {}", "  read: {}"]
    lines.append(f"  stat: [{', '.join(show(s) for s in steps)}]")
    return "\n".join(lines) + "\n"


# ---- answers
# ----------------------------------------------------------------------------------------------------------


def erlang_wait(arrivals: float, service: float, servers: int) -> float:
    """Mean wait in M/M/c (Erlang 1917; Kleinrock 1975, eq. 3.40)."""
    offered = arrivals * service
    logs = np.arange(servers) * math.log(offered) - gammaln(np.arange(servers) + 1)
    last = servers * math.log(offered) - gammaln(servers + 1) - math.log1p(-offered / servers)
    return float(math.exp(last - logsumexp(np.append(logs, last)))) * service / (servers - offered)


def pollaczek_khinchine(arrivals: float, law: Law) -> float:
    """Mean wait in M/G/1 (Kleinrock 1975, eq. 5.70)."""
    mean, second = moments(law)
    return arrivals * second / (2 * (1 - arrivals * mean))


def cobham(classes: Sequence[tuple[float, Law]], servers: int = 1) -> list[float]:
    """Mean waits of classes (arrivals, law) in non-preemptive order: M/G/1 (Cobham 1954; Kleinrock 1976, eq. 3.31), or
    M/M/c with one law for all."""
    loads = np.concatenate(([0.0], np.cumsum([rate * moments(law)[0] / servers for rate, law in classes])))
    if servers == 1:
        residual = sum(rate * moments(law)[1] for rate, law in classes) / 2
    else:
        arrivals, service = sum(rate for rate, _ in classes), moments(classes[0][1])[0]
        residual = erlang_wait(arrivals, service, servers) * (1 - loads[-1])
    return [float(residual / ((1 - before) * (1 - with_it))) for before, with_it in zip(loads, loads[1:], strict=False)]


def repairman(customers: int, rates: Sequence[float] | np.ndarray, delay: float) -> np.ndarray:
    """Log probabilities of n = 0 ... N at the queue: finite-source birth and death (Kleinrock 1975, section 3.8)."""
    rates = np.asarray(rates, dtype=float)
    served = rates[np.minimum(np.arange(customers), len(rates) - 1)]
    births = (customers - np.arange(customers)) / delay
    logs = np.concatenate(([0.0], np.cumsum(np.log(births) - np.log(served))))
    return np.asarray(logs - logsumexp(logs))


def repairman_throughput(customers: int, rates: Sequence[float] | np.ndarray, delay: float) -> float:
    """X from the mean number in the delay: no rate law enters twice."""
    p = np.exp(repairman(customers, rates, delay))
    return float(np.dot(p, customers - np.arange(customers + 1))) / delay


def repairman_sojourn_cdf(customers: int, servers: int, service: float, delay: float, t: float) -> float:
    """P(wait + service <= t) as an arrival sees N-1 others: Erlang(n-c+1) + exponential, by quadrature."""
    p = np.exp(repairman(customers - 1, np.minimum(np.arange(1, max(customers, 2)), servers) / service, delay))
    x = np.linspace(0, t, 4001)
    total = 0.0
    for n, share in enumerate(p):
        k = n - servers + 1
        if k <= 0:
            total += share * expon.cdf(t, scale=service)
        else:
            density = gamma.pdf(x, k, scale=service / servers) * expon.cdf(t - x, scale=service)
            total += share * float(trapezoid(density, x))
    return total


def convolution(demands: Sequence[tuple[float, int]], delay: float, customers: int) -> float:
    """X of single-class stations (demand, servers) by Buzen's convolution in exact rational arithmetic."""
    from fractions import Fraction

    def product(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
        return [sum((a[i] * b[n - i] for i in range(n + 1)), Fraction(0)) for n in range(customers + 1)]

    total = [Fraction(1)]
    for n in range(1, customers + 1):
        total.append(total[-1] * Fraction(delay) / n)
    for demand, servers in demands:
        terms = [Fraction(1)]
        for n in range(1, customers + 1):
            terms.append(terms[-1] * Fraction(demand) / min(n, servers))
        total = product(total, terms)
    return float(total[customers - 1] / total[customers])
