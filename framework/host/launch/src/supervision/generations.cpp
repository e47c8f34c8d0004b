#include "supervision/generations.h"

#include <algorithm>

#include "supervision/random_text.h"

namespace treadle::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kIdBytes = 8;
constexpr std::size_t kTokenBytes = 16;
/// A generation that loses a process so soon has lost it "at once".
constexpr std::chrono::seconds kAtOnce{10};

}  // namespace

Generations::Generations(const LaunchPlan& plan)
    : restarts_(plan.restarts),
      least_processes_(plan.least_processes),
      job_id_(random_text(kIdBytes)) {}

void Generations::set_hosts(const std::map<std::int64_t, std::int64_t>& processes) {
  processes_.clear();
  for (const auto& [host, wanted] : processes)
    processes_[host] = std::max<std::int64_t>(1, wanted - fewer_[host]);
}

std::map<std::int64_t, message::Start> Generations::begin(const std::string& address) {
  ++generation_;
  begin_ = Clock::now();
  message::Start start;
  start.world_size = world_size();
  start.job_id = job_id_;
  start.generation = generation_;
  start.token = random_text(kTokenBytes);
  start.address = address;
  start.run = run_.string();
  std::map<std::int64_t, message::Start> starts;
  for (const auto& [host, processes] : processes_) {
    start.processes = processes;
    starts[host] = start;
    start.first_rank += processes;
  }
  return starts;
}

bool Generations::end(std::int64_t host, const GroupOutcome& outcome) {
  if (!outcome.run.empty())
    run_ = outcome.run;
  if (!outcome.is_lost || generation_ >= restarts_)
    return false;
  // The first loss may be an accident; one at once after a restart is a host that has not enough
  // for all.
  const bool was_at_once = generation_ > 0 && Clock::now() - begin_ < kAtOnce;
  const auto its = processes_.find(host);
  if (was_at_once && least_processes_ > 0 && world_size() > least_processes_ &&
      its != processes_.end() && its->second > 1)
    ++fewer_[host];
  return true;
}

std::int64_t Generations::world_size() const {
  std::int64_t size = 0;
  for (const auto& [host, processes] : processes_)
    size += processes;
  return size;
}

}  // namespace treadle::launch
