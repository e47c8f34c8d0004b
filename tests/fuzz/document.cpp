#include <treadle/base/document.h>

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/json_words.h>
#include <treadle/host/catalog/workflow_document.h>

#include "targets.h"
#include "test/fake_components.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

// As many problems as are told at once, and a sentence for each.
constexpr std::size_t kMostProblems = 201;

void promise_all_readable(const DocumentError& error, std::size_t text_size) {
  promise(!error.problems().empty(), "a refused document has a problem");
  promise(error.problems().size() <= kMostProblems,
          "not more problems are told than anybody reads");
  for (const Problem& problem : error.problems()) {
    // A place has a pointer of up to 64 keys, each as long as it was written, escaped six to one.
    promise_readable(problem.text(), 4000 + 20 * text_size);
    promise(problem.text().find('\n') == std::string::npos, "a problem is one line");
  }
}

/// Each place is where its value begins: a member's at its key, an element's at its first
/// character.
void promise_places(const Document& document, const std::vector<std::string_view>& lines,
                    const Json& value, const std::string& pointer) {
  const auto promise_place = [&](const std::string& part, std::string_view first_characters) {
    const Place place = document.place_of(part);
    promise(place.line >= 1 && static_cast<std::size_t>(place.line) <= lines.size(),
            "a value's line is in the document");
    const std::string_view line = lines[static_cast<std::size_t>(place.line) - 1];
    std::size_t at = 0;
    for (int column = 1; at < line.size(); ++at) {
      if ((static_cast<unsigned char>(line[at]) & 0xC0) == 0x80)
        continue;
      if (column++ == place.column)
        break;
    }
    promise(at < line.size() && first_characters.find(line[at]) != std::string_view::npos,
            "a value stands at its place: " + part + " at " + place.text());
  };
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      const std::string part = child_pointer(pointer, key);
      promise_place(part, "\"");
      promise_places(document, lines, member, part);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string part = child_pointer(pointer, i);
      promise_place(part, "\"-0123456789tfn[{");
      promise_places(document, lines, value[i], part);
    }
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return lines;
    text.remove_prefix(end + 1);
  }
}

/// Our reader against the library's own, which is lenient where we are not.
std::shared_ptr<Document> read(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view marked = text;
  if (marked.starts_with(kByteOrderMark))
    marked.remove_prefix(kByteOrderMark.size());
  const Json theirs =
      Json::parse(marked, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  std::shared_ptr<Document> document;
  try {
    document = Document::parse(text, "fuzz.json");
  } catch (const DocumentError& error) {
    promise_all_readable(error, text.size());
    return nullptr;
  }
  promise(!theirs.is_discarded(), "what is accepted is JSON");
  promise(document->value() == theirs, "a document has the value that was written");
  promise(Document::parse(theirs.dump(), "again.json")->value() == theirs,
          "a document written again has the same value");
  promise_places(*document, lines_of(marked), document->value(), "");
  return document;
}

void override_with(Document& document, std::string_view assignment) {
  const Json before = document.value();
  try {
    apply_override(document, assignment);
  } catch (const UsageError& error) {
    promise_readable(error.what(), 1000 + 20 * assignment.size());
    promise(document.value() == before, "what cannot be set leaves the document as it was");
  }
}

}  // namespace

void document(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::shared_ptr<Document> document = read(take_part(rest));
  if (!document)
    return;
  for (int overrides = 0; !rest.empty() && overrides < 10; ++overrides)
    override_with(*document, take_part(rest));

  // Without its first key it is no workflow, and what else is wrong is always the same.
  if (!document->value().is_object() || !document->value().contains("treadle"))
    return;
  static const FakeComponents components;
  try {
    const ResolvedWorkflow workflow = resolve_workflow(document, components);
    const std::string written = write_workflow(workflow.resolved);
    const std::shared_ptr<Document> again = Document::parse(written, "resolved.json");
    promise(again->value() == workflow.resolved, "a resolved document written has the same value");
    promise(resolve_workflow(again, components).resolved == workflow.resolved,
            "a resolved document resolves to itself");
  } catch (const DocumentError& error) {
    promise_all_readable(error, bytes.size());
  }
}

}  // namespace treadle::fuzz
