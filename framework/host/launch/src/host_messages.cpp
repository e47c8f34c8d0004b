#include "host_messages.h"

namespace treadle::launch::message {

nlohmann::json json_of(const Hello& hello) {
  return {{"protocol", kProtocol},
          {"host", hello.host},
          {"hosts", hello.hosts},
          {"processes", hello.processes},
          {"facts", hello.facts.json()}};
}

Hello hello_of(const nlohmann::json& value) {
  Hello hello;
  value.at("host").get_to(hello.host);
  value.at("hosts").get_to(hello.hosts);
  value.at("processes").get_to(hello.processes);
  hello.facts = HostFacts::from(value.at("facts"));
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
