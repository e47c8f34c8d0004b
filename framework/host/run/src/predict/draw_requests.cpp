#include "predict/draw_requests.h"

#include <treadle/base/random.h>

namespace treadle::internal {

std::uint64_t draw_seed(std::uint64_t seed, std::int64_t row, std::int64_t sample,
                        std::int64_t step, std::size_t target) {
  return RandomStreams(seed).seed(
      "sample", {static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(sample),
                 static_cast<std::uint64_t>(step), std::uint64_t{target}});
}

std::unique_ptr<engine::DrawRequest> request_of(const SampleOptions& samples) {
  if (samples.count == 0)
    return nullptr;
  auto request = std::make_unique<engine::DrawRequest>();
  request->count = samples.count;
  request->seed = [seed = samples.seed](std::int64_t row, std::int64_t sample, std::size_t target) {
    return draw_seed(seed, row, sample, 0, target);
  };
  return request;
}

}  // namespace treadle::internal
