#include <treadle/host/catalog/plugin_catalog.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/catalog/catalog_schema_index.h>

#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeLibrary;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

constexpr const char* kFingerprint = "libtorch=1.13.0\n";

/// Folders with plugins that are nothing but notes.
class PluginCatalogTest : public ::testing::Test {
 protected:
  /// Puts a plugin into `folder`; `components` are "word/name" pairs.
  fs::path given(const std::string& folder, const std::string& id,
                 const std::vector<std::pair<std::string, std::string>>& components,
                 const std::string& fingerprint = kFingerprint, const json& schema = json::object(),
                 const json& interfaces = json()) {
    json list = json::array();
    for (const auto& [word, name] : components) {
      json whole{{"type", "object"}, {"title", name}};
      whole.update(schema);
      list.push_back({{"interface", word.find('/') == word.npos ? "treadle." + word + "/0" : word},
                      {"name", name},
                      {"summary", "the " + name},
                      {"schema", whole}});
    }
    FakeLibrary library;
    json manifest{{"manifest_version", 1}, {"id", id},         {"version", "1.0.0"},
                  {"summary", "s"},        {"license", "MIT"}, {"components", list}};
    if (!interfaces.is_null())
      manifest["interfaces"] = interfaces;
    library.manifest = manifest.dump();
    library.fingerprint = fingerprint;
    return place(fs::path(folder) / (id.substr(id.rfind('.') + 1) + ".so"), library.bytes());
  }

  fs::path place(const fs::path& name, const std::string& bytes) {
    const fs::path file = folder_.write(name, bytes);
    fs::permissions(file, fs::perms(0644));
    fs::permissions(file.parent_path(), fs::perms(0755));
    return file;
  }

  std::shared_ptr<const PluginCatalog> scan(const std::vector<std::string>& folders = {"a", "b"}) {
    CatalogOptions options;
    for (const std::string& folder : folders) {
      options.folders.push_back({folder_.path() / folder, "--plugin-dir"});
    }
    options.cache_file = folder_.path() / "cache/plugins.json";
    options.allow_writable = allow_writable_;
    options.files = named_;
    options.examined = examined_;
    options.only_report = only_report_;
    options.host = HostBuild{kFingerprint, {}};
    return PluginCatalog::scan(std::move(options));
  }

  std::string problem(const std::string& word, const std::string& name) {
    return scan()->find(word, name).problem;
  }
  std::string looked_in() const {
    return "looked in " + (folder_.path() / "a").string() + ", " + (folder_.path() / "b").string();
  }

  TemporaryFolder folder_;
  bool allow_writable_ = false;
  std::vector<fs::path> named_;
  std::vector<fs::path> examined_;
  bool only_report_ = false;
};

TEST_F(PluginCatalogTest, FindsComponentsByPlainAndByQualifiedName) {
  given("a", "org.x.opt", {{"optimizer", "sgd"}, {"optimizer", "adam"}});
  const auto catalog = scan();

  for (const std::string name : {"adam", "org.x.opt/adam"}) {
    const Lookup lookup = catalog->find("optimizer", name);
    ASSERT_TRUE(lookup.found) << lookup.problem;
    EXPECT_EQ(lookup.found->qualified_name(), "org.x.opt/adam");
    EXPECT_EQ(lookup.found->component->summary, "the adam");
    EXPECT_EQ(catalog->schema(*lookup.found), json({{"type", "object"}, {"title", "adam"}}));
  }
}

TEST_F(PluginCatalogTest, ListsComponentsByName) {
  given("a", "org.x.opt", {{"optimizer", "sgd"}, {"optimizer", "adam"}, {"loss", "mse"}});
  given("b", "org.y.opt", {{"optimizer", "lion"}, {"optimizer", "adam"}});
  const auto catalog = scan();

  std::vector<std::string> names;
  for (const CatalogComponent& component : catalog->components("optimizer")) {
    names.push_back(component.qualified_name());
  }

  EXPECT_THAT(names,
              ElementsAre("org.x.opt/adam", "org.y.opt/adam", "org.y.opt/lion", "org.x.opt/sgd"));
  EXPECT_EQ(catalog->components().size(), 5u);
  EXPECT_TRUE(catalog->components("model").empty());
}

