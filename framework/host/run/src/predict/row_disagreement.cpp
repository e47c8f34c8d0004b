#include <treadle/host/run/row_disagreement.h>

#include <algorithm>
#include <cmath>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <treadle/core/validation/predictions.h>

namespace treadle {
namespace {

at::Tensor flat_rows(const at::Tensor& values) {
  return values.reshape({-1, values.size(-1)});
}

std::vector<std::int64_t> indices_of(const at::Tensor& mask) {
  const at::Tensor found = mask.nonzero().flatten().contiguous();
  const auto* const first = found.data_ptr<std::int64_t>();
  return {first, first + found.numel()};
}

std::int64_t count(const at::Tensor& mask) {
  return mask.sum().item<std::int64_t>();
}

double share(const at::Tensor& mask) {
  return mask.to(at::kDouble).mean().item<double>();
}

template <typename Pairs>
void correct_for_all_pairs(Pairs& pairs) {
  std::vector<double> p;
  for (const auto& pair : pairs)
    p.push_back(pair.p);
  const std::vector<double> corrected = compare::holm(p);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    pairs[i].p_holm = corrected[i];
}

std::span<const double> numbers_in(const at::Tensor& row) {
  return {row.data_ptr<double>(), static_cast<std::size_t>(row.numel())};
}

}  // namespace

at::Tensor decided(const TargetSpec& spec, const at::Tensor& probabilities) {
  const at::Tensor rows = flat_rows(probabilities);
  const at::Tensor answers = treadle::decided({spec.kind, rows}).to(at::kLong);
  return spec.kind == TargetKind::kLabels ? answers : answers.unsqueeze(-1);
}

at::Tensor decided_target(const ComparedPredictions::Target& target) {
  return target.spec.kind == TargetKind::kClasses ? target.actual.reshape({-1, 1})
                                                  : decided(target.spec, target.actual);
}

ClassDisagreement class_disagreement(const ComparedPredictions::Target& target) {
  const std::size_t runs = target.predicted.size();
  const auto count_of_runs = static_cast<std::int64_t>(runs);
  const at::Tensor actual = decided_target(target);
  const auto is_right = [&](const at::Tensor& answers) { return answers.eq(actual).all(-1); };
  std::vector<at::Tensor> answers;
  std::vector<at::Tensor> right;
  for (const at::Tensor& predicted : target.predicted) {
    answers.push_back(decided(target.spec, predicted));
    right.push_back(is_right(answers.back()));
  }
  ClassDisagreement result;
  result.rows = actual.size(0);
  result.right = at::stack(right);
  result.agreement = at::empty({count_of_runs, count_of_runs}, at::kDouble);
  const at::Tensor how_many = result.right.sum(0);
  result.all_right = count(how_many.eq(count_of_runs));
  result.none_right = count(how_many.eq(0));
  at::Tensor agree = how_many.ge(0);
  for (std::size_t i = 0; i < runs; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    result.accuracy.push_back(share(right[i]));
    result.alone.push_back(count(right[i].logical_and(how_many.eq(1))));
    agree = agree.logical_and(answers[i].eq(answers[0]).all(-1));
    for (std::size_t j = 0; j < runs; ++j) {
      result.agreement[row][static_cast<std::int64_t>(j)] =
          share(answers[i].eq(answers[j]).all(-1));
    }
    for (std::size_t j = i + 1; j < runs; ++j) {
      ClassDisagreement::Pair& pair = result.pairs.emplace_back();
      pair.first = i;
      pair.second = j;
      pair.coverage = share(right[i].logical_or(right[j]));
      pair.overlap = share(right[i].logical_and(right[j]));
      pair.only_first = count(right[i].logical_and(right[j].logical_not()));
      pair.only_second = count(right[j].logical_and(right[i].logical_not()));
      pair.averaged_accuracy =
          share(is_right(decided(target.spec, (target.predicted[i] + target.predicted[j]) / 2)));
      pair.p = compare::mcnemar_exact(pair.only_first, pair.only_second);
    }
  }
  result.disagreements = indices_of(agree.logical_not());
  correct_for_all_pairs(result.pairs);
  std::stable_sort(result.pairs.begin(), result.pairs.end(), [](const auto& a, const auto& b) {
    return a.coverage != b.coverage ? a.coverage > b.coverage : a.overlap < b.overlap;
  });
  return result;
}

NumberDisagreement number_disagreement(const ComparedPredictions::Target& target) {
  constexpr std::uint64_t kSeed = 0;
  const std::int64_t rows = target.actual.size(0);
  const at::Tensor actual = target.actual.reshape({rows, -1});
  std::vector<at::Tensor> predicted;
  std::vector<at::Tensor> squares;  // the mean squared error of each row
  NumberDisagreement result;
  result.rows = rows;
  const auto squared_errors = [&](const at::Tensor& values) {
    return (values - actual).square().mean(1).contiguous();
  };
  const auto rmse = [](const at::Tensor& of_rows) {
    return std::sqrt(of_rows.mean().item<double>());
  };
  for (const at::Tensor& values : target.predicted) {
    predicted.push_back(values.reshape({rows, -1}));
    squares.push_back(squared_errors(predicted.back()));
    result.rmse.push_back(rmse(squares.back()));
  }
  const at::Tensor all = at::stack(predicted);
  result.spread = (all.amax(0) - all.amin(0)).amax(1);
  const at::Tensor order = result.spread.argsort(0, /*descending=*/true).contiguous();
  result.disagreements.assign(order.data_ptr<std::int64_t>(),
                              order.data_ptr<std::int64_t>() + order.numel());
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    for (std::size_t j = i + 1; j < predicted.size(); ++j) {
      NumberDisagreement::Pair& pair = result.pairs.emplace_back();
      pair.first = i;
      pair.second = j;
      const auto centred = [&](std::size_t run) {
        const at::Tensor errors = predicted[run] - actual;
        return errors - errors.mean();
      };
      const at::Tensor ours = centred(i);
      const at::Tensor theirs = centred(j);
      const double correlation =
          (ours.mul(theirs).sum() / (ours.square().sum().sqrt() * theirs.square().sum().sqrt()))
              .item<double>();
      if (std::isfinite(correlation))
        pair.correlation = correlation;
      pair.averaged_rmse = rmse(squared_errors((predicted[i] + predicted[j]) / 2));
      const at::Tensor differences = squares[i] - squares[j];
      pair.difference = differences.mean().item<double>();
      pair.interval = compare::bootstrap_interval(numbers_in(differences), kSeed);
      const auto ranks = compare::wilcoxon_signed_rank(numbers_in(differences));
      pair.p = ranks ? ranks->p : 1;
    }
  }
  correct_for_all_pairs(result.pairs);
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const auto& a, const auto& b) { return a.averaged_rmse < b.averaged_rmse; });
  return result;
}

}  // namespace treadle
