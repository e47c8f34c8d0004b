#include <treadle/engine/batch_preparation.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

namespace treadle::engine {
namespace {

bool is_bytes(const PortSpec& port) {
  return port.dtype == c10::ScalarType::Byte &&
         (port.role == Role::kImage || port.role == Role::kFeatures);
}

bool has_bytes(const DataSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), is_bytes);
}

/// Images, sequences: what is more than one number or one row of a table.
bool has_several_dimensions(const DataSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [](const PortSpec& port) { return port.shape.size() >= 2; });
}

}  // namespace

BatchPreparation::BatchPreparation(const DataSpec& data, std::vector<const Transform*> transforms,
                                   PreparationOptions options)
    : dtype_(options.dtype), groups_(std::move(options.groups)), spec_(data) {
  const auto add_numbers = [&] {
    steps_.push_back(nullptr);
    for (PortSpec& port : spec_.inputs) {
      if (is_bytes(port))
        port.dtype = dtype_;
    }
  };
  for (const Transform* const transform : transforms) {
    if (has_bytes(spec_) && !transform->takes_bytes())
      add_numbers();
    steps_.push_back(transform);
    spec_ = transform->output_spec(spec_);
  }
  if (has_bytes(spec_))
    add_numbers();

  device_from_ = steps_.size();
  if (!options.for_device || !has_several_dimensions(data))
    return;
  const auto works_on_device = [](const Transform* step) {
    return step == nullptr || step->works_on_device();
  };
  while (device_from_ > 0 && works_on_device(steps_[device_from_ - 1]))
    --device_from_;
}

void BatchPreparation::put_back(Batch& batch, Memory& memory) const {
  if (batch.inputs.size() != memory.bytes.size())
    memory = Memory();
  for (std::size_t i = 0; i < memory.bytes.size(); ++i) {
    if (memory.bytes[i].defined()) {
      memory.numbers[i] =
          std::exchange(batch.inputs[i], std::exchange(memory.bytes[i], at::Tensor()));
    }
  }
}

void BatchPreparation::to_numbers(Batch& batch, Memory* memory) const {
  if (memory != nullptr) {
    memory->bytes.resize(batch.inputs.size());
    memory->numbers.resize(batch.inputs.size());
  }
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    at::Tensor& input = batch.inputs[i];
    if (input.scalar_type() != at::kByte)
      continue;
    if (memory == nullptr) {
      input = input.to(dtype_);
      continue;
    }
    at::Tensor numbers = std::move(memory->numbers[i]);
    if (!numbers.defined() || !numbers.sizes().equals(input.sizes()) ||
        numbers.scalar_type() != dtype_)
      numbers = at::empty(input.sizes(), input.options().dtype(dtype_));
    numbers.copy_(input);
    memory->bytes[i] = std::exchange(input, std::move(numbers));
  }
}

void BatchPreparation::apply(std::size_t step, Batch& batch, const ApplyContext& context,
                             Memory* memory) const {
  if (steps_[step] == nullptr) {
    to_numbers(batch, memory);
  } else {
    steps_[step]->apply(batch, context);
  }
}

void BatchPreparation::before_transfer(Batch& batch, const ApplyContext& context,
                                       Memory& memory) const {
  if (groups_.defined())
    batch.groups = groups_.index_select(0, batch.rows);
  for (std::size_t step = 0; step < device_from_; ++step)
    apply(step, batch, context, &memory);
}

void BatchPreparation::after_transfer(Batch& batch, const ApplyContext& context) const {
  ApplyContext on_device = context;
  on_device.tensors_only = true;
  for (std::size_t step = device_from_; step < steps_.size(); ++step)
    apply(step, batch, on_device, nullptr);
}

std::int64_t BatchPreparation::growth_on_device(const Batch& batch) const {
  std::int64_t growth = 0;
  const auto end = steps_.end();
  if (std::find(steps_.begin() + static_cast<std::ptrdiff_t>(device_from_), end, nullptr) == end)
    return growth;
  for (const at::Tensor& input : batch.inputs) {
    if (input.scalar_type() == at::kByte)
      growth += input.numel() * static_cast<std::int64_t>(c10::elementSize(dtype_) - 1);
  }
  return growth;
}

at::Tensor BatchPreparation::inverted(at::Tensor predictions, std::string_view target,
                                      const at::Tensor& groups) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (*step != nullptr)
      predictions = (*step)->invert(predictions, target, groups);
  }
  return predictions;
}

}  // namespace treadle::engine
