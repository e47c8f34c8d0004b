#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <treadle/core/data/table_writer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// The contract of every TableWriter. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Writers, WriterContract, ::testing::Values(
///         WriterCase{"Jsonl", [](const std::filesystem::path& folder) {
///           return plugin().make<TableWriter>("jsonl", {{"path", folder / "out.jsonl"}});
///         }}), CaseName());
namespace treadle::testing {

struct WriterCase {
  std::string name;
  /// A new object each time, of the one place that belongs to `folder`, which exists; it replaces
  /// the table before.
  std::function<std::unique_ptr<TableWriter>(const std::filesystem::path& folder)> make;
  /// All content of the place, in whatever form; equal only where it is the same table. By
  /// default the names and bytes of the folder's files.
  std::function<std::string(const std::filesystem::path& folder)> contents = {};
};

TREADLE_CONTRACT_SUITE(WriterContract, WriterCase);

}  // namespace treadle::testing
