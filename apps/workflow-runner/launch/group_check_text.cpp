#include "launch/group_check_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>
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

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// "0-3", "4"
std::string ranks_text(const launch::GroupCheck::Host& host) {
  const std::string first = std::to_string(host.first_rank);
  return host.processes == 1 ? first
                             : first + "-" + std::to_string(host.first_rank + host.processes - 1);
}

/// The processes of a host are alike: the first one stands for them. Without a report, what is
/// known of the host itself.
std::string host_table(const launch::GroupCheck& check, const Terminal& terminal) {
  constexpr std::int64_t kMebibytes = 1024;
  std::vector<Cells> rows;
  for (const launch::GroupCheck::Host& host : check.hosts) {
    const launch::GroupReport::Rank* const rank = check.rank_of(host);
    rows.push_back(
        {std::to_string(host.number), plain_text(host.facts.name),
         plain_text(rank != nullptr ? rank->address : host.address), ranks_text(host),
         std::to_string(host.facts.cores), rank != nullptr ? std::to_string(rank->threads) : "-",
         std::to_string(host.facts.memory_mib / kMebibytes),
         plain_text(rank != nullptr ? rank->cpu_capability : "-"), plain_text(host.facts.version),
         plain_text(rank != nullptr ? rank->libtorch : "-"),
         plain_text(rank != nullptr ? rank->blas : "-"), plain_text(host.facts.processor)});
  }
  return table_text({"host", "name", "address", "ranks", "cores", "threads", "GiB", "kernels",
                     "Treadle", "libtorch", "BLAS", "processor"},
                    rows, 3, terminal);
}

std::string speed_table(const std::string& communicator, const launch::GroupReport::Speed& speed,
                        const Terminal& terminal) {
  constexpr double kMegabyte = 1e6;
  return table_text({"communicator", "latency", "sent by a rank", "exchange of 500 000 floats"},
                    {{plain_text(communicator), print("%.3f ms", speed.latency_ms),
                      print("%.0f MB/s", speed.bytes_per_second / kMegabyte),
                      print("%.2f ms", speed.exchange_ms)}},
                    1, terminal);
}

std::string verdict(const launch::GroupCheck& check) {
  const std::size_t hosts = check.hosts.size();
  const std::size_t ranks = check.report ? check.report->ranks.size() : 0;
  std::string text = (check.doubts().empty() ? "good: " : "") + std::to_string(ranks) +
                     (ranks == 1 ? " process" : " processes") + " on " + std::to_string(hosts) +
                     (hosts == 1 ? " host" : " hosts") + " can train" +
                     (ranks == 1 ? "" : " together");
  if (check.report && check.report->speed) {
    text += "; a step of a model with 500 000 parameters waits " +
            print("%.1f ms", check.report->speed->exchange_ms) + " for its exchange";
  }
  return text;
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
  if (check.report && check.report->speed)
    text += "\n" + speed_table(check.report->communicator, *check.report->speed, terminal);
  const std::vector<std::string> problems = check.problems();
  text +=
      "\n" + sentences("bad", problems, terminal) + sentences("doubtful", check.doubts(), terminal);
  return problems.empty() ? text + paragraph(verdict(check), terminal) : text;
}

nlohmann::json group_check_json(const launch::GroupCheck& check) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const launch::GroupCheck::Host& host : check.hosts) {
    nlohmann::json one = host.facts.json();
    one["number"] = host.number;
    one["first_rank"] = host.first_rank;
    one["processes"] = host.processes;
    one["address"] = host.address;
    hosts.push_back(std::move(one));
  }
  nlohmann::json links = nlohmann::json::array();
  for (const launch::GroupCheck::Link& link : check.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"milliseconds",
                      link.milliseconds ? nlohmann::json(*link.milliseconds) : nlohmann::json()}});
  }
  nlohmann::json value = check.report ? check.report->json() : nlohmann::json::object();
  value["hosts"] = std::move(hosts);
  value["links"] = std::move(links);
  value["problems"] = check.problems();
  value["doubts"] = check.doubts();
  return value;
}

}  // namespace treadle::cli
