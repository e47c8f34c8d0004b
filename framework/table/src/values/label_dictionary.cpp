#include "values/label_dictionary.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <treadle/table/number_text.h>

namespace treadle::table {
namespace {

bool is_integer(std::string_view text) {
  return normalize_integer(text);
}

// Compares integers of any length without converting them.
struct IntegerLess {
  bool operator()(std::string_view a, std::string_view b) const {
    const bool a_negative = a.front() == '-';
    const bool b_negative = b.front() == '-';
    if (a_negative != b_negative)
      return a_negative;
    const std::string_view a_digits = digits(a);
    const std::string_view b_digits = digits(b);
    if (a_digits.size() != b_digits.size())
      return (a_digits.size() < b_digits.size()) != a_negative;
    return a_negative ? b_digits < a_digits : a_digits < b_digits;
  }

 private:
  static std::string_view digits(std::string_view text) {
    const std::size_t first = text.find_first_not_of("-0");
    return first == std::string_view::npos ? std::string_view() : text.substr(first);
  }
};

}  // namespace

LabelDictionary::LabelDictionary(const std::vector<std::string>& labels) : labels_(labels) {
  for (std::size_t i = 0; i < labels_.size(); ++i)
    numbers_.emplace(labels_[i], static_cast<std::int64_t>(i));
}

std::int64_t LabelDictionary::add(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end())
    return found->second;
  const std::int64_t number = size();
  labels_.emplace_back(text);
  numbers_.emplace(labels_.back(), number);
  return number;
}

std::optional<std::int64_t> LabelDictionary::find(std::string_view text) const {
  auto found = numbers_.find(text);
  if (found == numbers_.end() && normalize_integer(text))
    found = numbers_.find(text);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::int64_t> LabelDictionary::settle() {
  std::vector<std::int64_t> new_numbers(labels_.size());
  if (!std::all_of(labels_.begin(), labels_.end(), is_integer)) {
    std::iota(new_numbers.begin(), new_numbers.end(), 0);
    return new_numbers;
  }
  LabelDictionary joined;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    std::string_view text = labels_[i];
    normalize_integer(text);
    new_numbers[i] = joined.add(text);
  }
  *this = std::move(joined);
  return new_numbers;
}

std::vector<std::int64_t> LabelDictionary::sort() {
  std::vector<std::int64_t> settled = settle();
  std::vector<std::int64_t> order(labels_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto label = [&](std::int64_t i) -> std::string_view {
    return labels_[static_cast<std::size_t>(i)];
  };
  if (std::all_of(labels_.begin(), labels_.end(), is_integer)) {
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return IntegerLess()(label(a), label(b));
    });
  } else {
    std::sort(order.begin(), order.end(),
              [&](std::int64_t a, std::int64_t b) { return label(a) < label(b); });
  }
  std::vector<std::int64_t> new_numbers(order.size());
  std::vector<std::string> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto old = static_cast<std::size_t>(order[i]);
    new_numbers[old] = static_cast<std::int64_t>(i);
    sorted[i] = std::move(labels_[old]);
  }
  *this = LabelDictionary(sorted);
  for (std::int64_t& number : settled)
    number = new_numbers[static_cast<std::size_t>(number)];
  return settled;
}

}  // namespace treadle::table
