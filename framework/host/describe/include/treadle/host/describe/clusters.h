#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <treadle/base/number.h>

/// Groups of rows that lie close together.
namespace treadle::describe {

struct KMeansOptions {
  std::int64_t clusters = 2;  ///< capped at the number of points
  std::uint64_t seed = 0;
  std::int64_t most_iterations = 100;
  at::Tensor start = {};  ///< float64 [clusters, D]; undefined: k-means++
};

struct KMeansResult {
  at::Tensor labels;            ///< int64 [N]
  at::Tensor centers;           ///< float64 [clusters, D]
  double inertia = 0;           ///< the sum of squared distances to the own center
  std::int64_t iterations = 0;  ///< until no point changed its cluster
};

/// Lloyd's algorithm with Euclidean distances, begun by k-means++ (D. Arthur & S. Vassilvitskii,
/// SODA 2007). A cluster that becomes empty goes to the point that is farthest from its center.
/// `points`: float64 [N, D], N >= 1, all finite. The same seed gives the same result. Throws a
/// ContractViolation for other tensors and for fewer than one cluster.
KMeansResult k_means(const at::Tensor& points, const KMeansOptions& options);

/// Throws a DataError where the points have different numbers of coordinates.
double euclidean_distance(std::span<const double> a, std::span<const double> b);

/// The mean of (b - a) / max(a, b) over the points, where a is the mean distance to the others of
/// the own cluster and b the smallest mean distance to another cluster (P. Rousseeuw, J. Comput.
/// Appl. Math. 20, 1987). A point that is a cluster by itself counts 0. Undefined for fewer than
/// two points or clusters. O(N²) distances. `labels`: int64 [N], from 0 on.
Number silhouette(const at::Tensor& points, const at::Tensor& labels);

/// More rows than this are represented by a sample: silhouettes take all distances.
inline constexpr std::int64_t kMostClusteredRows = 2000;
inline constexpr std::int64_t kMostClusters = 8;

/// The number of clusters, of 2 to kMostClusters, with the best silhouette.
struct Clusters {
  std::int64_t rows = 0;                 ///< that were clustered; 0: no clusters, see `why_none`
  std::int64_t clusters = 0;             ///< the best number
  double silhouette = 0;                 ///< of that number
  std::vector<std::int64_t> sizes = {};  ///< of that number, the largest first
  std::vector<double> silhouettes = {};  ///< of 2, 3, … clusters
  std::string why_none = {};
};

/// Of columns scaled to mean 0 and deviation 1, in which missing values are the mean. Constant
/// columns are left out. `columns`: float64 [N, D], NaN: missing.
Clusters find_clusters(const at::Tensor& columns, std::uint64_t seed);

void to_json(nlohmann::json& json, const Clusters& clusters);
void from_json(const nlohmann::json& json, Clusters& clusters);

}  // namespace treadle::describe
