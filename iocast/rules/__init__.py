# SPDX-License-Identifier: Apache-2.0
"""Statistics: simple rules, growth, blends, noise and intervals."""
