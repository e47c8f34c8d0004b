#include "report/blocks.h"

#include <utility>

namespace treadle::report {
namespace {

Json block(std::string_view kind, std::string_view member, List content) {
  std::erase_if(content, [](const Json& one) { return one.is_null(); });
  return content.empty() ? Json() : Json{{"block", kind}, {member, std::move(content)}};
}

}  // namespace

Json as(std::string_view kind, Json value) {
  return {{kind, std::move(value)}};
}

Json card(Json title, List blocks, bool is_folded) {
  Json made = block("card", "blocks", std::move(blocks));
  if (!made.is_null())
    made.update({{"title", std::move(title)}, {"folded", is_folded}});
  return made;
}

Json group(List cards) {
  return block("group", "blocks", std::move(cards));
}

Json note(Json text) {
  return {{"block", "note"}, {"text", std::move(text)}};
}

Json facts(List rows) {
  std::erase_if(rows, [](const Json& row) { return row.back().is_null(); });
  return block("facts", "rows", std::move(rows));
}

List facts_in(const Json& record, std::initializer_list<Fact> wanted) {
  List rows;
  for (const Fact& fact : wanted) {
    const Json value = record.is_object() ? record.value(fact.key, Json()) : Json();
    if (!value.is_null() && value != "" && value != Json::array())
      rows.push_back(List{fact.label, as(fact.kind, value)});
  }
  return rows;
}

Json table(List columns, List rows, std::size_t shown, std::string_view noun) {
  const bool is_folded = rows.size() > shown;
  Json made = block("table", "rows", std::move(rows));
  if (!made.is_null())
    made["columns"] = std::move(columns);
  if (is_folded)
    made.update({{"shown", shown}, {"noun", noun}});
  return made;
}

Json record(std::string_view kind, Json record) {
  return record.is_object() ? Json{{"block", kind}, {"record", std::move(record)}} : Json();
}

Json chart(std::string_view kind, Json data) {
  data.update({{"block", "chart"}, {"chart", kind}});
  return data;
}

void append(List& list, const List& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace treadle::report
