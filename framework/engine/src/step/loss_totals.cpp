#include <treadle/engine/loss_totals.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::engine {

LossTotals::LossTotals(const Objective& objective)
    : objective_(&objective),
      sums_(objective.terms().size(), 0),
      weights_(objective.terms().size(), 0) {}

void LossTotals::add(const BatchLoss& loss, std::int64_t rows) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const BatchLoss::Term& term = loss.terms[i];
    sums_[i] += term.sum.item<double>();
    weights_[i] += term.weight.defined() ? term.weight.item<double>() : term.count;
  }
  for (const AuxiliaryLoss& one : loss.auxiliary)
    add_auxiliary(one.name, one.sum.item<double>());
  rows_ += rows;
}

void LossTotals::add(const LossTotals& more) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] += more.sums_[i];
    weights_[i] += more.weights_[i];
  }
  for (const Auxiliary& one : more.auxiliary_)
    add_auxiliary(one.name, one.sum);
  rows_ += more.rows_;
}

void LossTotals::add_auxiliary(const std::string& name, double sum) {
  const auto known = std::find_if(auxiliary_.begin(), auxiliary_.end(),
                                  [&](const Auxiliary& mine) { return mine.name == name; });
  if (known == auxiliary_.end()) {
    auxiliary_.push_back({name, sum});
  } else {
    known->sum += sum;
  }
}

void LossTotals::clear() {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(weights_.begin(), weights_.end(), 0.0);
  auxiliary_.clear();
  rows_ = 0;
}

Number LossTotals::value() const {
  const Number value = objective_ != nullptr ? objective_->value(sums_, weights_)
                                             : weighted_mean(sums_.front(), weights_.front());
  if (value.is_undefined())
    return value;
  double with_auxiliary = value;
  for (const Auxiliary& one : auxiliary_)
    with_auxiliary += one.sum / static_cast<double>(rows_);
  return with_auxiliary;
}

bool LossTotals::is_finite() const {
  const auto finite = [](double sum) { return std::isfinite(sum); };
  return std::all_of(sums_.begin(), sums_.end(), finite) &&
         std::all_of(auxiliary_.begin(), auxiliary_.end(),
                     [&](const Auxiliary& one) { return finite(one.sum); });
}

std::vector<MetricValue> LossTotals::terms() const {
  std::vector<MetricValue> values;
  if (sums_.size() > 1) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      values.push_back({"loss." + objective_->terms()[i].name, weighted_mean(sums_[i], weights_[i]),
                        Direction::kLowerIsBetter});
    }
  }
  for (const Auxiliary& one : auxiliary_) {
    values.push_back(
        {one.name, weighted_mean(one.sum, static_cast<double>(rows_)), Direction::kLowerIsBetter});
  }
  return values;
}

std::vector<double> LossTotals::numbers() const {
  std::vector<double> numbers = sums_;
  numbers.insert(numbers.end(), weights_.begin(), weights_.end());
  numbers.push_back(static_cast<double>(rows_));
  return numbers;
}

std::vector<std::pair<std::string, double>> LossTotals::auxiliary_sums() const {
  std::vector<std::pair<std::string, double>> sums;
  for (const Auxiliary& one : auxiliary_)
    sums.emplace_back(one.name, one.sum);
  return sums;
}

void LossTotals::set(std::span<const double> numbers,
                     const std::vector<std::pair<std::string, double>>& auxiliary_sums) {
  TREADLE_EXPECTS(numbers.size() == 2 * sums_.size() + 1, "these are totals of other terms");
  const auto terms = static_cast<std::ptrdiff_t>(sums_.size());
  std::copy(numbers.begin(), numbers.begin() + terms, sums_.begin());
  std::copy(numbers.begin() + terms, numbers.begin() + 2 * terms, weights_.begin());
  rows_ = static_cast<std::int64_t>(numbers.back());
  auxiliary_.clear();
  for (const auto& [name, sum] : auxiliary_sums)
    auxiliary_.push_back({name, sum});
}

StateDict LossTotals::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    state.put_number("sum-" + std::to_string(i), sums_[i]);
    state.put_number("weight-" + std::to_string(i), weights_[i]);
  }
  nlohmann::json names = nlohmann::json::array();
  for (const Auxiliary& one : auxiliary_) {
    state.put_number("auxiliary-" + std::to_string(names.size()), one.sum);
    names.push_back(one.name);
  }
  state.put("auxiliary", std::move(names));
  state.put("rows", nlohmann::json(rows_));
  return state;
}

void LossTotals::do_load_state(const StateDict& state) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] = state.number("sum-" + std::to_string(i));
    weights_[i] = state.number("weight-" + std::to_string(i));
  }
  auxiliary_.clear();
  for (const nlohmann::json& name : state.value("auxiliary")) {
    auxiliary_.push_back(
        {name.get<std::string>(), state.number("auxiliary-" + std::to_string(auxiliary_.size()))});
  }
  rows_ = state.value("rows").get<std::int64_t>();
}

}  // namespace treadle::engine
