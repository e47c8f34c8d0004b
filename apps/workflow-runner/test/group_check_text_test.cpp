#include "launch/group_check_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const Terminal kFile(-1, false, false);

/// Two hosts, the second one with one rank.
launch::GroupCheck three_ranks() {
  launch::GroupCheck check;
  for (const std::int64_t number : {0, 1}) {
    launch::GroupCheck::Host host;
    host.number = number;
    host.first_rank = 2 * number;
    host.processes = 2 - number;
    host.address = "10.0.0." + std::to_string(number + 1);
    host.facts.name = "node-" + std::to_string(number + 1);
    host.facts.version = "0.1.0";
    host.facts.processor = "Xeon";
    host.facts.cores = 4;
    check.hosts.push_back(host);
  }
  check.links = {{0, 1, 0.5}, {1, 0, 0.25}};
  return check;
}

launch::GroupReport made_report() {
  launch::GroupReport report;
  report.communicator = "gloo";
  report.ranks = {{"node-1", "10.0.0.1", 2, "AVX2", "0.1.0", "1.13.1", "OpenBLAS"},
                  {"node-1", "10.0.0.1", 2, "AVX2", "0.1.0", "1.13.1", "OpenBLAS"},
                  {"node-2", "10.0.0.2", 4, "AVX2", "0.1.0", "1.13.1", "OpenBLAS"}};
  report.speed = {0.125, 2.5e8, 3.25};
  return report;
}

TEST(GroupCheckText, HasALineForEachHostAndTheSpeedOfTheirExchange) {
  launch::GroupCheck check = three_ranks();
  check.add(made_report());

  EXPECT_EQ(
      group_check_text(check, kFile),
      "host  name    address   ranks  cores  threads  GiB  kernels  Treadle  libtorch      BLAS  "
      "processor\n"
      "0     node-1  10.0.0.1    0-1      4        2    0     AVX2    0.1.0    1.13.1  OpenBLAS  "
      "     Xeon\n"
      "1     node-2  10.0.0.2      2      4        4    0     AVX2    0.1.0    1.13.1  OpenBLAS  "
      "     Xeon\n"
      "\n"
      "ms from  to 0  to 1\n"
      "host 0      -  0.50\n"
      "host 1   0.25     -\n"
      "\n"
      "communicator   latency  sent by a rank  exchange of 500 000 floats\n"
      "gloo          0.125 ms        250 MB/s                     3.25 ms\n"
      "\n"
      "good: 3 processes on 2 hosts can train together; a step of a model with 500 000 parameters "
      "waits 3.2 ms for its exchange\n");
}

TEST(GroupCheckText, DoesNotCallADoubtfulGroupGood) {
  launch::GroupCheck check = three_ranks();
  launch::GroupReport slow = made_report();
  slow.speed->exchange_ms = 40;
  check.add(slow);

  const std::string text = group_check_text(check, kFile);

  EXPECT_THAT(text, HasSubstr("doubtful: an exchange of 500000 floats takes 40 ms"));
  EXPECT_THAT(text, HasSubstr("\n3 processes on 2 hosts can train together"));
  EXPECT_THAT(text, Not(HasSubstr("good")));
}

TEST(GroupCheckText, NamesWhatKeepsTheGroupFromTraining) {
  launch::GroupCheck check = three_ranks();
  check.links[1].milliseconds.reset();

  const std::string text = group_check_text(check, kFile);

  EXPECT_THAT(text, HasSubstr("host 1   not reached"));
  EXPECT_THAT(text, HasSubstr("bad: host 1 (node-2) does not reach host 0 (node-1)"));
  EXPECT_THAT(text, Not(HasSubstr("can train")));
}

TEST(GroupCheckJson, HasHostsRanksAndSpeed) {
  launch::GroupCheck check = three_ranks();
  EXPECT_FALSE(group_check_json(check).contains("ranks"));

  check.add(made_report());
  const nlohmann::json value = group_check_json(check);

  EXPECT_EQ(value.at("hosts").at(1).at("first_rank"), 2);
  EXPECT_EQ(value.at("ranks").size(), 3U);
  EXPECT_EQ(value.at("speed").at("exchange_ms"), 3.25);
  EXPECT_EQ(value.at("problems"), nlohmann::json::array());
}

}  // namespace
}  // namespace treadle::cli
