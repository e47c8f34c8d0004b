// A plugin that implements an interface of another plugin.
#include <cmath>
#include <memory>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/plugin.h>

#include "../curve.h"

namespace treadle::testing {
namespace {

class Power final : public Curve {
 public:
  explicit Power(const Config& config) : exponent_(config.get<double>("exponent")) {}
  double at(double progress) const override { return std::pow(1 - progress, exponent_); }

 private:
  const double exponent_;
};

class Halved final : public Curve {
 public:
  Halved(const Config& config, const ComponentContext& context)
      : of_(make_nested<Curve>(context, config, "of")) {}
  double at(double progress) const override { return of_->at(progress) / 2; }

 private:
  std::unique_ptr<Curve> of_;
};

}  // namespace
}  // namespace treadle::testing

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::testing::Power>("power");
  registrar.add<treadle::testing::Halved>("halved");
}
