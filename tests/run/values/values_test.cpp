// Data of any shape as whole runs: documents with targets per pixel and per position, several
// targets and inputs, labels, distributions. Each is trained to a stated result, predicts, has the
// same bits for any number of workers and after a stop.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>

#include "npy_bytes.h"
#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::bits_of;
using testing::Impatient;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// numpy.save
void save(const fs::path& path, const at::Tensor& tensor) {
  arrays::RawNpy raw;
  raw.descr = tensor.scalar_type() == at::kLong ? "<i8" : "<f4";
  std::string shape = "(";
  for (const std::int64_t size : tensor.sizes())
    shape += std::to_string(size) + ", ";
  const at::Tensor values =
      (tensor.scalar_type() == at::kLong ? tensor : tensor.to(at::kFloat)).contiguous();
  std::ofstream(path, std::ios::binary) << arrays::npy_bytes(
      raw.header(shape + ")"), {static_cast<const char*>(values.data_ptr()), values.nbytes()});
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  return lines;
}

/// A document over arrays in a folder of its own.
class Values : public ::testing::Test {
 protected:
  Values() : runtime_(watching_runtime()) {}

  std::string path(const std::string& name) const { return (workspace_.folder() / name).string(); }
  void array(const std::string& name, const at::Tensor& tensor) const { save(path(name), tensor); }

  /// Trains, and holds the two laws: workers change nothing, neither does a stop on the way.
  json trained(json document, int stop_after) {
    document["treadle"] = 1;
    document["schedule"] = "watched";
    document["resources"]["workers"] = 1;
    const RunOutcome outcome =
        run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
    run_ = outcome.folder;

    document["resources"]["workers"] = 3;
    const Workspace elsewhere;
    {
      const Impatient impatient(runtime_, stop_after);
      RunOptions options = elsewhere.options();
      options.stop = impatient.token();
      EXPECT_THROW(run_workflow(runtime_, runtime_.resolve(document), options), Interrupted);
    }
    const fs::path stopped = fs::directory_iterator(elsewhere.options().output)->path();
    resume_run(runtime_, stopped, elsewhere.options());
    EXPECT_EQ(bits_of(stopped), bits_of(run_)) << "three workers, stopped and resumed";
    return to_json(outcome.result).at("metrics");
  }

  Predictor predictor() const { return Predictor::load(runtime_, run_); }

  Runtime runtime_;
  Workspace workspace_;
  fs::path run_;
};

// 28 x 28 images with a bright rectangle on noise; a class per pixel.
TEST_F(Values, MasksPerPixel) {
  constexpr std::int64_t kImages = 160;
  const TaskRandom random(1);
  at::Tensor images = at::rand({kImages, 1, 28, 28}).mul(0.6);
  at::Tensor masks = at::zeros({kImages, 28, 28}, at::kLong);
  const at::Tensor corners = at::randint(2, 16, {kImages, 2}, at::kLong);
  const at::Tensor sizes = at::randint(5, 11, {kImages, 2}, at::kLong);
  for (std::int64_t i = 0; i < kImages; ++i) {
    const auto of = [i](const at::Tensor& t, int k) { return t[i][k].item<std::int64_t>(); };
    const auto inside = [&](const at::Tensor& image) {
      return image.narrow(-2, of(corners, 0), of(sizes, 0))
          .narrow(-1, of(corners, 1), of(sizes, 1));
    };
    inside(images[i]).add_(0.4);
    inside(masks[i]).fill_(1);
  }
  array("images.npy", images);
  array("masks.npy", masks);

  const json metrics =
      trained({{"data",
                {{"use", "npy"},
                 {"inputs", path("images.npy")},
                 {"target",
                  {{"mask",
                    {{"path", path("masks.npy")},
                     {"kind", "classes"},
                     {"classes", {"ground", "figure"}}}}}}}},
               {"model",
                {{"use", "flow"},
                 {"flow",
                  {{{"use", "conv2d"}, {"out_channels", 8}, {"kernel_size", 5}, {"padding", 2}},
                   "relu",
                   {{"use", "conv2d"}, {"out_channels", 8}, {"kernel_size", 5}, {"padding", 2}},
                   "relu",
                   {{"use", "conv2d"}, {"out_channels", 8}, {"kernel_size", 5}, {"padding", 2}},
                   "relu",
                   "head"}}}},
               {"metrics", {"accuracy", "mean_iou"}},
               {"optimizer", {{"use", "adam"}, {"learning_rate", 0.01}}},
               {"training", {{"epochs", 12}, {"batch_size", 16}}}},
              /*stop_after=*/37);

  EXPECT_GT(metrics.at("mean_iou").get<double>(), 0.85);
  const at::Tensor probabilities = predictor().predict(images.slice(0, 0, 2)).values;
  EXPECT_EQ(probabilities.sizes(), (std::vector<std::int64_t>{2, 28, 28, 2}));
  predictor().predict_file(path("images.npy"), path("out.csv"));
  const auto lines = lines_of(path("out.csv"));
  EXPECT_EQ(lines.size(), 1 + kImages * 28 * 28);
  EXPECT_EQ(lines[0], "row,position.0,position.1,predicted,p(ground),p(figure)");
}

