#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "sqlite_data.h"
#include "table_promises.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

/// A database with these bytes, by a name: SQLite follows links, and opens no file without one.
class DatabaseFile {
 public:
  explicit DatabaseFile(std::string_view bytes)
      : path_("/dev/shm/treadle-fuzz-" + std::to_string(::getpid()) + ".db") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~DatabaseFile() {
    std::error_code none;
    std::filesystem::remove(path_, none);
  }
  DatabaseFile(const DatabaseFile&) = delete;
  DatabaseFile& operator=(const DatabaseFile&) = delete;

  std::filesystem::path path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Documents that a stranger's database is given to.
const std::array<Json, 3>& documents_of_databases() {
  static const std::array<Json, 3> all{Json{{"table", "t"}},
                                       Json{{"table", "t"}, {"target", "y"}, {"missing", "nan"}},
                                       Json{{"query", "SELECT * FROM t WHERE a IS NOT ?1"},
                                            {"parameters", {7}},
                                            {"order_by", {"id"}},
                                            {"categorical", {"a"}},
                                            {"missing", "drop_row"}}};
  return all;
}

}  // namespace

void sqlite(std::string_view bytes) {
  const DatabaseFile file(bytes);
  for (const Json& document : documents_of_databases())
    read_table<sqlite::SqliteData>(document, file, bytes.size());
}

}  // namespace treadle::fuzz
