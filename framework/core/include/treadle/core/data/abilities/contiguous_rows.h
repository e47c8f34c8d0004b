#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/row_reader.h>

namespace treadle {

/// Rows that lie one after the other in the memory of the process, or in a file that is mapped into
/// it, as batches have them: who needs many neighbours copies them at once, without a list of
/// numbers.
///
/// An optional ability of a RowReader, see contiguous_rows(). Transforms in front of a reader give
/// another reader, without it. All functions are const and thread-safe.
class ContiguousRows {
 public:
  virtual ~ContiguousRows();

  /// An input port of all rows: [N, port.shape...], contiguous, of the port's dtype, no copy. Valid
  /// as long as the reader, never written to: the memory may be read-only. Undefined where these
  /// rows lie otherwise.
  virtual at::Tensor contiguous_input(std::size_t port) const = 0;
  /// The weights of all rows likewise: [N]; undefined where each counts 1 or they lie otherwise.
  virtual at::Tensor contiguous_weights() const = 0;

  /// Throws DataError where a file is no longer the one that was mapped. To be called before some
  /// of the memory is read, once for a batch: reading behind the end of a file kills the process.
  virtual void expect_unchanged() const {}
};

/// `rows`' ability; null where it has none.
inline const ContiguousRows* contiguous_rows(const RowReader& rows) {
  return dynamic_cast<const ContiguousRows*>(&rows);
}

}  // namespace treadle
