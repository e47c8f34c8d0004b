#include <treadle/host/run/compared_predictions.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/validation/metric_computer.h>

#include "predict/open_run.h"

// Every run is opened as the rows that it may be compared on, in parts that have a model each
// (OpenRun). The rows that all have are compared: each part predicts its share of them.

namespace treadle {
namespace {

namespace fs = std::filesystem;
using internal::OpenRun;

std::string target_text(const TargetSpec& target) {
  return quote_text(target.name) + " (" + std::string(name_of(target.kind)) + ")";
}

/// Throws a DataError unless a row means the same to both.
void expect_comparable(const OpenRun& first, const OpenRun& other) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(other.name + ": cannot be compared with " + first.name + " row by row: " + why);
  };
  if (first.spec.targets.size() != other.spec.targets.size()) {
    refuse("it predicts " + std::to_string(other.spec.targets.size()) + " targets instead of " +
           std::to_string(first.spec.targets.size()));
  }
  for (std::size_t i = 0; i < first.spec.targets.size(); ++i) {
    const TargetSpec& target = first.spec.targets[i];
    const TargetSpec& its = other.spec.targets[i];
    if (target.name != its.name || target.kind != its.kind)
      refuse("it predicts " + target_text(its) + " instead of " + target_text(target));
    if (target.shape != its.shape)
      refuse("its target " + quote_text(its.name) + " has another shape");
    const std::vector<std::string>& names = target.class_names;
    if (!std::is_permutation(names.begin(), names.end(), its.class_names.begin(),
                             its.class_names.end()))
      refuse("its target " + quote_text(its.name) + " has other classes");
  }
  const bool have_one_source = !first.source_hash.empty() && first.source_hash == other.source_hash;
  if (first.data_hash != other.data_hash && !have_one_source) {
    refuse(
        "it was trained on other data, so their rows are not the same; compare them on one file "
        "with --data FILE, or train both on the same data");
  }
  if (first.sequence != other.sequence ||
      first.evaluated.rows->rows() != other.evaluated.rows->rows())
    refuse("their rows are samples that \"sequence\" makes in other ways");
}

void expect_fixed_shape(const OpenRun& run) {
  for (const TargetSpec& target : run.spec.targets) {
    if (std::find(target.shape.begin(), target.shape.end(), kVaries) != target.shape.end()) {
      throw DataError(run.name + ": target " + quote_text(target.name) +
                      " has a length that varies from row to row; runs are compared row by row on "
                      "targets of one shape");
    }
  }
}

/// A row, and the part of its run that predicts it.
struct Assigned {
  std::int64_t row;
  std::size_t part;
};

/// The rows of a run, ascending. A row in several parts belongs to the first.
std::vector<Assigned> assigned_rows(const OpenRun& run) {
  std::vector<Assigned> rows;
  for (std::size_t part = 0; part < run.parts.size(); ++part) {
    for (const std::int64_t row : run.parts[part].rows)
      rows.push_back({row, part});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Assigned& a, const Assigned& b) { return a.row < b.row; });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const Assigned& a, const Assigned& b) { return a.row == b.row; }),
             rows.end());
  return rows;
}

std::vector<std::int64_t> common_rows(const std::vector<std::vector<Assigned>>& runs) {
  std::vector<std::int64_t> common;
  for (const Assigned& one : runs.front())
    common.push_back(one.row);
  for (std::size_t run = 1; run < runs.size(); ++run) {
    auto next = runs[run].begin();
    std::erase_if(common, [&](std::int64_t row) {
      while (next != runs[run].end() && next->row < row)
        ++next;
      return next == runs[run].end() || next->row != row;
    });
  }
  return common;
}

/// For each of the other's classes, its number among those of `spec`; undefined where they are in
/// one order.
at::Tensor order_of_classes(const TargetSpec& spec, const TargetSpec& other) {
  if (spec.class_names == other.class_names)
    return {};
  std::vector<std::int64_t> order;
  for (const std::string& name : spec.class_names) {
    order.push_back(std::find(other.class_names.begin(), other.class_names.end(), name) -
                    other.class_names.begin());
  }
  return at::tensor(order, at::kLong);
}

/// Puts what the run predicts for `rows` at their positions, and the targets where `actual` is
/// asked for.
class Filler {
 public:
  Filler(ComparedPredictions& result, const OpenRun& run, bool with_actual)
      : result_(result), run_(run), with_actual_(with_actual) {
    for (std::size_t i = 0; i < result.targets.size(); ++i) {
      result.targets[i].predicted.emplace_back();
      orders_.push_back(order_of_classes(result.targets[i].spec, run.spec.targets[i]));
    }
  }

