#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// The page that reports and charts stand on: one HTML file that loads nothing from anywhere.
namespace treadle::report {

/// The page that shows a document: "title", "kind", "version", "subtitle" and "blocks"; see
/// blocks.h. The scripts beside this file make what is seen of it.
std::string page(const nlohmann::json& document);

}  // namespace treadle::report
