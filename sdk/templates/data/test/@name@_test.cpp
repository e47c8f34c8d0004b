#include <treadle/sdk.h>

#include <fstream>

#include <ATen/ops/tensor.h>

#include <treadle/testing/support/batches.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

namespace {

using namespace treadle::testing;
using Purpose = treadle::OpenRequest::Purpose;

std::unique_ptr<treadle::DataProvider> make(const std::filesystem::path& path) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::DataProvider>("@name@", {{"path", path.string()}});
}

// What every data provider keeps.
INSTANTIATE_TEST_SUITE_P(
    @Name@, DataContract,
    ::testing::Values(DataCase{
        "Example",
        [] { return make(std::filesystem::path(TREADLE_PLUGIN_FOLDER) / "example.txt"); }}),
    CaseName());

class @Name@Test : public ::testing::Test {
 protected:
  std::unique_ptr<treadle::DataProvider> data(const std::string& text) {
    std::ofstream(folder_.path() / "table.txt") << text;
    return make(folder_.path() / "table.txt");
  }
  static treadle::Batch everything(const treadle::DataProvider& data) {
    const auto& reader = *data.ask<treadle::RowReader>();
    return gathered(reader, 0, reader.rows());
  }
  /// The sentence after the file's name, when a file with this text is opened.
  std::string complaint(const std::string& text, const treadle::OpenRequest& request = {}) {
    try {
      data(text)->open(request);
    } catch (const treadle::DataError& error) {
      return std::string(error.what()).substr((folder_.path() / "table.txt").string().size());
    }
    return "nothing was thrown";
  }

  ScratchFolder folder_;
};

TEST_F(@Name@Test, TakesTheLastColumnForTheTarget) {
  const auto table = data("# a b y\n1 2.5 -3\n\n  4\t5e1 6 # the second row\n");
  table->open({});

  const treadle::Batch batch = everything(*table);

  EXPECT_TRUE(batch.inputs[0].equal(at::tensor({1.0, 2.5, 4.0, 50.0}, at::kFloat).view({2, 2})));
  EXPECT_TRUE(batch.targets[0].equal(at::tensor({-3.0, 6.0}, at::kFloat).view({2, 1})));
  EXPECT_EQ(table->spec().inputs[0].columns[1].name, "x2");
  EXPECT_EQ(table->ask<treadle::RowReader>()->describe_row(1),
            "line 4 of " + (folder_.path() / "table.txt").string());
}

TEST_F(@Name@Test, PredictsForRowsWithAndWithoutATarget) {
  const auto trained = data("1 2 3\n4 5 6\n");
  trained->open({});
  for (const char* text : {"7 8\n", "7 8 9\n"}) {
    const auto table = data(text);
    table->load_state(trained->state());
    treadle::OpenRequest request;
    request.purpose = Purpose::kPredict;
    table->open(request);

    EXPECT_TRUE(
        everything(*table).inputs[0].equal(at::tensor({7.0, 8.0}, at::kFloat).view({1, 2})));
  }
}

TEST_F(@Name@Test, SaysWhereAFileIsNotATable) {
  EXPECT_EQ(complaint("1 2\n3 x\n"), ":2: expected a number, got \"x\"");
  EXPECT_EQ(complaint("1 2\n3 nan\n"), ":2: expected a number, got \"nan\"");
  EXPECT_EQ(complaint("1 2\n\n3 4 5\n"), ":3: expected 2 numbers, as in the first row, got 3");
  EXPECT_EQ(complaint("# nothing\n"), ": has no rows");
  EXPECT_EQ(complaint("1\n2\n"), ": has one column; there is nothing to predict from");
}

TEST_F(@Name@Test, SaysThatItHasNoClasses) {
  treadle::OpenRequest request;
  request.task = treadle::Task::kClassification;

  EXPECT_EQ(complaint("1 2\n3 4\n", request),
            ": its last column is numbers, but classes are required; choose a loss for numbers, "
            "such as mse");
}

TEST_F(@Name@Test, SaysThatAnotherFileDoesNotFit) {
  const auto trained = data("1 2 3\n4 5 6\n");
  trained->open({});
  const auto other = data("1 2\n");
  other->load_state(trained->state());
  treadle::OpenRequest request;
  request.purpose = Purpose::kEvaluate;

  EXPECT_THROW(other->open(request), treadle::DataError);
}

}  // namespace
