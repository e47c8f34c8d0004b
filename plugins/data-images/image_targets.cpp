#include "image_targets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/data/row_problems.h>

namespace treadle::images {
namespace {

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_whole(double value) {
  return std::abs(value) < 9e15 && value == std::floor(value);
}

/// The texts of the rows that count.
using Texts = std::vector<const std::string*>;

Texts texts_of(const ImageTable& table, std::size_t column, const std::vector<std::size_t>& kept) {
  Texts texts;
  texts.reserve(kept.size());
  for (const std::size_t row : kept)
    texts.push_back(&table.fields[column][row]);
  return texts;
}

std::string problem_start(const ImageTable& table, std::size_t row, const std::string& column) {
  return table.place_of(row) + ": column " + quote_text(column) + ": ";
}

TargetKind kind_of(const Texts& texts, const std::string& name, const OpenRequest& request,
                   bool has_classes) {
  if (const auto asked = request.asked_kind(name))
    return *asked;
  if (has_classes)
    return TargetKind::kClasses;
  bool are_numbers = true;
  bool are_whole = true;
  for (const std::string* const text : texts) {
    const std::optional<double> number = number_in(*text);
    are_numbers = are_numbers && number.has_value();
    are_whole = are_whole && number && is_whole(*number);
  }
  const bool wants_classes = are_whole && !request.takes(name, TargetKind::kNumbers);
  return are_numbers && !wants_classes ? TargetKind::kNumbers : TargetKind::kClasses;
}

/// Classes are numbered by value where all are integers, else in the order of their bytes; those of
/// folders always in the latter, as torchvision has them.
std::vector<std::string> classes_in(const Texts& texts, bool are_folders) {
  std::vector<std::string> classes;
  for (const std::string* const text : texts)
    classes.push_back(*text);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  const bool are_whole = std::all_of(classes.begin(), classes.end(), [](const std::string& name) {
    const std::optional<double> number = number_in(name);
    return number && is_whole(*number);
  });
  if (are_whole && !are_folders) {
    std::sort(classes.begin(), classes.end(), [](const std::string& a, const std::string& b) {
      return *number_in(a) < *number_in(b);
    });
  }
  return classes;
}

ReadTarget read_classes(const ImageTable& table, std::size_t column,
                        const std::vector<std::size_t>& kept, const ImageOptions& options,
                        const TargetDescription* known) {
  const Texts texts = texts_of(table, column, kept);
  const std::string& name = table.names[column];
  const std::vector<std::string> classes = known != nullptr ? known->spec.class_names
                                           : options.classes
                                               ? *options.classes
                                               : classes_in(texts, !table.folders.empty());
  std::map<std::string_view, std::int64_t> numbers;
  for (const std::string& one : classes)
    numbers.emplace(one, static_cast<std::int64_t>(numbers.size()));
  ReadTarget read{{class_target(name, classes)}, {}};
  read.target.values = at::empty({static_cast<std::int64_t>(kept.size())}, at::kLong);
  auto* values = read.target.values.data_ptr<std::int64_t>();
  RowProblems problems;
  for (std::size_t i = 0; i < texts.size(); ++i, ++values) {
    const auto found = numbers.find(*texts[i]);
    *values = found != numbers.end() ? found->second : 0;
    if (found != numbers.end() && !texts[i]->empty())
      continue;
    problems.add([&] {
      return problem_start(table, kept[i], name) +
             (texts[i]->empty() ? "expected a class, got nothing"
              : known != nullptr
                  ? "class " + quote_text(*texts[i]) + " is not in the training data, which has " +
                        name_list(classes)
                  : quote_text(*texts[i]) + " is none of \"classes\": " + name_list(classes) +
                        did_you_mean(*texts[i], classes));
    });
  }
  problems.throw_if_any();
  return read;
}

ReadTarget read_numbers(const ImageTable& table, const std::vector<std::size_t>& columns,
                        const std::vector<std::size_t>& kept, const std::string& name) {
  const auto rows = static_cast<std::int64_t>(kept.size());
  const auto width = static_cast<std::int64_t>(columns.size());
  at::Tensor values = at::empty({rows, width}, at::kDouble);
  auto* value = values.data_ptr<double>();
  bool are_float = true;
  RowProblems problems;
  for (const std::size_t row : kept) {
    for (const std::size_t column : columns) {
      const std::string& text = table.fields[column][row];
      const std::optional<double> number = number_in(text);
      if (!number && !table.folders.empty()) {
        throw DataError(table.shown + ": numbers are wanted, and the folder " + quote_text(text) +
                        " is a class; list the images and their numbers in a CSV file, or train "
                        "for classes");
      }
      if (!number) {
        problems.add([&] {
          return problem_start(table, row, table.names[column]) + "expected a number, got " +
                 quote_text(text);
        });
      }
      *value = number.value_or(0);
      are_float = are_float && static_cast<double>(static_cast<float>(*value)) == *value;
      ++value;
    }
  }
  problems.throw_if_any();
  ReadTarget read{{number_target(name, width)}, {}};
  read.target.values = are_float ? values.to(at::kFloat) : values;
  return read;
}

}  // namespace

ReadTarget read_target(const ImageTable& table, const std::vector<std::size_t>& kept,
                       const ImageOptions& options, const OpenRequest& request,
                       const TargetDescription* known) {
  std::vector<std::string> names = options.targets;
  if (names.empty() && known != nullptr && known->spec.width() == 1)
    names = {known->spec.name};
  if (names.empty()) {
    if (table.names.size() < 2) {
      throw DataError(table.shown +
                      ": has paths and nothing else; expected a column with the label "
                      "or number of each image");
    }
    names = {table.names.back()};
  }
  std::vector<std::size_t> columns;
  for (const std::string& name : names)
    columns.push_back(table.column(name));
  const std::string name = names.size() == 1 ? names[0] : "target";
  const TargetKind kind = known != nullptr     ? known->spec.kind
                          : columns.size() > 1 ? TargetKind::kNumbers
                                               : kind_of(texts_of(table, columns[0], kept), name,
                                                         request, options.classes.has_value());
  switch (kind) {
    case TargetKind::kClasses:
      return read_classes(table, columns[0], kept, options, known);
    case TargetKind::kNumbers:
      if (options.classes) {
        throw DataError(table.shown + ": \"classes\" has no effect: " + quote_text(name) +
                        " has numbers");
      }
      return read_numbers(table, columns, kept, name);
    default:
      throw DataError(table.shown + ": column " + quote_text(name) +
                      " has classes or numbers, and "
                      "the loss works on " +
                      std::string(name_of(kind)));
  }
}

ReadTarget number_masks(at::Tensor masks, const ImageTable& table,
                        const std::vector<std::size_t>& kept, const ImageOptions& options,
                        const TargetDescription* known) {
  constexpr std::size_t kValues = 256;
  auto* const pixels = masks.data_ptr<std::int16_t>();
  const auto count = static_cast<std::size_t>(masks.numel());
  std::array<bool, kValues> occurs = {};
  for (std::size_t i = 0; i < count; ++i) {
    if (pixels[i] >= 0)
      occurs[static_cast<std::size_t>(pixels[i])] = true;
  }
  const auto ignored = static_cast<std::size_t>(options.ignore_index.value_or(kValues));
  std::vector<std::int64_t> values;
  std::vector<std::string> classes;
  if (known != nullptr) {
    values = known->mask_values;
    classes = known->spec.class_names;
  } else if (options.classes) {
    for (std::size_t i = 0; i < options.classes->size(); ++i)
      values.push_back(static_cast<std::int64_t>(i));
    classes = *options.classes;
  } else {
    for (std::size_t value = 0; value < kValues; ++value) {
      if (!occurs[value] || value == ignored)
        continue;
      values.push_back(static_cast<std::int64_t>(value));
      classes.push_back(std::to_string(value));
    }
  }
  constexpr std::int16_t kUnknown = -2;
  std::array<std::int16_t, kValues> numbers;
  numbers.fill(kUnknown);
  for (std::size_t i = 0; i < values.size() && i < kValues; ++i)
    numbers[static_cast<std::size_t>(values[i])] = static_cast<std::int16_t>(i);
  if (ignored < kValues)
    numbers[ignored] = kNoPixel;
  ReadTarget read{
      {class_target(options.mask_column, classes, {masks.size(1), masks.size(2)}), values}, {}};
  RowProblems problems;
  const std::size_t per_mask = kept.empty() ? 0 : count / kept.size();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    std::int16_t unknown = kNoPixel;
    for (std::size_t pixel = i * per_mask; pixel < (i + 1) * per_mask; ++pixel) {
      const std::int16_t value = pixels[pixel];
      const std::int16_t number = value < 0 ? kNoPixel : numbers[static_cast<std::size_t>(value)];
      if (number == kUnknown)
        unknown = value;
      if (number == kNoPixel)
        read.target.has_ignored = true;
      pixels[pixel] = number;
    }
    if (unknown == kNoPixel)
      continue;
    problems.add([&] {
      return problem_start(table, kept[i], options.mask_column) + "a pixel has the value " +
             std::to_string(unknown) + ", which is no class" +
             (known != nullptr ? " of the training data" : "") + ": " + name_list(classes) +
             "; \"ignore_index\" names a value that does not count";
    });
  }
  problems.throw_if_any();
  read.target.values = std::move(masks);
  read.target.is_mask = true;
  return read;
}

}  // namespace treadle::images
