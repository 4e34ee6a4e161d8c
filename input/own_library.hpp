// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

/// Parts of a program that need much of others' software lie in libraries of their own, in ../lib/iocast beside the
/// program, and are loaded when a command needs them. So the program starts in a fraction of the time, and runs where
/// that software is missing.
namespace iocast::own_library {

/// The directory that they are looked for in.
std::string place();

/// Ends a sentence about one that isn't there.
inline constexpr const char* how_to_have_them =
    "install iocast with cmake --install, or copy lib/iocast of its build beside the directory of the program";

/// Names of those that are there and begin so.
std::vector<std::string> names(const std::string& beginning);

/// Loads it, with the libraries that it needs. What is loaded stays.
/// @return what to find its symbols with
/// @throws RunError with the words of the system's loader, or when the library is of another build than the program:
/// they call each other's functions
void* load(const std::string& name);

/// Loads it. @return its symbol @throws RunError as load()
const void* symbol_of(const std::string& name, const char* symbol);

} // namespace iocast::own_library
