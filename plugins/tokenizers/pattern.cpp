#define PCRE2_CODE_UNIT_WIDTH 8
#include "pattern.h"

#include <array>
#include <new>

#include <pcre2.h>

#include <treadle/base/error.h>

namespace treadle::tokenizers {
namespace {

[[noreturn]] void fail(int error, const char* doing) {
  std::array<PCRE2_UCHAR, 256> words{};
  pcre2_get_error_message(error, words.data(), words.size());
  throw DataError(std::string("the text could not be ") + doing + ": PCRE2 reports \"" +
                  reinterpret_cast<const char*>(words.data()) + "\"");
}

PCRE2_SPTR units(std::string_view text) {
  // PCRE2 of Debian 12 takes no null pointer, also where the length is 0.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

pcre2_code* compiled(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(units(expression), expression.size(),
                                         PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  if (code == nullptr)
    fail(error, "split");
  return code;
}

}  // namespace

struct Pattern::Code {
  explicit Code(const std::string& expression) : code(compiled(expression)) {
    // Without a just-in-time compiler pcre2_match() interprets: the same result, slower.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

struct Pattern::Matching::Parts {
  const pcre2_code* code;
  std::string_view text;
  pcre2_match_data* data;
  std::size_t at = 0;
};

Pattern::Pattern(const std::string& expression) : code_(std::make_unique<Code>(expression)) {}
Pattern::~Pattern() = default;

Pattern::Matching::Matching(const Pattern& pattern, std::string_view text)
    : parts_(new Parts{pattern.code_->code, text,
                       pcre2_match_data_create_from_pattern(pattern.code_->code, nullptr)}) {
  if (parts_->data == nullptr)
    throw std::bad_alloc();
}

Pattern::Matching::~Matching() {
  pcre2_match_data_free(parts_->data);
}

bool Pattern::Matching::next(std::string_view& match) const {
  const int found = pcre2_match(parts_->code, units(parts_->text), parts_->text.size(), parts_->at,
                                PCRE2_NO_UTF_CHECK, parts_->data, nullptr);
  if (found == PCRE2_ERROR_NOMATCH)
    return false;
  if (found < 0)
    fail(found, "split");
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(parts_->data);
  match = parts_->text.substr(ends[0], ends[1] - ends[0]);
  parts_->at = ends[1];
  return true;
}

std::string in_lower_case(std::string_view text) {
  static constexpr std::string_view kReplacement = "\\L$0";
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(compiled("(?s).+"),
                                                                     &pcre2_code_free);
  constexpr std::uint32_t kOptions =
      PCRE2_NO_UTF_CHECK | PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH;
  // A letter's other case may have a byte more: then a second call has the room.
  std::string lower(text.size() + 1, '\0');
  for (;;) {
    PCRE2_SIZE length = lower.size();
    const int done = pcre2_substitute(code.get(), units(text), text.size(), 0, kOptions, nullptr,
                                      nullptr, units(kReplacement), kReplacement.size(),
                                      reinterpret_cast<PCRE2_UCHAR*>(lower.data()), &length);
    if (done == PCRE2_ERROR_NOMEMORY && length > lower.size()) {
      lower.resize(length);
      continue;
    }
    if (done < 0)
      fail(done, "put in lower case");
    lower.resize(length);
    return lower;
  }
}

}  // namespace treadle::tokenizers
