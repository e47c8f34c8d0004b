#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/launch/addresses.h>
#include <treadle/host/launch/host_facts.h>

#include "processes/rank_group.h"

/// The messages between supervisors: {"hello": …} and so on. Host 0 leads.
namespace treadle::launch::message {

/// Raised with every change of a message: supervisors of several versions do not mix.
inline constexpr int kProtocol = 2;

inline constexpr char kHello[] = "hello";      ///< to host 0, first: Hello
inline constexpr char kWelcome[] = "welcome";  ///< its answer
inline constexpr char kRefused[] = "refused";  ///< or this: a sentence
inline constexpr char kStart[] = "start";      ///< from host 0: a generation, Start
inline constexpr char kFailed[] = "failed";    ///< to host 0: a process has
inline constexpr char kEnd[] = "end";          ///< from host 0: end the generation
inline constexpr char kStop[] = "stop";        ///< both ways: all are to stop
inline constexpr char kOver[] = "over";      ///< to host 0: all processes have ended, GroupOutcome
inline constexpr char kProbe[] = "probe";    ///< from host 0: connect to these, Target
inline constexpr char kProbed[] = "probed";  ///< to host 0: the result, Reached
inline constexpr char kBye[] = "bye";        ///< from host 0: the exit code

struct Hello {
  std::int64_t host = 0;
  std::int64_t hosts = 1;
  std::int64_t processes = 1;
  HostFacts facts = {};
  bool is_check = false;     ///< of `launch --check`
  Endpoint listens_at = {};  ///< for a check alone
};
nlohmann::json json_of(const Hello& hello);

/// A host that others are to connect to.
struct Target {
  std::int64_t host = 0;
  Endpoint endpoint = {};
};
struct Reached {
  std::int64_t host = 0;
  std::optional<double> milliseconds = {};  ///< nothing: it was not reached
};
nlohmann::json json_of(const std::vector<Target>& targets);
nlohmann::json json_of(const std::vector<Reached>& reached);
/// Connects to each, but the host `own`: for some seconds.
std::vector<Reached> reach(const std::vector<Target>& targets, std::int64_t own);

struct Start {
  std::int64_t first_rank = 0;
  std::int64_t processes = 1;
  std::int64_t world_size = 1;
  std::string job_id = {};
  std::int64_t generation = 0;
  std::string token = {};
  std::string address = {};
  std::string run = {};  ///< to resume; empty: begin anew
};
nlohmann::json json_of(const Start& start);
nlohmann::json json_of(const GroupOutcome& outcome);

// Of the same as a message has them. They throw nlohmann::json::exception for anything else.
Hello hello_of(const nlohmann::json& value);
Start start_of(const nlohmann::json& value);
GroupOutcome outcome_of(const nlohmann::json& value);
std::vector<Target> targets_of(const nlohmann::json& value);
std::vector<Reached> reached_of(const nlohmann::json& value);

}  // namespace treadle::launch::message
