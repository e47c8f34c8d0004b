#include <treadle/engine/batch_preparation.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::engine {
namespace {

bool is_bytes(const PortSpec& port) {
  return port.dtype == c10::ScalarType::Byte &&
         (port.role == Role::kImage || port.role == Role::kFeatures);
}

bool has_bytes(const DataSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), is_bytes);
}

/// Rows of a table, or windows of them. What else is of numbers, a signal or an image, is in the
/// type of its file, and is much larger.
bool is_of_table(const PortSpec& port) {
  return port.role == Role::kFeatures && !port.columns.empty();
}

/// Images, sequences: what is more than one number or one row of a table.
bool has_several_dimensions(const DataSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [](const PortSpec& port) { return port.shape.size() >= 2; });
}

/// Rounds to the nearest; not 0 where a number became infinite.
std::uint32_t round_number(double from, float& to) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  to = static_cast<float>(from);
  return static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(to) & kMagnitude) == kInfinity);
}

/// Whether a number became infinite. Both are contiguous.
bool round_to_float(const at::Tensor& from, const at::Tensor& to) {
  constexpr std::int64_t kBlock = 16;  // a number of rounds that compilers make vectors for
  const auto* const in = from.data_ptr<double>();
  auto* const out = to.data_ptr<float>();
  const std::int64_t count = from.numel();
  std::uint32_t is_infinite = 0;
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::int64_t k = 0; k < kBlock; ++k)
      is_infinite |= round_number(in[i + k], out[i + k]);
  }
  for (; i < count; ++i)
    is_infinite |= round_number(in[i], out[i]);
  return is_infinite != 0;
}

/// `what`: "input \"features\"". `columns`: of its last dimension, or empty. `rows` are those of
/// the batch.
[[noreturn]] void fail_too_large(const std::string& what, const std::vector<Column>& columns,
                                 const at::Tensor& values, const at::Tensor& rows) {
  const at::Tensor flat = values.contiguous().view({-1});
  const auto* const value = flat.data_ptr<double>();
  std::int64_t place = 0;
  while (place + 1 < flat.numel() && std::isfinite(static_cast<float>(value[place])))
    ++place;
  const std::int64_t row = place / std::max<std::int64_t>(1, flat.numel() / values.size(0));
  const bool has_columns =
      !columns.empty() && values.size(-1) == static_cast<std::int64_t>(columns.size());
  std::ostringstream text;
  text << (has_columns
               ? "column " +
                     quote_text(columns[static_cast<std::size_t>(place % values.size(-1))].name)
               : what)
       << ": " << value[place]
       << " is too large for float32; scale it with a transform such as \"standardize\", or set "
          "\"precision\": \"float64\"";
  throw NumberTooLarge(rows.data_ptr<std::int64_t>()[row], text.str());
}

/// Where `value` goes in another dtype: `memory`, where that fits.
at::Tensor fitting(at::Tensor memory, const at::Tensor& value, c10::ScalarType dtype) {
  const bool fits = memory.defined() && memory.scalar_type() == dtype &&
                    memory.sizes().equals(value.sizes()) && memory.device() == value.device() &&
                    memory.is_contiguous();
  return fits ? std::move(memory) : at::empty(value.sizes(), value.options().dtype(dtype));
}

/// Puts `to` in the place of `value`, which is kept if it is what was gathered.
void replace(at::Tensor& value, at::Tensor to, BatchPreparation::Memory::Converted* memory) {
  at::Tensor before = std::exchange(value, std::move(to));
  if (memory == nullptr)
    return;
  if (!memory->gathered.defined()) {
    memory->gathered = std::move(before);
  } else if (before.scalar_type() == at::kDouble) {
    memory->float64 = std::move(before);
  }
}

bool is_float64(const at::Tensor& value) {
  return value.defined() && value.scalar_type() == at::kDouble;
}

}  // namespace

NumberTooLarge::NumberTooLarge(std::int64_t row, const std::string& message)
    : DataError(message), row_(row) {}

NumberTooLarge::~NumberTooLarge() = default;

BatchPreparation::BatchPreparation(const DataSpec& data, std::vector<const Transform*> transforms,
                                   PreparationOptions options)
    : dtype_(options.dtype), groups_(std::move(options.groups)), spec_(data) {
  for (const PortSpec& port : data.inputs)
    is_table_.push_back(static_cast<char>(is_of_table(port)));
  if (!transforms.empty() || options.keeps_float64)
    add(Kind::kToFloat64);
  for (const Transform* const transform : transforms) {
    if (has_bytes(spec_) && !transform->takes_bytes())
      add(Kind::kBytesToNumbers);
    steps_.push_back({Kind::kTransform, transform});
    spec_ = transform->output_spec(spec_);
  }
  if (has_bytes(spec_))
    add(Kind::kBytesToNumbers);
  if (!options.keeps_float64)
    add(Kind::kRound);
  device_from_ = steps_.size();
  if (options.for_device && has_several_dimensions(data))
    find_device_part();
}

