#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/number.h>

/// How a type is written to a JSON object and read from one, by one description for both: a
/// function describe(f, value) that names each member with its key. FieldWriter and FieldReader are
/// the two kinds of `f`.
namespace treadle::fields {

/// A value that describe() is given: const where it is written.
template <typename F, typename T>
using Of = typename F::template Value<T>;

/// Adds members to an object.
class FieldWriter {
 public:
  template <typename T>
  using Value = const T&;
  static constexpr bool kWrites = true;

  explicit FieldWriter(nlohmann::json& object) : object_(object) {}

  template <typename T>
  void operator()(const char* key, const T& value) {
    object_[key] = json_of(value);
  }
  /// Without the key where the value is as in a new object: empty, 0, false.
  template <typename T>
  void unless_default(const char* key, const T& value) {
    if (value != T())
      (*this)(key, value);
  }
  template <typename T>
  void if_any(const char* key, const std::optional<T>& value) {
    if (value)
      (*this)(key, *value);
  }
  template <typename T>
  void if_any(const char* key, const std::vector<T>& values) {
    if (!values.empty())
      (*this)(key, values);
  }
  void if_any(const char* key, const nlohmann::json& value) {
    if (!value.is_null())
      (*this)(key, value);
  }
  /// null of an empty text, or of nothing.
  void or_null(const char* key, const std::string& text) {
    object_[key] = text.empty() ? nlohmann::json() : nlohmann::json(text);
  }
  template <typename T>
  void or_null(const char* key, const std::optional<T>& value) {
    object_[key] = value ? json_of(*value) : nlohmann::json();
  }
  /// One of two words.
  void either(const char* key, bool value, const char* yes, const char* no) {
    object_[key] = value ? yes : no;
  }
  /// A list of at least `least` objects, each by `visit(f, element, index)`.
  template <typename T, typename Visit>
  void each(const char* key, const std::vector<T>& values, const Visit& visit, std::size_t = 0) {
    nlohmann::json& list = object_[key] = nlohmann::json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      FieldWriter element(list.emplace_back(nlohmann::json::object()));
      visit(element, values[i], i);
    }
  }
  /// An object, if there is a value, by `visit(f, value)`.
  template <typename T, typename Visit>
  void object(const char* key, const std::optional<T>& value, const Visit& visit) {
    if (!value)
      return;
    FieldWriter member(object_[key] = nlohmann::json::object());
    visit(member, *value);
  }
  /// Derived from other members, so it is never read.
  template <typename Write>
  void derived(const Write& write) {
    write(*this);
  }

  /// Numbers by name.
  void metrics(const char* key, const std::vector<MetricValue>& metrics);
  /// Names and directions, in the order that an object of JSON cannot have.
  void metric_list(const char* key, const std::vector<MetricValue>& metrics);
  /// "loss", "metrics", and by name the reasons of those that are undefined.
  void scores(const Number& loss, const std::vector<MetricValue>& metrics);

 private:
  template <typename T>
  static nlohmann::json json_of(const T& value) {
    if constexpr (requires { nlohmann::json(value); }) {
      return nlohmann::json(value);
    } else {
      nlohmann::json object = nlohmann::json::object();
      FieldWriter writer(object);
      describe(writer, value);
      return object;
    }
  }
  template <typename T>
  requires(!requires(const T& value) { nlohmann::json(value); }) static nlohmann::json
      json_of(const std::vector<T>& values) {
    nlohmann::json list = nlohmann::json::array();
    for (const T& value : values)
      list.push_back(json_of(value));
    return list;
  }

  nlohmann::json& object_;
};

/// Takes members from an object. Keys that are not there leave the member as it is; but a Number is
/// then not known.
class FieldReader {
 public:
  template <typename T>
  using Value = T&;
  static constexpr bool kWrites = false;

  /// `place`: the file. Throws StorageError unless `object` is one.
  FieldReader(const nlohmann::json& object, const std::string& place, std::string pointer = {});

