#include "handed_on.h"

#include <ATen/ops/alias.h>
#include <c10/core/GradMode.h>

namespace treadle::graph {

at::Tensor handed_on(at::Tensor value) {
  if (!value.is_contiguous())
    value = value.contiguous();
  if (at::GradMode::is_enabled() && value.requires_grad() && !value.is_leaf()) {
    value.register_hook([](const at::Tensor& gradient) {
      return gradient.defined() && !gradient.is_contiguous() ? gradient.contiguous() : at::Tensor();
    });
  }
  return value;
}

at::Tensor meeting_point(const at::Tensor& value) {
  return value.defined() && value.requires_grad() && at::GradMode::is_enabled() ? at::alias(value)
                                                                                : value;
}

}  // namespace treadle::graph
