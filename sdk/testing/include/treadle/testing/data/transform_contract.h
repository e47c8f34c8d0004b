#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/data/transform.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Transform must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Transforms, TransformContract, ::testing::Values(
///         TransformCase{"Standardize", [] { return plugin().make<Transform>("standardize"); }}),
///         CaseName());
namespace treadle::testing {

struct TransformCase {
  std::string name;
  std::function<std::unique_ptr<Transform>()> make;
  /// Changes training batches at random, from their seed.
  bool augments = false;
  /// Works on images: rows then have an input of them as well, "picture", [2, 6, 5].
  bool images = false;
  /// A device draws other numbers than the host for it.
  bool draws_on_device = false;
  /// By how much images of bytes may differ from those of numbers: bytes are rounded.
  double bytes_within = 0;
};

TREADLE_CONTRACT_SUITE(TransformContract, TransformCase);

}  // namespace treadle::testing
