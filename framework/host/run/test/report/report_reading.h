#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/report.h>

/// Reads a report's document as tests of its content do.
namespace treadle::reading {

using Json = nlohmann::json;

/// The input of a report, with the result as JSON. Without a "model_path" it is given one.
struct WrittenInput {
  std::string name;
  Json result;
  Json document = nullptr;
  std::vector<TrainingCurve> curves = {};
  ModelDrawing model = {};

  /// The order and the directions of metrics, where the rows of a training do not have them.
  static void list_metrics(Json& training, const Json& list) {
    for (const char* part : {"validation", "test", "prequential"}) {
      if (training.contains(part) && !training[part].contains("metric_list"))
        training[part]["metric_list"] = list;
    }
  }

  ReportInput input() const {
    Json whole = result.is_null() ? Json::object() : result;
    if (!whole.contains("model_path"))
      whole["model_path"] = "model.safetensors";
    const Json list = whole.value("metric_list", Json::array());
    list_metrics(whole, list);
    if (whole.contains("fold_results")) {
      for (Json& fold : whole["fold_results"])
        list_metrics(fold, list);
    }
    return {name, run_result_from(whole, "result.json"), document, curves, model};
  }
};

/// The document as the page has it: NaN and infinity are null.
inline Json document_of(const ReportInput& input) {
  return Json::parse(report_document(input).dump(-1, ' ', false, Json::error_handler_t::replace));
}
inline Json document_of(const WrittenInput& input) {
  return document_of(input.input());
}

/// A value without form: texts and bare numbers, one after the other.
inline std::string text(const Json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number())
    return value.dump();
  if (value.is_null())
    return "–";
  std::string all;
  for (const auto& [key, part] : value.items()) {
    if (value.is_array() || key != "title")
      all += (key == "mean" ? " ± " : "") + text(part);
  }
  return all;
}

/// The first block of a kind in a block or document, with this title where one is given; null
/// without any.
inline Json find_block(const Json& within, const std::string& kind, const std::string& title = {}) {
  if (within.value("block", "") == kind &&
      (title.empty() || text(within.value("title", Json())) == title))
    return within;
  const Json blocks = within.value("blocks", Json::array());
  for (const Json& block : blocks) {
    if (Json found = find_block(block, kind, title); !found.is_null())
      return found;
  }
  return {};
}

inline Json card(const Json& document, const std::string& title) {
  return find_block(document, "card", title);
}

/// The chart of a kind, anywhere in the document.
inline Json chart(const Json& within, const std::string& kind) {
  if (within.value("chart", "") == kind)
    return within;
  const Json blocks = within.value("blocks", Json::array());
  for (const Json& block : blocks) {
    if (Json found = chart(block, kind); !found.is_null())
      return found;
  }
  return {};
}

/// The cells behind a row's head in the tables and facts of a block; null without that row.
inline Json row(const Json& within, const std::string& head) {
  const Json rows = within.value("rows", Json::array());
  for (const Json& cells : rows) {
    if (cells.is_array() && text(cells.front()) == head)
      return Json(std::vector<Json>(cells.begin() + 1, cells.end()));
  }
  const Json blocks = within.value("blocks", Json::array());
  for (const Json& block : blocks) {
    if (Json found = row(block, head); !found.is_null())
      return found;
  }
  return {};
}

/// The texts of the notes in a block, one a line.
inline std::string notes(const Json& within) {
  std::string all =
      within.value("block", "") == "note" ? text(within.value("text", Json())) + "\n" : "";
  const Json blocks = within.value("blocks", Json::array());
  for (const Json& block : blocks)
    all += notes(block);
  return all;
}

}  // namespace treadle::reading
