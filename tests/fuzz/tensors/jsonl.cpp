#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "jsonl_data.h"
#include "memory_file.h"
#include "table_promises.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

/// Documents that a stranger's file is given to.
const std::array<Json, 3>& documents() {
  static const std::array<Json, 3> all{
      Json::object(), Json{{"target", "y"}, {"missing", "nan"}},
      Json{{"target", Json::array({{{"name", "t"}, {"columns", {0}}, {"kind", "classes"}}})},
           {"categorical", {1}},
           {"time", 2},
           {"group", 3},
           {"missing", "drop_row"}}};
  return all;
}

}  // namespace

void jsonl(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const Json& document : documents())
    read_table<jsonl::JsonlData>(document, file, bytes.size());
}

}  // namespace treadle::fuzz
