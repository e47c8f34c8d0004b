#include "description/described_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/json_words.h>
#include <treadle/base/random.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/host/describe/data_description.h>

#include "components/document_components.h"

namespace treadle::internal {
namespace {

using describe::ColumnKind;
using describe::DescribedColumn;
using describe::DescribedTable;

/// Whether a row has one value per column.
bool is_flat(const PortSpec& port) {
  const bool is_number_or_category = port.role == Role::kFeatures || port.role == Role::kCategories;
  return is_number_or_category && port.shape.size() == 1 && port.shape.front() != kVaries;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape)
    text += (text.empty() ? "" : ", ") + (size == kVaries ? "varies" : std::to_string(size));
  return "[" + text + "]";
}

std::string undescribed(const std::string& what, const std::string& name,
                        const std::vector<std::int64_t>& shape) {
  return what + " " + quote_text(name) + " of shape " + shape_text(shape) +
         " has no columns; it is not described";
}

at::Tensor as_numbers(const at::Tensor& values, std::int64_t column) {
  return values.select(1, column).to(at::kDouble).contiguous();
}

void add_input(const PortSpec& port, const at::Tensor& values, bool is_only_port,
               DescribedTable& table) {
  for (std::int64_t i = 0; i < port.shape.front(); ++i) {
    DescribedColumn column;
    if (port.columns.empty()) {
      column.name = (is_only_port ? "" : port.name + ".") + "Feature_" + std::to_string(i);
    } else {
      const Column& known = port.columns[static_cast<std::size_t>(i)];
      column.name = known.name;
      column.names = known.categories;
    }
    if (port.role == Role::kCategories) {
      column.kind = ColumnKind::kCategory;
      column.values = values.select(1, i).to(at::kLong).contiguous();
      // Without a dictionary, categories are their numbers.
      const std::int64_t count =
          column.values.numel() == 0 ? 0 : column.values.max().item<std::int64_t>() + 1;
      while (static_cast<std::int64_t>(column.names.size()) < count)
        column.names.push_back(std::to_string(column.names.size()));
    } else {
      column.values = as_numbers(values, i);
    }
    table.inputs.push_back(std::move(column));
  }
}

void add_target(const TargetSpec& target, const at::Tensor& values, DescribedTable& table) {
  if (!target.positions().empty()) {
    table.notes.push_back(undescribed("target", target.name, target.shape));
    return;
  }
  if (target.kind == TargetKind::kClasses) {
    table.targets.push_back({.name = target.name,
                             .kind = ColumnKind::kCategory,
                             .values = values.to(at::kLong).contiguous(),
                             .names = target.class_names});
    return;
  }
  for (std::int64_t i = 0; i < target.width(); ++i) {
    DescribedColumn column{.name = target.name, .values = as_numbers(values, i)};
    if (!target.class_names.empty()) {
      column.name += "." + target.class_names[static_cast<std::size_t>(i)];
    } else if (target.width() > 1) {
      column.name += "[" + std::to_string(i) + "]";
    }
    if (target.kind == TargetKind::kLabels) {
      column.kind = ColumnKind::kCategory;
      column.values = column.values.to(at::kLong);
      column.names = {"0", "1"};
    }
    table.targets.push_back(std::move(column));
  }
}

/// Marks inputs that hold the target's own past, such as lags. In samples all: an input is what
/// lies behind the row that is predicted, and the row that it stands in has another target.
void mark_past_targets(const Dataset& dataset, DescribedTable& table) {
  const auto* const origins =
      dataset.has_rows() ? dataset.provider().ask<ColumnOrigins>() : nullptr;
  std::vector<std::string> of_targets;
  for (const TargetSpec& target : dataset.spec().targets) {
    const std::vector<std::string> columns =
        origins != nullptr ? origins->of_target(target.name) : std::vector<std::string>();
    of_targets.insert(of_targets.end(), columns.begin(), columns.end());
  }
  for (DescribedColumn& column : table.inputs) {
    const std::vector<ColumnOrigin> made_of =
        origins != nullptr ? origins->of_input(column.name) : std::vector<ColumnOrigin>();
    column.is_past_target =
        dataset.samples() != nullptr ||
        std::any_of(made_of.begin(), made_of.end(), [&](const ColumnOrigin& origin) {
          return origin.steps_before > 0 &&
                 std::find(of_targets.begin(), of_targets.end(), origin.column) != of_targets.end();
        });
  }
}

/// Places in `rows` of those that are in the list, ascending.
at::Tensor places_of(const RowList& list, const at::Tensor& place) {
  const std::vector<std::int64_t> numbers = list.numbers();
  const at::Tensor places = place.index_select(0, at::tensor(numbers, at::kLong));
  return std::get<0>(places.masked_select(places.ge(0)).sort());
}

describe::RowParts parts_of(const DocumentComponents& components, const at::Tensor& place) {
  const Fold& fold = components.first_fold();
  const SampleReader* const samples = components.dataset().samples();
  RowList training = fold.training;
  RowList held_out = fold.validation.empty() ? fold.test : fold.validation;
  if (held_out.empty() || training.empty())
    return {};
  if (samples != nullptr) {
    training = touched_rows(*samples, training);
    const std::vector<std::int64_t> trained = training.numbers();
    const std::vector<std::int64_t> touched = touched_rows(*samples, held_out).numbers();
    std::vector<std::int64_t> only;
    std::set_difference(touched.begin(), touched.end(), trained.begin(), trained.end(),
                        std::back_inserter(only));
    held_out = RowList(std::move(only));
  }
  describe::RowParts parts{places_of(training, place), places_of(held_out, place)};
  const bool is_split = parts.training.size(0) > 0 && parts.validation.size(0) > 0;
  return is_split ? parts : describe::RowParts();
}

std::vector<std::int64_t> sample_of(std::int64_t rows, std::int64_t most) {
  std::vector<std::int64_t> chosen;
  if (rows > most) {
    chosen = random_permutation(rows, RandomStreams(describe::kDescriptionSeed).bits("described"));
    chosen.resize(static_cast<std::size_t>(most));
    std::sort(chosen.begin(), chosen.end());
  } else {
    chosen.resize(static_cast<std::size_t>(rows));
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  return chosen;
}

}  // namespace

DescribedRows described_rows(const DocumentComponents& components, std::int64_t most_rows) {
  const Dataset& dataset = components.dataset();
  const RowReader& reader = dataset.source();
  const DataSpec& spec = reader.spec();
  std::int64_t width = 1;
  for (const PortSpec& port : spec.inputs) {
    width += std::accumulate(
        port.shape.begin(), port.shape.end(), std::int64_t{1},
        [](std::int64_t all, std::int64_t size) { return all * std::max<std::int64_t>(size, 1); });
  }
  DescribedRows described;
  DescribedTable& table = described.table;
  table.rows_of_data = reader.rows();
  described.rows = sample_of(reader.rows(), std::min(most_rows, kMostDescribedValues / width + 1));
  if (dataset.is_stream()) {
    table.notes.push_back("the data can only be read in order: these are its first " +
                          std::to_string(reader.rows()) + " rows");
  }
  Batch batch;
  reader.gather(described.rows, batch);
  const auto flat = std::count_if(spec.inputs.begin(), spec.inputs.end(), is_flat);
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const PortSpec& port = spec.inputs[i];
    if (is_flat(port)) {
      add_input(port, batch.inputs[i], flat == 1, table);
    } else if (!port.is_auxiliary()) {
      table.notes.push_back(undescribed("input", port.name, port.shape));
      table.has_all_inputs = false;
    }
  }
  for (std::size_t i = 0; i < spec.targets.size(); ++i)
    add_target(spec.targets[i], batch.targets[i], table);
  mark_past_targets(dataset, table);
  at::Tensor place = at::full({reader.rows()}, -1, at::kLong);
  const at::Tensor chosen = at::tensor(described.rows, at::kLong);
  place.index_copy_(0, chosen, at::arange(chosen.size(0), at::kLong));
  table.parts = parts_of(components, place);
  if (const at::Tensor times = reader.timestamps(); times.defined()) {
    table.others.push_back({.name = "time",
                            .kind = ColumnKind::kTime,
                            .values = times.index_select(0, chosen).to(at::kDouble),
                            .is_date = spec.has_dates});
  }
  return described;
}

std::vector<std::string> notes_on_leaks(const DocumentComponents& components) {
  std::vector<std::string> notes;
  std::int64_t columns = 0;
  for (const PortSpec& port : components.dataset().source().spec().inputs)
    columns += is_flat(port) ? port.shape.front() : 0;
  if (columns > kMostColumnsForNotes)
    return notes;
  const DescribedTable table = described_rows(components, kMostRowsForNotes).table;
  std::vector<DescribedColumn> columns_and_times = table.inputs;
  columns_and_times.insert(columns_and_times.end(), table.others.begin(), table.others.end());
  for (const describe::Suspicion& suspicion :
       describe::find_suspicions(columns_and_times, table.targets, table.parts)) {
    // Times have a note of their own: notes_on_split().
    if (suspicion.kind != describe::SuspicionKind::kTime)
      notes.push_back("data: " + suspicion.text);
  }
  return notes;
}

}  // namespace treadle::internal
