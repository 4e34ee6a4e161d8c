# SPDX-License-Identifier: Apache-2.0
"""What others published, a file a source: `SOURCE`, its name, and `CLAIMS`, its statements."""
