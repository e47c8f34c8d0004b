// Strict and less strict loading by name, and the file
// format.
#include <treadle/core/model/weights.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/components/extra_state.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/tensor/safetensors.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A small network with parameters, buffers, and a whole number among them.
struct Net : torch::nn::Module {
  Net()
      : encoder(register_module("encoder", torch::nn::Linear(3, 2))),
        norm(register_module("norm", torch::nn::BatchNorm1d(2))) {}
  torch::nn::Linear encoder;
  torch::nn::BatchNorm1d norm;
};

NamedTensors weights_of(const Net& net) {
  NamedTensors weights;
  for (const auto& item : net.named_parameters())
    weights.emplace(item.key(), item.value().detach().clone());
  for (const auto& item : net.named_buffers())
    weights.emplace(item.key(), item.value().clone());
  return weights;
}

void fill(Net& net, double value) {
  const at::NoGradGuard no_gradients;
  for (at::Tensor& parameter : net.parameters())
    parameter.fill_(value);
}

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class Weights : public ::testing::Test {
 protected:
  Weights() { fs::create_directories(folder_); }
  ~Weights() override { fs::remove_all(folder_); }

  fs::path write(const std::string& bytes) const {
    fs::path path = folder_ / "written.safetensors";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("treadle-weights-" + std::to_string(::getpid()));
  const fs::path file_ = folder_ / "net.safetensors";
};

TEST_F(Weights, ComeBackWithTheSameBits) {
  const Net saved;
  save_weights(saved, file_, {{"made_by", "a test"}});

  Net loaded;
  fill(loaded, 0);
  const void* const place = loaded.encoder->weight.data_ptr();
  load_weights(loaded, file_);

  for (const auto& [name, tensor] : weights_of(saved))
    EXPECT_TRUE(at::equal(weights_of(loaded).at(name), tensor)) << name;
  EXPECT_EQ(loaded.encoder->weight.data_ptr(), place);
  EXPECT_TRUE(loaded.encoder->weight.requires_grad());
  EXPECT_EQ(read_safetensors(file_).metadata.at("made_by"), "a test");
}

/// A module with a word beside its weights.
struct Wordy : torch::nn::Module, ExtraState {
  std::string extra_state() const override { return word; }
  void load_extra_state(std::string_view bytes) override {
    if (bytes.empty())
      throw StorageError("a word has letters");
    word = std::string(bytes);
  }
  std::string word = "none";
};

struct NetWithWords : Net {
  std::shared_ptr<Wordy> words = register_module("words", std::make_shared<Wordy>());
};

TEST_F(Weights, HaveExtraStatesOfAnyLengthBesideThem) {
  NetWithWords saved;
  saved.words->word = "a longer word";
  NamedTensors tensors = module_state(saved).tensors();
  EXPECT_EQ(tensors.at("words._extra_state").numel(), 13);
  NetWithWords loaded;
  load_weights(loaded, tensors);
  EXPECT_EQ(loaded.words->word, "a longer word");
  EXPECT_TRUE(at::equal(loaded.encoder->weight, saved.encoder->weight));

  NetWithWords other;
  const at::Tensor weight = other.encoder->weight.detach().clone();
  for (const at::Tensor& damaged : {at::zeros({0}, at::kByte), at::ones({2})}) {
    tensors["words._extra_state"] = damaged;
    EXPECT_THROW(load_weights(other, tensors), StorageError);
    EXPECT_EQ(other.words->word, "none");
    EXPECT_TRUE(at::equal(other.encoder->weight, weight)) << "nothing has changed";
  }
  tensors.erase("words._extra_state");
  EXPECT_THROW(load_weights(other, tensors), StorageError);
}

TEST_F(Weights, GoIntoAnArena) {
  const Net saved;
  save_weights(saved, file_);
  Net loaded;
  const ParameterArena arena(loaded);

  load_weights(loaded, file_);

  EXPECT_TRUE(at::equal(loaded.encoder->weight, saved.encoder->weight));
}

// Everything that is wrong, in one error.
TEST_F(Weights, ThatDoNotFitAreAllNamedAndChangeNothing) {
  Net net;
  fill(net, 0.5);
  NamedTensors saved = weights_of(Net());
  saved.erase("encoder.bias");
  saved.erase("norm.running_mean");
  saved.emplace("encoder.bais", at::ones({2}));
  saved.emplace("head/kernel", at::ones({2}));
  saved["encoder.weight"] = at::ones({2, 4});
  saved["norm.num_batches_tracked"] = at::full({}, 7.0F);

  EXPECT_EQ(failure_of([&] { load_weights(net, saved); }),
            "saved weights do not fit the model; missing: encoder.bias, norm.running_mean; "
            "unexpected: encoder.bais (did you mean \"encoder.bias\"?), head/kernel; of another "
            "shape: encoder.weight (expected [2, 3], got [2, 4]); of another type: "
            "norm.num_batches_tracked (expected int64, got float32)");
  EXPECT_TRUE(at::equal(net.norm->weight, at::full({2}, 0.5)));
}

TEST_F(Weights, OfAFileThatDoesNotFitNameIt) {
  write_safetensors(file_, {{{"encoder.weight", at::ones({2, 3})}}, {}});
  Net net;

  EXPECT_EQ(failure_of([&] { load_weights(net, file_); }),
            file_.string() +
                ": saved weights do not fit the model; missing: encoder.bias, norm.bias, "
                "norm.num_batches_tracked, norm.running_mean, norm.running_var, norm.weight");
}

TEST_F(Weights, ThatMatchAreLoadedAndTheRestIsTold) {
  Net net;
  fill(net, 0.5);
  NamedTensors saved = weights_of(net);
  saved.erase("norm.bias");
  saved["encoder.weight"] = at::ones({2, 3});
  saved["encoder.bias"] = at::ones({3});
  saved.emplace("head", at::ones({1}));
  write_safetensors(file_, {saved, {}});

  const WeightsDifference rest = load_matching_weights(net, file_);

  EXPECT_THAT(rest.missing, ElementsAre("norm.bias"));
  EXPECT_THAT(rest.unexpected, ElementsAre("head"));
  ASSERT_EQ(rest.of_other_shape.size(), 1);
  EXPECT_EQ(rest.of_other_shape[0].name, "encoder.bias");
  EXPECT_EQ(rest.of_other_shape[0].expected, "[2]");
  EXPECT_EQ(rest.of_other_shape[0].got, "[3]");
  EXPECT_THAT(rest.of_other_type, IsEmpty());
  EXPECT_FALSE(rest.empty());
  EXPECT_TRUE(at::equal(net.encoder->weight, at::ones({2, 3})));
  EXPECT_TRUE(at::equal(net.encoder->bias, at::full({2}, 0.5)));
}

// One number of one tensor is enough, wherever it lies.
TEST_F(Weights, ThatAreNoNumbersForTheModelAreRefusedByName) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, words] :
       {std::pair(nan, "expected finite numbers, got NaN"),
        {-infinity, "expected finite numbers, got infinite ones"},
        {1e39, "expected numbers within float32, got numbers beyond it"},
        {-4e38, "expected numbers within float32, got numbers beyond it"}}) {
    for (const char* const name : {"encoder.weight", "norm.bias"}) {
      Net net;
      NamedTensors saved;
      saved = weights_of(net);
      saved[name] = saved[name].to(at::kDouble);
      saved[name].view(-1)[1] = value;
      const std::string expected = std::string("unusable values: ") + name + " (" + words;

      for (const auto& load : {std::function([&] { load_weights(net, saved); }), std::function([&] {
                                 static_cast<void>(load_matching_weights(net, saved));
                               })}) {
        try {
          load();
          ADD_FAILURE() << name << " takes " << value;
        } catch (const StorageError& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr(expected));
        }
      }
    }
  }
}

