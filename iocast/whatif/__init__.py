# SPDX-License-Identifier: Apache-2.0
"""Pages that simulate: controls, and the simulator itself as a module that runs in the reader's browser."""
