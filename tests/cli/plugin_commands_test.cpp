// What `workflow-runner plugins …` says of one plugin, of all, and of the machine.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class PluginCommands : public CommandFixture {
 protected:
  static fs::path built(const std::string& name) {
    return fs::path(runner()).parent_path().parent_path() / "lib/treadle/plugins/0" /
           (name + ".so");
  }

  /// Such a plugin is left out where its library is missing, and is a Debian package of its own.
  static bool needs_a_library(const fs::path& plugin) {
    std::ifstream file(plugin / "CMakeLists.txt");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.find(" REQUIRES ") != std::string::npos ||
           text.find("(REQUIRES ") != std::string::npos ||
           text.find("PACKAGE ") != std::string::npos;
  }

  /// As many as the tree has folders with a plugin in them that is built here.
  std::string count_of_plugins() {
    int count = 0;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(std::getenv("TREADLE_SOURCE")) / "plugins")) {
      const bool is_plugin = fs::exists(entry.path() / "plugin.json");
      const std::string name = entry.path().filename();
      count += is_plugin && (!needs_a_library(entry.path()) || fs::exists(built(name))) ? 1 : 0;
    }
    return std::to_string(count);
  }
};

TEST_F(PluginCommands, WhyFindsAPluginByIdComponentOrFile) {
  for (const std::string& name :
       {std::string("org.treadle.optimizers"), std::string("adamw"),
        std::string("org.treadle.optimizers/adamw"), std::string("optimizers"),
        std::string("optimizers.so"), built("optimizers").string()}) {
    const Finished why = run({"plugins", "why", name});

    EXPECT_EQ(why.code, 0) << why.err;
    EXPECT_THAT(why.out, StartsWith("org.treadle.optimizers ")) << name;
    EXPECT_THAT(why.out,
                HasSubstr("\n  file     " + built("optimizers").string() +
                          " (installed)\n  verdict  usable\n  offers   optimizer adafactor, "
                          "optimizer adagrad, optimizer adam, "));
  }
}

TEST_F(PluginCommands, WhyExaminesAFileOutsideTheSearchPath) {
  fs::create_directories(folder() / "build");
  fs::copy_file(built("optimizers"), folder() / "build/mine.so");
  fs::permissions(folder() / "build", fs::perms(0755));
  write("build/text.so", "just some text");

  const Finished why = run({"plugins", "why", "build/mine.so"});
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_THAT(why.out, AllOf(StartsWith("org.treadle.optimizers "),
                             HasSubstr("\n  file     " + (folder() / "build/mine.so").string() +
                                       " (outside the search path)\n  verdict  usable\n  remedy   "
                                       "name it with --plugin, or put it into a folder of the "
                                       "search path\n  offers   optimizer adafactor, ")));
  const Finished text = run({"plugins", "why", "build/text.so"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\n  verdict  invalid: it is not a shared library: it does not "
                                  "begin with an ELF header\n"));
}

TEST_F(PluginCommands, ShowInterfacesThatPluginsDeclare) {
  const std::string curves = (fs::path(std::getenv("TREADLE_BUILD")) / "tests/run/curves").string();

  const Finished list = run({"plugins", "list", "--plugin-dir", curves});
  const json described =
      run({"plugins", "describe", "curve", "power", "--plugin-dir", curves, "--json"}).json();
  const Finished unknown = run({"plugins", "describe", "curv", "power", "--plugin-dir", curves});

  EXPECT_THAT(list.out, HasSubstr("curve  a factor as a function of progress\n"));
  EXPECT_THAT(list.out, HasSubstr("\n  power   (1 - progress)"));
  EXPECT_EQ(described.at("interface"), "curve");
  EXPECT_THAT(unknown.err, HasSubstr("unknown interface \"curv\"; did you mean \"curve\"?"));
}

