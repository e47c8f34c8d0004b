#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/model/model.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every ModelProvider, and the models it builds, must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Models, ModelContract, ::testing::Values(
///         ModelCase{"Mlp", [] { return plugin().make<ModelProvider>("mlp"); }}), CaseName());
namespace treadle::testing {

struct ModelCase {
  std::string name;
  std::function<std::unique_ptr<ModelProvider>()> make;
  ModelSpec spec = table_spec();  ///< one the model can take
  /// Training gives other outputs than evaluation: it draws random numbers (dropout) or looks at
  /// the whole batch (batch norm).
  bool training_differs = false;
  /// Inputs have slopes; an embedding, which looks its inputs up, has none.
  bool differentiable_in_inputs = true;

  /// `features` columns in; outputs of the given widths.
  static ModelSpec table_spec(std::int64_t features = 6, std::vector<std::int64_t> widths = {3}) {
    ModelSpec spec;
    spec.inputs = {{"features", {features}, {}}};
    for (std::int64_t i = 0; i < features; ++i)
      spec.inputs[0].columns.push_back({"x" + std::to_string(i), {}, false});
    for (const std::int64_t width : widths)
      spec.outputs.push_back({"output-" + std::to_string(spec.outputs.size()), {width}});
    return spec;
  }
};

TREADLE_CONTRACT_SUITE(ModelContract, ModelCase);

}  // namespace treadle::testing
