#include <treadle/core/training/parameter_arena.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_set>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <treadle/base/error.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/sum_tree.h>

namespace treadle {

std::string_view name_of(ParameterRole role) {
  constexpr std::array<std::string_view, 5> kNames{"hidden", "stack", "table", "output", "tied"};
  return kNames.at(static_cast<std::size_t>(role));
}

/// What the arena has taken from the module.
struct ParameterArena::Adopted {
  /// A parameter that lives in the arena, and what was true of it when it was last looked at.
  struct Parameter {
    at::Tensor tensor;     // the module's own handle
    at::Tensor gradient;   // view into a block; `tensor.grad()` while adopted
    void* data = nullptr;  // where tensor's data must be
    std::size_t segment = 0;
    std::uint32_t clean_version = 0;  // version of `gradient` after zero_gradients()
    std::uint32_t known_version = 0;  // version of `tensor` that the master knows
  };
  std::vector<Parameter> parameters;
  // Laid out like parameters() and gradients(); undefined without masters.
  at::Tensor narrow;  // shared with the replicas
  at::Tensor narrow_gradients;
};

namespace {

bool has_16_bits(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

std::uint32_t version_of(const at::Tensor& tensor) {
  return static_cast<std::uint32_t>(tensor._version());
}

constexpr std::int64_t kAlignment = 64;  // bytes: a cache line, and the widest vector register

std::int64_t padded(std::int64_t elements, std::int64_t element_size, std::int64_t alignment) {
  const std::int64_t step = std::lcm(kAlignment / element_size, alignment);
  return (elements + step - 1) / step * step;
}

at::Tensor view_of(const at::Tensor& block, const Segment& segment) {
  return block.narrow(0, segment.offset, segment.size).view(segment.shape);
}

/// A view with a version counter of its own. Views made by as_strided share the block's counter,
/// and then a write to one segment would look like a write to all.
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

void expect_same_kind(const at::Tensor& parameter, const std::string& name, const at::Tensor& first,
                      const std::string& first_name) {
  if (parameter.scalar_type() != at::kFloat && parameter.scalar_type() != at::kDouble &&
      !has_16_bits(parameter)) {
    throw TrainingError("parameter \"" + name + "\" has dtype " +
                        c10::toString(parameter.scalar_type()) +
                        "; expected float32, float64, bfloat16 or float16");
  }
  if (parameter.scalar_type() != first.scalar_type() || parameter.device() != first.device()) {
    throw TrainingError("parameter \"" + name + "\" is " + c10::toString(parameter.scalar_type()) +
                        " on " + parameter.device().str() + ", but \"" + first_name + "\" is " +
                        c10::toString(first.scalar_type()) + " on " + first.device().str() +
                        "; one model has one dtype and device");
  }
}

/// Elements from the first segment to the end of the last one's padding.
std::int64_t size_of(const std::vector<Segment>& segments, std::int64_t element_size,
                     std::int64_t alignment) {
  return segments.empty()
             ? 0
             : segments.back().offset + padded(segments.back().size, element_size, alignment);
}

/// [count] zeros on the device of `like`, starting on a boundary whatever the allocator returned.
at::Tensor aligned_zeros(std::int64_t count, const at::Tensor& like, at::ScalarType dtype) {
  const auto element_size = static_cast<std::int64_t>(c10::elementSize(dtype));
  const std::int64_t step = kAlignment / element_size;
  at::Tensor block = at::zeros({count + step}, like.options().dtype(dtype).requires_grad(false));
  const auto address = reinterpret_cast<std::uintptr_t>(block.data_ptr());
  const auto past = static_cast<std::int64_t>(address % kAlignment) / element_size;
  return block.narrow(0, past == 0 ? 0 : step - past, count);
}

using RolesByTensor = std::map<const c10::TensorImpl*, ParameterRole>;

ParameterRole role_in(const RolesByTensor& roles, const at::Tensor& parameter) {
  const auto found = roles.find(parameter.unsafeGetTensorImpl());
  return found == roles.end() ? ParameterRole::kHidden : found->second;
}

/// Of parameters that are not kHidden. Modules around a module come before it.
RolesByTensor roles_in(const torch::nn::Module& module) {
  RolesByTensor roles;
  const auto add = [&](const at::Tensor& parameter, ParameterRole role) {
    const auto [at, is_new] = roles.emplace(parameter.unsafeGetTensorImpl(), role);
    if (!is_new && role == ParameterRole::kTable)
      at->second = role;
  };
  const auto add_all = [&](const torch::nn::Module& one) {
    if (const auto* const names = dynamic_cast<const NamesParameterRoles*>(&one)) {
      for (const auto& [parameter, role] : names->parameter_roles())
        add(parameter, role);
    }
    if (const auto* const table = dynamic_cast<const torch::nn::EmbeddingImpl*>(&one))
      add(table->weight, ParameterRole::kTable);
  };
  add_all(module);
  for (const auto& inner : module.modules(/*include_self=*/false))
    add_all(*inner);
  std::map<const c10::TensorImpl*, std::size_t> names;
  const at::Tensor* last_matrix = nullptr;
  const auto named = module.named_parameters(/*recurse=*/true);
  for (const auto& item : named) {
    if (++names[item.value().unsafeGetTensorImpl()] == 2)
      add(item.value(), ParameterRole::kTied);
    if (item.value().dim() >= 2 && role_in(roles, item.value()) != ParameterRole::kTable)
      last_matrix = &item.value();
  }
  const bool has_outputs = std::any_of(roles.begin(), roles.end(), [](const auto& one) {
    return one.second == ParameterRole::kOutput;
  });
  if (!has_outputs && last_matrix != nullptr && dynamic_cast<const Model*>(&module) != nullptr)
    add(*last_matrix, ParameterRole::kOutput);
  return roles;
}

/// Adds some elements of several terms by the tree of middle_of().
template <typename T>
class TreeSum {
 public:
  static constexpr std::int64_t kElements = 512;

  explicit TreeSum(const std::vector<at::Tensor>& terms) : terms_(terms) {}

  /// Elements [begin, begin + count) of the terms, of which the first is the sum as well.
  void add(std::int64_t begin, std::int64_t count) {
    begin_ = begin;
    count_ = count;
    add(0, terms_.size(), terms_[0].template data_ptr<T>() + begin, 0);
  }

 private:
  // Enough for 2^kDepth terms.
  static constexpr std::size_t kDepth = 12;

  /// `sum` is the first term.
  void add(std::size_t first, std::size_t last, T* __restrict sum, std::size_t depth) {
    if (last - first < 2)
      return;
    const std::size_t middle = middle_of({first, last});
    add(first, middle, sum, depth);
    const T* __restrict right = terms_[middle].template data_ptr<T>() + begin_;
    if (last - middle > 1) {
      T* const memory = memory_[depth].data();
      std::copy_n(right, count_, memory);
      add(middle, last, memory, depth + 1);
      right = memory;
    }
    if (count_ == kElements) {  // a number that compilers make vectors for
      for (std::int64_t i = 0; i < kElements; ++i)
        sum[i] += right[i];
      return;
    }
    for (std::int64_t i = 0; i < count_; ++i)
      sum[i] += right[i];
  }

  const std::vector<at::Tensor>& terms_;
  std::int64_t begin_ = 0;
  std::int64_t count_ = 0;
  std::array<std::array<T, kElements>, kDepth> memory_;
};

template <typename T>
void add(const std::vector<at::Tensor>& terms, std::int64_t begin, std::int64_t end) {
  TreeSum<T> sum(terms);
  for (std::int64_t i = begin; i < end; i += sum.kElements)
    sum.add(i, std::min(sum.kElements, end - i));
}

/// The same by whole tensors, where they are on a device.
at::Tensor sum_of(const std::vector<at::Tensor>& terms, std::size_t first, std::size_t last) {
  if (last - first < 2)
    return terms[first];
  const std::size_t middle = middle_of({first, last});
  return sum_of(terms, first, middle).add(sum_of(terms, middle, last));
}

}  // namespace

std::vector<Segment> segments_of(const torch::nn::Module& module) {
  std::vector<Segment> segments;
  std::unordered_set<const c10::TensorImpl*> seen;
  const RolesByTensor roles = roles_in(module);
  for (const auto& item : module.named_parameters(/*recurse=*/true)) {
    const at::Tensor& tensor = item.value();
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) {
      segments.push_back({item.key(), tensor.sizes().vec(), 0, tensor.numel(),
                          !tensor.requires_grad(), false, role_in(roles, tensor)});
    }
  }
  return segments;
}

ParameterArena::ParameterArena(torch::nn::Module& module, std::int64_t alignment)
    : alignment_(alignment), adopted_(std::make_unique<Adopted>()) {
  lay_out(module);
  const at::Tensor first =
      adopted_->parameters.empty() ? at::zeros({0}) : adopted_->parameters.front().tensor;
  const std::int64_t size =
      size_of(segments_, static_cast<std::int64_t>(first.element_size()), alignment_);
  const bool narrow = has_16_bits(first);
  flat_ = aligned_zeros(size, first, narrow ? at::kFloat : first.scalar_type());
  if (narrow)
    adopted_->narrow = aligned_zeros(size, first, first.scalar_type());
  adopt(/*copy_values=*/true);
}

ParameterArena::ParameterArena(torch::nn::Module& replica, const ParameterArena& primary)
    : alignment_(primary.alignment_), adopted_(std::make_unique<Adopted>()) {
  lay_out(replica);
  const auto same = [](const Segment& a, const Segment& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  const auto [mine, its] = std::mismatch(segments_.begin(), segments_.end(),
                                         primary.segments_.begin(), primary.segments_.end(), same);
  if (mine != segments_.end() || its != primary.segments_.end()) {
    const auto named = [](const auto& at, const std::vector<Segment>& all) {
      return at == all.end() ? std::string("nothing")
                             : "\"" + at->name + "\" " + c10::str(c10::IntArrayRef(at->shape));
    };
    throw TrainingError("a replica of the model differs from it: where the model has parameter " +
                        named(its, primary.segments_) + ", the replica has " +
                        named(mine, segments_) +
                        "; a model provider must create the same structure every time");
  }
  flat_ = primary.flat_;
  adopted_->narrow = primary.adopted_->narrow;
  adopt(/*copy_values=*/false);
}

/// Finds the parameters and gives each its place.
void ParameterArena::lay_out(torch::nn::Module& module) {
  const auto named = module.named_parameters(/*recurse=*/true);
  if (named.is_empty())
    return;
  const auto& first = named[0];
  const std::int64_t element_size = static_cast<std::int64_t>(first.value().element_size());
  std::unordered_set<const c10::TensorImpl*> seen;
  const RolesByTensor roles = roles_in(module);
  std::int64_t offset = 0;
  for (const auto& item : named) {
    const at::Tensor& tensor = item.value();
    expect_same_kind(tensor, item.key(), first.value(), first.key());
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second)
      continue;  // tied
    segments_.push_back({item.key(), tensor.sizes().vec(), offset, tensor.numel(),
                         !tensor.requires_grad(), false, role_in(roles, tensor)});
    adopted_->parameters.push_back({tensor, {}, nullptr, segments_.size() - 1});
    offset += padded(tensor.numel(), element_size, alignment_);
  }
}

/// Points the parameters, and their gradients, into the blocks.
void ParameterArena::adopt(bool copy_values) {
  const at::Tensor& like = flat_;
  gradients_ = aligned_zeros(size(), like, dtype());
  if (has_masters()) {
    adopted_->narrow_gradients = aligned_zeros(size(), like, adopted_->narrow.scalar_type());
  }
  const at::Tensor& its_parameters = has_masters() ? adopted_->narrow : flat_;
  const at::Tensor& its_gradients = has_masters() ? adopted_->narrow_gradients : gradients_;
  const at::NoGradGuard no_gradients;
  for (Adopted::Parameter& parameter : adopted_->parameters) {
    const Segment& segment = segments_[parameter.segment];
    at::Tensor view = view_of(its_parameters, segment);
    if (copy_values)
      view.copy_(parameter.tensor);
    parameter.tensor.set_data(view);
    parameter.data = parameter.tensor.data_ptr();
    parameter.known_version = version_of(parameter.tensor);
    parameter.gradient =
        separate_view(its_gradients,
                      {segment.name, segment.shape, its_gradients.storage_offset() + segment.offset,
                       segment.size, false, false});
  }
  if (copy_values && has_masters())
    flat_.copy_(adopted_->narrow);
  zero_gradients();
}

ParameterArena::~ParameterArena() = default;
ParameterArena::ParameterArena(ParameterArena&&) noexcept = default;
ParameterArena& ParameterArena::operator=(ParameterArena&&) noexcept = default;

std::int64_t ParameterArena::parameter_count() const {
  std::int64_t count = 0;
  for (const Segment& segment : segments_)
    count += segment.size;
  return count;
}

std::int64_t ParameterArena::bytes() const {
  const std::size_t own = flat_.nbytes() + gradients_.nbytes();
  return static_cast<std::int64_t>(
      has_masters() ? own + adopted_->narrow.nbytes() + adopted_->narrow_gradients.nbytes() : own);
}

bool ParameterArena::has_masters() const {
  return adopted_->narrow.defined();
}

at::Tensor ParameterArena::parameter(const Segment& segment) const {
  return view_of(flat_, segment);
}

at::Tensor ParameterArena::gradient(const Segment& segment) const {
  return view_of(gradients_, segment);
}

at::Tensor ParameterArena::narrow_parameter(const Segment& segment) const {
  TREADLE_EXPECTS(has_masters(), "parameters of 32 bits and more are the arena's own");
  return view_of(adopted_->narrow, segment);
}

void ParameterArena::write_back() {
  if (!has_masters())
    return;
  const at::NoGradGuard no_gradients;
  adopted_->narrow.copy_(flat_);
  for (Adopted::Parameter& parameter : adopted_->parameters) {
    parameter.known_version = version_of(parameter.tensor);
  }
}

void ParameterArena::zero_gradients() {
  const at::NoGradGuard no_gradients;
  gradients_.zero_();
  if (has_masters())
    adopted_->narrow_gradients.zero_();
  for (Adopted::Parameter& parameter : adopted_->parameters) {
    Segment& segment = segments_[parameter.segment];
    segment.touched = false;
    segment.frozen = !parameter.tensor.requires_grad();
    if (!segment.frozen && !parameter.tensor.grad().is_same(parameter.gradient)) {
      parameter.tensor.mutable_grad() = parameter.gradient;
    }
    parameter.clean_version = version_of(parameter.gradient);
  }
}

void ParameterArena::collect() {
  const at::NoGradGuard no_gradients;
  for (Adopted::Parameter& parameter : adopted_->parameters) {
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
    segment.touched = version_of(parameter.gradient) != parameter.clean_version;
    if (has_masters() && version_of(parameter.tensor) != parameter.known_version) {
      this->parameter(segment).copy_(parameter.tensor);
      parameter.known_version = version_of(parameter.tensor);
    }
  }
  if (has_masters())
    gradients_.copy_(adopted_->narrow_gradients);
}

void ParameterArena::freeze_like(const ParameterArena& primary) {
  for (std::size_t i = 0; i < adopted_->parameters.size(); ++i) {
    at::Tensor& mine = adopted_->parameters[i].tensor;
    const bool trains = primary.adopted_->parameters[i].tensor.requires_grad();
    if (mine.requires_grad() != trains)
      mine.set_requires_grad(trains);
  }
}

void ParameterArena::add_gradients(std::span<const ParameterArena* const> replicas,
                                   const Ranges& for_ranges) {
  std::vector<at::Tensor> terms{gradients_};
  for (const ParameterArena* replica : replicas) {
    for (std::size_t i = 0; i < segments_.size(); ++i)
      segments_[i].touched = segments_[i].touched || replica->segments_[i].touched;
    terms.push_back(replica->gradients_);
  }
  if (terms.size() < 2)
    return;
  if (!gradients_.is_cpu()) {
    const at::NoGradGuard no_gradients;
    gradients_.copy_(sum_of(terms, 0, terms.size()));
    return;
  }
  for_ranges(size(), [&](std::int64_t begin, std::int64_t end) {
    dtype() == at::kFloat ? add<float>(terms, begin, end) : add<double>(terms, begin, end);
  });
}

void ParameterArena::touch(const std::vector<bool>& segments) {
  TREADLE_EXPECTS(segments.size() == segments_.size(), "there is one entry for each segment");
  for (std::size_t i = 0; i < segments_.size(); ++i)
    segments_[i].touched = segments_[i].touched || segments[i];
}

void ParameterArena::with_only(const std::vector<bool>& members,
                               const std::function<void()>& work) {
  TREADLE_EXPECTS(members.size() == segments_.size(), "there is one entry for each segment");
  std::vector<bool> touched(segments_.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    touched[i] = segments_[i].touched;
    segments_[i].touched = touched[i] && members[i];
  }
  const auto put_back = [&] {
    for (std::size_t i = 0; i < segments_.size(); ++i)
      segments_[i].touched = touched[i];
  };
  try {
    work();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

}  // namespace treadle
