#include <treadle/sdk.h>

#include <treadle/testing/distributed/communicator_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Communicator> make() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Communicator>("@name@");
}

// The guarantees of every communicator, also when its processes are stopped and killed.
INSTANTIATE_TEST_SUITE_P(
    @Name@, CommunicatorContract,
    ::testing::Values(CommunicatorCase{
        .name = "Sockets",
        .make = [](const std::filesystem::path&) { return make(); },
        .names_ranks = false}),
    CaseName());

TEST(@Name@, SizesThatDifferAreRefused) {
  const ScratchFolder folder;
  const auto rendezvous = [&](std::int64_t rank) {
    return treadle::Rendezvous{.rank = rank, .world_size = 2, .folder = folder.path()};
  };
  ForkedProcess other([&] {
    const auto group = make();
    group->connect(rendezvous(1));
    std::array<std::byte, 3> bytes{};
    group->broadcast(bytes, 1);
  });

  const auto group = make();
  group->connect(rendezvous(0));
  std::array<std::byte, 4> bytes{};
  try {
    group->broadcast(bytes, 1);
    ADD_FAILURE() << "four bytes came where three were sent";
  } catch (const treadle::CommunicationError& error) {
    EXPECT_EQ(error.rank(), 1);
    EXPECT_EQ(std::string(error.what()),
              "rank 1 sent 3 bytes, expected 4; all ranks must make the same calls");
  }
}

}  // namespace
