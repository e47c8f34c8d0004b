#include <treadle/host/explain/permutation_importance.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/host/describe/correlations.h>
#include <treadle/host/explain/row_losses.h>

namespace treadle::explain {
namespace {

/// One group of columns in one repeat.
struct Copy {
  std::size_t group;
  std::int64_t repeat;
};

at::Tensor permutation(std::int64_t rows, RandomBits bits) {
  return at::tensor(random_permutation(rows, bits), at::kLong);
}

/// Mean and deviation; undefined with the reason of the first repeat that is not known.
void summarize(Importance& importance) {
  double sum = 0;
  for (const Number& value : importance.repeats) {
    if (!value.is_known()) {
      importance.mean = importance.deviation = value;
      return;
    }
    sum += value;
  }
  const auto count = static_cast<double>(importance.repeats.size());
  importance.mean = sum / count;
  if (importance.repeats.size() < 2) {
    importance.deviation = Number::undefined("there is one repeat");
    return;
  }
  double squares = 0;
  for (const Number& value : importance.repeats)
    squares += (value - importance.mean) * (value - importance.mean);
  importance.deviation = std::sqrt(squares / (count - 1));
}

Number worsening(const Measure& measure, const Number& before, const Number& after) {
  if (!before.is_known())
    return before;
  if (!after.is_known())
    return after;
  return measure.direction == Direction::kHigherIsBetter ? before - after : after - before;
}

std::size_t root_of(std::vector<std::size_t>& parents, std::size_t one) {
  while (parents[one] != one)
    one = parents[one] = parents[parents[one]];
  return one;
}

}  // namespace

Measure mean_loss(const ExplainedRows& rows, std::size_t target) {
  return {std::string(loss_name(rows.targets[target])), Direction::kLowerIsBetter,
          [&rows, target](const std::vector<Predictions>& of_parts) {
            double sum = 0;
            double weight = 0;
            for (std::size_t i = 0; i < of_parts.size(); ++i) {
              const Batch& batch = rows.parts[i].rows;
              const at::Tensor losses =
                  row_losses(of_parts[i][target], batch, target, rows.targets[target]);
              at::Tensor weights =
                  batch.weights.defined() ? batch.weights.to(at::kDouble) : at::ones_like(losses);
              weights = at::where(at::isnan(losses), at::zeros_like(losses), weights);
              sum += at::where(weights.gt(0), losses * weights, at::zeros_like(losses))
                         .sum()
                         .item<double>();
              weight += weights.sum().item<double>();
            }
            return weighted_mean(sum, weight);
          }};
}

std::vector<std::vector<std::size_t>> correlated_groups(const ExplainedRows& rows,
                                                        double correlation) {
  const std::size_t count = rows.columns.size();
  std::vector<std::size_t> parents(count);
  std::iota(parents.begin(), parents.end(), 0);
  std::vector<std::size_t> numbers;
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < count; ++i) {
    if (rows.columns[i].is_category || !rows.columns[i].has_values)
      continue;
    numbers.push_back(i);
    values.push_back(rows.values_of(rows.columns[i]));
  }
  if (numbers.size() >= 2 && numbers.size() <= kMostGroupedColumns) {
    const describe::CorrelationMatrix rho = describe::spearman(at::stack(values, 1));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (std::abs(rho.at(i, k)) < correlation)
          continue;
        const std::size_t first = root_of(parents, numbers[i]);
        const std::size_t second = root_of(parents, numbers[k]);
        parents[std::max(first, second)] = std::min(first, second);
      }
    }
  }
  std::vector<std::vector<std::size_t>> by_root(count);
  for (std::size_t i = 0; i < count; ++i)
    by_root[root_of(parents, i)].push_back(i);
  std::erase_if(by_root, [](const auto& group) { return group.empty(); });
  return by_root;
}

std::vector<std::vector<Importance>> permutation_importance(
    const ExplainedRows& rows, const std::vector<std::vector<std::size_t>>& groups,
    const std::vector<Measure>& measures, std::int64_t repeats, const RandomStreams& random) {
  std::vector<Copy> copies;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat)
      copies.push_back({group, repeat});
  }
  std::vector<Predictions> unchanged;
  std::int64_t most = 1;  // rows of a part
  std::int64_t at_once = rows_at_once(rows.parts.front().rows);
  for (const ExplainedPart& part : rows.parts) {
    unchanged.push_back(part.predict(part.rows));
    most = std::max(most, part.rows.size());
    at_once = std::min(at_once, rows_at_once(part.rows));
  }
  std::vector<Number> before;
  std::vector<std::vector<Importance>> result(measures.size());
  for (std::size_t m = 0; m < measures.size(); ++m) {
    before.push_back(measures[m].of(unchanged));
    for (const std::vector<std::size_t>& group : groups)
      result[m].push_back({group, {}, {}, {}});
  }
  // Several copies of few rows make a batch; all parts are needed for a measure.
  const std::size_t together = static_cast<std::size_t>(std::max<std::int64_t>(at_once / most, 1));
  for (std::size_t begin = 0; begin < copies.size(); begin += together) {
    const std::size_t end = std::min(begin + together, copies.size());
    std::vector<std::vector<Predictions>> of_copies(end - begin);
    for (std::size_t p = 0; p < rows.parts.size(); ++p) {
      const ExplainedPart& part = rows.parts[p];
      const std::int64_t count = part.rows.size();
      Batch changed = repeated(part.rows, static_cast<std::int64_t>(end - begin));
      for (std::size_t i = begin; i < end; ++i) {
        const std::vector<std::size_t>& group = groups[copies[i].group];
        // By the first column's number, so that other columns change nothing.
        const at::Tensor order = permutation(
            count, random.bits("importance", {static_cast<std::uint64_t>(group.front()),
                                              static_cast<std::uint64_t>(copies[i].repeat), p}));
        for (const std::size_t column : group)
          put_column(rows.columns[column], part.rows, order, changed,
                     static_cast<std::int64_t>(i - begin) * count);
      }
      const Predictions predictions = part.predict(changed);
      for (std::size_t i = 0; i < of_copies.size(); ++i)
        of_copies[i].push_back(slice(predictions, static_cast<std::int64_t>(i) * count, count));
    }
    for (std::size_t m = 0; m < measures.size(); ++m) {
      for (std::size_t i = begin; i < end; ++i) {
        result[m][copies[i].group].repeats.push_back(
            worsening(measures[m], before[m], measures[m].of(of_copies[i - begin])));
      }
    }
  }
  for (std::vector<Importance>& of_measure : result)
    std::for_each(of_measure.begin(), of_measure.end(), summarize);
  return result;
}

}  // namespace treadle::explain
