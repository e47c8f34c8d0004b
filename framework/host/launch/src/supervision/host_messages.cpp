#include "supervision/host_messages.h"

#include <treadle/base/error.h>

#include "hosts/message_socket.h"

namespace treadle::launch::message {

nlohmann::json json_of(const Hello& hello) {
  return {{"protocol", kProtocol},
          {"host", hello.host},
          {"hosts", hello.hosts},
          {"processes", hello.processes},
          {"facts", hello.facts.json()},
          {"is_check", hello.is_check},
          {"address", hello.listens_at.host},
          {"port", hello.listens_at.port}};
}

Hello hello_of(const nlohmann::json& value) {
  Hello hello;
  value.at("host").get_to(hello.host);
  value.at("hosts").get_to(hello.hosts);
  value.at("processes").get_to(hello.processes);
  hello.facts = HostFacts::from(value.at("facts"));
  value.at("is_check").get_to(hello.is_check);
  value.at("address").get_to(hello.listens_at.host);
  value.at("port").get_to(hello.listens_at.port);
  return hello;
}

nlohmann::json json_of(const Start& start) {
  return {{"first_rank", start.first_rank}, {"processes", start.processes},
          {"world_size", start.world_size}, {"job_id", start.job_id},
          {"generation", start.generation}, {"token", start.token},
          {"address", start.address},       {"run", start.run}};
}

Start start_of(const nlohmann::json& value) {
  Start start;
  value.at("first_rank").get_to(start.first_rank);
  value.at("processes").get_to(start.processes);
  value.at("world_size").get_to(start.world_size);
  value.at("job_id").get_to(start.job_id);
  value.at("generation").get_to(start.generation);
  value.at("token").get_to(start.token);
  value.at("address").get_to(start.address);
  value.at("run").get_to(start.run);
  return start;
}

nlohmann::json json_of(const std::vector<Target>& targets) {
  nlohmann::json list = nlohmann::json::array();
  for (const Target& target : targets) {
    list.push_back(
        {{"host", target.host}, {"address", target.endpoint.host}, {"port", target.endpoint.port}});
  }
  return list;
}

std::vector<Target> targets_of(const nlohmann::json& value) {
  std::vector<Target> targets;
  for (const nlohmann::json& one : value) {
    targets.push_back(
        {one.at("host").get<std::int64_t>(),
         {one.at("address").get<std::string>(), one.at("port").get<std::uint16_t>()}});
  }
  return targets;
}

nlohmann::json json_of(const std::vector<Reached>& reached) {
  nlohmann::json list = nlohmann::json::array();
  for (const Reached& one : reached) {
    list.push_back({{"host", one.host},
                    {"milliseconds",
                     one.milliseconds ? nlohmann::json(*one.milliseconds) : nlohmann::json()}});
  }
  return list;
}

std::vector<Reached> reached_of(const nlohmann::json& value) {
  std::vector<Reached> reached;
  for (const nlohmann::json& one : value) {
    const nlohmann::json& time = one.at("milliseconds");
    reached.push_back({one.at("host").get<std::int64_t>(),
                       time.is_null() ? std::optional<double>() : time.get<double>()});
  }
  return reached;
}

std::vector<Reached> reach(const std::vector<Target>& targets, std::int64_t own) {
  constexpr std::chrono::milliseconds kPatience{3000};
  std::vector<Reached> reached;
  for (const Target& target : targets) {
    if (target.host == own)
      continue;
    reached.push_back({target.host});
    const auto begin = std::chrono::steady_clock::now();
    try {
      MessageSocket::to(target.endpoint, kPatience, kPatience);
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - begin;
      reached.back().milliseconds = time.count();
    } catch (const CommunicationError&) {
      // Nothing: it was not reached.
    }
  }
  return reached;
}

nlohmann::json json_of(const GroupOutcome& outcome) {
  return {{"code", outcome.code},
          {"is_lost", outcome.is_lost},
          {"is_cause", outcome.is_cause},
          {"message", outcome.message},
          {"last_lines", outcome.last_lines}};
}

GroupOutcome outcome_of(const nlohmann::json& value) {
  GroupOutcome outcome;
  value.at("code").get_to(outcome.code);
  value.at("is_lost").get_to(outcome.is_lost);
  value.at("is_cause").get_to(outcome.is_cause);
  value.at("message").get_to(outcome.message);
  value.at("last_lines").get_to(outcome.last_lines);
  return outcome;
}

}  // namespace treadle::launch::message
