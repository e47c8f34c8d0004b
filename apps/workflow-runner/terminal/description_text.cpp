#include "terminal/description_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <treadle/base/json_words.h>
#include <treadle/base/time_text.h>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using describe::ColumnDrift;
using describe::ColumnKind;
using describe::ColumnSummary;
using describe::CorrelatedPair;
using describe::DataDescription;

constexpr std::size_t kWidestName = 24;
constexpr std::size_t kWidestValues = 40;
constexpr std::size_t kMostColumns = 60;  ///< that are shown; --json has all
constexpr std::size_t kMostPairs = 10;
constexpr double kWorthShowing = 0.3;  ///< of Cramér's V and correlation ratios

std::string name_cell(const std::string& name) {
  return cut_to(plain_text(name), kWidestName);
}

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string two_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", 100 * share);
  return text.data();
}

std::string missing_cell(const ColumnSummary& column) {
  return column.missing == 0 ? "-" : percent(column.missing_share());
}

/// One block per bin, as high as its rows.
std::string histogram_cell(const std::vector<std::int64_t>& rows) {
  static constexpr std::array<const char*, 9> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::int64_t most = *std::max_element(rows.begin(), rows.end());
  std::string text;
  for (const std::int64_t count : rows) {
    // Rounded up: a bin with a row is seen.
    text += kBlocks.at(static_cast<std::size_t>((8 * count + most - 1) / most));
  }
  return text;
}

std::string heading(const std::string& text, const Terminal& terminal) {
  return "\n" + terminal.bold(text) + "\n";
}

std::vector<const ColumnSummary*> shown(const std::vector<ColumnSummary>& columns, bool has_names) {
  std::vector<const ColumnSummary*> some;
  for (const ColumnSummary& column : columns) {
    const bool is_names = column.kind == ColumnKind::kCategory || column.kind == ColumnKind::kText;
    if (is_names == has_names && some.size() < kMostColumns)
      some.push_back(&column);
  }
  return some;
}

std::string numbers_table(const std::vector<const ColumnSummary*>& columns,
                          const Terminal& terminal) {
  std::vector<Cells> rows;
  for (const ColumnSummary* column : columns) {
    Cells cells{name_cell(column->name), missing_cell(*column), std::to_string(column->distinct)};
    if (const auto& numbers = column->numbers) {
      const auto text = [&](double value) {
        return column->is_date ? time_text(value, true) : number_text(value);
      };
      const bool is_time = column->kind == ColumnKind::kTime;
      cells.insert(cells.end(),
                   {text(numbers->least), text(numbers->quantiles[2]), text(numbers->greatest),
                    is_time ? "-" : text(numbers->mean), is_time ? "-" : text(numbers->deviation),
                    histogram_cell(numbers->histogram)});
    } else {
      cells.insert(cells.end(), 6, "-");
    }
    rows.push_back(std::move(cells));
  }
  return table_text(
      {"number", "missing", "distinct", "min", "median", "max", "mean", "std", "histogram"}, rows,
      1, terminal);
}

std::string names_table(const std::vector<const ColumnSummary*>& columns,
                        const Terminal& terminal) {
  std::vector<Cells> rows;
  for (const ColumnSummary* column : columns) {
    std::string frequent;
    for (const describe::ValueCount& value : column->frequent) {
      const double share =
          static_cast<double>(value.rows) / static_cast<double>(column->rows - column->missing);
      frequent += (frequent.empty() ? "" : ", ") + plain_text(value.name) + " " + percent(share);
    }
    rows.push_back({name_cell(column->name), cut_to(frequent, kWidestValues), missing_cell(*column),
                    std::to_string(column->distinct)});
  }
  return table_text({"category", "most frequent", "missing", "distinct"}, rows, 2, terminal);
}

std::string columns_text(const std::string& title, const std::vector<ColumnSummary>& columns,
                         const Terminal& terminal) {
  if (columns.empty())
    return {};
  std::string text = heading(title, terminal);
  const auto numbers = shown(columns, false);
  const auto names = shown(columns, true);
  if (!numbers.empty())
    text += numbers_table(numbers, terminal);
  if (!names.empty())
    text += (numbers.empty() ? "" : "\n") + names_table(names, terminal);
  const std::size_t left = columns.size() - numbers.size() - names.size();
  if (left > 0)
    text += paragraph(counted(static_cast<std::int64_t>(left), "more column") + " with --json",
                      terminal);
  return text;
}