json curve(const std::string& id, const std::string& word = "curve") {
  return json::array({{{"word", word}, {"id", id}, {"summary", "a factor"}}});
}

TEST_F(PluginCatalogTest, KnowsTheInterfacesThatPluginsDeclare) {
  const json slot{{"properties", {{"c", {{"x-treadle-component", "curve"}}}}}};
  given("a", "org.x.a", {{"schedule", "curved"}}, kFingerprint, slot, curve("org.x.curve/0"));
  given("b", "org.x.b", {{"org.x.curve/0", "power"}}, kFingerprint, json::object(),
        curve("org.x.curve/0"));
  for (int warm = 0; warm < 2; ++warm) {
    const auto catalog = scan();

    EXPECT_EQ(catalog->interfaces().names().back(),
              (InterfaceName{"curve", "org.x.curve/0", "a factor"}));
    const Lookup power = catalog->find("curve", "power");
    ASSERT_TRUE(power.found) << power.problem;
    EXPECT_EQ(power.found->qualified_name(), "org.x.b/power");
    EXPECT_EQ(CatalogSchemaIndex(catalog).find("schedule", "curved").problem, "");
    EXPECT_EQ(catalog->find("curv", "power").problem,
              "unknown interface \"curv\"; did you mean \"curve\"?");
  }
}

TEST_F(PluginCatalogTest, RefusesTheLaterOfTwoPluginsThatDeclareOneInterfaceOtherwise) {
  const fs::path first = given("a", "org.x.a", {{"org.x.curve/0", "power"}}, kFingerprint,
                               json::object(), curve("org.x.curve/0"));
  given("b", "org.y.b", {{"org.y.curve/0", "line"}}, kFingerprint, json::object(),
        curve("org.y.curve/0"));
  given("b", "org.y.c", {{"org.x.curve/0", "line"}}, kFingerprint, json::object(),
        curve("org.x.curve/0", "bow"));

  const auto catalog = scan();

  EXPECT_EQ(catalog->plugins()[0].verdict, Verdict::kUsable);
  for (std::size_t i : {1, 2}) {
    const PluginFile& refused = catalog->plugins()[i];
    EXPECT_EQ(refused.verdict, Verdict::kIncompatible);
    EXPECT_THAT(refused.reason,
                AllOf(HasSubstr(i == 1 ? "declares the interface \"curve\" as org.y.curve/0"
                                       : "declares the interface \"bow\" as org.x.curve/0"),
                      HasSubstr("\"curve\" is org.x.curve/0 of org.x.a 1.0.0 (" + first.string())));
  }
  EXPECT_EQ(catalog->components("curve").size(), 1u);
  EXPECT_THAT(catalog->find("curve", "line").problem, HasSubstr("cannot be used"));
}

TEST_F(PluginCatalogTest, RefusesAPluginThatDeclaresAnInterfaceOfTreadleOtherwise) {
  given("a", "org.x.a", {{"loss", "l"}}, kFingerprint, json::object(),
        curve("org.x.loss/0", "loss"));

  const auto catalog = scan();

  EXPECT_EQ(catalog->plugins()[0].verdict, Verdict::kIncompatible);
  EXPECT_THAT(catalog->plugins()[0].reason,
              AllOf(HasSubstr("\"loss\" as org.x.loss/0"), HasSubstr("is treadle.loss/0")));
}

TEST_F(PluginCatalogTest, KeepsBothPluginsThatOfferOneName) {
  const fs::path x = given("a", "org.x.opt", {{"optimizer", "adam"}});
  const fs::path y = given("b", "org.y.opt", {{"optimizer", "adam"}});
  const auto catalog = scan();

  EXPECT_EQ(catalog->find("optimizer", "adam").problem,
            "the optimizer \"adam\" is offered by org.x.opt 1.0.0 (" + x.string() +
                ") and by org.y.opt 1.0.0 (" + y.string() +
                "); write \"org.x.opt/adam\" or \"org.y.opt/adam\"");
  EXPECT_EQ(catalog->find("optimizer", "org.y.opt/adam").found->plugin->file, y);
}

