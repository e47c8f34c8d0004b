#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/row_reader.h>

/// Batches for suites about rows of data: gathered, copied, compared.
namespace treadle::testing {

/// begin … end-1.
std::vector<std::int64_t> row_numbers(std::int64_t begin, std::int64_t end);

Batch gathered(const RowReader& reader, std::int64_t begin, std::int64_t end);

/// With tensors of its own.
Batch copy_of(const Batch& batch);

/// As at::equal, but NaN equals itself, and so does no tensor at all.
bool same(const at::Tensor& a, const at::Tensor& b);

/// Tensor by tensor; `what` names them in messages.
void expect_same(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                 const char* what);

void expect_same(const Batch& got, const Batch& expected);

/// `padded` without the padding that a batch of these sizes does not have.
at::Tensor trimmed(const at::Tensor& padded, at::IntArrayRef sizes);

}  // namespace treadle::testing
