# SPDX-License-Identifier: Apache-2.0
"""What every other part stands on: errors, files, names and programs."""
