#pragma once

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/scratch_folder.h>

namespace treadle::postgresql {

/// A PostgreSQL server of a test's own: a new cluster in a folder that is deleted with it, reached
/// by a Unix socket there and by no network. PostgreSQL does not run as root, so as root it is
/// run by `nobody`.
class TestServer {
 public:
  /// Where initdb and postgres lie; nothing where they are not installed.
  static std::optional<std::filesystem::path> programs() {
    std::vector<std::filesystem::path> folders;
    std::error_code none;
    for (const auto& version :
         std::filesystem::directory_iterator("/usr/lib/postgresql", none))  // Debian's
      folders.push_back(version.path() / "bin");
    const char* const path = std::getenv("PATH");
    std::istringstream parts(path == nullptr ? "" : path);
    for (std::string folder; std::getline(parts, folder, ':');)
      folders.push_back(folder);
    for (const auto& folder : folders) {
      if (std::filesystem::exists(folder / "initdb") &&
          std::filesystem::exists(folder / "postgres"))
        return folder;
    }
    return std::nullopt;
  }

  enum class Sync { kOff, kOn };

  /// Tests do not cut the power, so their servers need not sync.
  explicit TestServer(Sync sync = Sync::kOff) : sync_(sync) {
    if (is_root())
      TREADLE_EXPECTS(::chown(folder_.path().c_str(), kNobody, kNobody) == 0, "root may do this");
    const int status =
        wait_for(run({"initdb", "--pgdata", data(), "--username", "treadle", "--auth", "trust",
                      "--no-sync", "--no-locale", "--encoding", "UTF8"}));
    TREADLE_EXPECTS(status == 0, "initdb makes a cluster in " + data());
    start();
  }
  ~TestServer() { stop(SIGQUIT); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void start() {
    server_ = run({"postgres", "-D", data(), "-k", folder_.path().string(), "-c",
                   "listen_addresses=", "-c", sync_ == Sync::kOn ? "fsync=on" : "fsync=off", "-c",
                   "max_connections=40"});
    for (int tries = 0; PQping(location().c_str()) != PQPING_OK && tries < 3000; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  /// SIGINT: as on a restart, every connection is closed; SIGQUIT: at once, as after a crash.
  void stop(int signal) {
    if (server_ == 0)
      return;
    ::kill(server_, signal);
    wait_for(std::exchange(server_, 0));
  }

  std::filesystem::path folder() const { return folder_.path(); }
  std::string location() const {
    return "host=" + folder_.path().string() + " user=treadle dbname=postgres";
  }
  /// A place of its own in the database: a schema that tables are looked for in.
  std::string place(const std::string& name) const {
    by_hand("CREATE SCHEMA IF NOT EXISTS \"" + name + "\"");
    return location() + " options='-c search_path=\"" + name + "\"'";
  }

  /// What psql prints: the fields of all rows.
  std::string by_hand(const std::string& sql, const std::string& location) const {
    PGconn* const connection = PQconnectdb(location.c_str());
    PQsetNoticeReceiver(
        connection, [](void*, const PGresult*) {}, nullptr);
    PGresult* const result = PQexec(connection, sql.c_str());
    std::string got = PQresultErrorMessage(result);
    for (int row = 0; row < PQntuples(result); ++row) {
      for (int column = 0; column < PQnfields(result); ++column)
        got += std::string(PQgetisnull(result, row, column) ? "NULL"
                                                            : PQgetvalue(result, row, column)) +
               "|";
    }
    PQclear(result);
    PQfinish(connection);
    return got;
  }
  std::string by_hand(const std::string& sql) const { return by_hand(sql, location()); }

 private:
  static constexpr uid_t kNobody = 65534;
  static bool is_root() { return ::geteuid() == 0; }
  std::string data() const { return folder_.path() / "data"; }

  pid_t run(std::vector<std::string> words) const {
    const std::string program = *programs() / words[0];
    std::vector<char*> arguments;
    for (std::string& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid != 0)
      return pid;
    if (is_root() && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
      ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    const std::string log = folder_.path() / "log";
    static_cast<void>(std::freopen(log.c_str(), "a", stdout));
    static_cast<void>(std::freopen(log.c_str(), "a", stderr));
    if (::chdir("/") == 0)
      ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const testing::ScratchFolder folder_;
  const Sync sync_;
  pid_t server_ = 0;
};

/// The server of all tests that leave it alone. It is there before any of them forks.
class SharedServer final : public ::testing::Environment {
 public:
  static TestServer& server() { return *started; }

 private:
  void SetUp() override {
    if (TestServer::programs())
      started = std::make_unique<TestServer>();
  }
  void TearDown() override { started.reset(); }

  static inline std::unique_ptr<TestServer> started;
};

inline ::testing::Environment* const kSharedServer =
    ::testing::AddGlobalTestEnvironment(new SharedServer);

/// Stands between clients and a server, and can lose an answer of it: then the connection is closed
/// when the server has answered, before the client has heard of it.
class LossyProxy {
 public:
  explicit LossyProxy(const TestServer& server)
      : to_(server.folder() / ".s.PGSQL.5432"), at_(folder_.path() / ".s.PGSQL.5432") {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = address_of(at_);
    TREADLE_EXPECTS(
        ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
            ::listen(listener_, 8) == 0,
        "a socket can be made at " + at_);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~LossyProxy() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
    for (const auto& [client, server] : pairs_)
      close_both(client, server);
  }

  std::string location() const {
    return "host=" + folder_.path().string() + " user=treadle dbname=postgres";
  }
  /// From the next request on, that many answers are lost.
  void lose(int answers) { to_lose_ = answers; }
  int lost() const { return lost_; }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  }
  static void close_both(int client, int server) {
    ::close(client);
    ::close(server);
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> ready{{listener_, POLLIN, 0}};
      for (const auto& [client, server] : pairs_) {
        ready.push_back({client, POLLIN, 0});
        ready.push_back({server, POLLIN, 0});
      }
      if (::poll(ready.data(), ready.size(), 10) <= 0)
        continue;
      for (std::size_t i = 1; i < ready.size(); i += 2) {
        const bool goes_on =
            (ready[i].revents == 0 || pass(ready[i].fd, ready[i + 1].fd)) &&
            (ready[i + 1].revents == 0 || (!loses() && pass(ready[i + 1].fd, ready[i].fd)));
        if (!goes_on) {
          pairs_.erase(ready[i].fd);
          close_both(ready[i].fd, ready[i + 1].fd);
        }
      }
      if (ready[0].revents != 0) {
        const int client = ::accept(listener_, nullptr, nullptr);
        const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
        const sockaddr_un address = address_of(to_);
        if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
          pairs_[client] = server;
        else
          close_both(client, server);
      }
    }
  }
  bool loses() {
    if (to_lose_ == 0)
      return false;
    --to_lose_;
    ++lost_;
    return true;
  }
  static bool pass(int from, int to) {
    char bytes[4096];
    const ssize_t count = ::read(from, bytes, sizeof bytes);
    return count > 0 && ::write(to, bytes, static_cast<std::size_t>(count)) == count;
  }

  const testing::ScratchFolder folder_;
  std::string to_;
  std::string at_;
  int listener_ = -1;
  std::map<int, int> pairs_;
  std::atomic<int> to_lose_{0};
  std::atomic<int> lost_{0};
  std::jthread thread_;
};

}  // namespace treadle::postgresql
