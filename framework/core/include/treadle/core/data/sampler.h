#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

/// One pass over some rows: which row comes at which position.
///
/// A function of the position, not a cursor: a training that resumes in the middle of a pass
/// requests the positions that follow, and the order is never saved. Thread-safe.
class SampleOrder {
 public:
  virtual ~SampleOrder();

  /// How many positions the pass has; Sampler::samples() of the rows it was made for.
  std::int64_t size() const { return do_size(); }

  /// The rows at positions [begin, begin + rows.size()). Expects 0 <= begin and an end within
  /// size().
  void fill(std::int64_t begin, std::span<std::int64_t> rows) const;

 private:
  virtual std::int64_t do_size() const = 0;
  virtual void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const = 0;
};

/// The rows to put in order, for one pass. Made by the framework; what it points to outlives
/// the order. Of a stream that is read in windows, one window.
struct SampleRequest {
  const RowReader* reader = nullptr;  ///< before transforms
  RowList rows;                       ///< of the reader: those that train; not empty
  std::int64_t batch_size = 1;
  std::int64_t pass = 0;   ///< from 0
  std::uint64_t seed = 0;  ///< of this pass
};

/// Decides in which order training rows are taken, and how often each: shuffled, by length, drawn
/// by weight, easy ones first. Named in the document's `training.sampler`.
///
/// Stateless: an order is a function of the request, so it is the same after a resume and for any
/// number of workers. One object per training; used from the training thread, for streams from one
/// worker at a time.
class Sampler : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.sampler/0";

  ~Sampler() override;

  /// Positions in one pass over `rows` rows: `rows`, unless the sampler draws more or fewer. A
  /// function of the configuration and `rows` alone; at least 1.
  std::int64_t samples(std::int64_t rows) const;

  /// The order of one pass. Throws DataError when the data has not what it goes by (lengths, a
  /// target with classes, weights).
  std::unique_ptr<const SampleOrder> order(const SampleRequest& request) const;

 private:
  virtual std::int64_t do_samples(std::int64_t rows) const { return rows; }
  // Of do_samples(request.rows.size()) positions.
  virtual std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const = 0;
};

/// `rows` as they are, or in a random order by `seed`: what samplers start from.
std::unique_ptr<const SampleOrder> rows_in_order(RowList rows);
std::unique_ptr<const SampleOrder> rows_shuffled(RowList rows, std::uint64_t seed);
/// The rows of a list that a sampler has made.
std::unique_ptr<const SampleOrder> rows_listed(std::vector<std::int64_t> rows);

}  // namespace treadle
