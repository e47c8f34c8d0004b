#include "schema_keywords.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace treadle {
namespace {

using nlohmann::json;

struct TypeName {
  std::string_view type;
  std::string_view phrase;
  bool (*matches)(const json&);
};

constexpr std::array kTypes{
    TypeName{"string", "text", [](const json& value) { return value.is_string(); }},
    TypeName{"number", "a number", [](const json& value) { return value.is_number(); }},
    TypeName{"integer", "a whole number",
             [](const json& value) { return value.is_number_integer(); }},
    TypeName{"boolean", "true or false", [](const json& value) { return value.is_boolean(); }},
    TypeName{"array", "an array", [](const json& value) { return value.is_array(); }},
    TypeName{"object", "an object", [](const json& value) { return value.is_object(); }},
    TypeName{"null", "null", [](const json& value) { return value.is_null(); }},
};

template <typename Kind>
const json* keyword_of_kind(const json& schema, std::string_view keyword, Kind kind) {
  const json* value = any_keyword(schema, keyword);
  return value && kind(*value) ? value : nullptr;
}

// `((a{90}){90}){90}` is a short text and a large automaton.
constexpr std::size_t kMostRepetitions = 1000;

/// The product of the largest counts in `{…}`, at most one more than kMostRepetitions.
std::size_t repetitions(std::string_view pattern) {
  std::size_t product = 1;
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    std::size_t largest = 1;
    const char* at = pattern.data() + open + 1;
    const char* const end = pattern.data() + pattern.size();
    while (at != end && (*at == ',' || (*at >= '0' && *at <= '9'))) {
      std::size_t count = 0;
      const auto read = std::from_chars(at, end, count);
      if (read.ec == std::errc::result_out_of_range)
        count = kMostRepetitions + 1;
      largest = std::max(largest, count);
      at = *at == ',' ? at + 1 : read.ptr;
    }
    product = std::min(product * std::min(largest, kMostRepetitions + 1), kMostRepetitions + 1);
  }
  return product;
}

template <typename A, typename B>
int compare(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return std::cmp_less(a, b) ? -1 : std::cmp_less(b, a) ? 1 : 0;
  } else {
    const double left = static_cast<double>(a);
    const double right = static_cast<double>(b);
    return left < right ? -1 : right < left ? 1 : 0;
  }
}

template <typename A>
int compare_with(A a, const json& b) {
  if (b.is_number_unsigned())
    return compare(a, b.get<std::uint64_t>());
  if (b.is_number_integer())
    return compare(a, b.get<std::int64_t>());
  return compare(a, b.get<double>());
}

}  // namespace

const json* any_keyword(const json& schema, std::string_view keyword) {
  if (!schema.is_object())
    return nullptr;
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

const json* object_keyword(const json& schema, std::string_view keyword) {
  return keyword_of_kind(schema, keyword, [](const json& value) { return value.is_object(); });
}

const json* array_keyword(const json& schema, std::string_view keyword) {
  return keyword_of_kind(schema, keyword, [](const json& value) { return value.is_array(); });
}

const json* number_keyword(const json& schema, std::string_view keyword) {
  return keyword_of_kind(schema, keyword, [](const json& value) { return value.is_number(); });
}

std::string_view text_keyword(const json& schema, std::string_view keyword) {
  const json* value =
      keyword_of_kind(schema, keyword, [](const json& text) { return text.is_string(); });
  return value ? std::string_view(value->get_ref<const std::string&>()) : std::string_view();
}

std::regex compile_pattern(const std::string& pattern) {
  if (pattern.size() > kLongestPattern || repetitions(pattern) > kMostRepetitions)
    throw std::regex_error(std::regex_constants::error_complexity);
  auto flags = std::regex::ECMAScript;
#if defined(__GLIBCXX__)
  // Without it `(a+)+$` tries every way to cut the text into pieces.
  flags |= std::regex_constants::__polynomial;
#endif
  return std::regex(pattern, flags);
}

std::string_view type_phrase(std::string_view type) {
  for (const TypeName& name : kTypes) {
    if (name.type == type)
      return name.phrase;
  }
  return {};
}

bool has_type(const json& value, std::string_view type) {
  for (const TypeName& name : kTypes) {
    if (name.type == type)
      return name.matches(value);
  }
  return false;
}

const json* default_use(const json& slot) {
  const json* use = any_keyword(slot, "x-treadle-use");
  if (!use)
    use = any_keyword(slot, "default");
  if (use && use->is_object())
    use = any_keyword(*use, "use");
  return use && use->is_string() ? use : nullptr;
}

bool is_closed(const json& schema) {
  const json* additional = any_keyword(schema, "additionalProperties");
  if (additional)
    return *additional == false;
  return object_keyword(schema, "properties") || text_keyword(schema, "type") == "object";
}

int compare_numbers(const json& a, const json& b) {
  if (a.is_number_unsigned())
    return compare_with(a.get<std::uint64_t>(), b);
  if (a.is_number_integer())
    return compare_with(a.get<std::int64_t>(), b);
  return compare_with(a.get<double>(), b);
}

}  // namespace treadle