TEST_F(Weights, OfOneTensorUnderTwoNamesHaveOneValue) {
  torch::nn::Module net;
  const torch::nn::Linear shared(3, 2);
  net.register_module("encoder", shared.ptr());
  net.register_module("decoder", shared.ptr());
  NamedTensors saved = {{"encoder.weight", at::ones({2, 3})},
                        {"encoder.bias", at::ones({2})},
                        {"decoder.weight", at::ones({2, 3})}};
  EXPECT_NO_THROW(load_weights(net, saved));

  saved["decoder.weight"] = at::zeros({2, 3});

  EXPECT_THAT(
      compare_weights(net, saved).text(),
      ::testing::HasSubstr("encoder.weight (expected the values of decoder.weight, which is "
                           "the same tensor, got others)"));
}

// As Python's safetensors.torch.save_model writes them.
TEST_F(Weights, ThatAreTiedMayBeSavedUnderOneName) {
  torch::nn::Module net;
  const torch::nn::Linear shared(3, 2);
  net.register_module("encoder", shared.ptr());
  net.register_module("decoder", shared.ptr());
  const NamedTensors saved{{"decoder.weight", at::full({2, 3}, 5.0)},
                           {"encoder.bias", at::full({2}, 7.0)}};

  load_weights(net, saved);

  EXPECT_TRUE(at::equal(shared->weight, saved.at("decoder.weight")));
  EXPECT_TRUE(at::equal(shared->bias, saved.at("encoder.bias")));
  EXPECT_THAT(compare_weights(net, {{"encoder.bias", shared->bias}}).missing,
              ElementsAre("decoder.weight", "encoder.weight"));
}

