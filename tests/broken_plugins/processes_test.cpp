// The programs and broken plugins: what people read, that the runner lives, and that the good
// plugins still work. What can be seen without a process is in plugin_loader_test.cpp.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

class Villains : public CommandFixture {
 protected:
  Villains() {
    given_points();
    given_document(1);
    write("with-listener.json",
          replaced(read("points.json"), "\"treadle\": 1",
                   "\"treadle\": 1, \"observers\": [{\"use\": \"listener\"}]"));
    fs::create_directories(user_folder());
    set("TREADLE_PLUGIN_CACHE", (folder() / "plugins.json").string());
    set("TREADLE_PLUGIN_PROBE_TIMEOUT_MS", "3000");
  }

  static fs::path built(const std::string& name) {
    return fs::path(std::getenv("TREADLE_BUILD")) / "tests/broken_plugins" / name / (name + ".so");
  }
  /// Where a user drops plugins.
  fs::path user_folder() const { return folder() / "data" / "treadle" / "plugins"; }

  fs::path drop(const fs::path& file, const std::string& name) {
    const fs::path dropped = user_folder() / name;
    fs::copy_file(file, dropped, fs::copy_options::overwrite_existing);
    return dropped;
  }
  fs::path drop(const std::string& villain) { return drop(built(villain), villain + ".so"); }
  fs::path drop_bytes(const std::string& bytes) {
    const fs::path dropped = user_folder() / "made.so";
    std::ofstream(dropped, std::ios::binary) << bytes;
    return dropped;
  }

  /// What the listing says of the file: "broken: crashed …", "usable".
  std::string verdict_on(const fs::path& file) {
    const Finished listed = run({"plugins", "list", "--json"});
    EXPECT_EQ(listed.code, 0) << listed.err;
    const json listing = listed.json();
    for (const json& plugin : listing.at("plugins")) {
      if (plugin.at("file") == file.string()) {
        const std::string reason = plugin.at("reason");
        return plugin.at("verdict").get<std::string>() + (reason.empty() ? "" : ": " + reason);
      }
    }
    return "(not listed)";
  }

  /// Nobody who does not ask for the villain notices it; who does is told why not.
  void expect_good_ones_work() {
    const Finished good = run({"run", "points.json", "--quiet"});
    EXPECT_EQ(good.code, 0) << good.err;
    const Finished listed = run({"plugins", "list"});
    EXPECT_EQ(listed.code, 0);
    EXPECT_THAT(listed.out, HasSubstr("adamw"));
  }
  void expect_refusal(const std::string& text) {
    const Finished refused = run({"run", "with-listener.json", "--quiet"});
    EXPECT_EQ(refused.code, 4);
    EXPECT_EQ(refused.err, text);
    EXPECT_EQ(refused.out, "");
  }
  /// The same for a villain that offers the listener but cannot be used.
  void expect_unusable(const fs::path& file, const std::string& verdict,
                       const std::string& title = "org.treadle.test.villain 6.6.6") {
    EXPECT_EQ(verdict_on(file), verdict);
    const std::string reason = verdict.substr(verdict.find(": ") + 2);
    expect_refusal(
        "workflow-runner: with-listener.json:29: /observers/0/use: no plugin offers the observer "
        "\"listener\"; " +
        title + " (" + file.string() + ") offers it but cannot be used: it " + reason + "\n");
    expect_good_ones_work();
  }
  /// The same for a file that does not even say what it offers.
  void expect_no_plugin(const fs::path& file, const std::string& verdict) {
    EXPECT_EQ(verdict_on(file), verdict);
    const Finished refused = run({"run", "with-listener.json", "--quiet"});
    EXPECT_THAT(refused.err, HasSubstr("no plugin offers the observer \"listener\""));
    // A damaged file may be what is missed; another program's library is not.
    const bool is_damaged = verdict.starts_with("invalid");
    EXPECT_EQ(refused.code, is_damaged ? 4 : 3);
    if (is_damaged) {
      EXPECT_THAT(refused.err, HasSubstr(file.string() + " cannot be used: it "));
    }
    expect_good_ones_work();
  }
};

