#include "image_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>

namespace treadle::images {
namespace {

/// The memory that is there, where it fits.
void make_fit(at::Tensor& out, std::vector<std::int64_t> shape, at::ScalarType dtype) {
  const bool fits = out.defined() && out.scalar_type() == dtype && out.sizes().equals(shape) &&
                    out.is_contiguous();
  if (!fits)
    out = at::empty(shape, dtype);
}

std::vector<std::int64_t> shape_for(std::size_t rows, at::IntArrayRef of_row) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows)};
  shape.insert(shape.end(), of_row.begin(), of_row.end());
  return shape;
}

/// Pixels that do not count are of class 0.
void copy_mask(const std::int16_t* from, std::size_t count, std::int64_t* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = std::max<std::int16_t>(from[i], 0);
}

void copy_weights(const std::int16_t* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = from[i] == kNoPixel ? 0.0F : 1.0F;
}

}  // namespace

/// A workspace for as long as a batch is decoded.
class ImageRows::Borrowed {
 public:
  explicit Borrowed(const ImageRows& rows) : rows_(rows) {
    const std::lock_guard lock(rows.mutex_);
    if (!rows.idle_.empty()) {
      workspace_ = std::move(rows.idle_.back());
      rows.idle_.pop_back();
    }
    if (!workspace_)
      workspace_ = std::make_unique<Workspace>();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    const std::lock_guard lock(rows_.mutex_);
    rows_.idle_.push_back(std::move(workspace_));
  }

  Workspace& operator*() const { return *workspace_; }

 private:
  const ImageRows& rows_;
  std::unique_ptr<Workspace> workspace_;
};

ImageRows::ImageRows(Parts parts) : parts_(std::move(parts)) {
  const std::int64_t channels = parts_.form.channels();
  image_bytes_ = static_cast<std::size_t>(channels * parts_.size.width * parts_.size.height);
  cached_ = std::min(parts_.cache_bytes / image_bytes_, parts_.files.size());
  if (cached_ == 0)
    return;
  cache_ = at::empty(
      {static_cast<std::int64_t>(cached_), channels, parts_.size.height, parts_.size.width},
      at::kByte);
  states_ = std::make_unique<std::atomic<std::uint8_t>[]>(cached_);
}

ImageRows::~ImageRows() = default;

void ImageRows::decode_image(std::int64_t row, Workspace& workspace, std::uint8_t* to) const {
  const auto index = static_cast<std::size_t>(row);
  try {
    const FileStamp stamp =
        read_file(parts_.files[index], most_bytes_of(parts_.form.max_pixels), workspace.bytes);
    if (stamp != parts_.stamps[index])
      throw BadImage("has changed since the data was opened");
    workspace.maker.make_image(workspace.bytes, parts_.form, parts_.size, to);
  } catch (const BadImage& problem) {
    throw DataError(do_describe_row(row) + ": " + problem.what());
  }
}

void ImageRows::put_image(std::int64_t row, Workspace& workspace, std::uint8_t* to) const {
  const auto index = static_cast<std::size_t>(row);
  if (index >= cached_)
    return decode_image(row, workspace, to);
  std::uint8_t* const kept = cache_.data_ptr<std::uint8_t>() + index * image_bytes_;
  std::atomic<std::uint8_t>& state = states_[index];
  if (state.load(std::memory_order_acquire) == kFilled) {
    std::memcpy(to, kept, image_bytes_);
    return;
  }
  decode_image(row, workspace, to);
  std::uint8_t expected = kEmpty;
  if (!state.compare_exchange_strong(expected, kFilling, std::memory_order_acquire))
    return;  // another thread has it, too
  std::memcpy(kept, to, image_bytes_);
  state.store(kFilled, std::memory_order_release);
}

void ImageRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  out.inputs.resize(1);
  make_fit(out.inputs[0], shape_for(rows.size(), parts_.spec.inputs[0].shape), at::kByte);
  if (!rows.empty()) {
    const Borrowed workspace(*this);
    auto* to = out.inputs[0].data_ptr<std::uint8_t>();
    for (const std::int64_t row : rows) {
      put_image(row, *workspace, to);
      to += image_bytes_;
    }
  }
  const std::vector<ImageTarget>& targets = parts_.targets;
  const bool weighs = std::any_of(targets.begin(), targets.end(),
                                  [](const ImageTarget& target) { return target.has_ignored; });
  out.targets.resize(targets.size());
  out.position_weights.resize(weighs ? targets.size() : 0);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].is_mask) {
      gather_mask(targets[i], rows, i, out);
    } else {
      gather_rows(targets[i].values, out.rows, out.targets[i]);
      if (weighs)
        out.position_weights[i] = at::Tensor();
    }
  }
  out.weights = at::Tensor();
}

void ImageRows::gather_mask(const ImageTarget& target, std::span<const std::int64_t> rows,
                            std::size_t index, Batch& out) const {
  const std::vector<std::int64_t> shape = shape_for(rows.size(), target.values.sizes().slice(1));
  const auto pixels = static_cast<std::size_t>(parts_.size.width * parts_.size.height);
  const auto* const masks = target.values.data_ptr<std::int16_t>();
  at::Tensor& values = out.targets[index];
  make_fit(values, shape, at::kLong);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    copy_mask(masks + static_cast<std::size_t>(rows[i]) * pixels, pixels,
              values.data_ptr<std::int64_t>() + i * pixels);
  }
  if (out.position_weights.empty())
    return;
  at::Tensor& weights = out.position_weights[index];
  if (!target.has_ignored) {
    weights = at::Tensor();
    return;
  }
  make_fit(weights, shape, at::kFloat);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    copy_weights(masks + static_cast<std::size_t>(rows[i]) * pixels, pixels,
                 weights.data_ptr<float>() + i * pixels);
  }
}

at::Tensor ImageRows::do_targets(std::size_t target) const {
  const ImageTarget& of = parts_.targets[target];
  if (!of.is_mask)
    return of.values;
  at::Tensor values = at::empty(of.values.sizes(), at::kLong);
  copy_mask(of.values.data_ptr<std::int16_t>(), static_cast<std::size_t>(values.numel()),
            values.data_ptr<std::int64_t>());
  return values;
}

at::Tensor ImageRows::do_position_weights(std::size_t target) const {
  const ImageTarget& of = parts_.targets[target];
  if (!of.has_ignored)
    return {};
  at::Tensor weights = at::empty(of.values.sizes(), at::kFloat);
  copy_weights(of.values.data_ptr<std::int16_t>(), static_cast<std::size_t>(weights.numel()),
               weights.data_ptr<float>());
  return weights;
}

std::string ImageRows::do_describe_row(std::int64_t row) const {
  const auto index = static_cast<std::size_t>(row);
  return parts_.places.empty() ? shown_path(parts_.files[index]) : parts_.places[index];
}

}  // namespace treadle::images
