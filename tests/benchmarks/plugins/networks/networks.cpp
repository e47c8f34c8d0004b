#include <treadle/sdk.h>

#include <memory>
#include <string>
#include <vector>

#include "encoder.h"
#include "lenet.h"
#include "lstm.h"

namespace {

using namespace treadle::benchmarks;

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

/// The one input, of the `dimensions` that the model needs, where the loss requires one output.
/// Throws a DataError otherwise.
const treadle::PortSpec& only_input(const std::string& model, const treadle::ModelSpec& spec,
                                    std::size_t dimensions, const std::string& wanted) {
  if (spec.inputs.size() != 1) {
    throw treadle::DataError("model \"" + model + "\" takes one input, but the data has " +
                             std::to_string(spec.inputs.size()));
  }
  if (spec.outputs.size() != 1) {
    throw treadle::DataError("model \"" + model + "\" gives one output, but the loss requires " +
                             std::to_string(spec.outputs.size()));
  }
  const treadle::PortSpec& input = spec.inputs[0];
  if (input.shape.size() != dimensions) {
    throw treadle::DataError("model \"" + model + "\" takes " + wanted + ", but a row of \"" +
                             input.name + "\" has the shape " + text_of(input.shape));
  }
  return input;
}

/// Adopts a network that only knows libtorch, in the dtype that was asked for.
template <typename Net, typename... Sizes>
std::shared_ptr<treadle::Model> adapted(const treadle::ModelSpec& spec, const Sizes&... sizes) {
  auto net = std::make_shared<Net>(sizes..., spec.outputs[0].width());
  net->to(spec.dtype);
  return treadle::adapt(std::move(net));
}

class LeNetProvider final : public treadle::ModelProvider {
 public:
  explicit LeNetProvider(const treadle::Config&) {}

 private:
  std::shared_ptr<treadle::Model> do_create(const treadle::ModelSpec& spec) const override {
    const auto& shape = only_input("lenet", spec, 3, "images (channels, height, width)").shape;
    if (shape[1] < LeNet::kSmallestSide || shape[2] < LeNet::kSmallestSide) {
      const std::string side = std::to_string(LeNet::kSmallestSide);
      throw treadle::DataError("model \"lenet\" takes images of " + side + " x " + side +
                               " pixels or more, but these have " + std::to_string(shape[1]) +
                               " x " + std::to_string(shape[2]));
    }
    return adapted<LeNet>(spec, shape[0], shape[1], shape[2]);
  }
};

class LstmProvider final : public treadle::ModelProvider {
 public:
  explicit LstmProvider(const treadle::Config& config)
      : hidden_(config.get<std::int64_t>("hidden")) {}

 private:
  std::shared_ptr<treadle::Model> do_create(const treadle::ModelSpec& spec) const override {
    const auto& shape = only_input("lstm", spec, 2, "sequences (steps, features)").shape;
    return adapted<Lstm>(spec, shape[1], hidden_);
  }

  std::int64_t hidden_;
};

class EncoderProvider final : public treadle::ModelProvider {
 public:
  explicit EncoderProvider(const treadle::Config& config)
      : shape_{config.get<std::int64_t>("width"), config.get<std::int64_t>("heads"),
               config.get<std::int64_t>("feed_forward"), config.get<std::int64_t>("layers")} {
    if (shape_.width % shape_.heads != 0)
      config.fail("heads", "must divide the width, " + std::to_string(shape_.width));
  }

 private:
  std::shared_ptr<treadle::Model> do_create(const treadle::ModelSpec& spec) const override {
    const auto& shape = only_input("encoder", spec, 2, "sequences (length, features)").shape;
    return adapted<Encoder>(spec, shape_, shape[0], shape[1]);
  }

  EncoderShape shape_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<LeNetProvider>("lenet");
  registrar.add<LstmProvider>("lstm");
  registrar.add<EncoderProvider>("encoder");
}
