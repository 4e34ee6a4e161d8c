# SPDX-License-Identifier: Apache-2.0
"""Each C++ file includes the headers of the names that it uses, or a header of iocast that does. Which standard headers
include which others differs between compilers: what builds with GCC 12 by luck may not with GCC 14."""

import re
from functools import cache
from pathlib import Path

import pytest
from programs import REPOSITORY

NAMES = {
    "algorithm": r"std::(sort|find|find_if|(any|all|none)_of|(min|max)_element|clamp|(lower|upper)_bound|max|min)\(",
    "array": r"std::array\b",
    "atomic": r"std::atomic\b",
    "chrono": r"std::chrono\b",
    "cmath": r"std::(sqrt|exp|log|log2|floor|ceil|isfinite|llround|lround|pow)\(",
    "cstdint": r"\bu?int(8|16|32|64)_t\b",
    "cstdio": r"std::(printf|fprintf|snprintf|sscanf|FILE)\b",
    "cstdlib": r"std::(getenv|abort|exit)\b",
    "cstring": r"std::(strlen|memcpy|strerror|memset|strcmp)\b",
    "deque": r"std::deque\b",
    "exception": r"std::(exception|terminate|current_exception|rethrow_exception)\b",
    "filesystem": r"std::filesystem\b",
    "fmt/format.h": r"\bfmt::format\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::function\b",
    "iostream": r"std::(cout|cerr)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(multi)?map\b",
    "memory": r"std::((unique|shared|weak)_ptr|make_unique|make_shared)\b",
    "mutex": r"std::(mutex|lock_guard|unique_lock)\b",
    "numbers": r"std::numbers\b",
    "numeric": r"std::(accumulate|gcd|iota)\b",
    "optional": r"std::(optional|nullopt)\b",
    "queue": r"std::(priority_)?queue\b",
    "set": r"std::(multi)?set\b",
    "span": r"std::span\b",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(runtime_error|invalid_argument|logic_error|out_of_range)\b",
    "string": r"std::(string|to_string|stoi|getline)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(thread|this_thread)\b",
    "tuple": r"std::(tuple|tie)\b",
    "unordered_map": r"std::unordered_map\b",
    "variant": r"std::(variant|monostate|visit|holds_alternative)\b",
    "vector": r"std::vector\b",
}
USED = {
    "algorithm": "std::sort(",
    "cmath": "std::sqrt(",
    "cstdint": "uint64_t",
    "cstdio": "std::snprintf",
    "cstdlib": "std::getenv",
    "cstring": "std::memcpy",
    "fmt/format.h": "fmt::format",
    "fstream": "std::ifstream",
    "functional": "std::function",
    "iostream": "std::cout",
    "limits": "std::numeric_limits",
    "memory": "std::unique_ptr",
    "numeric": "std::iota",
    "sstream": "std::istringstream",
    "stdexcept": "std::runtime_error",
}
"""A name of each header whose own is none."""
FOLDERS = ("input", "models", "profile", "real", "selftest", "sim", "tests", "validation", "workload")
INCLUDE = re.compile(r'^\s*#include [<"]([^>"]+)[>"]', re.MULTILINE)
IN_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def missing(root: Path) -> list[str]:
    """File and header, of each name that a file has and whose header it includes nowhere."""
    text = {
        file.relative_to(root).as_posix(): re.sub(r"//.*", "", file.read_text())
        for folder in FOLDERS
        for file in (root / folder).rglob("*.[ch]pp")
    }

    @cache
    def included(name: str) -> frozenset[str]:
        direct = INCLUDE.findall(text.get(name, ""))
        beside = str(Path(name).parent)
        known = {found: found if found in text else f"{beside}/{found}" for found in direct}
        return frozenset(direct).union(*(included(file) for file in known.values() if file in text))

    return [
        f"{name} lacks #include <{header}>"
        for name, whole in sorted(text.items())
        for header, pattern in NAMES.items()
        if re.search(pattern, IN_STRINGS.sub('""', INCLUDE.sub("", whole))) and header not in included(name)
    ]


def test_each_file_includes_what_it_uses() -> None:
    assert missing(REPOSITORY) == []


@pytest.mark.parametrize("header", NAMES)
def test_a_missing_header_is_seen(header: str, tmp_path: Path) -> None:
    used = USED.get(header, f"std::{header}")
    (tmp_path / "input").mkdir()
    (tmp_path / "input/other.hpp").write_text(f"#include <{header}>\n")
    (tmp_path / "input/one.cpp").write_text(f'#include "input/other.hpp"\n{used};\n')
    (tmp_path / "input/two.cpp").write_text(f'{used}; // #include <{header}>\n"{used}";\n')
    assert missing(tmp_path) == [f"input/two.cpp lacks #include <{header}>"]
