#include "kept_margins.h"

#include <cstddef>
#include <span>
#include <utility>

#include <treadle/base/hash.h>

namespace treadle::trees {

at::Tensor KeptMargins::margins_of(const at::Tensor& rows, const TreeSum& trees) {
  const std::string key = hash_bytes(
      std::as_bytes(std::span(rows.data_ptr<float>(), static_cast<std::size_t>(rows.numel()))));
  Margins its;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = all_.extract(key))
      its = std::move(found.mapped());
  }
  if (its.values.defined()) {
    trees.add_rounds(rows, its.rounds, its.values);
  } else {
    its.values = trees.margins_of(rows);
  }
  its.rounds = trees.rounds();
  at::Tensor margins = its.values.clone();
  const std::lock_guard lock(mutex_);
  all_[key] = std::move(its);
  return margins;
}

}  // namespace treadle::trees
