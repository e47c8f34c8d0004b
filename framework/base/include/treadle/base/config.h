#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/duration.h>
#include <treadle/base/problem.h>

namespace treadle {

/// Finds where a value was written. Implemented by Document; a Config keeps it alive.
class PlaceIndex {
 public:
  virtual ~PlaceIndex();
  /// The place of the value at `pointer`, or of its nearest ancestor that was written.
  virtual Place place_of(std::string_view pointer) const = 0;
};

/// The parameters of one component, checked against its schema, with defaults filled in and
/// paths made absolute. A read-only view that is cheap to copy and safe to read from any thread.
///
/// A component reads its parameters once, in its constructor. Because the schema has already been
/// enforced, get() may rely on presence and type; conditions that a schema cannot express (this
/// list must be as long as that one) are reported with fail().
class Config {
 public:
  /// Expects `parameters` to be an object. `pointer` is where it stands in the document.
  explicit Config(nlohmann::json parameters = nlohmann::json::object(), std::string pointer = "",
                  std::shared_ptr<const PlaceIndex> places = nullptr);

  /// Whether there is a value other than null under `key`.
  bool has(std::string_view key) const;

  /// The value, converted to T: bool, an integer, double, std::string, a vector of these, or
  /// Duration. Throws DocumentError naming the place when it is absent or of another type. A double
  /// may be written as 5, an integer never as 5.0.
  template <typename T>
  T get(std::string_view key) const;

  /// As get(), or nothing when the key is absent or null.
  template <typename T>
  std::optional<T> find(std::string_view key) const {
    if (!has(key))
      return std::nullopt;
    return get<T>(key);
  }

  template <typename T>
  T get_or(std::string_view key, T fallback) const {
    return has(key) ? get<T>(key) : std::move(fallback);
  }

  /// The object under `key`; expects it to be there.
  Config child(std::string_view key) const;
  /// The elements of the array of objects under `key`.
  std::vector<Config> children(std::string_view key) const;

  const nlohmann::json& json() const noexcept { return *json_; }
  const std::string& pointer() const noexcept { return pointer_; }
  /// Where the values were written; null for a configuration built in code.
  const std::shared_ptr<const PlaceIndex>& places() const noexcept { return places_; }

  /// Throws a DocumentError for the value under `key` ("" for the whole object).
  [[noreturn]] void fail(std::string_view key, std::string message) const;

 private:
  Config(std::shared_ptr<const nlohmann::json> parameters, std::string pointer,
         std::shared_ptr<const PlaceIndex> places);

  const nlohmann::json& at(std::string_view key) const;

  std::shared_ptr<const nlohmann::json> json_;
  std::string pointer_;
  std::shared_ptr<const PlaceIndex> places_;
};

extern template bool Config::get<bool>(std::string_view) const;
extern template int Config::get<int>(std::string_view) const;
extern template std::int64_t Config::get<std::int64_t>(std::string_view) const;
extern template std::uint64_t Config::get<std::uint64_t>(std::string_view) const;
extern template double Config::get<double>(std::string_view) const;
extern template std::string Config::get<std::string>(std::string_view) const;
extern template Duration Config::get<Duration>(std::string_view) const;
extern template std::vector<std::int64_t> Config::get<std::vector<std::int64_t>>(
    std::string_view) const;
extern template std::vector<double> Config::get<std::vector<double>>(std::string_view) const;
extern template std::vector<std::string> Config::get<std::vector<std::string>>(
    std::string_view) const;

}  // namespace treadle
