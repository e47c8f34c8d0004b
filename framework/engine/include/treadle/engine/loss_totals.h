#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::engine {

/// The loss over many batches, as numbers: sums and weights of the objective's terms, and of the
/// terms that the model added. Adding a BatchLoss reads its tensors, so it waits for their device.
class LossTotals final : public Stateful {
 public:
  explicit LossTotals(const Objective& objective);
  /// Of a loss that is no objective: one term.
  LossTotals() : sums_(1, 0), weights_(1, 0) {}

  void add(const BatchLoss& loss, std::int64_t rows);
  void add(const LossTotals& more);
  void clear();

  /// The objective over everything that was added: sum over terms of factor * sum / weight, plus
  /// each auxiliary sum per row. Undefined where a term has weight 0, as when nothing was added.
  Number value() const;
  /// Of the first term: what the gradients of a step are divided by.
  double weight() const { return weights_.front(); }
  std::size_t term_count() const { return sums_.size(); }
  std::int64_t rows() const { return rows_; }

  /// Everything in it as numbers: sums of all terms, their weights, and the rows.
  std::vector<double> numbers() const;
  std::vector<std::pair<std::string, double>> auxiliary_sums() const;
  /// The totals that have these numbers.
  void set(std::span<const double> numbers,
           const std::vector<std::pair<std::string, double>>& auxiliary_sums);
  bool is_finite() const;

  /// Where there are several terms, each one's mean, not multiplied by its factor: "loss.<name>";
  /// then the auxiliary terms per row.
  std::vector<MetricValue> terms() const;

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  struct Auxiliary {
    std::string name;
    double sum = 0;
  };

  void add_auxiliary(const std::string& name, double sum);

  const Objective* objective_ = nullptr;
  std::vector<double> sums_;
  std::vector<double> weights_;
  std::vector<Auxiliary> auxiliary_;
  std::int64_t rows_ = 0;
};

}  // namespace treadle::engine
