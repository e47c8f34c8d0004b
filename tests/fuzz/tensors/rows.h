#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <treadle/core/data/data_provider.h>

/// What the data providers are held to, whatever file they read.
namespace treadle::fuzz {

/// All that can be read from a provider, as bytes: equal for equal rows.
struct ReadRows {
  std::string inputs;
  std::string targets;  ///< and weights
  std::string order;    ///< groups and times, which only a training needs
  std::string content_hash;

  bool operator==(const ReadRows&) const = default;
};

/// Opens it; false where the file is refused with a DataError, whose message is checked and left in
/// `refusal`.
bool opens(DataProvider& data, const OpenRequest& request, std::size_t file_size,
           std::string& refusal);

/// Reads every row of an open provider, and checks that they are what its spec promises.
ReadRows read_rows(DataProvider& data);

}  // namespace treadle::fuzz
