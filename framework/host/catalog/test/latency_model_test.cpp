// The model of a machine, by which a search estimates the time of forward passes.
#include <treadle/host/catalog/latency_model.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/host/catalog/workflow_document.h>

#include "fake_components.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Pass = LatencyModel::Pass;

const std::vector<Pass>& five_passes() {
  static const std::vector<Pass> passes{{"a", 1e6, 4e6, 2, 5.1e-5},
                                        {"b", 4e6, 1e6, 9, 6.2e-5},
                                        {"c", 2e7, 1.6e7, 4, 2.2e-4},
                                        {"d", 8e7, 6.4e7, 6, 7.4e-4},
                                        {"e", 3e8, 2e7, 3, 1.61e-3}};
  return passes;
}

constexpr double kRoundingOfFits = 1e-9;

std::string mistake_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LatencyModel, WithoutCalibrationReachesPeakAndBandwidth) {
  // 2e9 / 1000e9 + 4e8 / 200e9
  EXPECT_DOUBLE_EQ(LatencyModel().seconds(2e9, 4e8, 7), 0.004);
}

// python3 -c "import numpy as np; f=np.array([1e6,4e6,2e7,8e7,3e8]); b=np.array([4e6,1e6,1.6e7,
// 6.4e7,2e7]); c=np.array([2,9,4,6,3.]); s=np.array([5.1e-5,6.2e-5,2.2e-4,7.4e-4,1.61e-3]);
// x=np.stack([f/1e12,b/2e11,c],1); w=np.linalg.lstsq(x,s,rcond=None)[0]; p=x@w; print(w,
// 1-((p-s)**2).sum()/((s-s.mean())**2).sum(), np.median(abs(p-s)/s))", NumPy 1.24.2
TEST(LatencyModel, IsFittedByLeastSquares) {
  const LatencyModel::Fit fit = LatencyModel::fit(five_passes());

  EXPECT_NEAR(fit.model.alpha(), 4.984629433619812, kRoundingOfFits);
  EXPECT_NEAR(fit.model.beta(), 0.9899361727656293, kRoundingOfFits);
  EXPECT_NEAR(fit.model.bias(), 5.098922294024837e-06, 1e-6 * kRoundingOfFits);
  EXPECT_NEAR(fit.r_squared, 0.9995437231745687, kRoundingOfFits);
  EXPECT_NEAR(fit.relative_error, 0.09416740150115488, kRoundingOfFits);
}

TEST(LatencyModel, IsFoundAgainFromWhatItPredicts) {
  const LatencyModel machine =
      LatencyModel::from_json({{"alpha", 3.5}, {"beta", 0.25}, {"bias", 2e-6}});
  std::vector<Pass> passes = five_passes();
  for (Pass& pass : passes)
    pass.seconds = machine.seconds(pass.flops, pass.bytes, pass.calls);

  const LatencyModel::Fit fit = LatencyModel::fit(passes);

  EXPECT_NEAR(fit.model.alpha(), 3.5, kRoundingOfFits);
  EXPECT_NEAR(fit.model.beta(), 0.25, kRoundingOfFits);
  EXPECT_NEAR(fit.model.bias(), 2e-6, 1e-6 * kRoundingOfFits);
  EXPECT_NEAR(fit.r_squared, 1, kRoundingOfFits);
}

TEST(LatencyModel, NeedsThreeIndependentMeasurements) {
  const std::vector<Pass>& all = five_passes();
  EXPECT_THAT(mistake_of([&] { LatencyModel::fit(std::span(all).first(2)); }),
              HasSubstr("has three unknowns, and there are 2 measurements"));
  // Bytes are twice the FLOPs in each.
  const std::vector<Pass> alike{{"a", 1e6, 2e6, 1, 1e-5},
                                {"b", 2e6, 4e6, 3, 2e-5},
                                {"c", 5e6, 1e7, 2, 3e-5},
                                {"d", 7e6, 1.4e7, 9, 4e-5}};
  EXPECT_THAT(mistake_of([&] { LatencyModel::fit(alike); }), HasSubstr("tell FLOPs, bytes"));
  std::vector<Pass> untimed = all;
  untimed[2].seconds = 0;
  EXPECT_THAT(mistake_of([&] { LatencyModel::fit(untimed); }),
              HasSubstr("the measurement \"c\" is none"));
}

