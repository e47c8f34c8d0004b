#include <treadle/sdk.h>

#include <fstream>
#include <iterator>

#include <treadle/testing/data/writer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::TableWriter> make(const std::filesystem::path& folder) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::TableWriter>("@name@", {{"path", (folder / "table.md").string()}});
}

// The contract of every writer.
INSTANTIATE_TEST_SUITE_P(@Name@, WriterContract, ::testing::Values(WriterCase{"File", make}),
                         CaseName());

TEST(@Name@, IsATableOfMarkdown) {
  using Type = treadle::TableWriter::Column::Type;
  const ScratchFolder folder;
  const auto writer = make(folder.path());
  writer->open({{"row", Type::kInteger}, {"answer", Type::kText}, {"p|q", Type::kFloat}});
  writer->write({std::vector<std::int64_t>{0, 1}, std::vector<std::string>{"yes", "a|b"},
                 std::vector<float>{.25F, .5F}});
  writer->close();

  std::ifstream file(folder.path() / "table.md");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "| row | answer | p\\|q |\n"
            "|--:|---|--:|\n"
            "| 0 | yes | 0.25 |\n"
            "| 1 | a\\|b | 0.5 |\n");
}

}  // namespace
