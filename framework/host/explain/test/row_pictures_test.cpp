#include <treadle/host/explain/row_pictures.h>

#include <gtest/gtest.h>

#include "explained.h"

namespace treadle::explain {
namespace {

TEST(PngOf, IsAFileAsPythonsZlibReadsIt) {
  // python3 -c 'import zlib,struct; d=zlib.compress(b"\0\1\2\0\3\4",0); print(d.hex(),
  // hex(zlib.crc32(b"IDAT"+d)))'
  const std::string file = png_of(at::arange(1, 5, at::kByte).view({2, 2, 1}));
  const std::string data(
      "\x78\x01\x01\x06\x00\xf9\xff\x00\x01\x02\x00\x03\x04\x00\x1d\x00\x0b\x7a\x38\x37\x25", 21);
  const std::size_t place = file.find("IDAT");
  ASSERT_NE(place, std::string::npos);
  EXPECT_EQ(file.substr(place + 4, data.size()), data);
  EXPECT_EQ(file.substr(0, 8), std::string("\x89PNG\r\n\x1a\n", 8));
}

TEST(PictureOf, IsAPngOfAnImageAndAnSvgOfAWindow) {
  Batch row;
  row.inputs = {at::arange(64, at::kByte).view({1, 1, 8, 8})};
  EXPECT_EQ(
      picture_of({.inputs = {{.name = "photo", .shape = {1, 8, 8}, .role = Role::kImage}}}, row)
          .find("data:image/png;base64,iVBORw0KGgo"),
      0U);
  row.inputs = {at::arange(6, at::kDouble).view({1, 3, 2})};
  EXPECT_EQ(picture_of({.inputs = {{.name = "past", .shape = {3, 2}}}}, row)
                .find("data:image/svg+xml;base64,"),
            0U);
  row.inputs = {at::arange(6, at::kDouble).view({1, 6})};
  EXPECT_EQ(picture_of(table_of(6), row), "");
}

}  // namespace
}  // namespace treadle::explain
