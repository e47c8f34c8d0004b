#include "jsonl_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

namespace treadle::jsonl {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kWriteSize = std::size_t{1} << 20;

/// Text with the quotes and escapes of JSON; bytes that are not UTF-8 become U+FFFD.
void append_text(std::string& line, std::string_view text) {
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F &&
           c != '"' && c != '\\';
  };
  for (const char c : text) {
    if (!is_plain(c)) {
      line += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
      return;
    }
  }
  line += '"';
  line += text;
  line += '"';
}

/// Adds the value of a row to its line.
struct ValueAppender {
  std::string& line;
  std::size_t row;

  void operator()(const std::vector<std::string>& values) const { append_text(line, values[row]); }
  template <typename Number>
  void operator()(const std::vector<Number>& values) const {
    const Number value = values[row];
    if constexpr (!std::is_integral_v<Number>) {
      if (!std::isfinite(value)) {
        line += "null";
        return;
      }
    }
    std::array<char, 32> text;
    line.append(text.data(), std::to_chars(text.begin(), text.end(), value).ptr);
  }
};

}  // namespace

void JsonlWriter::do_open(const std::vector<Column>& columns) {
  for (const Column& column : columns) {
    std::string& key = keys_.emplace_back(keys_.empty() ? "{" : ",");
    append_text(key, column.name);
    key += ':';
  }
  file_.emplace(path_);
}

void JsonlWriter::do_write(const std::vector<Values>& chunk, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < chunk.size(); ++column) {
      text_ += keys_[column];
      std::visit(ValueAppender{text_, row}, chunk[column]);
    }
    text_ += "}\n";
    if (text_.size() > kWriteSize) {
      file_->write(text_);
      text_.clear();
    }
  }
}

void JsonlWriter::do_close() {
  file_->write(text_);
  file_->commit();
  file_.reset();
}

}  // namespace treadle::jsonl