TEST_F(PluginCatalogTest, ExplainsAnUnknownName) {
  given("a", "org.x.opt", {{"optimizer", "adamw"}, {"optimizer", "sgd"}, {"schedule", "cosine"}});

  EXPECT_EQ(problem("optimizer", "adamv"),
            "no plugin offers the optimizer \"adamv\"; did you mean \"adamw\"?");
  EXPECT_EQ(problem("optimizer", "frobnicate"),
            "no plugin offers the optimizer \"frobnicate\" (there are: adamw, sgd; " + looked_in() +
                " (not there))");
  EXPECT_EQ(problem("loss", "mse"), "no plugin offers any loss (" + looked_in() + " (not there))");
  EXPECT_EQ(
      problem("optimizer", "cosine"),
      "no plugin offers the optimizer \"cosine\"; \"cosine\" is a schedule of org.x.opt, not an "
      "optimizer");
}

TEST_F(PluginCatalogTest, NamesAComponentThatOthersKnowByAnotherName) {
  const auto also = [](const json& names) {
    return json{{"x-treadle-interface", "layer"}, {"description", "d"}, {"x-treadle-also", names}};
  };
  given("a", "org.x.layers", {{"layer", "dense"}}, kFingerprint,
        also({"linear", "fully_connected"}));
  given("b", "org.y.layers", {{"layer", "identity"}}, kFingerprint, also({"linear"}));
  given("b", "org.z.schedules", {{"schedule", "linear"}});

  EXPECT_EQ(problem("layer", "linear"),
            "no plugin offers the layer \"linear\"; it is \"dense\" or \"identity\" here");
  EXPECT_EQ(problem("layer", "fully_connected"),
            "no plugin offers the layer \"fully_connected\"; it is \"dense\" here");
}

TEST_F(PluginCatalogTest, ExplainsAnUnknownQualifiedName) {
  given("a", "org.x.opt", {{"optimizer", "adamw"}, {"loss", "mse"}});

  EXPECT_EQ(problem("optimizer", "org.x.op/adamw"),
            "there is no plugin \"org.x.op\"; did you mean \"org.x.opt\"? (" + looked_in() +
                " (not there))");
  EXPECT_EQ(problem("optimizer", "org.x.opt/adam"),
            "the plugin org.x.opt 1.0.0 offers no optimizer \"adam\"; did you mean \"adamw\"? (it "
            "offers: "
            "adamw)");
  EXPECT_EQ(problem("model", "org.x.opt/mlp"),
            "the plugin org.x.opt 1.0.0 offers no model \"mlp\"");
}

TEST_F(PluginCatalogTest, NamesAPluginThatOffersTheNameButCannotBeUsed) {
  const fs::path file = given("a", "org.x.opt", {{"optimizer", "lion"}}, "libtorch=2.6.0\n");
  const std::string reason =
      "was built for libtorch 2.6.0, this runner uses 1.13.0; rebuild it against this SDK";

  EXPECT_EQ(problem("optimizer", "lion"),
            "no plugin offers the optimizer \"lion\"; org.x.opt 1.0.0 (" + file.string() +
                ") offers it but cannot be used: it " + reason);
  EXPECT_EQ(problem("optimizer", "org.x.opt/lion"),
            "the plugin org.x.opt 1.0.0 (" + file.string() + ") cannot be used: it " + reason);
}

TEST_F(PluginCatalogTest, NamesDamagedFilesWhereAComponentIsMissed) {
  const fs::path good = given("a", "org.x.models", {{"model", "mlp"}});
  const fs::path damaged = place("a/optimizers.so", "junk");
  const auto catalog = scan();

  const Lookup none_at_all = catalog->find("optimizer", "adamw");
  EXPECT_TRUE(none_at_all.plugin_at_fault);
  EXPECT_THAT(none_at_all.problem, ::testing::HasSubstr(damaged.string() + " cannot be used: it "));
  const Lookup not_this_one = catalog->find("model", "transformer");
  EXPECT_TRUE(not_this_one.plugin_at_fault);
  EXPECT_THAT(not_this_one.problem, ::testing::HasSubstr(damaged.string()));
  // A slip of the finger is the author's.
  EXPECT_FALSE(catalog->find("model", "mpl").plugin_at_fault);

  EXPECT_EQ(catalog->why_missing("org.x.models"), "");
  EXPECT_THAT(catalog->why_missing("org.x.optimizers"), ::testing::HasSubstr(damaged.string()));
}

