#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

#include <treadle/testing/distributed/communicator_contract.h>

#include "made.h"

namespace treadle::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::milliseconds kTimeout{3000};  // processes start slowly
#else
constexpr std::chrono::milliseconds kTimeout{600};
#endif

CommunicatorCase one_host() {
  return {.name = "OneHost",
          .make = [](const std::filesystem::path&) { return gloo_group::make(); },
          .timeout = kTimeout};
}

/// c10d's server listens at every address of its host.
CommunicatorCase several_hosts() {
  CommunicatorCase hosts = one_host();
  hosts.name = "SeveralHosts";
  hosts.address = gloo_group::free_address;
  hosts.listens_on_loopback_alone = false;
  return hosts;
}

INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorContract, ::testing::Values(one_host(), several_hosts()),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
