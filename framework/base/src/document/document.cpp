#include <treadle/base/document.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

#include "document_reader.h"

namespace treadle {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_file(const std::string& file, std::string message) {
  throw DocumentError({Problem{Place{file, 0, 0}, "", std::move(message)}});
}

std::string mebibytes(std::uintmax_t bytes) {
  return std::to_string((bytes * 10 >> 20) / 10) + "." + std::to_string((bytes * 10 >> 20) % 10) +
         " MiB";
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> keys;
  if (path.starts_with('/')) {
    for (; !path.empty(); path = parent_pointer(path))
      keys.push_back(last_key(path));
    std::reverse(keys.begin(), keys.end());
    return keys;
  }
  for (;;) {
    const std::size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos)
      return keys;
    path.remove_prefix(dot + 1);
  }
}

std::optional<std::size_t> read_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return index;
}

// The part of `value` under `key`, made when it may be; `whole` is what to quote in messages.
json& part_to_set(json& value, const std::string& key, std::string_view pointer,
                  const std::string& whole) {
  if (value.is_null())
    value = json::object();
  if (value.is_string())
    value = json{{"use", value}};
  const std::string here =
      pointer.empty() ? std::string("the document") : quote_text(pointer.substr(1));
  if (value.is_object())
    return value[key];
  if (!value.is_array()) {
    throw UsageError(whole + ": " + here + " is " + describe_value(value) +
                     ", which has no parts to set");
  }
  const std::optional<std::size_t> index = read_index(key);
  if (!index) {
    throw UsageError(whole + ": " + here + " is an array: expected an index, got " +
                     quote_text(key));
  }
  if (*index > value.size()) {
    throw UsageError(whole + ": " + here + " has " + std::to_string(value.size()) +
                     (value.size() == 1 ? " element" : " elements") +
                     ": expected an index from 0 to " + std::to_string(value.size()) + ", got " +
                     key);
  }
  if (*index == value.size())
    value.push_back(nullptr);
  return value[*index];
}

/// What relative paths start from. A pipe lies nowhere: there it is the folder one works in.
std::filesystem::path folder_of(const std::string& file) {
  const std::filesystem::path folder =
      std::filesystem::absolute(file).parent_path().lexically_normal();
  const bool is_pipe = folder == "/dev" || folder == "/dev/fd" || folder == "/proc/self/fd";
  return is_pipe ? std::filesystem::current_path() : folder;
}

}  // namespace

Document::Document() = default;
Document::~Document() = default;

std::shared_ptr<Document> Document::parse(std::string_view text, std::string file) {
  if (text.size() > kMaxBytes) {
    refuse_file(
        file, "is " + mebibytes(text.size()) + "; a document has at most " + mebibytes(kMaxBytes));
  }
  if (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());

  std::shared_ptr<Document> document(new Document);
  document->text_ = text;
  document->folder_ = folder_of(file);
  document->file_ = std::move(file);
  document->line_starts_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n')
      document->line_starts_.push_back(i + 1);
  }

  ReadText read = read_json_text(document->text_, kMaxDepth);
  if (!read.problems.empty()) {
    std::vector<Problem> problems;
    for (TextProblem& found : read.problems) {
      Problem problem{document->place_at(found.offset), std::move(found.pointer),
                      std::move(found.message)};
      if (found.first_offset != std::string::npos) {
        const int first = document->place_at(found.first_offset).line;
        problem.message += first == problem.place.line
                               ? " appears twice on this line; remove one"
                               : " appears twice, on lines " + std::to_string(first) + " and " +
                                     std::to_string(problem.place.line) + "; remove one";
      }
      problems.push_back(std::move(problem));
    }
    throw DocumentError(std::move(problems));
  }
  document->value_ = std::move(read.value);
  document->written_ = std::make_unique<WrittenNode>(std::move(read.written));
  return document;
}

std::shared_ptr<Document> Document::read(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    refuse_file(file, "no such file");
  if (status.type() == std::filesystem::file_type::directory) {
    refuse_file(file, "is a folder; expected a JSON document");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    refuse_file(file, "cannot be read: " + std::generic_category().message(errno));
  }
  // One byte more than allowed is enough to know; the size of a pipe is not known before.
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad())
    refuse_file(file, "cannot be read: " + std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxBytes) {
    refuse_file(file,
                "is larger than " + mebibytes(kMaxBytes) + ", the most that a document may have");
  }
  return parse(text, file);
}

