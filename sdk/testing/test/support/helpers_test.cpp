#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <nlohmann/json.hpp>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/schema.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/tensor/process_state.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/captured_output.h>
#include <treadle/testing/support/expect_problem.h>
#include <treadle/testing/support/golden.h>
#include <treadle/testing/support/gradient_check.h>
#include <treadle/testing/support/reference.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/support/tiny_data.h>
#include <treadle/testing/support/unusual_process.h>
#include <treadle/testing/training/random_parameters.h>
#include <treadle/testing/training/training_fakes.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// --- messages ----------------------------------------------------------------------------------

TEST(Tells, ComparesThePlaceAndTheWordsBehindIt) {
  const std::string message = "x.csv:3: expected 2 fields, got 5";

  EXPECT_TRUE(tells(message, "x.csv:3", {"got 5", "2"}));
  EXPECT_TRUE(tells(message, "", {}));
  EXPECT_FALSE(tells(message, "y.csv:3", {}));
  EXPECT_FALSE(tells(message, "x.csv:3", {"3"})) << "the place is no word";
  EXPECT_FALSE(tells(message, "x.csv:3", {"2", "six"}));
}

TEST(ExpectProblem, FailsForAnotherKindPointerOrWordAndForNoError) {
  const auto refuse = [] {
    throw DocumentError(
        {Problem{{}, "/seed", "must be a number, got \"x\""}, Problem{{}, "/name", "is empty"}});
  };

  expect_problem(refuse, ErrorKind::kDocument, "/seed", {"number", "\"x\""});
  expect_problem([] { throw DataError("x.csv:3: too short"); }, ErrorKind::kData, "x.csv:3",
                 {"short"});
  EXPECT_NONFATAL_FAILURE(expect_problem(refuse, ErrorKind::kDocument, "/seed", {"empty"}),
                          "no problem at \"/seed\"");
  EXPECT_NONFATAL_FAILURE(expect_problem(refuse, ErrorKind::kUsage, "/name", {"empty"}), "kind");
  EXPECT_NONFATAL_FAILURE(expect_problem([] {}, ErrorKind::kData, "", {}), "nothing was refused");
}

// --- tensors -----------------------------------------------------------------------------------

TEST(ValuesMatch, NamesTheWorstElement) {
  const at::Tensor expected = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble).view({2, 2});
  const at::Tensor got = at::tensor({1.0, 2.5, 3.0, 5.0}, at::kDouble).view({2, 2});

  EXPECT_TRUE(values_match(expected, expected));
  EXPECT_TRUE(values_match(got, expected, {.relative = 0.25}));
  EXPECT_TRUE(values_match(got, expected, {.absolute = 1}));
  EXPECT_STREQ(values_match(got, expected).message(),
               "2 of 4 elements differ, the worst at [1, 1]: got 5, expected 4 (off by 1, 0.25 of "
               "it, 1.13e+15 ulps; allowed: 0, 0 of it, 0 ulps)");
}

TEST(ValuesMatch, CountsInRepresentableNumbers) {
  const at::Tensor one = at::tensor({1.0F, -0.0F});
  const at::Tensor next = at::tensor({std::nextafter(1.0F, 2.0F), 1e-45F});

  EXPECT_TRUE(values_match(next, one, {.ulps = 1}));
  EXPECT_FALSE(values_match(next, one, {.ulps = 0.5}));
  EXPECT_FALSE(values_match(at::tensor({1.0, 2.0}, at::kDouble), one, {.ulps = 1e20}));
}

TEST(ValuesMatch, SaysWhatIsNotATensorOfThatKind) {
  const at::Tensor three = at::tensor({1.0, 2.0, 3.0}, at::kDouble);

  EXPECT_STREQ(values_match(three, three.view({3, 1})).message(),
               "expected Double [3, 1], got Double [3]");
  EXPECT_STREQ(values_match(three.to(at::kFloat), three).message(),
               "expected Double [3], got Float [3]");
  EXPECT_STREQ(values_match(at::Tensor(), three).message(), "expected a tensor, got none");
  EXPECT_STREQ(values_match(three, at::Tensor()).message(), "expected no tensor, got one");
  EXPECT_TRUE(values_match(at::Tensor(), at::Tensor()));
}

