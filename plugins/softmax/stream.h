#pragma once

#include <cstdint>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/model/factory_of.h>

namespace treadle::softmax {

/// The dimension of the stream that "dim" names, counted from its start: one of a row, since rows
/// of a batch are distributions of their own. Throws a DataError for any other.
std::int64_t dim_of_row(const Config& config, const TensorSpec& stream);

/// The size of the stream's last dimension, which has to be `wanted`; `why` names its factors.
void expect_width(const TensorSpec& stream, std::int64_t wanted, const std::string& why);

}  // namespace treadle::softmax
