#include <treadle/tensor/safetensors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they lie in memory");

constexpr std::uint64_t kMaxHeader = std::uint64_t{100} << 20;

using Range = std::array<std::uint64_t, 2>;  // of bytes, behind the header

struct DtypeName {
  c10::ScalarType type;
  const char* name;
};
constexpr std::array kDtypes{DtypeName{at::kDouble, "F64"},    DtypeName{at::kFloat, "F32"},
                             DtypeName{at::kBFloat16, "BF16"}, DtypeName{at::kHalf, "F16"},
                             DtypeName{at::kLong, "I64"},      DtypeName{at::kInt, "I32"},
                             DtypeName{at::kShort, "I16"},     DtypeName{at::kChar, "I8"},
                             DtypeName{at::kByte, "U8"},       DtypeName{at::kBool, "BOOL"}};

const char* dtype_name(const std::string& tensor, c10::ScalarType type) {
  for (const DtypeName& entry : kDtypes) {
    if (entry.type == type)
      return entry.name;
  }
  throw StorageError("tensor \"" + tensor + "\" has dtype " + c10::toString(type) +
                     ", which safetensors cannot hold");
}

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& what) {
  throw StorageError(path.string() + ": not a valid safetensors file: " + what);
}

/// Reads a header as JSON in which each tensor has one entry.
class HeaderReader {
 public:
  explicit HeaderReader(const std::filesystem::path& path) : path_(path) {}

  nlohmann::json read(const char* text, std::uint64_t length) const {
    std::set<std::string> names;
    const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      if (depth > kMostLevels)
        damaged(path_, "its header is nested too deeply");
      if (depth != 1 || event != nlohmann::json::parse_event_t::key)
        return true;
      if (!names.insert(value.get<std::string>()).second)
        damaged(path_, "the tensor " + quote_text(value.get<std::string>()) + " is there twice");
      return true;
    };
    nlohmann::json header =
        nlohmann::json::parse(text, text + length, look, /*allow_exceptions=*/false);
    if (!header.is_object())
      damaged(path_, "its header is not a JSON object");
    return header;
  }

 private:
  static constexpr int kMostLevels = 8;  // three are in use

  const std::filesystem::path& path_;
};

[[noreturn]] void unusable(const std::filesystem::path& path, const std::string& name,
                           const char* key) {
  damaged(path, "tensor " + quote_text(name) + " has no usable \"" + key + "\"");
}

std::string text_in(const std::filesystem::path& path, const std::string& name,
                    const nlohmann::json& entry, const char* key) {
  if (!entry.is_object() || !entry.contains(key) || !entry[key].is_string())
    unusable(path, name, key);
  return entry[key].get<std::string>();
}

/// Whole numbers from 0 alone: the library would cut fractions and let negative ones wrap around.
std::vector<std::uint64_t> counts_in(const std::filesystem::path& path, const std::string& name,
                                     const nlohmann::json& entry, const char* key) {
  if (!entry.is_object() || !entry.contains(key) || !entry[key].is_array())
    unusable(path, name, key);
  std::vector<std::uint64_t> counts;
  for (const nlohmann::json& count : entry[key]) {
    if (!count.is_number_unsigned())
      unusable(path, name, key);
    counts.push_back(count.get<std::uint64_t>());
  }
  return counts;
}

Range range_in(const std::filesystem::path& path, const std::string& name,
               const nlohmann::json& entry) {
  const std::vector<std::uint64_t> ends = counts_in(path, name, entry, "data_offsets");
  if (ends.size() != 2)
    unusable(path, name, "data_offsets");
  return {ends[0], ends[1]};
}

/// libtorch multiplies all extents, also those beside a zero.
bool can_be_counted(const std::vector<std::uint64_t>& shape) {
  std::uint64_t left = std::numeric_limits<std::int64_t>::max() / sizeof(double);
  for (const std::uint64_t extent : shape)
    left /= std::max<std::uint64_t>(extent, 1);
  return left > 0;
}

/// Null: unknown.
const DtypeName* dtype_called(const std::string& name) {
  for (const DtypeName& candidate : kDtypes) {
    if (name == candidate.name)
      return &candidate;
  }
  return nullptr;
}

