#include "document_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

namespace treadle {
namespace {

using nlohmann::json;

// One is a mistake, a hundred is another kind of file.
constexpr std::size_t kMostTextProblems = 100;

bool is_delimiter(char c) {
  return std::string_view(" \t\r\n,:[]{}\"/").find(c) != std::string_view::npos;
}

// Follows the parser through the text: finds where the tokens it reports begin. It may be naive,
// because the parser has already accepted what it steps over.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  // Where the next token begins; the length of the text when there is none.
  std::size_t peek() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '/') {
        const std::size_t end = comment_end();
        if (end == std::string_view::npos)
          return at_;
        at_ = end - 1;
      } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        return at_;
      }
    }
    return at_;
  }

  std::size_t next() {
    const std::size_t start = peek();
    at_ = accepted_end(start);
    return start;
  }

  // As next(), past the commas and colons before it.
  std::size_t next_value() {
    std::size_t start = next();
    while (start < text_.size() && (text_[start] == ',' || text_[start] == ':'))
      start = next();
    return start;
  }

  // One past the word at `start`, as a person would see it.
  std::size_t end_of(std::size_t start) const {
    if (start >= text_.size())
      return text_.size();
    std::size_t end = start + 1;
    if (text_[start] == '"') {
      for (; end < text_.size() && text_[end] != '"'; ++end) {
        if (text_[end] == '\\')
          ++end;
      }
      return std::min(end + 1, text_.size());
    }
    if (is_delimiter(text_[start]))
      return end;
    while (end < text_.size() && !is_delimiter(text_[end]))
      ++end;
    return end;
  }

 private:
  // One past the comment that begins at at_; npos when it is none or never ends.
  std::size_t comment_end() const {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//"))
      return std::min(text_.find_first_of("\r\n", at_), text_.size());
    if (!rest.starts_with("/*"))
      return std::string_view::npos;
    const std::size_t close = text_.find("*/", at_ + 2);
    return close == std::string_view::npos ? close : close + 2;
  }

  // One past the token at `start`, as the parser sees it: in `nullx`, and in `01`, it accepts the
  // beginning before it stops at the rest.
  std::size_t accepted_end(std::size_t start) const {
    const std::string_view rest = text_.substr(start);
    for (const std::string_view literal : {"null", "true", "false"}) {
      if (rest.starts_with(literal))
        return start + literal.size();
    }
    if (rest.empty() || std::string_view("-0123456789").find(rest[0]) == std::string_view::npos) {
      return end_of(start);
    }
    std::size_t end = start + (rest[0] == '-' ? 1 : 0);
    const auto is_at = [&](std::string_view characters) {
      return end < text_.size() && characters.find(text_[end]) != std::string_view::npos;
    };
    const auto skip_digits = [&] {
      while (is_at("0123456789"))
        ++end;
    };
    if (is_at("0")) {
      ++end;
    } else {
      skip_digits();
    }
    if (is_at(".")) {
      ++end;
      skip_digits();
    }
    if (is_at("eE")) {
      ++end;
      if (is_at("+-"))
        ++end;
      skip_digits();
    }
    return std::max(end, start + 1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Reader final : public nlohmann::json_sax<json> {
 public:
  Reader(std::string_view text, int max_depth, ReadText& result)
      : text_(text), tokens_(text), max_depth_(max_depth), result_(result) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(std::int64_t value) override { return scalar(value); }
  bool number_unsigned(std::uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& value) override { return scalar(std::move(value)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const std::size_t offset = tokens_.next_value();
    auto& members = stack_.back().written->own_parts().members;
    const auto [place, is_new] = members.try_emplace(name);
    if (is_new) {
      place->second.offset = offset;
    } else {
      result_.problems.push_back(
          {offset, pointer_to(name), "key " + quote_text(name), place->second.offset});
      place->second = WrittenNode{offset, nullptr};
    }
    key_ = name;
    last_ = Last::kKey;
    return result_.problems.size() < kMostTextProblems;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    explain(error.what());
    return false;
  }

 private:
  enum class Last { kNothing, kOpened, kKey, kValue };

  struct Level {
    json* value;
    WrittenNode* written;
    std::string name;
  };

  bool scalar(json value) {
    add(std::move(value), tokens_.next_value());
    last_ = Last::kValue;
    return true;
  }

  bool open(json value) {
    const std::size_t offset = tokens_.next_value();
    if (stack_.size() >= static_cast<std::size_t>(max_depth_)) {
      result_.problems.push_back(
          {offset, "", "is nested more than " + std::to_string(max_depth_) + " levels deep"});
      return false;
    }
    stack_.push_back(add(std::move(value), offset));
    last_ = Last::kOpened;
    return true;
  }

  bool close() {
    tokens_.next_value();
    stack_.pop_back();
    last_ = Last::kValue;
    return true;
  }

  // Containers do not move while they are on the stack: only the innermost one grows.
  Level add(json value, std::size_t offset) {
    if (stack_.empty()) {
      result_.value = std::move(value);
      result_.written.offset = offset;
      return {&result_.value, &result_.written, ""};
    }
    Level& parent = stack_.back();
    if (parent.value->is_object()) {
      json& member = (*parent.value)[key_];
      member = std::move(value);
      return {&member, &parent.written->own_parts().members.find(key_)->second, key_};
    }
    parent.value->push_back(std::move(value));
    auto& elements = parent.written->own_parts().elements;
    elements.push_back(WrittenNode{offset, nullptr});
    return {&parent.value->back(), &elements.back(), std::to_string(elements.size() - 1)};
  }

  std::string pointer_to(std::string_view name) const {
    std::string pointer;
    for (std::size_t i = 1; i < stack_.size(); ++i)
      pointer = child_pointer(pointer, stack_[i].name);
    return child_pointer(pointer, name);
  }

  void refuse(std::size_t offset, std::string message) {
    result_.problems.push_back({offset, "", std::move(message)});
  }

  // What stands at `offset`, as it may stand after "got".
  std::string found(std::size_t offset) const {
    if (offset >= text_.size())
      return "the end of the document";
    return quote_value(text_.substr(offset, tokens_.end_of(offset) - offset));
  }

  // `library_text` is the parser's own message; it is used for the inside of strings only.
  void explain(std::string_view library_text) {
    const bool in_object = !stack_.empty() && stack_.back().value->is_object();
    std::size_t offset = tokens_.next();
    const char token = offset < text_.size() ? text_[offset] : '\0';
    if (token == '/')
      return explain_comment(offset);
    switch (last_) {
      case Last::kNothing:
        if (offset >= text_.size())
          return refuse(0, "the document is empty");
        return explain_value(offset, "a value", library_text);
      case Last::kOpened:
        if (in_object)
          return explain_key(offset, "a key in double quotes or \"}\"", library_text);
        return explain_value(offset, "a value or \"]\"", library_text);
      case Last::kKey:
        if (token != ':') {
          return refuse(offset,
                        "expected \":\" after key " + quote_text(key_) + ", got " + found(offset));
        }
        return explain_value(tokens_.next(), "a value for key " + quote_text(key_), library_text);
      case Last::kValue:
        break;
    }
    if (stack_.empty()) {
      return refuse(offset, "expected the end of the document, got " + found(offset));
    }
    const std::string_view close = in_object ? "}" : "]";
    if (token != ',') {
      return refuse(offset,
                    "expected \",\" or \"" + std::string(close) + "\", got " + found(offset));
    }
    const std::size_t comma = offset;
    offset = tokens_.next();
    if (text_.substr(offset).starts_with(close)) {
      return refuse(comma, "the last comma before \"" + std::string(close) + "\" must go");
    }
    if (in_object)
      return explain_key(offset, "a key in double quotes", library_text);
    explain_value(offset, "a value", library_text);
  }

  void explain_comment(std::size_t offset) {
    refuse(offset, text_.substr(offset).starts_with("/*") ? "this comment is never closed"
                                                          : "expected a comment after \"/\"");
  }

  void explain_key(std::size_t offset, std::string_view expected, std::string_view library_text) {
    const char token = offset < text_.size() ? text_[offset] : '\0';
    if (token == '/')
      return explain_comment(offset);
    if (token == '"')
      return explain_string(offset, library_text);
    refuse(offset, "expected " + std::string(expected) + ", got " + found(offset));
  }

  void explain_value(std::size_t offset, std::string expected, std::string_view library_text) {
    const char token = offset < text_.size() ? text_[offset] : '\0';
    if (token == '/')
      return explain_comment(offset);
    if (token == '"')
      return explain_string(offset, library_text);
    const std::string_view word = text_.substr(offset, tokens_.end_of(offset) - offset);
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc::result_out_of_range && end == word.data() + word.size()) {
      return refuse(offset, "number " + quote_value(word) + " does not fit a 64-bit float");
    }
    if (offset < text_.size() && !is_delimiter(token))
      expected += advice_for(word);
    else
      expected += ", got " + found(offset);
    refuse(offset, "expected " + expected);
  }

  static std::string advice_for(std::string_view word) {
    struct Advice {
      std::string_view first_characters;
      std::string_view text;
    };
    constexpr std::array kAdvice{
        Advice{"'", "; text needs double quotes"},
        Advice{"+-.0123456789", "; numbers are written like 5, -0.5 or 1e-3"},
    };
    const std::string got = ", got " + quote_value(word);
    for (const Advice& advice : kAdvice) {
      if (advice.first_characters.find(word.front()) != std::string_view::npos) {
        return got + std::string(advice.text);
      }
    }
    std::string lower(word);
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z')
        c = static_cast<char>(c - 'A' + 'a');
    }
    if (lower == "true" || lower == "false" || lower == "null")
      return got + "; write " + lower;
    return got + "; text needs double quotes";
  }

  void explain_string(std::size_t offset, std::string_view library_text) {
    for (std::size_t at = offset + 1;; ++at) {
      if (at >= text_.size() || text_[at] == '\n') {
        return refuse(offset, "this text has no closing quote on its line");
      }
      if (text_[at] == '"')
        break;
      if (text_[at] == '\\')
        ++at;
    }
    constexpr std::string_view kStart = "invalid string: ";
    std::size_t start = library_text.find(kStart);
    if (start == std::string_view::npos)
      return refuse(offset, "this text cannot stand here");
    start += kStart.size();
    const std::size_t end = library_text.find("; last read", start);
    refuse(offset, "broken text: " + std::string(library_text.substr(start, end - start)));
  }

  std::string_view text_;
  Tokens tokens_;
  int max_depth_;
  ReadText& result_;
  std::vector<Level> stack_;
  std::string key_;
  Last last_ = Last::kNothing;
};

}  // namespace

