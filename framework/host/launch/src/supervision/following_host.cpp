#include "supervision/following_host.h"

#include <poll.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::launch {

FollowingHost::FollowingHost(const Endpoint& at, const message::Hello& hello,
                             std::chrono::milliseconds timeout)
    : at_(at.text()), leader_(MessageSocket::to(at, timeout, timeout)) {
  leader_.send({{message::kHello, message::json_of(hello)}});
  const auto answer = leader_.await(timeout);
  if (answer && answer->contains(message::kWelcome))
    return;
  if (answer && answer->contains(message::kRefused) && answer->at(message::kRefused).is_string()) {
    throw CommunicationError(at_ + ": host 0 refuses this host: " +
                             plain_text(answer->at(message::kRefused).get<std::string>()));
  }
  throw CommunicationError(at_ +
                           ": another program listens there, or a launch of another version of "
                           "Treadle; choose a port that is free on host 0 for --at");
}

FollowingHost::Order FollowingHost::await_order(GroupWatch& watch) {
  constexpr int kLookMs = 200;
  has_failed_ = has_stopped_ = false;
  while (true) {
    if (const auto message = leader_.next()) {
      try {
        if (message->contains(message::kStart))
          return {message::start_of(message->at(message::kStart))};
        if (message->contains(message::kProbe))
          return {std::nullopt, message::targets_of(message->at(message::kProbe))};
        if (message->contains(message::kBye))
          return {std::nullopt, {}, message->at(message::kBye).get<int>()};
        continue;  // about a generation that is over here
      } catch (const nlohmann::json::exception&) {
        leader_.close();
      }
    }
    if (!leader_.is_open())
      throw CommunicationError(at_ + ": host 0 is gone" + last_step_ +
                               ": its launch was killed, or its network is down; start the launch "
                               "of all hosts again");
    std::vector<pollfd> descriptors{pollfd{watch.descriptor(), POLLIN, 0}};
    add_descriptors(descriptors);
    ::poll(descriptors.data(), descriptors.size(), kLookMs);
    watch.take_signals();
    if (watch.is_stopping())
      report_stop();
  }
}

void FollowingHost::report(const GroupOutcome& outcome) {
  leader_.send({{message::kOver, message::json_of(outcome)}});
}

void FollowingHost::report(const std::vector<message::Reached>& reached) {
  leader_.send({{message::kProbed, message::json_of(reached)}});
}

void FollowingHost::report_stop() {
  if (!has_stopped_)
    leader_.send({{message::kStop, true}});
  has_stopped_ = true;
}

void FollowingHost::add_descriptors(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({leader_.descriptor(), POLLIN, 0});
}

void FollowingHost::exchange(RankGroup& group) {
  last_step_ = group.last_step_words();
  while (const auto message = leader_.next()) {
    if (message->contains(message::kEnd))
      has_failed_ = true;
    if (message->contains(message::kStop)) {
      has_stopped_ = true;
      group.ask_to_stop();
    }
  }
  if (has_failed_ || !leader_.is_open())
    group.end();
  if (group.is_ending() && !has_failed_) {
    has_failed_ = true;
    leader_.send({{message::kFailed, message::json_of(group.outcome_so_far())}});
  }
  if (group.is_stopping())
    report_stop();
}

}  // namespace treadle::launch
