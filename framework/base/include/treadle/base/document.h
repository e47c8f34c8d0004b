#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

namespace treadle {

struct WrittenNode;

/// A JSON document with the source position of each value.
///
/// Comments (`//` and `/* */`) and a leading byte order mark are allowed; everything else is strict
/// JSON in UTF-8, and a key may appear once. Text from strangers is bounded: kMaxBytes, kMaxDepth.
/// Made on one thread; after the last set(), safe to read from all. Held by shared_ptr, because
/// each Config made from it keeps it alive.
class Document final : public PlaceIndex {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;
  static constexpr int kMaxDepth = 64;

  /// Reads `text`; `file` names it in messages, and relative paths are meant relative to its
  /// folder. Throws DocumentError with the syntax error and every duplicate key.
  static std::shared_ptr<Document> parse(std::string_view text, std::string file);
  /// Reads a file. Throws DocumentError also when it cannot be read.
  static std::shared_ptr<Document> read(const std::filesystem::path& path);
  /// A document built in code: its values have no place.
  static std::shared_ptr<Document> from_json(nlohmann::json value,
                                             const std::filesystem::path& folder = {});

  ~Document() override;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  const nlohmann::json& value() const noexcept { return value_; }
  const std::string& file() const noexcept { return file_; }
  /// Where relative paths start: absolute.
  const std::filesystem::path& folder() const noexcept { return folder_; }

  /// Replaces or adds one value, as in `--set optimizer.learning_rate=0.003`.
  ///
  /// `path` has keys and array indices between dots (or is a JSON pointer, when it starts with a
  /// slash); an index one past the end appends; missing objects are made; text on the way, as in
  /// `"metrics": ["accuracy"]`, is short for `{"use": "accuracy"}`. `text` is JSON where it reads
  /// as such, else a string. `null` removes a value of an object, as in a merge patch (RFC 7396).
  /// Throws UsageError when there is nothing to set at `path`.
  void set(std::string_view path, std::string_view text);

  /// A member's place is its key's, an element's its first character's; what set() wrote has the
  /// `--set` itself for a file.
  Place place_of(std::string_view pointer) const override;

 private:
  Document();

  Place place_at(std::size_t offset) const;

  nlohmann::json value_;
  std::string file_;
  std::filesystem::path folder_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::unique_ptr<WrittenNode> written_;                       // null when nothing was written
  std::map<std::string, std::string, std::less<>> overrides_;  // pointer -> "--set path=text"
};

}  // namespace treadle
