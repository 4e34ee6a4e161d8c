# SPDX-License-Identifier: Apache-2.0
"""`python -m iocast`: the command line where no script `iocast` is on the path, as in job scripts."""

from iocast.cli import main

if __name__ == "__main__":
    main()
