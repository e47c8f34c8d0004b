#include "image_options.h"

#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

namespace treadle::images {
namespace {

template <typename Value>
Value choice(const Config& config, const char* key,
             const std::map<std::string, Value, std::less<>>& values) {
  const auto found = values.find(config.get<std::string>(key));
  if (found == values.end())
    config.fail(key, "is none of the choices");
  return found->second;
}

}  // namespace

ImageOptions::ImageOptions(const Config& config)
    : path(config.get<std::string>("path")),
      image_column(config.get_or<std::string>("image", "")),
      mask_column(config.get_or<std::string>("mask", "")),
      group_column(config.get_or<std::string>("group", "")),
      classes(config.find<std::vector<std::string>>("classes")),
      ignore_index(config.find<std::int64_t>("ignore_index")),
      cache(static_cast<std::size_t>(config.get_or<std::int64_t>("cache", 0))) {
  using Mode = PictureForm::Mode;
  using Fit = PictureForm::Fit;
  if (config.has("target")) {
    const nlohmann::json& target = config.json().at("target");
    targets = target.is_string() ? std::vector{target.get<std::string>()}
                                 : target.get<std::vector<std::string>>();
  }
  if (config.has("size")) {
    const nlohmann::json& size = config.json().at("size");
    form.size = size.is_array() ? PictureSize{size.at(1), size.at(0)} : PictureSize{size, size};
  }
  if (config.has("mode")) {
    form.mode = choice<Mode>(config, "mode",
                             {{"rgb", Mode::kRgb}, {"gray", Mode::kGray}, {"rgba", Mode::kRgba}});
  }
  if (config.has("fit")) {
    if (!form.size)
      config.fail("fit", "has no effect without \"size\"");
    form.fit = choice<Fit>(config, "fit",
                           {{"crop", Fit::kCrop}, {"stretch", Fit::kStretch}, {"pad", Fit::kPad}});
  }
  if (config.has("broken")) {
    broken = choice<Broken>(config, "broken", {{"error", Broken::kError}, {"skip", Broken::kSkip}});
  }
  form.max_pixels = config.get_or("max_pixels", form.max_pixels);
  if (classes && !mask_column.empty() && !targets.empty())
    config.fail("classes", "would name those of the masks and those of \"target\"; leave it out");
  if (ignore_index && mask_column.empty())
    config.fail("ignore_index", "has no effect without \"mask\", the column of masks");
}

}  // namespace treadle::images