TEST_F(PluginCommands, WhyOfANameThatNobodyHasSaysWhereItLooked) {
  const Finished why = run({"plugins", "why", "adamv"});

  EXPECT_EQ(why.code, 2);
  EXPECT_EQ(why.err,
            "workflow-runner: no plugin and no component is called \"adamv\"; did you mean "
            "\"adam\" or \"adamw\"?; searched:\nworkflow-runner:   " +
                (folder() / "data/treadle/plugins").string() +
                " (user): there is no such folder\nworkflow-runner:   " +
                built("optimizers").parent_path().string() + " (installed): " + count_of_plugins() +
                " libraries\n");
}

TEST_F(PluginCommands, WhySaysThatAPluginIsDisabled) {
  set("TREADLE_PLUGIN_DISABLE", "org.treadle.optimizers");

  const json why = run({"plugins", "why", "adamw", "--json"}).json();

  ASSERT_EQ(why.at("plugins").size(), 1u);
  EXPECT_EQ(why.at("plugins")[0].at("verdict"), "disabled");
  EXPECT_EQ(why.at("plugins")[0].at("reason"), "is named in TREADLE_PLUGIN_DISABLE");
  EXPECT_EQ(why.at("plugins")[0].at("remedy"), "take its id out of the variable");
}

TEST_F(PluginCommands, WhySaysThatOnlyOthersAreAllowed) {
  set("TREADLE_PLUGIN_ALLOW", "org.treadle.losses,org.treadle.metrics");

  const json why = run({"plugins", "why", "adamw", "--json"}).json();

  EXPECT_EQ(why.at("plugins")[0].at("reason"), "is not named in TREADLE_PLUGIN_ALLOW");
}

TEST_F(PluginCommands, CheckIsContentWithEveryPluginOfOurs) {
  for (const fs::directory_entry& entry : fs::directory_iterator(built("x").parent_path())) {
    const Finished checked = run({"plugins", "check", entry.path().string(), "--json"});
    EXPECT_EQ(checked.code, 0) << checked.out;
    const json found = checked.json();
    EXPECT_TRUE(found.at("good").get<bool>());
    EXPECT_GE(found.at("findings").size(), 9u);
  }
}

TEST_F(PluginCommands, CheckOfTheContractSaysWhichParametersItLacks) {
  const fs::path faulty = fs::path(std::getenv("TREADLE_BUILD")) / "tests/run/plugins/faulty.so";

  const Finished checked = run({"plugins", "check", "--contract", faulty.string()});

  EXPECT_EQ(checked.code, 3);
  EXPECT_THAT(checked.err,
              HasSubstr("faulty.so: \"faulty_loss\" cannot be made without \"inner\""));
  EXPECT_THAT(checked.err, HasSubstr("contract.json"));
}

TEST_F(PluginCommands, CheckSaysWhatItLookedAt) {
  const Finished checked = run({"plugins", "check", built("optimizers").string()});

  EXPECT_EQ(checked.code, 0);
  for (const char* line :
       {"  ok    it was built for this runner\n", "  ok    it exports its entry and nothing else\n",
        "  ok    it finds every symbol it needs when it is loaded\n",
        "  ok    it registers the same components each time its entry is called\n",
        "  ok    it makes adafactor, adagrad, adam, adamw, adamw8bit and 7 more from defaults "
        "alone\n",
        "  ok    it leaves the process as it was\n", "  ok    it prints nothing\n"})
    EXPECT_THAT(checked.out, HasSubstr(line));
}

TEST_F(PluginCommands, CheckOfWhatIsNoPluginEndsWithCodeFour) {
  const fs::path file = write("text.so", "just some text");

  const Finished checked = run({"plugins", "check", file.string()});

  EXPECT_EQ(checked.code, 4);
  EXPECT_EQ(checked.out,
            "text.so\n  wrong it is not a shared library: it does not begin with an ELF header\n");
}

