#include "padding.h"

#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cummax.h>

#include <treadle/base/error.h>

namespace treadle::layers {

bool describes_padding(const TensorSpec& reference) {
  return (reference.dtype == c10::ScalarType::Long && reference.sizes.size() == 1) ||
         (reference.dtype == c10::ScalarType::Bool && reference.sizes.size() == 2);
}

std::optional<std::size_t> padding_reference(const LayerSpec& spec) {
  if (spec.inputs.size() == 1)
    return std::nullopt;
  if (spec.inputs.size() > 2 || !describes_padding(spec.inputs[1])) {
    throw DataError(
        "takes one reference at most, the lengths [B] int64 of its sequences or their mask "
        "[B, length] bool, got " +
        spec.inputs.back().text());
  }
  return 1;
}

at::Tensor real_positions(const at::Tensor& reference, std::int64_t length) {
  if (reference.scalar_type() != at::kLong) {
    if (reference.size(1) != length) {
      throw DataError("the mask has " + std::to_string(reference.size(1)) +
                      " positions, but the sequences have " + std::to_string(length));
    }
    return reference;
  }
  return at::arange(length, reference.options()).unsqueeze(0).lt(reference.unsqueeze(1));
}

at::Tensor positions_in_segments(const at::Tensor& segments) {
  const std::int64_t length = segments.size(1);
  const at::Tensor numbers = at::arange(length, segments.options());
  if (length < 2)
    return numbers.expand_as(segments);
  const at::Tensor begins = segments.narrow(1, 1, length - 1).ne(segments.narrow(1, 0, length - 1));
  // The latest beginning so far. The first position is one, and has the number 0 anyway.
  const at::Tensor starts = std::get<0>(
      at::cummax(at::constant_pad_nd(begins.to(at::kLong), {1, 0}).mul(numbers), /*dim=*/1));
  return numbers.sub(starts);
}

at::Tensor beside(const at::Tensor& real, const at::Tensor& sequence) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(sequence.dim()), 1);
  sizes[0] = real.size(0);
  sizes[1] = real.size(1);
  return real.view(sizes);
}

LastPositions last_positions(at::IntArrayRef of_sequences, const at::Tensor& real) {
  std::vector<std::int64_t> sizes = of_sequences.vec();
  sizes[1] = 1;
  std::vector<std::int64_t> one(sizes.size(), 1);
  one[0] = sizes[0];
  const at::Tensor numbers = at::arange(real.size(1), real.options().dtype(at::kLong));
  return {real.to(at::kLong).mul(numbers).amax(1).view(one).expand(sizes),
          real.any(1).logical_not().view(one)};
}

at::Tensor last_position(const at::Tensor& sequence, const at::Tensor& real) {
  const LastPositions last = last_positions(sequence.sizes(), real);
  return sequence.gather(1, last.index).masked_fill(last.is_none, 0).squeeze(1);
}

}  // namespace treadle::layers
