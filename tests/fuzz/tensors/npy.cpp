#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "memory_file.h"
#include "npy_data.h"
#include "rows.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

/// What came of one way to read a file: its rows, or why there are none.
struct Answer {
  std::optional<ReadRows> rows;
  std::string refusal;

  bool operator==(const Answer&) const = default;
};

Answer read(Json parameters, const char* access, std::size_t size) {
  parameters["access"] = access;
  parameters["chunk_rows"] = 2;
  parameters["resident_bytes"] = 64;
  arrays::NpyData data{Config(parameters, "/data")};
  Answer answer;
  if (opens(data, {}, size, answer.refusal))
    answer.rows = read_rows(data);
  return answer;
}

}  // namespace

void npy(std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::string path = file.path().string();
  const Json as_numbers = {{"inputs", path}, {"target", {{"path", path}, {"kind", "numbers"}}}};
  const Json as_indices = {{"inputs", {{"path", path}, {"role", "tokens"}}},
                           {"target", {{"path", path}, {"kind", "classes"}}},
                           {"weights", path},
                           {"missing", "drop_row"}};
  for (const Json& parameters : {as_numbers, as_indices}) {
    const Answer in_memory = read(parameters, "memory", bytes.size());
    for (const char* const access : {"mapped", "chunked"}) {
      promise(read(parameters, access, bytes.size()) == in_memory,
              std::string("an array that is ") + access + " has the rows that it has in memory");
    }
  }
}

}  // namespace treadle::fuzz
