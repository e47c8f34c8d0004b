#include <treadle/host/describe/clusters.h>

#include <array>

#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

at::Tensor reference_points() {
  return numbers_of(reference().at("points"));
}

TEST(KMeans, FindsTheCentersOfScikitLearnFromTheSameStart) {
  const at::Tensor points = reference_points();

  const KMeansResult result = k_means(points, {.clusters = 3, .start = points.narrow(0, 0, 3)});

  EXPECT_TRUE(result.labels.equal(codes_of(reference().at("labels"))));
  EXPECT_TRUE(result.centers.allclose(numbers_of(reference().at("centers")), 0, 1e-9));
  EXPECT_NEAR(result.inertia, reference().at("inertia").get<double>(), 1e-9);
}

TEST(KMeans, FindsGroupsThatLieApartFromAnySeed) {
  const double best = k_means(reference_points(), {.clusters = 3, .seed = 0}).inertia;
  for (std::uint64_t seed = 1; seed < 10; ++seed)
    EXPECT_NEAR(k_means(reference_points(), {.clusters = 3, .seed = seed}).inertia, best, 1e-9);
}

TEST(KMeans, GivesTheSameForTheSameSeed) {
  const KMeansOptions options{.clusters = 5, .seed = 4};

  EXPECT_TRUE(k_means(reference_points(), options)
                  .labels.equal(k_means(reference_points(), options).labels));
}

TEST(KMeans, LeavesNoClusterEmpty) {
  const at::Tensor points = reference_points();
  // The second and third center are nearer to no point than the first.
  const at::Tensor start = at::cat({points.narrow(0, 0, 1), at::full({2, 2}, 1e6, at::kDouble)});

  const KMeansResult result = k_means(points, {.clusters = 3, .start = start});

  EXPECT_GT(at::bincount(result.labels, {}, 3).min().item<std::int64_t>(), 0);
}

TEST(KMeans, HasAtMostOneClusterForEachPoint) {
  const KMeansResult result = k_means(reference_points().narrow(0, 0, 3), {.clusters = 7});

  EXPECT_EQ(result.centers.size(0), 3);
  EXPECT_EQ(result.inertia, 0);
}

TEST(KMeans, TakesPointsThatAreAllEqual) {
  EXPECT_EQ(k_means(at::full({5, 2}, 1.5, at::kDouble), {.clusters = 2}).inertia, 0);
}

TEST(EuclideanDistance, RefusesPointsOfDifferentLengths) {
  const std::array a{0.0, 3.0, 1.0};
  const std::array b{4.0, 0.0};

  EXPECT_EQ(euclidean_distance(std::span(a).first(2), b), 5);
  try {
    euclidean_distance(a, b);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("got 3 and 2"));
  }
}

TEST(Silhouette, EqualsThatOfScikitLearn) {
  EXPECT_NEAR(silhouette(reference_points(), codes_of(reference().at("labels"))),
              reference().at("silhouette").get<double>(), kReferenceTolerance);
}

TEST(Silhouette, CountsASingletonAsZero) {
  EXPECT_NEAR(silhouette(reference_points(), codes_of(reference().at("singleton"))),
              reference().at("silhouette_singleton").get<double>(), kReferenceTolerance);
}

TEST(Silhouette, IsUndefinedForOneCluster) {
  const Number score = silhouette(reference_points(), at::full({60}, 2, at::kLong));

  EXPECT_TRUE(score.is_undefined());
  EXPECT_EQ(score.why(), "all rows are in one cluster");
}

TEST(FindClusters, FindsHowManyThereAre) {
  const Clusters found = find_clusters(reference_points(), 0);

  EXPECT_EQ(found.clusters, 3);
  EXPECT_THAT(found.sizes, ElementsAre(20, 20, 20));
  EXPECT_EQ(found.silhouettes.size(), 7U);
  EXPECT_EQ(found.silhouette, found.silhouettes[1]);
}

TEST(FindClusters, ClustersASampleOfManyRows) {
  const Clusters found = find_clusters(reference_points().repeat({100, 1}), 0);

  EXPECT_EQ(found.rows, kMostClusteredRows);
  EXPECT_EQ(found.clusters, 3);
}

TEST(FindClusters, SaysWhyThereAreNone) {
  EXPECT_EQ(find_clusters(at::full({50, 2}, 3.0, at::kDouble), 0).why_none,
            "no input column has different numbers");
  EXPECT_EQ(find_clusters(reference_points().narrow(0, 0, 4), 0).why_none,
            "there are too few rows");
}

}  // namespace
}  // namespace treadle::describe
