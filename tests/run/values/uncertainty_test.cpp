// Uncertainties of predictions: of ensembles, of the members of one model, of predicted
// distributions, and of passes with dropout; in files, and for programs.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/xlogy.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>

#include "one_core.h"
#include "workspace.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using testing::OneCore;
using testing::read_file;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

const UncertaintyOptions kUncertain{.is_requested = true};
const UncertaintyOptions kPasses{.dropout_passes = 8, .seed = 3};

class Uncertainties : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return workspace_.folder() / name; }

  fs::path run(const Json& document) {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options()).folder;
  }
  Predictor trained(const Json& document) { return Predictor::load(runtime_, run(document)); }

  /// Classes by two numbers and some noise, or a number by them.
  void write_rows(const std::string& target, int count = 2500) {
    std::ofstream file(path("rows.csv"));
    file << "a,b,y\n";
    for (int i = 0; i < count; ++i) {
      const double a = std::sin(i);
      const double b = std::cos(3.0 * i);
      const double noise = std::sin(11.7 * i);
      file << a << "," << b << ",";
      target == "class" ? file << (a * b + 0.3 * noise > 0 ? "up" : "down")
                        : file << 40 + 20 * (a - b) + noise;
      file << "\n";
    }
  }

  Json document(const std::string& loss, const std::string& model) {
    Json document = Json::parse(R"({
      "treadle": 1, "name": "uncertain", "seed": 2,
      "data": {"use": "csv", "target": "y"},
      "transforms": [{"use": "standardize"}],
      "validation": {"use": "hold_out", "fraction": 0.2},
      "training": {"use": "standard", "epochs": 1, "batch_size": 256}})");
    document["data"]["path"] = path("rows.csv").string();
    document["model"] = Json::parse(model);
    document["loss"] = Json::parse(loss);
    return document;
  }

  std::string predicted(const Predictor& predictor, const UncertaintyOptions& uncertainty) {
    predictor.predict_file(path("rows.csv"), path("out.csv"), {}, {}, uncertainty);
    return read_file(path("out.csv"));
  }
  static std::string header(const std::string& file) { return file.substr(0, file.find('\n')); }

  void expect_refused(const std::function<void()>& predict, const std::string& sentence) {
    try {
      predict();
      ADD_FAILURE() << "expected: " << sentence;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(sentence));
    }
  }

  Workspace workspace_;
  Runtime runtime_;
};

constexpr const char* kWithDropout =
    R"({"use": "mlp", "hidden": [16], "norm": "batch", "dropout": 0.4})";

at::Tensor total_entropy(const at::Tensor& p) {
  return at::xlogy(p, p).sum(-1).neg();
}

TEST_F(Uncertainties, OfDropoutAreThoseOfTheirSeedForAnyNumberOfWorkers) {
  write_rows("class");
  const fs::path folder = run(document(R"("cross_entropy")", kWithDropout));
  const Predictor predictor = Predictor::load(runtime_, folder);

  const std::string file = predicted(predictor, kPasses);

  EXPECT_EQ(header(file), "row,predicted,p(down),p(up),total,aleatoric,epistemic");
  EXPECT_EQ(predicted(predictor, kPasses), file);
  EXPECT_NE(predicted(predictor, {.dropout_passes = 8, .seed = 4}), file);
  export_model(folder, path("model.safetensors"));
  EXPECT_EQ(predicted(Predictor::load(runtime_, path("model.safetensors")), kPasses), file);
  const OneCore one;
  EXPECT_EQ(predicted(predictor, kPasses), file);
}

