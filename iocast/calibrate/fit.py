# SPDX-License-Identifier: Apache-2.0
"""The whole procedure: read the data, search over structures, hold out the largest scale, write the fitted platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iocast.calibrate import lone, reading
from iocast.calibrate.held_out import hold_out
from iocast.calibrate.known import Known, holding
from iocast.calibrate.rates import calibrate_rates, check_platform
from iocast.calibrate.recipe import family_document, read_recipe
from iocast.calibrate.search import Simulations
from iocast.calibrate.section import fitted_section, too_rare
from iocast.calibrate.structure_search import Report, Search
from iocast.calibrate.trace import Trace
from iocast.platforms.documents import Document
from iocast.runs.run_directory import Point
from iocast.jobs.workers import Workers


def calibrate(
    points: list[Point],
    platform: str,
    seed: int,
    report: Report,
    workers: Workers | None = None,
    trace: Path | None = None,
    known: Sequence[Known] = (),
) -> Document:
    """Fits `platform` to these points, with what is known of it held; `workers` simulate, by default all cores of this
    machine. What was tried is kept in the file `trace`, and taken from there by whoever goes on.

    @return the document of a platform file that extends `platform`, with a `fitted` section (docs/answers.md)
    @raises InputError when the measurements are too few, or the platform can't be calibrated"""
    recipe = holding(read_recipe(platform), known)
    fitting = [point for point in points if point.role == "fit"]
    if recipe.method == "rates":
        check_platform(family_document(platform), platform)
        return calibrate_rates(fitting, platform, seed, report)
    reading.check_enough(fitting)
    search = Search(recipe, fitting, seed, report, Trace(trace))
    with Simulations(workers, platform) as simulations:
        fits = search.explore(simulations)
        best = fits[0]
        usual = search.usual_misfit(simulations, best)
        held_out = hold_out(search, simulations)
        document = search.build(best.options, best.values)
        rows = search.rows(simulations, document, fitting)
        (alone,) = search.simulated(simulations, document, [search.single])
    search.notes += [*too_rare(fitting, rows), *(lone.notes(search.single, alone) if alone else [])]
    document["description"] = (
        f"{platform}, fitted to {len(fitting)} measured points of up to {max(p.ranks for p in fitting)} ranks"
    )
    document["source"] = "calibrated by iocast; see the section 'fitted'"
    document["fitted"] = fitted_section(search, fits, held_out, rows, usual)
    if known:
        document["fitted"]["known"] = [one.document() for one in known]
    return document
