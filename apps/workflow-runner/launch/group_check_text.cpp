#include "launch/group_check_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <treadle/base/json_words.h>

#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

std::string milliseconds_text(const std::optional<double>& time) {
  if (!time)
    return "not reached";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", *time);
  return text;
}

std::string host_table(const launch::GroupCheck& check, const Terminal& terminal) {
  constexpr std::int64_t kMebibytes = 1024;
  std::vector<Cells> rows;
  for (const launch::GroupCheck::Host& host : check.hosts) {
    rows.push_back({std::to_string(host.number), plain_text(host.facts.name),
                    std::to_string(host.processes), std::to_string(host.facts.cores),
                    std::to_string(host.facts.memory_mib / kMebibytes), host.facts.cpu_capability(),
                    plain_text(host.facts.version), plain_text(host.address),
                    plain_text(host.facts.processor)});
  }
  return table_text(
      {"host", "name", "processes", "cores", "GiB", "kernels", "Treadle", "address", "processor"},
      rows, 2, terminal);
}

/// A row for each host that connects, a column for each that is connected to.
std::string link_table(const launch::GroupCheck& check, const Terminal& terminal) {
  Cells head{"ms from"};
  std::vector<Cells> rows;
  for (const launch::GroupCheck::Host& from : check.hosts) {
    head.push_back("to " + std::to_string(from.number));
    Cells row{"host " + std::to_string(from.number)};
    for (const launch::GroupCheck::Host& to : check.hosts) {
      const auto link = std::find_if(check.links.begin(), check.links.end(), [&](const auto& one) {
        return one.from == from.number && one.to == to.number;
      });
      row.push_back(link == check.links.end() ? "-" : milliseconds_text(link->milliseconds));
    }
    rows.push_back(std::move(row));
  }
  return table_text(head, rows, 1, terminal);
}

std::string sentences(const char* kind, const std::vector<std::string>& list,
                      const Terminal& terminal) {
  std::string text;
  for (const std::string& sentence : list)
    text += paragraph(std::string(kind) + ": " + plain_text(sentence), terminal);
  return text;
}

}  // namespace

std::string group_check_text(const launch::GroupCheck& check, const Terminal& terminal) {
  std::string text = host_table(check, terminal);
  if (!check.links.empty())
    text += "\n" + link_table(check, terminal);
  const std::string findings = sentences("bad", check.problems(), terminal) +
                               sentences("doubtful", check.doubts(), terminal);
  return text + "\n" + (findings.empty() ? "good: the group can train\n" : findings);
}

nlohmann::json group_check_json(const launch::GroupCheck& check) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const launch::GroupCheck::Host& host : check.hosts) {
    nlohmann::json one = host.facts.json();
    one["number"] = host.number;
    one["processes"] = host.processes;
    one["address"] = host.address;
    one["cpu_capability"] = host.facts.cpu_capability();
    hosts.push_back(std::move(one));
  }
  nlohmann::json links = nlohmann::json::array();
  for (const launch::GroupCheck::Link& link : check.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"milliseconds",
                      link.milliseconds ? nlohmann::json(*link.milliseconds) : nlohmann::json()}});
  }
  return {{"hosts", std::move(hosts)},
          {"links", std::move(links)},
          {"problems", check.problems()},
          {"doubts", check.doubts()}};
}

}  // namespace treadle::cli
