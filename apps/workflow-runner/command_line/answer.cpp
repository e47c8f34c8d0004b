#include "command_line/answer.h"

#include <unistd.h>

#include "terminal/terminal.h"

namespace treadle::cli {
void print(const std::string& text) {
  Terminal(STDOUT_FILENO).answer(text);
}

void print(const nlohmann::json& value) {
  print(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace treadle::cli
