# SPDX-License-Identifier: Apache-2.0
"""What every other part stands on: files, names, programs, processes and progress."""
