#include "patch_tst.h"

#include <string>

#include <nlohmann/json.hpp>

namespace treadle::forecasting {
namespace {

void add_dropout_step(nlohmann::json& steps, double p) {
  if (p > 0)
    steps.push_back({{"use", "dropout"}, {"p", p}});
}

}  // namespace

PatchTst::PatchTst(const Config& config)
    : Forecaster(config),
      patch_len_(config.get<std::int64_t>("patch_len")),
      stride_(config.get<std::int64_t>("stride")),
      end_padding_(config.find<std::int64_t>("end_padding").value_or(stride_)),
      layers_(config.get<std::int64_t>("num_layers")),
      width_(config.get<std::int64_t>("d_model")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get<std::int64_t>("dim_feedforward")),
      dropout_(config.get<double>("dropout")),
      attention_dropout_(config.get<double>("attention_dropout")),
      head_dropout_(config.get<double>("head_dropout")),
      adds_scores_(config.get<bool>("residual_attention")),
      revin_affine_(config.get<bool>("revin_affine")) {
  if (width_ % heads_ != 0) {
    config.fail("num_heads", "must divide d_model, " + std::to_string(width_) +
                                 ": each head has its share of it");
  }
}

nlohmann::json PatchTst::do_steps(const Task& task) const {
  nlohmann::json steps = nlohmann::json::array(
      {window_scale("standard", revin_affine_),
       {{"use", "patches"},
        {"patch_len", patch_len_},
        {"stride", stride_},
        {"end_padding", end_padding_}},
       {{"use", "patch_embedding"}, {"out_features", width_}, {"name", "embedding"}}});
  add_dropout_step(steps, dropout_);
  for (std::int64_t i = 0; i < layers_; ++i) {
    nlohmann::json layer = {{"use", "patch_encoder_layer"},
                            {"num_heads", heads_},
                            {"dim_feedforward", feed_forward_},
                            {"dropout", dropout_},
                            {"attention_dropout", attention_dropout_},
                            {"name", "layers." + std::to_string(i)}};
    if (adds_scores_ && i > 0)
      layer["using"] = {"scores" + std::to_string(i - 1)};
    if (adds_scores_ && i + 1 < layers_)
      layer["tag"] = {{"scores", "scores" + std::to_string(i)}};
    steps.push_back(std::move(layer));
  }
  // The authors' order of the head's inputs: for each of d_model, all patches.
  steps.push_back({{"use", "transpose"}, {"dim0", 2}, {"dim1", 3}});
  steps.push_back({{"use", "flatten"}, {"start_dim", 2}});
  steps.push_back({{"use", "dense"}, {"out_features", task.rows()}, {"name", "head"}});
  add_dropout_step(steps, head_dropout_);
  steps.push_back("transpose");
  steps.push_back(window_unscale(task));
  return steps;
}

}  // namespace treadle::forecasting
