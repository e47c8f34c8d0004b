#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/number.h>
#include <treadle/core/components/state_dict.h>

namespace treadle {

/// Reduction of a tensor's elements to one number. kNorm is the Euclidean norm of all elements.
enum class Reduction { kMean, kSum, kMax, kMin, kNorm };

/// "mean", "sum", "max", "min", "norm"; nothing for another word.
std::optional<Reduction> reduction_named(std::string_view word);
std::string_view name_of(Reduction reduction);

/// The value as one number: float64, without dimensions or gradients, on its device, which is not
/// waited for. `name` is what it is called in the UsageError for a value of several elements
/// without a reduction, or of none.
at::Tensor reduced(std::string_view name, const at::Tensor& value,
                   std::optional<Reduction> reduction = {});

/// Sums of the values that are logged during an epoch (ForwardContext::log). Constant memory in
/// the number of batches; synchronizes with the device only in means(). One stream of forwards at a
/// time.
class LoggedValues final : public Stateful {
 public:
  /// How many rows the values have that are added from now on: means count each row once. 1 before.
  void weigh_by(std::int64_t rows) { rows_ = rows; }
  /// The value of one batch.
  void add(std::string_view name, const at::Tensor& value, std::optional<Reduction> reduction = {});
  /// Everything that `other` was given, as if it had been given here, after ours.
  void add(const LoggedValues& other);

  bool empty() const { return sums_.empty(); }
  void clear() { sums_.clear(); }

  /// The mean over the rows of what was added under each name, in the order of their first values.
  std::vector<MetricValue> means() const;

 private:
  struct Sum {
    std::string name;
    at::Tensor sum;  // float64 [], of values times rows
    std::int64_t rows = 0;
  };

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void add(std::string_view name, at::Tensor sum, std::int64_t rows);

  std::vector<Sum> sums_;
  std::int64_t rows_ = 1;
};

}  // namespace treadle
