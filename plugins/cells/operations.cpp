#include "operations.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/training/structure_search.h>

namespace treadle::cells {
namespace {

using nlohmann::json;

bool is_image(const TensorSpec& input) {
  return input.sizes.size() == 4;
}

json convolution(std::int64_t channels, std::int64_t kernel, std::int64_t groups = 1) {
  return {{"use", "conv2d"},   {"out_channels", channels}, {"kernel_size", kernel},
          {"padding", "same"}, {"groups", groups},         {"bias", false}};
}

json relu_conv_norm(std::int64_t channels, std::int64_t kernel) {
  return {{{"use", "relu"}}, convolution(channels, kernel), {{"use", "batch_norm"}}};
}

json separable(std::int64_t channels, std::int64_t kernel) {
  json steps = json::array();
  for (int time = 0; time < 2; ++time) {
    steps.push_back({{"use", "relu"}});
    steps.push_back(convolution(channels, kernel, channels));
    steps.push_back(convolution(channels, 1));
    steps.push_back({{"use", "batch_norm"}});
  }
  return steps;
}

json pool(const char* layer) {
  return {{{"use", layer}, {"kernel_size", 3}, {"stride", 1}, {"padding", 1}}};
}

json dense(std::int64_t width) {
  return {{{"use", "dense"}, {"out_features", width}}, {{"use", "layer_norm"}}, {{"use", "relu"}}};
}

json gated(std::int64_t width) {
  return {{{"use", "residual"},
           {"body",
            {{{"use", "layer_norm"}},
             {{"use", "gated_feed_forward"}, {"hidden_features", 2 * width}}}}}};
}

struct Operation {
  std::string_view name;
  enum { kImages, kVectors, kAll } of;
  /// For this many channels of an image, or this width.
  json (*steps)(std::int64_t size);
};

constexpr std::array kOperations{
    Operation{kZeroOperation, Operation::kAll,
              [](std::int64_t) {
                return json{{{"use", "zero"}}};
              }},
    Operation{"skip", Operation::kAll,
              [](std::int64_t) {
                return json{{{"use", "identity"}}};
              }},
    Operation{"conv_1x1", Operation::kImages, [](std::int64_t n) { return relu_conv_norm(n, 1); }},
    Operation{"conv_3x3", Operation::kImages, [](std::int64_t n) { return relu_conv_norm(n, 3); }},
    Operation{"conv_5x5", Operation::kImages, [](std::int64_t n) { return relu_conv_norm(n, 5); }},
    Operation{"sep_conv_3x3", Operation::kImages, [](std::int64_t n) { return separable(n, 3); }},
    Operation{"sep_conv_5x5", Operation::kImages, [](std::int64_t n) { return separable(n, 5); }},
    Operation{"avg_pool_3x3", Operation::kImages, [](std::int64_t) { return pool("avg_pool2d"); }},
    Operation{"max_pool_3x3", Operation::kImages, [](std::int64_t) { return pool("max_pool2d"); }},
    Operation{"dense", Operation::kVectors, [](std::int64_t n) { return dense(n); }},
    Operation{"gated", Operation::kVectors, [](std::int64_t n) { return gated(n); }},
};

bool fits(const Operation& operation, const TensorSpec& input) {
  return operation.of == Operation::kAll || (operation.of == Operation::kImages) == is_image(input);
}

}  // namespace

Operations::Operations(const Config& config) {
  if (!config.has("define"))
    return;
  for (const Config& one : config.children("define")) {
    auto name = one.get<std::string>("name");
    const auto same = [&](const auto& other) { return other.first == name; };
    const bool is_known = std::any_of(kOperations.begin(), kOperations.end(),
                                      [&](const Operation& known) { return known.name == name; }) ||
                          std::any_of(defined_.begin(), defined_.end(), same);
    if (is_known)
      one.fail("name", "there is an operation " + quote_text(name) + " already");
    defined_.emplace_back(std::move(name), one.json().at("flow"));
  }
}

std::vector<std::string> Operations::usual(const TensorSpec& input) {
  if (is_image(input))
    return {"zero", "skip", "conv_1x1", "conv_3x3", "avg_pool_3x3"};
  return {"zero", "skip", "dense", "gated"};
}

json Operations::steps(const std::string& operation, const TensorSpec& input) const {
  for (const auto& [name, flow] : defined_) {
    if (name == operation)
      return flow;
  }
  const std::int64_t size = is_image(input) ? input.sizes[1] : input.width();
  std::string names;
  for (const Operation& known : kOperations) {
    if (!fits(known, input))
      continue;
    if (known.name == operation)
      return known.steps(size);
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  for (const auto& defined : defined_)
    names += ", " + defined.first;
  throw DataError("there is no operation " + quote_text(operation) + " for " + input.text() +
                  "; there are " + names);
}

}  // namespace treadle::cells