WrittenNode::Parts& WrittenNode::own_parts() {
  if (!parts)
    parts = std::make_unique<Parts>();
  return *parts;
}

const WrittenNode* WrittenNode::part(std::string_view key_or_index) const {
  if (!parts)
    return nullptr;
  if (const auto found = parts->members.find(key_or_index); found != parts->members.end()) {
    return &found->second;
  }
  std::size_t index = 0;
  const char* const end = key_or_index.data() + key_or_index.size();
  const auto read = std::from_chars(key_or_index.data(), end, index);
  if (read.ec != std::errc() || read.ptr != end || index >= parts->elements.size())
    return nullptr;
  return &parts->elements[index];
}

ReadText read_json_text(std::string_view text, int max_depth) {
  ReadText result;
  if (const auto bad = first_bad_utf8(text)) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(text[*bad]);
    std::string message = "is not UTF-8 text (byte 0x";
    message += kDigits[byte >> 4];
    message += kDigits[byte & 15];
    result.problems.push_back({*bad, "", message + "); save the file as UTF-8"});
    return result;
  }
  // The parser takes one for the end of the text, or of a comment, and what follows for nothing.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    result.problems.push_back({nul, "", "there is a NUL byte; this is not a text file"});
    return result;
  }
  // The parser steps over one, and Tokens would take it for a value.
  if (text.starts_with(kByteOrderMark)) {
    result.problems.push_back({0, "", "there are two byte order marks; remove one"});
    return result;
  }
  Reader reader(text, max_depth, result);
  json::sax_parse(text.begin(), text.end(), &reader, json::input_format_t::json,
                  /*strict=*/true, /*ignore_comments=*/true);
  return result;
}

}  // namespace treadle
