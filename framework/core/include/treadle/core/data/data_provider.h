#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

/// The requirements of a run on its data.
struct OpenRequest {
  enum class Purpose {
    kTrain,     ///< a target is needed; dictionaries (class names, categories) are made here
    kEvaluate,  ///< a target is needed; dictionaries come from load_state()
    kPredict    ///< no target needed; columns are matched by name with load_state()'s
  };
  Purpose purpose = Purpose::kTrain;
  /// kAuto: text labels are classes; numbers are what takes() allows, else numbers.
  Task task = Task::kAuto;
  /// The kinds of target that all losses of a target work on; of one without a loss, all of its
  /// metrics. Losses and metrics without `target` stand under "". A target that is not there may be
  /// of any kind.
  std::map<std::string, std::vector<TargetKind>, std::less<>> target_kinds;

  /// Whether the document's losses and metrics leave it open that the target is of that kind.
  bool takes(std::string_view target, TargetKind kind) const;
  /// The kind that the task names, else the only one that losses and metrics take.
  /// Nothing: the data decides.
  std::optional<TargetKind> asked_kind(std::string_view target) const;

  /// Columns that other parts of the document read, such as the folds of a `predefined` validation:
  /// no inputs unless the data's own parameters name them.
  std::vector<std::string> columns_in_use = {};
  std::uint64_t seed = 0;  ///< for data that is made, not read
  /// Input columns may have missing values, whatever the training data had, and the spec says
  /// which: a sequence made of the rows finds out whether it reads them.
  bool missing_inputs = false;
};

/// A data source of a run: a file, a database, a generator. One object per run; folds and trials
/// share it.
///
/// Life: constructed from parameters (cheap, touches nothing) → load_state() when a model trained
/// earlier is to be used → open() once → read. state() holds what belongs to the *data set*: label
/// dictionary, column names and types. Statistics belong to transforms, splitting to validation.
///
/// Numbers are float32 or float64, whichever holds each of them exactly: the run's precision is no
/// concern of its data, and what comes behind rounds last.
///
/// After open(), const functions are thread-safe. Failures are DataErrors with file, line, expected
/// and found.
class DataProvider : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.data/0";

  ~DataProvider() override;

  /// Expects not to have been called before.
  void open(const OpenRequest& request);

  /// Expects open().
  const DataSpec& spec() const;

  /// A hash over everything that can be read: 32 hex digits. A resumed run compares it.
  std::string content_hash() const;

  /// A pass over all rows in their own order, `batch_size` at a time; the last batch may be
  /// smaller. A provider that can be read at random offers ask<RowReader>() as well, and the
  /// default of this function uses it. One that cannot is trained from its streams: each pass
  /// begins with the same rows, and a stream whose state is loaded goes on with the row after.
  /// ChunkedStream is an easy way to one.
  std::unique_ptr<BatchStream> stream(std::int64_t batch_size) const;

  /// The rows of one pass; kEndless, when a pass has no end; nothing, when it is not known before
  /// the end.
  std::optional<std::int64_t> stream_rows() const;
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

 protected:
  /// The default reads ask<RowReader>() in order.
  virtual std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const;

 private:
  virtual void do_open(const OpenRequest& request) = 0;
  virtual const DataSpec& do_spec() const = 0;
  virtual std::string do_content_hash() const = 0;
  // Only of a provider that cannot be read at random.
  virtual std::optional<std::int64_t> do_stream_rows() const { return std::nullopt; }

  bool open_ = false;
};

}  // namespace treadle
