#include "run/predictions_file.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "predict/prediction_writer.h"
#include "predict/table_output.h"

namespace treadle::internal {
namespace {

/// Rows that are written at once: their texts are in memory.
constexpr std::int64_t kRows = 4096;

KeptPredictions slice(const KeptPredictions& kept, std::int64_t begin, std::int64_t count) {
  KeptPredictions part;
  part.predictions = kept.predictions;
  for (Prediction& prediction : part.predictions) {
    for_each_tensor(prediction, [&](at::Tensor& tensor, std::int64_t rows) {
      tensor = tensor.narrow(rows, begin, count);
    });
  }
  part.rows = kept.rows.slice(begin, count);
  return part;
}

/// The truth at a place, by target: a column for classes, else one for each number or label.
class ActualColumns {
 public:
  ActualColumns(const std::vector<TargetSpec>& targets, const Batch& rows) : targets_(targets) {
    for (const at::Tensor& values : rows.targets) {
      const std::int64_t width = width_of(targets[actual_.size()]);
      actual_.push_back({values.to(at::kDouble).reshape({values.size(0), -1, width}).contiguous(),
                         values.scalar_type() == at::kDouble});
    }
  }

  /// `places`: the row of each in the batch, and its position.
  void add(std::span<const std::pair<std::int64_t, std::int64_t>> places, TableChunk& chunk) const {
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      const TargetSpec& spec = targets_[target];
      const std::string name = (targets_.size() == 1 ? "" : spec.name + "/") + "actual";
      if (spec.kind == TargetKind::kClasses) {
        chunk.add(name, values<std::string>(target, 0, places, [&](double value) {
                    return spec.class_names[static_cast<std::size_t>(value)];
                  }));
        continue;
      }
      for (std::int64_t k = 0; k < spec.width(); ++k) {
        const std::string column = spec.width() == 1 ? name : name + "." + std::to_string(k);
        const auto narrowed = [](double value) { return static_cast<float>(value); };
        chunk.add(column,
                  actual_[target].is_double
                      ? TableWriter::Values(values<double>(target, k, places, std::identity()))
                      : TableWriter::Values(values<float>(target, k, places, narrowed)));
      }
    }
  }

 private:
  struct Actual {
    at::Tensor values;  // float64 [rows, positions, width]
    bool is_double;
  };

  static std::int64_t width_of(const TargetSpec& spec) {
    return spec.kind == TargetKind::kClasses ? 1 : spec.width();
  }

  template <typename Value, typename Shown>
  std::vector<Value> values(std::size_t target, std::int64_t k,
                            std::span<const std::pair<std::int64_t, std::int64_t>> places,
                            Shown&& shown) const {
    const at::Tensor& of = actual_[target].values;
    const double* const first = of.data_ptr<double>();
    std::vector<Value> chosen;
    chosen.reserve(places.size());
    for (const auto& [row, position] : places)
      chosen.push_back(shown(first[(row * of.size(1) + position) * of.size(2) + k]));
    return chosen;
  }

  const std::vector<TargetSpec>& targets_;
  std::vector<Actual> actual_;
};

}  // namespace

void write_predictions_file(const Runtime& runtime, const std::string& output,
                            const DocumentComponents& components,
                            const std::vector<FoldPredictions>& folds) {
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  write_table(runtime, output, [&](TableWriter& table) {
    PredictionWriter writer(table, targets, {});
    for (const FoldPredictions& of_fold : folds) {
      for (std::int64_t begin = 0; begin < of_fold.kept.rows.size(); begin += kRows) {
        const KeptPredictions part =
            slice(of_fold.kept, begin, std::min(kRows, of_fold.kept.rows.size() - begin));
        const ActualColumns actual(targets, part.rows);
        const at::Tensor rows = part.rows.rows.contiguous();
        const auto* const first = rows.data_ptr<std::int64_t>();
        writer.label([&](std::span<const PredictionWriter::Place> places, TableChunk& chunk) {
          std::vector<std::pair<std::int64_t, std::int64_t>> in_part;
          in_part.reserve(places.size());
          // Ascending; a row that a fold has twice has one target.
          for (const PredictionWriter::Place& place : places) {
            in_part.emplace_back(std::lower_bound(first, first + rows.numel(), place.row) - first,
                                 place.position);
          }
          chunk.add("fold", std::vector<std::string>(places.size(), of_fold.fold));
          actual.add(in_part, chunk);
        });
        writer.write(part.predictions, part.rows);
      }
    }
    writer.close();
  });
}

}  // namespace treadle::internal
