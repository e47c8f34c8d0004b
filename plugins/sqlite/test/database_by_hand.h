#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <string>

namespace treadle::sqlite {

/// Runs statements by SQLite itself, as anybody would; the values of all rows, or its error.
inline std::string run_by_hand(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* database = nullptr;
  std::string got;
  sqlite3_open(path.c_str(), &database);
  const auto append = [](void* to, int count, char** values, char**) {
    for (int i = 0; i < count; ++i)
      *static_cast<std::string*>(to) += std::string(values[i] ? values[i] : "NULL") + "|";
    return 0;
  };
  char* error = nullptr;
  sqlite3_exec(database, sql.c_str(), append, &got, &error);
  if (error != nullptr)
    got = error;
  sqlite3_free(error);
  sqlite3_close(database);
  return got;
}

}  // namespace treadle::sqlite