void BatchPreparation::add(Kind kind) {
  steps_.push_back({kind});
  for (PortSpec& port : spec_.inputs) {
    const bool is_real = c10::isFloatingType(port.dtype);
    if (kind == Kind::kToFloat64 && is_real && is_of_table(port))
      port.dtype = c10::ScalarType::Double;
    if ((kind == Kind::kRound && is_real) || (kind == Kind::kBytesToNumbers && is_bytes(port)))
      port.dtype = dtype_;
  }
}

/// The last run of steps that all work there. Numbers alone are rounded on the host: that halves
/// what is sent.
void BatchPreparation::find_device_part() {
  const auto works_on_device = [](const Step& step) {
    return step.kind != Kind::kTransform || step.transform->works_on_device();
  };
  while (device_from_ > 0 && works_on_device(steps_[device_from_ - 1]))
    --device_from_;
  const auto only_changes_dtype = [](const Step& step) {
    return step.kind == Kind::kRound || step.kind == Kind::kToFloat64;
  };
  if (std::all_of(steps_.begin() + static_cast<std::ptrdiff_t>(device_from_), steps_.end(),
                  only_changes_dtype))
    device_from_ = steps_.size();
}

void BatchPreparation::put_back(Batch& batch, Memory& memory) const {
  batch.mixture = {};
  const auto restore = [](at::Tensor& value, Memory::Converted& converted) {
    if (!converted.gathered.defined())
      return;
    converted.rounded = std::exchange(value, std::exchange(converted.gathered, at::Tensor()));
  };
  const auto restore_all = [&](std::vector<at::Tensor>& values,
                               std::vector<Memory::Converted>& converted) {
    if (values.size() != converted.size())
      converted.clear();
    for (std::size_t i = 0; i < converted.size(); ++i)
      restore(values[i], converted[i]);
  };
  restore_all(batch.inputs, memory.inputs);
  restore_all(batch.position_weights, memory.position_weights);
  restore(batch.weights, memory.weights);
  if (batch.original_targets.size() != memory.targets.size())
    memory.targets.clear();
  for (std::size_t i = 0; i < memory.targets.size(); ++i) {
    if (!batch.targets[i].is_same(batch.original_targets[i]))
      memory.targets[i].rounded = std::exchange(batch.targets[i], batch.original_targets[i]);
  }
}

void BatchPreparation::to_numbers(Batch& batch, Memory* memory) const {
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    at::Tensor& input = batch.inputs[i];
    if (input.scalar_type() != at::kByte)
      continue;
    Memory::Converted* const converted = memory != nullptr ? &memory->inputs[i] : nullptr;
    at::Tensor numbers =
        fitting(converted != nullptr ? std::move(converted->rounded) : at::Tensor(), input, dtype_);
    numbers.copy_(input);
    replace(input, std::move(numbers), converted);
  }
}

void BatchPreparation::to_float64(Batch& batch, Memory* memory) const {
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    at::Tensor& input = batch.inputs[i];
    if (is_table_[i] == 0 || !c10::isFloatingType(input.scalar_type()) || is_float64(input))
      continue;
    Memory::Converted* const converted = memory != nullptr ? &memory->inputs[i] : nullptr;
    at::Tensor wide = fitting(converted != nullptr ? std::move(converted->float64) : at::Tensor(),
                              input, at::kDouble);
    wide.copy_(input);
    replace(input, std::move(wide), converted);
  }
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    at::Tensor& target = batch.targets[i];
    if (!c10::isFloatingType(target.scalar_type()) || is_float64(target))
      continue;
    at::Tensor wide =
        fitting(memory != nullptr ? std::move(memory->targets[i].float64) : at::Tensor(), target,
                at::kDouble);
    wide.copy_(target);
    target = std::move(wide);  // metrics have the original
  }
}

