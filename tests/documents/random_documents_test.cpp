// Random documents, each held to three laws:
//  - the same bits for 1, 2 and 3 workers, and for several processes;
//  - broken off at random steps and resumed, the same bits as never stopped;
//  - a key has an effect or is an error.
// TREADLE_RANDOM_DOCUMENTS=5000 tries that many, TREADLE_RANDOM_DOCUMENTS_SEED=20261123000 begins
// with that seed: the next document has the next seed. Without it, each day has others.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <new>
#include <optional>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

#include "dice.h"
#include "random_document.h"
#include "runs_in_children.h"
#include "table_of_keys.h"
#include "workspace.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
using Kind = Ending::Kind;
using Clock = std::chrono::steady_clock;

constexpr int kChangesADocument = 2;
constexpr int kMostRuns = 20;  // of documents whose training diverges
constexpr std::chrono::seconds kPatienceForDrawing{1800};
constexpr std::chrono::seconds kPatienceForShrinking{60};
/// Each document is run some ten times: one that takes longer, as by a graph that is walked for
/// each row, makes room for another.
constexpr std::chrono::seconds kLongRun{10};
// A key that may seldom show has been tried often enough.
constexpr int kEnoughTries = 12;
/// One of so many documents is also run on the device that is not there.
constexpr std::uint64_t kFarShare = 3;
constexpr const char* kRecurrent[] = {"lstm", "gru", "rnn"};
// Documents without an effect of a key, one after the other, before it counts as a key without.
constexpr int kRelatives = 5;

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::stoull(text);
}

/// 20261123000000 on that day, and on.
std::uint64_t seed_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return ((static_cast<std::uint64_t>(day.tm_year) + 1900) * 10'000 +
          (static_cast<std::uint64_t>(day.tm_mon) + 1) * 100 +
          static_cast<std::uint64_t>(day.tm_mday)) *
         1'000'000;
}

/// What came of all documents that one process tried.
struct Tally {
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, std::int64_t> components;  ///< in documents that were run
  std::map<std::string, std::int64_t> refusals;
  /// Tries, and those with an effect.
  using Tries = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;
  Tries keys;      ///< by label
  Tries together;  ///< of keys that should always show: by label and component beside it

  json spoken() const {
    return {{"counts", counts},
            {"components", components},
            {"refusals", refusals},
            {"keys", keys},
            {"together", together}};
  }
  void add(const json& other) {
    const auto add_up = [](std::map<std::string, std::int64_t>& sums, const json& more) {
      for (const auto& [name, count] : more.items())
        sums[name] += count.get<std::int64_t>();
    };
    add_up(counts, other["counts"]);
    add_up(components, other["components"]);
    add_up(refusals, other["refusals"]);
    const auto add_tries = [](Tries& sums, const json& more) {
      for (const auto& [label, entry] : more.items()) {
        auto& [tries, effects] = sums[label];
        tries += entry[0].get<std::int64_t>();
        effects += entry[1].get<std::int64_t>();
      }
    };
    add_tries(keys, other["keys"]);
    add_tries(together, other["together"]);
  }
};

/// Numbers and quoted words left out, so that the same refusal is counted once.
std::string kind_of_refusal(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  std::string kind;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"')
      is_quoted = !is_quoted;
    else if (!is_quoted && (c < '0' || c > '9'))
      kind += c;
  }
  return kind.substr(0, 100);
}

void count_components(const json& value, std::map<std::string, std::int64_t>& components) {
  if (value.is_object() && value.contains("use") && value["use"].is_string())
    ++components[value["use"].get<std::string>()];
  if (value.is_structured()) {
    for (const json& part : value)
      count_components(part, components);
  }
}

/// Whether all keys that a value differs in have a reason.
template <typename Reason>
bool all_have(const json& labels, const Reason& reason) {
  return std::all_of(labels.begin(), labels.end(), [&](const json& label) {
    return reason(label.get<std::string>()).has_value();
  });
}

std::optional<std::string> why_not_always(const std::string& label) {
  const auto why = why_without_effect(label);
  return why ? why : why_seldom(label);
}

