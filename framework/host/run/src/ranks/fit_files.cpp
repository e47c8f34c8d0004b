#include "ranks/fit_files.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<std::uint8_t> content((std::istreambuf_iterator<char>(stream)), {});
  if (!stream)
    throw StorageError(file.string() + ": cannot be read, so it cannot be sent to rank 0");
  return content;
}

[[noreturn]] void fail(const fs::path& folder, const std::error_code& error) {
  throw StorageError(folder.string() + ": the files of another process cannot be kept there: " +
                     error.message() + "; make room or permit writing, then resume the run");
}

}  // namespace

fs::path place_of(const RunFolder& folder, FitFiles kind, const std::string& fit,
                  const std::string& name) {
  switch (kind) {
    case FitFiles::kCheckpoint:
      return folder.checkpoints(fit) / name;
    case FitFiles::kRecord:
      return folder.fit_result(fit);
    case FitFiles::kModel:
      break;
  }
  return folder.path() / name;
}

nlohmann::json packed(const fs::path& folder) {
  nlohmann::json files = nlohmann::json::object();
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        files[entry.path().lexically_relative(folder).string()] =
            nlohmann::json::binary(content_of(entry.path()));
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw StorageError(folder.string() + ": cannot be read: " + error.what());
  }
  return files;
}

void unpack(const nlohmann::json& files, const fs::path& folder) {
  fs::path making = folder;
  making += ".received.tmp";  // RunFolder::open() removes what a kill leaves of it
  std::error_code error;
  fs::remove_all(making, error);
  for (const auto& [name, content] : files.items()) {
    const fs::path file = making / name;
    fs::create_directories(file.parent_path(), error);
    if (error)
      fail(folder, error);
    const std::vector<std::uint8_t>& bytes = content.get_binary();
    write_file_atomically(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  fs::path old = folder;
  old += ".replaced.tmp";
  fs::remove_all(old, error);
  fs::rename(folder, old, error);  // mostly there is none
  fs::rename(making, folder, error);
  if (error)
    fail(folder, error);
  fs::remove_all(old, error);
}

}  // namespace treadle::internal
