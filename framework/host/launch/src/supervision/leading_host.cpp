#include "supervision/leading_host.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/version.h>

namespace treadle::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLostCode = static_cast<int>(ErrorKind::kCommunication);
constexpr std::size_t kMostStrangers = 100;

}  // namespace

LeadingHost::LeadingHost(Settings settings)
    : settings_(std::move(settings)), listener_(listen_at(settings_.at)) {}

std::string LeadingHost::gather(GroupWatch& watch) {
  constexpr int kLookMs = 200;
  const auto end = Clock::now() + settings_.timeout;
  const auto awaited = static_cast<std::size_t>(settings_.hosts - 1);
  // A check is for finding the reasons.
  const auto is_hopeless = [&] { return settings_.is_check && !refused_.empty(); };
  while (hosts_.size() < awaited && !watch.is_stopping() && Clock::now() < end && !is_hopeless()) {
    std::vector<pollfd> descriptors{pollfd{watch.descriptor(), POLLIN, 0}};
    add_descriptors(descriptors);
    ::poll(descriptors.data(), descriptors.size(), kLookMs);
    watch.take_signals();
    // First: one that was killed may be back already.
    drop_lost();
    admit();
  }
  std::string missing;
  for (std::int64_t number = 1; number < settings_.hosts; ++number) {
    if (hosts_.contains(number))
      continue;
    missing += (missing.empty() ? "" : ", ") + name_of(number);
    if (const auto refused = refused_.find(number); refused != refused_.end())
      missing += " (refused: " + refused->second + ")";
  }
  return missing;
}

std::map<std::int64_t, message::Hello> LeadingHost::hosts() const {
  std::map<std::int64_t, message::Hello> found;
  for (const auto& [number, host] : hosts_)
    found.emplace(number, host.hello);
  return found;
}

void LeadingHost::start(const std::map<std::int64_t, message::Start>& starts) {
  outcomes_.clear();
  has_ended_ = has_stopped_ = false;
  for (const auto& [number, start] : starts) {
    Host& host = hosts_.at(number);
    host.is_running = true;
    host.socket.send({{message::kStart, message::json_of(start)}});
  }
}

std::map<std::int64_t, std::vector<message::Reached>> LeadingHost::probe(
    const std::vector<message::Target>& targets, std::chrono::milliseconds patience) {
  std::map<std::int64_t, std::vector<message::Reached>> results;
  for (auto& [number, host] : hosts_)
    host.socket.send({{message::kProbe, message::json_of(targets)}});
  for (auto& [number, host] : hosts_) {
    const auto answer = host.socket.await(patience);
    try {
      if (answer)
        results[number] = message::reached_of(answer->at(message::kProbed));
    } catch (const nlohmann::json::exception&) {
      host.socket.close();
    }
  }
  return results;
}

void LeadingHost::dismiss(int code) {
  for (auto& [number, host] : hosts_)
    host.socket.send({{message::kBye, code}});
}

void LeadingHost::add_descriptors(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({listener_.descriptor(), POLLIN, 0});
  for (const MessageSocket& stranger : strangers_)
    descriptors.push_back({stranger.descriptor(), POLLIN, 0});
  for (const auto& [number, host] : hosts_)
    descriptors.push_back({host.socket.descriptor(), POLLIN, 0});
}

void LeadingHost::exchange(RankGroup& group) {
  last_step_ = group.last_step_words();
  for (auto& [number, host] : hosts_)
    hear(number, host, group);
  drop_lost();
  admit();
  const bool has_failed =
      group.is_ending() || std::any_of(outcomes_.begin(), outcomes_.end(),
                                       [](const auto& one) { return !one.second.message.empty(); });
  if (has_failed && !has_ended_) {
    has_ended_ = true;
    group.end();
    tell_running(message::kEnd);
  }
  if (group.is_stopping() && !has_stopped_) {
    has_stopped_ = true;
    tell_running(message::kStop);
  }
}

bool LeadingHost::are_over() const {
  return std::none_of(hosts_.begin(), hosts_.end(),
                      [](const auto& host) { return host.second.is_running; });
}

