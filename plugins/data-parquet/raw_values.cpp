#include "raw_values.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "bit_packing.h"
#include "bytes.h"
#include "delta.h"

namespace treadle::parquet {
namespace {

using Owners = std::vector<std::shared_ptr<const char[]>>;

// Texts that a call makes of shorter ones, in bytes.
constexpr std::uint64_t kLargestExpansion = 200'000'000;

[[noreturn]] void fail_for_count(std::size_t count) {
  throw Damage("it has fewer values than its levels: " + std::to_string(count) +
               " more are needed");
}

std::shared_ptr<char[]> make_room(std::uint64_t size) {
  if (size > kLargestExpansion) {
    throw Damage("its texts become " + std::to_string(size) +
                 " bytes; at most 200 million are read at once");
  }
  return std::shared_ptr<char[]>(new char[static_cast<std::size_t>(size)]);
}

template <typename T>
class PlainNumbers final : public RawValues<T> {
 public:
  explicit PlainNumbers(std::string_view bytes) : rest_(bytes) {}

  void read(T* out, std::size_t count, Owners& /*owners*/) override {
    const std::size_t size = count * sizeof(T);
    if (size > rest_.size())
      fail_for_count(count - rest_.size() / sizeof(T));
    if (size > 0)
      std::memcpy(out, rest_.data(), size);
    rest_.remove_prefix(size);
  }

 private:
  std::string_view rest_;
};

class PlainBooleans final : public RawValues<std::uint8_t> {
 public:
  explicit PlainBooleans(std::string_view bytes) : bytes_(bytes) {}

  void read(std::uint8_t* out, std::size_t count, Owners& /*owners*/) override {
    if (index_ + count > bytes_.size() * 8)
      fail_for_count(index_ + count - bytes_.size() * 8);
    for (; count > 0 && index_ % 8 != 0; --count, ++index_)
      *out++ = static_cast<unsigned char>(bytes_[index_ / 8]) >> index_ % 8 & 1;
    unpack(bytes_.substr(index_ / 8), 1, out, count);
    index_ += count;
  }

 private:
  std::string_view bytes_;
  std::size_t index_ = 0;
};

class RunsOfBooleans final : public RawValues<std::uint8_t> {
 public:
  explicit RunsOfBooleans(std::string_view bytes) {
    ByteCursor cursor(bytes);
    const auto size = cursor.fixed<std::uint32_t>();
    runs_ = HybridDecoder(cursor.take(size), 1);
  }

  void read(std::uint8_t* out, std::size_t count, Owners& /*owners*/) override {
    runs_.read(out, count);
  }

 private:
  HybridDecoder runs_;
};

class PlainTexts final : public RawValues<std::string_view> {
 public:
  explicit PlainTexts(std::string_view bytes) : cursor_(bytes) {}

  void read(std::string_view* out, std::size_t count, Owners& /*owners*/) override {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = cursor_.take(cursor_.fixed<std::uint32_t>());
  }

 private:
  ByteCursor cursor_;
};

class FixedTexts final : public RawValues<std::string_view> {
 public:
  FixedTexts(std::string_view bytes, std::size_t width) : rest_(bytes), width_(width) {}

  void read(std::string_view* out, std::size_t count, Owners& /*owners*/) override {
    if (count > rest_.size() / width_)
      fail_for_count(count - rest_.size() / width_);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = rest_.substr(i * width_, width_);
    rest_.remove_prefix(count * width_);
  }

 private:
  std::string_view rest_;
  std::size_t width_;
};

template <typename T>
class DeltaNumbers final : public RawValues<T> {
 public:
  explicit DeltaNumbers(std::string_view bytes) : deltas_(bytes) {}

  void read(T* out, std::size_t count, Owners& /*owners*/) override { deltas_.read(out, count); }

 private:
  DeltaDecoder deltas_;
};

// Lengths, then all texts one after the other.
class DeltaLengthTexts final : public RawValues<std::string_view> {
 public:
  DeltaLengthTexts(std::string_view bytes, std::size_t width)
      : lengths_(bytes), texts_(lengths_.behind()), width_(width) {}