TEST_F(PluginCatalogTest, GivesEveryFileAVerdict) {
  const fs::path first = given("a", "org.x.one", {{"loss", "l"}});
  given("b", "org.x.one", {{"loss", "l"}});
  given("b", "org.x.old", {{"loss", "o"}}, "libtorch=1.0.0\n");
  given("b", "org.x.unmarked", {{"loss", "u"}}, "");
  given("b", "org.x.future", {{"hologram", "h"}});
  place("b/plain.so", FakeLibrary().bytes());
  place("b/text.so", "INPUT(libfoo.so)");
  const fs::path open = given("b", "org.x.open", {{"loss", "w"}});
  fs::permissions(open, fs::perms(0646));
  const auto catalog = scan();

  std::map<std::string, std::string> verdicts;
  for (const PluginFile& plugin : catalog->plugins()) {
    verdicts[fs::path(plugin.file).lexically_relative(folder_.path()).string()] =
        std::string(verdict_word(plugin.verdict)) + ": " + plugin.reason;
  }

  const std::map<std::string, std::string> expected{
      {"a/one.so", "usable: "},
      {"b/one.so", "shadowed: is hidden by org.x.one 1.0.0 (" + first.string() +
                       "), which has the same id and comes first in the search path"},
      {"b/old.so",
       "incompatible: was built for libtorch 1.0.0, this runner uses 1.13.0; rebuild it "
       "against this SDK"},
      {"b/unmarked.so",
       "invalid: has a manifest but does not say how it was built; build it again"},
      {"b/future.so",
       "incompatible: offers \"h\" for the interface treadle.hologram/0, which this "
       "runner does not have; rebuild it against this SDK"},
      {"b/plain.so", "not a plugin: is a shared library without a Treadle manifest"},
      {"b/text.so", "invalid: is not a shared library: it does not begin with an ELF header"},
      {"b/open.so", "refused: can be written by everyone (mode 0646); run `chmod o-w " +
                        open.string() + "` or allow it with --allow-writable-plugins"}};
  EXPECT_EQ(verdicts, expected);
}

TEST_F(PluginCatalogTest, UsesWhatEveryoneMayWriteWhenThatIsAllowed) {
  fs::permissions(given("a", "org.x.open", {{"loss", "w"}}), fs::perms(0666));

  EXPECT_FALSE(scan()->find("loss", "w").found);
  allow_writable_ = true;
  EXPECT_TRUE(scan()->find("loss", "w").found);
}

TEST_F(PluginCatalogTest, IsNotHiddenByAPluginThatCannotBeUsed) {
  given("a", "org.x.one", {{"loss", "l"}}, "libtorch=1.0.0\n");
  const fs::path usable = given("b", "org.x.one", {{"loss", "l"}});
  const auto catalog = scan();

  EXPECT_EQ(catalog->find("loss", "org.x.one/l").found->plugin->file, usable);
  EXPECT_EQ(catalog->plugin("org.x.one")->file, usable);
}

TEST_F(PluginCatalogTest, RefusesANamedFileThatCannotBeUsed) {
  named_ = {place("c/text.so", "text"), given("c", "org.x.old", {{"loss", "l"}}, "libtorch=1\n"),
            given("c", "org.x.good", {{"loss", "m"}})};
  try {
    scan();
    FAIL() << "they were ignored";
  } catch (const PluginError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("--plugin " + named_[0].string() +
                                ": cannot be used: it is not a shared library: it does not "
                                "begin with an ELF header\n--plugin " +
                                named_[1].string() + ": cannot be used: it "),
                      Not(HasSubstr("good.so"))));
  }
  only_report_ = true;
  EXPECT_EQ(scan()->plugins()[0].verdict, Verdict::kInvalid);
}

TEST_F(PluginCatalogTest, ExaminesFilesAnywhere) {
  examined_ = {given("c", "org.x.one", {{"loss", "l"}}), place("c/text.so", "text")};
  const auto catalog = scan();

  ASSERT_EQ(catalog->plugins().size(), 2u);
  EXPECT_EQ(catalog->plugins()[0].verdict, Verdict::kUsable);
  EXPECT_EQ(catalog->plugins()[0].origin, "outside the search path");
  EXPECT_EQ(catalog->plugins()[1].verdict, Verdict::kInvalid);
}

