#include "values/rows_hash.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <treadle/base/hash.h>

#include <treadle/table/number_text.h>

namespace treadle::table {
namespace {

/// FNV-1a: short texts, and the same on every machine.
std::uint64_t hash_of_label(std::string_view text) {
  normalize_integer(text);
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

std::vector<std::uint64_t> hashes_of(const LabelDictionary& labels) {
  std::vector<std::uint64_t> hashes;
  for (const std::string& label : labels.labels())
    hashes.push_back(hash_of_label(label));
  return hashes;
}

class RowsHash {
 public:
  void add(NumberBuffer& numbers) {
    hash_.update(numbers.is_wide() ? "d" : "f");
    hash_.update(numbers.bytes());
  }
  void add(GrowingBuffer<double>& numbers) {
    hash_.update(std::as_bytes(std::span(numbers.data(), numbers.size())));
  }
  /// Every `width`th of the numbers, from `first` on, as what they stand for; -1 is missing.
  void add(GrowingBuffer<std::int64_t>& numbers, std::size_t first, std::size_t width,
           const LabelDictionary& labels) {
    const std::vector<std::uint64_t> hashes = hashes_of(labels);
    std::vector<std::uint64_t> values;
    for (std::size_t i = first; i < numbers.size(); i += width) {
      const std::int64_t number = numbers.data()[i];
      values.push_back(number < 0 ? 0 : hashes[static_cast<std::size_t>(number)]);
    }
    hash_.update(std::as_bytes(std::span(values)));
  }
  std::string digest() const { return hash_.digest(); }

 private:
  ContentHash hash_;
};

}  // namespace

std::string hash_of_rows(ParsedRows& rows, const ParsedRows& labels) {
  RowsHash hash;
  for (ParsedRows::Numbers& part : rows.numbers)
    hash.add(part.values);
  for (ParsedRows::Numbers& part : rows.target_numbers)
    hash.add(part.values);
  hash.add(rows.weights);
  hash.add(rows.times);
  hash.add(rows.label_ends);
  for (std::size_t port = 0; port < rows.categories.size(); ++port) {
    ParsedRows::Indices& part = rows.categories[port];
    // A feature's dictionary is found by its place: those of categories count per port.
    for (const ParsedRows::CategoryPlace& place : rows.category_places) {
      if (place.port == port)
        hash.add(part.values, place.slot, part.width, labels.labels[place.feature]);
    }
  }
  for (std::size_t target = 0; target < rows.target_classes.size(); ++target)
    hash.add(rows.target_classes[target].values, 0, 1, labels.classes[target]);
  return hash.digest();
}

}  // namespace treadle::table
