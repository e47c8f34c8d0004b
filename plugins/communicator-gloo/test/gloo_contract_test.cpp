#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

#include <treadle/testing/distributed/communicator_contract.h>

#include "made.h"

namespace treadle::testing {
namespace {

CommunicatorCase one_host() {
  return {.name = "OneHost",
          .make = [](const std::filesystem::path&) { return gloo_group::make(); },
          .timeout = std::chrono::milliseconds(600)};
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
