#include <treadle/host/launch/supervisor.h>

#include <memory>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>

#include "processes/group_watch.h"
#include "processes/signal_queue.h"
#include "supervision/following_host.h"
#include "supervision/generation_run.h"
#include "supervision/generations.h"
#include "supervision/leading_host.h"

namespace treadle::launch {
namespace {

constexpr int kStopCode = static_cast<int>(ErrorKind::kInterrupted);

std::string restart_text(const Generations& generations, std::int64_t restarts,
                         std::int64_t processes) {
  return "restart " + std::to_string(generations.generation() + 1) + " of " +
         std::to_string(restarts) + ", with " + std::to_string(processes) +
         (processes == 1 ? " process" : " processes") +
         (generations.run().empty()
              ? ""
              : ", from the last checkpoint of " + shown_path(generations.run()));
}

}  // namespace

Supervisor::Supervisor(LaunchPlan plan, std::function<void(const std::string&)> announce)
    : plan_(std::move(plan)), announce_(std::move(announce)) {
  TREADLE_EXPECTS(!plan_.command.empty() && plan_.processes >= 1, "a launch starts something");
  TREADLE_EXPECTS(plan_.host >= 0 && plan_.host < plan_.hosts, "this host is one of the group");
}

int Supervisor::run() {
  return plan_.host == 0 ? lead() : follow();
}

int Supervisor::lead() {
  SignalQueue signals;
  GroupWatch watch(signals);
  std::unique_ptr<LeadingHost> others;
  if (plan_.hosts > 1)
    others =
        std::make_unique<LeadingHost>(LeadingHost::Settings{plan_.at, plan_.hosts, plan_.timeout});
  Generations generations(plan_);
  int code = kStopCode;
  for (bool goes_on = true; goes_on;) {
    const std::string missing = others ? others->gather(watch) : "";
    generations.set_hosts(processes_of(plan_, others.get()));
    if (watch.is_stopping()) {
      code = kStopCode;
      break;
    }
    const bool are_enough = generations.generation() >= 0 && plan_.least_processes > 0 &&
                            generations.world_size() >= plan_.least_processes;
    if (!missing.empty() && !are_enough) {
      others->dismiss(static_cast<int>(ErrorKind::kCommunication));
      throw CommunicationError(missing_text(plan_, missing));
    }
    if (generations.generation() >= 0)
      announce_(restart_text(generations, plan_.restarts, generations.world_size()));
    const auto [host, decision] = lead_generation(plan_, generations, watch, others.get());
    code = decision.code;
    if (!decision.message.empty() && !decision.is_explained)
      announce_(report_of(decision));
    goes_on = generations.end(host, decision) && !watch.is_stopping();
  }
  if (others)
    others->dismiss(code);
  return code;
}

int Supervisor::follow() {
  SignalQueue signals;
  GroupWatch watch(signals);
  FollowingHost leader(plan_.at,
                       {plan_.host, plan_.hosts, plan_.processes, HostFacts::of_this_host()},
                       plan_.timeout);
  return follow_orders(plan_, leader, watch, announce_);
}

}  // namespace treadle::launch