  void read(std::string_view* out, std::size_t count, Owners& /*owners*/) override {
    if (count > lengths_.left())
      fail_for_count(count - static_cast<std::size_t>(lengths_.left()));
    lengths_buffer_.resize(count);
    lengths_.read(lengths_buffer_.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      if (lengths_buffer_[i] < 0)
        throw Damage("a text has the length " + std::to_string(lengths_buffer_[i]));
      out[i] = texts_.take(static_cast<std::uint64_t>(lengths_buffer_[i]));
      if (width_ > 0 && out[i].size() != width_)
        throw Damage("a value has " + std::to_string(out[i].size()) + " bytes");
    }
  }

 private:
  DeltaDecoder lengths_;
  ByteCursor texts_;
  std::size_t width_;
  std::vector<std::int32_t> lengths_buffer_;
};

// Each text begins with so many bytes of the one before.
class DeltaTexts final : public RawValues<std::string_view> {
 public:
  DeltaTexts(std::string_view bytes, std::size_t width)
      : prefixes_(bytes), suffixes_(prefixes_.behind(), 0), width_(width) {}

  void read(std::string_view* out, std::size_t count, Owners& owners) override {
    if (count > prefixes_.left())
      fail_for_count(count - static_cast<std::size_t>(prefixes_.left()));
    if (count == 0)
      return;
    lengths_.resize(count);
    prefixes_.read(lengths_.data(), count);
    suffixes_.read(out, count, owners);
    std::uint64_t size = 0;
    std::uint64_t before = last_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (lengths_[i] < 0 || static_cast<std::uint64_t>(lengths_[i]) > before) {
        throw Damage("a text begins with " + std::to_string(lengths_[i]) +
                     " bytes of the one before, which has " + std::to_string(before));
      }
      before = static_cast<std::uint64_t>(lengths_[i]) + out[i].size();
      if (width_ > 0 && before != width_)
        throw Damage("a value has " + std::to_string(before) + " bytes");
      size += before;
    }
    const std::shared_ptr<char[]> room = make_room(size);
    char* to = room.get();
    std::string_view previous = last_;
    for (std::size_t i = 0; i < count; ++i) {
      char* const begin = to;
      to = std::copy_n(previous.begin(), lengths_[i], to);
      to = std::copy(out[i].begin(), out[i].end(), to);
      out[i] = previous = {begin, static_cast<std::size_t>(to - begin)};
    }
    last_ = previous;
    owners.push_back(room);
  }

 private:
  DeltaDecoder prefixes_;
  DeltaLengthTexts suffixes_;
  std::size_t width_;
  std::string last_;
  std::vector<std::int32_t> lengths_;
};

// First the first bytes of all values, then the second ones, and so on.
class SplitBytes {
 public:
  SplitBytes(std::string_view bytes, std::size_t width)
      : bytes_(bytes), width_(width), count_(bytes.size() / width) {
    if (bytes.size() % width != 0) {
      throw Damage(std::to_string(bytes.size()) + " bytes are no multiple of the " +
                   std::to_string(width) + " of a value");
    }
  }

  void read(char* out, std::size_t count) {
    if (count > count_ - index_)
      fail_for_count(count - (count_ - index_));
    for (std::size_t k = 0; k < width_; ++k) {
      const char* stream = bytes_.data() + k * count_ + index_;
      char* to = out + k;
      for (std::size_t i = 0; i < count; ++i, to += width_)
        *to = stream[i];
    }
    index_ += count;
  }

  std::size_t width() const { return width_; }

 private:
  std::string_view bytes_;
  std::size_t width_;
  std::size_t count_;
  std::size_t index_ = 0;
};

template <typename T>
class SplitNumbers final : public RawValues<T> {
 public:
  explicit SplitNumbers(std::string_view bytes) : split_(bytes, sizeof(T)) {}