TEST_F(PluginCatalogTest, OfManyNamesSaysWhereToReadThem) {
  std::vector<std::pair<std::string, std::string>> losses;
  for (char name = 'a'; name <= 'u'; ++name)
    losses.emplace_back("loss", std::string(9, name));
  given("a", "org.x.many", losses);

  EXPECT_EQ(problem("loss", "mine"),
            "no plugin offers the loss \"mine\" (there are 21, see \"workflow-runner plugins list "
            "loss\"; " +
                looked_in() + " (not there))");
}

TEST_F(PluginCatalogTest, CountsOneFileUnderTwoNamesOnce) {
  const fs::path file = given("a", "org.x.one", {{"loss", "l"}});
  fs::create_hard_link(file, folder_.path() / "a/two.so");
  fs::create_symlink(file, folder_.path() / "a/three.so");
  fs::create_symlink("/nowhere", folder_.path() / "a/four.so");

  EXPECT_EQ(scan()->plugins().size(), 1u);
}

TEST_F(PluginCatalogTest, SeesWhatChangedSinceTheLastScan) {
  const fs::path file = given("a", "org.x.one", {{"loss", "l"}});
  scan();
  given("a", "org.x.two", {{"loss", "m"}});
  fs::remove(file);

  EXPECT_EQ(problem("loss", "l"),
            "no plugin offers the loss \"l\" (there are: m; " + looked_in() + " (not there))");
  EXPECT_TRUE(scan()->find("loss", "m").found);
}

TEST_F(PluginCatalogTest, SaysWhenASchemaIsGoneSinceTheScan) {
  const fs::path file = given("a", "org.x.one", {{"loss", "l"}});
  const auto catalog = scan();
  const CatalogComponent component = *catalog->find("loss", "l").found;
  fs::remove(file);
  const std::string sentence =
      "org.x.one 1.0.0 (" + file.string() + ") cannot be read: No such file or directory";

  try {
    catalog->schema(component);
    FAIL() << "read";
  } catch (const PluginError& error) {
    EXPECT_EQ(error.what(), sentence);
  }
  EXPECT_EQ(CatalogSchemaIndex(catalog).find("loss", "l").problem, sentence);
}

TEST_F(PluginCatalogTest, ReadsAPluginOnceForAllOfItsSchemas) {
  const fs::path file = given("a", "org.x.opt", {{"optimizer", "sgd"}, {"optimizer", "adam"}});
  const auto catalog = scan();
  catalog->schema(*catalog->find("optimizer", "sgd").found);
  fs::remove(file);

  EXPECT_EQ(catalog->schema(*catalog->find("optimizer", "adam").found),
            json({{"type", "object"}, {"title", "adam"}}));
}

// Its note may have been written by anything.
TEST_F(PluginCatalogTest, RefusesASchemaThatDocumentsCannotBeCheckedBy) {
  const fs::path file = given("a", "org.x.one", {{"loss", "l"}}, kFingerprint, {{"required", "x"}});
  const auto catalog = scan();

  EXPECT_EQ(
      CatalogSchemaIndex(catalog).find("loss", "l").problem,
      "org.x.one 1.0.0 (" + file.string() +
          ") has a damaged manifest: the schema of \"l\" (treadle.loss/0) is wrong: /required: "
          "expected an array of keys, got \"x\" (text); build it again");
}

TEST_F(PluginCatalogTest, ServesSchemasToTheCheckingOfDocuments) {
  given("a", "org.x.one", {{"loss", "l"}});
  const CatalogSchemaIndex index(scan());

  const FoundComponent found = index.find("loss", "l");
  const FoundComponent missing = index.find("loss", "k");

  ASSERT_NE(found.schema, nullptr);
  EXPECT_EQ((*found.schema)["title"], "l");
  EXPECT_EQ(found.qualified_name, "org.x.one/l");
  EXPECT_EQ(missing.schema, nullptr);
  EXPECT_EQ(missing.problem,
            "no plugin offers the loss \"k\" (there are: l; " + looked_in() + " (not there))");
}

TEST_F(PluginCatalogTest, ReadsTheHostsBuildFromItsLibraryWhenNobodySays) {
  CatalogOptions options;
  options.folders = {{folder_.path(), "--plugin-dir"}};

  EXPECT_NE(PluginCatalog::scan(std::move(options))->host().fingerprint.find("libtorch="),
            std::string::npos);
}

}  // namespace
}  // namespace treadle
