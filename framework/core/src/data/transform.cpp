#include <treadle/core/data/transform.h>

#include <c10/core/GradMode.h>

#include <treadle/core/components/plugin_call.h>
#include <treadle/core/data/abilities/fits_groups.h>

namespace treadle {

void Transform::fit(const RowReader& reader, const RowList& training_rows) {
  TREADLE_EXPECTS(!training_rows.empty(), "a transform needs at least one row to fit on");
  const at::NoGradGuard no_gradients;
  call_plugin(*this, "fit", [&] { do_fit(reader, training_rows); });
}

DataSpec Transform::output_spec(const DataSpec& before) const {
  return call_plugin(*this, "output_spec", [&] { return do_output_spec(before); });
}

void Transform::apply(Batch& batch, const ApplyContext& context) const {
  call_plugin(*this, "apply", [&] { do_apply(batch, context); });
}

bool Transform::works_on_device() const {
  return call_plugin(*this, "works_on_device", [&] { return do_works_on_device(); });
}

bool Transform::takes_bytes() const {
  return call_plugin(*this, "takes_bytes", [&] { return do_takes_bytes(); });
}

at::Tensor Transform::invert(const at::Tensor& predictions, std::string_view target,
                             const at::Tensor& groups) const {
  return call_plugin(*this, "invert", [&] {
    const auto* const by_group = ask<FitsGroups>();
    return by_group != nullptr ? by_group->invert(predictions, target, groups)
                               : do_invert(predictions, target);
  });
}

}  // namespace treadle