TEST_F(Weights, OfAnotherPrecisionAreConverted) {
  Net net;
  NamedTensors saved = weights_of(net);
  saved["encoder.bias"] = at::tensor({0.25, -2.0}, at::kDouble);
  saved["norm.bias"] = at::tensor({1.5F, 3.0F}).to(at::kBFloat16);

  load_weights(net, saved);

  EXPECT_EQ(net.encoder->bias.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(net.encoder->bias, at::tensor({0.25F, -2.0F})));
  EXPECT_TRUE(at::equal(net.norm->bias, at::tensor({1.5F, 3.0F})));
}

// --- The format, byte by byte, as github.com/huggingface/safetensors describes it.

std::string with_header(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return bytes + header + data;
}

using namespace std::string_literals;

TEST_F(Weights, AreReadFromBytesThatTheFormatSpells) {
  // 1.0F is 0x3F800000, -2.5 is 0xC004000000000000, 3.0 in bfloat16 is 0x4040; the header is not
  // sorted and ends with spaces.
  const fs::path path = write(with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},)"
      R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("n":{"dtype":"I64","shape":[],"data_offsets":[16,24]},)"
      R"("h":{"dtype":"BF16","shape":[1],"data_offsets":[24,26]},)"
      R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[26,26]}}   )",
      "\x00\x00\x80\x3F\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x00\x00\x04\xC0"
      "\x2A\x00\x00\x00\x00\x00\x00\x00"
      "\x40\x40"s));

  const TensorFile content = read_safetensors(path);

  EXPECT_EQ(content.tensors.size(), 5);
  EXPECT_EQ(content.metadata.at("format"), "pt");
  EXPECT_TRUE(at::equal(content.tensors.at("a"), at::tensor({1.0F, 0.0F}).view({2, 1})));
  EXPECT_TRUE(at::equal(content.tensors.at("b"), at::tensor({-2.5}, at::kDouble)));
  EXPECT_EQ(content.tensors.at("n").item<std::int64_t>(), 42);
  EXPECT_EQ(content.tensors.at("n").dim(), 0);
  EXPECT_EQ(content.tensors.at("h").scalar_type(), at::kBFloat16);
  EXPECT_EQ(content.tensors.at("h").item<float>(), 3);
  EXPECT_EQ(content.tensors.at("none").sizes(), (std::vector<std::int64_t>{0, 3}));
}

TEST_F(Weights, AreWrittenAsTheFormatSpellsThem) {
  write_safetensors(file_, {{{"flag", at::ones({1}, at::kBool)},
                             {"w", at::tensor({1.0F, -2.0F})},
                             {"n", at::tensor({3}, at::kLong)}},
                            {}});
  std::ifstream file(file_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

  // Largest elements first: each tensor is aligned.
  std::string header = R"({"flag":{"data_offsets":[16,17],"dtype":"BOOL","shape":[1]},)"
                       R"("n":{"data_offsets":[0,8],"dtype":"I64","shape":[1]},)"
                       R"("w":{"data_offsets":[8,16],"dtype":"F32","shape":[2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(bytes, with_header(header,
                               "\x03\x00\x00\x00\x00\x00\x00\x00"
                               "\x00\x00\x80\x3F\x00\x00\x00\xC0"
                               "\x01"s));
}

struct Damage {
  const char* header;
  std::size_t data;
  const char* expected;
};

TEST_F(Weights, OfDamagedFilesSayWhatIsWrong) {
  const Damage cases[] = {
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8,
       "no tensor lies at byte 4 of its data"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
       "no tensor, or more than one, lies at byte 0 of its data"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "no tensor, or more than one, lies at byte 4 of its data"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "tensor \"a\" has an impossible shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8,
       "tensor \"a\" has 8 bytes, its shape needs 4"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8,
       "tensor \"a\" lies outside the file"},
      {R"({"a":{"dtype":"F9","shape":[1],"data_offsets":[0,8]}})", 8,
       "tensor \"a\" has unknown dtype F9"},
      {R"([1])", 0, "its header is not a JSON object"},
      {"", 0, "its header is not a JSON object"},
      {"{\"a\xff\":", 0, "its header is not a JSON object"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "the tensor \"a\" is there twice"},
      {R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4,
       "tensor \"a\" has no usable \"dtype\""},
      {R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", 4,
       "tensor \"a\" has no usable \"shape\""},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "tensor \"a\" has no usable \"data_offsets\""},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4,
       "tensor \"a\" has no usable \"shape\""},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
       "tensor \"a\" has no usable \"shape\""},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.5]}})", 4,
       "tensor \"a\" has no usable \"data_offsets\""},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
       "tensor \"a\" has no usable \"data_offsets\""},
      {R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "tensor \"a\" has an impossible shape"},
      {R"({"a":3})", 4, "tensor \"a\" has no usable \"dtype\""},
      {R"({"__metadata__":3})", 0, "its metadata is not text by name"},
      {R"({"a":[[[[[[[[[[1]]]]]]]]]]})", 0, "its header is nested too deeply"},
  };
  for (const Damage& damage : cases) {
    const fs::path path = write(with_header(damage.header, std::string(damage.data, '\0')));
    EXPECT_EQ(failure_of([&] { read_safetensors(path); }),
              path.string() + ": not a valid safetensors file: " + damage.expected);
  }
}

