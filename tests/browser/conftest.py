# SPDX-License-Identifier: Apache-2.0
"""The page that simulates is looked at where its module was built (`cmake --build build --target page`), which needs
emscripten: some hundred megabytes that no other test asks for."""

from iocast.whatif import module

collect_ignore = [] if module.find() else ["test_whatif_browser.py"]
