#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle {

/// How long a forward pass takes, by what it costs:
///
///     seconds = alpha · FLOPs / peak + beta · bytes / bandwidth + bias · calls
///
/// `alpha` and `beta` say how far a machine is from its peak and its bandwidth, `bias` is what the
/// call of a layer takes: that predicts better than one for each network; see latency_model.cpp.
class LatencyModel {
 public:
  /// A forward pass, by count, and where it was measured how long it took.
  struct Pass {
    std::string name = {};
    double flops = 0;
    double bytes = 0;
    double calls = 0;
    double seconds = 0;
  };
  struct Fit;

  static constexpr double kPeakGflops = 1000;  ///< GFLOP/s
  static constexpr double kBandwidth = 200;    ///< GB/s

  /// A machine that reaches both, and calls layers in no time.
  LatencyModel() = default;

  /// Ordinary least squares: the coefficients with the smallest sum of squared errors in seconds.
  /// Throws a DataError for fewer than three passes, for passes that do not differ in FLOPs, bytes
  /// and calls independently of each other, and for a number that is not finite and above 0.
  static Fit fit(std::span<const Pass> passes, double peak_gflops = kPeakGflops,
                 double bandwidth = kBandwidth);

  /// From the file that write() makes. Throws a StorageError where it is none.
  static LatencyModel read(const std::filesystem::path& file);
  /// From json(); keys may be missing. Expects what the schema of `search.latency` accepts.
  static LatencyModel from_json(const nlohmann::json& json);
  nlohmann::json json() const;

  double seconds(double flops, double bytes, double calls) const;

  double alpha() const { return alpha_; }
  double beta() const { return beta_; }
  double bias() const { return bias_; }

 private:
  double alpha_ = 1;
  double beta_ = 1;
  double bias_ = 0;  ///< seconds
  double peak_gflops_ = kPeakGflops;
  double bandwidth_ = kBandwidth;
};

/// A model of a machine, and how well it explains what was measured.
struct LatencyModel::Fit {
  LatencyModel model;
  double r_squared = 0;  ///< 1 - squared errors / squared deviations from the mean
  /// The median of |predicted - measured| / measured.
  double relative_error = 0;
};

/// The file of a calibrated machine: the model, its quality, and the passes it was fitted to.
nlohmann::json latency_file(const LatencyModel::Fit& fit,
                            std::span<const LatencyModel::Pass> passes);

}  // namespace treadle