TEST_F(PluginCommands, DoctorFindsNothingWrongWhereNothingIs) {
  const Finished doctor = run({"plugins", "doctor", "--json"});

  ASSERT_EQ(doctor.code, 0) << doctor.out;
  const json findings = doctor.json();
  EXPECT_TRUE(findings.at("well").get<bool>());
  std::vector<std::string> subjects;
  for (const json& finding : findings.at("findings"))
    subjects.push_back(finding.at("subject"));
  EXPECT_THAT(subjects, testing::IsSupersetOf({"Treadle", "libtorch", "BLAS", "cores",
                                               "plugin folder", "cache", "plugins"}));
}

TEST_F(PluginCommands, DoctorHasARemedyForEachComplaint) {
  write("data/treadle/plugins/text.so", "just some text");
  fs::create_directories(folder() / "open");
  fs::permissions(folder() / "open", fs::perms(0777));
  set("TREADLE_PLUGIN_PATH", "/no/such/folder:" + (folder() / "open").string());
  set("TREADLE_PLUGIN_CACHE", "off");
  set("OMP_NUM_THREADS", "8");

  const Finished doctor = run({"plugins", "doctor"});

  EXPECT_EQ(doctor.code, 4);
  EXPECT_EQ(doctor.err, "");
  EXPECT_THAT(doctor.out, HasSubstr("doubtful OMP_NUM_THREADS  is 8: every worker gets as many "
                                    "threads, which makes small steps slower\n"));
  EXPECT_THAT(doctor.out, HasSubstr("-> make it, or take it out of TREADLE_PLUGIN_PATH\n"));
  EXPECT_THAT(doctor.out, HasSubstr("-> run `chmod o-w " + (folder() / "open").string() + "`\n"));
  EXPECT_THAT(doctor.out, HasSubstr("-> unset TREADLE_PLUGIN_CACHE, and set HOME\n"));
  EXPECT_THAT(doctor.out,
              HasSubstr("text.so is not a shared library: it does not begin with an ELF "
                        "header\n"));
}

TEST_F(PluginCommands, ALockedRunUsesWhatIsLockedOrNothing) {
  given_points();
  given_document(1);
  const Finished locked = run({"plugins", "lock", "-o", "my.lock"});
  ASSERT_EQ(locked.code, 0) << locked.err;
  EXPECT_EQ(locked.out, count_of_plugins() + " plugins locked, in my.lock\n");

  EXPECT_EQ(run({"run", "points.json", "--quiet", "--locked", "my.lock"}).code, 0);
  // The run wrote down what it used, also what the document left open.
  const fs::path own = only_run() / "plugins.lock";
  const json used = json::parse(read(own));
  std::vector<std::string> ids;
  for (const json& plugin : used.at("plugins"))
    ids.push_back(plugin.at("id"));
  EXPECT_THAT(ids, testing::ElementsAre("org.treadle.data-csv", "org.treadle.device-cpu",
                                        "org.treadle.losses", "org.treadle.metrics",
                                        "org.treadle.models-basic", "org.treadle.optimizers",
                                        "org.treadle.schedules", "org.treadle.training",
                                        "org.treadle.transforms", "org.treadle.validation"));

  json without_losses = used;
  without_losses.at("plugins").erase(2);
  write("less.lock", without_losses.dump());
  const Finished refused = run({"run", "points.json", "--quiet", "--locked", "less.lock"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, StartsWith("workflow-runner: plugin org.treadle.losses "));
  EXPECT_THAT(refused.err, testing::EndsWith("is not named in less.lock; restore that one, or run "
                                             "without --locked\n"));
}

TEST_F(PluginCommands, APluginMayBeNamedByItsFile) {
  set("TREADLE_PLUGIN_SYSTEM_PATH", folder().string());
  EXPECT_EQ(run({"plugins", "describe", "optimizer", "adamw"}).code, 2);

  const Finished described =
      run({"plugins", "describe", "optimizer", "adamw", "--plugin", built("optimizers").string()});

  EXPECT_EQ(described.code, 0) << described.err;
}

TEST_F(PluginCommands, ANamedFileThatIsNoPluginIsAnError) {
  given_points();
  given_document(1);
  const std::string file = (folder() / "points.json").string();
  const std::string reason = "is not a shared library: it does not begin with an ELF header";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "points.json"},
        std::vector<std::string>{"run", "points.json", "--quiet"},
        std::vector<std::string>{"plugins", "describe", "adamw"}}) {
    std::vector<std::string> named = words;
    named.insert(named.end(), {"--plugin", "points.json"});
    const Finished refused = run(named);
    EXPECT_EQ(refused.code, 4) << words[0];
    EXPECT_EQ(refused.err,
              "workflow-runner: --plugin " + file + ": cannot be used: it " + reason + "\n");
  }
  EXPECT_THAT(run({"plugins", "list", "--plugin", "points.json"}).out,
              HasSubstr("cannot be used\n  " + file + " " + reason));
  const Finished doctor = run({"plugins", "doctor", "--plugin", "points.json"});
  EXPECT_EQ(doctor.code, 4);
  EXPECT_THAT(doctor.out, HasSubstr(file + " " + reason));
  EXPECT_THAT(doctor.out, HasSubstr("-> repair or remove it: " + file + "\n"));

  const Finished whole_folder = run({"check", "points.json", "--plugin", folder().string()});
  EXPECT_EQ(whole_folder.code, 2);
  EXPECT_THAT(whole_folder.err, HasSubstr("is a folder; name a plugin in it, or all of them with "
                                          "--plugin-dir " +
                                          folder().string()));
}

