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
#include <treadle/host/run/shared_conditions.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// Those of another process are made there, or nobody needs them.
const std::set<fs::path> kNotSent = {"report.html", "events.jsonl", "tables", "model.safetensors"};

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
std::vector<std::string> files_to_send(const fs::path& folder, const std::set<fs::path>& left_out) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path file = entry.path().lexically_relative(folder);
    const bool is_left_out = std::any_of(
        file.begin(), file.end(), [&](const fs::path& part) { return left_out.count(part) > 0; });
    if (entry.is_regular_file() && !is_left_out)
      files.push_back(file.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string said_by_first(Communicator& communicator, std::string text) {
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

bool any_says(Communicator* communicator, bool mine) {
  if (communicator == nullptr)
    return mine;
  const std::vector<nlohmann::json> all = from_all_ranks(*communicator, mine);
  return std::find(all.begin(), all.end(), true) != all.end();
}

void send_files(Communicator& communicator, const fs::path& folder,
                const std::set<fs::path>& left_out) {
  const bool is_sender = communicator.rank() == 0;
  const std::string listed =
      is_sender ? nlohmann::json(files_to_send(folder, left_out)).dump() : std::string();
  for (const nlohmann::json& file : nlohmann::json::parse(said_by_first(communicator, listed))) {
    const fs::path path = folder / file.get<std::string>();
    const std::string content =
        said_by_first(communicator, is_sender ? content_of(path) : std::string());
    if (!is_sender)
      write(path, content);
  }
}

void expect_same_conditions(Communicator& communicator, const RunConditions& conditions,
                            bool allow_differences,
                            const std::function<void(const std::string&)>& note) {
  const nlohmann::json mine{{"environment", conditions.environment()},
                            {"document", conditions.document()}};
  const std::vector<nlohmann::json> all = from_all_ranks(communicator, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<std::string> found =
        shared_differences(all.front(), all[rank], static_cast<std::int64_t>(rank));
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
  std::vector<std::string> hosts;
  for (const nlohmann::json& host : from_all_ranks(communicator, host_name()))
    hosts.push_back(host.get<std::string>());
  return hosts;
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

std::vector<RankTime> times_by_rank(Communicator& communicator, const TimeResult& own) {
  const auto spent = [&](const char* phase) {
    const auto found = own.phases.find(phase);
    return found == own.phases.end() ? 0.0 : found->second;
  };
  const double trained = own.seconds - spent("loading");
  const nlohmann::json mine{host_name(), spent("exchange"),
                            trained > 0 ? std::min(1.0, spent("exchange") / trained) : 0.0,
                            own.budget_used};
  std::vector<RankTime> times;
  try {
    for (const nlohmann::json& its : from_all_ranks(communicator, mine)) {
      times.push_back({its.at(0).get<std::string>(), its.at(1).get<double>(),
                       its.at(2).get<double>(), its.at(3).get<double>()});
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
    send_files(*communicator, folder.path(), kNotSent);
    return folder;
  }
  const fs::path copy = options.output / "run";
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  send_files(*communicator, copy, kNotSent);
  return RunFolder::open(copy);
}

}  // namespace treadle::internal
