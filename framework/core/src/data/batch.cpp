#include <treadle/core/data/batch.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/util/accumulate.h>

#include <treadle/base/error.h>
#include <treadle/core/data/data_spec.h>

namespace treadle {
namespace {

/// [B] as [B, 1, ...], to multiply with weights of positions.
at::Tensor beside(const at::Tensor& rows, std::int64_t dimensions) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dimensions), 1);
  sizes[0] = rows.size(0);
  return rows.view(sizes);
}

}  // namespace

at::Tensor join_padded(std::span<const at::Tensor> parts) {
  TREADLE_EXPECTS(!parts.empty(), "nothing cannot be joined");
  std::vector<std::int64_t> longest = parts[0].sizes().vec();
  for (const at::Tensor& part : parts) {
    TREADLE_EXPECTS(part.dim() == parts[0].dim(), "parts of the same data have as many dimensions");
    for (std::size_t d = 1; d < longest.size(); ++d)
      longest[d] = std::max(longest[d], part.sizes()[d]);
  }
  std::vector<at::Tensor> padded(parts.begin(), parts.end());
  for (at::Tensor& part : padded) {
    std::vector<std::int64_t> missing;  // as constant_pad_nd has it: the last dimension first
    for (std::size_t d = longest.size() - 1; d >= 1; --d) {
      missing.push_back(0);
      missing.push_back(longest[d] - part.sizes()[d]);
    }
    if (std::any_of(missing.begin(), missing.end(), [](std::int64_t count) { return count > 0; }))
      part = at::constant_pad_nd(part, missing);
  }
  return at::cat(padded);
}

void Batch::look_up_partners(c10::ScalarType dtype) {
  if (mixture.is_empty())
    return;
  TREADLE_EXPECTS(mixture.partners.defined() && mixture.partners.size(0) == size() &&
                      mixture.shares.size(0) == size(),
                  "mixed rows have a share and a partner each");
  const at::Tensor partners = std::exchange(mixture.partners, at::Tensor());
  const auto of_partners = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.index_select(0, partners.to(tensor.device())) : tensor;
  };
  mixture.shares = mixture.shares.to(dtype);
  const auto partners_of_each = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> theirs;
    for (const at::Tensor& tensor : tensors)
      theirs.push_back(of_partners(tensor));
    for (const std::size_t target : mixture.mixed_targets) {
      if (target < tensors.size())
        theirs[target] = tensors[target];
    }
    return theirs;
  };
  mixture.targets = partners_of_each(targets);
  mixture.position_weights = partners_of_each(position_weights);
  mixture.weights = of_partners(weights);
}

std::array<Batch, 2> Batch::unmixed() const {
  TREADLE_EXPECTS(!mixture.is_empty() && !mixture.partners.defined(),
                  "partners are looked up before losses are computed");
  const auto shared = [](const at::Tensor& each, const at::Tensor& shares) {
    return each.defined() ? each.mul(shares) : shares;
  };
  std::array<Batch, 2> both = {*this, *this};
  for (Batch& one : both)
    one.mixture = {};
  both[0].weights = shared(weights, mixture.shares);
  both[1].targets = mixture.targets;
  both[1].position_weights = mixture.position_weights;
  both[1].weights = shared(mixture.weights, mixture.shares.neg().add(1));
  return both;
}

Batch Batch::slice(std::int64_t begin, std::int64_t count) const {
  TREADLE_EXPECTS(!mixture.partners.defined(), "partners are looked up before a batch is sliced");
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  const auto cut_each = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    parts.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors)
      parts.push_back(cut(tensor));
    return parts;
  };
  Batch part;
  part.inputs = cut_each(inputs);
  part.targets = cut_each(targets);
  part.original_targets.reserve(original_targets.size());
  for (std::size_t i = 0; i < original_targets.size(); ++i) {
    part.original_targets.push_back(
        original_targets[i].is_same(targets[i]) ? part.targets[i] : cut(original_targets[i]));
  }
  part.position_weights = cut_each(position_weights);
  part.weights = cut(weights);
  part.rows = cut(rows);
  part.groups = cut(groups);
  part.mixture = {cut(mixture.shares),
                  {},
                  mixture.mixed_targets,
                  cut_each(mixture.targets),
                  cut_each(mixture.position_weights),
                  cut(mixture.weights)};
  return part;
}

Batch Batch::to(c10::Device device) const {
  const bool goes_on = !device.is_cpu();  // a copy to the host is complete when it is returned
  return with_each(
      [&](const at::Tensor& tensor) { return tensor.to(device, /*non_blocking=*/goes_on); });
}