at::Tensor read_tensor(const std::filesystem::path& path, const std::string& name,
                       const nlohmann::json& entry, const char* data, std::uint64_t data_size) {
  const std::string dtype = text_in(path, name, entry, "dtype");
  const DtypeName* const known = dtype_called(dtype);
  if (known == nullptr)
    damaged(path, "tensor " + quote_text(name) + " has unknown dtype " + plain_text(dtype));
  const std::vector<std::uint64_t> shape = counts_in(path, name, entry, "shape");
  const Range range = range_in(path, name, entry);
  if (range[0] > range[1] || range[1] > data_size) {
    damaged(path, "tensor " + quote_text(name) + " lies outside the file");
  }
  std::uint64_t bytes = c10::elementSize(known->type);
  bool is_possible = can_be_counted(shape);
  for (const std::uint64_t extent : shape) {
    is_possible = is_possible && (extent == 0 || bytes <= data_size / extent);
    bytes *= extent;
  }
  if (!is_possible)
    damaged(path, "tensor " + quote_text(name) + " has an impossible shape");
  if (bytes != range[1] - range[0]) {
    damaged(path, "tensor " + quote_text(name) + " has " + std::to_string(range[1] - range[0]) +
                      " bytes, its shape needs " + std::to_string(bytes));
  }
  const char* const first = data + range[0];
  // Any other bool is undefined behaviour where a kernel reads it.
  if (known->type == at::kBool &&
      std::any_of(first, first + bytes, [](char c) { return c > 1 || c < 0; }))
    damaged(path, "tensor " + quote_text(name) + " has a truth value that is neither 0 nor 1");
  at::Tensor tensor = at::empty(std::vector<std::int64_t>(shape.begin(), shape.end()), known->type);
  if (bytes > 0)
    std::memcpy(tensor.data_ptr(), first, bytes);
  return tensor;
}

std::map<std::string, std::string> metadata_of(const std::filesystem::path& path,
                                               const nlohmann::json& entry) {
  try {
    return entry.get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    damaged(path, "its metadata is not text by name");
  }
}

/// The format: tensors lie one behind the other, and every byte is one's.
void expect_no_holes(const std::filesystem::path& path, std::vector<Range> ranges,
                     std::uint64_t data_size) {
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t end = 0;
  for (const Range& range : ranges) {
    if (range[0] != end)
      damaged(path, "no tensor, or more than one, lies at byte " +
                        std::to_string(std::min(range[0], end)) + " of its data");
    end = range[1];
  }
  if (end != data_size)
    damaged(path, "no tensor lies at byte " + std::to_string(end) + " of its data");
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TensorFile& content) {
  nlohmann::json header = nlohmann::json::object();
  if (!content.metadata.empty())
    header["__metadata__"] = content.metadata;
  std::vector<std::pair<std::string, at::Tensor>> in_order;
  for (const auto& [name, tensor] : content.tensors)
    in_order.emplace_back(name, tensor.detach().to(at::kCPU).contiguous());
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  std::uint64_t offset = 0;
  for (const auto& [name, plain] : in_order) {
    const std::uint64_t size = plain.nbytes();
    header[name] = {{"dtype", dtype_name(name, plain.scalar_type())},
                    {"shape", plain.sizes().vec()},
                    {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start on an eight-byte boundary
  const auto length = static_cast<std::uint64_t>(text.size());
  write_file_atomically(path, [&](FileWriter& file) {
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(text);
    for (const auto& [name, tensor] : in_order)
      file.write({static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()});
  });
}

TensorFile read_safetensors(const std::filesystem::path& path, UnknownDtypes unknown) {
  // A folder would open, too, and have a size.
  std::error_code error;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || !std::filesystem::is_regular_file(path, error))
    throw StorageError(path.string() + ": cannot be read: no such file, or not readable");
  const auto size = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file)
    throw StorageError(path.string() + ": could not be read to its end");
  std::uint64_t length = 0;
  if (size < sizeof length)
    damaged(path, "it has only " + std::to_string(size) + " bytes");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader || length > size - sizeof length) {
    damaged(path,
            "its header claims " + std::to_string(length) + " bytes of " + std::to_string(size));
  }
  const char* text = bytes.data() + sizeof length;
  const nlohmann::json header = HeaderReader(path).read(text, length);
  const std::uint64_t data_size = size - sizeof length - length;
  TensorFile content;
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      content.metadata = metadata_of(path, entry);
    } else if (unknown == UnknownDtypes::kLeaveOut &&
               dtype_called(text_in(path, name, entry, "dtype")) == nullptr) {
      content.left_out.emplace(name, plain_text(text_in(path, name, entry, "dtype")));
      ranges.push_back(range_in(path, name, entry));
    } else {
      content.tensors.emplace(name, read_tensor(path, name, entry, text + length, data_size));
      ranges.push_back(range_in(path, name, entry));
    }
  }
  expect_no_holes(path, std::move(ranges), data_size);
  return content;
}

}  // namespace treadle