// A tenth of the pixels is labelled 255, which is no class: their weight is 0.
TEST_F(Values, PixelsOfWeightZeroChangeNeitherTheTrainingNorLossNorMetrics) {
  constexpr std::int64_t kImages = 60;
  constexpr std::int64_t kValidated = 20;
  const TaskRandom random(7);
  const at::Tensor images = at::rand({kImages, 1, 6, 6});
  const at::Tensor labels = images.select(1, 0).gt(0.4).to(at::kLong);
  const at::Tensor ignored = at::rand({kImages, 6, 6}).lt(0.1);
  array("images.npy", images);
  array("weights.npy", ignored.logical_not().to(at::kLong));
  array("times.npy", at::arange(kImages));
  const auto document = [&](const char* name, const at::Tensor& values) {
    array(name, values);
    return json{
        {"data",
         {{"use", "npy"},
          {"inputs", path("images.npy")},
          {"target",
           {{"path", path(name)},
            {"kind", "classes"},
            {"classes", {"dark", "bright"}},
            {"weights", path("weights.npy")}}},
          {"times", path("times.npy")}}},
        {"model",
         {{"use", "flow"},
          {"flow",
           {{{"use", "conv2d"}, {"out_channels", 4}, {"kernel_size", 1}}, "relu", "head"}}}},
        {"loss", {{"use", "cross_entropy"}, {"class_weights", "balanced"}}},
        {"metrics", {"accuracy"}},
        {"optimizer", {{"use", "adam"}, {"learning_rate", 0.05}}},
        {"validation", {{"use", "hold_out"}, {"strategy", "chronological"}, {"rows", kValidated}}},
        {"training", {{"epochs", 4}, {"batch_size", 8}}}};
  };

  trained(document("wrong.npy", at::where(ignored, 1 - labels, labels)), /*stop_after=*/9);
  const std::string of_wrong = bits_of(run_);
  const json metrics =
      trained(document("labels.npy", labels.masked_fill(ignored, 255)), /*stop_after=*/9);

  EXPECT_EQ(bits_of(run_), of_wrong);
  // The last images by hand, over the pixels that count; classes balanced over those of the others.
  const std::int64_t first = kImages - kValidated;
  const at::Tensor counts = ignored.logical_not();
  const at::Tensor seen = labels.slice(0, 0, first).masked_select(counts.slice(0, 0, first));
  const at::Tensor balanced =
      at::bincount(seen).to(at::kDouble).mul(2).reciprocal().mul(seen.numel());
  const at::Tensor counted = counts.slice(0, first);
  const at::Tensor truth = labels.slice(0, first).masked_select(counted);
  const at::Tensor probabilities = predictor().predict(images.slice(0, first)).values;
  const at::Tensor found = probabilities.argmax(-1).masked_select(counted);
  const at::Tensor of_truth = probabilities.gather(-1, labels.slice(0, first).unsqueeze(-1))
                                  .squeeze(-1)
                                  .masked_select(counted)
                                  .to(at::kDouble);
  const at::Tensor of_class = balanced.index_select(0, truth);
  const at::Tensor loss = of_class.mul(of_truth.log().neg()).sum().div(of_class.sum());
  const json result = json::parse(read_file(run_ / "result.json"));
  EXPECT_NEAR(result.at("validation").at("loss").get<double>(), loss.item<double>(), 1e-5);
  EXPECT_NEAR(metrics.at("accuracy").get<double>(),
              found.eq(truth).to(at::kDouble).mean().item<double>(), 1e-6);
  // The statistics of the data count the same pixels.
  std::int64_t told = 0;
  for (const json& one : result.at("data").at("targets").at(0).at("classes"))
    told += one.at("rows").get<std::int64_t>();
  EXPECT_EQ(told, ignored.logical_not().sum().item<std::int64_t>());
  // Another file of labels needs its weights, too.
  fs::create_directory(path("new"));
  for (const char* const name : {"images.npy", "weights.npy", "labels.npy", "times.npy"})
    fs::copy_file(path(name), path("new") + "/" + name);
  const EvaluationResult again = predictor().evaluate_file(path("new"));
  array("new/labels.npy", at::where(ignored, 1 - labels, labels));
  EXPECT_EQ(predictor().evaluate_file(path("new")).loss, again.loss);
  array("new/weights.npy", at::ones({kImages, 6, 6}));
  EXPECT_GT(predictor().evaluate_file(path("new")).loss, again.loss);
}

