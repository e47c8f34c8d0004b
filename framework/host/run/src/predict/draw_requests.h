#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <treadle/engine/evaluation.h>
#include <treadle/host/run/predictor.h>

namespace treadle::internal {

/// The seed of one draw of a target. Rows of a forecast are series, and `step` is the first of the
/// steps that are drawn; 0 for other rows.
std::uint64_t draw_seed(std::uint64_t seed, std::int64_t row, std::int64_t sample,
                        std::int64_t step, std::size_t target);

/// The samples of rows; null where none are asked for.
std::unique_ptr<engine::DrawRequest> request_of(const SampleOptions& samples);

}  // namespace treadle::internal
