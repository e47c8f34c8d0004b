#include "journal.h"

#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "scratch.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using storages::Journal;

constexpr Patience::Duration kAtOnce{0};
constexpr const char* kOurStudy = "a study that no stranger has";
constexpr const char* kOurWorker = "a worker that no stranger is";

Json json_of(const StoredResult& result) {
  return {result.sequence, result.job, result.worker, result.result};
}

/// All that processes that share the journal see in it.
Json content_of(Journal& journal) {
  Json content = Json::object();
  for (const std::string& study : journal.studies()) {
    Json& seen = content[study];
    seen["description"] = journal.description(study).value();
    seen["ended"] = journal.ended(study);
    Json& results = seen["results"] = Json::array();
    for (const StoredResult& result : journal.results(study, 0))
      results.push_back(json_of(result));
  }
  return content;
}

void promise_results(const Json& content) {
  for (const Json& study : content) {
    std::int64_t sequence = 0;
    std::set<std::int64_t> jobs;
    for (const Json& result : study.at("results")) {
      promise(result[0] == ++sequence, "results are numbered in their order");
      promise(result[1] >= 0 && jobs.insert(result[1].get<std::int64_t>()).second,
              "a job has one result");
    }
  }
}

/// A job of a study of ours, from its beginning to its result.
void work_on(Journal& journal) {
  journal.create(kOurStudy, {{"trials", 1}});
  promise(journal.claim(kOurStudy, 0, kOurWorker, 100) &&
              journal.renew(kOurStudy, 0, kOurWorker, 100) &&
              journal.finish(kOurStudy, 0, kOurWorker, 0.5),
          "a new job can be taken and ended");
  journal.end(kOurStudy, "by hand");
}

}  // namespace

void journal(std::string_view bytes) {
  static const Scratch scratch;
  const std::filesystem::path path = scratch.folder() / "studies.jsonl";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  Json content;
  try {
    Journal read(path, kAtOnce);
    content = content_of(read);
    promise_results(content);
    promise(content_of(read) == content, "what was read does not change");
    work_on(read);
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 2000 + 6 * bytes.size());
  }
  Journal again(path, kAtOnce);
  Json now = content_of(again);
  promise_results(now);
  promise(now.erase(kOurStudy) == 1, "what was written is there");
  promise(now == content, "what was there before is there still");
}

}  // namespace treadle::fuzz
