#include "mixing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <boost/random/gamma_distribution.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "boxes.h"

namespace treadle::augmentation {
namespace {

/// Random bits as Boost.Random takes them.
struct GammaEngine {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return bits.next(); }

  RandomBits& bits;
};

/// Beta(alpha, alpha), as the share of one gamma variable in the sum of two.
double beta(RandomBits& bits, double alpha) {
  GammaEngine engine{bits};
  boost::random::gamma_distribution<double> gamma(alpha);
  const double one = gamma(engine);
  const double other = gamma(engine);
  return one + other > 0 ? one / (one + other) : 0.5;
}

/// The image, or another thing of a row, of each row's partner.
at::Tensor of_partners(const at::Tensor& rows) {
  return rows.roll(1, 0);
}

}  // namespace

Mixing::Mixing(const Config& config, std::string component, double alpha)
    : Augmentation(config, std::move(component)),
      alpha_(config.get_or("alpha", alpha)),
      probability_(config.get_or("probability", 1.0)),
      per_row_(config.get_or("per_row", false)) {}

Mixing::~Mixing() = default;

/// As many numbers whatever is drawn for them, but for the share.
Mixing::Drawn Mixing::draw(RandomBits& bits) const {
  const bool is_mixed = bits.uniform() < probability_;
  Drawn drawn;
  drawn.right = bits.uniform();
  drawn.down = bits.uniform();
  RandomBits of_share(bits.next());
  if (is_mixed)
    drawn.share = beta(of_share, alpha_);
  return drawn;
}

void Mixing::change(Batch& batch, const ApplyContext& context) const {
  const std::int64_t count = batch.size();
  if (!context.training || count < 2 || !batch.mixture.is_empty())
    return;
  RandomBits bits = draws(context);
  std::vector<Drawn> rows(static_cast<std::size_t>(count));
  if (per_row_) {
    std::generate(rows.begin(), rows.end(), [&] { return draw(bits); });
  } else {
    std::fill(rows.begin(), rows.end(), draw(bits));
  }
  if (std::all_of(rows.begin(), rows.end(), [](const Drawn& row) { return row.share == 1; }))
    return;
  mix(batch, rows, context);
  at::Tensor shares = at::empty({count}, at::kDouble);
  std::transform(rows.begin(), rows.end(), shares.data_ptr<double>(),
                 [](const Drawn& row) { return row.share; });
  const c10::Device device = batch.inputs.front().device();
  batch.mixture.shares = shares.to(device, at::kDouble, /*non_blocking=*/true);
  batch.mixture.partners =
      of_partners(at::arange(count, at::kLong)).to(device, at::kLong, /*non_blocking=*/true);
}

Mixup::Mixup(const Config& config)
    : Mixing(config, "mixup", 0.2), names_(config.find<std::vector<std::string>>("inputs")) {}

Mixup::~Mixup() = default;

std::vector<bool> Mixup::choose(const DataSpec& spec) const {
  std::vector<bool> chosen;
  std::vector<std::string> present;
  for (const PortSpec& port : spec.inputs) {
    present.push_back(port.name);
    const bool is_asked =
        !names_ || std::find(names_->begin(), names_->end(), port.name) != names_->end();
    const bool has_numbers = (port.role == Role::kFeatures || port.role == Role::kImage) &&
                             (c10::isFloatingType(port.dtype) || port.dtype == at::kByte);
    const bool varies =
        std::find(port.shape.begin(), port.shape.end(), kVaries) != port.shape.end();
    if (is_asked && (!has_numbers || varies)) {
      throw DataError(component() + ": input " + quote_text(port.name) +
                      (has_numbers ? " has rows of several lengths" : " has no real numbers") +
                      ", which cannot be mixed; change it to numbers of one shape first" +
                      (names_ ? "" : ", or name in \"inputs\" what to mix"));
    }
    chosen.push_back(is_asked);
  }
  for (const std::string& name : names_.value_or(std::vector<std::string>())) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(component() + ": unknown input " + quote_text(name) + "; the inputs are " +
                      name_list(present) + did_you_mean(name, present));
    }
  }
  return chosen;
}

DataSpec Mixup::do_output_spec(const DataSpec& before) const {
  choose(before);
  return before;
}

void Mixup::mix(Batch& batch, std::vector<Drawn>& rows, const ApplyContext&) const {
  at::Tensor on_host = at::empty({batch.size()}, at::kDouble);
  std::transform(rows.begin(), rows.end(), on_host.data_ptr<double>(),
                 [](const Drawn& row) { return row.share; });
  for (std::size_t port = 0; port < is_mixed_.size(); ++port) {
    if (!is_mixed_[port])
      continue;
    at::Tensor& values = batch.inputs[port];
    const at::Tensor shares = per_row(on_host.to(values.scalar_type()), values);
    values = values.mul(shares).add(of_partners(values).mul(shares.neg().add(1)));
  }
}

Cutmix::Cutmix(const Config& config) : Mixing(config, "cutmix", 1), choice_(config, "cutmix") {}

Cutmix::~Cutmix() = default;

std::vector<std::optional<ImageShape>> Cutmix::choose(const DataSpec& spec) const {
  std::vector<std::optional<ImageShape>> images = choice_.choose(spec);
  std::optional<ImageShape> first;
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (!images[port])
      continue;
    if (!first)
      first = images[port];
    if (images[port]->height != first->height || images[port]->width != first->width) {
      throw DataError(component() + ": input " + quote_text(spec.inputs[port].name) +
                      " is an image of another size than those before it, of which another share "
                      "would be cut; name inputs of one size in \"inputs\"");
    }
  }
  return images;
}

void Cutmix::prepare(const DataSpec& before) {
  images_ = choose(before);
  masks_ = Masks(before, images_, component());
}

DataSpec Cutmix::do_output_spec(const DataSpec& before) const {
  choose(before);
  return before;
}

void Cutmix::mix(Batch& batch, std::vector<Drawn>& rows, const ApplyContext&) const {
  const ImageShape& image = **std::find_if(images_.begin(), images_.end(),
                                           [](const auto& one) { return one.has_value(); });
  // Half the sides of a patch of (1 - share) of the area, cut off at the edges.
  std::vector<Box> boxes;
  for (Drawn& row : rows) {
    const double half = std::sqrt(1 - row.share) / 2;
    const auto range = [half](double place, std::int64_t extent) {
      const auto middle = static_cast<std::int64_t>(place * static_cast<double>(extent));
      const auto reach = static_cast<std::int64_t>(half * static_cast<double>(extent));
      return std::pair(std::max<std::int64_t>(middle - reach, 0), std::min(middle + reach, extent));
    };
    const auto [left, right] = range(row.right, image.width);
    const auto [top, bottom] = range(row.down, image.height);
    boxes.push_back({top, bottom, left, right});
    row.share = 1 - static_cast<double>(boxes.back().area()) /
                        static_cast<double>(image.height * image.width);
  }
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    at::Tensor& images = batch.inputs[port];
    expect_images(images, *images_[port]);
    const auto& [channels, height, width] = *images_[port];
    const at::Tensor planes = images.view({images.size(0), channels, height, width});
    images = at::where(inside_of(boxes, planes), of_partners(planes), planes).view(images.sizes());
  }
  masks_.move(batch, image, /*has_outside=*/false, [&](const at::Tensor& values, double) {
    return at::where(inside_of(boxes, values), of_partners(values), values);
  });
  batch.mixture.mixed_targets = masks_.targets();
}

}  // namespace treadle::augmentation
