#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "memory_file.h"
#include "targets.h"
#include "verify/evidence.h"

namespace treadle::fuzz {
namespace {

using cli::Evidence;
using Json = nlohmann::json;

/// Nothing where it is refused.
std::optional<Evidence> evidence_in(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    return cli::evidence_of(file.path());
  } catch (const StorageError& error) {
    promise_readable(error.what(), 2000);
    return std::nullopt;
  }
}

void promise_lines(const std::vector<std::string>& lines, std::size_t size) {
  for (const std::string& line : lines) {
    promise_readable(line, 2000 + 6 * size);
    promise(line.find('\n') == std::string::npos, "a difference is one line");
  }
}

}  // namespace

void run_bundle(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::optional<Evidence> before = evidence_in(take_part(rest));
  if (!before)
    return;
  const Json written = cli::bundle_of(*before);
  const std::optional<Evidence> again = evidence_in(written.dump());
  promise(again && cli::bundle_of(*again) == written, "a bundle written again is the same");
  promise(cli::differences(*before, *again).empty() &&
              cli::different_conditions(before->environment, again->environment).empty(),
          "a run does not differ from itself");
  const std::optional<Evidence> here = evidence_in(rest);
  if (!here)
    return;
  promise_lines(cli::differences(*before, *here), bytes.size());
  promise_lines(cli::different_conditions(before->environment, here->environment), bytes.size());
}

}  // namespace treadle::fuzz
