#include <treadle/host/catalog/plugin_cache.h>

#include "targets.h"
#include "test/fake_library.h"

namespace treadle::fuzz {
namespace {

using testing::FakeLibrary;
using testing::TemporaryFolder;

struct Place {
  TemporaryFolder folder;
  std::filesystem::path plugin;
  FileStamp stamp;
  FileFacts facts;

  Place() {
    FakeLibrary library;
    library.manifest =
        R"({"manifest_version": 1, "id": "org.example.a", "version": "1.0.0", "components": []})";
    library.fingerprint = "libtorch=1\n";
    plugin = folder.write("a.so", library.bytes());
    stamp = FileStamp::of(plugin).value();
    facts = FileFacts::read(plugin, stamp);
  }

  std::filesystem::path cache() const { return folder.path() / "plugins.json"; }
};

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

bool same(const FileFacts& a, const FileFacts& b) {
  return a.stamp == b.stamp && *a.fingerprint == *b.fingerprint && a.needed == b.needed &&
         a.build_id == b.build_id && a.manifest == b.manifest && a.problem == b.problem &&
         a.foreign == b.foreign;
}

}  // namespace

void plugin_cache(std::string_view bytes) {
  static const Place place;
  const FileStamp& stamp = place.stamp;
  std::string text = replaced(std::string(bytes), "@PLUGIN@", place.plugin.string());
  const bool knows_stamp = text.find("@STAMP@") != std::string::npos;
  text = replaced(std::move(text), "@STAMP@",
                  std::to_string(stamp.device) + "," + std::to_string(stamp.inode) + "," +
                      std::to_string(stamp.size) + "," + std::to_string(stamp.modified_ns) + "," +
                      std::to_string(stamp.changed_ns));
  place.folder.write("plugins.json", text);

  PluginCache cache(place.cache());
  const FileFacts* const facts = cache.facts(place.plugin);

  promise(facts != nullptr && facts->fingerprint != nullptr, "there are facts of every file");
  promise(knows_stamp || same(*facts, place.facts),
          "a cache that does not know this state of a file changes nothing");
  promise(cache.facts(place.folder.path() / "absent.so") == nullptr,
          "there are no facts of a file that is gone");
  const FileFacts before = *facts;
  cache.save();
  PluginCache again(place.cache());
  promise(same(*again.facts(place.plugin), before), "a cache written again says the same");
}

}  // namespace treadle::fuzz
