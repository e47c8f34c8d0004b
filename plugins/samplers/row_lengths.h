#pragma once

#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

namespace treadle::samplers {

/// The lengths of the input port `name`, or of the first port that has any: int64 [N]; undefined
/// where that port, or each, has rows of one length. Throws a DataError that lists the inputs when
/// there is no port `name`.
at::Tensor row_lengths(const RowReader& reader, const std::optional<std::string>& name);

/// `the input is "features"`, `the inputs are "a", "b"`.
std::string inputs_in_words(const DataSpec& spec);

}  // namespace treadle::samplers
