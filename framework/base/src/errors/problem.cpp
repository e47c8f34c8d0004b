#include <treadle/base/problem.h>

#include <algorithm>
#include <utility>

#include <treadle/base/json_words.h>

namespace treadle {
namespace {

std::string lines_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty())
      text += '\n';
    text += problem.text();
  }
  return text;
}

ErrorKind kind_of(const std::vector<Problem>& problems) {
  const bool plugins = !problems.empty() &&
                       std::all_of(problems.begin(), problems.end(),
                                   [](const Problem& problem) { return problem.plugin_at_fault; });
  return plugins ? ErrorKind::kPlugin : ErrorKind::kDocument;
}

}  // namespace

std::string Place::text() const {
  if (file.empty() || line == 0)
    return file;
  return file + ":" + std::to_string(line);
}

std::string Problem::text() const {
  std::string text = place.text();
  if (!text.empty())
    text += ": ";
  if (!pointer.empty())
    text += pointer + ": ";
  return plain_text(text + message);
}

DocumentError::DocumentError(std::vector<Problem> problems)
    : Error(kind_of(problems), lines_of(problems)), problems_(std::move(problems)) {}
DocumentError::~DocumentError() = default;

}  // namespace treadle
