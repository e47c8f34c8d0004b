#include "predict/prediction_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/ops/arange.h>
#include <c10/util/accumulate.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using Place = PredictionWriter::Place;

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).contiguous();
}

/// By their columns' names, those that are known.
std::vector<std::pair<const char*, at::Tensor>> uncertainties_of(const Prediction& prediction) {
  std::vector<std::pair<const char*, at::Tensor>> known;
  const Prediction::Uncertainty& all = prediction.uncertainty;
  for (const auto& [name, values] :
       {std::pair{"total", all.total}, std::pair{"aleatoric", all.aleatoric},
        std::pair{"epistemic", all.epistemic}}) {
    if (values.defined())
      known.emplace_back(name, wide(values));
  }
  return known;
}

template <typename Number, typename From>
std::vector<Number> picked(const at::Tensor& values, std::int64_t width, std::int64_t k,
                           std::span<const Place> places) {
  const From* const first = values.data_ptr<From>() + k;
  std::vector<Number> chosen;
  chosen.reserve(places.size());
  for (const Place& place : places)
    chosen.push_back(static_cast<Number>(first[place.in_batch * width]));
  return chosen;
}

/// Names that no other column has: "x", "x (2)".
void make_unique(std::vector<TableWriter::Column>& columns) {
  std::set<std::string> taken;
  for (TableWriter::Column& column : columns) {
    const std::string name = column.name;
    for (int i = 2; !taken.insert(column.name).second; ++i)
      column.name = name + " (" + std::to_string(i) + ")";
  }
}

}  // namespace

void TableChunk::add(std::string name, TableWriter::Values of_rows) {
  columns.push_back({std::move(name), static_cast<TableWriter::Column::Type>(of_rows.index())});
  values.push_back(std::move(of_rows));
}

/// A prediction as it is written: converted once for a batch.
struct PredictionWriter::Shown {
  Shown(const Prediction& prediction, TargetKind kind)
      : values(wide(prediction.values)),
        decision(prediction.decision),
        uncertainties(uncertainties_of(prediction)),
        computed_in(prediction.values.scalar_type()) {
    if (kind == TargetKind::kClasses || kind == TargetKind::kLabels) {
      Prediction of_kind = prediction;
      of_kind.kind = kind;
      decided = treadle::decided(of_kind).to(at::kLong).contiguous();
    }
    for (const Prediction::Extra& extra : prediction.extras)
      extras.emplace_back(extra.name, wide(extra.values));
    for (std::int64_t i = 0; prediction.samples.defined() && i < prediction.samples.size(0); ++i)
      samples.push_back(wide(prediction.samples[i]));
  }

  /// Column `k` of [B, positions..., width], in the precision that it was computed in: more digits
  /// would be invented.
  TableWriter::Values numbers(const at::Tensor& of, std::int64_t width, std::int64_t k,
                              std::span<const Place> places) const {
    if (computed_in == at::kDouble)
      return picked<double, double>(of, width, k, places);
    return picked<float, double>(of, width, k, places);
  }

  at::Tensor values;    // float64 [B, positions..., width]
  at::Tensor decision;  // as the prediction has it
  at::Tensor decided;   // int64 [B, positions...] of classes, [B, positions..., C] of labels
  std::vector<std::pair<std::string, at::Tensor>> extras;
  std::vector<at::Tensor> samples;
  // Of classes and distributions [B, positions...].
  std::vector<std::pair<const char*, at::Tensor>> uncertainties;
  at::ScalarType computed_in;
};

PredictionWriter::PredictionWriter(TableWriter& table, const std::vector<TargetSpec>& targets,
                                   const std::vector<PortSpec>& inputs, Contents contents)
    : table_(table), targets_(targets), contents_(contents) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].role == Role::kLengths && inputs[i].of == targets.front().padded_like)
      lengths_ = i;
  }
  for (const TargetSpec& target : targets) {
    if (target.positions() != targets.front().positions()) {
      throw UsageError("the targets \"" + targets.front().name + "\" and \"" + target.name +
                       "\" have different positions, so one table cannot hold both; predict "
                       "from a program (treadle::Predictor)");
    }
  }
}

void PredictionWriter::keep(std::vector<std::string> names,
                            std::vector<std::vector<std::string>> texts) {
  kept_names_ = std::move(names);
  kept_ = std::move(texts);
}

