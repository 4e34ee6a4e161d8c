# SPDX-License-Identifier: Apache-2.0
"""Hosts for mpirun that are UTS namespaces of this machine."""

from __future__ import annotations

from pathlib import Path

REMOTE_SHELL = """#!/bin/sh
# mpirun's remote shell: HOST COMMAND..., with none of the variables here, as ssh
host=$1; shift
exec env -i PATH="$PATH" HOME="$HOME" unshare --uts --fork sh -c "hostname $host; $*"
"""
OPEN_MPI = {
    "plm_rsh_no_tree_spawn": "1", "btl": "self,tcp,vader", "btl_tcp_if_include": "lo", "oob_tcp_if_include": "lo",
}  # fmt: skip


def hosts_of(place: Path, text: str) -> dict[str, str]:
    """Writes `hosts` with this text; returns the variables with which mpirun reaches them."""
    (place / "hosts").write_text(text)
    shell = place / "remote_shell"
    shell.write_text(REMOTE_SHELL)
    shell.chmod(0o755)
    return {f"OMPI_MCA_{name}": value for name, value in {**OPEN_MPI, "plm_rsh_agent": str(shell)}.items()}
