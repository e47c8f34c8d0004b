// Trains a classifier from a C++ program, reads the result, trains it further, and predicts with
// the trained model.
//   embed <iris.csv> <folder for runs>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/host/run/predictor.h>
#include <treadle/host/run/workflow_run.h>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: embed <iris.csv> <folder for runs>\n";
    return 2;
  }
  const treadle::Runtime runtime;

  treadle::Workflow workflow("embedded");
  workflow.set("seed", 7)
      .use("data", "csv", {{"path", argv[1]}, {"target", "species"}})
      .add("transforms", "standardize")
      .use("model", "mlp", {{"hidden", {16, 16}}})
      .use("training", "standard", {{"epochs", 40}, {"batch_size", 16}});
  treadle::RunOptions options;
  options.output = argv[2];
  options.hooks.on_epoch = [](const treadle::FitId& fit, const treadle::EpochSummary& epoch) {
    if (epoch.epoch % 20 == 0)
      std::cout << fit.path() << " epoch " << epoch.epoch << ": loss " << epoch.train_loss << "\n";
  };
  const treadle::RunOutcome outcome =
      treadle::run_workflow(runtime, runtime.resolve(workflow), options);
  std::cout << "accuracy " << outcome.result.at("accuracy") << "\n";

  const std::vector<std::string> overrides = {"training.epochs=60"};
  const treadle::RunOutcome longer =
      treadle::continue_run(runtime, outcome.folder, overrides, options);
  std::cout << "after " << longer.result.training.total_epochs << " epochs "
            << longer.result.at("accuracy") << "\n";

  const auto predictor = treadle::Predictor::load(runtime, outcome.folder);
  const auto flower = at::tensor({5.1, 3.5, 1.4, 0.2}).reshape({1, 4});
  const treadle::Prediction prediction = predictor.predict(flower);
  const auto best = prediction.values.argmax(1).item<std::int64_t>();
  std::cout << "predicted " << predictor.class_names().at(static_cast<std::size_t>(best)) << "\n";
  return 0;
} catch (const treadle::Error& error) {
  std::cerr << error.what() << "\n";
  return error.exit_code();
}
