#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>

namespace treadle::arrays {

/// Where one array lies: files one after the other, or names with * and ? in them.
using Paths = std::vector<std::filesystem::path>;

/// The input whose files are named without saying which one.
constexpr const char* kOnlyPort = "features";

/// How rows are read when they are asked for.
enum class Access { kMemory, kMapped, kChunked };

/// What to do with a value that is not there.
enum class Missing { kError, kNan, kDropRow };

/// What an input is; kAuto: numbers.
enum class RoleAsked { kAuto, kFeatures, kTokens, kImage, kMask, kSegments };
/// What a target is; kAuto leaves it to the task, the loss and the array.
enum class KindAsked { kAuto, kClasses, kNumbers, kLabels, kDistribution };

struct InputOption {
  Paths paths;
  RoleAsked role = RoleAsked::kAuto;
  std::int64_t vocabulary_size = 0;  ///< of tokens; 0: the largest and one
  std::optional<Paths> lengths = {};
  std::string of = {};  ///< of masks and segments: the input they describe; empty: the only one
};

struct TargetOption {
  std::string name;  ///< empty: the file's
  Paths paths;
  KindAsked kind = KindAsked::kAuto;
  std::optional<std::vector<std::string>> classes = {};
  std::string padded_like = {};       ///< the input whose lengths it shares
  std::optional<Paths> weights = {};  ///< of its positions
};

/// The parameters of `npy`, as npy.schema.json describes them.
struct ArrayOptions {
  ArrayOptions() = default;
  explicit ArrayOptions(const Config& config);

  /// By port.
  std::map<std::string, InputOption> inputs;
  /// Names of columns, by port.
  std::map<std::string, std::vector<std::string>> columns;
  std::vector<TargetOption> targets;
  std::optional<Paths> weights;
  std::optional<Paths> groups;
  std::optional<Paths> times;
  std::optional<Paths> label_ends;
  Access access = Access::kMapped;
  std::int64_t chunk_rows = 1024;
  std::size_t resident_bytes = std::size_t{256} << 20;
  Missing missing = Missing::kError;
};

/// The value of "inputs", by port. Throws nlohmann's exceptions when it is no such value.
std::map<std::string, InputOption> input_options(const nlohmann::json& inputs);

/// The files that `paths` names, those of one pattern in the order of their names' bytes. Throws
/// DataError when a pattern fits no file.
Paths find_files(const Paths& paths);

}  // namespace treadle::arrays
