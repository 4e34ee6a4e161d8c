// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <istream>
#include <string>

namespace iocast {

/// The processor's model by the text of /proc/cpuinfo: its model name on x86-64 and its "cpu" on POWER. Kernels of
/// aarch64 print only numbers; each kind of core there is "CPU implementer 0x41, part 0xd0c", as `lscpu` looks them up.
/// "unknown" where the text has none of these.
std::string processor_model(std::istream& cpuinfo);

} // namespace iocast
