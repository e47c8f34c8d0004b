#include <treadle/host/launch/group_check.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <treadle/base/error.h>

#include "processes/signal_queue.h"
#include "supervision/following_host.h"
#include "supervision/leading_host.h"

namespace treadle::launch {
namespace {

using std::chrono::milliseconds;

constexpr int kUnreached = static_cast<int>(ErrorKind::kCommunication);
constexpr milliseconds kPatience{3000};

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

CheckEnd lead_check(const LaunchPlan& plan, const message::Hello& own) {
  std::map<std::int64_t, message::Hello> hosts{{0, own}};
  GroupCheck check;
  if (plan.hosts > 1) {
    SignalQueue signals;
    GroupWatch watch(signals);
    LeadingHost others({plan.at, plan.hosts, plan.timeout, /*is_check=*/true});
    const std::string missing = others.gather(watch);
    if (watch.is_stopping())
      throw Interrupted("stopped before all hosts had come");
    hosts.merge(others.hosts());
    if (!missing.empty()) {
      others.dismiss(kUnreached);
      throw CommunicationError(missing_text(plan, missing));
    }
    add_links(check, 0, message::reach(targets_of(hosts), 0, kPatience));
    const auto results = others.probe(targets_of(hosts), plan.timeout);
    for (const auto& [number, reached] : results)
      add_links(check, number, reached);
    for (const auto& [number, hello] : hosts) {
      // One that does not answer reaches nobody.
      for (const auto& [other, unused] : hosts) {
        if (number != 0 && number != other && !results.contains(number))
          check.links.push_back({number, other});
      }
    }
    for (const auto& [number, hello] : hosts)
      check.hosts.push_back({number, hello.processes, hello.listens_at.host, hello.facts});
    others.dismiss(check.problems().empty() ? 0 : kUnreached);
  } else {
    check.hosts.push_back({0, own.processes, "", own.facts});
  }
  const int code = check.problems().empty() ? 0 : kUnreached;
  return {std::move(check), code};
}

}  // namespace

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
  return sentences;
}

std::vector<std::string> GroupCheck::doubts() const {
  std::vector<std::string> sentences;
  for (const Host& host : hosts) {
    const Host& first = hosts.front();
    if (host.facts.cpu_capability() != first.facts.cpu_capability()) {
      sentences.push_back(words_of(first) + " computes with " + first.facts.cpu_capability() +
                          ", " + words_of(host) + " with " + host.facts.cpu_capability() +
                          ": their bits differ; set ATEN_CPU_CAPABILITY to the lesser one on all");
    }
    if (host.processes > host.facts.cores) {
      sentences.push_back(words_of(host) + " has " + std::to_string(host.facts.cores) +
                          (host.facts.cores == 1 ? " core" : " cores") + " for " +
                          std::to_string(host.processes) +
                          " processes: start as many as cores at most");
    }
  }
  return sentences;
}

CheckEnd check_group(const LaunchPlan& plan) {
  message::Hello own{plan.host, plan.hosts, plan.processes, HostFacts::of_this_host()};
  own.is_check = true;
  // Nobody accepts: the system makes the connection.
  Socket listener;
  if (plan.hosts > 1) {
    listener = listen_at({});
    own.listens_at = {own_address_towards(plan.at), port_of(listener)};
  }
  if (plan.host == 0)
    return lead_check(plan, own);
  SignalQueue signals;
  GroupWatch watch(signals);
  FollowingHost leader(plan.at, own, plan.timeout);
  while (true) {
    const FollowingHost::Order order = leader.await_order(watch);
    if (order.targets.empty())
      return {std::nullopt, order.code};
    leader.report(message::reach(order.targets, plan.host, kPatience));
  }
}

}  // namespace treadle::launch