void LeadingHost::admit() {
  while (true) {
    Socket socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open())
      break;
    if (strangers_.size() < kMostStrangers)
      strangers_.emplace_back(std::move(socket), settings_.timeout);
  }
  strangers_.remove_if([&](MessageSocket& stranger) {
    const auto message = stranger.next();
    if (message && !admit(stranger, *message))
      stranger.close();
    return !stranger.is_open();
  });
}

/// Whether the connection may stay; an admitted one has moved away.
bool LeadingHost::admit(MessageSocket& stranger, const nlohmann::json& message) {
  message::Hello hello;
  try {
    const nlohmann::json& value = message.at(message::kHello);
    if (value.at("protocol") != message::kProtocol)
      return false;
    hello = message::hello_of(value);
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  if (const std::string objection = objection_to(hello); !objection.empty()) {
    stranger.send({{message::kRefused, objection}});
    if (hello.host >= 1 && hello.host < settings_.hosts && !hosts_.contains(hello.host)) {
      names_[hello.host] = plain_text(hello.facts.name);
      refused_[hello.host] = plain_text(objection);
    }
    return false;
  }
  stranger.send({{message::kWelcome, message::kProtocol}});
  names_[hello.host] = plain_text(hello.facts.name);
  refused_.erase(hello.host);
  hosts_.emplace(hello.host, Host{std::move(stranger), std::move(hello)});
  return true;
}

std::string LeadingHost::objection_to(const message::Hello& hello) const {
  if (hello.facts.version != treadle::version()) {
    return "host 0 has Treadle " + std::string(treadle::version()) + ", this one has " +
           hello.facts.version + "; install the same version on all hosts";
  }
  if (hello.hosts != settings_.hosts) {
    return "host 0 was started with --hosts " + std::to_string(settings_.hosts) +
           ", this one with --hosts " + std::to_string(hello.hosts) + "; give all the same";
  }
  if (hello.is_check != settings_.is_check)
    return "one of the launches has --check, the other has not; give it to all or to none";
  if (hello.host < 1 || hello.host >= settings_.hosts || hello.processes < 1)
    return "--host " + std::to_string(hello.host) + " is no host of this group";
  if (hosts_.contains(hello.host)) {
    return "another launch is " + name_of(hello.host) + " of this group; give each its own --host";
  }
  return {};
}

void LeadingHost::hear(std::int64_t number, Host& host, RankGroup& group) {
  while (const auto message = host.socket.next()) {
    try {
      if (message->contains(message::kStop))
        group.ask_to_stop();
      const bool is_over = message->contains(message::kOver);
      if (!is_over && !message->contains(message::kFailed))
        continue;
      GroupOutcome outcome =
          message::outcome_of(message->at(is_over ? message::kOver : message::kFailed));
      host.is_running = host.is_running && !is_over;
      // A host may explain its failure better at its end.
      const auto known = std::find_if(outcomes_.begin(), outcomes_.end(),
                                      [&](const auto& one) { return one.first == number; });
      if (known != outcomes_.end()) {
        known->second = std::move(outcome);
      } else if (outcome.code != 0) {
        outcomes_.emplace_back(number, std::move(outcome));
      }
    } catch (const nlohmann::json::exception&) {
      host.socket.close();
    }
  }
}

void LeadingHost::drop_lost() {
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    host->second.socket.receive();
    if (host->second.socket.is_open()) {
      ++host;
      continue;
    }
    if (host->second.is_running) {
      GroupOutcome outcome;
      outcome.code = kLostCode;
      outcome.is_lost = true;
      outcome.message = name_of(host->first) + " is gone" + last_step_ +
                        ": its launch was killed, or its network is down";
      outcomes_.emplace_back(host->first, std::move(outcome));
    }
    host = hosts_.erase(host);
  }
}

void LeadingHost::tell_running(const char* word) {
  for (auto& [number, host] : hosts_) {
    if (host.is_running)
      host.socket.send({{word, true}});
  }
}

std::string missing_text(const LaunchPlan& plan, const std::string& missing) {
  return "not all hosts have come to " + plan.at.text() + " in time: " + missing +
         " did not; start \"workflow-runner launch\" there with the same --hosts and --at, or wait "
         "longer: --timeout 5min";
}

std::string LeadingHost::name_of(std::int64_t number) const {
  const auto name = names_.find(number);
  return "host " + std::to_string(number) + (name == names_.end() ? "" : " (" + name->second + ")");
}

}  // namespace treadle::launch
