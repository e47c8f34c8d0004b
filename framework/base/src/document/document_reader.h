#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle {

/// Where one value was written, and where its parts were. A tree rather than a map from pointers,
/// because a hostile document could make the pointers larger than itself.
struct WrittenNode {
  struct Parts {
    std::map<std::string, WrittenNode, std::less<>> members;
    std::vector<WrittenNode> elements;
  };

  std::size_t offset = 0;  ///< in the text: of the key, else of the value
  std::unique_ptr<Parts> parts;

  Parts& own_parts();
  /// Null when no such part was written.
  const WrittenNode* part(std::string_view key_or_index) const;
};

/// Something wrong in the text.
struct TextProblem {
  std::size_t offset = 0;
  std::string pointer;
  std::string message;
  /// For a duplicate key, where it stood first; the message then lacks the two line numbers.
  std::size_t first_offset = std::string::npos;
};

struct ReadText {
  nlohmann::json value;
  WrittenNode written;
  std::vector<TextProblem> problems;  ///< value and written are complete only without
};

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Reads JSON with comments, past the byte order mark that a file may begin with.
ReadText read_json_text(std::string_view text, int max_depth);

}  // namespace treadle
