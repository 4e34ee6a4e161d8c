# SPDX-License-Identifier: Apache-2.0
"""How many accelerators a storage system feeds."""