TEST_F(Uncertainties, OfDropoutAddUpAndLeaveOtherPredictionsAsTheyAre) {
  write_rows("class");
  const Predictor predictor = trained(document(R"("cross_entropy")", kWithDropout));
  const at::Tensor rows = at::randn({3000, 2}, make_generator(1));
  const at::Tensor plain = predictor.predict(rows).values;

  const Prediction prediction = predictor.predict(rows, {.uncertainty = kPasses});

  const Prediction::Uncertainty& of = prediction.uncertainty;
  EXPECT_TRUE(at::allclose(of.total, total_entropy(prediction.values), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(of.total, of.aleatoric + of.epistemic, 1e-5, 1e-6));
  EXPECT_GE(of.epistemic.min().item<double>(), 0);
  EXPECT_GT(of.epistemic.mean().item<double>(), 1e-4);
  EXPECT_TRUE(at::equal(predictor.predict(rows).values, plain));
  EXPECT_FALSE(predictor.predict(rows).uncertainty.total.defined());
}

TEST_F(Uncertainties, OfNumbersAreInTheUnitsOfTheData) {
  write_rows("number");
  Json given = document(R"("gaussian_nll")", kWithDropout);
  given["data"]["task"] = "regression";
  given["transforms"] = Json::parse(R"([{"use": "standardize", "target": true}])");
  const Predictor predictor = trained(given);
  const at::Tensor rows = at::randn({50, 2}, make_generator(1));

  // The quantile 0.9 of a normal distribution is 1.2815515655446004 deviations above its mean.
  const Prediction alone = predictor.predict(rows, {.uncertainty = kUncertain});
  ASSERT_EQ(alone.extras.back().name, "q0.9");
  EXPECT_TRUE(at::allclose(alone.uncertainty.aleatoric,
                           (alone.extras.back().values - alone.values) / 1.2815515655446004, 1e-4));
  EXPECT_FALSE(alone.uncertainty.epistemic.defined());

  const Prediction dropped = predictor.predict(rows, {.uncertainty = kPasses});
  const Prediction::Uncertainty& of = dropped.uncertainty;
  EXPECT_TRUE(at::allclose(of.total.square(), of.aleatoric.square() + of.epistemic.square(), 1e-4));
  EXPECT_EQ(header(predicted(predictor, kPasses)),
            "row,y,y.q0.1,y.q0.5,y.q0.9,y.total,y.aleatoric,y.epistemic");
}

TEST_F(Uncertainties, OfAnEnsembleAreThoseOfItsMembers) {
  write_rows("class", 240);
  Json given = document(R"("cross_entropy")", R"({"use": "mlp", "hidden": [4]})");
  given["optimizer"] = {{"use", "adamw"}, {"learning_rate", 0.03}};
  given["training"] = {{"use", "standard"}, {"epochs", 12}, {"batch_size", 16}};
  given["validation"] = {{"use", "k_fold"}, {"folds", 3}};
  given["metrics"] = {"log_loss"};
  given["search"] = Json::parse(R"({
    "tuner": "grid", "trials": 4, "objective": "log_loss", "ensemble": {"size": 8},
    "space": {"model.hidden": {"choice": [[12], [14], [16], [18]]}}})");
  const fs::path folder = run(given);
  const Json ensemble = Json::parse(read_file(folder / "ensemble.json"));
  const Json members = ensemble.at("members");
  const Json& means = ensemble.at("uncertainty");
  EXPECT_NEAR(means.at("total").get<double>(),
              means.at("aleatoric").get<double>() + means.at("epistemic").get<double>(), 1e-6);
  ASSERT_GE(members.size(), 2U);
  const at::Tensor rows = at::randn({50, 2}, make_generator(1));
  at::Tensor mean;
  at::Tensor aleatoric;
  for (const Json& member : members) {
    const fs::path of_member = folder / member.at("path").get<std::string>();
    const double weight = member.at("weight").get<double>();
    const at::Tensor p = Predictor::load(runtime_, of_member).predict(rows).values.to(at::kDouble);
    mean = mean.defined() ? mean + p * weight : p * weight;
    const at::Tensor entropy = total_entropy(p) * weight;
    aleatoric = aleatoric.defined() ? aleatoric + entropy : entropy;
  }

  const Predictor predictor = Predictor::load(runtime_, folder);
  const Prediction prediction = predictor.predict(rows, {.uncertainty = kUncertain});

  const Prediction::Uncertainty& of = prediction.uncertainty;
  const auto exact = [](const at::Tensor& values) { return values.to(at::kDouble); };
  EXPECT_TRUE(at::allclose(exact(of.total), total_entropy(mean), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(exact(of.aleatoric), aleatoric, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(exact(of.epistemic), total_entropy(mean) - aleatoric, 1e-4, 1e-6));
  EXPECT_EQ(header(predicted(predictor, kUncertain)),
            "row,predicted,p(down),p(up),total,aleatoric,epistemic");
  expect_refused([&] { predictor.predict(rows, {.uncertainty = kPasses}); },
                 "the model is an ensemble, whose members differ without dropout");
}

TEST_F(Uncertainties, OfMembersOfOneModelNeedNoSearch) {
  write_rows("class");
  const Predictor predictor = trained(document(
      R"({"use": "ensemble", "members": 4, "loss": "cross_entropy"})",
      R"({"use": "flow", "flow": [{"use": "graph", "builder": {"use": "tabm", "num_layers": 1, "width": 8}}]})"));
  const Prediction::Uncertainty of =
      predictor.predict(at::randn({50, 2}, make_generator(1)), {.uncertainty = kUncertain})
          .uncertainty;

  EXPECT_TRUE(at::allclose(of.total, of.aleatoric + of.epistemic, 1e-5, 1e-6));
  EXPECT_GT(of.epistemic.min().item<double>(), 0);
}

TEST_F(Uncertainties, ThatAModelCannotTellAreRefusedWithWhatToDo) {
  write_rows("class");
  const Predictor plain = trained(document(R"("cross_entropy")", R"({"use": "mlp"})"));
  const auto refused = [&](const Predictor& predictor, const UncertaintyOptions& uncertainty,
                           const std::string& sentence) {
    expect_refused([&] { predicted(predictor, uncertainty); }, sentence);
    EXPECT_FALSE(fs::exists(path("out.csv")));
  };

  refused(plain, kUncertain, "target \"y\" is predicted by one model with loss \"cross_entropy\"");
  refused(plain, kPasses,
          "the model has no dropout, so all passes would predict the same; train "
          "it with a dropout above 0");
  refused(plain, {.dropout_passes = 1}, "the number of passes with dropout is from 2 to 10000");

  Json calibrated = document(R"("cross_entropy")", kWithDropout);
  calibrated["outputs"] = {{"calibration", "temperature"}};
  refused(trained(calibrated), kPasses, "were fitted to predictions without dropout");
}

}  // namespace
}  // namespace treadle
