#include <treadle/core/model/forward_context.h>

#include <algorithm>
#include <utility>

namespace treadle {

void ForwardContext::log(std::string_view name, const at::Tensor& value,
                         std::optional<Reduction> by) {
  if (log_ != nullptr)
    log_->add(name, value, by);
}

void ForwardContext::add_loss(std::string_view name, at::Tensor sum) {
  if (!takes_losses_)
    return;
  const auto known = std::find_if(losses_.begin(), losses_.end(),
                                  [&](const auto& loss) { return loss.name == name; });
  if (known == losses_.end()) {
    losses_.push_back({std::string(name), std::move(sum)});
  } else {
    known->sum = known->sum.add(sum);
  }
}

std::vector<AuxiliaryLoss> ForwardContext::take_losses() {
  return std::exchange(losses_, {});
}

ForwardContext ForwardContext::part(std::string_view name) const {
  ForwardContext part = *this;
  part.state_ = state_.has_part(name) ? state_.part(name) : StateDict();
  part.losses_.clear();
  return part;
}

void ForwardContext::join(std::string_view name, ForwardContext&& part) {
  if (!part.state_.empty())
    state_.put(name, std::move(part.state_));
}

}  // namespace treadle
