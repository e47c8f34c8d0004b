#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// How this program and its libraries were built, as far as a plugin must have been built alike.
struct HostBuild {
  std::string fingerprint;          ///< key=value lines, see treadle/core/components/fingerprint.h
  std::vector<std::string> needed;  ///< the libraries that libtreadle-core is linked to
};

/// Where Treadle's own shared libraries lie: the folder libtreadle-base was loaded from. Absolute.
std::filesystem::path library_folder();

/// The library in library_folder() whose notes record how the host was built. It is read as a file:
/// this program may never have loaded it, nor libtorch.
std::filesystem::path host_library();

/// Why code with this fingerprint, linked to these libraries, cannot be loaded by the host; empty
/// when it can. One sentence without full stop that names every difference: "was built for
/// libtorch 2.6.0, this runner uses 1.13.1; …; rebuild it against this SDK".
std::string explain_mismatch(std::string_view fingerprint, const std::vector<std::string>& needed,
                             const HostBuild& host);

}  // namespace treadle
