#include <treadle/base/config.h>

#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <treadle/base/json_words.h>

namespace treadle {
namespace {

using Json = nlohmann::json;  // Config::json() hides the shorter name

// What get() has to say about a value it cannot convert; get() adds where.
struct Mismatch {
  std::string message;
};

[[noreturn]] void expected(std::string_view what, const Json& got) {
  throw Mismatch{"expected " + std::string(what) + ", got " + describe_value(got)};
}

template <typename T>
struct Convert;

template <>
struct Convert<bool> {
  static bool from(const Json& value) {
    if (!value.is_boolean())
      expected("true or false", value);
    return value.get<bool>();
  }
};

template <typename Integer>
Integer integer_from(const Json& value) {
  using Limits = std::numeric_limits<Integer>;
  if (!value.is_number_integer())
    expected("a whole number", value);
  const bool fits = value.is_number_unsigned() ? std::in_range<Integer>(value.get<std::uint64_t>())
                                               : std::in_range<Integer>(value.get<std::int64_t>());
  if (!fits) {
    expected("a whole number from " + std::to_string(Limits::min()) + " to " +
                 std::to_string(Limits::max()),
             value);
  }
  return value.get<Integer>();
}

template <>
struct Convert<int> {
  static int from(const Json& value) { return integer_from<int>(value); }
};

template <>
struct Convert<std::int64_t> {
  static std::int64_t from(const Json& value) { return integer_from<std::int64_t>(value); }
};

template <>
struct Convert<std::uint64_t> {
  static std::uint64_t from(const Json& value) { return integer_from<std::uint64_t>(value); }
};

template <>
struct Convert<double> {
  static double from(const Json& value) {
    if (!value.is_number())
      expected("a number", value);
    return value.get<double>();
  }
};

template <>
struct Convert<std::string> {
  static std::string from(const Json& value) {
    if (!value.is_string())
      expected("text", value);
    return value.get<std::string>();
  }
};

template <>
struct Convert<Duration> {
  static Duration from(const Json& value) {
    if (!value.is_string())
      expected("a duration such as \"5%\", \"10ep\" or \"2h\"", value);
    try {
      return Duration::parse(value.get_ref<const std::string&>());
    } catch (const std::invalid_argument& refused) {
      throw Mismatch{refused.what()};
    }
  }
};

template <typename Element>
struct Convert<std::vector<Element>> {
  static std::vector<Element> from(const Json& value) {
    if (!value.is_array())
      expected("an array", value);
    std::vector<Element> elements;
    elements.reserve(value.size());
    for (const Json& element : value) {
      try {
        elements.push_back(Convert<Element>::from(element));
      } catch (const Mismatch& mismatch) {
        throw Mismatch{"element " + std::to_string(elements.size()) + ": " + mismatch.message};
      }
    }
    return elements;
  }
};

}  // namespace

PlaceIndex::~PlaceIndex() = default;

Config::Config(Json parameters, std::string pointer, std::shared_ptr<const PlaceIndex> places)
    : Config(std::make_shared<const Json>(std::move(parameters)), std::move(pointer),
             std::move(places)) {}

Config::Config(std::shared_ptr<const Json> parameters, std::string pointer,
               std::shared_ptr<const PlaceIndex> places)
    : json_(std::move(parameters)), pointer_(std::move(pointer)), places_(std::move(places)) {
  TREADLE_EXPECTS(json_->is_object(),
                  "the parameters at \"" + pointer_ + "\" are " + describe_value(*json_));
}

bool Config::has(std::string_view key) const {
  const auto found = json_->find(key);
  return found != json_->end() && !found->is_null();
}

const Json& Config::at(std::string_view key) const {
  const auto found = json_->find(key);
  if (found == json_->end())
    fail("", "required key " + quote_text(key) + " is missing");
  return *found;
}

template <typename T>
T Config::get(std::string_view key) const {
  const Json& value = at(key);
  try {
    return Convert<T>::from(value);
  } catch (const Mismatch& mismatch) {
    fail(key, mismatch.message);
  }
}

Config Config::child(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_object())
    fail(key, "expected an object, got " + describe_value(value));
  return Config(std::shared_ptr<const Json>(json_, &value), child_pointer(pointer_, key), places_);
}

std::vector<Config> Config::children(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_array())
    fail(key, "expected an array, got " + describe_value(value));
  std::vector<Config> elements;
  elements.reserve(value.size());
  const std::string array = child_pointer(pointer_, key);
  for (const Json& element : value) {
    std::string pointer = child_pointer(array, elements.size());
    if (!element.is_object()) {
      fail(key, "element " + std::to_string(elements.size()) + ": expected an object, got " +
                    describe_value(element));
    }
    elements.push_back(
        Config(std::shared_ptr<const Json>(json_, &element), std::move(pointer), places_));
  }
  return elements;
}

void Config::fail(std::string_view key, std::string message) const {
  Problem problem;
  problem.pointer = key.empty() ? pointer_ : child_pointer(pointer_, key);
  if (places_)
    problem.place = places_->place_of(problem.pointer);
  problem.message = std::move(message);
  throw DocumentError({std::move(problem)});
}

template bool Config::get<bool>(std::string_view) const;
template int Config::get<int>(std::string_view) const;
template std::int64_t Config::get<std::int64_t>(std::string_view) const;
template std::uint64_t Config::get<std::uint64_t>(std::string_view) const;
template double Config::get<double>(std::string_view) const;
template std::string Config::get<std::string>(std::string_view) const;
template Duration Config::get<Duration>(std::string_view) const;
template std::vector<std::int64_t> Config::get<std::vector<std::int64_t>>(std::string_view) const;
template std::vector<double> Config::get<std::vector<double>>(std::string_view) const;
template std::vector<std::string> Config::get<std::vector<std::string>>(std::string_view) const;

}  // namespace treadle
