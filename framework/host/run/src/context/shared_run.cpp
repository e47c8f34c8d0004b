#include "context/shared_run.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/system/host_name.h>
#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/run/shared_conditions.h>

#include "runtime/run_record.h"

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// Those of another process are made there, or nobody needs them.
const std::set<fs::path> kNotSent = {"report.html", "events.jsonl", "tables", "model.safetensors"};

/// The text of rank 0, in all processes.
std::string said_by_first(Communicator& communicator, std::string text) {
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

/// The text of each rank.
std::vector<std::string> said_by_all(Communicator& communicator, const std::string& text) {
  std::vector<std::string> all;
  for (std::int64_t rank = 0; rank < communicator.world_size(); ++rank) {
    std::string said = rank == communicator.rank() ? text : std::string();
    std::uint64_t size = said.size();
    communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), rank);
    said.resize(size);
    communicator.broadcast(std::as_writable_bytes(std::span(said)), rank);
    all.push_back(std::move(said));
  }
  return all;
}

/// Names of hosts may be any bytes.
std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(stream)), {});
  if (!stream)
    throw StorageError(file.string() +
                       ": cannot be read, so it cannot be sent to the processes "
                       "that train with this one");
  return content;
}

void write(const fs::path& file, const std::string& content) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream stream(file, std::ios::binary);
  stream << content;
  stream.flush();
  if (!stream) {
    throw StorageError(file.string() +
                       ": cannot be written, as a copy of a file of the run; make "
                       "room or permit writing");
  }
}

/// Relative to the folder, sorted.
std::vector<std::string> files_to_send(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path file = entry.path().lexically_relative(folder);
    if (entry.is_regular_file() && kNotSent.count(*file.begin()) == 0)
      files.push_back(file.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void expect_same_conditions(Communicator& communicator, const RunConditions& conditions,
                            bool allow_differences,
                            const std::function<void(const std::string&)>& note) {
  const nlohmann::json mine{{"environment", conditions.environment()},
                            {"document", conditions.document()}};
  const std::vector<std::string> all = said_by_all(communicator, mine.dump());
  const nlohmann::json first = nlohmann::json::parse(all.front());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const nlohmann::json its = nlohmann::json::parse(all[rank]);
    const std::vector<std::string> found =
        shared_differences(first, its, static_cast<std::int64_t>(rank));
    if (found.empty())
      continue;
    std::string text;
    for (const std::string& one : found)
      text += (text.empty() ? "" : "; ") + one;
    if (!allow_differences) {
      throw TrainingError(
          "the processes of this run would train under different conditions: " + text +
          "; their results would not be those of one process. Start the same "
          "program with the same document and data everywhere");
    }
    note("trains under different conditions: " + text);
  }
}

std::vector<std::string> hosts_by_rank(Communicator& communicator) {
  return said_by_all(communicator, host_name());
}

std::string group_text(const std::vector<std::string>& hosts) {
  std::string text;
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t last = first;
    while (last + 1 < hosts.size() && hosts[last + 1] == hosts[first])
      ++last;
    text += (text.empty() ? "" : ", ") +
            (last == first ? "rank " + std::to_string(first)
                           : "ranks " + std::to_string(first) + "-" + std::to_string(last)) +
            " on " + plain_text(hosts[first]);
    first = last + 1;
  }
  return std::to_string(hosts.size()) + " processes train together: " + text;
}

std::vector<RankTime> times_by_rank(Communicator& communicator, const Timeline& timeline) {
  RankTime own;
  own.host = host_name();
  own.exchange_seconds = timeline.seconds(Phase::kExchange);
  const double trained = timeline.seconds_passed() - timeline.seconds(Phase::kLoading);
  own.waiting_share = trained > 0 ? std::min(1.0, own.exchange_seconds / trained) : 0.0;
  std::vector<RankTime> times;
  try {
    const nlohmann::json mine{own.host, own.exchange_seconds, own.waiting_share};
    for (const std::string& said : said_by_all(communicator, text_of(mine))) {
      const nlohmann::json its = nlohmann::json::parse(said);
      times.push_back(
          {its.at(0).get<std::string>(), its.at(1).get<double>(), its.at(2).get<double>()});
    }
  } catch (const CommunicationError&) {
    return {};
  }
  return times;
}

RunFolder open_together(const fs::path& path, const RunOptions& options) {
  Communicator* const communicator = options.communicator;
  if (communicator == nullptr)
    return RunFolder::open(path);
  if (communicator->rank() == 0) {
    RunFolder folder = RunFolder::open(path);
    const std::vector<std::string> files = files_to_send(folder.path());
    said_by_first(*communicator, nlohmann::json(files).dump());
    for (const std::string& file : files)
      said_by_first(*communicator, content_of(folder.path() / file));
    return folder;
  }
  const fs::path copy = options.output / "run";
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  for (const nlohmann::json& file : nlohmann::json::parse(said_by_first(*communicator, "")))
    write(copy / file.get<std::string>(), said_by_first(*communicator, ""));
  return RunFolder::open(copy);
}

}  // namespace treadle::internal

namespace treadle {

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
  for (const internal::DocumentChange& change :
       internal::document_changes(first.at("document"), its.at("document")))
    found.push_back("of rank 0, the document's " + change.text + " in " + name);
  return found;
}

}  // namespace treadle
