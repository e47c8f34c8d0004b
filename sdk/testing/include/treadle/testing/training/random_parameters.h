#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/random.h>

namespace treadle::testing {

/// Draws parameters that a component's schema allows, at the edges of its ranges more often than
/// between them; and parameters that something is wrong with. The same seed draws the same.
///
/// Knows the keywords of treadle/base/schema.h but `pattern`: such text comes from the schema's
/// examples or default. Paths lie in `folder`.
class RandomParameters {
 public:
  RandomParameters(std::uint64_t seed, std::filesystem::path folder)
      : bits_(seed), folder_(std::move(folder)) {}

  /// `fixed` are the parameters that the case gives: they are in each of the drawn.
  nlohmann::json allowed(const nlohmann::json& schema, const nlohmann::json& fixed = {}) {
    nlohmann::json drawn = object(schema);
    if (fixed.is_object())
      drawn.update(fixed);
    return drawn;
  }

  /// As allowed(), with one to three mistakes.
  nlohmann::json wrong(const nlohmann::json& schema, const nlohmann::json& fixed = {}) {
    nlohmann::json drawn = allowed(schema, fixed);
    for (std::uint64_t mistakes = 1 + bits_.below(3); mistakes > 0; --mistakes)
      spoil(drawn, schema);
    return drawn;
  }

 private:
  using Json = nlohmann::json;

  bool one_in(std::uint64_t count) { return bits_.below(count) == 0; }

  template <typename List>
  auto one_of(const List& list) {
    return *(std::begin(list) +
             static_cast<std::ptrdiff_t>(bits_.below(static_cast<std::uint64_t>(std::size(list)))));
  }

  Json value(const Json& schema) {
    if (!schema.is_object())
      return anything();
    if (const auto only = schema.find("const"); only != schema.end())
      return *only;
    // A slot: which components there are, only a host knows.
    if (schema.contains("x-treadle-component"))
      return schema.value("default", Json{{"use", "unheard_of"}});
    if (const auto choices = schema.find("enum"); choices != schema.end())
      return one_of(*choices);
    for (const char* keyword : {"oneOf", "anyOf"}) {
      if (const auto branches = schema.find(keyword); branches != schema.end())
        return value(one_of(*branches));
    }
    if (const auto shared = schema.find("x-treadle-type"); shared != schema.end())
      return shared_value(*shared);
    if (schema.contains("pattern"))
      return known_text(schema);
    const Json types = schema.value("type", Json("object"));
    const std::string type = types.is_array() ? one_of(types) : types;
    if (type == "boolean")
      return one_in(2);
    if (type == "integer")
      return integer(schema);
    if (type == "number")
      return number(schema);
    if (type == "string")
      return text(schema);
    if (type == "array")
      return array(schema);
    return type == "null" ? Json(nullptr) : object(schema);
  }

  Json shared_value(const std::string& type) {
    if (type == "path")
      return (folder_ / one_of(std::vector<std::string>{"a", "b.txt", "none/c", "d e", "é.csv"}))
          .string();
    if (type == "fraction")
      return one_of(Json{1e-9, 0.2, 0.5, 0.999999, "1%", "20%", "99.9%"});
    Json durations = {"0%", "5%", "100%", "0ep", "1ep", "1000ep", "0st", "1st", "123456789st"};
    if (type == "duration")
      durations.insert(durations.end(), {"0s", "30s", "2h"});
    return one_of(durations);
  }

  Json known_text(const Json& schema) {
    if (const auto examples = schema.find("examples"); examples != schema.end())
      return one_of(*examples);
    return schema.value("default", Json(""));
  }

  Json integer(const Json& schema) {
    constexpr double kFar = 1e9;
    const double low = std::ceil(lower(schema, 1, -kFar));
    const double high = std::max(low, std::floor(upper(schema, 1, std::max(kFar, low))));
    const double near = std::min(high, low + 10);
    const double drawn = one_in(4)   ? low
                         : one_in(4) ? high
                         : one_in(2) ? low + std::floor(bits_.uniform() * (near - low + 1))
                                     : low + std::floor(bits_.uniform() * (high - low));
    return static_cast<std::int64_t>(drawn);
  }

  Json number(const Json& schema) {
    const double low = lower(schema, 0, -1e300);
    const double high = upper(schema, 0, 1e300);
    const double around = std::clamp(0.0, low, high);
    const double drawn = one_in(5)   ? low
                         : one_in(5) ? high
                         : one_in(5) ? around
                         : one_in(2)
                             ? around + (std::min(high, around + 1) - around) * bits_.uniform()
                             : low + (high / 2 - low / 2) * bits_.uniform();
    const double inside = std::clamp(drawn, low, high);
    return inside == std::floor(inside) && std::abs(inside) < 1e15 && one_in(2)
               ? Json(static_cast<std::int64_t>(inside))
               : Json(inside);
  }

