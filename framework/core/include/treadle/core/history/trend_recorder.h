#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/history/trend.h>
#include <treadle/core/model/logged_values.h>

namespace treadle {

/// For a training loop written by hand: numbers of batches, under names, become numbers of epochs,
/// and those trends. A run of a workflow does this itself, see EpochSummary.
///
/// A query that takes several tags means all of them, by name, if it gets none; the name of a group
/// stands for its tags. Times of nodes go into a recorder of their own (graph::collect_timings()).
/// One thread.
class TrendRecorder {
 public:
  using Tags = std::vector<std::string>;
  using Means = std::map<std::string, double, std::less<>>;
  /// The time that has passed since any moment that stays the same.
  using Clock = std::function<std::chrono::nanoseconds()>;

  /// On std::chrono::steady_clock.
  TrendRecorder();
  explicit TrendRecorder(Clock clock);

  void add_group(std::string name, Tags tags);
  /// Which way a tag is better; without a word, lower is.
  void set_direction(std::string_view tag, Direction direction);

  /// Begins to count the time; by default the first value does.
  void start();

  /// A batch's value. It stays on its device, which is not waited for before collected() or
  /// flush(). Throws a UsageError for several elements without a reduction.
  void collect(std::string_view tag, const at::Tensor& value,
               std::optional<Reduction> reduction = {});
  /// Numbers from anywhere.
  void record(std::string_view tag, std::span<const double> values);
  void record(std::string_view tag, double value) { record(tag, {&value, 1}); }

  /// The batches' values since the last flush.
  const std::vector<double>& collected(std::string_view tag);

  /// Ends an epoch: for each tag with values their mean is appended to its trend, and the values
  /// are discarded. If there was such a tag, the flush counts, and the function of on_flush()
  /// receives the means, which are also returned.
  Means flush(const Tags& tags = {});
  void on_flush(std::function<void(const Means&)> heard) { heard_ = std::move(heard); }

  std::int64_t flush_count() const { return static_cast<std::int64_t>(flushes_.size()); }
  /// Since start(); 0 before.
  std::chrono::nanoseconds elapsed() const;
  /// Between the last two flushes; 0 for fewer.
  std::chrono::nanoseconds last_flush_duration() const;
  /// The time that is left when `total` flushes take as long each as those so far; 0 before the
  /// first.
  std::chrono::nanoseconds eta(std::int64_t total) const;
  /// When each flush was, from start().
  const std::vector<std::chrono::nanoseconds>& flush_times() const { return flushes_; }

  /// Empty for an unknown tag.
  Trend trend(std::string_view tag) const;
  TrendGroup trends(const Tags& tags = {}) const;
  /// Clears trends; values that were not flushed stay.
  void reset(const Tags& tags = {});

  /// All tags with a value or a trend, by name.
  Tags tags() const;
  /// `tags` with groups replaced by their tags; all of tags() for none.
  Tags expanded(const Tags& tags) const;

 private:
  struct Series {
    std::vector<double> batch;
    std::vector<std::pair<std::size_t, at::Tensor>>
        pending;  // which of `batch` is still on a device
    std::vector<double> epochs;
    Direction direction = Direction::kLowerIsBetter;
  };

  Series& series(std::string_view tag);
  static void read(std::span<Series* const> series);

  Clock clock_;
  std::optional<std::chrono::nanoseconds> start_;
  std::vector<std::chrono::nanoseconds> flushes_;
  std::map<std::string, Series, std::less<>> series_;
  std::map<std::string, Tags, std::less<>> groups_;
  std::function<void(const Means&)> heard_;
};

/// The trends as text: a line with the time of writing (RFC 3339), then one for each epoch with its
/// means, how long it took, and what was left then of `total` epochs. Throws a UsageError when
/// there is nothing to write; for a file, a StorageError.
std::string log_text(const TrendRecorder& recorder, std::int64_t total,
                     std::chrono::system_clock::time_point now,
                     const TrendRecorder::Tags& tags = {});
void write_log(const std::filesystem::path& path, const TrendRecorder& recorder, std::int64_t total,
               const TrendRecorder::Tags& tags = {});

/// As a table: `epoch` and the tags, eight significant digits; cells after the end of a shorter
/// trend are empty.
std::string csv_text(const TrendRecorder& recorder, const TrendRecorder::Tags& tags = {});
void write_csv(const std::filesystem::path& path, const TrendRecorder& recorder,
               const TrendRecorder::Tags& tags = {});

/// "42ms", "1.2s", "2m05s".
std::string format_duration(std::chrono::nanoseconds time);

}  // namespace treadle
