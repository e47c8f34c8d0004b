#include <treadle/host/run/shared_conditions.h>

#include <cstddef>
#include <span>

#include <treadle/base/error.h>
#include <treadle/engine/shard_group.h>
#include <treadle/host/catalog/plugin_lock.h>

#include "context/run_conditions.h"
#include "runtime/run_record.h"

namespace treadle {

std::vector<nlohmann::json> from_all_ranks(Communicator& communicator, const nlohmann::json& mine) {
  // Names of hosts and paths may be any bytes.
  const std::string own = mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::vector<nlohmann::json> all;
  for (std::int64_t rank = 0; rank < communicator.world_size(); ++rank) {
    std::string text = rank == communicator.rank() ? own : std::string();
    std::uint64_t size = text.size();
    communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), rank);
    text.resize(size);
    communicator.broadcast(std::as_writable_bytes(std::span(text)), rank);
    all.push_back(nlohmann::json::parse(text));
  }
  return all;
}

nlohmann::json shared_conditions(const Runtime& runtime, const nlohmann::json& resolved,
                                 const std::string& communicator) {
  nlohmann::json slots = resolved.is_null() ? nlohmann::json::object() : resolved;
  slots["communicator"] = {{"use", communicator}};
  const auto plugins = used_plugins(runtime.catalog(), runtime.schemas(), slots);
  return {
      {"environment", internal::program_record(PluginLock::of(plugins))},
      {"document", resolved.is_null() ? nlohmann::json()
                                      : internal::document_identity(runtime.registry(), resolved)}};
}

std::vector<std::string> shared_differences(const nlohmann::json& first, const nlohmann::json& its,
                                            std::int64_t rank) {
  const std::string name = "rank " + std::to_string(rank);
  std::vector<std::string> found = internal::differences(
      first.at("environment"), its.at("environment"),
      {" is ", " in rank 0 and ", " in " + name, " is used in " + name + " and not in rank 0"});
  for (std::string& sentence : found) {
    if (sentence.starts_with("cpu_capability "))
      sentence += " (set ATEN_CPU_CAPABILITY to the lesser of them on all hosts)";
  }
  if (first.at("document").is_null() != its.at("document").is_null()) {
    found.push_back("a document is given to " +
                    (first.at("document").is_null() ? name + " and none to rank 0"
                                                    : "rank 0 and none to " + name) +
                    ": give the same command to all");
    return found;
  }
  for (const internal::DocumentChange& change :
       internal::document_changes(first.at("document"), its.at("document")))
    found.push_back("of rank 0, the document's " + change.text + " in " + name);
  return found;
}

void expect_shared_steps(const nlohmann::json& resolved) {
  constexpr const char* kRemedy =
      "; leave it out, or have them share trials: start no more of them than trials run at once "
      "(search.parallel)";
  const nlohmann::json search = resolved.value("search", nlohmann::json::object());
  if (search.contains(nlohmann::json::json_pointer("/budget/time"))) {
    throw UsageError(std::string("processes that share training steps cannot keep search.budget."
                                 "time, since each has its own clock") +
                     kRemedy);
  }
  if (search.contains("storage")) {
    throw UsageError(std::string("processes that share training steps cannot share a study as well "
                                 "(search.storage)") +
                     kRemedy);
  }
}

void expect_shareable(Communicator& communicator, const nlohmann::json& resolved) {
  const nlohmann::json& resources = resolved.at("resources");
  const nlohmann::json validation = resolved.value("validation", nlohmann::json::object());
  const bool may_divide_fits =
      resolved.contains("search") || validation.contains("folds") || validation.contains("outer");
  const std::string divide = resources.value("divide", "auto");
  if (divide == "fits" || (divide == "auto" && may_divide_fits))
    return;
  expect_shared_steps(resolved);
  if (const nlohmann::json& shards = resources.at("shards"); shards.is_number_integer())
    engine::ShardGroup(communicator, shards.get<std::size_t>());
}

}  // namespace treadle
