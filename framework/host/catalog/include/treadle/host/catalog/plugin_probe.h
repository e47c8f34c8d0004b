#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle {

/// One thing that was looked at in a plugin.
struct ProbeFinding {
  bool good = false;
  std::string text;  ///< a sentence that begins with a verb: "exports its entry and nothing else"
};

/// The outcome of loading a library and calling its entry, in a process of its own.
struct ProbeVerdict {
  /// Empty when it loaded; else a sentence that begins with a verb: "crashed while it was loaded
  /// (SIGSEGV)".
  std::string problem;
  /// The problem lies in what the library needs: it may be gone although the file stays the same.
  bool may_pass = false;
  bool alone = false;  ///< it broke a helper that had others loaded, and was tried again alone
  std::chrono::milliseconds took{0};   ///< from the beginning of its load to its answer
  std::vector<ProbeFinding> findings;  ///< of inspect(), when it loaded
};

struct ProbeOptions {
  std::filesystem::path program;           ///< treadle-probe; see default_probe_program()
  std::chrono::milliseconds limit{10000};  ///< for one library
};

/// Where treadle-probe lies, seen from the libraries: beside them in an installation and in a build
/// tree.
std::filesystem::path default_probe_program(const std::filesystem::path& libraries);

/// Tries libraries out where they can do no harm: loads each in a helper process, with a time
/// limit, and calls its entry.
///
/// Whatever a library does at load (crash, hang, end the process, print, fork) becomes a verdict,
/// and the helper's whole process group is gone afterwards. One helper serves many libraries,
/// because loading libtorch costs a hundred times what a plugin does; after a library that breaks
/// it, the next helper takes over. One thread.
class PluginProbe {
 public:
  explicit PluginProbe(ProbeOptions options) : options_(std::move(options)) {}

  /// A verdict per file, in their order. A library that breaks a helper in which others had been
  /// loaded before gets a helper of its own: what it does alone is what counts. Throws
  /// PluginError when the helper itself cannot be used.
  std::vector<ProbeVerdict> try_each(std::span<const std::filesystem::path> files) const;

  /// Loads one library and looks at it from all sides; a finding for each.
  ProbeVerdict inspect(const std::filesystem::path& file) const;

  /// The helper's report on the machine: {"libtorch", "blas", "cpu_capability", "cores"}. Throws
  /// PluginError when it cannot be started: libtorch or a library that it needs is missing.
  nlohmann::json ask_about_host() const;

  /// Loads all files into one process. Empty when that works, else what the one that broke it did,
  /// as in ProbeVerdict; `culprit` is then its position.
  std::string try_together(std::span<const std::filesystem::path> files,
                           std::size_t& culprit) const;

 private:
  ProbeOptions options_;
};

/// The helper's output: JSON, one object a line, on this descriptor. {"start": 3} before it touches
/// the file at position 3 of its arguments, then {"done": 3, "problem": ""}.
inline constexpr int kProbeChannel = 3;
inline constexpr std::string_view kProbeStart = "start";
inline constexpr std::string_view kProbeDone = "done";
inline constexpr std::string_view kProbeProblem = "problem";
inline constexpr std::string_view kProbeMayPass = "may_pass";
/// With this before one file, its answer also has "findings", an array of [good, text].
inline constexpr std::string_view kProbeInspect = "--inspect";
inline constexpr std::string_view kProbeFindings = "findings";
/// With this argument alone it reports {"host": {…}}.
inline constexpr std::string_view kProbeHost = "--host";
inline constexpr std::string_view kProbeHostAnswer = "host";

}  // namespace treadle
