#include "weighted.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/random.h>
#include <treadle/core/data/transform.h>

namespace treadle::samplers {
namespace {

/// Each position a draw of its own.
class Draws final : public SampleOrder {
 public:
  Draws(RowList rows, std::vector<double> weights, std::int64_t size, std::uint64_t seed)
      : rows_(std::move(rows)), sums_(scaled(std::move(weights))), size_(size), random_(seed) {
    std::partial_sum(sums_.begin(), sums_.end(), sums_.begin());
  }

  /// Finite weights whose sum is none, or too small to multiply, in other units.
  static std::vector<double> scaled(std::vector<double> weights) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (std::isnormal(sum))
      return weights;
    const double most = *std::max_element(weights.begin(), weights.end());
    for (double& weight : weights)
      weight /= most;
    return weights;
  }

 private:
  std::int64_t do_size() const override { return size_; }

  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    for (std::int64_t& row : rows) {
      const double uniform = random_.bits("draw", {static_cast<std::uint64_t>(begin++)}).uniform();
      // Below the last sum, as uniform <= 1 - 2^-53. A row of weight 0 has the sum of the one
      // before it, and is never the first above anything.
      const auto drawn = std::upper_bound(sums_.begin(), sums_.end(), uniform * sums_.back());
      row = rows_[static_cast<std::size_t>(drawn - sums_.begin())];
    }
  }

  RowList rows_;
  std::vector<double> sums_;
  std::int64_t size_;
  RandomStreams random_;
};

bool has_class_per_row(const TargetSpec& target) {
  return target.kind == TargetKind::kClasses && target.shape.empty();
}

std::size_t class_target_of(const DataSpec& spec, const std::optional<std::string>& name) {
  std::vector<std::string> suitable;
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    if (!has_class_per_row(spec.targets[i]))
      continue;
    if (!name || spec.targets[i].name == *name)
      return i;
    suitable.push_back(spec.targets[i].name);
  }
  if (name)
    spec.target_index(*name);  // throws when there is no such target
  throw DataError("the sampler weighted goes by class, and " +
                  (name ? "target " + quote_text(*name) + " has not one class per row"
                        : std::string("no target has one class per row")) +
                  (suitable.empty() ? "; give rows weights and set \"by\": \"weights\""
                                    : "; targets that have: " + quoted_list(suitable)));
}

}  // namespace

Weighted::Weighted(const Config& config)
    : by_class_(config.get<std::string>("by") == "class"),
      target_(config.find<std::string>("target")),
      replacement_(config.get<bool>("replacement")),
      samples_(config.find<std::int64_t>("samples")) {
  for (const char* const key : {"target", "class_weights"}) {
    if (!by_class_ && config.has(key))
      config.fail(key, "has no effect with \"by\": \"weights\"");
  }
  if (!config.has("class_weights"))
    return;
  for (const auto& [name, weight] : config.json().at("class_weights").items())
    class_weights_[name] = weight.get<double>();
}

Weighted::~Weighted() = default;

// Of the classes: 1, but for those the document names.
std::vector<double> Weighted::factors_of(const std::vector<std::string>& class_names) const {
  std::vector<double> factors(class_names.size(), 1.0);
  for (const auto& [name, weight] : class_weights_) {
    const auto found = std::find(class_names.begin(), class_names.end(), name);
    if (found == class_names.end()) {
      throw DataError("the sampler weighted has \"class_weights\" for " + quote_text(name) +
                      ", which is no class" + did_you_mean(name, class_names) +
                      "; the classes are " + quoted_list(class_names));
    }
    factors[static_cast<std::size_t>(found - class_names.begin())] = weight;
  }
  return factors;
}

std::vector<double> Weighted::by_class(const SampleRequest& request) const {
  const DataSpec& spec = request.reader->spec();
  const std::size_t target = class_target_of(spec, target_);
  const std::vector<double> factors = factors_of(spec.targets[target].class_names);
  const at::Tensor classes = request.reader->targets(target).contiguous();
  const std::int64_t* const class_of = classes.data_ptr<std::int64_t>();
  std::vector<double> counts(factors.size(), 0.0);
  for (const std::int64_t row : request.rows)
    ++counts[static_cast<std::size_t>(class_of[row])];
  std::vector<double> weights;
  weights.reserve(request.rows.size());
  for (const std::int64_t row : request.rows) {
    const auto c = static_cast<std::size_t>(class_of[row]);
    weights.push_back(factors[c] / counts[c]);
  }
  return weights;
}

std::vector<double> Weighted::weights(const SampleRequest& request) const {
  std::vector<double> weights;
  if (by_class_) {
    weights = by_class(request);
  } else {
    if (!request.reader->spec().has_weights) {
      throw DataError(
          "the sampler weighted has \"by\": \"weights\", and the data has no weights; name them in "
          "\"data\", or set \"by\": \"class\"");
    }
    weights.reserve(request.rows.size());
    for_each_chunk(*request.reader, request.rows, [&](const Batch& batch) {
      const at::Tensor chunk = batch.weights.to(at::kDouble).contiguous();
      const double* const begin = chunk.data_ptr<double>();
      weights.insert(weights.end(), begin, begin + chunk.numel());
    });
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0 && std::isfinite(weights[i]))) {
      throw DataError(request.reader->describe_row(request.rows[i]) +
                      ": a weight must be 0 or a positive number, got " +
                      std::to_string(weights[i]));
    }
  }
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; }))
    throw DataError("the sampler weighted: all training rows have weight 0");
  return weights;
}

std::unique_ptr<const SampleOrder> Weighted::without_replacement(
    const SampleRequest& request, const std::vector<double>& weights) const {
  const auto samples =
      static_cast<std::size_t>(samples_.value_or(static_cast<std::int64_t>(request.rows.size())));
  // -log(u) / weight, smallest first, is u^(1 / weight), largest first, and does not underflow.
  std::vector<std::pair<double, std::int64_t>> keys;
  const RandomStreams random(request.seed);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      const double uniform = random.bits("key", {i}).uniform();
      keys.emplace_back(-std::log1p(-uniform) / weights[i], request.rows[i]);
    }
  }
  if (samples > keys.size()) {
    throw DataError("the sampler weighted is to draw " + std::to_string(samples) +
                    " rows without replacement, and " + std::to_string(keys.size()) + " of the " +
                    std::to_string(request.rows.size()) +
                    " training rows have a weight above 0; set \"samples\" to at most " +
                    std::to_string(keys.size()) + ", or \"replacement\": true");
  }
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(samples), keys.end());
  std::vector<std::int64_t> rows;
  rows.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i)
    rows.push_back(keys[i].second);
  return rows_listed(std::move(rows));
}

std::unique_ptr<const SampleOrder> Weighted::do_order(const SampleRequest& request) const {
  std::vector<double> drawn_by = weights(request);
  if (!replacement_)
    return without_replacement(request, drawn_by);
  const std::int64_t size = do_samples(static_cast<std::int64_t>(request.rows.size()));
  return std::make_unique<Draws>(request.rows, std::move(drawn_by), size, request.seed);
}

}  // namespace treadle::samplers
