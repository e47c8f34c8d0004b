#pragma once

#include <nlohmann/json.hpp>

/// Metrics on numbers that a JSON file has, for comparisons with scikit-learn: scikit_learn.py
/// writes such cases.
namespace treadle::testing {

/// Computes the metrics of one case and returns a list, one for each of "metrics":
///
///     {"values": {"auc": 0.75, "recall": {"undefined": "no row is of class \"b\""}},
///      "tables": {"thresholds": {"row_labels": [...], "column_labels": [...], "values": [[...]]}}}
///
/// A number that is not finite is the text "nan", "inf" or "-inf".
///
/// A case has "kind" ("classes", "labels", "numbers"), "classes" (their names, or those of the
/// labels), "values" [positions][width], "targets" [positions] or [positions][width], "metrics"
/// (documents such as {"use": "auc"}), and, where they are not null, "weights" [positions],
/// "logits", "decision" and "extras" {"q0.1": [positions][width]}. With "steps" s the positions
/// are s steps of each row, and the weights are those of positions: 0 is padding.
///
/// The rows come in batches of 1, 2, 3 ... and two computers see them in turns; their merge is the
/// result. So the order of rows is that of no list.
nlohmann::json run_case(const nlohmann::json& one);

}  // namespace treadle::testing
