#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/launch/host_facts.h>

#include "rank_group.h"

/// The messages between supervisors: {"hello": …} and so on. Host 0 leads.
namespace treadle::launch::message {

/// Raised with every change of a message: supervisors of several versions do not mix.
inline constexpr int kProtocol = 1;

inline constexpr char kHello[] = "hello";      ///< to host 0, first: Hello
inline constexpr char kWelcome[] = "welcome";  ///< its answer
inline constexpr char kRefused[] = "refused";  ///< or this: a sentence
inline constexpr char kStart[] = "start";      ///< from host 0: a generation, Start
inline constexpr char kFailed[] = "failed";    ///< to host 0: a process has
inline constexpr char kEnd[] = "end";          ///< from host 0: end the generation
inline constexpr char kStop[] = "stop";        ///< both ways: all are to stop
inline constexpr char kOver[] = "over";  ///< to host 0: all processes have ended, GroupOutcome
inline constexpr char kBye[] = "bye";    ///< from host 0: the exit code

struct Hello {
  std::int64_t host = 0;
  std::int64_t hosts = 1;
  std::int64_t processes = 1;
  HostFacts facts = {};
};
nlohmann::json json_of(const Hello& hello);

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

}  // namespace treadle::launch::message
