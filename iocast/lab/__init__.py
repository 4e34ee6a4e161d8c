# SPDX-License-Identifier: Apache-2.0
"""A laboratory: client nodes and a server with held capacity on one machine, each node with a network, a host name and
mounts of its own (docs/laboratory.md)."""
