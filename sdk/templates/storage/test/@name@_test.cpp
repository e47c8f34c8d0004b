#include <treadle/sdk.h>

#include <fstream>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/search/storage_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::StudyStorage> make(const std::filesystem::path& location) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::StudyStorage>("@name@", {{"location", location.string()}});
}

// What every storage keeps: also between processes, which are stopped and killed.
INSTANTIATE_TEST_SUITE_P(@Name@, StorageContract,
                         ::testing::Values(StorageCase{
                             .name = "File",
                             .make =
                                 [](const std::filesystem::path& folder) {
                                   return make(folder / "studies.json");
                                 },
                             .jobs = 100,
                             .large = 100'000}),
                         CaseName());

TEST(@Name@, IsAFileThatAnybodyCanRead) {
  const ScratchFolder folder;
  const auto storage = make(folder.path() / "studies.json");
  storage->create("iris", {{"trials", 3}});
  storage->claim("iris", 4, "A", 100);
  storage->finish("iris", 4, "A", {{"loss", 0.5}});

  const auto studies = nlohmann::json::parse(std::ifstream(folder.path() / "studies.json"));
  EXPECT_EQ(studies, nlohmann::json::parse(R"({"iris": {
    "description": {"trials": 3}, "ended": null, "results": 1,
    "jobs": {"4": {"worker": "A", "sequence": 1, "result": {"loss": 0.5}}}}})"));
}

TEST(@Name@, AnotherFileIsRefusedAndStays) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "studies.json";
  std::ofstream(path) << "my notes";

  EXPECT_THROW(make(path)->create("iris", 1), treadle::StorageError);

  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "my notes");
}

}  // namespace
