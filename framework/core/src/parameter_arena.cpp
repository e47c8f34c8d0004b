#include <treadle/core/parameter_arena.h>

#include <unordered_map>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>

namespace treadle {

/// A parameter that lives in the arena, and what was true of its gradient when it was zeroed.
struct ParameterArena::Parameter {
  at::Tensor tensor;            // the module's own handle
  at::Tensor gradient;          // view into the block; `tensor.grad()` while adopted
  void* data = nullptr;         // where tensor's data must be
  std::size_t segment = 0;
  std::uint32_t clean_version = 0;  // version of `gradient` after zero_gradients()
};

namespace {

constexpr std::int64_t kAlignment = 64;  // bytes: a cache line, and the widest vector register

std::int64_t padded(std::int64_t elements, std::int64_t element_size) {
  const std::int64_t step = kAlignment / element_size;
  return (elements + step - 1) / step * step;
}

/// A view with a version counter of its own. Views made by as_strided share the block's counter, and then a write to one segment
/// would look like a write to all.
at::Tensor separate_view(const at::Tensor& block, const Segment& segment) {
  const at::NoGradGuard no_gradients;
  at::Tensor view = at::empty({0}, block.options());
  std::vector<std::int64_t> strides(segment.shape.size(), 1);
  for (std::size_t i = segment.shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * segment.shape[i];
  }
  view.set_(block.storage(), segment.offset, segment.shape, strides);
  return view;
}

void expect_same_kind(const at::Tensor& parameter, const std::string& name,
                      const at::Tensor& first, const std::string& first_name) {
  if (parameter.scalar_type() != at::kFloat && parameter.scalar_type() != at::kDouble) {
    throw TrainingError("parameter \"" + name + "\" has dtype " +
                        c10::toString(parameter.scalar_type()) + "; expected float32 or float64");
  }
  if (parameter.scalar_type() != first.scalar_type() || parameter.device() != first.device()) {
    throw TrainingError("parameter \"" + name + "\" is " + c10::toString(parameter.scalar_type()) +
                        " on " + parameter.device().str() + ", but \"" + first_name + "\" is " +
                        c10::toString(first.scalar_type()) + " on " + first.device().str() +
                        "; one model has one dtype and device");
  }
}

}  // namespace

ParameterArena::ParameterArena(torch::nn::Module& module) {
  const auto named = module.named_parameters(/*recurse=*/true);
  if (named.is_empty()) {
    throw TrainingError("the model has no parameters: there is nothing to train");
  }
  const auto& first = named[0];
  const std::int64_t element_size = static_cast<std::int64_t>(first.value().element_size());
  std::unordered_map<const c10::TensorImpl*, std::size_t> segment_of;
  std::int64_t offset = 0;
  for (const auto& item : named) {
    const at::Tensor& tensor = item.value();
    expect_same_kind(tensor, item.key(), first.value(), first.key());
    if (segment_of.contains(tensor.unsafeGetTensorImpl())) continue;  // tied
    segment_of.emplace(tensor.unsafeGetTensorImpl(), segments_.size());
    segments_.push_back({item.key(), tensor.sizes().vec(), offset, tensor.numel(),
                         !tensor.requires_grad(), false});
    parameters_.push_back({tensor, {}, nullptr, segments_.size() - 1, 0});
    offset += padded(tensor.numel(), element_size);
  }
  // One allocation more than needed, so that the first segment can start on a boundary whatever the
  // allocator returned.
  const auto options = first.value().options().requires_grad(false);
  const auto aligned_zeros = [&](std::int64_t count) {
    const std::int64_t step = kAlignment / element_size;
    at::Tensor block = at::zeros({count + step}, options);
    const auto address = reinterpret_cast<std::uintptr_t>(block.data_ptr());
    const auto past = static_cast<std::int64_t>(address % kAlignment) / element_size;
    return block.narrow(0, past == 0 ? 0 : step - past, count);
  };
  flat_ = aligned_zeros(offset);
  gradients_ = aligned_zeros(offset);

  const at::NoGradGuard no_gradients;
  for (Parameter& parameter : parameters_) {
    const Segment& segment = segments_[parameter.segment];
    at::Tensor view = this->parameter(segment);
    view.copy_(parameter.tensor);
    parameter.tensor.set_data(view);
    parameter.data = parameter.tensor.data_ptr();
    parameter.gradient = separate_view(gradients_, {segment.name, segment.shape,
                                                    gradients_.storage_offset() + segment.offset,
                                                    segment.size, false, false});
  }
  zero_gradients();
}

ParameterArena::~ParameterArena() = default;
ParameterArena::ParameterArena(ParameterArena&&) noexcept = default;
ParameterArena& ParameterArena::operator=(ParameterArena&&) noexcept = default;

std::int64_t ParameterArena::parameter_count() const {
  std::int64_t count = 0;
  for (const Segment& segment : segments_) count += segment.size;
  return count;
}

std::int64_t ParameterArena::bytes() const {
  return static_cast<std::int64_t>(flat_.nbytes() + gradients_.nbytes());
}

at::Tensor ParameterArena::parameter(const Segment& segment) const {
  return flat_.narrow(0, segment.offset, segment.size).view(segment.shape);
}

at::Tensor ParameterArena::gradient(const Segment& segment) const {
  return gradients_.narrow(0, segment.offset, segment.size).view(segment.shape);
}

void ParameterArena::zero_gradients() {
  const at::NoGradGuard no_gradients;
  gradients_.zero_();
  for (Parameter& parameter : parameters_) {
    Segment& segment = segments_[parameter.segment];
    segment.touched = false;
    segment.frozen = !parameter.tensor.requires_grad();
    if (!segment.frozen && !parameter.tensor.grad().is_same(parameter.gradient)) {
      parameter.tensor.mutable_grad() = parameter.gradient;
    }
    parameter.clean_version = static_cast<std::uint32_t>(parameter.gradient._version());
  }
}

void ParameterArena::collect() {
  const at::NoGradGuard no_gradients;
  for (Parameter& parameter : parameters_) {
    Segment& segment = segments_[parameter.segment];
    if (parameter.tensor.data_ptr() != parameter.data) {
      throw TrainingError("parameter \"" + segment.name +
                          "\" was moved out of the parameter arena during the step (by to(), "
                          "set_data() or an assignment); change a model's parameters in place");
    }
    const at::Tensor& gradient = parameter.tensor.grad();
    if (gradient.defined() && gradient.data_ptr() != parameter.gradient.data_ptr()) {
      parameter.gradient.copy_(gradient);
      parameter.tensor.mutable_grad() = parameter.gradient;
    }
    segment.frozen = !parameter.tensor.requires_grad();
    segment.touched = static_cast<std::uint32_t>(parameter.gradient._version()) !=
                      parameter.clean_version;
  }
}

}  // namespace treadle