std::shared_ptr<Document> Document::from_json(json value, const std::filesystem::path& folder) {
  std::shared_ptr<Document> document(new Document);
  document->value_ = std::move(value);
  document->folder_ = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
  return document;
}

namespace {

/// The next key of a path. Keys may have dots themselves, as those of a search's space do: where
/// the object has such a key, and not its first part alone, that is meant. `next` goes behind it.
std::string take_key(const json& object, const std::vector<std::string>& keys, std::size_t& next) {
  std::string key = keys[next++];
  if (!object.is_object() || object.contains(key))
    return key;
  std::string longer = key;
  for (std::size_t i = next; i < keys.size(); ++i) {
    longer += "." + keys[i];
    if (object.contains(longer)) {
      next = i + 1;
      return longer;
    }
  }
  return key;
}

}  // namespace

void Document::set(std::string_view path, std::string_view text) {
  const std::string whole = "--set " + plain_text(path) + "=" + plain_text(text);
  if (first_bad_utf8(path) || first_bad_utf8(text))
    throw UsageError(whole + ": is not UTF-8 text");
  const std::vector<std::string> keys = split_path(path);
  if (std::find(keys.begin(), keys.end(), "") != keys.end()) {
    throw UsageError(whole + ": expected a path such as optimizer.learning_rate, got " +
                     quote_text(path));
  }
  if (keys.size() > static_cast<std::size_t>(kMaxDepth)) {
    throw UsageError(whole + ": the path has more than " + std::to_string(kMaxDepth) + " parts");
  }

  // What cannot be set must leave the document as it was.
  json changed = value_;
  json* value = &changed;
  json* around = nullptr;
  std::string last;
  std::string pointer;
  std::string made;  // the first value on the way that did not exist
  for (std::size_t next = 0; next < keys.size();) {
    const std::string key = path.starts_with('/') ? keys[next++] : take_key(*value, keys, next);
    const std::size_t size_before = value->is_structured() ? value->size() : 0;
    json& part = part_to_set(*value, key, pointer, whole);
    const bool is_new = value->size() != size_before;
    around = value;
    last = key;
    value = &part;
    pointer = child_pointer(pointer, key);
    if (is_new && made.empty())
      made = pointer;
  }
  ReadText read = read_json_text(text, kMaxDepth - static_cast<int>(keys.size()));
  *value = read.problems.empty() ? std::move(read.value) : json(text);
  if (value->is_null() && made.empty() && around->is_object())
    around->erase(last);

  value_ = std::move(changed);
  if (made.empty())
    made = pointer;
  // Places of what stood below would be wrong now.
  const auto below = [&](const std::string& other) {
    return other == made || (other.starts_with(made) && other[made.size()] == '/');
  };
  std::erase_if(overrides_, [&](const auto& entry) { return below(entry.first); });
  overrides_[made] = whole;
}

Place Document::place_of(std::string_view pointer) const {
  // What set() wrote replaced everything below it, so it wins over any text there.
  for (std::string_view at = pointer;; at = parent_pointer(at)) {
    if (const auto found = overrides_.find(at); found != overrides_.end()) {
      return {found->second, 0, 0};
    }
    if (at.empty())
      break;
  }
  if (!written_)
    return {file_, 0, 0};
  const WrittenNode* nearest = written_.get();
  for (std::size_t start = 1; start <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', start), pointer.size());
    const WrittenNode* part = nearest->part(last_key(pointer.substr(start - 1, end - start + 1)));
    if (!part)
      break;
    nearest = part;
    start = end + 1;
  }
  return place_at(nearest->offset);
}

Place Document::place_at(std::size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t start = *(next - 1);
  Place place{file_, static_cast<int>(next - line_starts_.begin()), 1};
  for (std::size_t i = start; i < offset && i < text_.size(); ++i) {
    if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80)
      ++place.column;
  }
  return place;
}

}  // namespace treadle
