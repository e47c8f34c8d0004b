#include "run/predictions_file.h"

#include <algorithm>
#include <cstdint>

#include <treadle/base/atomic_file.h>

#include "predict/prediction_writer.h"

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

}  // namespace

void write_predictions_file(const std::filesystem::path& file, const DocumentComponents& components,
                            const std::vector<FoldPredictions>& folds) {
  const std::vector<TargetSpec>& targets = components.data_spec().targets;
  std::vector<std::string> names{"fold"};
  for (const TargetSpec& target : targets) {
    const std::string prefix = targets.size() == 1 ? "" : target.name + "/";
    const bool is_one = target.kind == TargetKind::kClasses || target.width() == 1;
    for (std::int64_t k = 0; k < (is_one ? 1 : target.width()); ++k)
      names.push_back(prefix + "actual" + (is_one ? "" : "." + std::to_string(k)));
  }
  write_file_atomically(file, [&](FileWriter& out) {
    PredictionWriter writer(out, targets, {});
    for (const FoldPredictions& of_fold : folds) {
      for (std::int64_t begin = 0; begin < of_fold.kept.rows.size(); begin += kRows) {
        const KeptPredictions part =
            slice(of_fold.kept, begin, std::min(kRows, of_fold.kept.rows.size() - begin));
        std::vector<at::Tensor> actual;  // [rows, positions, width]
        for (const at::Tensor& values : part.rows.targets) {
          const auto& spec = targets[actual.size()];
          const std::int64_t width = spec.kind == TargetKind::kClasses ? 1 : spec.width();
          actual.push_back(
              values.to(at::kDouble).reshape({values.size(0), -1, width}).contiguous());
        }
        const at::Tensor rows = part.rows.rows.contiguous();
        const auto* const first = rows.data_ptr<std::int64_t>();
        writer.label(
            names, [&](std::int64_t row, std::int64_t position, std::vector<std::string>& texts) {
              // Ascending; a row that a fold has twice has one target.
              const std::int64_t place = std::lower_bound(first, first + rows.numel(), row) - first;
              texts.push_back(of_fold.fold);
              for (std::size_t target = 0; target < targets.size(); ++target) {
                const at::Tensor& values = actual[target];
                const std::int64_t width = values.size(2);
                const double* const value =
                    values.data_ptr<double>() + (place * values.size(1) + position) * width;
                if (targets[target].kind == TargetKind::kClasses) {
                  texts.push_back(targets[target].class_names[static_cast<std::size_t>(*value)]);
                  continue;
                }
                for (std::int64_t k = 0; k < width; ++k)
                  texts.push_back(number_text(value[k], part.rows.targets[target].scalar_type()));
              }
            });
        writer.write(part.predictions, part.rows);
      }
    }
  });
}

}  // namespace treadle::internal
