#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/sampler.h>

namespace treadle::engine {

/// A batch of a pass over the training rows.
struct Place {
  std::int64_t pass = 0;   ///< from 0
  std::int64_t batch = 0;  ///< from 0
  bool operator==(const Place&) const = default;
  auto operator<=>(const Place&) const = default;
};

/// Rows that are read at random, in an order: a pass, or one window of a stream.
struct Section {
  const RowReader* reader = nullptr;
  /// What of this is the section's own, and goes last. Null: all of it outlives the pipeline.
  std::shared_ptr<const void> owner;
  std::unique_ptr<const SampleOrder> order;
  std::int64_t first_batch = 0;  ///< of the pass
};

/// How rows are put into batches.
struct Batching {
  std::int64_t batch_size = 32;
  bool drop_last = false;
  std::int64_t fewest_rows = 1;      ///< of a last batch, unless it is all there is of a pass
  bool shuffle = false;              ///< where there is no sampler
  const Sampler* sampler = nullptr;  ///< null: as `shuffle` has it

  /// Whether each pass has an order of its own.
  bool varies() const { return shuffle || sampler != nullptr; }
  std::int64_t samples(std::int64_t rows) const {
    return sampler == nullptr ? rows : sampler->samples(rows);
  }
  /// Of samples with which a pass begins, or that follow others of it.
  std::int64_t batches(std::int64_t samples, bool begins_pass = true) const {
    const std::int64_t full = samples / batch_size;
    const std::int64_t rest = samples % batch_size;
    const bool is_all = begins_pass && full == 0;
    const bool is_left_out = rest == 0 || drop_last || (rest < fewest_rows && !is_all);
    return full + (is_left_out ? 0 : 1);
  }
  std::unique_ptr<const SampleOrder> order(const SampleRequest& request) const;
};

/// Where the rows of a pipeline come from. section() and restart() are called by one thread at a
/// time.
class RowSupply {
 public:
  virtual ~RowSupply() = default;

  /// DataProvider::kEndless where a pass has no end; nothing: not known before it.
  virtual std::optional<std::int64_t> batches_per_pass() const = 0;
  /// Whether section() may take long, and is no work for the consumer.
  virtual bool reads() const = 0;
  /// The section that `place` is in; null: the pass ended before. Asked for one place after the
  /// other, from that of restart() on.
  virtual std::shared_ptr<const Section> section(const Place& place) = 0;
  virtual void restart(const Place& place) = 0;

  /// What another process needs to restart() at `place`, which is one that section() was asked for,
  /// or the one after. Empty: nothing. May be called at any time, beside section().
  virtual StateDict mark(const Place& place) const = 0;
  virtual void load_mark(const Place& place, const StateDict& mark) = 0;
  /// No place before this one will be asked for again.
  virtual void forget_before(const Place& place) = 0;
};

/// Some rows of a reader, which outlives the supply.
std::unique_ptr<RowSupply> supply_of_rows(const RowReader& reader, RowList rows, Batching batching,
                                          RandomStreams random);

}  // namespace treadle::engine