TEST(ValuesMatch, NaNEqualsItselfAndNothingElse) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor missing = at::tensor({1.0, nan}, at::kDouble);

  EXPECT_TRUE(values_match(missing, missing));
  EXPECT_FALSE(values_match(missing, at::tensor({1.0, 2.0}, at::kDouble), {.absolute = 1e9}));
}

TEST(GradientsMatch, TakesRightGradients) {
  torch::nn::Linear layer(3, 2);
  layer->to(at::kDouble);
  const at::Tensor input = at::arange(6, at::kDouble).view({2, 3}).div(7);
  std::vector<Differentiated> inputs = parameters_of(*layer);
  inputs.push_back({"input", input});

  EXPECT_TRUE(
      gradients_match([&] { return weighted_sum({layer->forward(input).tanh()}); }, inputs));
  EXPECT_TRUE(at::equal(input, at::arange(6, at::kDouble).view({2, 3}).div(7)));
  EXPECT_FALSE(layer->weight.grad().defined());
}

TEST(GradientsMatch, NamesInputIndexAndBothValues) {
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble).view({2, 2});
  const auto half = [&] {
    const at::Tensor square = x.square().sum();
    return square.add(square.detach()).div(2);  // backward sees half of it
  };
  const auto none = [&] { return x.detach().sum().add(x.sum().mul(0)); };

  EXPECT_STREQ(gradients_match(half, {{"x", x}}, {.most_elements = 2}).message(),
               "\"x\" at [0, 0]: backward gives 1, differences give 2\n"
               "\"x\" at [1, 0]: backward gives 3, differences give 6\n"
               "2 of the elements looked at have a wrong gradient");
  EXPECT_FALSE(gradients_match(none, {{"x", x}}));
}

TEST(StepsLikeTorch, SaysWhereTheyPart) {
  const MomentumDescent ours(0.01);
  const auto with = [](double momentum) {
    return [momentum](const std::vector<at::Tensor>& parameters) {
      return torch::optim::SGD(parameters, torch::optim::SGDOptions(0.01).momentum(momentum));
    };
  };

  EXPECT_TRUE(steps_like_torch(ours, with(0.5), {.steps = 50, .leaves_gaps = false}));
  const auto result = steps_like_torch(ours, with(0.25), {.steps = 50});
  EXPECT_FALSE(result);
  EXPECT_THAT(
      result.message(),
      ::testing::StartsWith("parameter 0 after step 2: 15 of 15 elements differ, the worst"));
}

// --- data --------------------------------------------------------------------------------------

TEST(TinyData, IsTheSameEachTimeAndWhatItSays) {
  const auto same_matrices = [](const MatrixRows::Matrices& a, const MatrixRows::Matrices& b) {
    return MatrixRows(a).content_hash() == MatrixRows(b).content_hash();
  };

  EXPECT_TRUE(same_matrices(tiny_regression(), tiny_regression()));
  EXPECT_FALSE(same_matrices(tiny_regression(), tiny_regression(40, 2)));
  EXPECT_TRUE(same_matrices(tiny_classification(), tiny_classification()));
  EXPECT_TRUE(same_matrices(tiny_sequences(), tiny_sequences()));
  EXPECT_TRUE(same_matrices(tiny_texts(), tiny_texts()));
  EXPECT_FALSE(same_matrices(tiny_texts(), tiny_texts(20, 2)));
}

TEST(TinyData, SequencesEndWhereTheirTargetBegins) {
  const MatrixRows::Matrices data = tiny_sequences(10, 3);

  for (std::int64_t row = 1; row < 10; ++row) {
    EXPECT_TRUE(at::equal(data.inputs[0][row][2], data.targets[0][row - 1]));
    EXPECT_TRUE(at::equal(data.inputs[0][row][0], data.inputs[0][row - 1][1]));
  }
}

