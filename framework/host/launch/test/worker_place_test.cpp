#include <treadle/host/launch/worker_place.h>

#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "place/node_list.h"

namespace treadle::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Meeting = WorkerPlace::Meeting;

Variables merged(Variables first, const Variables& second) {
  for (const auto& [name, value] : second)
    first[name] = value;
  return first;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

std::string complaint(const Variables& variables) {
  try {
    WorkerPlace::from(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no complaint";
}

const Variables kOwn{{"TREADLE_RANK", "1"},          {"TREADLE_WORLD_SIZE", "3"},
                     {"TREADLE_LOCAL_RANK", "1"},    {"TREADLE_LOCAL_WORLD_SIZE", "2"},
                     {"TREADLE_JOB_ID", "a1b2"},     {"TREADLE_GENERATION", "2"},
                     {"TREADLE_TOKEN", "secret"},    {"TREADLE_GROUP_FOLDER", "/tmp/group"},
                     {"TREADLE_HEARTBEAT", "7"},     {"TREADLE_WORKERS", "4"},
                     {"TREADLE_TIMEOUT_MS", "30000"}};
const Variables kTorchrun{{"RANK", "1"},
                          {"WORLD_SIZE", "3"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node-1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"},
                          {"TORCHELASTIC_RUN_ID", "run7"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "3"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                        {"PMIX_RANK", "1"},
                        {"PMIX_NAMESPACE", "42"}};
const Variables kSrun{{"SLURM_PROCID", "1"},         {"SLURM_NTASKS", "3"},
                      {"SLURM_LOCALID", "1"},        {"SLURM_NODEID", "0"},
                      {"SLURM_JOB_ID", "4711"},      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "node[01-03,07],gpu5"},
                      {"SLURM_RESTART_COUNT", "2"}};
const Variables kMpiexec{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};

TEST(WorkerPlace, OfAProcessWithoutALauncherIsAlone) {
  const WorkerPlace place = WorkerPlace::from({{"PATH", "/bin"}, {"MASTER_ADDR", "node-1"}});

  EXPECT_FALSE(place.is_in_group());
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.world_size, 1);
  EXPECT_EQ(place.meeting, Meeting::kNone);
  EXPECT_THAT(place.launcher, IsEmpty());
  EXPECT_EQ(place.heartbeat, -1);
  EXPECT_EQ(place.workers, 0);
}

TEST(WorkerPlace, OfOurLaunchHasAllThatItSets) {
  const WorkerPlace place = WorkerPlace::from(kOwn);

  EXPECT_EQ(place.launcher, "workflow-runner launch");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.group_id(), "a1b2.2");
  EXPECT_EQ(place.meeting, Meeting::kFolder);
  EXPECT_EQ(place.meeting_folder(), "/tmp/group/meeting");
  EXPECT_EQ(place.token, "secret");
  EXPECT_EQ(place.heartbeat, 7);
  EXPECT_EQ(place.workers, 4);
  EXPECT_EQ(place.timeout, std::chrono::seconds(30));
  EXPECT_FALSE(place.is_served);
}

TEST(WorkerPlace, OfOurLaunchOnSeveralHostsMeetsAtAnAddress) {
  const WorkerPlace place = WorkerPlace::from(merged(kOwn, {{"TREADLE_ADDRESS", "node-1:29500"}}));

  EXPECT_EQ(place.meeting, Meeting::kAddress);
  EXPECT_EQ(place.address, "node-1:29500");
  EXPECT_TRUE(place.meeting_folder().empty());
}

TEST(WorkerPlace, OfOneProcessOfOurLaunchHasAHeartbeatAndNoMeeting) {
  const WorkerPlace place = WorkerPlace::from(merged(kOwn, {{"TREADLE_RANK", "0"},
                                                            {"TREADLE_WORLD_SIZE", "1"},
                                                            {"TREADLE_LOCAL_RANK", "0"},
                                                            {"TREADLE_LOCAL_WORLD_SIZE", "1"}}));

  EXPECT_FALSE(place.is_in_group());
  EXPECT_EQ(place.heartbeat, 7);
  EXPECT_EQ(place.group_folder, "/tmp/group");
  EXPECT_EQ(place.meeting, Meeting::kNone);
}

TEST(WorkerPlace, OfTorchrunMeetsAtTheMaster) {
  const WorkerPlace place = WorkerPlace::from(kTorchrun);

  EXPECT_EQ(place.launcher, "torchrun");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.address, "node-1:29500");
  EXPECT_EQ(place.group_id(), "torchrun-run7.2");
  EXPECT_TRUE(place.is_served);
}

TEST(WorkerPlace, OfTorchrunIsServedByItsAgentWhereThatServes) {
  const auto is_served = [](const std::string& value) {
    return WorkerPlace::from(merged(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", value}}))
        .is_served;
  };

  EXPECT_TRUE(is_served("1"));
  EXPECT_FALSE(is_served("False"));
  EXPECT_FALSE(is_served(""));
  EXPECT_THAT(complaint(merged(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "maybe"}})),
              HasSubstr("TORCHELASTIC_USE_AGENT_STORE is \"maybe\", expected True or False"));
}

// Kubernetes operators set these alone.
TEST(WorkerPlace, OfTorchrunNeedsNoLocalRank) {
  const WorkerPlace place = WorkerPlace::from(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "master-0"}, {"MASTER_PORT", "23456"}});

  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.local_size, 0);
  EXPECT_EQ(place.group_id(), "torchrun-master-0:23456.0");
}

