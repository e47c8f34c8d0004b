#include <treadle/host/record/run_result.h>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>

#include "targets.h"

namespace treadle::fuzz {

void result(std::string_view bytes) {
  const nlohmann::json stored = parse_json(bytes);
  if (stored.is_discarded())
    return;
  RunResult read;
  try {
    read = run_result_from(stored, "result.json");
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 1000);
  }
  const nlohmann::json written = to_json(read);
  promise(to_json(run_result_from(written, "result.json")) == written,
          "a result that is written again reads the same");
}

}  // namespace treadle::fuzz