  template <typename T>
  void operator()(const char* key, T& value) {
    if (const nlohmann::json* const found = find(key))
      read(*found, pointer_of(key), value);
  }
  void operator()(const char* key, Number& value) {
    static const nlohmann::json kUnknown;
    const nlohmann::json* const found = find(key);
    read(found == nullptr ? kUnknown : *found, pointer_of(key), value);
  }
  template <typename T>
  void unless_default(const char* key, T& value) {
    (*this)(key, value);
  }
  template <typename T>
  void if_any(const char* key, std::optional<T>& value) {
    if (find(key) != nullptr)
      (*this)(key, value.emplace());
  }
  template <typename T>
  void if_any(const char* key, T& value) {
    (*this)(key, value);
  }
  void or_null(const char* key, std::string& text) {
    if (!is_null(key))
      (*this)(key, text);
  }
  template <typename T>
  void or_null(const char* key, std::optional<T>& value) {
    if (!is_null(key))
      if_any(key, value);
  }
  void either(const char* key, bool& value, const char* yes, const char* no);
  template <typename T, typename Visit>
  void each(const char* key, std::vector<T>& values, const Visit& visit, std::size_t least = 0) {
    static const nlohmann::json kNone = nlohmann::json::array();
    const nlohmann::json* const found = find(key);
    const nlohmann::json& list = found == nullptr ? kNone : *found;
    expect(list.is_array() && list.size() >= least,
           least == 0 ? "an array" : "an array that is not empty", list, pointer_of(key));
    values.resize(list.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      FieldReader element(list[i], place_, child_pointer(pointer_of(key), i));
      visit(element, values[i], i);
    }
  }
  template <typename T, typename Visit>
  void object(const char* key, std::optional<T>& value, const Visit& visit) {
    if (const nlohmann::json* const found = find(key)) {
      FieldReader member(*found, place_, pointer_of(key));
      visit(member, value.emplace());
    }
  }
  template <typename Write>
  void derived(const Write&) {}

  bool has(const char* key) const { return find(key) != nullptr; }

  void metrics(const char* key, std::vector<MetricValue>& metrics);
  void metric_list(const char* key, std::vector<MetricValue>& metrics);
  void scores(Number& loss, std::vector<MetricValue>& metrics);

 private:
  const nlohmann::json* find(const char* key) const;
  bool is_null(const char* key) const;
  std::string pointer_of(const char* key) const { return child_pointer(pointer_, key); }
  void expect(bool is_so, const char* what, const nlohmann::json& got,
              const std::string& pointer) const;

  void read(const nlohmann::json& stored, const std::string& pointer, bool& value) const;
  void read(const nlohmann::json& stored, const std::string& pointer, std::int64_t& value) const;
  void read(const nlohmann::json& stored, const std::string& pointer, double& value) const;
  void read(const nlohmann::json& stored, const std::string& pointer, Number& value) const;
  void read(const nlohmann::json& stored, const std::string& pointer, std::string& value) const;
  void read(const nlohmann::json& stored, const std::string&, nlohmann::json& value) const {
    value = stored;
  }
  template <typename T>
  void read(const nlohmann::json& stored, const std::string& pointer,
            std::vector<T>& values) const {
    expect(stored.is_array(), "an array", stored, pointer);
    values.clear();
    for (std::size_t i = 0; i < stored.size(); ++i)
      read(stored[i], child_pointer(pointer, i), values.emplace_back());
  }
  template <typename T>
  void read(const nlohmann::json& stored, const std::string& pointer,
            std::map<std::string, T>& values) const {
    expect(stored.is_object(), "an object", stored, pointer);
    for (const auto& [key, value] : stored.items())
      read(value, child_pointer(pointer, key), values[key]);
  }
  template <typename T>
  void read(const nlohmann::json& stored, const std::string& pointer, T& value) const {
    FieldReader reader(stored, place_, pointer);
    describe(reader, value);
  }

  const nlohmann::json& object_;
  const std::string& place_;
  std::string pointer_;
};

template <typename T>
nlohmann::json written(const T& value) {
  nlohmann::json stored = nlohmann::json::object();
  FieldWriter writer(stored);
  describe(writer, value);
  return stored;
}

template <typename T>
T read(const nlohmann::json& stored, const std::string& place) {
  T value;
  FieldReader reader(stored, place);
  describe(reader, value);
  return value;
}

}  // namespace treadle::fields
