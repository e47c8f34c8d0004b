#include "curves.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace treadle::benchmarks {
namespace {

constexpr int kEpochs = 2;
// Of a loss, relative: orders of addition differ, and many steps make more of it. Another rate,
// another order of the rows or a forgotten bias make hundredths of a difference.
constexpr double kSame = 1e-3;

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

}  // namespace

Compared compare_curves(const Workload& workload, const std::filesystem::path& folder,
                        const Runner& first, const std::vector<std::unique_ptr<Way>>& others) {
  const Assignment assignment{.folder = folder,
                              .epochs = kEpochs,
                              .weights = first.initial_weights(folder),
                              .shuffle = false};
  const Outcome expected = first.train(workload, assignment);
  std::printf("  training losses of %zu epochs of the %s:", expected.losses.size(),
              first.name().c_str());
  print_losses(expected.losses);
  std::printf("; libtorch %s\n  largest relative difference from them, at most %g:\n",
              expected.libtorch.c_str(), kSame);

  Compared compared;
  compared.same.push_back(&first);
  for (const auto& way : others) {
    std::printf("    %-32s", way->name().c_str());
    try {
      const Outcome outcome = way->train(workload, assignment);
      const double difference = largest_difference(expected.losses, outcome.losses);
      const bool is_same = difference <= kSame;
      std::printf("%.1e%s", difference, is_same ? "" : "  DIFFERS, so its time says nothing:");
      if (!is_same)
        print_losses(outcome.losses);
      if (outcome.libtorch.substr(0, expected.libtorch.size()) != expected.libtorch)
        std::printf("  (libtorch %s)", outcome.libtorch.c_str());
      std::printf("\n");
      if (is_same)
        compared.same.push_back(way.get());
      else
        compared.all_agree = false;
    } catch (const NotHere& reason) {
      std::printf("not here: %s\n", reason.what());
    }
    std::fflush(stdout);
  }
  return compared;
}

}  // namespace treadle::benchmarks
