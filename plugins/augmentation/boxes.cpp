#include "boxes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

namespace treadle::augmentation {

at::Tensor inside_of(const std::vector<Box>& boxes, const at::Tensor& images) {
  const auto rows = static_cast<std::int64_t>(boxes.size());
  at::Tensor on_host = at::empty({4, rows, 1, 1, 1}, at::kLong);
  auto* const edges = on_host.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    edges[i] = boxes[i].top;
    edges[i + boxes.size()] = boxes[i].bottom;
    edges[i + 2 * boxes.size()] = boxes[i].left;
    edges[i + 3 * boxes.size()] = boxes[i].right;
  }
  const at::Tensor edge = on_host.to(images.device(), at::kLong, /*non_blocking=*/true);
  const at::Tensor y = at::arange(images.size(2), edge.options()).view({images.size(2), 1});
  const at::Tensor x = at::arange(images.size(3), edge.options());
  const at::Tensor in_lines = y.ge(edge[0]).logical_and(y.lt(edge[1]));
  return in_lines.logical_and(x.ge(edge[2]).logical_and(x.lt(edge[3])));
}

}  // namespace treadle::augmentation
