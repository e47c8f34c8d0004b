#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include <jpeglib.h>
// After jpeglib.h, which needs stdio.h.
#include <jerror.h>

#include "decoder.h"
#include "exif.h"

namespace treadle::images {
namespace {

/// A file that says "progressive" may have thousands of scans, each over all pixels; real ones have
/// about ten.
constexpr int kMostScans = 100;

/// libjpeg's state, and where it reports. Errors come back by longjmp, so functions that call
/// libjpeg have no objects with destructors.
struct Jpeg {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
};

Jpeg& jpeg_of(j_common_ptr info) {
  return *static_cast<Jpeg*>(info->client_data);
}

[[noreturn]] void fail(j_common_ptr info) {
  Jpeg& jpeg = jpeg_of(info);
  (*info->err->format_message)(info, jpeg.message);
  std::longjmp(jpeg.failed, 1);
}

/// Level -1 is a warning: corrupt data, which libjpeg fills with gray; or an unknown version of
/// JFIF, without effect on pixels.
void hear(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_JFIF_MAJOR)
    fail(info);
}

void say_nothing(j_common_ptr) {}

void watch_scans(j_common_ptr info) {
  if (!info->is_decompressor)
    return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans)
    return;
  Jpeg& jpeg = jpeg_of(info);
  std::snprintf(jpeg.message, sizeof jpeg.message, "has more than %d scans", kMostScans);
  std::longjmp(jpeg.failed, 1);
}

void begin(Jpeg& jpeg) {
  jpeg.info.err = jpeg_std_error(&jpeg.errors);
  jpeg.errors.error_exit = fail;
  jpeg.errors.emit_message = hear;
  jpeg.errors.output_message = say_nothing;
  jpeg.info.client_data = &jpeg;
}

/// Returns false with a message.
bool read_header(Jpeg& jpeg, const std::uint8_t* file, std::size_t size) {
  if (setjmp(jpeg.failed) != 0)
    return false;
  jpeg_create_decompress(&jpeg.info);
  jpeg.info.client_data = &jpeg;
  jpeg.progress.progress_monitor = watch_scans;
  jpeg.info.progress = &jpeg.progress;
  jpeg_save_markers(&jpeg.info, JPEG_APP0 + 1, 0xFFFF);
  // Older versions take memory that is not const.
  jpeg_mem_src(&jpeg.info, const_cast<unsigned char*>(file), size);
  jpeg_read_header(&jpeg.info, TRUE);
  return true;
}

void choose_colors(jpeg_decompress_struct& info) {
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
      info.out_color_space = JCS_GRAYSCALE;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      info.out_color_space = JCS_CMYK;
      break;
    default:
      info.out_color_space = JCS_RGB;
  }
}

bool start(Jpeg& jpeg) {
  if (setjmp(jpeg.failed) != 0)
    return false;
  choose_colors(jpeg.info);
  jpeg.info.dct_method = JDCT_ISLOW;
  return jpeg_start_decompress(&jpeg.info) == TRUE;
}

bool read_rows(Jpeg& jpeg, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(jpeg.failed) != 0)
    return false;
  while (jpeg.info.output_scanline < jpeg.info.output_height) {
    JSAMPROW row = pixels + jpeg.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&jpeg.info, &row, 1);
  }
  jpeg_finish_decompress(&jpeg.info);
  return true;
}

Orientation orientation_of(const jpeg_decompress_struct& info) {
  constexpr char kExif[] = {'E', 'x', 'i', 'f', '\0', '\0'};
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    if (marker->data_length > sizeof kExif && std::memcmp(marker->data, kExif, sizeof kExif) == 0) {
      return exif_orientation({marker->data + sizeof kExif, marker->data_length - sizeof kExif});
    }
  }
  return Orientation::kAsStored;
}

/// 255 - a - b + a b / 255, rounded, for inks a and b: the light that paper reflects. Adobe's
/// programs store the complement of ink.
std::uint8_t reflected(std::uint8_t color, std::uint8_t black, bool is_complement) {
  const unsigned a = is_complement ? color : 255U - color;
  const unsigned b = is_complement ? black : 255U - black;
  const unsigned product = a * b + 128;
  return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
}

void make_rgb_of_cmyk(Picture& picture, bool is_complement) {
  const std::size_t count = picture.pixels.size() / 4;
  std::uint8_t* to = picture.pixels.data();
  const std::uint8_t* from = to;
  for (std::size_t i = 0; i < count; ++i, from += 4, to += 3) {
    const std::uint8_t black = from[3];
    for (int c = 0; c < 3; ++c)
      to[c] = reflected(from[c], black, is_complement);
  }
  picture.become(picture.size, 3);
}

/// Owns a Jpeg while C++ is working with it.
class OpenJpeg {
 public:
  explicit OpenJpeg(std::span<const std::uint8_t> file) {
    begin(jpeg_);
    if (!read_header(jpeg_, file.data(), file.size()))
      refuse();
  }
  OpenJpeg(const OpenJpeg&) = delete;
  OpenJpeg& operator=(const OpenJpeg&) = delete;
  ~OpenJpeg() { jpeg_destroy_decompress(&jpeg_.info); }

  PictureHeader header() const {
    return {{jpeg_.info.image_width, jpeg_.info.image_height}, orientation_of(jpeg_.info)};
  }

  void decode(Picture& out) {
    if (!start(jpeg_))
      refuse();
    out.become({jpeg_.info.output_width, jpeg_.info.output_height}, jpeg_.info.output_components);
    if (!read_rows(jpeg_, out.pixels.data(), out.row_bytes()))
      refuse();
    if (out.channels == 4)
      make_rgb_of_cmyk(out, jpeg_.info.saw_Adobe_marker == TRUE);
  }

 private:
  [[noreturn]] void refuse() {
    const std::string message = jpeg_.message;
    jpeg_destroy_decompress(&jpeg_.info);
    throw BadImage("cannot be decoded as JPEG: " + message);
  }

  Jpeg jpeg_ = {};
};

class JpegDecoder final : public Decoder {
 public:
  bool recognizes(std::span<const std::uint8_t> file) const override {
    return file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
  }
  PictureHeader header(std::span<const std::uint8_t> file) const override {
    return OpenJpeg(file).header();
  }
  void decode(std::span<const std::uint8_t> file, Wanted wanted, Picture& out) const override {
    if (wanted == Wanted::kIndices)
      throw BadImage("is a JPEG, whose values are not exact; a mask is a PNG");
    OpenJpeg(file).decode(out);
  }
};

}  // namespace

const Decoder& jpeg_decoder() {
  static const JpegDecoder decoder;
  return decoder;
}

}  // namespace treadle::images