void PredictionWriter::write(const Predictions& predictions, const Batch& batch) {
  std::vector<Shown> shown;
  at::Tensor crosses;
  for (std::size_t target = 0; target < predictions.size(); ++target) {
    shown.emplace_back(predictions[target], targets_[target].kind);
    if (const at::Tensor& of_target = predictions[target].crossed; of_target.defined())
      crosses = crosses.defined() ? crosses.logical_or(of_target) : of_target;
  }
  const at::IntArrayRef sizes = shown.front().values.sizes();
  const at::Tensor real = real_positions(batch, sizes.slice(0, sizes.size() - 1));
  const std::vector<Place> places = places_of(batch, sizes, real);
  TableChunk predicted;
  for (std::size_t target = 0; target < predictions.size(); ++target)
    add_target(target, shown[target], places, predicted);
  if (predicted.columns.empty())
    return;
  if (crosses.defined()) {
    crossed_ += (real.defined() ? crosses.logical_and_(real) : crosses).sum().item<std::int64_t>();
  }
  TableChunk chunk;
  add_places(places, sizes.slice(1, sizes.size() - 2), chunk);
  if (labels_)
    labels_(places, chunk);
  add_kept(places, predicted, chunk);
  for (std::size_t i = 0; i < predicted.columns.size(); ++i)
    chunk.add(std::move(predicted.columns[i].name), std::move(predicted.values[i]));
  if (!has_written_) {
    make_unique(chunk.columns);
    table_.open(std::move(chunk.columns));
    has_written_ = true;
  }
  table_.write(chunk.values);
}

void PredictionWriter::close() {
  if (has_written_)
    table_.close();
}

std::string PredictionWriter::column(std::size_t target, const std::string& what) const {
  return targets_.size() == 1 ? what : targets_[target].name + "/" + what;
}

/// Whether there is a column for each value of the prediction.
bool PredictionWriter::shows_values(const TargetSpec& target) const {
  switch (contents_) {
    case Contents::kTargets:
      return target.kind != TargetKind::kClasses;
    case Contents::kDistribution:
      return target.kind == TargetKind::kClasses || target.kind == TargetKind::kLabels;
    case Contents::kAll:
      break;
  }
  return true;
}

/// Classes have a column of their own; that of labels repeats what a half decides.
bool PredictionWriter::shows_decisions(const TargetSpec& target, const at::Tensor& decision) const {
  return target.kind == TargetKind::kLabels && decision.defined() && contents_ == Contents::kAll;
}

bool PredictionWriter::shows_rows() const {
  return contents_ == Contents::kAll || targets_.front().position_dimensions() > 0;
}

/// True where a position is no padding, [B, positions...]; undefined where none is.
at::Tensor PredictionWriter::real_positions(const Batch& batch, at::IntArrayRef sizes) const {
  if (!lengths_)
    return {};
  at::Tensor real =
      at::arange(sizes[1], at::kLong).unsqueeze(0).lt(batch.inputs[*lengths_].unsqueeze(1));
  while (real.dim() < static_cast<std::int64_t>(sizes.size()))
    real = real.unsqueeze(-1);
  return real.expand(sizes).contiguous();
}

std::vector<Place> PredictionWriter::places_of(const Batch& batch, at::IntArrayRef sizes,
                                               const at::Tensor& real) const {
  const std::int64_t per_row = c10::multiply_integers(sizes.slice(1, sizes.size() - 2));
  const std::int64_t* const rows = batch.rows.data_ptr<std::int64_t>();
  const bool* const is_real = real.defined() ? real.data_ptr<bool>() : nullptr;
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(sizes[0] * per_row));
  for (std::int64_t i = 0; i < sizes[0] * per_row; ++i) {
    if (is_real == nullptr || is_real[i])
      places.push_back({rows[i / per_row], i % per_row, i});
  }
  return places;
}

void PredictionWriter::add_places(std::span<const Place> places, at::IntArrayRef positions,
                                  TableChunk& chunk) const {
  const auto add = [&](std::string name, auto&& of_place) {
    std::vector<std::int64_t> values;
    values.reserve(places.size());
    for (const Place& place : places)
      values.push_back(of_place(place));
    chunk.add(std::move(name), std::move(values));
  };
  if (shows_rows())
    add("row", [](const Place& place) { return place.row; });
  for (std::size_t d = 0; d < positions.size(); ++d) {
    const std::int64_t behind = c10::multiply_integers(positions.slice(d + 1));
    add(positions.size() == 1 ? "position" : "position." + std::to_string(d),
        [&](const Place& place) { return place.position / behind % positions[d]; });
  }
}

