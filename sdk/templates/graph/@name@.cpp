#include <treadle/sdk.h>

namespace {

using nlohmann::json;

/// Dense layers, each half as wide as the one before, and a head: what many tables need and no more. It says
/// which layers in the words of a document; each may be of another plugin.
class @Name@ final : public treadle::GraphBuilder {
 public:
  explicit @Name@(const treadle::Config& config)
      : width_(config.get<std::int64_t>("width")),
        depth_(config.get<std::int64_t>("depth")),
        activation_(config.get<std::string>("activation")) {
    if (width_ >> (depth_ - 1) == 0) {
      config.fail("depth", "a width of " + std::to_string(width_) + " cannot be halved " +
                               std::to_string(depth_ - 1) + " times");
    }
  }

 private:
  json do_build(const treadle::LayerSpec& spec) const override {
    const treadle::TensorSpec& input = spec.inputs.front();
    if (spec.inputs.size() != 1 || input.sizes.size() != 2) {
      throw treadle::DataError("takes one input of rows of numbers [B, width], got " +
                               input.text());
    }
    json steps = json::array();
    for (std::int64_t i = 0; i < depth_; ++i) {
      steps.push_back({{"use", "dense"}, {"out_features", width_ >> i}});
      steps.push_back({{"use", activation_}});
    }
    steps.push_back({{"use", "head"}});
    return steps;
  }

  std::int64_t width_;
  std::int64_t depth_;
  std::string activation_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