/// "validation/k_fold" for each component of the top level that the key is no part of.
std::vector<std::string> components_beside(const json& document, const std::string& pointer) {
  std::vector<std::string> beside;
  for (const auto& [key, value] : document.items()) {
    if (value.is_object() && value.contains("use") && !pointer.starts_with("/" + key))
      beside.push_back(key + "/" + value["use"].get<std::string>());
  }
  return beside;
}

/// Leaves out what can be left out while `fails` stays true, and there is time.
json shrunk(json document, const std::function<bool(const json&)>& fails) {
  const auto until = Clock::now() + kPatienceForShrinking;
  const auto shrink = [&] {
    const json leaves = document.flatten();
    std::set<std::string> tried;
    for (const auto& [pointer, value] : leaves.items()) {
      std::vector<json::json_pointer> places;
      for (json::json_pointer place(pointer); !place.empty(); place.pop_back())
        places.insert(places.begin(), place);
      for (const json::json_pointer& place : places) {
        // Without a key the number of rows is that of real data.
        const bool is_small = place.back() == "rows" || place.back() == "length" ||
                              place.back() == "epochs" || place.back() == "batch_size";
        if (!tried.insert(place.to_string()).second || place.back() == "use" || is_small)
          continue;
        if (Clock::now() > until)
          return false;
        json less = document;
        json& parent = less[place.parent_pointer()];
        if (parent.is_array())
          parent.erase(std::stoul(place.back()));
        else
          parent.erase(place.back());
        if (fails(less)) {
          document = std::move(less);
          return true;
        }
      }
    }
    return false;
  };
  while (shrink())
    continue;
  return document;
}