TEST(TinyData, CornersAreWhereTheirClassSays) {
  const MatrixRows::Matrices data = tiny_classification(40, 4);

  for (std::int64_t row = 0; row < 40; ++row) {
    const double angle = std::acos(-1) / 2 * static_cast<double>(row % 4);
    EXPECT_NEAR(data.inputs[0][row][0].item<double>(), std::cos(angle), 1);
    EXPECT_NEAR(data.inputs[0][row][1].item<double>(), std::sin(angle), 1);
    EXPECT_EQ(data.targets[0][row].item<std::int64_t>(), row % 4);
  }
}

// --- golden files ------------------------------------------------------------------------------

class GoldenTest : public ::testing::Test {
 protected:
  void store(const std::string& text) const { std::ofstream(file_) << text; }
  std::string stored() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  std::string message_for(const std::string& text) const {
    std::string message = matches_golden(text, file_).message();
    const std::size_t at = message.find(folder_.path().string());
    return at == message.npos ? message : message.erase(at, folder_.path().string().size() + 1);
  }

  ScratchFolder folder_;
  std::filesystem::path file_ = folder_.path() / "report.txt";
};

TEST_F(GoldenTest, ShowsTheFirstLineThatDiffers) {
  store("one\ntwo\nthree\n");

  EXPECT_EQ(message_for("one\ntwo\nthree\n"), "");
  EXPECT_EQ(message_for("one\n2\n3\n"),
            "report.txt:2: expected \"two\", got \"2\"; TREADLE_UPDATE_GOLDEN=1 writes it anew");
  EXPECT_EQ(message_for("one\n"),
            "report.txt:2: expected \"two\", got the end of the text; TREADLE_UPDATE_GOLDEN=1 "
            "writes it anew");
  EXPECT_EQ(message_for("one\ntwo\nthree\nfour\n"),
            "report.txt:4: expected the end of the text, got \"four\"; TREADLE_UPDATE_GOLDEN=1 "
            "writes it anew");
  EXPECT_EQ(message_for("one\ntwo\nthree"),
            "report.txt: only the line end at the end of the text differs; TREADLE_UPDATE_GOLDEN=1 "
            "writes it anew");
}

TEST_F(GoldenTest, AMissingFileIsADifference) {
  EXPECT_EQ(message_for("one"),
            "report.txt: cannot be read; TREADLE_UPDATE_GOLDEN=1 writes it anew");
}

TEST_F(GoldenTest, WritesWhenAskedTo) {
  store("old\n");
  ::setenv("TREADLE_UPDATE_GOLDEN", "1", 1);

  EXPECT_TRUE(matches_golden("new\n", file_));
  EXPECT_TRUE(matches_golden("deep\n", folder_.path() / "a" / "b.txt"));
  ::unsetenv("TREADLE_UPDATE_GOLDEN");

  EXPECT_EQ(stored(), "new\n");
  EXPECT_TRUE(matches_golden("deep\n", folder_.path() / "a" / "b.txt"));
}

// --- the process -------------------------------------------------------------------------------

TEST(ProcessState, IsTheSameWhenNothingHappens) {
  EXPECT_THAT(ProcessState::now().changes_until(ProcessState::now()), IsEmpty());
}

TEST(ProcessState, SaysWhatChanged) {
  const std::filesystem::path here = std::filesystem::current_path();
  const ScratchFolder folder;
  ::unsetenv("TREADLE_NEW");
  ::setenv("TREADLE_OLD", "1", 1);
  ::setenv("TREADLE_GONE", "1", 1);
  const ProcessState before = ProcessState::now();

  std::filesystem::current_path(folder.path());
  ::setenv("TREADLE_NEW", "a=b", 1);
  ::setenv("TREADLE_OLD", "2", 1);
  ::unsetenv("TREADLE_GONE");
  c10::GradMode::set_enabled(false);
  const ProcessState later = ProcessState::now();
  std::filesystem::current_path(here);
  c10::GradMode::set_enabled(true);

  EXPECT_THAT(before.changes_until(later),
              ElementsAre("grad mode was on and is off",
                          "the environment variable TREADLE_GONE was \"1\" and is gone",
                          "the environment variable TREADLE_OLD was \"1\" and is \"2\"",
                          "the working directory was " + here.string() + " and is " +
                              folder.path().string(),
                          "the environment variable TREADLE_NEW was not there and is \"a=b\""));
}

