#include <treadle/base/schema.h>

#include <treadle/base/document.h>

#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

/// One plugin, with the stranger's schema for each of its components: it may name itself.
class Stranger final : public SchemaIndex {
 public:
  explicit Stranger(const Json& schema) : schema_(schema) {}

  FoundComponent find(std::string_view word, std::string_view name) const override {
    if (name != "stranger")
      return {nullptr, "", "there is no such component"};
    return {std::make_shared<const Json>(schema_), "org.example/" + std::string(word), ""};
  }

 private:
  const Json& schema_;
};

void promise_each_readable(const std::vector<Problem>& problems, std::size_t size) {
  promise(problems.size() <= 10000, "there are not more problems than anybody could read");
  for (const Problem& problem : problems)
    promise_readable(problem.text(), 10000 + 40 * size);
}

std::shared_ptr<Document> read_document(std::string_view text) {
  try {
    return Document::parse(text, "fuzz.json");
  } catch (const DocumentError&) {
    return nullptr;  // the document target's business
  }
}

}  // namespace

void schema(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::shared_ptr<Document> written = read_document(take_part(rest));
  if (!written)
    return;
  const Json& schema = written->value();
  const std::vector<Problem> wrong = check_schema(schema, *written);
  promise_each_readable(wrong, bytes.size());
  // check() expects a sound schema; a plugin's is judged before any document meets it.
  const std::shared_ptr<Document> value = wrong.empty() ? read_document(rest) : nullptr;
  if (!value)
    return;
  const Stranger index(schema);

  const Checked once = check(value->value(), schema, index, *value, "", "/home/somebody");

  promise_each_readable(once.problems, bytes.size());
  if (!once.problems.empty())
    return;
  const Checked twice = check(once.value, schema, index, *value, "", "/home/somebody");
  promise(twice.problems.empty(), "what was checked is right");
  promise(twice.value == once.value, "checking again changes nothing");
}

}  // namespace treadle::fuzz
