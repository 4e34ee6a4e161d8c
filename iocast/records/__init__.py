# SPDX-License-Identifier: Apache-2.0
"""What travels between verbs and files, each declared once: its fields, their kinds and their bounds."""
