#include "predict/prediction_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <ATen/ops/arange.h>
#include <c10/util/accumulate.h>

#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>

namespace treadle::internal {
namespace {

void add_position(std::int64_t place, at::IntArrayRef positions, std::string& text) {
  std::vector<std::int64_t> index(positions.size());
  for (std::size_t i = positions.size(); i-- > 0; place /= positions[i])
    index[i] = place % positions[i];
  for (const std::int64_t at : index)
    text += "," + std::to_string(at);
}

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).contiguous();
}

}  // namespace

std::string number_text(double value, at::ScalarType computed_in) {
  std::array<char, 32> digits;
  char* const begin = digits.data();
  char* const limit = begin + digits.size();
  const auto end = computed_in == at::kDouble
                       ? std::to_chars(begin, limit, value).ptr
                       : std::to_chars(begin, limit, static_cast<float>(value)).ptr;
  return {begin, end};
}

PredictionWriter::PredictionWriter(FileWriter& file, const std::vector<TargetSpec>& targets,
                                   const std::vector<PortSpec>& inputs, Contents contents)
    : file_(file), targets_(targets), contents_(contents) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].role == Role::kLengths && inputs[i].of == targets.front().padded_like)
      lengths_ = i;
  }
  for (const TargetSpec& target : targets) {
    if (target.positions() != targets.front().positions()) {
      throw UsageError("the targets \"" + targets.front().name + "\" and \"" + target.name +
                       "\" have different positions, so one CSV file cannot hold both; predict "
                       "from a program (treadle::Predictor)");
    }
  }
}

void PredictionWriter::keep(std::vector<std::string> names,
                            std::vector<std::vector<std::string>> texts) {
  kept_names_ = std::move(names);
  kept_ = std::move(texts);
}

void PredictionWriter::label(std::vector<std::string> names, Labels labels) {
  label_names_ = std::move(names);
  labels_ = std::move(labels);
}

void PredictionWriter::write(const Predictions& predictions, const Batch& batch) {
  if (!has_header_) {
    const std::vector<std::string> columns = predicted_columns(predictions);
    if (columns.empty())
      return;
    write_header(columns);
  }
  std::vector<Shown> shown;
  at::Tensor crosses;
  for (std::size_t target = 0; target < predictions.size(); ++target) {
    shown.emplace_back(predictions[target], targets_[target].kind);
    if (const at::Tensor& of_target = predictions[target].crossed; of_target.defined())
      crosses = crosses.defined() ? crosses.logical_or(of_target) : of_target;
  }
  const at::IntArrayRef sizes = shown.front().values.sizes();
  const at::IntArrayRef positions = sizes.slice(1, sizes.size() - 2);
  const std::int64_t per_row = c10::multiply_integers(positions);
  const at::Tensor real = real_positions(batch, sizes.slice(0, sizes.size() - 1));
  if (crosses.defined()) {
    crossed_ += (real.defined() ? crosses.logical_and_(real) : crosses).sum().item<std::int64_t>();
  }
  const std::int64_t* rows = batch.rows.data_ptr<std::int64_t>();
  const bool with_rows = shows_rows();
  std::string text;
  std::string line;  // "," in front of each field
  for (std::int64_t place = 0; place < sizes[0] * per_row; ++place) {
    if (real.defined() && !real.data_ptr<bool>()[place])
      continue;
    const std::int64_t row = rows[place / per_row];
    line.clear();
    if (with_rows)
      line += "," + std::to_string(row);
    add_position(place % per_row, positions, line);
    add_labels(row, place % per_row, line);
    for (const std::vector<std::string>& column : kept_)
      line += "," + csv_field(column.at(static_cast<std::size_t>(row)));
    for (std::size_t target = 0; target < predictions.size(); ++target)
      add_target(target, shown[target], place, line);
    text.append(line, 1).append("\n");
  }
  file_.write(text);
}

PredictionWriter::Uncertainties PredictionWriter::uncertainties_of(const Prediction& prediction) {
  Uncertainties known;
  const Prediction::Uncertainty& all = prediction.uncertainty;
  for (const auto& [name, values] :
       {std::pair{"total", all.total}, std::pair{"aleatoric", all.aleatoric},
        std::pair{"epistemic", all.epistemic}}) {
    if (values.defined())
      known.emplace_back(name, values);
  }
  return known;
}

PredictionWriter::Shown::Shown(const Prediction& prediction, TargetKind kind)
    : values(wide(prediction.values)),
      decision(prediction.decision),
      computed_in(prediction.values.scalar_type()) {
  if (kind == TargetKind::kClasses || kind == TargetKind::kLabels) {
    Prediction of_kind = prediction;
    of_kind.kind = kind;
    decided = treadle::decided(of_kind).to(at::kLong).contiguous();
  }
  for (const Prediction::Extra& extra : prediction.extras)
    extras.push_back(wide(extra.values));
  for (std::int64_t i = 0; prediction.samples.defined() && i < prediction.samples.size(0); ++i)
    samples.push_back(wide(prediction.samples[i]));
  for (const auto& [name, of_prediction] : uncertainties_of(prediction))
    uncertainties.emplace_back(name, wide(of_prediction));
}

std::string PredictionWriter::column(std::size_t target, const std::string& what) const {
  return targets_.size() == 1 ? what : targets_[target].name + "/" + what;
}

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

