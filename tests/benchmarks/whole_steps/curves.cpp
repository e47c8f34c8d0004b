#include "curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr int kEpochs = 2;

/// One comparison. `allowed` is relative, of a loss.
struct Check {
  const char* name;
  bool in_double;
  std::int64_t most_steps;  ///< an epoch
  double allowed;
};

// float64 says that two ways compute the same, to the last bit but for the order of additions.
// float32 is what is timed: there rounding alone soon grows into thousandths, so it is compared
// while it has not. Another rate, another order of the rows or a forgotten bias make hundredths.
constexpr std::array kChecks{Check{"float64", true, 64, 1e-6}, Check{"float32", false, 16, 1e-3}};

double largest_difference(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() != other.size())
    return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double difference = std::abs(one[i] - other[i]) / std::abs(one[i]);
    largest = difference <= largest ? largest : difference;  // also what is not a number
  }
  return largest;
}

void print_losses(const std::vector<double>& losses) {
  for (const double loss : losses)
    std::printf(" %.6f", loss);
}

/// A check of one workload: what is asked of everybody, and what the first way answers.
class Comparison {
 public:
  Comparison(const Check& check, const Workload& whole, const fs::path& folder, const Runner& first)
      : check_(check),
        workload_(whole.shortened(std::min(check.most_steps, whole.steps_per_epoch()), kEpochs)),
        assignment_{.folder = folder / check.name,
                    .epochs = kEpochs,
                    .shuffle = false,
                    .in_double = check.in_double} {
    workload_.write(assignment_.folder);
    assignment_.weights = first.initial_weights(assignment_.folder, check.in_double);
    expected_ = first.train(workload_, assignment_);
    std::printf("  in %s, %d epochs of %lld steps, losses of the %s:", check.name, kEpochs,
                static_cast<long long>(workload_.steps_per_epoch()), first.name().c_str());
    print_losses(expected_.losses);
    std::printf("; the others' may differ by %g of it\n", check.allowed);
  }

  /// Prints how far the way is from the first. Throws NotHere.
  bool agrees(const Way& way) const {
    const Outcome outcome = way.train(workload_, assignment_);
    const double difference = largest_difference(expected_.losses, outcome.losses);
    const bool is_same = difference <= check_.allowed;
    std::printf("  %.1e in %s", difference, check_.name);
    if (!is_same) {
      std::printf(" DIFFERS, so its time says nothing:");
      print_losses(outcome.losses);
    }
    if (outcome.libtorch.substr(0, expected_.libtorch.size()) != expected_.libtorch)
      std::printf(" (libtorch %s, not %s)", outcome.libtorch.c_str(), expected_.libtorch.c_str());
    std::fflush(stdout);
    return is_same;
  }

 private:
  const Check& check_;
  Workload workload_;
  Assignment assignment_;
  Outcome expected_;
};

}  // namespace

Compared compare_curves(const Workload& workload, const fs::path& folder, const Runner& first,
                        const std::vector<std::unique_ptr<Way>>& others) {
  std::vector<Comparison> comparisons;
  for (const Check& check : kChecks)
    comparisons.emplace_back(check, workload, folder, first);
  Compared compared;
  compared.same.push_back(&first);
  for (const auto& way : others) {
    std::printf("    %-30s", way->name().c_str());
    try {
      bool is_same = true;
      for (const Comparison& comparison : comparisons)
        is_same = comparison.agrees(*way) && is_same;
      if (is_same)
        compared.same.push_back(way.get());
      compared.all_agree = compared.all_agree && is_same;
    } catch (const NotHere& reason) {
      std::printf("  not here: %s", reason.what());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return compared;
}

}  // namespace treadle::benchmarks