void PredictionWriter::add_kept(std::span<const Place> places, const TableChunk& predicted,
                                TableChunk& chunk) const {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::string& name = kept_names_[i];
    std::vector<std::string> texts;
    texts.reserve(places.size());
    for (const Place& place : places)
      texts.push_back(kept_[i].at(static_cast<std::size_t>(place.row)));
    const bool is_taken =
        std::any_of(predicted.columns.begin(), predicted.columns.end(),
                    [&](const TableWriter::Column& column) { return column.name == name; });
    chunk.add(is_taken ? name + " (data)" : name, std::move(texts));
  }
}

void PredictionWriter::add_target(std::size_t target, const Shown& shown,
                                  std::span<const Place> places, TableChunk& chunk) const {
  if (targets_[target].kind == TargetKind::kNumbers) {
    add_numbers(target, shown, places, chunk);
  } else {
    add_classes(target, shown, places, chunk);
  }
}

void PredictionWriter::add_numbers(std::size_t target, const Shown& shown,
                                   std::span<const Place> places, TableChunk& chunk) const {
  const TargetSpec& spec = targets_[target];
  const std::int64_t width = spec.width();
  for (std::int64_t k = 0; k < width; ++k) {
    const std::string name = width == 1 ? spec.name : spec.name + "." + std::to_string(k);
    const auto add = [&](const std::string& column, const at::Tensor& values) {
      chunk.add(column, shown.numbers(values, width, k, places));
    };
    if (shows_values(spec))
      add(name, shown.values);
    if (contents_ == Contents::kTargets)
      continue;
    for (const auto& [what, values] : shown.extras)
      add(name + "." + what, values);
    for (std::size_t s = 0; s < shown.samples.size(); ++s)
      add(name + ".sample_" + std::to_string(s), shown.samples[s]);
    for (const auto& [what, values] : shown.uncertainties)
      add(name + "." + what, values);
  }
}

/// Of classes, labels and distributions.
void PredictionWriter::add_classes(std::size_t target, const Shown& shown,
                                   std::span<const Place> places, TableChunk& chunk) const {
  const TargetSpec& spec = targets_[target];
  const bool is_named_as_data = contents_ == Contents::kTargets;
  const bool are_labels = spec.kind == TargetKind::kLabels;
  if (spec.kind == TargetKind::kClasses && contents_ != Contents::kDistribution) {
    std::vector<std::string> classes;
    classes.reserve(places.size());
    for (const auto index : picked<std::size_t, std::int64_t>(shown.decided, 1, 0, places))
      classes.push_back(spec.class_names[index]);
    chunk.add(is_named_as_data ? spec.name : column(target, "predicted"), std::move(classes));
  }
  if (!shows_values(spec))
    return;
  const std::int64_t width = shown.values.size(-1);
  for (std::int64_t k = 0; k < width; ++k) {
    const std::string& name = spec.class_names[static_cast<std::size_t>(k)];
    const auto add = [&](const std::string& what, const at::Tensor& values) {
      chunk.add(column(target, what + "(" + name + ")"), shown.numbers(values, width, k, places));
    };
    const auto decisions = [&] {
      return picked<std::int64_t, std::int64_t>(shown.decided, width, k, places);
    };
    if (is_named_as_data) {
      chunk.add(name, are_labels ? TableWriter::Values(decisions())
                                 : shown.numbers(shown.values, width, k, places));
      continue;
    }
    add("p", shown.values);
    if (shows_decisions(spec, shown.decision))
      chunk.add(column(target, "predicted(" + name + ")"), decisions());
    for (const auto& [what, values] : shown.extras)
      add(what, values);
    for (const auto& [what, values] : shown.uncertainties) {
      if (are_labels)
        add(what, values);
    }
  }
  // Of classes and distributions there is one for each position.
  for (const auto& [what, values] : shown.uncertainties) {
    if (!are_labels && !is_named_as_data)
      chunk.add(column(target, what), shown.numbers(values, 1, 0, places));
  }
}

}  // namespace treadle::internal
