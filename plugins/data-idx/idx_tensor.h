#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "idx_file.h"

namespace treadle::idx {

/// The numbers of an array in the dtype that holds each of them exactly: uint8 stays so where
/// `keeps_bytes`, int32 and float64 become float64, everything else float32. Throws DataError for
/// NaN and infinity, with the row; `shown` is the file's name.
at::Tensor numbers_of(const IdxArray& array, bool keeps_bytes, const std::string& shown);
/// int64. Expects integers.
at::Tensor integers_of(const IdxArray& array);

}  // namespace treadle::idx
