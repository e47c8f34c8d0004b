#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>

namespace treadle::explain {

/// A small picture of a row as a data URI: of its first image, a PNG of at most 64 pixels a side,
/// grey or in colours; else of its first windows, an SVG with a line per column, each scaled by
/// itself, at most eight. Empty where the row is but a row of a table. `row`: one row.
std::string picture_of(const DataSpec& spec, const Batch& row);

/// A PNG file, without compression. `pixels`: uint8 [height, width, 1 or 3].
std::string png_of(const at::Tensor& pixels);

}  // namespace treadle::explain
