#include "document_images.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewestImages = 20;
constexpr std::int64_t kMostImages = 40;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

std::uint32_t adler32_of(std::string_view bytes) {
  std::uint32_t low = 1;
  std::uint32_t high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<std::uint8_t>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

std::string chunk(const std::string& name, const std::string& content) {
  const std::string body = name + content;
  return big_endian(static_cast<std::uint32_t>(content.size())) + body + big_endian(crc32_of(body));
}

/// A PNG of gray pixels, in one stored block.
std::string png_of(std::uint32_t width, std::uint32_t height, const std::string& pixels) {
  std::string rows;
  for (std::uint32_t row = 0; row < height; ++row)
    rows += '\0' + pixels.substr(row * width, width);
  const auto size = static_cast<std::uint16_t>(rows.size());
  std::string stored("\x78\x01\x01", 3);
  for (const std::uint16_t number : {size, static_cast<std::uint16_t>(~size)}) {
    stored += static_cast<char>(number & 0xFF);
    stored += static_cast<char>(number >> 8);
  }
  stored += rows + big_endian(adler32_of(rows));
  return "\x89PNG\r\n\x1A\n" +
         chunk("IHDR", big_endian(width) + big_endian(height) + std::string("\x08\0\0\0\0", 5)) +
         chunk("IDAT", stored) + chunk("IEND", "");
}

/// Small values, so that a model learns from them as they are.
std::string pixels(Dice& dice, std::size_t count, std::int64_t most = 3) {
  std::string bytes;
  while (bytes.size() < count)
    bytes += static_cast<char>(dice.whole(0, most));
  return bytes;
}

void write(const std::filesystem::path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

}  // namespace

json image_parameters(Drawing& drawing) {
  Dice& dice = drawing.dice;
  const std::filesystem::path root = drawing.folder / "images";
  const std::vector<std::string> classes{"cat", "dog", "cow"};
  const bool have_one_size = dice.chance(50);
  const bool has_list = dice.chance(60);
  const bool has_masks = has_list && dice.chance(40);
  std::string list = "path,mask,label,number,group\n";
  const std::int64_t count = dice.whole(kFewestImages, kMostImages);
  for (std::int64_t row = 0; row < count; ++row) {
    const auto width = static_cast<std::uint32_t>(have_one_size ? 6 : dice.whole(3, 9));
    const auto height = static_cast<std::uint32_t>(have_one_size ? 5 : dice.whole(3, 9));
    const std::string& label =
        row < 3 ? classes[static_cast<std::size_t>(row)] : dice.one_of(classes);
    const std::string name = label + "/" + std::to_string(row) + ".png";
    const std::string mask = "masks/" + std::to_string(row) + ".png";
    write(root / name, png_of(width, height, pixels(dice, width * height)));
    if (has_masks)
      write(drawing.folder / mask, png_of(width, height, pixels(dice, width * height, 2)));
    list += "images/" + name + "," + mask + "," + label + "," + std::to_string(dice.whole(0, 9)) +
            ".5,g" + std::to_string(dice.whole(0, 7)) + "\n";
  }
  // An error, unless it is left out.
  const bool has_broken = dice.chance(20);
  if (has_broken) {
    write(root / "dog/broken.png", "no image");
    list += "images/dog/broken.png,masks/0.png,dog,0.5,g0\n";
  }
  json parameters = {{"path", root.string()}, {"image", nullptr},  {"target", nullptr},
                     {"mask", nullptr},       {"size", nullptr},   {"classes", nullptr},
                     {"fit", nullptr},        {"broken", nullptr}, {"ignore_index", nullptr},
                     {"group", nullptr}};
  if (has_list) {
    write(drawing.folder / "images.csv", list);
    parameters["path"] = (drawing.folder / "images.csv").string();
    if (has_masks)
      parameters["mask"] = "mask";
    if (dice.chance(25))
      parameters["group"] = "group";
    if (has_masks && dice.chance(40))
      parameters["ignore_index"] = 2;
    if (!has_masks || dice.chance(30))
      parameters["target"] = dice.chance(50) ? "label" : "number";
  }
  if (!has_masks && !parameters["target"].is_null() && parameters["target"] == "label" &&
      dice.chance(30))
    parameters["classes"] = {"dog", "cow", "cat"};
  if (!have_one_size || dice.chance(40)) {
    parameters["size"] = dice.chance(50) ? json(5) : json({4, 6});
    if (dice.chance(60))
      parameters["fit"] = dice.one_of(std::vector<json>{"crop", "stretch", "pad"});
  }
  if (has_broken)
    parameters["broken"] = "skip";
  return parameters;
}

json idx_parameters(Drawing& drawing) {
  Dice& dice = drawing.dice;
  const auto rows = static_cast<std::uint32_t>(dice.whole(kFewestImages, kMostImages));
  const std::filesystem::path images = drawing.folder / "some-images-idx3-ubyte";
  const std::filesystem::path labels = drawing.folder / "some-labels-idx1-ubyte";
  write(images, std::string("\0\0\x08\x03", 4) + big_endian(rows) + big_endian(5) + big_endian(6) +
                    pixels(dice, std::size_t{rows} * 30));
  write(labels, std::string("\0\0\x08\x01", 4) + big_endian(rows) + pixels(dice, rows, 2));
  json parameters = {{"path", images.string()}, {"labels", nullptr}, {"classes", nullptr}};
  if (dice.chance(30))
    parameters["labels"] = labels.string();
  if (dice.chance(30))
    parameters["classes"] = {"none", "one", "two"};
  return parameters;
}

}  // namespace treadle::testing
