// A generative adversarial network (Goodfellow et al. 2014, arXiv:1406.2661) as a plugin: a model
// of two networks, and a loop with an update for each. The losses compare each real row with a
// generated one (relativistic pairing, Jolicoeur-Martineau 2018, arXiv:1807.00734), which keeps the
// generator from leaving out parts of the data.
#include <treadle/sdk.h>

#include <memory>
#include <optional>
#include <string_view>

#include <ATen/ops/cat.h>
#include <ATen/ops/softplus.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace {

using namespace treadle;

constexpr const char* kGenerator = "generator";
constexpr const char* kDiscriminator = "discriminator";

torch::nn::Sequential network(std::int64_t in, std::int64_t hidden, std::int64_t out) {
  return torch::nn::Sequential(torch::nn::Linear(in, hidden), torch::nn::ReLU(),
                               torch::nn::Linear(hidden, hidden), torch::nn::ReLU(),
                               torch::nn::Linear(hidden, out));
}

class GanModel final : public Model {
 public:
  GanModel(std::int64_t noise, std::int64_t columns, std::int64_t hidden)
      : generator_(register_module(kGenerator, network(noise, hidden, columns))),
        discriminator_(register_module(kDiscriminator, network(columns, hidden, 1))) {}

  /// [B, noise] -> [B, columns]
  at::Tensor generate(const at::Tensor& noise) { return generator_->forward(noise); }
  /// [B, columns] -> [B, 1]: the more, the more real.
  at::Tensor rate(const at::Tensor& rows) { return discriminator_->forward(rows); }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    const at::Tensor rows = generate(inputs[0]);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = rows.narrow(1, static_cast<std::int64_t>(i), 1);
  }

 private:
  torch::nn::Sequential generator_;
  torch::nn::Sequential discriminator_;
};

class GanTables final : public ModelProvider {
 public:
  explicit GanTables(const Config& config) : hidden_(config.get<std::int64_t>("hidden")) {}

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override {
    if (spec.inputs.size() != 1 || spec.inputs[0].shape.size() != 1)
      throw DataError("gan_tables takes one row of noise; give it a table");
    for (const OutputSpec& output : spec.outputs) {
      if (output.shape != std::vector<std::int64_t>{1})
        throw DataError("gan_tables makes one number for each target; choose a loss on numbers");
    }
    auto model = std::make_shared<GanModel>(
        spec.inputs[0].shape[0], static_cast<std::int64_t>(spec.outputs.size()), hidden_);
    model->to(spec.dtype);
    return model;
  }

  std::int64_t hidden_;
};

/// How much more real the model takes the rows of the batch to be than generated ones: [B, 1]. The
/// generator's gradients end where `learns_generator` is false.
at::Tensor advantage(Model& model, const Batch& batch, bool learns_generator) {
  auto& gan = dynamic_cast<GanModel&>(model);
  const at::Tensor generated = gan.generate(batch.inputs[0]);
  return gan.rate(at::cat(batch.targets, 1)) -
         gan.rate(learns_generator ? generated : generated.detach());
}

LossTerms discriminator_loss(Model& model, const Batch& batch, ForwardContext&) {
  return {at::softplus(-advantage(model, batch, false)).sum(), {}};
}

LossTerms generator_loss(Model& model, const Batch& batch, ForwardContext&) {
  return {at::softplus(advantage(model, batch, true)).sum(), {}};
}

class GanTraining final : public TrainingWorkflow {
 public:
  explicit GanTraining(const Config&) {}

 private:
  LoopNeeds do_needs() const override {
    LoopNeeds needs;
    needs.losses = {kDiscriminator, kGenerator};
    return needs;
  }

  void do_train(TrainingSession& session) override {
    if (dynamic_cast<GanModel*>(&session.model()) == nullptr)
      throw DataError("the loop \"gan\" trains the model \"gan_tables\"; set \"model\" to it");
    const auto of = [&](std::string_view network) {
      return session.parameters([&](std::string_view name) { return name.starts_with(network); });
    };
    const ParameterSet discriminator = of(kDiscriminator);
    const ParameterSet generator = of(kGenerator);
    while (session.next_epoch()) {
      while (const std::optional<Batch> batch = session.next_batch()) {
        const double rate = session.scheduled_rate();
        session.update(*batch, {rate, kDiscriminator, &discriminator, discriminator_loss});
        session.update(*batch, {rate, kGenerator, &generator, generator_loss});
      }
      session.finish_epoch();
    }
  }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<GanTables>("gan_tables");
  registrar.add<GanTraining>("gan");
}
