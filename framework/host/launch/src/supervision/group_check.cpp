#include <treadle/host/launch/group_check.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <treadle/base/error.h>

#include "processes/signal_queue.h"
#include "supervision/following_host.h"
#include "supervision/generation_run.h"
#include "supervision/leading_host.h"

namespace treadle::launch {
namespace {

constexpr int kUnreached = static_cast<int>(ErrorKind::kCommunication);
/// Each of two processes sends 2 MB: 100 MB/s.
constexpr double kSlowExchangeMs = 20;
constexpr double kSlowLatencyMs = 1;

std::string milliseconds_text(double time) {
  char text[32];
  std::snprintf(text, sizeof text, time < 10 ? "%.2g ms" : "%.0f ms", time);
  return text;
}

std::string words_of(const GroupCheck::Host& host) {
  return "host " + std::to_string(host.number) + " (" + host.facts.name + ")";
}

/// Where the hosts can connect to each other.
std::vector<message::Target> targets_of(const std::map<std::int64_t, message::Hello>& hosts) {
  std::vector<message::Target> targets;
  for (const auto& [number, hello] : hosts)
    targets.push_back({number, hello.listens_at});
  return targets;
}

void add_links(GroupCheck& check, std::int64_t from, const std::vector<message::Reached>& reached) {
  for (const message::Reached& one : reached)
    check.links.push_back({from, one.host, one.milliseconds});
}

/// The hosts of the group: of a group of several, once they have tried to connect to each other.
GroupCheck meet(const LaunchPlan& plan, const message::Hello& own, GroupWatch& watch,
                LeadingHost* others) {
  GroupCheck check;
  std::map<std::int64_t, message::Hello> hosts{{0, own}};
  if (others != nullptr) {
    const std::string missing = others->gather(watch);
    if (watch.is_stopping())
      throw Interrupted("stopped before all hosts had come");
    hosts.merge(others->hosts());
    if (!missing.empty()) {
      others->dismiss(kUnreached);
      throw CommunicationError(missing_text(plan, missing));
    }
    add_links(check, 0, message::reach(targets_of(hosts), 0));
    const auto results = others->probe(targets_of(hosts), plan.timeout);
    for (const auto& [number, reached] : results)
      add_links(check, number, reached);
    for (const auto& [number, hello] : hosts) {
      // One that does not answer reaches nobody.
      for (const auto& [other, unused] : hosts) {
        if (number != 0 && number != other && !results.contains(number))
          check.links.push_back({number, other});
      }
    }
  }
  std::int64_t rank = 0;
  for (const auto& [number, hello] : hosts) {
    check.hosts.push_back({number, rank, hello.processes, hello.listens_at.host, hello.facts});
    rank += hello.processes;
  }
  return check;
}

CheckEnd lead_check(const LaunchPlan& plan, const message::Hello& own,
                    const std::function<void(const std::string&)>& announce) {
  SignalQueue signals;
  GroupWatch watch(signals);
  std::optional<LeadingHost> others;
  if (plan.hosts > 1)
    others.emplace(LeadingHost::Settings{plan.at, plan.hosts, plan.timeout, /*is_check=*/true});
  LeadingHost* const led = others ? &*others : nullptr;
  GroupCheck check = meet(plan, own, watch, led);
  int code = check.problems().empty() ? 0 : kUnreached;
  if (code == 0) {
    Generations generations(plan);
    generations.set_hosts(processes_of(plan, led));
    const GroupOutcome outcome = lead_generation(plan, generations, watch, led).second;
    code = outcome.code;
    check.failure = outcome.message + (outcome.is_explained ? "; its message is above" : "");
    if (!outcome.message.empty() && !outcome.is_explained)
      announce(report_of(outcome));
  }
  if (led != nullptr)
    led->dismiss(code);
  return {std::move(check), code};
}

}  // namespace

void GroupCheck::add(GroupReport its) {
  report = std::move(its);
  if (!report->problems.empty())
    failure.clear();
}

const GroupReport::Rank* GroupCheck::rank_of(const Host& host) const {
  const auto rank = static_cast<std::size_t>(host.first_rank);
  return report && rank < report->ranks.size() ? &report->ranks[rank] : nullptr;
}

std::vector<std::string> GroupCheck::problems() const {
  std::vector<std::string> sentences;
  for (const Link& link : links) {
    const auto host = [&](std::int64_t number) {
      return *std::find_if(hosts.begin(), hosts.end(),
                           [&](const Host& one) { return one.number == number; });
    };
    if (!link.milliseconds) {
      sentences.push_back(words_of(host(link.from)) + " does not reach " + words_of(host(link.to)) +
                          " at " + host(link.to).address +
                          "; let the firewall between them pass all ports");
    }
  }
  if (report)
    sentences.insert(sentences.end(), report->problems.begin(), report->problems.end());
  if (!failure.empty())
    sentences.push_back(failure);
  return sentences;
}

std::vector<std::string> GroupCheck::doubts() const {
  std::vector<std::string> sentences;
  for (const Host& host : hosts) {
    if (host.processes > host.facts.cores) {
      sentences.push_back(words_of(host) + " has " + std::to_string(host.facts.cores) +
                          (host.facts.cores == 1 ? " core" : " cores") + " for " +
                          std::to_string(host.processes) +
                          " processes: start as many as cores at most");
    }
  }
  if (!report || !report->speed)
    return sentences;
  if (report->speed->latency_ms > kSlowLatencyMs) {
    sentences.push_back("a message takes " + milliseconds_text(report->speed->latency_ms) +
                        ", and each step waits for several: the hosts are far from each other, or "
                        "their cores have other work");
  }
  if (report->speed->exchange_ms > kSlowExchangeMs) {
    sentences.push_back("an exchange of " + std::to_string(GroupReport::kExchangedFloats) +
                        " floats takes " + milliseconds_text(report->speed->exchange_ms) +
                        ", more than over Gigabit Ethernet, and each step waits for one: several "
                        "processes pay only for models whose steps take longer");
  }
  return sentences;
}

CheckEnd check_group(LaunchPlan plan, const std::function<void(const std::string&)>& announce) {
  TREADLE_EXPECTS(!plan.command.empty() && plan.processes >= 1, "a check starts processes");
  plan.restarts = 0;
  message::Hello own{plan.host, plan.hosts, plan.processes, HostFacts::of_this_host()};
  own.is_check = true;
  // Nobody accepts: the system makes the connection.
  Socket listener;
  if (plan.hosts > 1) {
    listener = listen_at({});
    own.listens_at = {own_address_towards(plan.at), port_of(listener)};
  }
  if (plan.host == 0)
    return lead_check(plan, own, announce);
  SignalQueue signals;
  GroupWatch watch(signals);
  FollowingHost leader(plan.at, own, plan.timeout);
  return {std::nullopt, follow_orders(plan, leader, watch, announce)};
}

}  // namespace treadle::launch
