#include "text_files.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/base/path_words.h>
#include <treadle/core/data/row_problems.h>

namespace treadle::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// All files below the folder in order of their paths, hidden ones left out.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  auto entry = fs::recursive_directory_iterator(folder, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(failed)) {
      files.push_back(entry->path());
    }
  }
  if (failed)
    throw DataError(shown_path(folder) + ": cannot be read: " + failed.message());
  if (files.empty())
    throw DataError(shown_path(folder) + ": there are no files in this folder");
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const fs::path& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) {
    throw DataError(shown_path(path) +
                    ": cannot be read: " + (failed ? failed.message() : "no permission"));
  }
  std::string content(size, '\0');
  file.read(content.data(), static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size))
    throw DataError(shown_path(path) + ": ended while it was read");
  return content;
}

/// Calls `visit` with each line and its number, from 1; without the end of the line.
template <typename Visit>
void for_each_line(std::string_view content, Visit&& visit) {
  for (std::int64_t number = 1; !content.empty(); ++number) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    visit(line, number);
    content.remove_prefix(std::min(end + 1, content.size()));
  }
}

/// The number of an escape "\ud83d" at the beginning of a text; 0: there is none.
unsigned escape_at(std::string_view text) {
  unsigned code = 0;
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u')
    return 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  return error == std::errc() && end == text.data() + 6 ? code : 0;
}

/// The first escape of a surrogate (UTF-16) that has no partner; empty: there is none.
std::string_view lone_surrogate(std::string_view line) {
  constexpr std::size_t kEscape = 6;
  const auto is_between = [](unsigned code, unsigned first, unsigned last) {
    return code >= first && code <= last;
  };
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] != '\\')
      continue;
    const unsigned code = escape_at(line.substr(i));
    const bool is_first = is_between(code, 0xD800, 0xDBFF);
    const bool has_second = is_first && i + kEscape < line.size() &&
                            is_between(escape_at(line.substr(i + kEscape)), 0xDC00, 0xDFFF);
    if (is_between(code, 0xD800, 0xDFFF) && !has_second)
      return line.substr(i, kEscape);
    i += has_second ? 2 * kEscape - 1 : 1;
  }
  return {};
}

class JsonLines {
 public:
  JsonLines(const TextOptions& options, bool needs_target, Documents& documents)
      : options_(options), needs_target_(needs_target), documents_(documents) {}

  void read(std::string_view content, std::size_t file) {
    for_each_line(content, [&](std::string_view line, std::int64_t number) {
      if (line.find_first_not_of(" \t") == std::string_view::npos)
        return;
      Document document;
      document.file = file;
      document.line = number;
      const std::string problem = fill(document, line);
      if (problem.empty()) {
        documents_.list.push_back(std::move(document));
      } else {
        problems_.add([&] { return documents_.place_of(document) + ": " + problem; });
      }
    });
  }

  void finish() const { problems_.throw_if_any(); }

 private:
  /// What is wrong with the line; empty when nothing is.
  std::string fill(Document& document, std::string_view line) const {
    const Json object = parse_json(line);
    const std::string_view half = object.is_discarded() ? lone_surrogate(line) : "";
    if (!half.empty()) {
      return "has half of a character, " + std::string(half) +
             ", without the other one: write the whole character, or \\ufffd";
    }
    if (object.is_discarded() || !object.is_object())
      return "expected a JSON object on a line of its own";
    const auto text = object.find(options_.text_key);
    if (text == object.end())
      return "has no key " + quote_text(options_.text_key) + "; set \"text_key\"";
    if (text->is_string()) {
      document.pieces = {text->get<std::string>()};
    } else if (text->is_array() && std::all_of(text->begin(), text->end(), [](const Json& piece) {
                 return piece.is_string();
               })) {
      document.pieces = text->get<std::vector<std::string>>();
      document.is_list = true;
    } else {
      return quote_text(options_.text_key) + ": expected a string or a list of strings, got " +
             describe_value(*text);
    }
    if (options_.target.empty())
      return "";
    const auto target = object.find(options_.target);
    const bool has_target = target != object.end() && !target->is_null();
    if (!has_target)
      return needs_target_ ? "has no target " + quote_text(options_.target) : "";
    document.target = *target;
    if (!target->is_array())
      return target->is_object() ? quote_text(options_.target) +
                                       ": expected a class, a number or "
                                       "a list of tags, got an object"
                                 : "";
    if (!document.is_list || document.pieces.size() != target->size()) {
      return quote_text(options_.target) + " has " + std::to_string(target->size()) +
             " tags, and " + quote_text(options_.text_key) +
             (document.is_list ? " has " + std::to_string(document.pieces.size()) + " strings"
                               : std::string(" is a single string; tags need a list of strings"));
    }
    return "";
  }

  const TextOptions& options_;
  const bool needs_target_;
  Documents& documents_;
  RowProblems problems_;
};

bool is_jsonl(const TextOptions& options, const fs::path& file) {
  return options.format == "jsonl" || (options.format == "auto" && file.extension() == ".jsonl");
}

}  // namespace

TextOptions::TextOptions(const Config& config)
    : path(config.get<std::string>("path")),
      format(config.get<std::string>("format")),
      text_key(config.get<std::string>("text_key")),
      target(config.get_or<std::string>("target", "")),
      rows_are_tokens(config.get_or<std::string>("rows", target.empty() ? "tokens" : "documents") ==
                      "tokens"),
      max_length(config.get_or<std::int64_t>("max_length", 0)) {
  if (!target.empty() && (format == "text" || format == "lines"))
    config.fail("target", "is a key of JSON lines, and \"format\" is \"" + format + "\"");
  if (!target.empty() && rows_are_tokens) {
    config.fail("rows",
                "are \"tokens\", whose target is the next one; a \"target\" belongs to "
                "\"documents\"");
  }
  if (max_length > 0 && rows_are_tokens)
    config.fail("max_length", "is about rows that are documents, and \"rows\" are \"tokens\"");
}

std::string Documents::place_of(const Document& document) const {
  return (document.line > 0 ? "line " + std::to_string(document.line) + " of " : "") +
         shown_path(files[document.file]);
}

Documents read_documents(const TextOptions& options, bool needs_target) {
  std::error_code failed;
  const fs::file_status status = fs::status(options.path, failed);
  if (!fs::exists(status))
    throw DataError(shown_path(options.path) + ": there is no such file or folder");
  Documents documents;
  const bool is_folder = fs::is_directory(status);
  documents.files = is_folder ? files_below(options.path) : std::vector<fs::path>{options.path};
  JsonLines lines(options, needs_target, documents);
  for (std::size_t i = 0; i < documents.files.size(); ++i) {
    const fs::path& file = documents.files[i];
    const std::string content = content_of(file);
    if (is_jsonl(options, file)) {
      lines.read(content, i);
    } else if (!options.target.empty()) {
      throw DataError(shown_path(file) +
                      ": \"target\" is a key of JSON lines; set \"format\": "
                      "\"jsonl\" if this file has them");
    } else if (options.format == "lines") {
      for_each_line(content, [&](std::string_view line, std::int64_t number) {
        if (!line.empty())
          documents.list.push_back({{std::string(line)}, false, Json(), i, number});
      });
    } else {
      documents.list.push_back({{content}, false, Json(), i, 0});
      documents.is_one = !is_folder;
    }
  }
  lines.finish();
  if (documents.list.empty())
    throw DataError(shown_path(options.path) + ": there is no document in it");
  return documents;
}

}  // namespace treadle::text
