#include "postgresql_connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::postgresql {
namespace {

constexpr int kShortestTimeout = 2;  // seconds; libpq has no shorter one

constexpr std::string_view kGrant =
    "; grant it (GRANT USAGE, CREATE ON SCHEMA …), or choose another database";

/// SQLSTATEs, or their first two characters for a whole class: appendix A of PostgreSQL's manual.
struct StateRemedy {
  std::string_view state;
  std::string_view text;  ///< empty: try again
};
constexpr std::array kStateRemedies{
    StateRemedy{"08", ""},     // the connection was lost
    StateRemedy{"57P01", ""},  // the server is being shut down
    StateRemedy{"57P02", ""},  // a server process crashed
    StateRemedy{"57P03", ""},  // the server is starting
    StateRemedy{"57P05", ""},  // the session was idle for too long
    StateRemedy{"40001", ""},  // two transactions met, where they are serializable
    StateRemedy{"40P01", ""},
    StateRemedy{"53300", ""},  // too many connections
    StateRemedy{"42501", kGrant},
    StateRemedy{"3F000", kGrant},  // none in the search path that we may see
    StateRemedy{"23503", "; the study was deleted while it was worked on: begin it anew"},
    StateRemedy{"53100", "; make room on the server's disk; the data before it is kept"},
    StateRemedy{"53", "; the server lacks resources; the data before it is kept"},
    StateRemedy{"25006", "; this server, or this transaction, only reads"},
    StateRemedy{"XX", "; look at the server's log"}};

const StateRemedy* remedy_of(std::string_view state) {
  const auto found =
      std::find_if(kStateRemedies.begin(), kStateRemedies.end(),
                   [&](const StateRemedy& remedy) { return state.starts_with(remedy.state); });
  return found == kStateRemedies.end() ? nullptr : found;
}

// The connection string after defaults of ours, and before what has to be.
class Keywords {
 public:
  Keywords(const std::string& location, double timeout)
      : timeout_(std::to_string(
            std::max(kShortestTimeout, static_cast<int>(std::ceil(std::min(timeout, 1e6)))))),
        names_{"connect_timeout", "tcp_user_timeout",          "dbname",
               "client_encoding", "fallback_application_name", nullptr},
        values_{timeout_.c_str(), "30000", location.c_str(), "UTF8", "treadle", nullptr} {}
  Keywords(const Keywords&) = delete;
  Keywords& operator=(const Keywords&) = delete;

  const char* const* names() const { return names_.data(); }
  const char* const* values() const { return values_.data(); }

 private:
  std::string timeout_;
  std::array<const char*, 6> names_;
  std::array<const char*, 6> values_;
};

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void PostgresqlConnection::Finish::operator()(pg_conn* connection) const noexcept {
  PQfinish(connection);
}

void PostgresqlConnection::Clear::operator()(pg_result* result) const noexcept {
  PQclear(result);
}

PostgresqlConnection::PostgresqlConnection(std::string location, std::string_view parameter)
    : location_(std::move(location)), name_("PostgreSQL") {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(location_.c_str(), nullptr), &PQconninfoFree);
  // The words of libpq may repeat a part of the password.
  if (options == nullptr)
    throw StorageError(std::string(parameter) +
                       " is no connection string; write postgresql://user@host/database, or "
                       "\"host=… dbname=…\"");
  std::string host = "its local socket";
  std::string port;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr || *option->val == '\0')
      continue;
    const std::string_view keyword = option->keyword;
    if (*option->dispchar == '*')
      secrets_.push_back(option->val);
    if (keyword == "dbname")
      name_ += " " + quote_text(option->val);
    if (keyword == "host" || (keyword == "hostaddr" && host == "its local socket"))
      host = option->val;
    if (keyword == "port")
      port = std::string(":") + option->val;
  }
  name_ += " at " + host + port;
}

