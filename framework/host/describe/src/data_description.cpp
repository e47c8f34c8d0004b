#include <treadle/host/describe/data_description.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::describe {
namespace {

std::vector<ColumnSummary> summaries_of(const std::vector<DescribedColumn>& columns) {
  std::vector<ColumnSummary> summaries;
  summaries.reserve(columns.size());
  for (const DescribedColumn& column : columns)
    summaries.push_back(summarize(column));
  return summaries;
}

std::vector<DescribedColumn> of_kind(const std::vector<DescribedColumn>& columns, ColumnKind kind) {
  std::vector<DescribedColumn> some;
  std::copy_if(columns.begin(), columns.end(), std::back_inserter(some),
               [&](const DescribedColumn& column) { return column.kind == kind; });
  return some;
}

std::vector<DescribedColumn> joined(std::vector<DescribedColumn> first,
                                    const std::vector<DescribedColumn>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The targets that are not among the inputs, as a series predicts itself.
std::vector<DescribedColumn> targets_beside_inputs(const DescribedTable& table) {
  std::vector<DescribedColumn> some;
  std::copy_if(table.targets.begin(), table.targets.end(), std::back_inserter(some),
               [&](const DescribedColumn& target) {
                 return std::none_of(
                     table.inputs.begin(), table.inputs.end(), [&](const DescribedColumn& input) {
                       return input.name == target.name && input.kind == target.kind &&
                              input.values.equal(target.values);
                     });
               });
  return some;
}

/// [N, D]
at::Tensor matrix_of(const std::vector<DescribedColumn>& columns, std::int64_t rows) {
  if (columns.empty())
    return at::empty({rows, 0}, at::kDouble);
  std::vector<at::Tensor> values;
  values.reserve(columns.size());
  for (const DescribedColumn& column : columns)
    values.push_back(column.values);
  return at::stack(values, 1);
}

std::vector<std::string> names_of(const std::vector<DescribedColumn>& columns) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const DescribedColumn& column : columns)
    names.push_back(column.name);
  return names;
}

/// At most so many of the columns; a note reports a limit that was reached.
std::vector<DescribedColumn> first_of(std::vector<DescribedColumn> columns, std::size_t most,
                                      const std::string& what, std::vector<std::string>& notes) {
  if (columns.size() > most) {
    notes.push_back("only the first " + std::to_string(most) + " of " +
                    std::to_string(columns.size()) + " columns of " + what);
    columns.resize(most);
  }
  return columns;
}

template <typename Measure>
std::vector<CorrelatedPair> associated(const std::vector<DescribedColumn>& first,
                                       const std::vector<DescribedColumn>& second,
                                       const Measure& measure) {
  const bool is_symmetric = &first == &second;
  std::vector<CorrelatedPair> pairs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = is_symmetric ? i + 1 : 0; j < second.size(); ++j) {
      const Number value = measure(first[i].values, second[j].values);
      if (value.is_known())
        pairs.push_back({first[i].name, second[j].name, value});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.value > b.value; });
  return pairs;
}

}  // namespace

DataDescription describe(const DescribedTable& table) {
  DataDescription description;
  description.rows = table.rows_of_data;
  description.described = table.rows();
  description.notes = table.notes;
  description.inputs = summaries_of(table.inputs);
  description.targets = summaries_of(table.targets);
  description.others = summaries_of(table.others);
  std::vector<std::string>& notes = description.notes;
  const std::vector<DescribedColumn> new_targets = targets_beside_inputs(table);
  const std::vector<DescribedColumn> targets = of_kind(new_targets, ColumnKind::kNumber);
  const std::vector<DescribedColumn> inputs =
      first_of(of_kind(table.inputs, ColumnKind::kNumber), kMostCorrelatedColumns,
               "numbers are correlated and clustered", notes);
  const std::vector<DescribedColumn> numbers = joined(inputs, targets);
  const std::vector<DescribedColumn> categories =
      joined(first_of(of_kind(table.inputs, ColumnKind::kCategory), kMostAssociatedCategories,
                      "categories are compared with others", notes),
             of_kind(new_targets, ColumnKind::kCategory));
  const at::Tensor matrix = matrix_of(numbers, table.rows());
  description.pearson = pearson(matrix, names_of(numbers));
  description.spearman = spearman(matrix, names_of(numbers));
  description.strong_pairs = strong_pairs(description.spearman, kStrongPair);
  if (description.strong_pairs.size() > kMostStrongPairs)
    description.strong_pairs.resize(kMostStrongPairs);
  description.cramers_v = associated(categories, categories, corrected_cramers_v);
  description.correlation_ratio = associated(categories, numbers, corrected_correlation_ratio);
  description.clusters = find_clusters(matrix_of(inputs, table.rows()), kDescriptionSeed);
  const std::vector<DescribedColumn> times = of_kind(table.others, ColumnKind::kTime);
  const std::vector<DescribedColumn> all = joined(joined(table.inputs, new_targets), times);
  if (table.parts.is_split()) {
    description.training_rows = table.parts.training.size(0);
    description.validation_rows = table.parts.validation.size(0);
    description.drift = drift_between(all, table.parts);
  }
  if (table.has_all_inputs)
    description.duplicates = find_duplicates(table.inputs, table.parts);
  description.suspicions = find_suspicions(joined(table.inputs, times), table.targets, table.parts);
  return description;
}

void to_json(nlohmann::json& json, const DataDescription& description) {
  json = {{"rows", description.rows},
          {"described_rows", description.described},
          {"inputs", description.inputs},
          {"targets", description.targets},
          {"others", description.others},
          {"pearson", description.pearson},
          {"spearman", description.spearman},
          {"strong_pairs", description.strong_pairs},
          {"cramers_v", description.cramers_v},
          {"correlation_ratio", description.correlation_ratio},
          {"clusters", description.clusters},
          {"drift", description.drift},
          {"duplicates", description.duplicates},
          {"suspicions", description.suspicions},
          {"notes", description.notes}};
  if (description.training_rows && description.validation_rows) {
    json["split"] = {{"training_rows", *description.training_rows},
                     {"validation_rows", *description.validation_rows}};
  }
}

DataDescription description_from_json(const nlohmann::json& stored) {
  DataDescription description;
  try {
    stored.at("rows").get_to(description.rows);
    stored.at("described_rows").get_to(description.described);
    stored.at("inputs").get_to(description.inputs);
    stored.at("targets").get_to(description.targets);
    stored.at("others").get_to(description.others);
    stored.at("pearson").get_to(description.pearson);
    stored.at("spearman").get_to(description.spearman);
    stored.at("strong_pairs").get_to(description.strong_pairs);
    stored.at("cramers_v").get_to(description.cramers_v);
    stored.at("correlation_ratio").get_to(description.correlation_ratio);
    stored.at("clusters").get_to(description.clusters);
    stored.at("drift").get_to(description.drift);
    stored.at("duplicates").get_to(description.duplicates);
    stored.at("suspicions").get_to(description.suspicions);
    stored.at("notes").get_to(description.notes);
    if (stored.contains("split")) {
      description.training_rows = stored.at("split").at("training_rows").get<std::int64_t>();
      description.validation_rows = stored.at("split").at("validation_rows").get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw StorageError(std::string("no description of data: ") + error.what() +
                       "; write one with workflow-runner data describe DOCUMENT --json");
  }
  return description;
}

}  // namespace treadle::describe
