#include <treadle/host/launch/group_report.h>

namespace treadle::launch {

GroupReport GroupReport::from(const nlohmann::json& value) {
  GroupReport report;
  value.at("communicator").get_to(report.communicator);
  for (const nlohmann::json& one : value.at("ranks")) {
    Rank& rank = report.ranks.emplace_back();
    one.at("host").get_to(rank.host);
    one.at("address").get_to(rank.address);
    one.at("threads").get_to(rank.threads);
    one.at("cpu_capability").get_to(rank.cpu_capability);
    one.at("treadle").get_to(rank.treadle);
    one.at("libtorch").get_to(rank.libtorch);
    one.at("blas").get_to(rank.blas);
  }
  if (const nlohmann::json& its = value.at("speed"); !its.is_null()) {
    Speed& speed = report.speed.emplace();
    its.at("latency_ms").get_to(speed.latency_ms);
    its.at("bytes_per_second").get_to(speed.bytes_per_second);
    its.at("exchange_ms").get_to(speed.exchange_ms);
  }
  value.at("problems").get_to(report.problems);
  return report;
}

nlohmann::json GroupReport::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Rank& rank : ranks) {
    list.push_back({{"host", rank.host},
                    {"address", rank.address},
                    {"threads", rank.threads},
                    {"cpu_capability", rank.cpu_capability},
                    {"treadle", rank.treadle},
                    {"libtorch", rank.libtorch},
                    {"blas", rank.blas}});
  }
  nlohmann::json measured;
  if (speed) {
    measured = {{"latency_ms", speed->latency_ms},
                {"bytes_per_second", speed->bytes_per_second},
                {"exchange_ms", speed->exchange_ms},
                {"exchanged_floats", kExchangedFloats}};
  }
  return {{"communicator", communicator},
          {"ranks", std::move(list)},
          {"speed", std::move(measured)},
          {"problems", problems}};
}

}  // namespace treadle::launch