  /// The smallest that is allowed; `step` is what lies between two neighbours, 0 for the next
  /// double.
  static double lower(const Json& schema, double step, double otherwise) {
    double least = schema.value("minimum", otherwise);
    if (const auto bound = schema.find("exclusiveMinimum"); bound != schema.end())
      least = std::max(least, next(bound->get<double>(), step, 1));
    return least;
  }
  static double upper(const Json& schema, double step, double otherwise) {
    double most = schema.value("maximum", otherwise);
    if (const auto bound = schema.find("exclusiveMaximum"); bound != schema.end())
      most = std::min(most, next(bound->get<double>(), step, -1));
    return most;
  }
  static double next(double number, double step, int direction) {
    return step > 0 ? number + direction * step
                    : std::nextafter(number, direction * std::numeric_limits<double>::infinity());
  }

  Json text(const Json& schema) {
    static const std::vector<std::string> kLetters = {"a",  "Z", "0",  " ", "_", "\"", "\\", "\n",
                                                      "\t", "é", "鳶", ",", ";", "%",  "/"};
    const std::uint64_t least = schema.value("minLength", std::uint64_t{0});
    const std::uint64_t most = schema.value("maxLength", least + (one_in(20) ? 1000 : 8));
    std::string drawn;
    for (std::uint64_t left = least + bits_.below(most - least + 1); left > 0; --left)
      drawn += one_of(kLetters);
    return drawn;
  }

  Json array(const Json& schema) {
    const std::uint64_t least = schema.value("minItems", std::uint64_t{0});
    const std::uint64_t most =
        std::min(schema.value("maxItems", least + 6), least + (one_in(20) ? 200 : 6));
    const bool unique = schema.value("uniqueItems", false);
    Json drawn = Json::array();
    for (std::uint64_t left = least + bits_.below(most - least + 1); left > 0; --left) {
      Json item = value(schema.value("items", Json::object()));
      if (!unique || std::find(drawn.begin(), drawn.end(), item) == drawn.end())
        drawn.push_back(std::move(item));
    }
    return drawn;
  }

  Json object(const Json& schema) {
    Json drawn = Json::object();
    const Json required = schema.value("required", Json::array());
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, property] : properties.items()) {
      if (std::find(required.begin(), required.end(), key) != required.end() || one_in(2))
        drawn[key] = value(property);
    }
    const auto more = schema.find("additionalProperties");
    if (more != schema.end() && *more != false) {
      for (std::uint64_t left = bits_.below(3); left > 0; --left)
        drawn["key-" + std::to_string(left)] = value(*more);
    }
    return drawn;
  }

  /// One mistake, in one of the parameters or in what is inside of it.
  void spoil(Json& drawn, const Json& schema) {
    const Json properties = schema.value("properties", Json::object());
    if (!drawn.is_object() || drawn.empty() || properties.empty() || one_in(6)) {
      if (!drawn.is_object())
        drawn = Json::object();
      drawn[one_of(std::vector<std::string>{"unheard_of", "", "use", "Ünknown", "a/b~c"})] =
          anything();
      return;
    }
    const auto parameter = std::next(
        properties.items().begin(),
        static_cast<std::ptrdiff_t>(bits_.below(static_cast<std::uint64_t>(properties.size()))));
    Json& spoilt = drawn[parameter.key()];
    if (spoilt.is_object() && parameter.value().contains("properties") && one_in(2)) {
      spoil(spoilt, parameter.value());
    } else if (spoilt.is_array() && !spoilt.empty() && one_in(2)) {
      spoilt[bits_.below(spoilt.size())] =
          outside(parameter.value().value("items", Json::object()));
    } else if (one_in(8)) {
      drawn.erase(parameter.key());
    } else {
      spoilt = outside(parameter.value());
    }
  }

  /// Just outside of a range, or of another kind.
  Json outside(const Json& schema) {
    if (!schema.is_object() || one_in(3))
      return anything();
    for (const auto& [keyword, direction] : {std::pair("minimum", -1), std::pair("maximum", 1)}) {
      if (schema.contains(keyword) && one_in(2)) {
        const double bound = schema[keyword];
        return schema.value("type", Json()) == "integer"
                   ? Json(static_cast<std::int64_t>(bound) + direction)
                   : Json(next(bound, 0, direction));
      }
    }
    for (const char* keyword : {"exclusiveMinimum", "exclusiveMaximum"}) {
      if (schema.contains(keyword) && one_in(2))
        return schema[keyword];
    }
    if (schema.contains("minLength") && one_in(2))
      return "";
    if (schema.contains("minItems") && one_in(2))
      return Json::array();
    if (schema.contains("maxItems") && schema["maxItems"] < 100 && one_in(2))
      return Json(schema["maxItems"].get<std::size_t>() + 1,
                  value(schema.value("items", Json::object())));
    return anything();
  }

  /// A value of any kind, with those that code which reads parameters is seldom tried with.
  Json anything() {
    static const Json kValues = Json::parse(R"([
        null, true, false, 0, -0.0, -1, 1, 0.5, 1e308, -1e308, 5e-324, 9223372036854775807,
        -9223372036854775808, 18446744073709551615, "", "a", "1", "-1st", "1e400ep", "é鳶\n\"\\",
        "\u0000", [], [1], [null, "a", []], {}, {"use": "adam"}, {"a": {"b": 1}}])");
    if (one_in(28))
      return std::string(5000, 'x');
    return one_of(kValues);
  }

  RandomBits bits_;
  std::filesystem::path folder_;
};

}  // namespace treadle::testing