// Words 1 to 8; a word's tag is whether the word before it is larger: context is needed. Texts have
// 3 to 12 words.
TEST_F(Values, TagsPerPositionWithPadding) {
  constexpr std::int64_t kTexts = 400;
  const TaskRandom random(2);
  const at::Tensor lengths = at::randint(3, 13, {kTexts}, at::kLong);
  const at::Tensor real = at::arange(12).unsqueeze(0).lt(lengths.unsqueeze(1));
  const at::Tensor words = at::randint(1, 9, {kTexts, 12}, at::kLong).mul(real);
  const at::Tensor before = at::cat({at::zeros({kTexts, 1}, at::kLong), words.slice(1, 0, 11)}, 1);
  const at::Tensor tags = before.gt(words).to(at::kLong).mul(real);
  array("words.npy", words);
  array("lengths.npy", lengths);
  array("tags.npy", tags);

  const json metrics = trained(
      {{"data",
        {{"use", "npy"},
         {"inputs",
          {{"text",
            {{"path", path("words.npy")}, {"role", "tokens"}, {"lengths", path("lengths.npy")}}}}},
         {"target",
          {{"tag",
            {{"path", path("tags.npy")},
             {"kind", "classes"},
             {"classes", {"up", "down"}},
             {"padded_like", "text"}}}}}}},
       {"model",
        {{"use", "flow"},
         {"flow",
          {{{"use", "embedding"}, {"embedding_dim", 8}},
           {{"use", "gru"}, {"hidden_size", 16}, {"return_sequences", true}},
           "head"}}}},
       {"optimizer", {{"use", "adam"}, {"learning_rate", 0.02}}},
       {"training", {{"epochs", 8}, {"batch_size", 20}}}},
      /*stop_after=*/50);

  EXPECT_GT(metrics.at("accuracy").get<double>(), 0.97);
  // Padding is neither trained on nor counted nor written.
  fs::create_directory(path("new"));
  save(workspace_.folder() / "new" / "words.npy", words.slice(0, 0, 3));
  save(workspace_.folder() / "new" / "lengths.npy", lengths.slice(0, 0, 3));
  predictor().predict_file(path("new"), path("out.csv"));
  const auto lines = lines_of(path("out.csv"));
  EXPECT_EQ(lines.size(), 1 + lengths.slice(0, 0, 3).sum().item<std::int64_t>());
  EXPECT_EQ(lines[0], "row,position,predicted,p(up),p(down)");
}

// Three labels, each decided by a half-plane: any number of them at once.
TEST_F(Values, SeveralLabelsAtOnce) {
  const TaskRandom random(3);
  std::ofstream file(path("labels.csv"));
  file << "x,y,right,above,diagonal\n";
  for (int i = 0; i < 300; ++i) {
    const double x = at::randn({}).item<double>();
    const double y = at::randn({}).item<double>();
    file << x << ',' << y << ',' << (x > 0) << ',' << (y > 0.3) << ',' << (x > y) << '\n';
  }
  file.close();

  const json metrics = trained(
      {{"data",
        {{"use", "csv"},
         {"path", path("labels.csv")},
         {"target",
          {{{"name", "where"}, {"columns", {"right", "above", "diagonal"}}, {"kind", "labels"}}}}}},
       {"model", {{"use", "mlp"}, {"hidden", {16}}}},
       {"optimizer", {{"use", "adam"}, {"learning_rate", 0.02}}},
       {"training", {{"epochs", 30}, {"batch_size", 30}}}},
      /*stop_after=*/100);

  EXPECT_GT(metrics.at("macro_f1").get<double>(), 0.93);
  predictor().predict_file(path("labels.csv"), path("out.csv"));
  EXPECT_EQ(lines_of(path("out.csv"))[0], "row,p(right),p(above),p(diagonal)");
}