std::string pairs_text(const std::string& measure, const std::vector<CorrelatedPair>& pairs,
                       double least, const Terminal& terminal) {
  std::vector<Cells> rows;
  for (const CorrelatedPair& pair : pairs) {
    if (rows.size() < kMostPairs && std::abs(pair.value) >= least)
      rows.push_back({name_cell(pair.first), name_cell(pair.second), two_digits(pair.value)});
  }
  if (rows.empty())
    return {};
  return heading(measure, terminal) + table_text({"column", "with", "value"}, rows, 2, terminal);
}

/// L. Kaufman & P. Rousseeuw, "Finding Groups in Data", 1990, table 4.
std::string structure_of(double silhouette) {
  return silhouette > 0.7    ? "a strong structure"
         : silhouette > 0.5  ? "a reasonable structure"
         : silhouette > 0.25 ? "a weak structure"
                             : "no substantial structure";
}

std::string clusters_text(const describe::Clusters& clusters, const Terminal& terminal) {
  if (clusters.rows == 0)
    return {};
  std::string sizes;
  for (const std::int64_t size : clusters.sizes)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return heading("Clusters", terminal) +
         paragraph(std::to_string(clusters.clusters) + " clusters of " +
                       counted(clusters.rows, "row") + " have the best silhouette, " +
                       two_digits(clusters.silhouette) + " (" + structure_of(clusters.silhouette) +
                       "); their sizes are " + sizes,
                   terminal);
}

std::string split_text(const DataDescription& description, const Terminal& terminal) {
  if (!description.training_rows || !description.validation_rows)
    return {};
  std::string text =
      heading("Split of the first fold", terminal) +
      paragraph(std::to_string(*description.training_rows) + " training rows, " +
                    std::to_string(*description.validation_rows) + " validation rows",
                terminal);
  std::vector<Cells> rows;
  for (const ColumnDrift& drift : description.drift) {
    if (drift.value > drift.by_chance && rows.size() < kMostPairs) {
      rows.push_back({name_cell(drift.column),
                      drift.measure == describe::DriftMeasure::kTotalVariation
                          ? "total variation"
                          : "Kolmogorov-Smirnov",
                      two_digits(drift.value), two_digits(drift.by_chance)});
    }
  }
  if (rows.empty())
    return text + paragraph("no column differs between them by more than chance", terminal);
  return text + table_text({"differs", "measure", "value", "by chance"}, rows, 2, terminal);
}

std::string duplicates_text(const DataDescription& description, const Terminal& terminal) {
  const describe::Duplicates& duplicates = description.duplicates;
  if (duplicates.rows == 0)
    return {};
  return heading("Duplicates", terminal) +
         paragraph(counted(duplicates.rows, "row") + " with the inputs of an earlier row; " +
                       counted(duplicates.across, "validation row") +
                       " with those of a training row",
                   terminal);
}

}  // namespace

std::string warnings_text(const std::vector<std::string>& sentences, const Terminal& terminal) {
  std::string text;
  for (const std::string& sentence : sentences)
    text += paragraph("warning: " + plain_text(sentence), terminal);
  return text;
}

std::string description_text(const DataDescription& description, const std::string& document,
                             const Terminal& terminal) {
  std::string first = plain_text(document) + ": " + counted(description.rows, "row") + ", " +
                      counted(static_cast<std::int64_t>(description.inputs.size()), "input") +
                      ", " +
                      counted(static_cast<std::int64_t>(description.targets.size()), "target");
  if (description.described < description.rows) {
    first += "; described by a random sample of " + counted(description.described, "row") +
             " (seed " + std::to_string(describe::kDescriptionSeed) + ")";
  }
  std::string text = paragraph(first, terminal);
  text += columns_text("Inputs", description.inputs, terminal);
  text += columns_text("Targets", description.targets, terminal);
  text += columns_text("Other columns", description.others, terminal);
  text += pairs_text("Rank correlations (Spearman)", description.strong_pairs,
                     describe::kStrongPair, terminal);
  text += pairs_text("Categories with each other (Cramér's V, corrected)", description.cramers_v,
                     kWorthShowing, terminal);
  text += pairs_text("Numbers by category (correlation ratio, corrected)",
                     description.correlation_ratio, kWorthShowing, terminal);
  text += clusters_text(description.clusters, terminal);
  text += split_text(description, terminal);
  text += duplicates_text(description, terminal);
  if (!description.notes.empty()) {
    text += heading("Not described", terminal);
    for (const std::string& note : description.notes)
      text += paragraph(plain_text(note), terminal);
  }
  text += heading("Suspected leaks", terminal);
  std::vector<std::string> sentences;
  for (const describe::Suspicion& suspicion : description.suspicions)
    sentences.push_back(suspicion.text);
  return text + (sentences.empty() ? "none\n" : warnings_text(sentences, terminal));
}

}  // namespace treadle::cli
