// The pictures of held-out images in results and reports.
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::Workspace;
namespace fs = std::filesystem;

// predictions.csv is written by other code: row, fold, actual, predicted, p(circle), p(square).
TEST(Pictures, ShowWhatWasPredictedForThem) {
  const Runtime runtime;
  if (runtime.schemas().find("data", "images").schema == nullptr)
    GTEST_SKIP() << "plugins/data-images was not built: it needs libjpeg, libpng and libwebp";
  const Workspace workspace;
  const fs::path images = testing::source_folder() / "examples/data/shapes";
  const json document = {{"treadle", 1},
                         {"data", {{"use", "images"}, {"path", images.string()}}},
                         {"model", {{"use", "flow"}, {"flow", {"flatten", "head"}}}},
                         {"validation", {{"use", "k_fold"}, {"folds", 3}}},
                         {"training", {{"epochs", 2}}}};

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  std::map<std::string, std::vector<std::string>> predictions;
  std::istringstream lines(testing::read_file(outcome.folder / "predictions.csv"));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');)
      fields.push_back(field);
    predictions[fields.at(0)] = fields;
  }
  const json result = to_json(outcome.result);
  json pictures;
  for (const json& table : result.at("tables")) {
    if (table.at("name") == "picture_sample")
      pictures = table;
  }
  ASSERT_EQ(pictures.at("values").size(), 12U);
  const std::vector<std::string> classes{"circle", "square"};
  for (std::size_t i = 0; i < 12; ++i) {
    const auto values = pictures["values"][i].get<std::vector<double>>();
    const auto& row = predictions.at(std::to_string(static_cast<int>(values[0])));
    const auto predicted = static_cast<std::size_t>(values[2]);
    EXPECT_EQ(classes.at(static_cast<std::size_t>(values[1])), row[2]);
    EXPECT_EQ(classes.at(predicted), row[3]);
    EXPECT_NEAR(values[3], std::stod(row[4 + predicted]), 1e-6);
    EXPECT_THAT(pictures["row_labels"][i].get<std::string>(),
                ::testing::StartsWith("data:image/png;base64,"));
  }
  EXPECT_THAT(testing::read_file(outcome.folder / "report.html"),
              ::testing::HasSubstr("Held-out images"));
}

}  // namespace
}  // namespace treadle
