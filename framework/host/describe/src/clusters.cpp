#include <treadle/host/describe/clusters.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/random.h>

namespace treadle::describe {
namespace {

/// Of k-means, each begun anew: the best inertia counts.
constexpr std::uint64_t kStarts = 3;

/// Without matrix products, whose rounding shows in small distances.
at::Tensor distances(const at::Tensor& a, const at::Tensor& b) {
  constexpr std::int64_t kNoProducts = 2;
  return at::cdist(a, b, 2.0, kNoProducts);
}

at::Tensor plus_plus_start(const at::Tensor& points, std::int64_t clusters, RandomBits bits) {
  const std::int64_t rows = points.size(0);
  const auto draw = [&] {
    return static_cast<std::int64_t>(bits.below(static_cast<std::uint64_t>(rows)));
  };
  std::vector<at::Tensor> centers{points[draw()]};
  at::Tensor nearest = (points - centers.back()).square().sum(1);
  while (static_cast<std::int64_t>(centers.size()) < clusters) {
    const at::Tensor sums = nearest.cumsum(0).contiguous();
    const auto* const sum = sums.data_ptr<double>();
    const double total = sum[rows - 1];
    // Points that all are centers already: any.
    const std::int64_t next =
        total > 0 ? std::min(std::upper_bound(sum, sum + rows, bits.uniform() * total) - sum,
                             static_cast<std::ptrdiff_t>(rows - 1))
                  : draw();
    centers.push_back(points[next]);
    nearest = at::min(nearest, (points - centers.back()).square().sum(1));
  }
  return at::stack(centers);
}

at::Tensor sums_by_label(const at::Tensor& values, const at::Tensor& labels,
                         std::int64_t clusters) {
  return at::zeros({clusters, values.size(1)}, at::kDouble).index_add_(0, labels, values);
}

at::Tensor scaled(const at::Tensor& columns) {
  const at::Tensor has = at::isfinite(columns);
  const at::Tensor zero = at::zeros({}, at::kDouble);
  const at::Tensor rows = has.to(at::kDouble).sum(0).clamp_min(1);
  const at::Tensor mean = at::where(has, columns, zero).sum(0) / rows;
  const at::Tensor centred = at::where(has, columns - mean, zero);
  const at::Tensor deviation = (centred.square().sum(0) / rows).sqrt();
  const at::Tensor varies = deviation.gt(mean.abs() * 1e-12).nonzero().squeeze(1);
  return centred.index_select(1, varies) / deviation.index_select(0, varies);
}

}  // namespace

KMeansResult k_means(const at::Tensor& points, const KMeansOptions& options) {
  TREADLE_EXPECTS(points.dim() == 2 && points.size(0) > 0 && points.scalar_type() == at::kDouble,
                  "points of float64 [N, D], N >= 1");
  TREADLE_EXPECTS(options.clusters > 0, "at least one cluster");
  const std::int64_t clusters = std::min(options.clusters, points.size(0));
  KMeansResult result;
  result.centers =
      options.start.defined()
          ? options.start
          : plus_plus_start(points, clusters, RandomStreams(options.seed).bits("k-means"));
  TREADLE_EXPECTS(result.centers.size(0) == clusters && result.centers.size(1) == points.size(1),
                  "a start of float64 [clusters, D]");
  while (result.iterations < options.most_iterations) {
    ++result.iterations;
    const auto [nearest, labels] = distances(points, result.centers).min(1);
    at::Tensor now = labels;
    at::Tensor rows = at::bincount(now, {}, clusters);
    at::Tensor far = nearest;
    for (std::int64_t cluster = 0; cluster < clusters; ++cluster) {
      if (rows[cluster].item<std::int64_t>() > 0)
        continue;
      // Of a cluster that keeps another point.
      const at::Tensor may_leave = rows.index_select(0, now).gt(1);
      const at::Tensor farthest = at::argmax(at::where(may_leave, far, at::zeros_like(far) - 1));
      now = now.index_fill(0, farthest.unsqueeze(0), cluster);
      far = far.index_fill(0, farthest.unsqueeze(0), 0);
      rows = at::bincount(now, {}, clusters);
    }
    const bool is_settled = result.labels.defined() && result.labels.equal(now);
    result.labels = now;
    if (is_settled)
      break;
    result.centers =
        sums_by_label(points, result.labels, clusters) / rows.unsqueeze(1).to(at::kDouble);
  }
  result.inertia =
      (points - result.centers.index_select(0, result.labels)).square().sum().item<double>();
  return result;
}

double euclidean_distance(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw DataError("a distance needs points with as many coordinates, got " +
                    std::to_string(a.size()) + " and " + std::to_string(b.size()));
  }
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

Number silhouette(const at::Tensor& points, const at::Tensor& labels) {
  TREADLE_EXPECTS(points.dim() == 2 && labels.dim() == 1 && labels.size(0) == points.size(0),
                  "a label for each point");
  if (points.size(0) < 2)
    return Number::undefined("there are fewer than two rows");
  const at::Tensor rows = at::bincount(labels).to(at::kDouble);  // [K]
  if (rows.gt(0).sum().item<std::int64_t>() < 2)
    return Number::undefined("all rows are in one cluster");
  // [N, K]: the sum of the distances of a point to those of each cluster.
  const at::Tensor sums =
      distances(points, points).matmul(at::one_hot(labels, rows.size(0)).to(at::kDouble));
  const at::Tensor own = labels.unsqueeze(1);
  const at::Tensor rows_of_own = rows.index_select(0, labels);
  const at::Tensor within = sums.gather(1, own).squeeze(1) / (rows_of_own - 1).clamp_min(1);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const at::Tensor others = (sums / rows.clamp_min(1))
                                .masked_fill(rows.eq(0).unsqueeze(0), kNever)
                                .scatter(1, own, kNever);
  const at::Tensor beside = std::get<0>(others.min(1));
  const at::Tensor larger = at::max(within, beside);
  const at::Tensor counts = rows_of_own.gt(1).logical_and(larger.gt(0));
  return at::where(counts, (beside - within) / larger, at::zeros_like(larger))
      .mean()
      .item<double>();
}

Clusters find_clusters(const at::Tensor& columns, std::uint64_t seed) {
  Clusters found;
  at::Tensor points = scaled(columns);
  if (points.size(1) == 0) {
    found.why_none = "no input column has different numbers";
    return found;
  }
  const RandomStreams streams(seed);
  if (points.size(0) > kMostClusteredRows) {
    std::vector<std::int64_t> rows = random_permutation(points.size(0), streams.bits("rows"));
    rows.resize(static_cast<std::size_t>(kMostClusteredRows));
    std::sort(rows.begin(), rows.end());
    points = points.index_select(0, at::tensor(rows, at::kLong));
  }
  if (points.size(0) <= kMostClusters) {
    found.why_none = "there are too few rows";
    return found;
  }
  found.rows = points.size(0);
  found.silhouette = -1;
  for (std::int64_t clusters = 2; clusters <= kMostClusters; ++clusters) {
    KMeansResult best;
    for (std::uint64_t start = 0; start < kStarts; ++start) {
      const KMeansResult result =
          k_means(points, {.clusters = clusters, .seed = streams.seed("start", {start})});
      if (start == 0 || result.inertia < best.inertia)
        best = result;
    }
    const Number score = silhouette(points, best.labels);
    found.silhouettes.push_back(score.is_known() ? score.value() : 0);
    if (found.silhouettes.back() > found.silhouette) {
      found.silhouette = found.silhouettes.back();
      found.clusters = clusters;
      const at::Tensor rows = at::bincount(best.labels, {}, clusters);
      const auto* const row = rows.data_ptr<std::int64_t>();
      found.sizes.assign(row, row + clusters);
      std::sort(found.sizes.begin(), found.sizes.end(), std::greater<>());
    }
  }
  return found;
}

void to_json(nlohmann::json& json, const Clusters& clusters) {
  if (clusters.rows == 0) {
    json = {{"rows", 0}, {"why_none", clusters.why_none}};
    return;
  }
  json = {{"rows", clusters.rows},
          {"clusters", clusters.clusters},
          {"silhouette", clusters.silhouette},
          {"sizes", clusters.sizes},
          {"silhouettes", clusters.silhouettes}};
}

void from_json(const nlohmann::json& json, Clusters& clusters) {
  clusters = {};
  json.at("rows").get_to(clusters.rows);
  if (clusters.rows == 0) {
    json.at("why_none").get_to(clusters.why_none);
    return;
  }
  json.at("clusters").get_to(clusters.clusters);
  json.at("silhouette").get_to(clusters.silhouette);
  json.at("sizes").get_to(clusters.sizes);
  json.at("silhouettes").get_to(clusters.silhouettes);
}

}  // namespace treadle::describe