Batch Batch::with_each(const std::function<at::Tensor(const at::Tensor&)>& change) const {
  const auto changed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? change(tensor) : tensor;
  };
  Batch result;
  for (const at::Tensor& input : inputs)
    result.inputs.push_back(changed(input));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    result.targets.push_back(changed(targets[i]));
    result.original_targets.push_back(
        original_targets[i].is_same(targets[i]) ? result.targets[i] : changed(original_targets[i]));
  }
  for (const at::Tensor& each : position_weights)
    result.position_weights.push_back(changed(each));
  result.weights = changed(weights);
  result.rows = rows;
  result.groups = groups;
  result.mixture.shares = changed(mixture.shares);
  result.mixture.partners = changed(mixture.partners);
  result.mixture.mixed_targets = mixture.mixed_targets;
  for (const at::Tensor& target : mixture.targets)
    result.mixture.targets.push_back(changed(target));
  for (const at::Tensor& each : mixture.position_weights)
    result.mixture.position_weights.push_back(changed(each));
  result.mixture.weights = changed(mixture.weights);
  return result;
}

Batch Batch::join(std::span<const Batch> parts) {
  TREADLE_EXPECTS(!parts.empty(), "nothing cannot be joined");
  const auto join_one = [&](const auto& tensor_of) {
    std::vector<at::Tensor> pieces;
    for (const Batch& part : parts) {
      const at::Tensor& tensor = tensor_of(part);
      TREADLE_EXPECTS(tensor.defined() == tensor_of(parts[0]).defined(),
                      "parts of the same data have the same tensors");
      if (tensor.defined())
        pieces.push_back(tensor);
    }
    return pieces.empty() ? at::Tensor() : join_padded(pieces);
  };
  const auto join_each = [&](std::vector<at::Tensor> Batch::*member) {
    std::vector<at::Tensor> joined;
    for (std::size_t i = 0; i < (parts[0].*member).size(); ++i) {
      joined.push_back(join_one([&](const Batch& part) -> const at::Tensor& {
        TREADLE_EXPECTS((part.*member).size() == (parts[0].*member).size(),
                        "parts of the same data have the same tensors");
        return (part.*member)[i];
      }));
    }
    return joined;
  };
  for (const Batch& part : parts)
    TREADLE_EXPECTS(part.mixture.is_empty(), "mixed rows are not joined");
  Batch all;
  all.inputs = join_each(&Batch::inputs);
  all.targets = join_each(&Batch::targets);
  for (std::size_t i = 0; i < parts[0].original_targets.size(); ++i) {
    const bool changed = std::any_of(parts.begin(), parts.end(), [&](const Batch& part) {
      return !part.original_targets[i].is_same(part.targets[i]);
    });
    all.original_targets.push_back(changed ? join_one([&](const Batch& part) -> const at::Tensor& {
      return part.original_targets[i];
    })
                                           : all.targets[i]);
  }
  all.position_weights = join_each(&Batch::position_weights);
  all.weights = join_one([](const Batch& part) -> const at::Tensor& { return part.weights; });
  all.rows = join_one([](const Batch& part) -> const at::Tensor& { return part.rows; });
  all.groups = join_one([](const Batch& part) -> const at::Tensor& { return part.groups; });
  return all;
}

TargetBatch TargetBatch::transformed(const Batch& batch, std::size_t target,
                                     const TargetSpec& spec) {
  TREADLE_EXPECTS(target < batch.targets.size(), "the batch has no such target");
  return {batch, target, batch.targets[target], spec};
}

TargetBatch TargetBatch::original(const Batch& batch, std::size_t target, const TargetSpec& spec) {
  TREADLE_EXPECTS(target < batch.original_targets.size(), "the batch has no such target");
  return {batch, target, batch.original_targets[target], spec};
}

TargetBatch TargetBatch::repeated(std::int64_t times) const {
  const auto repeat = [times](const at::Tensor& of_rows) {
    if (!of_rows.defined())
      return of_rows;
    std::vector<std::int64_t> sizes = of_rows.sizes().vec();
    sizes.insert(sizes.begin() + 1, times);
    return of_rows.unsqueeze(1).expand(sizes).flatten(0, 1);
  };
  return {batch_, repeat(values_), repeat(weights_), dimensions_, positions_ * times};
}

TargetBatch TargetBatch::slice_positions(std::int64_t begin, std::int64_t count) const {
  const auto slice = [&](const at::Tensor& of_positions) {
    return of_positions.defined() ? of_positions.flatten(0, dimensions_ - 1).narrow(0, begin, count)
                                  : of_positions;
  };
  return {batch_, slice(values_), slice(weights_), 1, count};
}

TargetBatch::TargetBatch(const Batch& batch, std::size_t target, const at::Tensor& values,
                         const TargetSpec& spec)
    : batch_(batch), values_(values) {
  dimensions_ = static_cast<std::int64_t>(spec.position_dimensions()) + 1;
  TREADLE_EXPECTS(values.dim() >= dimensions_, "a target has fewer dimensions than its spec");
  const at::IntArrayRef sizes = values.sizes().slice(0, static_cast<std::size_t>(dimensions_));
  positions_ = c10::multiply_integers(sizes);
  const at::Tensor& rows = batch.weights;
  if (target < batch.position_weights.size() && batch.position_weights[target].defined()) {
    const at::Tensor& positions = batch.position_weights[target];
    weights_ = rows.defined() ? positions.mul(beside(rows, dimensions_)) : positions;
  } else if (rows.defined()) {
    weights_ = dimensions_ == 1 ? rows : beside(rows, dimensions_).expand(sizes);
  }
}

}  // namespace treadle
