#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <png.h>

#include "decoder.h"
#include "exif.h"

namespace treadle::images {
namespace {

/// The limit of a decompressed chunk other than pixels: color profiles, texts.
constexpr png_alloc_size_t kMostChunkBytes = 8 << 20;

/// libpng's state, and where it reports. Errors come back by longjmp, so functions that call libpng
/// have no objects with destructors.
struct Png {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* next = nullptr;
  const std::uint8_t* end = nullptr;
  char message[200] = "";
};

void keep_message(png_structp png, png_const_charp text) {
  auto* const state = static_cast<Png*>(png_get_error_ptr(png));
  std::snprintf(state->message, sizeof state->message, "%s", text);
}

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  keep_message(png, text);
  png_longjmp(png, 1);
}

/// Warnings of libpng have no effect on pixels: a color profile that it rejects.
void hear_nothing(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* const state = static_cast<Png*>(png_get_io_ptr(png));
  if (count > static_cast<std::size_t>(state->end - state->next))
    png_error(png, "the file is truncated");
  std::memcpy(to, state->next, count);
  state->next += count;
}

bool read_header(Png& state) {
  if (setjmp(png_jmpbuf(state.png)) != 0)
    return false;
  png_set_read_fn(state.png, &state, read_bytes);
  png_set_chunk_malloc_max(state.png, kMostChunkBytes);
  png_set_crc_action(state.png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  // The caller has a limit of pixels.
  png_set_user_limits(state.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(state.png, state.info);
  return true;
}

/// Asks for 8 bits per channel.
bool start(Png& state, bool wants_indices, int* passes) {
  if (setjmp(png_jmpbuf(state.png)) != 0)
    return false;
  if (wants_indices) {
    // Values below 8 bits are spread over bytes as they are, not scaled.
    png_set_packing(state.png);
  } else {
    png_set_expand(state.png);
    png_set_scale_16(state.png);
  }
  *passes = png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  return true;
}

bool read_pixels(Png& state, std::uint8_t* pixels, std::size_t row_bytes, std::int64_t rows,
                 int passes) {
  if (setjmp(png_jmpbuf(state.png)) != 0)
    return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t row = 0; row < rows; ++row)
      png_read_row(state.png, pixels + static_cast<std::size_t>(row) * row_bytes, nullptr);
  }
  png_read_end(state.png, nullptr);
  return true;
}

/// Owns a Png while C++ is working with it.
class OpenPng {
 public:
  explicit OpenPng(std::span<const std::uint8_t> file) {
    state_.next = file.data();
    state_.end = file.data() + file.size();
    state_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, fail, hear_nothing);
    if (state_.png != nullptr)
      state_.info = png_create_info_struct(state_.png);
    if (state_.info == nullptr) {
      close();
      throw BadImage("cannot be decoded as PNG: this libpng is not the one of the build");
    }
    if (!read_header(state_))
      refuse();
  }
  OpenPng(const OpenPng&) = delete;
  OpenPng& operator=(const OpenPng&) = delete;
  ~OpenPng() { close(); }

  PictureHeader header() const {
    return {{png_get_image_width(state_.png, state_.info),
             png_get_image_height(state_.png, state_.info)},
            orientation()};
  }

  void decode(Wanted wanted, Picture& out) {
    const bool wants_indices = wanted == Wanted::kIndices;
    if (wants_indices)
      expect_indices();
    int passes = 1;
    if (!start(state_, wants_indices, &passes))
      refuse();
    out.become(header().size, png_get_channels(state_.png, state_.info));
    // Interlaced rows are put into what is there.
    if (passes > 1)
      std::fill(out.pixels.begin(), out.pixels.end(), std::uint8_t{0});
    if (!read_pixels(state_, out.pixels.data(), out.row_bytes(), out.size.height, passes))
      refuse();
  }

 private:
  Orientation orientation() const {
#ifdef PNG_eXIf_SUPPORTED
    png_bytep bytes = nullptr;
    png_uint_32 count = 0;
    if (png_get_eXIf_1(state_.png, state_.info, &count, &bytes) != 0)
      return exif_orientation({bytes, count});
#endif
    return Orientation::kAsStored;
  }

  void expect_indices() const {
    const int type = png_get_color_type(state_.png, state_.info);
    if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY)
      throw BadImage("has colors; a mask has a palette or gray values, which are class numbers");
    if (png_get_bit_depth(state_.png, state_.info) > 8)
      throw BadImage("has 16 bits per pixel; a mask has at most 8");
  }

  [[noreturn]] void refuse() {
    const std::string message = state_.message;
    close();
    throw BadImage("cannot be decoded as PNG: " + message);
  }

  void close() {
    png_destroy_read_struct(&state_.png, &state_.info, nullptr);
  }

  Png state_;
};

class PngDecoder final : public Decoder {
 public:
  bool recognizes(std::span<const std::uint8_t> file) const override {
    return file.size() >= 8 && png_sig_cmp(file.data(), 0, 8) == 0;
  }
  PictureHeader header(std::span<const std::uint8_t> file) const override {
    return OpenPng(file).header();
  }
  void decode(std::span<const std::uint8_t> file, Wanted wanted, Picture& out) const override {
    OpenPng(file).decode(wanted, out);
  }
};

}  // namespace

const Decoder& png_decoder() {
  static const PngDecoder decoder;
  return decoder;
}

}  // namespace treadle::images
