# SPDX-License-Identifier: Apache-2.0
"""iocast: measure storage at small scale, calibrate a queueing model, forecast larger scales and show the error."""