std::vector<std::string> PredictionWriter::predicted_columns(const Predictions& predictions) const {
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const TargetSpec& target = targets_[i];
    if (target.kind == TargetKind::kNumbers) {
      for (std::int64_t k = 0; k < target.width(); ++k) {
        const std::string name =
            target.width() == 1 ? target.name : target.name + "." + std::to_string(k);
        if (shows_values(target))
          columns.push_back(name);
        if (contents_ == Contents::kTargets)
          continue;
        for (const Prediction::Extra& extra : predictions[i].extras)
          columns.push_back(name + "." + extra.name);
        const at::Tensor& samples = predictions[i].samples;
        for (std::int64_t s = 0; samples.defined() && s < samples.size(0); ++s)
          columns.push_back(name + ".sample_" + std::to_string(s));
        for (const auto& [what, of_number] : uncertainties_of(predictions[i]))
          columns.push_back(name + "." + what);
      }
      continue;
    }
    const bool is_named_as_data = contents_ == Contents::kTargets;
    if (target.kind == TargetKind::kClasses && contents_ != Contents::kDistribution)
      columns.push_back(is_named_as_data ? target.name : column(i, "predicted"));
    if (!shows_values(target))
      continue;
    for (const std::string& name : target.class_names) {
      columns.push_back(is_named_as_data ? name : column(i, "p(" + name + ")"));
      if (is_named_as_data)
        continue;
      if (shows_decisions(target, predictions[i].decision))
        columns.push_back(column(i, "predicted(" + name + ")"));
      for (const Prediction::Extra& extra : predictions[i].extras)
        columns.push_back(column(i, extra.name + "(" + name + ")"));
      for (const auto& [what, of_label] : uncertainties_of(predictions[i])) {
        if (target.kind == TargetKind::kLabels)
          columns.push_back(column(i, what + ("(" + name + ")")));
      }
    }
    for (const auto& [what, of_position] : uncertainties_of(predictions[i])) {
      if (target.kind != TargetKind::kLabels && !is_named_as_data)
        columns.push_back(column(i, what));
    }
  }
  return columns;
}

void PredictionWriter::write_header(const std::vector<std::string>& columns) {
  std::string header;  // "," in front of each field
  if (shows_rows())
    header += ",row";
  const std::size_t dimensions = targets_.front().position_dimensions();
  for (std::size_t i = 0; i < dimensions; ++i)
    header += dimensions == 1 ? ",position" : ",position." + std::to_string(i);
  for (const std::string& name : label_names_)
    header += "," + name;
  for (const std::string& name : kept_names_) {
    const bool is_taken = std::find(columns.begin(), columns.end(), name) != columns.end();
    header += "," + csv_field(is_taken ? name + " (data)" : name);
  }
  for (const std::string& name : columns)
    header += "," + csv_field(name);
  file_.write(header.substr(1) + "\n");
  has_header_ = true;
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

void PredictionWriter::add_labels(std::int64_t row, std::int64_t position,
                                  std::string& text) const {
  if (!labels_)
    return;
  std::vector<std::string> texts;
  labels_(row, position, texts);
  for (const std::string& one : texts)
    text += "," + csv_field(one);
}

void PredictionWriter::add_target(std::size_t target, const Shown& shown, std::int64_t place,
                                  std::string& text) const {
  const std::int64_t width = shown.values.size(-1);
  const double* const here = shown.values.data_ptr<double>() + place * width;
  const TargetSpec& spec = targets_[target];
  if (spec.kind == TargetKind::kClasses && contents_ != Contents::kDistribution) {
    const auto index = static_cast<std::size_t>(shown.decided.data_ptr<std::int64_t>()[place]);
    text += "," + csv_field(spec.class_names[index]);
  }
  // Else one for each number or label.
  const bool has_one_uncertainty =
      spec.kind == TargetKind::kClasses || spec.kind == TargetKind::kDistribution;
  const bool with_values = shows_values(spec);
  const bool is_answer = spec.kind == TargetKind::kLabels && contents_ == Contents::kTargets;
  const bool with_decisions = shows_decisions(spec, shown.decision);
  for (std::int64_t k = 0; k < width; ++k) {
    if (with_values && !is_answer)
      text += "," + number_text(here[k], shown.computed_in);
    if (is_answer || with_decisions)
      text += shown.decided.data_ptr<std::int64_t>()[place * width + k] != 0 ? ",1" : ",0";
    if (contents_ == Contents::kTargets)
      continue;
    for (const std::vector<at::Tensor>* const more : {&shown.extras, &shown.samples}) {
      for (const at::Tensor& values : *more)
        text += "," + number_text(values.data_ptr<double>()[place * width + k], shown.computed_in);
    }
    if (!has_one_uncertainty)
      add_uncertainties(shown, place * width + k, text);
  }
  if (has_one_uncertainty && contents_ != Contents::kTargets)
    add_uncertainties(shown, place, text);
}

void PredictionWriter::add_uncertainties(const Shown& shown, std::int64_t place,
                                         std::string& text) {
  for (const auto& [name, values] : shown.uncertainties)
    text += "," + number_text(values.data_ptr<double>()[place], shown.computed_in);
}

}  // namespace treadle::internal