/// In memory where it can be: a run syncs its files, and a disk takes longer for that than a small
/// training takes. What a kill leaves behind is the same.
fs::path place_for_runs() {
  const fs::path memory = "/dev/shm";
  return access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

/// Draws the documents of some seeds and tests them; a process of its own.
class DocumentTester {
 public:
  /// `far`: with the plugin of a device that is not there, or null.
  DocumentTester(const Runtime& runtime, const Runtime* far) : runtime_(runtime), far_(far) {}

  void test(std::uint64_t seed) {
    const auto begin = Clock::now();
    const Workspace workspace(place_for_runs());
    seed_ = seed;
    for (int attempt = 0; attempt < kMostRuns; ++attempt) {
      // Redrawn as a whole where the training cannot be done.
      if (test_one(seed + static_cast<std::uint64_t>(attempt) * 1'000'003, workspace.folder()))
        break;
    }
    tally_.counts["milliseconds"] +=
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  }

  const Tally& tally() const { return tally_; }

 private:
  bool test_one(std::uint64_t seed, const fs::path& workspace) {
    const fs::path folder = workspace / std::to_string(seed);
    fs::create_directory(folder);
    const Ending drawing = Child(
                               [&] {
                                 const RandomDocument drawn =
                                     draw_document(runtime_, seed, folder, kChangesADocument);
                                 return json{{"document", drawn.document},
                                             {"changes", drawn.changes},
                                             {"refusals", drawn.refusals},
                                             {"refused_changes", drawn.refused_changes}}
                                     .dump();
                               },
                               kPatienceForDrawing)
                               .wait();
    if (drawing.kind != Kind::kDone) {
      fail("while it was drawn", drawing.text, read_file(folder / "attempt.json"));
      return true;
    }
    const json drawn = json::parse(drawing.text);
    for (const json& refusal : drawn["refusals"])
      refused(refusal);
    tally_.counts["changes refused"] += drawn["refused_changes"].get<std::int64_t>();
    DocumentRuns runs(runtime_, folder);
    const json document = drawn["document"];
    const auto begin = Clock::now();
    const DocumentRun first = runs.run(document, {1});
    if (std::getenv("TREADLE_RANDOM_DOCUMENTS_SHOW") != nullptr)
      std::cerr << seed << ' ' << document << ' '
                << (Clock::now() - begin) / std::chrono::milliseconds(1) << " ms\n";
    if (first.ending.kind == Kind::kRefused) {
      refused(first.ending.text);
      expect_same_refusal(runs, document, first.ending);
      return false;
    }
    if (first.ending.kind != Kind::kDone) {
      fail("with 1 worker", first.ending.text, document.dump(1));
      return true;
    }
    if (Clock::now() - begin > kLongRun) {
      ++tally_.counts["took too long"];
      return false;
    }
    ++tally_.counts["documents"];
    count_components(document, tally_.components);
    expect_checked(document);
    if (is_shareable(document)) {
      sharing_ = std::min(first.shards, DocumentRuns::kMostProcesses);
      dividing_ = std::min(first.fits, DocumentRuns::kMostProcesses);
    }
    expect_same_in_parallel(runs, document, first.remains);
    expect_same_resumed(runs, document, first.remains);
    if (far_ != nullptr && seed_ % kFarShare == 0)
      expect_same_far_away(document, folder);
    for (const json& change : drawn["changes"])
      expect_effect(runs, document, change, first.remains, folder);
    return true;
  }

  void refused(const std::string& why) {
    ++tally_.counts["refused"];
    ++tally_.refusals[kind_of_refusal(why)];
  }

  /// `check` accepts every document that runs.
  void expect_checked(const json& document) {
    const Ending ending = Child(
                              [&] {
                                check_document(runtime_, runtime_.resolve(document));
                                return std::string();
                              },
                              kPatienceForDrawing)
                              .wait();
    if (ending.kind != Kind::kDone)
      fail("it runs, but `check` refuses it", ending.text, document.dump(1));
  }

  /// A training that diverges does so with any number of workers.
  void expect_same_refusal(DocumentRuns& runs, const json& document, const Ending& first) {
    const Ending other = runs.run(document, {3}).ending;
    if (other.kind != Kind::kRefused)
      fail("with 3 workers it is not refused, with 1: " + first.text, other.text, document.dump(1));
  }

  void expect_same_in_parallel(DocumentRuns& runs, const json& document, const Remains& wanted) {
    std::vector<Parallelism> ways{{2}, {3}};
    if (sharing_ > 1) {
      ways.push_back({1, sharing_, "shards"});
      ++tally_.counts["shared"];
    }
    if (dividing_ > 1) {
      ways.push_back({1, dividing_, "fits"});
      ++tally_.counts["divided"];
    }
    for (const Parallelism& by : ways) {
      const auto found = [&](const json& tried, const Remains& one) {
        const DocumentRun run = runs.run(tried, by);
        return run.ending.kind == Kind::kDone ? difference(run.remains, one) : run.ending.text;
      };
      const std::string other = found(document, wanted);
      if (other.empty())
        continue;
      const json smallest = shrunk(document, [&](const json& less) {
        const DocumentRun one = runs.run(less, {1});
        return one.ending.kind == Kind::kDone &&
               (by.divide == "fits" ? one.fits : one.shards) >= by.processes &&
               !found(less, one.remains).empty();
      });
      fail("with " + by.text(), other, document.dump(1), smallest);
      return;
    }
  }

  /// Whether the training has no schedule, which is what breaks runs off.
  bool has_no_schedule(const json& document) const {
    const std::string loop = document.at("training").value("use", "standard");
    return runtime_.schemas()
        .find("training", loop)
        .schema->value("x-treadle-excludes", json::object())
        .contains("/schedule");
  }

  void expect_same_resumed(DocumentRuns& runs, const json& document, const Remains& wanted) {
    if (has_no_schedule(document)) {
      ++tally_.counts["not broken off"];
      return;
    }
    Dice dice(seed_ + 1);
    const std::int64_t steps = steps_in(wanted);
    std::vector<std::pair<Parallelism, Break>> breaks;
    const auto some = [&] {
      return Parallelism{static_cast<int>(dice.whole(1, 3)),
                         static_cast<int>(dice.whole(1, std::max(sharing_, dividing_)))};
    };
    std::string spoken;
    for (int count = dice.chance(30) ? 2 : 1; count-- > 0;) {
      const Parallelism by = some();
      const Break at{dice.whole(1, steps), dice.chance(70)};
      breaks.emplace_back(by, at);
      spoken += std::string(at.is_kill ? "killed" : "stopped") + " before step " +
                std::to_string(at.step) + " with " + by.text() + ", ";
    }
    const Parallelism last = some();
    const auto found = [&](const json& tried, const Remains& one) -> std::optional<std::string> {
      const auto run = runs.run_with_breaks(tried, breaks, last);
      if (!run)
        return std::nullopt;
      return run->ending.kind == Kind::kDone ? difference(run->remains, one) : run->ending.text;
    };
    const auto other = found(document, wanted);
    if (!other) {
      ++tally_.counts["not broken off"];
      return;
    }
    ++tally_.counts["resumed"];
    if (other->empty())
      return;
    const json smallest = shrunk(document, [&](const json& less) {
      const DocumentRun one = runs.run(less, {1});
      return one.ending.kind == Kind::kDone && !found(less, one.remains).value_or("").empty();
    });
    fail(spoken + "resumed with " + last.text(), *other, document.dump(1), smallest);
  }

  /// On a device whose memory the host cannot read, as by tensor operations on a CPU.
  void expect_same_far_away(const json& document, const fs::path& folder) {
    if (has_recurrent_layer(document))
      return;  // libtorch has other operators for them where there is no CPU
    if (document.value("precision", "") == "bf16-mixed")
      return;  // nor has it autocast there
    DocumentRuns runs(*far_, folder);
    const auto run_on = [&](const char* device, json tried) {
      tried["resources"]["device"] = device;
      return runs.run(std::move(tried), {1});
    };
    const auto found = [&](const json& tried) -> std::string {
      const DocumentRun near = run_on("near", tried);
      if (near.ending.kind == Kind::kRefused)
        return "";  // it overflows by tensor operations alone
      const DocumentRun far = run_on("far", tried);
      if (near.ending.kind != Kind::kDone)
        return "by tensor operations: " + near.ending.text;
      if (far.ending.kind != Kind::kDone)
        return far.ending.text;
      return difference(results_in(far.remains), results_in(near.remains));
    };
    ++tally_.counts["far away"];
    const std::string other = found(document);
    if (other.empty())
      return;
    const json smallest = shrunk(document, [&](const json& less) { return !found(less).empty(); });
    fail("on a device that is not there", other, document.dump(1), smallest);
  }

  static bool has_recurrent_layer(const json& document) {
    const std::string text = document.dump();
    return std::any_of(std::begin(kRecurrent), std::end(kRecurrent), [&](const char* layer) {
      return text.find(std::string("\"") + layer + "\"") != std::string::npos;
    });
  }

  /// What a key did in one document.
  enum class Effect { kSeen, kNone, kNotExpected, kFailed };

  /// Training may be past all change in one document: its model saturated, or of a single row. So a
  /// key without effect is tried in relatives of the document. It still fails where it never has
  /// any beside certain other keys of its component.
  void expect_effect(DocumentRuns& runs, const json& document, const json& change,
                     const Remains& unchanged, const fs::path& folder) {
    const std::string label = change["label"];
    std::string values;
    const Effect effect = effect_of(runs, document, change, unchanged, values);
    if (effect == Effect::kFailed)
      return;
    note_effect(document, change, effect);
    if (effect != Effect::kNone)
      return;
    ++tally_.counts["changes without effect"];
    if (has_effect_in_relatives(document, change, folder, values)) {
      ++tally_.counts["changes with effect in relatives alone"];
      return;
    }
    const std::string pointer = change["pointer"];
    const json before = document.value(json::json_pointer(pointer), json());
    fail(label + " has no effect at " + pointer,
         "it was " + before.dump() + ", and these are the same:\n" + values, document.dump(1));
  }

  void note_effect(const json& document, const json& change, Effect effect) {
    const std::string label = change["label"];
    const auto note = [&](std::pair<std::int64_t, std::int64_t>& tries) {
      ++tries.first;
      tries.second += effect == Effect::kSeen ? 1 : 0;
    };
    note(tally_.keys[label]);
    if (effect == Effect::kNotExpected || why_not_always(label))
      return;
    for (const std::string& beside : components_beside(document, change["pointer"]))
      note(tally_.together[label + " beside " + beside]);
  }

  /// Tries value after value, up to one that shows. `same` gets those that should have and do not.
  Effect effect_of(DocumentRuns& runs, const json& document, const json& change,
                   const Remains& unchanged, std::string& same) {
    const std::string label = change["label"];
    const Remains wanted = results_in(unchanged);
    const json::json_pointer place(change["pointer"].get<std::string>());
    Effect effect = Effect::kNotExpected;
    for (const json& value : change["values"]) {
      const json& changed = value["document"];
      const bool should_not =
          why_without_effect(label) || all_have(value["labels"], why_without_effect);
      if (should_not && effect == Effect::kNone)
        continue;
      const DocumentRun run = runs.run(changed, {1});
      const std::string spoken = changed.contains(place) ? changed[place].dump() : "left out";
      ++tally_.counts["changes"];
      if (run.ending.kind == Kind::kFailed) {
        fail(label + " with another value", run.ending.text, changed.dump(1));
        return Effect::kFailed;
      }
      if (run.ending.kind == Kind::kRefused) {
        ++tally_.counts["changes refused"];
        return Effect::kSeen;
      }
      const bool has_effect = results_in(run.remains) != wanted;
      if (should_not && has_effect) {
        fail(label + " should change no result",
             spoken + ": " + difference(results_in(run.remains), wanted), document.dump(1));
        return Effect::kFailed;
      }
      if (has_effect)
        return Effect::kSeen;
      if (should_not && why_without_effect(label))
        return Effect::kNotExpected;
      if (!should_not && !why_seldom(label) && !all_have(value["labels"], why_not_always)) {
        effect = Effect::kNone;
        same += "  " + spoken + "\n";
      }
    }
    return effect;
  }

  bool has_effect_in_relatives(const json& document, const json& change, const fs::path& folder,
                               std::string& same) {
    for (std::uint64_t i = 0; i < kRelatives; ++i) {
      const fs::path place = folder / ("relative-" + std::to_string(relatives_++));
      fs::create_directory(place);
      const Ending drawing =
          Child(
              [&] {
                const RandomDocument drawn = draw_relative(runtime_, seed_ + (i + 1) * 7'000'003,
                                                           place, document, change["pointer"]);
                return json{{"document", drawn.document}, {"change", drawn.changes[0]}}.dump();
              },
              kPatienceForDrawing)
              .wait();
      if (drawing.kind == Kind::kRefused)  // there is no other that it fits into
        continue;
      if (drawing.kind != Kind::kDone) {
        fail("while a relative was drawn", drawing.text, read_file(place / "attempt.json"));
        return true;
      }
      const json drawn = json::parse(drawing.text);
      DocumentRuns runs(runtime_, place);
      const DocumentRun first = runs.run(drawn["document"], {1});
      if (first.ending.kind == Kind::kRefused)
        continue;
      if (first.ending.kind != Kind::kDone) {
        fail("a relative with 1 worker", first.ending.text, drawn["document"].dump(1));
        return true;
      }
      same += "and in another document\n";
      const Effect effect =
          effect_of(runs, drawn["document"], drawn["change"], first.remains, same);
      if (effect == Effect::kSeen || effect == Effect::kFailed)
        return true;
      if (std::getenv("TREADLE_RANDOM_DOCUMENTS_SHOW") != nullptr)
        std::cerr << seed_ << " relative " << drawn["document"] << '\n';
    }
    return false;
  }

  void fail(const std::string& law, const std::string& found, const std::string& document,
            const json& smallest = json()) {
    ++tally_.counts["failed"];
    std::ostringstream text;
    text << "\nFAILED: " << law << "\n" << found << "\n" << document << "\n";
    if (!smallest.is_null())
      text << "smaller: " << smallest << "\n";
    text << "again: OMP_NUM_THREADS=1 TREADLE_RANDOM_DOCUMENTS=1 TREADLE_RANDOM_DOCUMENTS_SEED="
         << seed_ << " treadle-random-documents-tests\n";
    std::cerr << text.str() << std::flush;
  }

  const Runtime& runtime_;
  const Runtime* const far_;
  std::uint64_t seed_ = 0;
  // Processes, at most.
  int sharing_ = 1;   // that may share the steps of the document
  int dividing_ = 1;  // that may divide its fits
  int relatives_ = 0;
  Tally tally_;
};

/// Numbers from 0, each for one of the processes that were forked from here: a slow document keeps
/// one of them, and no other waits.
class WorkQueue {
 public:
  WorkQueue() {
    void* const shared =
        mmap(nullptr, sizeof(Next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
      throw std::bad_alloc();
    next_ = new (shared) Next(0);
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() { munmap(next_, sizeof(Next)); }

  std::uint64_t next() { return next_->fetch_add(1); }

 private:
  using Next = std::atomic<std::uint64_t>;
  static_assert(Next::is_always_lock_free);

  Next* next_ = nullptr;
};

/// So that no child has to: the plugins, their schemas, the operators that draw random numbers.
void load_plugins(const Runtime& runtime) {
  const TaskRandom installs_operators(0);
  for (const CatalogComponent& component : runtime.catalog().components())
    static_cast<void>(runtime.catalog().schema(component));
  for (const PluginFile& plugin : runtime.catalog().plugins()) {
    if (plugin.verdict == Verdict::kUsable)
      dlopen(plugin.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

void print(const std::string& title, const std::map<std::string, std::int64_t>& counts) {
  std::cout << title << "\n";
  for (const auto& [name, count] : counts)
    std::cout << "  " << count << "  " << name << "\n";
}

TEST(RandomDocuments, HoldTheirLaws) {
  const std::uint64_t count = from_environment("TREADLE_RANDOM_DOCUMENTS", 8);
  const std::uint64_t first = from_environment("TREADLE_RANDOM_DOCUMENTS_SEED", seed_of_today());
  const auto lanes =
      std::min<std::uint64_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  const Workspace home(place_for_runs());
  setenv("HOME", home.folder().c_str(), 1);
  setenv("TREADLE_PLUGIN_PROBE", "never", 1);  // each new set of plugins would be tried out
  Runtime runtime;
  add_breaks(runtime);
  load_plugins(runtime);
  std::optional<Runtime> far;
  if (const char* const folder = std::getenv("TREADLE_FAR_PLUGINS")) {
    RuntimeOptions options;
    options.plugin_dirs = {folder};
    far.emplace(options);
    add_breaks(*far);
    load_plugins(*far);
  }
  ASSERT_EQ(threads_here(), 1) << "processes are forked from here; set OMP_NUM_THREADS=1";
  std::cout << "seeds " << first << " to " << first + count - 1 << std::endl;

  WorkQueue queue;
  std::vector<std::unique_ptr<Child>> children;
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    children.push_back(std::make_unique<Child>(
        [&] {
          DocumentTester tester(runtime, far ? &*far : nullptr);
          for (std::uint64_t i = queue.next(); i < count; i = queue.next())
            tester.test(first + i);
          return tester.tally().spoken().dump();
        },
        std::chrono::hours(24)));
  }
  Tally tally;
  for (const auto& child : children) {
    const Ending ending = child->wait();
    EXPECT_EQ(ending.kind, Kind::kDone) << ending.text;
    if (ending.kind == Kind::kDone)
      tally.add(json::parse(ending.text));
  }

  print("random documents", tally.counts);
  EXPECT_EQ(tally.counts["failed"], 0) << "see above";
  EXPECT_EQ(tally.counts["documents"], count);
  for (const auto& [label, tries] : tally.keys) {
    if (tries.first >= kEnoughTries && tries.second == 0 && !why_without_effect(label) &&
        !why_never_here(label))
      ADD_FAILURE() << label << " had no effect in " << tries.first << " documents";
  }
  for (const auto& [label, tries] : tally.together) {
    if (tries.first >= kEnoughTries && tries.second == 0)
      ADD_FAILURE() << label << " had no effect in " << tries.first << " documents";
  }
  if (std::getenv("TREADLE_RANDOM_DOCUMENTS_SHOW") != nullptr) {
    print("refusals", tally.refusals);
    for (const CatalogComponent& component : runtime.catalog().components())
      tally.components.emplace(component.component->name, 0);
    print("components", tally.components);
    std::cout << "keys: tries, effects\n";
    for (const auto& [label, tries] : tally.keys)
      std::cout << "  " << tries.first << " " << tries.second << "  " << label << "\n";
  }
}

}  // namespace
}  // namespace treadle::testing
