#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/metric_computer.h>
#include <treadle/core/state_dict.h>

namespace treadle {

/// How the elements of a tensor become one number. kNorm is the Euclidean one, of all elements.
enum class Reduction { kMean, kSum, kMax, kMin, kNorm };

/// "mean", "sum", "max", "min", "norm"; nothing for another word.
std::optional<Reduction> reduction_named(std::string_view word);

/// The value as one number: float64, without dimensions or gradients, on its device, which is not
/// waited for. `name` is what it is called in the UsageError for a value of several elements
/// without a reduction, or of none.
at::Tensor reduced(std::string_view name, const at::Tensor& value,
                   std::optional<Reduction> reduction = {});

/// What the forwards of an epoch put here, as sums: a model is asked to show values by
/// ForwardContext::observed. Takes no more memory for more batches, and waits for no device before
/// means(). One stream of forwards at a time.
class ObservedValues final : public Stateful {
 public:
  /// The value of one batch.
  void add(std::string_view name, const at::Tensor& value, std::optional<Reduction> reduction = {});
  /// Everything that `other` was given, as if it had been given here, after ours.
  void add(const ObservedValues& other);

  bool empty() const { return sums_.empty(); }
  void clear() { sums_.clear(); }

  /// The mean over what was added under each name, in the order of their first values.
  std::vector<MetricValue> means() const;

 private:
  struct Sum {
    std::string name;
    at::Tensor sum;  // float64 []
    std::int64_t count = 0;
  };

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void add(std::string_view name, at::Tensor sum, std::int64_t count);

  std::vector<Sum> sums_;
};

}  // namespace treadle