void BatchPreparation::round(Batch& batch, Memory* memory) const {
  const auto rounded = [&](const at::Tensor& value, Memory::Converted* converted,
                           const auto& fail) {
    at::Tensor to =
        fitting(converted != nullptr ? std::move(converted->rounded) : at::Tensor(), value, dtype_);
    // On a device nothing is looked at: the host would have to wait.
    if (!value.device().is_cpu() || dtype_ != at::kFloat || !is_float64(value)) {
      to.copy_(value);
    } else if (round_to_float(value.contiguous(), to)) {
      fail();
    }
    return to;
  };
  const auto needs_rounding = [&](const at::Tensor& value) {
    return value.defined() && c10::isFloatingType(value.scalar_type()) &&
           value.scalar_type() != dtype_;
  };
  const bool is_of_spec = batch.inputs.size() == spec_.inputs.size();
  if (memory != nullptr)  // transforms may have made ports, and left some out
    memory->inputs.resize(batch.inputs.size());
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    at::Tensor& input = batch.inputs[i];
    if (!needs_rounding(input))
      continue;
    Memory::Converted* const converted = memory != nullptr ? &memory->inputs[i] : nullptr;
    replace(input,
            rounded(input, converted,
                    [&] {
                      fail_too_large("input " + quote_text(is_of_spec ? spec_.inputs[i].name : ""),
                                     is_of_spec ? spec_.inputs[i].columns : std::vector<Column>(),
                                     input, batch.rows);
                    }),
            converted);
  }
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    at::Tensor& target = batch.targets[i];
    if (!needs_rounding(target))
      continue;
    Memory::Converted* const converted = memory != nullptr ? &memory->targets[i] : nullptr;
    at::Tensor before = std::exchange(
        target, rounded(target, converted, [&] {
          fail_too_large("target " + quote_text(spec_.targets[i].name), {}, target, batch.rows);
        }));
    const bool is_original =
        i < batch.original_targets.size() && before.is_same(batch.original_targets[i]);
    if (converted != nullptr && !is_original)
      converted->float64 = std::move(before);
  }
  const auto round_weights = [&](at::Tensor& weights, Memory::Converted* converted) {
    if (needs_rounding(weights)) {
      replace(weights, rounded(weights, converted, [] {}), converted);
    }
  };
  for (std::size_t i = 0; i < batch.position_weights.size(); ++i)
    round_weights(batch.position_weights[i],
                  memory != nullptr ? &memory->position_weights[i] : nullptr);
  round_weights(batch.weights, memory != nullptr ? &memory->weights : nullptr);
}

void BatchPreparation::apply(std::size_t step, Batch& batch, const ApplyContext& context,
                             Memory* memory) const {
  switch (steps_[step].kind) {
    case Kind::kTransform:
      return steps_[step].transform->apply(batch, context);
    case Kind::kBytesToNumbers:
      return to_numbers(batch, memory);
    case Kind::kToFloat64:
      return to_float64(batch, memory);
    case Kind::kRound:
      return round(batch, memory);
  }
}

void BatchPreparation::before_transfer(Batch& batch, const ApplyContext& context,
                                       Memory& memory) const {
  if (groups_.defined())
    batch.groups = groups_.index_select(0, batch.rows);
  memory.inputs.resize(batch.inputs.size());
  memory.targets.resize(batch.targets.size());
  memory.position_weights.resize(batch.position_weights.size());
  for (std::size_t step = 0; step < device_from_; ++step)
    apply(step, batch, context, &memory);
  if (!has_device_part())
    batch.look_up_partners(dtype_);
}

void BatchPreparation::after_transfer(Batch& batch, const ApplyContext& context) const {
  ApplyContext on_device = context;
  on_device.tensors_only = true;
  for (std::size_t step = device_from_; step < steps_.size(); ++step)
    apply(step, batch, on_device, nullptr);
  batch.look_up_partners(dtype_);
}

std::int64_t BatchPreparation::growth_on_device(const Batch& batch) const {
  const auto does = [&](Kind kind) {
    return std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(device_from_), steps_.end(),
                       [kind](const Step& step) { return step.kind == kind; });
  };
  const bool makes_numbers = does(Kind::kBytesToNumbers);
  const bool widens = does(Kind::kToFloat64);
  std::int64_t growth = 0;
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    const at::Tensor& input = batch.inputs[i];
    const auto size = static_cast<std::int64_t>(input.element_size());
    if (makes_numbers && input.scalar_type() == at::kByte)
      growth += input.numel() * (static_cast<std::int64_t>(c10::elementSize(dtype_)) - size);
    if (widens && is_table_[i] != 0 && c10::isFloatingType(input.scalar_type()))
      growth += input.numel() * (static_cast<std::int64_t>(sizeof(double)) - size);
  }
  return growth;
}

at::Tensor BatchPreparation::inverted(at::Tensor predictions, std::string_view target,
                                      const at::Tensor& groups) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->transform != nullptr)
      predictions = step->transform->invert(predictions, target, groups);
  }
  return predictions;
}

}  // namespace treadle::engine
