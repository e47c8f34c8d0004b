#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/devices/device_constant.h>

#include "augmentation.h"

namespace treadle::augmentation {

/// `noise`: adds a normal number to each chosen value of a training batch, in place. A missing
/// value stays missing, padding stays 0.
class Noise final : public Augmentation {
 public:
  explicit Noise(const Config& config);
  ~Noise() override;

 private:
  /// What a name in the parameters may be the name of.
  enum class NameOf { kColumn, kInput, kEither };
  struct Named {
    std::string name;
    NameOf of = NameOf::kEither;
    double deviation = 0;
  };
  /// Of one input: a number per column, or one for all values. 0: stays as it is.
  using Deviations = std::vector<double>;

  const Named* find(const std::string& name, NameOf of) const;
  void expect_known_names(const DataSpec& spec) const;
  Deviations deviations_of(const PortSpec& port) const;
  std::vector<Deviations> choose(const DataSpec& spec) const;

  void add_on_device(at::Tensor& values, std::size_t port, const ApplyContext& context) const;

  void prepare(const DataSpec& before) override;
  void change(Batch& batch, const ApplyContext& context) const override;
  DataSpec do_output_spec(const DataSpec& before) const override;

  /// For each input, the port with its lengths, where it has padding.
  std::vector<std::optional<std::size_t>> lengths_;
  std::vector<Named> named_;  // empty: everything that is a number
  double deviation_ = 0;      // of what has no name
  std::vector<Deviations> deviations_;
  std::vector<DeviceConstant> on_device_;  // the same, [1] or [columns]
};

}  // namespace treadle::augmentation