TEST_F(Villains, AFriendlyPluginWorksInTheNextCommand) {
  const fs::path file = drop("friendly");

  EXPECT_EQ(verdict_on(file), "usable");
  const Finished done = run({"run", "with-listener.json", "--quiet"});
  EXPECT_EQ(done.code, 0) << done.err;
}

TEST_F(Villains, AStrippedPluginWorks) {
  const fs::path file = drop("friendly");
  const auto whole = fs::file_size(file);
  ASSERT_EQ(run_program({"strip", file.string()}).code, 0);

  EXPECT_LT(fs::file_size(file), whole);
  EXPECT_EQ(verdict_on(file), "usable");
  EXPECT_EQ(run({"run", "with-listener.json", "--quiet"}).code, 0);
}

TEST_F(Villains, ASymlinkToAPluginWorksAndTwoAreOne) {
  const fs::path target = folder() / "elsewhere.so";
  fs::copy_file(built("friendly"), target);
  fs::create_symlink(target, user_folder() / "a.so");
  fs::create_symlink(target, user_folder() / "b.so");

  EXPECT_EQ(verdict_on(user_folder() / "a.so"), "usable");
  EXPECT_EQ(verdict_on(user_folder() / "b.so"), "(not listed)");
  EXPECT_EQ(run({"run", "with-listener.json", "--quiet"}).code, 0);
}

TEST_F(Villains, ALibraryForAnotherArchitecture) {
  std::string bytes = bytes_of(built("friendly"));
  bytes[18] = 8;  // e_machine: MIPS
  bytes[19] = 0;
  const fs::path file = drop_bytes(bytes);

  const std::string verdict = verdict_on(file);

  const std::string begin =
      "incompatible: is for another architecture (64-bit MIPS; this runner is 64-bit ";
  EXPECT_THAT(verdict, testing::StartsWith(begin));
  EXPECT_THAT(verdict, testing::EndsWith("); build it for this machine"));
  expect_no_plugin(file, verdict);
}

TEST_F(Villains, ALibraryWithoutANote) {
  expect_no_plugin(drop("bystander"),
                   "not a plugin: is a shared library without a Treadle manifest");
}

TEST_F(Villains, ANoteThatIsNotJson) {
  expect_no_plugin(drop("mumbles"),
                   "invalid: has a damaged manifest: it is not JSON in UTF-8; build it again");
}

TEST_F(Villains, AnotherLibtorchAndOtherCompilerFlags) {
  const fs::path file = drop("stranger");

  const std::string verdict = verdict_on(file);

  EXPECT_THAT(verdict, testing::MatchesRegex(
                           "incompatible: was built for libtorch 99.1.0, this runner uses "
                           "[0-9.a-z+]+; was built with debug containers on, this runner has them "
                           "off; rebuild it against this SDK"));
  expect_unusable(file, verdict, "org.treadle.test.whole 1.2.3");
}

TEST_F(Villains, AMissingSymbol) {
  const fs::path file = drop("needs_a_symbol");

  expect_unusable(file, "broken: cannot be loaded: " + file.string() +
                            ": undefined symbol: treadle_test_no_such_function");
}

TEST_F(Villains, AStaticConstructorThatThrows) {
  expect_unusable(
      drop("throws_at_load"),
      "broken: crashed while it was loaded (SIGABRT); the last it printed: \"  what():  "
      "the licence has run out\"");
}

TEST_F(Villains, AStaticConstructorThatExits) {
  expect_unusable(drop("exits_at_load"),
                  "broken: ended the process while it was loaded (exit code 0)");
}

TEST_F(Villains, AStaticConstructorThatHangs) {
  const fs::path file = drop("hangs_at_load");

  expect_unusable(file, "broken: did not finish loading within 3 s");

  // Nor does what it started stay behind.
  EXPECT_NE(run_program({"pgrep", "-f", file.string()}).code, 0);
}

