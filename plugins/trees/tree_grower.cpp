#include "tree_grower.h"

#include <xgboost/c_api.h>

#include <string_view>

#include <ATen/ops/isinf.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "library_trees.h"

namespace treadle::trees {
namespace {

using nlohmann::json;

/// The library's message about its last failure, without its source line and call stack.
std::string last_error() {
  std::string_view text = XGBGetLastError();
  text = text.substr(0, text.find("\nStack trace"));
  if (const auto place = text.find(".cc:"); place != std::string_view::npos) {
    if (const auto end = text.find(": ", place); end != std::string_view::npos)
      text.remove_prefix(end + 2);
  }
  while (!text.empty() && text.back() == '\n')
    text.remove_suffix(1);
  return std::string(text);
}

template <typename Failure = TrainingError>
void expect_done(int result, const char* what) {
  if (result == 0)
    return;
  throw Failure("XGBoost " + library_version() + " could not " + what + ": " + last_error() +
                "; look at the values of inputs and targets, and at the parameters of the model");
}

/// Verbosity is a setting of each thread.
void silence() {
  expect_done(XGBRegisterLogCallback([](const char*) {}), "be silenced");
  expect_done(XGBSetGlobalConfig(R"({"verbosity": 0})"), "be silenced");
}

/// A contiguous tensor of float32 as NumPy's __array_interface__.
std::string array_of(const at::Tensor& tensor) {
  return json{{"data", {reinterpret_cast<std::uintptr_t>(tensor.data_ptr<float>()), true}},
              {"shape", tensor.sizes().vec()},
              {"typestr", "<f4"},
              {"version", 3}}
      .dump();
}

void expect_finite(const at::Tensor& rows) {
  const at::Tensor infinite = at::isinf(rows).any(0);
  if (!infinite.any().item<bool>())
    return;
  throw DataError("column " + std::to_string(infinite.nonzero()[0].item<std::int64_t>() + 1) +
                  " of the inputs of gradient_boosted_trees, counted from 1, has infinite values; "
                  "remove or clip them");
}

/// One round of boosting.
class Booster {
 public:
  explicit Booster(DMatrixHandle rows) {
    expect_done(XGBoosterCreate(&rows, 1, &handle_), "begin a round");
  }
  ~Booster() { XGBoosterFree(handle_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  void set(const std::string& name, const std::string& value) {
    expect_done(XGBoosterSetParam(handle_, name.c_str(), value.c_str()), "take a parameter");
  }
  void grow(DMatrixHandle rows) {
    expect_done(XGBoosterUpdateOneIter(handle_, 0, rows), "grow a tree");
  }
  /// Valid until the next call.
  std::string_view model() const {
    bst_ulong size = 0;
    const char* bytes = nullptr;
    expect_done(XGBoosterSaveModelToBuffer(handle_, R"({"format": "ubj"})", &size, &bytes),
                "write a tree");
    return {bytes, size};
  }

 private:
  BoosterHandle handle_ = nullptr;
};

std::string number(double value) {
  return json(value).dump();
}

}  // namespace

GrowthOptions::GrowthOptions(const Config& config) {
  for (const char* name :
       {"learning_rate", "min_child_weight", "gamma", "subsample", "colsample_bytree",
        "colsample_bylevel", "colsample_bynode", "reg_lambda", "reg_alpha", "max_delta_step"})
    parameters.emplace_back(name, number(config.get<double>(name)));
  for (const char* name : {"max_depth", "max_leaves", "max_bin"})
    parameters.emplace_back(name, std::to_string(config.get<std::int64_t>(name)));
  parameters.emplace_back("grow_policy", config.get<std::string>("grow_policy"));
  if (config.get<std::int64_t>("max_depth") == 0 && config.get<std::int64_t>("max_leaves") == 0)
    config.fail("max_depth",
                "a tree of any depth needs a number of leaves; set max_leaves above 0");
}

std::string library_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

struct TreeGrower::Matrix {
  Matrix(const at::Tensor& rows, const TreeTargets& targets) {
    expect_done<DataError>(XGDMatrixCreateFromDense(array_of(rows).c_str(),
                                                    R"({"missing": NaN, "nthread": 1})", &handle),
                           "take the rows");
    try {
      set<DataError>("label", targets.labels);
      if (targets.weights.defined())
        set<DataError>("weight", targets.weights);
    } catch (...) {
      XGDMatrixFree(handle);
      throw;
    }
  }
  ~Matrix() { XGDMatrixFree(handle); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  template <typename Failure>
  void set(const char* what, const at::Tensor& values) {
    expect_done<Failure>(XGDMatrixSetInfoFromInterface(handle, what, array_of(values).c_str()),
                         "take targets, weights or margins of the rows");
  }

  DMatrixHandle handle = nullptr;
};

TreeGrower::TreeGrower(const at::Tensor& rows, const TreeTargets& targets, std::string objective,
                       const GrowthOptions& options, std::int64_t margins)
    : parameters_(options.parameters), margins_(margins) {
  expect_finite(rows);
  silence();
  matrix_ = std::make_unique<Matrix>(rows, targets);
  if (objective == "multi:softprob")
    parameters_.emplace_back("num_class", std::to_string(margins));
  parameters_.emplace_back("objective", std::move(objective));
  parameters_.emplace_back("tree_method", "hist");
  parameters_.emplace_back("base_score", "0.5");  // unused beside margins; newer ones estimate it
  parameters_.emplace_back("disable_default_eval_metric", "1");
  parameters_.emplace_back("seed_per_iteration", "1");
  parameters_.emplace_back("nthread", "1");
}

TreeGrower::~TreeGrower() = default;

std::vector<Tree> TreeGrower::grow(const at::Tensor& margins, std::uint64_t seed) {
  silence();
  matrix_->set<TrainingError>("base_margin", margins.contiguous());
  Booster booster(matrix_->handle);
  for (const auto& [name, value] : parameters_)
    booster.set(name, value);
  booster.set("seed", std::to_string(seed % (std::uint64_t{1} << 24)));  // times 127 in an int
  booster.grow(matrix_->handle);
  return trees_in(booster.model(), margins_);
}

}  // namespace treadle::trees
