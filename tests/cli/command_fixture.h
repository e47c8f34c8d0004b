#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace treadle {

/// What a command did.
struct Finished {
  int code = -1;  ///< exit code; 128 + the signal's number when a signal ended it
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// A program that is running.
class Running {
 public:
  /// `words` begin with the program: a path, or a name that PATH knows.
  Running(const std::vector<std::string>& words, const std::vector<std::string>& environment,
          const std::filesystem::path& folder, bool on_terminal);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Waits until its standard output contains `text`; false when it ends, or a minute passes,
  /// without.
  bool has_printed(std::string_view text);
  void send(int signal) const;
  pid_t process() const { return process_; }
  Finished wait();

 private:
  bool read_some(int timeout_ms);

  pid_t process_ = -1;
  int out_ = -1;
  int err_ = -1;
  Finished finished_;
};

/// Starts the built programs in a folder of the test's own, where nothing of the user's is found.
class CommandFixture : public testing::Test {
 protected:
  CommandFixture();
  ~CommandFixture() override;

  /// Runs `workflow-runner` to the end.
  Finished run(const std::vector<std::string>& words);
  /// Some containers have no /dev/pts.
  static bool terminals_exist();
  /// The same in a terminal of 100 columns.
  Finished run_on_terminal(const std::vector<std::string>& words);
  Running start(const std::vector<std::string>& words, bool on_terminal = false);
  /// Another program, in the same folder and environment.
  Running start_program(const std::vector<std::string>& words);
  /// Runs another program to the end.
  Finished run_program(const std::vector<std::string>& words);
  /// Skips the test where the component was not built: its library may be missing. For SetUp().
  void skip_without(const std::string& interface_word, const std::string& name);
  /// The path of `workflow-runner`.
  static std::string runner();

  void set(const std::string& variable, const std::string& value);
  std::filesystem::path write(const std::string& name, std::string_view text);
  std::string read(const std::filesystem::path& path) const;

  /// Writes points.csv: 60 rows, columns x, y and class (`blue` or `red`), easy to learn.
  void given_points();
  /// Writes points.json: a model that learns points.csv in `epochs` epochs; `more` replaces or adds
  /// top-level keys.
  void given_document(int epochs, const nlohmann::json& more = nlohmann::json::object());
  /// The only folder in runs/.
  std::filesystem::path only_run() const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> environment_;
};

}  // namespace treadle