TEST(UnusualProcess, DiffersInWhatCanBeSetAndPutsItBack) {
  const ProcessState before = ProcessState::now();
  std::vector<std::string> changes;
  {
    const UnusualProcess unusual;
    changes = before.changes_until(ProcessState::now());
  }

  EXPECT_THAT(before.changes_until(ProcessState::now()), IsEmpty());
  std::string all;
  for (const std::string& change : changes)
    all += change + "\n";
  for (const char* what :
       {"libtorch's default dtype was", "global generator was", "grad mode was",
        "rounding mode was", "working directory was", "umask was", "C locale was",
        "environment variable PATH was", "handler of signal 2 was"})
    EXPECT_NE(all.find(what), all.npos) << what << " not in\n" << all;
}

TEST(CapturedOutput, CatchesWhoeverWrites) {
  CapturedOutput output;
  std::cout << "a";
  std::cerr << "b";
  std::printf("c");
  std::fflush(stdout);
  const auto written = ::write(STDERR_FILENO, "d", 1);

  EXPECT_EQ(output.text(), "abcd");
  EXPECT_EQ(written, 1);
}

// --- parameters --------------------------------------------------------------------------------

class NoComponents final : public SchemaIndex {
  FoundComponent find(std::string_view, std::string_view) const override { return {}; }
};

const nlohmann::json kSchema = nlohmann::json::parse(R"({
  "type": "object",
  "required": ["count"],
  "properties": {
    "count": {"type": "integer", "minimum": 1, "maximum": 9},
    "rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "far": {"type": "number"},
    "name": {"type": "string", "minLength": 1, "maxLength": 3},
    "kind": {"enum": ["a", 2, null]},
    "flag": {"type": "boolean"},
    "either": {"type": ["string", "integer"]},
    "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "set": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": true},
    "branch": {"anyOf": [{"enum": ["x"]},
                         {"type": "object", "additionalProperties": {"type": "number"}}]},
    "inside": {"type": "object", "properties": {"deep": {"type": "integer", "minimum": 0}}},
    "long": {"type": "string", "x-treadle-type": "duration"},
    "counted": {"type": "string", "x-treadle-type": "counted_duration"},
    "part": {"type": ["number", "string"], "x-treadle-type": "fraction"},
    "file": {"type": "string", "x-treadle-type": "path"},
    "shape": {"type": "string", "pattern": "^s", "examples": ["square"]}
  }})");

std::size_t problems_of(const nlohmann::json& parameters) {
  const auto document = Document::from_json(parameters);
  return check(parameters, kSchema, NoComponents(), *document).problems.size();
}

TEST(RandomParameters, DrawsWhatASchemaAllows) {
  std::set<std::string> keys;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const nlohmann::json drawn = RandomParameters(seed, "/nowhere").allowed(kSchema);

    EXPECT_EQ(problems_of(drawn), 0U) << seed << ": " << drawn;
    for (const auto& [key, value] : drawn.items())
      keys.insert(key);
  }
  EXPECT_EQ(keys.size(), kSchema["properties"].size());
}

TEST(RandomParameters, DrawsMistakes) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    wrong += problems_of(RandomParameters(seed, "/nowhere").wrong(kSchema)) > 0;

  EXPECT_GT(wrong, 400);
}

TEST(RandomParameters, TheSameSeedDrawsTheSame) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(RandomParameters(seed, "/a").wrong(kSchema),
              RandomParameters(seed, "/a").wrong(kSchema));
  }
  EXPECT_NE(RandomParameters(1, "/a").allowed(kSchema), RandomParameters(2, "/a").allowed(kSchema));
}

TEST(RandomParameters, KeepsWhatIsGiven) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(RandomParameters(seed, "/a").allowed(kSchema, {{"count", 7}})["count"], 7);
}

}  // namespace
}  // namespace treadle::testing
