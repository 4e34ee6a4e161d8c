# SPDX-License-Identifier: Apache-2.0
"""Slurm: job scripts that measure a campaign, srun's option for MPI, and how long a job still has
(docs/campaigns.md)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from iocast.campaign.plan import Plan
from iocast.errors import InputError, RunError
from iocast.ground.files import write_text
from iocast.ground.own_directory import MODE, require_own_directory
from iocast.ground.names import as_file_name
from iocast.ground.strict import is_whole

MARGIN = 60
"""Seconds before the time limit at which a run is ended: for its ranks to agree, and for what was measured to reach the
disk."""


@dataclass
class JobOptions:
    time: str = "01:00:00"
    lines: list[str] = field(default_factory=list)  # of "#SBATCH", without it

    def check(self) -> None:
        """@raises InputError"""
        if _minutes(self.time) is None:
            raise InputError(
                f"'{self.time}' is no time limit that Slurm knows; write minutes, [hours:]minutes:seconds, or "
                "days-hours[:minutes[:seconds]]."
            )
        for line in self.lines:
            if not line.isprintable() or not line.startswith("-"):
                raise InputError(
                    f"'{line}' is no option of sbatch; write it as there, e.g. --slurm-option=--partition=compute."
                )


def _minutes(text: str) -> float | None:
    """Slurm's notations of a time, in minutes; None for anything else."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if found is None:
        return None
    days, *rest = (None if g is None else int(g) for g in found.groups())
    a, b, c = rest
    if days is not None:
        return 1440 * days + 60 * (a or 0) + (b or 0) + (c or 0) / 60
    if c is not None:
        return 60 * (a or 0) + (b or 0) + c / 60
    return (a or 0) + (b or 0) / 60


def write_scripts(plan: Plan, arguments: Sequence[str], out: Path, options: JobOptions) -> list[Path]:
    """One job script for each number of nodes, in `out`/slurm, larger ones last. Each measures the missing runs on that
    many nodes with `iocast measure ARGUMENTS --only-nodes N`.

    They are meant to run one after the other: the campaign has one owner at a time."""
    options.check()
    scripts = []
    folder, name = (out / "slurm").resolve(), as_file_name(plan.file.stem)
    log = sbatch_quoted(folder)
    for directory in (out, out / "slurm"):  # what is in them is run
        directory.mkdir(MODE, parents=True, exist_ok=True)
        require_own_directory(directory)
    for nodes in sorted({point.nodes for point in plan.points}):
        lines = [
            "#!/bin/bash",
            f"# Measures the campaign {name} on {nodes} node{'s' if nodes > 1 else ''}. Submitted again, it goes on "
            "with what is missing.",
            f"#SBATCH --job-name=iocast-{name}-{nodes}",
            f"#SBATCH --nodes={nodes}",
            # Whole nodes: a neighbour would be measured as well. How many ranks there are is srun's matter, for each
            # run anew.
            "#SBATCH --exclusive",
            f"#SBATCH --time={options.time}",
            # To iocast only, which ends the run in good order; SIGTERM would cancel the ranks with it.
            f"#SBATCH --signal=B:USR1@{MARGIN}",
            f'#SBATCH --output="{log}/%x-%j.log"',
            *(f"#SBATCH {line}" for line in options.lines),
            "",
            f"cd {shlex.quote(os.getcwd())}",
            f"export PYTHONPATH={shlex.quote(str(Path(__file__).resolve().parents[2]))}${{PYTHONPATH:+:$PYTHONPATH}}",
            *(
                [f"export IOCAST_BUILD={shlex.quote(os.path.abspath(os.environ['IOCAST_BUILD']))}"]
                if "IOCAST_BUILD" in os.environ
                else []
            ),
            f"exec {shlex.join([sys.executable, '-m', 'iocast', 'measure', *arguments, '--only-nodes', str(nodes)])}",
        ]
        scripts.append(folder / f"{name}-{nodes}.sbatch")
        write_text(scripts[-1], "\n".join(lines) + "\n", secret=True)
        scripts[-1].chmod(0o700)
    return scripts


def sbatch_quoted(folder: Path) -> str:
    """A directory as sbatch reads it between double quotes, in which it takes %x and the like for patterns.

    @raises InputError for what no line of a script can hold"""
    text = str(folder)
    if not text.isprintable():
        raise InputError(
            f"The directory {text!r} has a character in its name that a job script can't hold; work in another one, or "
            "choose another --out."
        )
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def submit(scripts: Sequence[Path]) -> list[str]:
    """Submits the scripts, each to begin when the one before it has ended, however it did.

    @return their job numbers"""
    if shutil.which("sbatch") is None:
        raise RunError(
            "The program sbatch is not installed here; write the scripts with --slurm-only-write and submit them where "
            "it is."
        )
    jobs: list[str] = []
    for script in scripts:
        after = [f"--dependency=afterany:{jobs[-1]}"] if jobs else []
        done = subprocess.run(
            ["sbatch", "--parsable", *after, str(script)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            submitted = f" (submitted before it: {', '.join(jobs)})" if jobs else ""
            raise RunError(
                f"Slurm did not take the job script '{script}': "
                f"{done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'sbatch failed'}{submitted}."
            )
        jobs.append(done.stdout.strip().partition(";")[0])
    return jobs


def require_taken(script: str) -> None:
    """Asks Slurm whether it would take a job of this script, without handing it in.

    @raises RunError with Slurm's words when it would not"""
    if shutil.which("sbatch") is None:
        raise RunError(
            "The program sbatch is not installed here; start workers by hand and name their scheduler with --scheduler."
        )
    done = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(
            "Slurm does not take the workers' jobs: "
            f"{done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'sbatch failed'}."
        )


@lru_cache(maxsize=1)
def mpi_options() -> tuple[str, ...]:
    """What makes srun connect the ranks: nothing where the site or the user chose an MPI plugin, else the newest that
    Open MPI and MPICH know.

    Without a plugin each rank would be an MPI program of its own, or none would start."""
    if "SLURM_MPI_TYPE" in os.environ:
        return ()
    try:
        config = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=False).stdout
        known = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    default = re.search(r"^MpiDefault\s*=\s*(\S+)", config, re.MULTILINE)
    if default and default[1] not in ("none", "(null)"):
        return ()
    listed = (known.stdout + known.stderr).split()
    return next(((f"--mpi={plugin}",) for plugin in ("pmix", "pmi2") if plugin in listed), ())


def ask_steps_to_end() -> bool:
    """SIGTERM to the ranks that srun started in this job. A signal to srun itself would kill them.

    @return whether there were any"""
    job = os.environ.get("SLURM_JOB_ID", "")
    try:
        steps = subprocess.run(
            ["squeue", "--steps", "--noheader", "--job", job, "--format=%i"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        running = [step for step in steps if is_whole(step.rpartition(".")[2])]
        for step in running:
            subprocess.run(["scancel", "--signal=TERM", step], capture_output=True, check=False)
    except OSError:
        return False
    return bool(running)


def deadline() -> float | None:
    """When this job's time limit is reached, as seconds since 1970; None outside of a job, or without a limit."""
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return None
    stated = os.environ.get("SLURM_JOB_END_TIME", "")  # newer Slurms set it
    if is_whole(stated):
        return float(stated)
    try:
        left = subprocess.run(
            ["squeue", "--noheader", "--job", job, "--format=%L"], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return None
    minutes = _minutes(left)
    if minutes is None:
        return None
    # "5:03" is minutes and seconds here; a time limit of "5:03" would be so, too.
    return time.time() + 60 * minutes