TEST_F(Villains, AStaticConstructorThatCrashes) {
  expect_unusable(drop("crashes_at_load"),
                  "broken: crashed while it was loaded (SIGSEGV); the last it printed: \"touching "
                  "what is not mine\"");
}

TEST_F(Villains, AnEntryThatCrashes) {
  expect_unusable(drop("crashes_in_entry"), "broken: crashed while it was loaded (SIGILL)");
}

TEST_F(Villains, AnEntryThatThrows) {
  expect_unusable(drop("thrower"), "broken: failed in its entry: the license server is asleep",
                  "org.treadle.test.whole 1.2.3");
}

TEST_F(Villains, AFactoryThatReturnsNothing) {
  const fs::path file = drop("makes_nothing");

  EXPECT_EQ(verdict_on(file), "usable");
  expect_refusal(
      "workflow-runner: observer \"listener\" of plugin org.treadle.test.villain 6.6.6 could not "
      "be "
      "made: its factory returned nothing\n");
  const Finished checked = run({"plugins", "check", file.string()});
  EXPECT_EQ(checked.code, 4);
  EXPECT_THAT(checked.out, HasSubstr("  wrong it cannot make \"listener\" from its defaults: its "
                                     "factory returned nothing\n"));
  expect_good_ones_work();
}

TEST_F(Villains, OneThatThrowsInTheMiddleOfATraining) {
  drop("falters");
  given_document(1, {{"schedule", {{"use", "faltering"}}}});

  const Finished failed = run({"run", "points.json", "--quiet"});

  EXPECT_EQ(failed.code, 4);
  EXPECT_EQ(
      failed.err,
      "workflow-runner: schedule \"faltering\" of plugin org.treadle.test.falters 1.0.0 failed "
      "in rate_at(): the table has four rows; in training final, after step 4 (epoch 1)\n");
}

TEST_F(Villains, OneThatClosesEveryDescriptor) {
  const fs::path file = drop("closes_everything");

  EXPECT_THAT(verdict_on(file),
              testing::StartsWith("broken: ended the process while it was loaded (exit code 1)"));
  expect_good_ones_work();
}

