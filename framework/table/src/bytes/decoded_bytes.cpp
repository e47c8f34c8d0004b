#include "decoded_bytes.h"

#include <iconv.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

namespace treadle::table {
namespace {

const iconv_t kNone = reinterpret_cast<iconv_t>(-1);

/// A converter to UTF-8, or kNone. Without what iconv reads into a name: "latin1//TRANSLIT".
iconv_t open_converter(const std::string& encoding) {
  if (encoding.empty() || encoding.find_first_of(",/") != std::string::npos ||
      encoding.find('\0') != std::string::npos) {
    return kNone;
  }
  return ::iconv_open("UTF-8", encoding.c_str());
}

class DecodedBytes final : public ByteSource {
 public:
  DecodedBytes(std::unique_ptr<ByteSource> from, std::string shown, std::string encoding)
      : from_(std::move(from)),
        shown_(std::move(shown)),
        encoding_(std::move(encoding)),
        converter_(open_converter(encoding_)),
        in_(kPiece),
        text_(kPiece) {
    if (converter_ == kNone)
      throw DataError(shown_ + ": its encoding \"" + encoding_ + "\" is unknown");
  }
  ~DecodedBytes() override { ::iconv_close(converter_); }

 private:
  static constexpr std::size_t kPiece = std::size_t{256} << 10;

  std::size_t do_read(char* to, std::size_t room) override {
    std::size_t size = 0;
    while (size < room) {
      if (used_ == text_size_ && !convert())
        break;
      const std::size_t count = std::min(room - size, text_size_ - used_);
      std::memcpy(to + size, text_.data() + used_, count);
      size += count;
      used_ += count;
    }
    if (size == 0 && !problem_.empty())
      throw ByteError(shown_, problem_);
    return size;
  }

  // Converts the next bytes. False at the end, or with a problem.
  bool convert() {
    used_ = text_size_ = 0;
    while (text_size_ == 0 && problem_.empty() && !has_ended_) {
      if (!needs_bytes_ || read_bytes()) {
        convert_bytes();
      } else if (problem_.empty()) {
        finish();
      }
    }
    return text_size_ > 0;
  }

  bool read_bytes() {
    std::memmove(in_.data(), in_.data() + in_used_, in_size_ - in_used_);
    in_size_ -= in_used_;
    in_used_ = 0;
    try {
      const std::size_t count = from_->read(in_.data() + in_size_, in_.size() - in_size_);
      in_size_ += count;
      return count > 0;
    } catch (const ByteError& error) {  // after the text before it
      problem_ = error.message();
      return false;
    }
  }

  void convert_bytes() {
    char* in = in_.data() + in_used_;
    std::size_t in_left = in_size_ - in_used_;
    char* out = text_.data();
    std::size_t out_left = text_.size();
    const std::size_t status = ::iconv(converter_, &in, &in_left, &out, &out_left);
    const int error = status == static_cast<std::size_t>(-1) ? errno : 0;
    text_size_ = text_.size() - out_left;
    in_used_ = in_size_ - in_left;
    // Else the text is full (E2BIG).
    needs_bytes_ = error == 0 || error == EINVAL;
    if (error == EILSEQ)
      set_problem(static_cast<unsigned char>(*in));
  }

  // After the last byte: characters that iconv held back.
  void finish() {
    has_ended_ = true;
    if (in_used_ < in_size_) {
      problem_ = "the text ends in the middle of a character of " + encoding_ +
                 "; was the file cut off, or is \"encoding\" wrong?";
      return;
    }
    char* out = text_.data();
    std::size_t out_left = text_.size();
    ::iconv(converter_, nullptr, nullptr, &out, &out_left);
    text_size_ = text_.size() - out_left;
  }

  void set_problem(unsigned byte) {
    char shown_byte[8];
    std::snprintf(shown_byte, sizeof shown_byte, "0x%02X", byte);
    problem_ = "is not text in " + encoding_ + " (byte " + shown_byte +
               "); set \"encoding\" to the one that the file was written in";
  }

  std::unique_ptr<ByteSource> from_;
  std::string shown_;
  std::string encoding_;
  iconv_t converter_;
  std::vector<char> in_;
  std::size_t in_size_ = 0;
  std::size_t in_used_ = 0;
  bool needs_bytes_ = true;
  std::vector<char> text_;
  std::size_t text_size_ = 0;
  std::size_t used_ = 0;  // of the text
  bool has_ended_ = false;
  std::string problem_;
};

}  // namespace

std::unique_ptr<ByteSource> decode_bytes(std::unique_ptr<ByteSource> from, const std::string& shown,
                                         const std::string& encoding) {
  return std::make_unique<DecodedBytes>(std::move(from), shown, encoding);
}

bool is_utf8(const std::string& encoding) {
  std::string name;
  for (const char c : encoding) {
    if (c != '-' && c != '_')
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name == "utf8" || name == "utf8sig";
}

bool is_encoding(const std::string& encoding) {
  if (is_utf8(encoding))
    return true;
  iconv_t const converter = open_converter(encoding);
  if (converter == kNone)
    return false;
  ::iconv_close(converter);
  return true;
}

}  // namespace treadle::table