class LatencyFile : public ::testing::Test {
 protected:
  ~LatencyFile() override { std::filesystem::remove(file_); }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  json resolved(json search) const {
    search.update({{"trials", 1}, {"space", {{"seed", {{"int", {1, 2}}}}}}});
    const auto document = Document::from_json({{"treadle", 1},
                                               {"data", {{"use", "moons"}}},
                                               {"model", "mlp"},
                                               {"search", std::move(search)}},
                                              file_.parent_path());
    return resolve_workflow(document, FakeComponents()).resolved.at("search");
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("treadle-latency-" + std::to_string(::getpid()));
};

TEST_F(LatencyFile, IsReadAsItWasWritten) {
  const LatencyModel::Fit fit = LatencyModel::fit(five_passes());
  write(latency_file(fit, five_passes()).dump());

  EXPECT_EQ(LatencyModel::read(file_).json(), fit.model.json());
}

TEST_F(LatencyFile, ThatIsNoneIsRefused) {
  EXPECT_THAT(mistake_of([&] { LatencyModel::read(file_); }), HasSubstr("cannot be read"));
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"{\"a\": ", "it has no \"treadle_latency\""},
           {"[]", "it has no \"treadle_latency\""},
           {R"({"treadle_latency": 2})", "its format is 2, and this version reads 1"},
           {R"({"treadle_latency": 1})", "its \"model\" has no number \"alpha\""},
           {R"({"treadle_latency": 1, "model": {"alpha": 1, "bandwidth_gbs": 0, "beta": 1,
                "bias": 0, "peak_gflops": 1}})",
            "\"bandwidth_gbs\" is not above 0"}}) {
    write(text);
    EXPECT_THAT(mistake_of([&] { LatencyModel::read(file_); }),
                HasSubstr(file_.string() + ": is no model of a machine: " + why))
        << text;
  }
}

// A study goes on elsewhere with the numbers that it began with.
TEST_F(LatencyFile, OfASearchIsReplacedByItsNumbers) {
  const LatencyModel::Fit fit = LatencyModel::fit(five_passes());
  write(latency_file(fit, five_passes()).dump());

  const json search =
      resolved({{"objective", {"val_loss", "latency"}}, {"latency", file_.filename().string()}});

  EXPECT_EQ(search.at("latency"), fit.model.json());
  EXPECT_EQ(resolved(search).at("latency"), fit.model.json()) << "once more, from the run's";
}

TEST_F(LatencyFile, WithoutOneASearchHasThePresets) {
  EXPECT_EQ(resolved({{"constraints", {{"latency", {{"max", 1e-3}}}}}}).at("latency"),
            LatencyModel().json());
  EXPECT_FALSE(resolved({{"objective", "val_loss"}}).contains("latency"));
  EXPECT_EQ(resolved({{"objective", "latency"}, {"latency", {{"peak_gflops", 50}}}})
                .at("latency")
                .at("bandwidth_gbs"),
            200);
}

TEST_F(LatencyFile, OfASearchByOtherNumbersIsAMistake) {
  EXPECT_THAT(mistake_of([&] {
                resolved({{"objective", "val_loss"}, {"latency", file_.filename().string()}});
              }),
              HasSubstr("/search/latency: has no effect: no objective or constraint"));
  EXPECT_THAT(mistake_of([&] {
                resolved({{"objective", "latency"}, {"latency", file_.filename().string()}});
              }),
              HasSubstr("/search/latency: " + file_.string() + ": cannot be read"));
}

}  // namespace
}  // namespace treadle