TEST_F(Villains, OneNameOfTwoPlugins) {
  const fs::path one = drop("friendly");
  const fs::path two = drop("same_name");

  const Finished refused = run({"run", "with-listener.json", "--quiet"});
  EXPECT_EQ(refused.code, 3);  // the document can be mended
  EXPECT_EQ(
      refused.err,
      "workflow-runner: with-listener.json:29: /observers/0/use: the observer \"listener\" is "
      "offered by org.treadle.test.villain 6.6.6 (" +
          one.string() + ") and by org.treadle.test.other 1.0.0 (" + two.string() +
          "); write \"org.treadle.test.villain/listener\" or "
          "\"org.treadle.test.other/listener\"\n");
  const Finished whole = run({"run", "with-listener.json", "--quiet", "--set",
                              "observers.0.use=org.treadle.test.other/listener"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  expect_good_ones_work();
}

TEST_F(Villains, OneNamespaceOfOperatorsInTwoPlugins) {
  const fs::path one = drop("operators_one");
  const fs::path two = drop("operators_two");
  const auto use = [&](const std::string& observers) {
    write("operators.json", replaced(read("points.json"), "\"treadle\": 1",
                                     "\"treadle\": 1, \"observers\": [" + observers + "]"));
    return run({"run", "operators.json", "--quiet"});
  };

  EXPECT_EQ(verdict_on(one), "usable");
  EXPECT_EQ(verdict_on(two), "usable");
  EXPECT_EQ(use(R"({"use": "one"})").code, 0);
  EXPECT_EQ(use(R"({"use": "two"})").code, 0);
  const Finished both = use(R"({"use": "one"}, {"use": "two"})");

  EXPECT_EQ(both.code, 4);
  EXPECT_THAT(both.err,
              testing::StartsWith(
                  "workflow-runner: plugin org.treadle.test.operators-two 1.0.0 (" + two.string() +
                  ") cannot be used together with plugin org.treadle.test.operators-one "
                  "1.0.0 (" +
                  one.string() + "): it crashed while it was loaded (SIGABRT)"));
  EXPECT_THAT(both.err, testing::EndsWith("; use one of the two\n"));
  EXPECT_EQ(std::count(both.err.begin(), both.err.end(), '\n'), 1);
  expect_good_ones_work();
}

TEST_F(Villains, APluginThatIsReplacedWhileARunGoesOn) {
  given_document(400);
  write("with-listener.json", replaced(read("points.json"), "\"treadle\": 1",
                                       "\"treadle\": 1, \"observers\": [{\"use\": \"listener\"}]"));
  const fs::path file = drop("friendly");
  Running running = start({"run", "with-listener.json"});
  ASSERT_TRUE(running.has_printed("epoch"));

  // As an installer does it: a new file under the old name.
  const fs::path fresh = drop(built("crashes_at_load"), "new.tmp");
  fs::rename(fresh, file);

  EXPECT_EQ(running.wait().code, 0);
  expect_unusable(file,
                  "broken: crashed while it was loaded (SIGSEGV); the last it printed: "
                  "\"touching what is not mine\"");
}

TEST_F(Villains, LinksInALoop) {
  fs::create_symlink(user_folder() / "b.so", user_folder() / "a.so");
  fs::create_symlink(user_folder() / "a.so", user_folder() / "b.so");
  fs::create_directory_symlink(user_folder(), user_folder() / "folder");
  fs::create_symlink(folder() / "nowhere.so", user_folder() / "dangling.so");

  EXPECT_EQ(verdict_on(user_folder() / "a.so"), "(not listed)");
  expect_good_ones_work();
}

TEST_F(Villains, AFolderThatEverybodyMayWriteTo) {
  const fs::path file = drop("friendly");
  fs::permissions(user_folder(), fs::perms::others_write, fs::perm_options::add);

  struct stat status {};
  ASSERT_EQ(stat(user_folder().c_str(), &status), 0);
  expect_unusable(file, "refused: lies in " + user_folder().string() +
                            ", which can be written by everyone (mode 0757); run `chmod o-w " +
                            user_folder().string() + "` or allow it with --allow-writable-plugins");
  EXPECT_EQ(run({"run", "with-listener.json", "--quiet", "--allow-writable-plugins"}).code, 0);
}

/// Root may read everything, so this one becomes somebody else first. The build may lie where only
/// root may go: the program and what it needs are copied.
TEST_F(Villains, AFileThatCannotBeRead) {
  const fs::path build = fs::path(runner()).parent_path().parent_path();
  const fs::path place = folder() / "installation";
  fs::create_directories(place / "bin");
  fs::create_directories(place / "lib");
  fs::copy_file(runner(), place / "bin" / "workflow-runner");
  for (const char* library :
       {"libtreadle-base.so.0", "libtreadle-tensor.so.0", "libtreadle-core.so.0"})
    fs::copy_file(build / "lib" / library, place / "lib" / library);
  fs::permissions(folder(), fs::perms(0755));
  const fs::path file = drop("friendly");
  fs::permissions(file, fs::perms::none);
  set("LD_LIBRARY_PATH", (place / "lib").string());
  set("TREADLE_PLUGIN_CACHE", "off");
  std::vector<std::string> words;
  if (geteuid() == 0)
    words = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"};
  words.insert(words.end(),
               {(place / "bin" / "workflow-runner").string(), "plugins", "why", file.string()});

  const Finished why = run_program(words);

  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_EQ(why.out, "friendly.so\n  file     " + file.string() +
                         " (user)\n  verdict  invalid: it cannot be read: Permission denied\n");
}

// Each is probed in a process of its own: half a second. TREADLE_MANY_PLUGINS=500 is what .ci/run
// --full takes.
TEST_F(Villains, ManyAtOnce) {
  const char* const wanted = std::getenv("TREADLE_MANY_PLUGINS");
  const int count = wanted == nullptr ? 50 : std::atoi(wanted);
  const std::string bytes = bytes_of(built("friendly"));
  for (int i = 100; i < 100 + count; ++i) {
    // Ids and names of the same length: the notes stay whole.
    std::string own =
        replaced(bytes, "org.treadle.test.villain", "org.treadle.test.numb" + std::to_string(i));
    std::ofstream(user_folder() / ("p" + std::to_string(i) + ".so"), std::ios::binary) << own;
  }

  const Finished cold = run({"plugins", "list", "--json"});
  ASSERT_EQ(cold.code, 0) << cold.err;
  std::size_t usable = 0;
  const json listing = cold.json();
  for (const json& plugin : listing.at("plugins"))
    usable += plugin.at("verdict") == "usable" ? 1 : 0;

  EXPECT_GE(usable, static_cast<std::size_t>(count));
  const Finished one = run({"run", "with-listener.json", "--quiet", "--set",
                            "observers.0.use=org.treadle.test.numb121/listener"});
  EXPECT_EQ(one.code, 0) << one.err;
  expect_good_ones_work();
}

TEST_F(Villains, OneThatMeddlesIsToldByCheck) {
  const fs::path file = drop("meddles");

  const Finished checked = run({"plugins", "check", file.string()});

  EXPECT_EQ(checked.code, 4);
  EXPECT_THAT(checked.out, HasSubstr("  wrong it changes the process it is loaded into: "));
  EXPECT_THAT(checked.out, HasSubstr("libtorch's threads within an operator was "));
  EXPECT_THAT(checked.out, HasSubstr("the environment variable TREADLE_TEST_MEDDLED was not there "
                                     "and is \"yes\""));
  EXPECT_THAT(checked.out, HasSubstr("  wrong it prints, although a plugin may not; the last line: "
                                     "\"hello from a plugin\"\n"));
}

TEST_F(Villains, AVerdictIsRememberedUntilTheFileChanges) {
  set("TREADLE_PLUGIN_PROBE_TIMEOUT_MS", "1000");
  const fs::path file = drop("hangs_at_load");
  const std::string hung = "broken: did not finish loading within 1 s";
  EXPECT_EQ(verdict_on(file), hung);
  set("TREADLE_PLUGIN_PROBE_TIMEOUT_MS", "600000");

  // Would wait ten minutes if it were tried again.
  EXPECT_EQ(verdict_on(file), hung);

  fs::remove(file);
  drop(built("friendly"), "hangs_at_load.so");
  EXPECT_EQ(verdict_on(file), "usable");
}

TEST_F(Villains, WithoutItsHelperNothingIsTriedAndSaysSo) {
  const fs::path build = fs::path(runner()).parent_path().parent_path();
  const fs::path place = folder() / "installation";
  fs::create_directories(place / "bin");
  fs::create_directories(place / "lib");
  fs::copy_file(runner(), place / "bin" / "workflow-runner");
  for (const char* library :
       {"libtreadle-base.so.0", "libtreadle-tensor.so.0", "libtreadle-core.so.0"})
    fs::copy_file(build / "lib" / library, place / "lib" / library);
  set("LD_LIBRARY_PATH", (place / "lib").string());
  drop("friendly");

  const Finished listed =
      run_program({(place / "bin" / "workflow-runner").string(), "plugins", "list"});

  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.out, HasSubstr("listener"));
  EXPECT_THAT(listed.out, HasSubstr("\nwarning: no plugin could be tried out before it is used: " +
                                    (place / "libexec/treadle/treadle-probe").string() +
                                    " cannot be started: No such file or directory\n"));
}

}  // namespace
}  // namespace treadle