TEST(WorkerPlace, OfOpenMpiIsMetByMpi) {
  const WorkerPlace place = WorkerPlace::from(kMpirun);

  EXPECT_EQ(place.launcher, "mpirun");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 3);
  EXPECT_EQ(place.meeting, Meeting::kLauncher);
  EXPECT_EQ(place.group_id(), "mpirun-42.0");
  EXPECT_THAT(complaint(merged(kMpirun, {{"PMIX_RANK", "2"}})),
              HasSubstr("PMIX_RANK is \"2\", expected 1, as OMPI_COMM_WORLD_RANK is"));
}

TEST(WorkerPlace, OfSlurmMeetsOnTheFirstHostOfItsStep) {
  const WorkerPlace place = WorkerPlace::from(kSrun);

  EXPECT_EQ(place.launcher, "srun");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.group_id(), "slurm-4711.0.2");
  EXPECT_THAT(place.address, ::testing::StartsWith("node01:"));
}

TEST(WorkerPlace, OfSlurmHasAPortForEachStepThatLinuxDoesNotHandOut) {
  std::set<std::string> addresses;
  for (int job = 100; job < 110; ++job) {
    for (int step = 0; step < 10; ++step) {
      const WorkerPlace place = WorkerPlace::from(merged(
          kSrun, {{"SLURM_JOB_ID", std::to_string(job)}, {"SLURM_STEP_ID", std::to_string(step)}}));
      const int port = std::stoi(place.address.substr(place.address.find(':') + 1));
      EXPECT_GE(port, 1024);
      EXPECT_LT(port, 32768);
      addresses.insert(place.address);
    }
  }
  EXPECT_EQ(addresses.size(), 100U);
}

