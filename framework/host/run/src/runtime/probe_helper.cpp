#include <treadle/host/run/probe_helper.h>

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/host/catalog/plugin_cache.h>
#include <treadle/host/catalog/plugin_probe.h>

#include <treadle/engine/thread_budget.h>

#include "runtime/library_inspection.h"
#include "runtime/plugin_library.h"
#include "runtime/run_record.h"

namespace treadle {
namespace {

void answer(const nlohmann::json& line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(kProbeChannel, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    // Who asked is gone, or the plugin closed the channel: the missing answer tells.
    if (count <= 0)
      ::_exit(1);
    done += static_cast<std::size_t>(count);
  }
}

/// A problem as an answer. What the dynamic linker refuses, another library may mend.
nlohmann::json answer_with(const PluginError& error) {
  return {{kProbeProblem, error.what()},
          {kProbeMayPass, dynamic_cast<const internal::NotLoadable*>(&error) != nullptr}};
}

nlohmann::json inspect_one(const std::filesystem::path& file) {
  try {
    nlohmann::json findings = nlohmann::json::array();
    for (const ProbeFinding& finding : internal::inspect_library(file))
      findings.push_back({finding.good, finding.text});
    return {{kProbeProblem, ""}, {kProbeFindings, std::move(findings)}};
  } catch (const PluginError& error) {
    return answer_with(error);
  }
}

/// The answer for one plugin.
nlohmann::json try_one(const std::filesystem::path& file, const HostBuild& host) {
  const std::optional<FileStamp> stamp = FileStamp::of(file);
  if (!stamp)
    return {{kProbeProblem, "is gone"}};
  FileFacts facts = FileFacts::read(file, *stamp);
  if (!facts.problem.empty())
    return {{kProbeProblem, facts.problem}};
  const PluginFile plugin{
      file, "", Verdict::kUsable, "", std::move(facts.manifest), std::move(facts.build_id)};
  try {
    static_cast<void>(internal::load_plugin_library(plugin, host));
    return {{kProbeProblem, ""}};
  } catch (const PluginError& error) {
    return answer_with(error);
  }
}

}  // namespace

void answer_inspection(const std::filesystem::path& file) {
  answer({{kProbeStart, 0}});
  nlohmann::json outcome = inspect_one(file);
  outcome[kProbeDone] = 0;
  answer(outcome);
}

void answer_about_host() {
  answer({{kProbeHostAnswer,
           {{"libtorch", internal::libtorch_version()},
            {"blas", engine::blas_name()},
            {"cpu_capability", internal::cpu_capability()},
            {"cores", engine::available_cores()}}}});
}

void answer_probe(std::span<const std::filesystem::path> files) {
  const LibraryNotes notes = read_library_notes(host_library());
  const HostBuild host{notes.fingerprint, notes.needed};
  for (std::size_t i = 0; i < files.size(); ++i) {
    answer({{kProbeStart, i}});
    nlohmann::json outcome = try_one(files[i], host);
    outcome[kProbeDone] = i;
    answer(outcome);
  }
}

}  // namespace treadle
