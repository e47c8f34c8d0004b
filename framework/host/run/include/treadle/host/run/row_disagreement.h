#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/host/compare/significance.h>
#include <treadle/host/run/compared_predictions.h>

/// Which rows runs disagree on, and what two of them would gain together.
///
/// Tests of rows measure these models on rows like these, which are taken as independent. They say
/// nothing of the same methods with other seeds.
namespace treadle {

/// Of targets with classes or labels. A row of a target with positions counts once for each.
struct ClassDisagreement {
  struct Pair {
    std::size_t first = 0;
    std::size_t second = 0;
    /// Share of rows of which at least one has the right answer. An oracle bound: no combination of
    /// the two exceeds it, and only one that always picks the right one would reach it.
    double coverage = 0;
    double overlap = 0;  ///< share of rows of which both have
    std::int64_t only_first = 0;
    std::int64_t only_second = 0;
    double averaged_accuracy = 0;  ///< of the mean of their probabilities
    double p = 1;                  ///< McNemar's exact test
    double p_holm = 1;             ///< corrected for all pairs
  };

  std::int64_t rows = 0;
  at::Tensor right;              ///< bool [runs, rows]
  at::Tensor agreement;          ///< float64 [runs, runs]: share of rows with the same prediction
  std::vector<double> accuracy;  ///< of each run
  std::vector<std::int64_t> alone;  ///< how many rows only this run has right
  std::int64_t all_right = 0;
  std::int64_t none_right = 0;
  std::vector<std::int64_t> disagreements;  ///< rows without one prediction of all, by position
  std::vector<Pair> pairs;                  ///< by coverage, descending, then by overlap, ascending
};
ClassDisagreement class_disagreement(const ComparedPredictions::Target& target);

/// Of targets with numbers. The error of a row is that of all its numbers.
struct NumberDisagreement {
  struct Pair {
    std::size_t first = 0;
    std::size_t second = 0;
    std::optional<double> correlation;  ///< of their errors; nothing where one has no spread
    double averaged_rmse = 0;           ///< of the mean of their predictions
    double difference = 0;              ///< of mean squared errors, first - second
    std::optional<compare::Interval>
        interval;       ///< of the difference, see compare::bootstrap_interval()
    double p = 1;       ///< Wilcoxon's signed ranks of squared errors by row
    double p_holm = 1;  ///< corrected for all pairs
  };

  std::int64_t rows = 0;
  std::vector<double> rmse;                 ///< of each run
  at::Tensor spread;                        ///< float64 [rows]: largest - smallest prediction
  std::vector<std::int64_t> disagreements;  ///< all rows by position, the largest spread first
  std::vector<Pair> pairs;                  ///< by averaged_rmse, ascending
};
NumberDisagreement number_disagreement(const ComparedPredictions::Target& target);

/// The decisions of probabilities [N, positions..., C], a row for each position: int64 [M, 1], the
/// likeliest class; of labels [M, C], 1 for each whose probability is at least 1/2.
at::Tensor decided(const TargetSpec& spec, const at::Tensor& probabilities);
/// The same of the target itself.
at::Tensor decided_target(const ComparedPredictions::Target& target);

}  // namespace treadle
