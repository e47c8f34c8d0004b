#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/data/data_provider.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every DataProvider that can be read at random must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Data, DataContract, ::testing::Values(
///         DataCase{"Moons", [] { return plugin().make<DataProvider>("moons"); }}), CaseName());
namespace treadle::testing {

struct DataCase {
  std::string name;
  /// A new object each time, of the same data: at least 5 rows.
  std::function<std::unique_ptr<DataProvider>()> make;
};

TREADLE_CONTRACT_SUITE(DataContract, DataCase);

}  // namespace treadle::testing