TEST_F(PluginCommands, ALockThatCannotBeReadEndsWithCodeFour) {
  given_points();
  given_document(1);
  write("damaged.lock", "{\"treadle_lock\": 1, \"plug");
  write("other.lock", "{}");
  for (const std::string lock : {"missing.lock", "damaged.lock", "other.lock"}) {
    for (const std::string command : {"check", "run"}) {
      const Finished refused = run({command, "points.json", "--quiet", "--locked", lock});
      EXPECT_EQ(refused.code, 4) << refused.err;
      EXPECT_THAT(refused.err, StartsWith("workflow-runner: --locked " + lock + ":"));
    }
  }
}

TEST_F(PluginCommands, ThatNeedARunNameThePluginThatIsGoneOrDamaged) {
  given_points();
  given_document(2);
  const json catalog = run({"plugins", "list", "--json"}).json();
  for (const json& plugin : catalog.at("plugins")) {
    const fs::path file = plugin.at("file").get<std::string>();
    fs::create_directories(this->folder() / "plugins");
    fs::copy_file(file, this->folder() / "plugins" / file.filename());
    if (plugin.at("id") == "org.treadle.optimizers")
      fs::rename(this->folder() / "plugins" / file.filename(), this->folder() / "plugins/o.so");
  }
  fs::permissions(this->folder() / "plugins", fs::perms(0755));
  set("TREADLE_PLUGIN_SYSTEM_PATH", (this->folder() / "plugins").string());
  const Finished done = run({"run", "points.json", "--quiet"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string folder = only_run().string();
  fs::remove(only_run() / "result.json");
  const auto expect_named = [&](const std::string& reason) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"resume", folder},
          std::vector<std::string>{"predict", folder, "points.csv", "-o", "out.csv"}}) {
      const Finished refused = run(words);
      EXPECT_EQ(refused.code, 4) << refused.err;
      EXPECT_THAT(refused.err, AllOf(HasSubstr("org.treadle.optimizers"), HasSubstr(reason)));
    }
  };

  write("plugins/o.so", "junk");
  expect_named((this->folder() / "plugins/o.so").string() + " cannot be used: it ");
  const Finished fresh = run({"run", "points.json", "--quiet"});
  EXPECT_EQ(fresh.code, 4);
  EXPECT_THAT(fresh.err, HasSubstr("o.so cannot be used"));

  fs::remove(this->folder() / "plugins/o.so");
  expect_named("is not there");
}

}  // namespace
}  // namespace treadle