TEST_F(Weights, HaveNoTruthValuesBesideTrueAndFalse) {
  const std::string header = R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  const fs::path path = write(with_header(header, "\x01\x02"));

  EXPECT_EQ(failure_of([&] { read_safetensors(path); }),
            path.string() +
                ": not a valid safetensors file: tensor \"a\" has a truth value that is "
                "neither 0 nor 1");
}

TEST_F(Weights, AreNoFolder) {
  EXPECT_EQ(failure_of([&] { read_safetensors(file_.parent_path()); }),
            file_.parent_path().string() + ": cannot be read: no such file, or not readable");
}

// --- And beside the library that most such files come from.

/// Whether Debian's Python can import both; what it said when it cannot.
std::string missing_in_python() {
  if (std::system("/usr/bin/python3 -c 'import safetensors.numpy, numpy' >/dev/null 2>&1") == 0)
    return "";
  return "/usr/bin/python3 has no safetensors and numpy here (Debian 13: python3-safetensors, "
         "python3-numpy)";
}

void run_python(const fs::path& folder, const std::string& program) {
  const fs::path script = folder / "script.py";
  std::ofstream(script) << program;
  ASSERT_EQ(
      std::system(("/usr/bin/python3 '" + script.string() + "' '" + folder.string() + "'").c_str()),
      0);
}

TEST_F(Weights, FromPythonLoadHere) {
  if (const std::string missing = missing_in_python(); !missing.empty())
    GTEST_SKIP() << missing;
  run_python(folder_, R"(
import sys, numpy, safetensors.numpy
safetensors.numpy.save_file({
    "encoder.weight": numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
    "encoder.bias": numpy.array([0.5, -1], dtype=numpy.float32),
    "norm.weight": numpy.array([2, 3], dtype=numpy.float64),
    "norm.bias": numpy.array([4, 5], dtype=numpy.float16),
    "norm.running_mean": numpy.zeros(2, dtype=numpy.float32),
    "norm.running_var": numpy.ones(2, dtype=numpy.float32),
    "norm.num_batches_tracked": numpy.array(11, dtype=numpy.int64),
}, sys.argv[1] + "/net.safetensors", metadata={"from": "Python"})
)");
  Net net;

  load_weights(net, file_);

  EXPECT_TRUE(at::equal(net.encoder->weight, at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_TRUE(at::equal(net.encoder->bias, at::tensor({0.5F, -1.0F})));
  EXPECT_TRUE(at::equal(net.norm->weight, at::tensor({2.0F, 3.0F})));
  EXPECT_TRUE(at::equal(net.norm->bias, at::tensor({4.0F, 5.0F})));
  EXPECT_EQ(net.norm->num_batches_tracked.item<std::int64_t>(), 11);
  EXPECT_EQ(read_safetensors(file_).metadata.at("from"), "Python");
}

TEST_F(Weights, FromHereLoadInPython) {
  if (const std::string missing = missing_in_python(); !missing.empty())
    GTEST_SKIP() << missing;
  Net net;
  fill(net, 0.25);
  net.norm->num_batches_tracked.fill_(3);
  save_weights(net, file_, {{"from", "C++"}});

  run_python(folder_, R"(
import sys, numpy, safetensors
with safetensors.safe_open(sys.argv[1] + "/net.safetensors", framework="numpy") as file:
    assert file.metadata() == {"from": "C++"}, file.metadata()
    tensors = {name: file.get_tensor(name) for name in file.keys()}
assert sorted(tensors) == ["encoder.bias", "encoder.weight", "norm.bias", "norm.num_batches_tracked",
                           "norm.running_mean", "norm.running_var", "norm.weight"], sorted(tensors)
assert tensors["encoder.weight"].dtype == numpy.float32 and (tensors["encoder.weight"] == numpy.full((2, 3), 0.25)).all()
assert tensors["norm.num_batches_tracked"].dtype == numpy.int64 and tensors["norm.num_batches_tracked"] == 3
)");
}

}  // namespace
}  // namespace treadle