std::string PostgresqlConnection::without_secrets(std::string text) const {
  for (const std::string& secret : secrets_) {
    for (std::size_t at = 0; (at = text.find(secret, at)) != text.npos; at += 3)
      text.replace(at, secret.size(), "***");
  }
  return text;
}

void PostgresqlConnection::fail(const std::string& words, std::string_view remedy) const {
  throw StorageError(name_ + ": " + plain_text(without_secrets(one_line(words))) +
                     std::string(remedy));
}

std::string PostgresqlConnection::words_of_connection() const {
  return PQerrorMessage(connection_.get());
}

void PostgresqlConnection::connect(const Patience& patience) {
  if (connection_ != nullptr && PQstatus(connection_.get()) == CONNECTION_OK)
    return;
  const Keywords keywords(location_, patience.left().count());
  const auto try_once = [&] {
    connection_.reset(PQconnectdbParams(keywords.names(), keywords.values(), 1));
    if (connection_ == nullptr)
      throw std::bad_alloc();
    return PQstatus(connection_.get()) == CONNECTION_OK;
  };
  if (!try_once()) {
    // A server that takes connections has refused this one: for who we are, or what we want there.
    // Unless it has come back between the two questions.
    if (PQpingParams(keywords.names(), keywords.values(), 1) != PQPING_OK)
      throw Unavailable{words_of_connection()};
    if (!try_once())
      fail(words_of_connection(),
           "; look at the user, the password (~/.pgpass), the database, and how many connections "
           "the server takes");
  }
  // Notices, as of tables that are there already, would be printed.
  PQsetNoticeReceiver(
      connection_.get(), [](void*, const PGresult*) {}, nullptr);
}

PostgresqlConnection::Result PostgresqlConnection::wait_for_answer(const Patience* patience) {
  PGconn* const connection = connection_.get();
  Result last;
  for (;;) {
    while (PQisBusy(connection) != 0) {
      pollfd socket{PQsocket(connection), POLLIN, 0};
      const int wait =
          patience == nullptr ? -1 : 1 + static_cast<int>(1000 * patience->left().count());
      const int ready = ::poll(&socket, 1, wait);
      if (ready < 0 && errno != EINTR)
        throw Unavailable{"the connection was lost"};
      if (ready == 0) {
        connection_.reset();  // the answer to this is no answer to what comes next
        fail("no answer within " + nlohmann::json(patience->limit().count()).dump() + " s",
             "; somebody may have locked the tables treadle_…");
      }
      if (PQconsumeInput(connection) == 0)
        throw Unavailable{words_of_connection()};
    }
    Result next(PQgetResult(connection));
    if (next == nullptr)
      return last;
    // Of a script, the statement that failed is the last one.
    last = std::move(next);
    // Rows may be sent now; no answer follows before they were.
    if (PQresultStatus(last.get()) == PGRES_COPY_IN)
      return last;
  }
}

PostgresqlConnection::Result PostgresqlConnection::answer(const Patience* patience) {
  Result result = wait_for_answer(patience);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_COPY_IN)
    return result;
  const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  // Without a state it was libpq that failed, not the server.
  if (state == nullptr)
    throw Unavailable{PQresultErrorMessage(result.get())};
  const char* const primary = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
  std::string words = primary == nullptr ? state : primary;
  const StateRemedy* const remedy = remedy_of(state);
  if (remedy != nullptr && remedy->text.empty())
    throw Unavailable{words};
  if (const char* const place = PQresultErrorField(result.get(), PG_DIAG_STATEMENT_POSITION))
    words += std::string(" (at character ") + place + " of the statement)";
  fail(words, remedy == nullptr ? "" : remedy->text);
}

void PostgresqlConnection::wait_or_fail(Patience& patience, const Unavailable& now) {
  close();
  if (!patience.wait())
    fail(now.words, "; start the server, or look at the location (tried for " +
                        nlohmann::json(patience.limit().count()).dump() + " s)");
}

void PostgresqlConnection::close() noexcept {
  connection_.reset();
}

}  // namespace treadle::postgresql