TEST(WorkerPlace, OfSlurmCountsTheTasksOfItsStepAndNotOfItsJob) {
  EXPECT_EQ(WorkerPlace::from(merged(kSrun, {{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}))
                .world_size,
            2);
}

TEST(WorkerPlace, OfOneTaskOfSrunIsAlone) {
  const WorkerPlace place = WorkerPlace::from(
      merged(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_LOCALID", "0"}}));

  EXPECT_FALSE(place.is_in_group());
  EXPECT_EQ(place.meeting, Meeting::kNone);
}

// Both have the variables of their job, but srun has not started them.
TEST(WorkerPlace, OfABatchScriptAndAnInteractiveShellIsAlone) {
  EXPECT_FALSE(WorkerPlace::from(without(kSrun, "SLURM_STEP_ID")).is_in_group());
  EXPECT_FALSE(WorkerPlace::from(merged(kSrun, {{"SLURM_STEP_ID", "4294967290"}})).is_in_group());
}

TEST(WorkerPlace, OfMpichIsMetByMpi) {
  const WorkerPlace place = WorkerPlace::from(kMpiexec);

  EXPECT_EQ(place.launcher, "mpiexec");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.meeting, Meeting::kLauncher);
}

// For a communicator other than MPI.
TEST(WorkerPlace, OfALauncherOfMpiMeetsAtTheMasterWhereThereIsOne) {
  const Variables master{{"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}};
  for (const Variables* const variables : {&kMpirun, &kMpiexec}) {
    const WorkerPlace place = WorkerPlace::from(merged(*variables, master));

    EXPECT_EQ(place.meeting, Meeting::kAddress);
    EXPECT_EQ(place.address, "node-1:29500");
    EXPECT_FALSE(place.is_served);
    EXPECT_THAT(complaint(merged(*variables, {{"MASTER_ADDR", "node-1"}})),
                HasSubstr("MASTER_ADDR is set, but MASTER_PORT is not"));
  }
}

struct LauncherCase {
  const char* name;
  const Variables* variables;
  const char* rank;
  const char* world_size;
};

class EachLauncher : public ::testing::TestWithParam<LauncherCase> {
 protected:
  Variables with(const std::string& name, const std::string& value) const {
    return merged(*GetParam().variables, {{name, value}});
  }
};

TEST_P(EachLauncher, RefusesRanksThatAreNoNumbersOfTheGroup) {
  const std::string rank = GetParam().rank;
  for (const char* value :
       {"four", "-1", "3", "100", "1x", " 1", "0x1", "1.0", "99999999999999999999"}) {
    EXPECT_THAT(complaint(with(rank, value)),
                AllOf(HasSubstr(rank + " is \"" + value + "\", expected "),
                      HasSubstr("start the process by " + std::string(GetParam().name)),
                      HasSubstr("or unset " + rank)));
  }
}

TEST_P(EachLauncher, RefusesSizesThatAreNone) {
  const std::string size = GetParam().world_size;
  for (const char* value : {"four", "-1", "0", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(complaint(with(size, value)),
                HasSubstr(size + " is \"" + value + "\", expected a whole number from 1 to"));
  }
}

TEST_P(EachLauncher, RefusesHalfOfTheVariables) {
  const std::string rank = GetParam().rank;
  const std::string size = GetParam().world_size;
  const Variables& all = *GetParam().variables;
  for (const auto& [missing, present] : {std::pair(rank, size), std::pair(size, rank)}) {
    const std::string expected = present + " is set, but " + missing + " is not; set all variables";
    EXPECT_THAT(complaint(without(all, missing)), HasSubstr(expected));
    EXPECT_THAT(complaint(merged(all, {{missing, ""}})), HasSubstr(expected));
  }
}

TEST_P(EachLauncher, AgreesWithItself) {
  EXPECT_EQ(complaint(*GetParam().variables), "no complaint");
}

INSTANTIATE_TEST_SUITE_P(
    All, EachLauncher,
    ::testing::Values(
        LauncherCase{"workflow-runner launch", &kOwn, "TREADLE_RANK", "TREADLE_WORLD_SIZE"},
        LauncherCase{"torchrun", &kTorchrun, "RANK", "WORLD_SIZE"},
        LauncherCase{"mpirun", &kMpirun, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        LauncherCase{"srun", &kSrun, "SLURM_PROCID", "SLURM_NTASKS"},
        LauncherCase{"mpiexec", &kMpiexec, "PMI_RANK", "PMI_SIZE"}));

TEST(WorkerPlace, NeedsWhatItsMeetingNeeds) {
  const struct {
    const Variables* variables;
    std::string missing;
  } kCases[] = {{&kOwn, "TREADLE_JOB_ID"},   {&kOwn, "TREADLE_GROUP_FOLDER"},
                {&kTorchrun, "MASTER_ADDR"}, {&kTorchrun, "MASTER_PORT"},
                {&kSrun, "SLURM_JOB_ID"},    {&kSrun, "SLURM_STEP_NODELIST"}};
  for (const auto& [variables, missing] : kCases) {
    EXPECT_THAT(complaint(without(*variables, missing)),
                HasSubstr("is set, but " + missing + " is not"));
  }
}

TEST(WorkerPlace, RefusesPortsListsAndNumbersThatAreNone) {
  const struct {
    const Variables* variables;
    std::string name;
    std::string value;
    std::string expected;
  } kCases[] = {
      {&kTorchrun, "MASTER_PORT", "0", "a whole number from 1 to 65535"},
      {&kTorchrun, "MASTER_PORT", "65536", "a whole number from 1 to 65535"},
      {&kTorchrun, "MASTER_PORT", "http", "a whole number from 1 to 65535"},
      {&kTorchrun, "LOCAL_RANK", "2", "a whole number from 0 to 1"},
      {&kTorchrun, "TORCHELASTIC_RESTART_COUNT", "-1", "a whole number from 0"},
      {&kSrun, "SLURM_STEP_NODELIST", "node[01-", "a list of hosts such as node[01-03,07],gpu5"},
      {&kOwn, "TREADLE_TIMEOUT_MS", "0", "a whole number from 1 to 2147483647"},
      {&kOwn, "TREADLE_WORKERS", "none", "a whole number from 1 to 100000"},
  };
  for (const auto& [variables, name, value, expected] : kCases) {
    EXPECT_THAT(complaint(merged(*variables, {{name, value}})),
                HasSubstr(name + " is \"" + value + "\", expected " + expected));
  }
}

TEST(WorkerPlace, IsThatOfTheFirstLauncherWhereAllAgree) {
  const Variables all = merged(merged(merged(kMpiexec, kSrun), merged(kMpirun, kTorchrun)), kOwn);
  EXPECT_EQ(WorkerPlace::from(all).launcher, "workflow-runner launch");
  EXPECT_EQ(WorkerPlace::from(merged(kSrun, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(WorkerPlace::from(merged(kMpirun, kSrun)).launcher, "mpirun");
  EXPECT_EQ(WorkerPlace::from(merged(kMpiexec, kSrun)).launcher, "srun");
}

TEST(WorkerPlace, IsNeverAMixtureOfTwoLaunchers) {
  const WorkerPlace place = WorkerPlace::from(merged(kMpirun, kTorchrun));

  EXPECT_EQ(place.launcher, "torchrun");
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.meeting, Meeting::kAddress);
}

TEST(WorkerPlace, IsRefusedWhereTwoLaunchersDiffer) {
  EXPECT_THAT(complaint(merged(merged(kSrun, kTorchrun), {{"RANK", "2"}})),
              AllOf(HasSubstr("torchrun (RANK=2, WORLD_SIZE=3)"),
                    HasSubstr("srun (SLURM_PROCID=1, SLURM_NTASKS=3)"),
                    HasSubstr("env -u SLURM_PROCID -u SLURM_NTASKS")));
  EXPECT_THAT(complaint(merged(merged(kMpirun, kTorchrun), {{"WORLD_SIZE", "4"}})),
              HasSubstr("torchrun (RANK=1, WORLD_SIZE=4) and mpirun"));
}

// srun starts torchrun, and mpirun its daemons, with one task on each node.
TEST(WorkerPlace, IsThatOfTheInnerLauncherInATaskOfItsOwnNode) {
  const Variables outer =
      merged(kSrun, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}});

  EXPECT_EQ(WorkerPlace::from(merged(outer, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(WorkerPlace::from(merged(outer, kMpirun)).launcher, "mpirun");
  EXPECT_THAT(complaint(merged(merged(outer, kTorchrun), {{"SLURM_STEP_NUM_NODES", "1"}})),
              HasSubstr("two launchers place this process differently"));
}

TEST(WorkerPlace, IsThatOfTorchrunInOneTaskOfSrun) {
  const Variables outer =
      merged(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_LOCALID", "0"}});

  EXPECT_EQ(WorkerPlace::from(merged(outer, kTorchrun)).launcher, "torchrun");
}

TEST(NodeList, BeginsWithItsFirstHost) {
  const std::pair<const char*, const char*> kCases[] = {
      {"node01", "node01"},
      {"node01,node02", "node01"},
      {"node[01-03,07],gpu5", "node01"},
      {"node[007]", "node007"},
      {"rack[2-3]-node[10,12]", "rack2-node10"},
      {"n[1-2].cluster.example", "n1.cluster.example"},
      {"gpu5,node[01-03]", "gpu5"},
      {"", ""},
      {",node01", ""},
      {"node[01-", ""},
      {"node[]", ""},
      {"node[a-b]", ""},
      {"node[1-]", ""},
      {"node[,1]", ""},
      {"node 01", ""},
      {"node]1[", ""},
  };
  for (const auto& [list, host] : kCases)
    EXPECT_EQ(first_host(list), host) << list;
}

}  // namespace
}  // namespace treadle::launch
