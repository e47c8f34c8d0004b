#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/document.h>
#include <treadle/base/schema.h>

namespace treadle {

/// The format version of the documents this runner reads.
inline constexpr int kWorkflowFormat = 1;

/// A workflow document after checking: every component it names exists, every parameter is valid,
/// defaults are filled in, paths are absolute. `loss` and `metrics` may still be absent: what suits
/// the task is only known with the data.
struct ResolvedWorkflow {
  nlohmann::json resolved;
  std::shared_ptr<const Document> document;  ///< with the place of each value
  std::vector<UsedComponent> components;     ///< as the document has them

  std::string name;
  std::uint64_t seed = 0;
  std::string precision;

  /// The parameters of a slot, "optimizer" for example, with its places. Expects it to be there.
  Config slot(std::string_view key) const;
};

/// The schema of a document's top level, parsed anew.
nlohmann::json workflow_schema();

/// Applies `optimizer.learning_rate=0.003`, as it follows `--set`, to a document. Throws UsageError
/// when it has no "=" or nothing can be set there.
void apply_override(Document& document, std::string_view assignment);

/// Checks a document. Throws DocumentError with every problem in it; a document of another format
/// version is refused without looking further.
ResolvedWorkflow resolve_workflow(std::shared_ptr<const Document> document,
                                  const SchemaIndex& index);

/// Reads the file, applies the overrides in their order, and resolves the result.
ResolvedWorkflow read_workflow(const std::filesystem::path& path,
                               std::span<const std::string> overrides, const SchemaIndex& index);

/// The resolved document as text for the run folder: keys in the order in which people write them
/// (treadle, name, seed, data …, `use` first in each component), two spaces, short arrays on one
/// line. Reading it again gives the same value.
std::string write_workflow(const nlohmann::json& resolved);

}  // namespace treadle
