#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/validation/metric_computer.h>

#include "data/evaluated_rows.h"
#include "evaluation/fitted_metrics.h"

namespace treadle::internal {

/// The document's metrics of one target for each part of the evaluated positions on its own: for
/// each step of a forecast's horizon, for each series. Gives one table, a row for each part.
class MetricBreakdown : public MetricComputer {
 public:
  /// Makes the document's metrics of the target, started for `part`.
  struct Made {
    std::unique_ptr<MetricComputer> metric;
    std::size_t index = 0;  ///< in make_metrics()
  };
  using Make = std::function<std::vector<Made>(const TargetSpec& part)>;

  ~MetricBreakdown() override;

  /// Before the first update: `fitted` is for the metrics, groups are those of the rows that
  /// updates will be of. Borrows `fitted`.
  void use(const FittedMetrics& fitted, const at::Tensor& groups);

 protected:
  /// Some positions of a batch, as a batch of one target.
  struct Part {
    std::int64_t number;
    Prediction prediction;
    Batch batch;
  };

  MetricBreakdown(std::string table, std::size_t target, Make make);

  /// A batch whose only target and prediction are what `change` makes of those of the rows.
  static Part changed(std::int64_t number, const Prediction& prediction, const TargetBatch& target,
                      std::size_t index,
                      const std::function<at::Tensor(const at::Tensor&)>& of_positions,
                      const std::function<at::Tensor(const at::Tensor&)>& of_rows);
  std::size_t target() const { return target_; }
  const at::Tensor& groups() const { return groups_; }

 private:
  virtual TargetSpec part_of(const TargetSpec& target) const = 0;
  virtual void split(const Prediction& prediction, const TargetBatch& target,
                     const std::function<void(const Part&)>& visit) const = 0;
  virtual std::string label_of(std::int64_t part) const = 0;

  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<Made>& metrics_of(std::int64_t part);

  const std::string table_;
  const std::size_t target_;
  const Make make_;
  TargetSpec part_spec_;
  std::map<std::int64_t, std::vector<Made>> parts_;
  const FittedMetrics* fitted_ = nullptr;
  at::Tensor groups_;
};

/// "metrics_by_step": for targets whose first position is the step of a horizon.
class MetricsByStep final : public MetricBreakdown {
 public:
  static constexpr const char* kTable = "metrics_by_step";
  MetricsByStep(std::size_t target, Make make) : MetricBreakdown(kTable, target, std::move(make)) {}

 private:
  TargetSpec part_of(const TargetSpec& target) const override;
  void split(const Prediction& prediction, const TargetBatch& target,
             const std::function<void(const Part&)>& visit) const override;
  std::string label_of(std::int64_t part) const override { return std::to_string(part + 1); }
};

/// "metrics_by_series": for rows with groups.
class MetricsBySeries final : public MetricBreakdown {
 public:
  static constexpr const char* kTable = "metrics_by_series";
  /// More series are not told apart: nobody reads so long a table.
  static constexpr std::size_t kMostSeries = 1000;

  /// `names` is borrowed; null: numbers.
  MetricsBySeries(std::size_t target, Make make, const GroupNames* names)
      : MetricBreakdown(kTable, target, std::move(make)), names_(names) {}

 private:
  TargetSpec part_of(const TargetSpec& target) const override { return target; }
  void split(const Prediction& prediction, const TargetBatch& target,
             const std::function<void(const Part&)>& visit) const override;
  std::string label_of(std::int64_t part) const override;

  const GroupNames* names_;
};

}  // namespace treadle::internal
