#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "format.h"

namespace treadle::parquet {

/// A page's values, or a dictionary's, as they are stored: T is uint8_t for truth values, int32_t,
/// int64_t, float or double, and string_view for byte arrays, of fixed length or not.
template <typename T>
class RawValues {
 public:
  virtual ~RawValues() = default;
  /// Decodes the next values. Throws Damage where there are not as many. Texts are views of the
  /// page, or of memory that is added to `owners`.
  virtual void read(T* out, std::size_t count,
                    std::vector<std::shared_ptr<const char[]>>& owners) = 0;
};

/// Opens the values of a page. `width` is the length of byte arrays of fixed length, else 0. Throws
/// Damage for an encoding that these values cannot have, or that is not supported.
template <typename T>
std::unique_ptr<RawValues<T>> open_values(Encoding encoding, std::string_view bytes,
                                          std::size_t width);

extern template std::unique_ptr<RawValues<std::uint8_t>> open_values(Encoding, std::string_view,
                                                                     std::size_t);
extern template std::unique_ptr<RawValues<std::int32_t>> open_values(Encoding, std::string_view,
                                                                     std::size_t);
extern template std::unique_ptr<RawValues<std::int64_t>> open_values(Encoding, std::string_view,
                                                                     std::size_t);
extern template std::unique_ptr<RawValues<float>> open_values(Encoding, std::string_view,
                                                              std::size_t);
extern template std::unique_ptr<RawValues<double>> open_values(Encoding, std::string_view,
                                                               std::size_t);
extern template std::unique_ptr<RawValues<std::string_view>> open_values(Encoding, std::string_view,
                                                                         std::size_t);

}  // namespace treadle::parquet
