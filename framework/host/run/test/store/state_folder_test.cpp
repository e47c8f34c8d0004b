// State folders: read back as they were written, and refused with a sentence where somebody else
// wrote them.
#include <treadle/host/run/state_folder.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/tensor/safetensors.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class StateFolder : public ::testing::Test {
 protected:
  StateFolder() {
    std::string pattern = (fs::temp_directory_path() / "treadle-state-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
  }
  ~StateFolder() override { fs::remove_all(scratch_); }

  fs::path folder() const { return scratch_ / "state"; }

  /// Writes a folder whose checksums are right, as whoever changes it by hand would.
  void write(const json& structure, const TensorFile& tensors = {}, bool has_model = false) const {
    fs::create_directories(folder());
    json hashes = {{"state", hash_text(structure.dump())}};
    for (const char* const name : {"weights.safetensors", "state.safetensors"}) {
      write_safetensors(folder() / name, tensors);
      hashes[name] = hash_file(folder() / name);
    }
    const json content = {
        {"format", 1}, {"hashes", hashes}, {"has_model", has_model}, {"state", structure}};
    std::ofstream(folder() / "state.json") << content.dump();
  }

  /// The refusal, without the folder's name.
  std::string refusal() const {
    try {
      read_state_folder(folder());
    } catch (const StorageError& error) {
      std::string text = error.what();
      return text.replace(0, folder().string().size() + 1, "");
    }
    return "none";
  }

  static json one(const std::string& name, json value) {
    json object = json::object();
    object[name] = std::move(value);
    return object;
  }
  static json state(json values = json::object(), json parts = json::object()) {
    json structure = one("version", 1);
    structure["values"] = std::move(values);
    structure["parts"] = std::move(parts);
    return structure;
  }
  static TensorFile tensor(const std::string& name) { return {{{name, at::full({1}, 2.0)}}, {}}; }

  fs::path scratch_;
};

TEST_F(StateFolder, IsReadAsItWasWritten) {
  StateDict model;
  model.put("layer.weight", at::arange(6));
  StateDict moments(4);
  moments.put("m", at::full({2}, 0.5));
  StateDict written(3);
  written.put("step", json(7));
  written.put("model", model);
  written.put("optimizer", moments);

  write_state_folder(folder(), written);
  const StateDict read = read_state_folder(folder());

  EXPECT_EQ(read.version(), 3);
  EXPECT_EQ(read.value("step"), 7);
  EXPECT_TRUE(read.part("model").tensor("layer.weight").equal(at::arange(6)));
  EXPECT_EQ(read.part("optimizer").version(), 4);
  EXPECT_TRUE(read.part("optimizer").tensor("m").equal(at::full({2}, 0.5)));
}

/// Whom permissions bind, while it lives: also where the tests run as root.
class Unprivileged {
 public:
  explicit Unprivileged(const fs::path& folder) {
    constexpr uid_t kNobody = 65534;
    is_root_ = ::geteuid() == 0;
    if (is_root_ && (::chown(folder.c_str(), kNobody, kNobody) != 0 || ::seteuid(kNobody) != 0))
      ADD_FAILURE() << "cannot become nobody";
  }
  ~Unprivileged() {
    if (is_root_ && ::seteuid(0) != 0)
      ADD_FAILURE() << "cannot become root again";
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool is_root_ = false;
};

TEST_F(StateFolder, IsInPlaceThoughTheOneBeforeCannotBeDeleted) {
  const Unprivileged unprivileged(scratch_);
  const auto numbered = [](int number) {
    StateDict state;
    state.put("number", json(number));
    return state;
  };
  write_state_folder(folder(), numbered(1));
  fs::create_directories(folder() / "theirs");
  std::ofstream(folder() / "theirs" / "file") << "text";
  ASSERT_EQ(::chmod((folder() / "theirs").c_str(), 0500), 0);

  for (const int number : {2, 3}) {
    write_state_folder(folder(), numbered(number));

    EXPECT_EQ(read_state_folder(folder()).value("number"), number);
  }
  const std::string making = "state." + std::to_string(::getpid()) + ".tmp";
  for (const fs::path& at : {folder(), scratch_ / making})
    ::chmod((at / "theirs").c_str(), 0700);
}

TEST_F(StateFolder, IsWrittenThoughAnotherProcessTakesTheFolderAboveAway) {
  using std::chrono::microseconds;
  StateDict state;
  state.put("values", at::arange(1000));
  for (microseconds delay{0}; delay < microseconds{3000}; delay += microseconds{30}) {
    const fs::path trial = scratch_ / std::to_string(delay.count());
    std::thread other([&] {
      std::this_thread::sleep_for(delay);
      std::error_code ignored;
      fs::rename(trial, trial.string() + ".gone", ignored);
    });

    EXPECT_NO_THROW(write_state_folder(trial / "state", state)) << delay.count() << " us";

    other.join();
  }
}

TEST_F(StateFolder, RefusesNamesThatAreNone) {
  write(state(one("a/b", 1)));
  EXPECT_EQ(refusal(), "state.json: is damaged: \"a/b\" cannot be a name in it");
  write(state(json::object(), one("", state())));
  EXPECT_EQ(refusal(), "state.json: is damaged: \"\" cannot be a name in it");
  for (const char* const name : {"", "/", "a/", "a//b"}) {
    write(state(), tensor(name));
    EXPECT_EQ(refusal(), "state.json: is damaged: \"\" cannot be a name in it") << name;
  }
  // Weights alone are in one part, whose names have no slash.
  write(state(), tensor("a/b"), /*has_model=*/true);
  EXPECT_EQ(refusal(), "weights.safetensors: is damaged: a tensor cannot be called \"a/b\"");
}

TEST_F(StateFolder, RefusesWhatIsNestedTooDeeply) {
  json deep = state();
  for (int level = 0; level < 200; ++level)
    deep = state(json::object(), one("a", std::move(deep)));
  write(deep);
  EXPECT_EQ(refusal(), "state.json: is damaged: its parts are nested too deeply");

  std::string name;
  for (int level = 0; level < 100'000; ++level)
    name += "a/";
  write(state(), tensor(name + "a"));
  EXPECT_EQ(refusal(), "state.json: is damaged: its parts are nested too deeply");

  write(state());
  std::ofstream(folder() / "state.json") << std::string(1'000'000, '[');
  EXPECT_EQ(refusal(), "state.json: is damaged: it is nested too deeply");
}

TEST_F(StateFolder, RefusesWhatIsNoState) {
  for (const json& structure : {json(3), json::array(), state(json::array({1})),
                                state(json::object(), 3), one("version", 1)}) {
    write(structure);
    EXPECT_EQ(refusal(), "state.json: is damaged: it is not what was written there") << structure;
  }
  json odd = state();
  odd["version"] = 1e300;
  write(odd);
  EXPECT_EQ(refusal(), "state.json: is damaged: its version is not a number");
}

TEST_F(StateFolder, ShowsAnotherFormatWithoutItsControlCharacters) {
  write(state());
  std::ofstream(folder() / "state.json") << R"({"format": "\u001b[2J\u007f"})";

  const std::string told = refusal();

  EXPECT_THAT(told, ::testing::StartsWith("state.json: has format "));
  EXPECT_EQ(told.find_first_of("\x1b\x7f"), std::string::npos) << told;
}

}  // namespace
}  // namespace treadle
