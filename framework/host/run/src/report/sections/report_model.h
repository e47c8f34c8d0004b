#pragma once

#include <string>

#include <treadle/host/run/report.h>

/// What the model is and which of its weights were kept; HTML, empty where nothing is known.
namespace treadle::report {

/// Name, size and shapes.
std::string model_card(const ReportInput& input);
/// "mlp", or a component with its parameters: "mlp: activation relu, hidden [16,16]". Lists of
/// components, as a flow has them, are counted.
std::string architecture_text(const nlohmann::json& architecture);
/// The picture of a flow and the table of its nodes.
std::string model_parts(const ReportInput& input);

/// "The model holds the weights of epoch 34, the best by r2."
std::string kept_weights(const nlohmann::json& training);
/// Whether the weights of a training were chosen, rather than the last ones taken.
bool were_chosen(const nlohmann::json& training);
/// "loss", and behind it when it is not in the data's units.
std::string loss_label(const nlohmann::json& result);

}  // namespace treadle::report