// A table and an image say together which class it is and how much: two inputs, two targets, two
// losses.
TEST_F(Values, TwoInputsAndTwoTargets) {
  constexpr std::int64_t kRows = 300;
  const TaskRandom random(4);
  const at::Tensor table = at::randn({kRows, 3});
  const at::Tensor light = at::rand({kRows, 1, 1, 1});
  const at::Tensor images = at::rand({kRows, 1, 6, 6}).mul(0.5).add(light);
  const at::Tensor brightness = light.view({kRows});
  const at::Tensor kind = table.select(1, 0).gt(0).to(at::kLong) + brightness.gt(0.5).to(at::kLong);
  const at::Tensor price = table.select(1, 1) - table.select(1, 2) + brightness.mul(4);
  array("table.npy", table);
  array("image.npy", images);
  array("kind.npy", kind);
  array("price.npy", price.unsqueeze(1));

  const json document = {
      {"data",
       {{"use", "npy"},
        {"inputs", {{"image", path("image.npy")}, {"table", path("table.npy")}}},
        {"target",
         {{"kind", {{"path", path("kind.npy")}, {"kind", "classes"}}},
          {"price", {{"path", path("price.npy")}, {"kind", "numbers"}}}}}}},
      {"transforms", {{{"use", "standardize"}, {"target", true}}}},
      {"model",
       {{"use", "flow"},
        {"flow",
         {{{"use", "input"}, {"names", {"table"}}},
          {{"use", "flatten"}, {"tag", "pixels"}},
          {{"use", "at"}, {"tags", {"pixels", "table"}}},
          {{"use", "merge"}, {"with", "cat"}},
          {{"use", "dense"}, {"out_features", 32}},
          {{"use", "tanh"}, {"tag", "encoded"}},
          {{"use", "head"}, {"output", "kind"}, {"tag", "kind"}},
          {{"use", "at"}, {"tags", {"encoded"}}},
          {{"use", "head"}, {"output", "price"}, {"tag", "price"}}}}}},
      {"loss",
       {{{"use", "cross_entropy"}, {"target", "kind"}},
        {{"use", "mse"}, {"target", "price"}, {"factor", 0.5}}}},
      {"metrics",
       {{{"use", "accuracy"}, {"target", "kind"}}, {{"use", "r2"}, {"target", "price"}}}},
      {"optimizer", {{"use", "adam"}, {"learning_rate", 0.01}}},
      {"training", {{"epochs", 60}, {"batch_size", 30}}}};

  const json metrics = trained(document, /*stop_after=*/111);

  EXPECT_GT(metrics.at("kind/accuracy").get<double>(), 0.85);
  EXPECT_GT(metrics.at("price/r2").get<double>(), 0.9);
  const std::vector<at::Tensor> inputs{images.slice(0, 0, 5), table.slice(0, 0, 5)};
  const Predictions predictions = predictor().predict(inputs);
  ASSERT_EQ(predictions.size(), 2U);
  EXPECT_EQ(predictions[0].values.sizes(), (std::vector<std::int64_t>{5, 3}));
  EXPECT_LT(predictions[1].values.squeeze(1).sub(price.slice(0, 0, 5)).abs().max().item<double>(),
            2.5);
}

// Quantiles of noise whose spread is known: those of a standard normal distribution are -1.28 and
// 1.28 for 0.1 and 0.9. Each has a column beside the median's.
TEST_F(Values, QuantilesBesideTheMedian) {
  const TaskRandom random(6);
  array("x.npy", at::rand({2000, 1}));
  array("y.npy", at::randn({2000, 1}));

  trained(
      {{"data", {{"use", "npy"}, {"inputs", path("x.npy")}, {"target", {{"y", path("y.npy")}}}}},
       {"model", "linear"},
       {"loss", {{"use", "quantile"}, {"quantiles", {0.1, 0.5, 0.9}}}},
       {"metrics", {{{"use", "pinball"}, {"quantiles", {0.1, 0.5, 0.9}}}}},
       {"optimizer", {{"use", "adam"}, {"learning_rate", 0.02}}},
       {"training", {{"epochs", 15}, {"batch_size", 40}}}},
      /*stop_after=*/100);

  predictor().predict_file(path("x.npy"), path("out.csv"));
  const auto lines = lines_of(path("out.csv"));
  ASSERT_EQ(lines.size(), 2001U);
  EXPECT_EQ(lines[0], "row,y,y.q0.1,y.q0.9");
  double row = 0;
  double median = 0;
  double low = 0;
  double high = 0;
  ASSERT_EQ(std::sscanf(lines[1].c_str(), "%lf,%lf,%lf,%lf", &row, &median, &low, &high), 4);
  EXPECT_NEAR(median, 0, 0.3);
  EXPECT_NEAR(low, -1.28, 0.35);
  EXPECT_NEAR(high, 1.28, 0.35);
  try {
    predictor().predict(at::zeros({2, 3}));
    ADD_FAILURE() << "rows of another width were taken";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("expected [B, 1], got [2, 3]"));
  }
}

