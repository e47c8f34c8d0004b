#include "fields.h"

#include <algorithm>
#include <limits>

#include <treadle/base/utf8.h>

namespace treadle::fields {
namespace {

constexpr const char* kLoss = "loss";
constexpr const char* kUndefined = "undefined";

MetricValue& entry(std::vector<MetricValue>& metrics, const std::string& name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const MetricValue& metric) { return metric.name == name; });
  return found == metrics.end() ? metrics.emplace_back(MetricValue{name, {}, Direction::kNone})
                                : *found;
}

/// A key may be a stranger's, and long.
std::string shown_pointer(const std::string& pointer) {
  constexpr std::size_t kLongest = 200;
  if (pointer.size() <= kLongest)
    return plain_text(pointer);
  return plain_text(pointer.substr(0, whole_characters(pointer.substr(0, kLongest)))) + "…";
}

}  // namespace

void FieldWriter::metrics(const char* key, const std::vector<MetricValue>& metrics) {
  nlohmann::json& values = object_[key] = nlohmann::json::object();
  for (const MetricValue& metric : metrics)
    values[metric.name] = metric.value;
}

void FieldWriter::metric_list(const char* key, const std::vector<MetricValue>& metrics) {
  nlohmann::json& list = object_[key] = nlohmann::json::array();
  for (const MetricValue& metric : metrics) {
    nlohmann::json& one = list.emplace_back(nlohmann::json{{"name", metric.name}});
    if (metric.direction != Direction::kNone)
      one["better"] = metric.direction == Direction::kHigherIsBetter ? "higher" : "lower";
  }
}

void FieldWriter::scores(const Number& loss, const std::vector<MetricValue>& metrics) {
  (*this)(kLoss, loss);
  this->metrics("metrics", metrics);
  nlohmann::json reasons = nlohmann::json::object();
  for (const MetricValue& metric : metrics) {
    if (metric.value.is_undefined())
      reasons[metric.name] = metric.value.why();
  }
  if (loss.is_undefined())
    reasons[kLoss] = loss.why();
  if (!reasons.empty())
    object_[kUndefined] = std::move(reasons);
}

FieldReader::FieldReader(const nlohmann::json& object, const std::string& place,
                         std::string pointer)
    : object_(object), place_(place), pointer_(std::move(pointer)) {
  expect(object.is_object(), "an object", object, pointer_);
}

const nlohmann::json* FieldReader::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

bool FieldReader::is_null(const char* key) const {
  const nlohmann::json* const found = find(key);
  return found != nullptr && found->is_null();
}

void FieldReader::expect(bool is_so, const char* what, const nlohmann::json& got,
                         const std::string& pointer) const {
  if (!is_so) {
    throw StorageError(place_ + (pointer.empty() ? "" : ": " + shown_pointer(pointer)) +
                       ": expected " + what + ", got " + describe_value(got) +
                       "; the file is damaged, or was written by another program: restore it from "
                       "a copy");
  }
}

void FieldReader::either(const char* key, bool& value, const char* yes, const char* no) {
  const nlohmann::json* const found = find(key);
  if (found == nullptr)
    return;
  const std::string words = quote_text(yes) + " or " + quote_text(no);
  expect(*found == yes || *found == no, words.c_str(), *found, pointer_of(key));
  value = *found == yes;
}

void FieldReader::metrics(const char* key, std::vector<MetricValue>& metrics) {
  std::map<std::string, Number> values;
  (*this)(key, values);
  for (auto& [name, value] : values)
    entry(metrics, name).value = std::move(value);
}

void FieldReader::metric_list(const char* key, std::vector<MetricValue>& metrics) {
  each(key, metrics, [](FieldReader& f, MetricValue& metric, std::size_t) {
    f("name", metric.name);
    if (f.find("better") == nullptr)
      return;
    bool is_higher = false;
    f.either("better", is_higher, "higher", "lower");
    metric.direction = is_higher ? Direction::kHigherIsBetter : Direction::kLowerIsBetter;
  });
}

void FieldReader::scores(Number& loss, std::vector<MetricValue>& metrics) {
  (*this)(kLoss, loss);
  this->metrics("metrics", metrics);
  std::map<std::string, std::string> reasons;
  (*this)(kUndefined, reasons);
  for (const auto& [name, why] : reasons)
    (name == kLoss ? loss : entry(metrics, name).value) = Number::undefined(why);
}

void FieldReader::read(const nlohmann::json& stored, const std::string& pointer,
                       bool& value) const {
  expect(stored.is_boolean(), "true or false", stored, pointer);
  value = stored.get<bool>();
}

void FieldReader::read(const nlohmann::json& stored, const std::string& pointer,
                       std::int64_t& value) const {
  const bool is_integer =
      stored.is_number_integer() &&
      !(stored.is_number_unsigned() &&
        stored.get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  expect(is_integer, "an integer", stored, pointer);
  value = stored.get<std::int64_t>();
}

void FieldReader::read(const nlohmann::json& stored, const std::string& pointer,
                       double& value) const {
  expect(stored.is_number(), "a number", stored, pointer);
  value = stored.get<double>();
}

/// null: not known.
void FieldReader::read(const nlohmann::json& stored, const std::string& pointer,
                       Number& value) const {
  expect(stored.is_number() || stored.is_null(), "a number or null", stored, pointer);
  value = stored.is_null() ? std::numeric_limits<double>::quiet_NaN() : stored.get<double>();
}

void FieldReader::read(const nlohmann::json& stored, const std::string& pointer,
                       std::string& value) const {
  expect(stored.is_string(), "text", stored, pointer);
  value = stored.get<std::string>();
}

}  // namespace treadle::fields
