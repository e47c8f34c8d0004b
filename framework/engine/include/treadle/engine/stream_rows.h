#pragma once

#include <cstdint>
#include <memory>

#include <c10/core/ScalarType.h>

#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

namespace treadle::engine {

/// A pass over a provider's rows that may be taken in pieces of any size. One user at a time.
class StreamRows : public Stateful {
 public:
  /// Reads `rows_at_once` rows at a time. `data` is open and outlives it.
  StreamRows(const DataProvider& data, std::int64_t rows_at_once);
  ~StreamRows() override;

  /// The next `rows` rows, or those that are left; a batch without any at the end. Throws what
  /// reading them threw.
  Batch take(std::int64_t rows);
  /// Expects that there are so many.
  void skip(std::int64_t rows);

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  /// Of what has been read; false at the end.
  bool fill();

  const DataProvider& data_;
  std::int64_t rows_at_once_;
  std::unique_ptr<BatchStream> stream_;
  Batch read_;             // the newest batch of the stream
  std::int64_t used_ = 0;  // rows of it that have been taken
  StateDict before_read_;  // where the stream stood before it
};

/// Rows of a batch as a table in memory.
MatrixRows::Matrices matrices_of(const Batch& rows, const DataSpec& spec);

}  // namespace treadle::engine
