#include <treadle/core/components/state_bytes.h>

#include <cstdint>
#include <cstring>
#include <string>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/core/components/state_tree.h>

// The size of the header, the header in CBOR (structure, and path, dtype and shape of each tensor),
// then the tensors in the order of the header.
namespace treadle {
namespace {

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

[[noreturn]] void fail() {
  throw StorageError("a state that another process sent cannot be read; are all of one version?");
}

/// Takes bytes from the front.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size())
      fail();
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

at::Tensor take_tensor(const nlohmann::json& described, Reader& reader) {
  const auto dtype = static_cast<at::ScalarType>(described.at("dtype").get<int>());
  const auto shape = described.at("shape").get<std::vector<std::int64_t>>();
  at::Tensor tensor = at::empty(shape, dtype);
  if (const auto bytes = reader.take(tensor.nbytes()); !bytes.empty())
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

std::vector<std::byte> bytes_of(const StateDict& state) {
  NamedTensors tensors;
  nlohmann::json header{{"state", take_apart(state, "", tensors)}};
  nlohmann::json& described = header["tensors"] = nlohmann::json::array();
  for (auto& [path, tensor] : tensors) {
    tensor = tensor.cpu().contiguous();
    described.push_back({{"path", path},
                         {"dtype", static_cast<int>(tensor.scalar_type())},
                         {"shape", tensor.sizes().vec()}});
  }
  const std::vector<std::uint8_t> text = nlohmann::json::to_cbor(header);
  const std::uint64_t size = text.size();
  std::vector<std::byte> bytes;
  append(bytes, &size, sizeof size);
  append(bytes, text.data(), text.size());
  for (const auto& [path, tensor] : tensors)
    append(bytes, tensor.data_ptr(), tensor.nbytes());
  return bytes;
}

StateDict state_of_bytes(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint64_t size = 0;
  std::memcpy(&size, reader.take(sizeof size).data(), sizeof size);
  const auto text = reader.take(size);
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  try {
    const nlohmann::json header = nlohmann::json::from_cbor(begin, begin + text.size());
    StateDict state = put_together(header.at("state"));
    for (const nlohmann::json& described : header.at("tensors"))
      put_at(state, described.at("path").get<std::string>(), take_tensor(described, reader));
    if (!reader.is_at_end())
      fail();
    return state;
  } catch (const nlohmann::json::exception&) {
    fail();
  }
}

}  // namespace treadle
