#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/runtime.h>

namespace treadle::testing {

/// A document that was accepted with one batch tried (`check --dry-run`), and others that differ
/// from it in one key.
struct RandomDocument {
  nlohmann::json document;
  /// [{"label", "pointer", "values": [{"document", "labels"}]}]: the same key with several legal
  /// values, and the keys in which each document differs, see changed_labels().
  nlohmann::json changes = nlohmann::json::array();
  std::vector<std::string> refusals;  ///< of what was drawn before
  int refused_changes = 0;            ///< values that were refused before a run
};

/// The same for the same seed and components. Writes the files it names into `folder`, and each
/// attempt into attempt.json there, so that one that ends the process can be seen.
RandomDocument draw_document(const Runtime& runtime, std::uint64_t seed,
                             const std::filesystem::path& folder, int changes);

/// A relative of `document`: what the key is part of (the optimizer, the training) is the same but
/// for its numbers, all else is another, as far as names allow. One change, of that key.
RandomDocument draw_relative(const Runtime& runtime, std::uint64_t seed,
                             const std::filesystem::path& folder, const nlohmann::json& document,
                             const std::string& pointer);

/// Whether an error is one of those that a wrong document, or data, or a training that diverges may
/// end with; never true for anything else than a treadle::Error.
bool is_refusal(const std::exception& error);

}  // namespace treadle::testing
