#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/document.h>
#include <treadle/base/problem.h>

#include "search/settings/initial_points.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

void promise_explained(const DocumentError& error, std::size_t size) {
  promise(!error.problems().empty(), "a refused document has a problem");
  promise_readable(error.what(), 10'000 + 100 * size);
}

/// A document with the space and the points; nothing where it is none.
std::shared_ptr<Document> document_of(std::string_view space, std::string_view points) {
  try {
    return Document::parse("{\"search\": {\"space\": " + std::string(space) +
                               ", \"initial\": " + std::string(points) + "}}",
                           "search.json");
  } catch (const DocumentError&) {
    return nullptr;  // of the target `document`
  }
}

/// What the document's schema leaves to the search.
bool has_kinds(const Json& search) {
  const Json& points = search.at("initial");
  return search.at("space").is_object() && points.is_array() &&
         std::all_of(points.begin(), points.end(), [](const Json& p) { return p.is_object(); });
}

void promise_point(const SearchSpace& space, const internal::GivenPoint& given,
                   std::int64_t number) {
  promise(given.size() == space.size(), "a point has a place for each dimension");
  for (std::size_t i = 0; i < space.size(); ++i)
    promise(!given[i] || space[i].contains(*given[i]), "a given value is one of the space");
  RandomBits bits = RandomStreams(1).bits("initial", {static_cast<std::uint64_t>(number)});
  const Point point = space.random(bits, given);
  promise(space.contains(point), "what is drawn beside it makes a point of the space");
  for (std::size_t i = 0; i < space.size(); ++i)
    promise(!given[i] || !point.is_active(i) || point[i] == *given[i], "given values are taken");
  promise(space.from_json(space.to_json(point)) == point, "a point written and read is the same");
}

}  // namespace

void points(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::string_view written_space = take_part(rest);
  const std::shared_ptr<Document> document = document_of(written_space, rest);
  if (document == nullptr)
    return;
  const Json* const search =
      document->value().contains("search") ? &document->value().at("search") : nullptr;
  if (search == nullptr || !search->is_object() || !search->contains("space") ||
      !search->contains("initial") || !has_kinds(*search))
    return;
  std::optional<SearchSpace> space;
  std::vector<internal::GivenPoint> given;
  ResolvedWorkflow workflow;
  workflow.resolved = document->value();
  workflow.document = document;
  try {
    space = SearchSpace::parse(Config(search->at("space"), "/search/space", document));
    given = internal::initial_points_of(workflow, *space, /*trials=*/100);
  } catch (const DocumentError& error) {
    return promise_explained(error, bytes.size());
  }
  std::int64_t number = 0;
  for (const internal::GivenPoint& point : given)
    promise_point(*space, point, number++);
}

}  // namespace treadle::fuzz