  void fill(const internal::HeldOutPart& part, const RowList& rows, const at::Tensor& positions) {
    const std::unique_ptr<internal::WholeModel> model = part.model();
    std::int64_t done = 0;
    model->predict(run_.evaluated, rows, [&](const Predictions& predictions, const Batch& batch) {
      put(predictions, batch, positions.narrow(0, done, batch.size()));
      done += batch.size();
    });
  }

 private:
  void put(const Predictions& predictions, const Batch& batch, const at::Tensor& positions) {
    for (std::size_t i = 0; i < result_.targets.size(); ++i) {
      ComparedPredictions::Target& target = result_.targets[i];
      at::Tensor values = predictions[i].values.to(at::kCPU, at::kDouble);
      if (orders_[i].defined())
        values = values.index_select(-1, orders_[i]);
      copy_into(target.predicted.back(), positions, values);
      if (!with_actual_)
        continue;
      const at::Tensor actual = TargetBatch::original(batch, i, target.spec).values();
      copy_into(
          target.actual, positions,
          actual.to(at::kCPU, target.spec.kind == TargetKind::kClasses ? at::kLong : at::kDouble));
    }
  }

  void copy_into(at::Tensor& all, const at::Tensor& positions, const at::Tensor& values) const {
    if (!all.defined()) {
      std::vector<std::int64_t> sizes = values.sizes().vec();
      sizes[0] = static_cast<std::int64_t>(result_.rows.size());
      all = at::empty(sizes, values.options());
    }
    all.index_copy_(0, positions, values);
  }

  ComparedPredictions& result_;
  const OpenRun& run_;
  const bool with_actual_;
  std::vector<at::Tensor> orders_;
};

/// Predicts the common rows with the parts of a run that they belong to.
void predict_common(const OpenRun& run, const std::vector<Assigned>& assigned, bool is_first,
                    ComparedPredictions& result) {
  std::vector<std::vector<std::int64_t>> rows(run.parts.size());
  std::vector<std::vector<std::int64_t>> positions(run.parts.size());
  auto next = assigned.begin();
  std::int64_t position = 0;
  for (const std::int64_t row : result.rows) {
    while (next->row < row)
      ++next;
    rows[next->part].push_back(row);
    positions[next->part].push_back(position++);
  }
  Filler filler(result, run, is_first);
  for (std::size_t part = 0; part < run.parts.size(); ++part) {
    if (!rows[part].empty()) {
      result.have_validated = result.have_validated || run.parts[part].have_validated;
      filler.fill(run.parts[part], RowList(std::move(rows[part])),
                  at::tensor(positions[part], at::kLong));
    }
  }
}

}  // namespace

ComparedPredictions predict_for_comparison(const Runtime& runtime, std::span<const fs::path> runs,
                                           const ComparedRows& rows, const std::string& device) {
  TREADLE_EXPECTS(runs.size() >= 2, "there are runs to compare");
  const at::NoGradGuard no_gradients;
  internal::OpenData opened(runtime, "compare on another file with --data FILE");
  std::vector<OpenRun> open;
  std::vector<std::vector<Assigned>> assigned;
  for (const fs::path& folder : runs) {
    open.push_back(
        rows.file.empty()
            ? internal::open_own(runtime, folder, rows.from, device, opened)
            : internal::open_given(runtime, folder, rows.file, rows.from, device, opened));
    expect_fixed_shape(open.back());
    expect_comparable(open.front(), open.back());
    assigned.push_back(assigned_rows(open.back()));
  }
  ComparedPredictions result;
  for (const std::vector<Assigned>& one : assigned)
    result.candidates.push_back(static_cast<std::int64_t>(one.size()));
  result.rows = RowList(common_rows(assigned));
  if (result.rows.empty()) {
    throw DataError(
        "the runs hold no row out that is the same in all of them: their splits differ, so each "
        "row was trained on by one of them; give them one split (\"validation\": {\"seed\": 1}), "
        "or compare them on another file with --data FILE");
  }
  for (const TargetSpec& spec : open.front().spec.targets)
    result.targets.push_back({spec, {}, {}});
  for (std::size_t run = 0; run < open.size(); ++run)
    predict_common(open[run], assigned[run], run == 0, result);
  const OpenRun& first = open.front();
  result.describe = [data = first.data, reader = first.evaluated.rows](std::int64_t row) {
    return reader->describe_row(row);
  };
  return result;
}

}  // namespace treadle
