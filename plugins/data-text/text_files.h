#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

namespace treadle::text {

/// The parameters that say where texts are: text.schema.json.
struct TextOptions {
  explicit TextOptions(const Config& config);

  std::filesystem::path path;
  std::string format;
  std::string text_key;
  std::string target;  ///< empty: the next token
  bool rows_are_tokens = true;
  std::int64_t max_length = 0;  ///< 0: as long as they are
};

/// A document as its file has it.
struct Document {
  std::vector<std::string> pieces;  ///< the text; of a list of strings each one
  bool is_list = false;
  nlohmann::json target;  ///< null without one
  std::size_t file = 0;   ///< of Documents::files
  std::int64_t line = 0;  ///< from 1; 0: the whole file
};

struct Documents {
  std::vector<Document> list;
  std::vector<std::filesystem::path> files;
  /// There is one by nature: a single file with the format "text".
  bool is_one = false;

  /// "line 3 of data/reviews.jsonl", "data/novel.txt".
  std::string place_of(const Document& document) const;
};

/// Reads all of them. Throws DataError for what is no text, naming file and line; `needs_target`:
/// also for a document without one.
Documents read_documents(const TextOptions& options, bool needs_target);

}  // namespace treadle::text
