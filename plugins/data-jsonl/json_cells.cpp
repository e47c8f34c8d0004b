#include "json_cells.h"

#include <limits>
#include <utility>

#include <treadle/base/json_words.h>

namespace treadle::jsonl {

JsonCells::~JsonCells() = default;

std::string JsonCells::read(std::string_view line) {
  sentence_.clear();
  path_.clear();
  lengths_.clear();
  list_.clear();
  depth_ = 0;
  needs_comma_ = false;
  Json::sax_parse(line, this);
  return std::move(sentence_);
}

bool JsonCells::fail(std::string sentence) {
  sentence_ = std::move(sentence);
  return false;
}

bool JsonCells::expects_cell() {
  return !lengths_.empty() || fail("expected an object, as {\"size\": 1.5, \"kind\": \"a\"}");
}

bool JsonCells::add_to_list(std::string_view text) {
  if (depth_ == 0)
    return false;
  begin_in_list(text);
  needs_comma_ = true;
  return true;
}

void JsonCells::begin_in_list(std::string_view text) {
  if (needs_comma_)
    list_ += ',';
  list_ += text;
  needs_comma_ = false;
}

bool JsonCells::null() {
  return add_to_list("null") || (expects_cell() && do_null(path_));
}

bool JsonCells::boolean(bool value) {
  return add_to_list(value ? "true" : "false") ||
         (expects_cell() && do_integer(path_, value ? 1 : 0));
}

bool JsonCells::number_integer(Json::number_integer_t value) {
  if (depth_ > 0)
    return add_to_list(std::to_string(value));
  return expects_cell() && do_integer(path_, value);
}

bool JsonCells::number_unsigned(Json::number_unsigned_t value) {
  if (depth_ > 0)
    return add_to_list(std::to_string(value));
  if (!expects_cell())
    return false;
  if (value > static_cast<Json::number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
    return do_text(path_, std::to_string(value));
  return do_integer(path_, static_cast<std::int64_t>(value));
}

bool JsonCells::number_float(Json::number_float_t value, const std::string& text) {
  return add_to_list(text) || (expects_cell() && do_number(path_, value));
}

bool JsonCells::string(std::string& value) {
  if (depth_ > 0)
    return add_to_list(Json(value).dump());
  return expects_cell() && do_text(path_, value);
}

bool JsonCells::start_object(std::size_t) {
  if (depth_ > 0) {
    begin_in_list("{");
    ++depth_;
    return true;
  }
  if (!lengths_.empty())
    path_ += '.';
  lengths_.push_back(path_.size());
  return true;
}

bool JsonCells::key(std::string& name) {
  if (depth_ > 0) {
    begin_in_list(Json(name).dump() + ":");
    return true;
  }
  path_.resize(lengths_.back());
  path_ += name;
  return true;
}

bool JsonCells::end_object() {
  if (depth_ > 0)
    return end_in_list('}');
  lengths_.pop_back();
  return true;
}

bool JsonCells::start_array(std::size_t) {
  if (depth_ == 0 && !expects_cell())
    return false;
  begin_in_list("[");
  ++depth_;
  return true;
}

bool JsonCells::end_array() {
  return end_in_list(']');
}

bool JsonCells::end_in_list(char bracket) {
  list_ += bracket;
  needs_comma_ = true;
  if (--depth_ > 0)
    return true;
  const std::string list = std::exchange(list_, {});
  needs_comma_ = false;
  return do_text(path_, list);
}

// The library's sentence begins with a code and a place, "[json.exception.parse_error.101] parse
// error at line 1, column 5: syntax error while parsing …".
bool JsonCells::parse_error(std::size_t position, const std::string&,
                            const nlohmann::detail::exception& error) {
  std::string reason = error.what();
  for (const std::string_view end : {"] ", ": "}) {
    const std::size_t found = reason.find(end);
    if (found != std::string::npos && (end == "] " || reason.starts_with("parse error")))
      reason.erase(0, found + end.size());
  }
  // Its excerpt of the line may be no UTF-8, or have control characters.
  if (const std::size_t excerpt = reason.find("; last read: "); excerpt != std::string::npos) {
    const std::size_t expected = reason.rfind("; expected ");
    const bool has_expected = expected != std::string::npos && expected > excerpt;
    reason.erase(excerpt, has_expected ? expected - excerpt : std::string::npos);
  }
  return fail("is no JSON object: column " + std::to_string(position) + ": " + reason);
}

}  // namespace treadle::jsonl
