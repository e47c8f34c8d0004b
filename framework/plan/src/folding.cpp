#include <treadle/plan/folding.h>

#include <vector>

#include <c10/core/GradMode.h>

namespace treadle {

MapsChannels::~MapsChannels() = default;
TakesChannelMap::~TakesChannelMap() = default;

std::pair<at::Tensor, at::Tensor> fold_channel_map(const ChannelMap& map, const at::Tensor& weight,
                                                   const at::Tensor& bias) {
  const at::NoGradGuard no_gradients;
  std::vector<std::int64_t> of_channels(static_cast<std::size_t>(weight.dim()), 1);
  of_channels.front() = weight.size(0);
  const at::Tensor scaled = weight.to(at::kDouble).mul(map.scale.view(of_channels));
  const at::Tensor moved =
      bias.defined() ? bias.to(at::kDouble).mul(map.scale).add(map.shift) : map.shift;
  return {scaled.to(weight.scalar_type()), moved.to(weight.scalar_type())};
}

}  // namespace treadle
