# SPDX-License-Identifier: Apache-2.0
"""The calls of the library, a file a verb, each with the record that it returns."""