  void read(T* out, std::size_t count, Owners& /*owners*/) override {
    split_.read(reinterpret_cast<char*>(out), count);
  }

 private:
  SplitBytes split_;
};

class SplitTexts final : public RawValues<std::string_view> {
 public:
  SplitTexts(std::string_view bytes, std::size_t width) : split_(bytes, width) {}

  void read(std::string_view* out, std::size_t count, Owners& owners) override {
    const std::shared_ptr<char[]> room = make_room(std::uint64_t{count} * split_.width());
    split_.read(room.get(), count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = {room.get() + i * split_.width(), split_.width()};
    owners.push_back(room);
  }

 private:
  SplitBytes split_;
};

template <typename T>
[[noreturn]] void fail_for_encoding(Encoding encoding, std::size_t width) {
  const char* const values = std::is_same_v<T, std::uint8_t> ? "truth values"
                             : std::is_floating_point_v<T>   ? "floating-point numbers"
                             : std::is_integral_v<T>         ? "integers"
                             : width > 0                     ? "bytes of fixed length"
                                                             : "texts";
  if (encoding == Encoding::kAlp || static_cast<int>(encoding) > static_cast<int>(Encoding::kAlp) ||
      static_cast<int>(encoding) == 1) {
    throw Damage("it has the encoding " + name_of(encoding) +
                 ", which is not supported; write the file with PLAIN or dictionaries");
  }
  throw Damage("it has the encoding " + name_of(encoding) + ", which " + values + " cannot have");
}

}  // namespace

template <typename T>
std::unique_ptr<RawValues<T>> open_values(Encoding encoding, std::string_view bytes,
                                          std::size_t width) {
  constexpr bool kIsText = std::is_same_v<T, std::string_view>;
  constexpr bool kIsBoolean = std::is_same_v<T, std::uint8_t>;
  if constexpr (kIsBoolean) {
    if (encoding == Encoding::kPlain)
      return std::make_unique<PlainBooleans>(bytes);
    if (encoding == Encoding::kRle)
      return std::make_unique<RunsOfBooleans>(bytes);
  } else if constexpr (kIsText) {
    if (encoding == Encoding::kPlain && width > 0)
      return std::make_unique<FixedTexts>(bytes, width);
    if (encoding == Encoding::kPlain)
      return std::make_unique<PlainTexts>(bytes);
    if (encoding == Encoding::kDeltaLengthByteArray)
      return std::make_unique<DeltaLengthTexts>(bytes, width);
    if (encoding == Encoding::kDeltaByteArray)
      return std::make_unique<DeltaTexts>(bytes, width);
    if (encoding == Encoding::kByteStreamSplit && width > 0)
      return std::make_unique<SplitTexts>(bytes, width);
  } else {
    if (encoding == Encoding::kPlain)
      return std::make_unique<PlainNumbers<T>>(bytes);
    if (encoding == Encoding::kByteStreamSplit)
      return std::make_unique<SplitNumbers<T>>(bytes);
    if constexpr (std::is_integral_v<T>) {
      if (encoding == Encoding::kDeltaBinaryPacked)
        return std::make_unique<DeltaNumbers<T>>(bytes);
    }
  }
  fail_for_encoding<T>(encoding, width);
}

template std::unique_ptr<RawValues<std::uint8_t>> open_values(Encoding, std::string_view,
                                                              std::size_t);
template std::unique_ptr<RawValues<std::int32_t>> open_values(Encoding, std::string_view,
                                                              std::size_t);
template std::unique_ptr<RawValues<std::int64_t>> open_values(Encoding, std::string_view,
                                                              std::size_t);
template std::unique_ptr<RawValues<float>> open_values(Encoding, std::string_view, std::size_t);
template std::unique_ptr<RawValues<double>> open_values(Encoding, std::string_view, std::size_t);
template std::unique_ptr<RawValues<std::string_view>> open_values(Encoding, std::string_view,
                                                                  std::size_t);

}  // namespace treadle::parquet
