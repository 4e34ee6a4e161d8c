# SPDX-License-Identifier: Apache-2.0
"""Who computes: processes of this machine, Dask workers, jobs of Slurm."""