// Mistakes of a document with several targets name the place and the targets there are.
TEST_F(Values, LossesAndMetricsNameTheTargetsThereAre) {
  std::ofstream(path("two.csv")) << "x,y,z\n1,2,3\n2,3,5\n3,5,8\n4,6,9\n";
  const auto refusal = [&](const json& more) -> std::string {
    json document = {{"treadle", 1},
                     {"data", {{"use", "csv"}, {"path", path("two.csv")}, {"target", {"y", "z"}}}},
                     {"model", "linear"}};
    document.update(more);
    try {
      run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
    } catch (const DocumentError& error) {
      return error.what();
    }
    return "";
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;

  EXPECT_THAT(refusal({{"loss", {{{"use", "mse"}, {"target", "y"}}}}}),
              AllOf(HasSubstr("/loss/0"), HasSubstr("\"z\" has no loss")));
  EXPECT_THAT(refusal({{"loss", {{{"use", "mse"}, {"target", "w"}}}}}),
              AllOf(HasSubstr("/loss/0/target"), HasSubstr("\"y\", \"z\"")));
  EXPECT_THAT(refusal({{"loss", "mse"}}), AllOf(HasSubstr("/loss"), HasSubstr("several targets")));
  EXPECT_THAT(refusal({{"metrics", {{{"use", "rmse"}, {"target", "w"}}}}}),
              AllOf(HasSubstr("/metrics/0/target"), HasSubstr("\"y\", \"z\"")));
}

// The targets are distributions over three classes: the closest the model can come to them is their
// own entropy.
TEST_F(Values, SoftLabels) {
  const TaskRandom random(5);
  const at::Tensor x = at::randn({300, 2});
  const at::Tensor scores = at::stack({x.select(1, 0), x.select(1, 1), x.select(1, 0).neg()}, 1);
  const at::Tensor soft = at::softmax(scores, 1);
  array("x.npy", x);
  array("soft.npy", soft);

  for (const char* loss : {"cross_entropy", "kl_div"}) {
    SCOPED_TRACE(loss);
    const json metrics = trained({{"data",
                                   {{"use", "npy"},
                                    {"inputs", path("x.npy")},
                                    {"target",
                                     {{"soft",
                                       {{"path", path("soft.npy")},
                                        {"kind", "distribution"},
                                        {"classes", {"a", "b", "c"}}}}}}}},
                                  {"model", "linear"},
                                  {"loss", loss},
                                  {"optimizer", {{"use", "adam"}, {"learning_rate", 0.05}}},
                                  {"training", {{"epochs", 40}, {"batch_size", 30}}}},
                                 /*stop_after=*/90);

    const double entropy = soft.mul(soft.log()).sum(1).mean().neg().item<double>();
    EXPECT_NEAR(metrics.at("log_loss").get<double>(), entropy, 0.06);
    const at::Tensor predicted = predictor().predict(x).values;
    EXPECT_LT(predicted.sub(soft).abs().max().item<double>(), 0.05);
  }
}

// A language model of characters: the loss of every position of a text, on the first 200 kB of
// tinyshakespeare. A model that knew only how frequent each character is would have 3.3 nats.
TEST_F(Values, CharactersOfALanguage) {
  const char* const data = std::getenv("TREADLE_DATA");
  const fs::path source = fs::path(data != nullptr ? data : "") / "tinyshakespeare.txt";
  if (!fs::exists(source))
    GTEST_SKIP() << source << " is not here; TREADLE_DATA names the folder with public data sets";
  constexpr std::int64_t kLength = 32;
  constexpr std::int64_t kTexts = 6000;
  const std::string whole = read_file(source);
  const std::string text = whole.substr(0, kTexts * kLength + 1);
  std::map<char, std::int64_t> numbers;
  for (const char c : text)
    numbers.emplace(c, 0);
  std::int64_t count = 0;
  for (auto& [c, number] : numbers)
    number = count++;
  const auto encoded = [&](const std::string& characters) {
    at::Tensor codes = at::empty({static_cast<std::int64_t>(characters.size())}, at::kLong);
    for (std::size_t i = 0; i < characters.size(); ++i)
      codes.data_ptr<std::int64_t>()[i] = numbers.at(characters[i]);
    return codes;
  };
  const at::Tensor all = encoded(text);
  array("text.npy", all.slice(0, 0, kTexts * kLength).view({kTexts, kLength}));
  array("next.npy", all.slice(0, 1, kTexts * kLength + 1).view({kTexts, kLength}).contiguous());

  const json metrics = trained(
      {{"data",
        {{"use", "npy"},
         {"inputs",
          {{"text", {{"path", path("text.npy")}, {"role", "tokens"}, {"vocabulary_size", count}}}}},
         {"target", {{"next", {{"path", path("next.npy")}, {"kind", "classes"}}}}}}},
       {"model",
        {{"use", "flow"},
         {"flow",
          {{{"use", "embedding"}, {"embedding_dim", 24}},
           {{"use", "gru"}, {"hidden_size", 64}, {"return_sequences", true}},
           "head"}}}},
       {"metrics", {"perplexity"}},
       {"optimizer", {{"use", "adam"}, {"learning_rate", 0.01}}},
       {"training", {{"epochs", 2}, {"batch_size", 32}}}},
      /*stop_after=*/60);

  EXPECT_LT(std::log(metrics.at("perplexity").get<double>()), 2.2);

  // Text behind what it was trained on.
  constexpr std::int64_t kNew = 200;
  const at::Tensor unseen = encoded(whole.substr(2 * kTexts * kLength, kNew * kLength + 1));
  const at::Tensor texts = unseen.slice(0, 0, kNew * kLength).view({kNew, kLength});
  const at::Tensor next = unseen.slice(0, 1, kNew * kLength + 1).view({kNew, kLength});
  const Predictor model = predictor();
  const at::Tensor probabilities = model.predict(texts).values;
  ASSERT_EQ(probabilities.sizes(), (std::vector<std::int64_t>{kNew, kLength, count}));
  EXPECT_LT(probabilities.sum(-1).sub(1).abs().max().item<double>(), 1e-5);
  const at::Tensor of_next = probabilities.gather(-1, next.unsqueeze(-1));
  EXPECT_LT(of_next.log().mean().neg().item<double>(), 2.3);
  // In English, u follows q, whatever comes after it.
  const std::string line = "KING:\nI have no question for you, ";
  const auto at_q = static_cast<std::int64_t>(line.find('q'));
  const at::Tensor answer = model.predict(encoded(line.substr(0, kLength)).unsqueeze(0)).values[0];
  EXPECT_EQ(answer[at_q].argmax().item<std::int64_t>(), numbers.at('u'));
  const std::string other = line.substr(0, line.find('q') + 1) + std::string(kLength, 'z');
  const at::Tensor before = model.predict(encoded(other.substr(0, kLength)).unsqueeze(0)).values[0];
  EXPECT_EQ(
      before.slice(0, 0, at_q + 1).sub(answer.slice(0, 0, at_q + 1)).abs().max().item<double>(), 0);
}

// Gradients of about 1e24: their squares leave the range of float32, and they do not.
TEST(Gradients, OfAnyFiniteSizeAreClippedOrTaken) {
  const nlohmann::json scale = {{"use", "scale"}, {"factor", 1e6}};
  const Runtime runtime = watching_runtime();
  for (const nlohmann::json& clip :
       {nlohmann::json{{"norm", 1}}, nlohmann::json{{"value", 1e30}}}) {
    const Workspace workspace;
    const nlohmann::json document = {
        {"treadle", 1},
        {"data", {{"use", "moons"}, {"rows", 32}}},
        {"resources", {{"workers", 1}}},
        {"model", {{"use", "flow"}, {"flow", {scale, scale, scale, scale, "head"}}}},
        {"optimizer", {{"use", "sgd"}, {"learning_rate", 1e-30}}},
        {"training", {{"max_steps", 1}, {"batch_size", 8}, {"clip", clip}}}};

    EXPECT_NO_THROW(run_workflow(runtime, runtime.resolve(document), workspace.options())) << clip;
  }
}

}  // namespace
}  // namespace treadle
