#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/system/patience.h>

struct pg_conn;
struct pg_result;

namespace treadle::postgresql {

/// A server that was restarted is there again within this time.
inline constexpr Patience::Duration kServerPatience{60};
inline constexpr Patience::Duration kLongestServerWait{0.25};

/// One connection to a PostgreSQL server, which is opened when it is needed and may be lost.
///
/// Every failure is a StorageError that names the server, never a password, and has a remedy, or
/// Unavailable where another try may succeed. Not thread-safe.
class PostgresqlConnection {
 public:
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  using Result = std::unique_ptr<pg_result, Clear>;

  /// The server cannot be reached, or the connection was lost, with libpq's or the server's words.
  /// The connection is of no use then. Never leaves the plugin.
  struct Unavailable {
    std::string words;
  };

  /// `location` is a connection string; empty: the environment (PGHOST, …). A text that is none is
  /// a StorageError which begins with `parameter`.
  PostgresqlConnection(std::string location, std::string_view parameter);

  /// Connects where there is no connection. `patience` limits the time that takes.
  void connect(const Patience& patience);
  /// Sends by `send`, a function of a pg_conn*, which is nonzero when it succeeded, and waits for
  /// the last answer: rows, done, or ready to take rows. Waits `patience` at most; null: until the
  /// connection ends.
  template <typename Send>
  Result ask(Send&& send, const Patience* patience = nullptr) {
    if (send(connection_.get()) == 0)
      throw Unavailable{words_of_connection()};
    return answer(patience);
  }
  /// Closes the connection and waits for another try, or throws StorageError when the time is over.
  void wait_or_fail(Patience& patience, const Unavailable& now);
  void close() noexcept;

  /// Throws a StorageError of this server.
  [[noreturn]] void fail(const std::string& words, std::string_view remedy) const;

  /// PostgreSQL "studies" at db.example.org.
  const std::string& name() const { return name_; }
  /// Whether the connection string itself has a password.
  bool has_password() const { return !secrets_.empty(); }
  pg_conn* handle() const { return connection_.get(); }

 private:
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };

  Result answer(const Patience* patience);
  Result wait_for_answer(const Patience* patience);
  std::string words_of_connection() const;
  std::string without_secrets(std::string text) const;

  std::string location_;
  std::string name_;
  std::vector<std::string> secrets_;
  std::unique_ptr<pg_conn, Finish> connection_;
};

}  // namespace treadle::postgresql
