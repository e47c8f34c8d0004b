#include "evaluation/picture_sample.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/host/explain/row_pictures.h>

namespace treadle::internal {

PictureSample::~PictureSample() = default;

bool PictureSample::is_for(const DataSpec& spec, const TargetSpec& target) {
  const bool has_images = std::any_of(
      spec.inputs.begin(), spec.inputs.end(),
      [](const PortSpec& port) { return port.role == Role::kImage && port.shape.size() == 3; });
  const bool is_single =
      target.positions().empty() && (target.kind == TargetKind::kClasses ||
                                     (target.kind == TargetKind::kNumbers && target.width() == 1));
  return has_images && is_single;
}

void PictureSample::choose_of(const RowList& rows) {
  chosen_.clear();
  const std::size_t count = std::min(rows.size(), kMostPictures);
  for (std::size_t i = 0; i < count; ++i)
    chosen_.push_back(rows[(2 * i + 1) * rows.size() / (2 * count)]);
  std::sort(chosen_.begin(), chosen_.end());
}

void PictureSample::do_start(const TargetSpec& target) {
  are_classes_ = target.kind == TargetKind::kClasses;
}

void PictureSample::do_reset() {
  shown_.clear();
}

void PictureSample::do_update(const Prediction& prediction, const TargetBatch& target) {
  const at::Tensor& rows = target.batch().rows;
  const auto* const row = rows.data_ptr<std::int64_t>();
  at::Tensor classes;
  for (std::int64_t i = 0; i < rows.numel(); ++i) {
    if (data_.rows == nullptr || !std::binary_search(chosen_.begin(), chosen_.end(), row[i]))
      continue;
    Batch image;
    data_.rows->gather({&row[i], 1}, image);
    Shown shown{explain::picture_of(data_.rows->spec(), image), {static_cast<double>(row[i])}};
    if (are_classes_) {
      if (!classes.defined())
        classes = decided(prediction);
      const auto predicted = classes[i].item<std::int64_t>();
      shown.numbers.insert(shown.numbers.end(),
                           {target.values()[i].item<double>(), static_cast<double>(predicted),
                            prediction.values[i][predicted].item<double>()});
    } else {
      shown.numbers.insert(shown.numbers.end(), {target.values()[i].item<double>(),
                                                 prediction.values[i].item<double>()});
    }
    shown_.push_back(std::move(shown));
  }
}

void PictureSample::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const PictureSample&>(other);
  shown_.insert(shown_.end(), theirs.shown_.begin(), theirs.shown_.end());
}

MetricResult PictureSample::do_compute() const {
  if (shown_.empty())
    return {};
  MetricTable table;
  table.name = kTable;
  table.column_labels = {"row", "actual", "predicted"};
  if (are_classes_)
    table.column_labels.emplace_back("probability");
  const std::size_t count = std::min(shown_.size(), kMostPictures);
  table.values = at::empty({static_cast<std::int64_t>(count), columns()}, at::kDouble);
  auto* values = table.values.data_ptr<double>();
  for (std::size_t i = 0; i < count; ++i) {
    // Of more, as folds have them together, again some that are evenly spread.
    const Shown& shown = shown_[(2 * i + 1) * shown_.size() / (2 * count)];
    table.row_labels.push_back(shown.picture);
    values = std::copy(shown.numbers.begin(), shown.numbers.end(), values);
  }
  return {{}, {std::move(table)}};
}

StateDict PictureSample::do_state() const {
  nlohmann::json pictures = nlohmann::json::array();
  at::Tensor numbers =
      at::empty({static_cast<std::int64_t>(shown_.size()), columns()}, at::kDouble);
  auto* to = numbers.data_ptr<double>();
  for (const Shown& shown : shown_) {
    pictures.push_back(shown.picture);
    to = std::copy(shown.numbers.begin(), shown.numbers.end(), to);
  }
  StateDict state;
  state.put("pictures", std::move(pictures));
  state.put("numbers", std::move(numbers));
  return state;
}

void PictureSample::do_load_state(const StateDict& state) {
  const auto pictures = state.value("pictures").get<std::vector<std::string>>();
  const at::Tensor& numbers = state.tensor("numbers");
  const auto rows = static_cast<std::int64_t>(pictures.size());
  if (numbers.scalar_type() != at::kDouble ||
      numbers.sizes() != at::IntArrayRef(std::array{rows, columns()}))
    throw StorageError("the saved pictures belong to another target");
  shown_.clear();
  const auto* from = numbers.data_ptr<double>();
  for (const std::string& picture : pictures) {
    shown_.push_back({picture, {from, from + columns()}});
    from += columns();
  }
}

}  // namespace treadle::internal
