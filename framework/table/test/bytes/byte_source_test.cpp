#include <treadle/table/byte_source.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef TREADLE_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef TREADLE_HAS_ZSTD
#include <zstd.h>
#endif

namespace treadle::table {
namespace {

using ::testing::HasSubstr;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// Written by other programs: packed_bytes.sh.
const std::string kText = "a,y\n1,2\n";
const std::string kBothTexts = "a,y\n1,2\n3,4\n";
const std::string kGzip = from_hex("1f8b08000000000000034bd4a9e432d431e2020023f5866308000000");
const std::string kMembers = kGzip + from_hex(
                                         "1f8b0800000000000003"
                                         "33d631e102003e2d72a904000000");
const std::string kBgzf = from_hex(
    "1f8b08040000000000ff06004243020023004bd4a9e432d431e2020023f58663080000001f8b08040000000000ff"
    "0600424302001f0033d631e102003e2d72a9040000001f8b08040000000000ff0600424302001b00030000000000"
    "00000000");
const std::string kFrames =
    from_hex("28b52ffd0458410000612c790a312c320a5d44be8628b52ffd0458210000332c340aaf867ee4");

class ByteSources : public ::testing::Test {
 protected:
  ByteSources()
      : path_(std::filesystem::temp_directory_path() /
              ("treadle-bytes-" + std::to_string(::getpid()))) {}
  ~ByteSources() override { std::filesystem::remove(path_); }

  std::unique_ptr<ByteSource> open(std::string_view bytes, const std::string& encoding = "utf-8",
                                   const UnpackLimits& limits = {}) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return open_bytes(path_, "x", encoding, limits);
  }

  /// Everything, `piece` bytes at a time; then "!" and the message of an error.
  std::string read(std::string_view bytes, const std::string& encoding = "utf-8",
                   std::size_t piece = 1 << 16, const UnpackLimits& limits = {}) const {
    std::string all;
    try {
      const auto source = open(bytes, encoding, limits);
      std::string part(piece, '\0');
      while (const std::size_t count = source->read(part.data(), piece))
        all += part.substr(0, count);
    } catch (const DataError& error) {
      return all + "!" + error.what();
    }
    return all;
  }

 private:
  std::filesystem::path path_;
};

/// Numbers as a table has them: long enough for several pieces.
std::string long_table() {
  std::string text;
  for (int row = 0; row < 300'000; ++row)
    text += std::to_string(row * 37 % 1000) + ".25," + std::to_string(row % 7) + "\n";
  return text;
}

TEST_F(ByteSources, PassFilesOn) {
  EXPECT_EQ(read(kText), kText);
  EXPECT_EQ(read(kText, "utf-8", 3), kText);
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("x"), "x");
}

#ifdef TREADLE_HAS_ZLIB
TEST_F(ByteSources, UnpackGzipWithAnyNumberOfMembers) {
  for (const std::size_t piece : {1, 2, 7, 1 << 20}) {
    EXPECT_EQ(read(kGzip, "utf-8", piece), kText);
    EXPECT_EQ(read(kMembers, "utf-8", piece), kBothTexts);
    EXPECT_EQ(read(kBgzf, "utf-8", piece), kBothTexts);
  }
  EXPECT_EQ(read(kGzip + std::string(500, '\0')), kText);  // of a tape
}

TEST_F(ByteSources, SayWhereGzipIsDamagedAfterWhatIsWhole) {
  const std::string cut_off =
      "!x: the packed file ends too early: it was cut off; copy or download it again (after ";
  for (std::size_t size = 2; size < kGzip.size(); ++size) {
    EXPECT_THAT(read(kGzip.substr(0, size)), HasSubstr(cut_off + std::to_string(size) + " bytes"))
        << size;
  }
  EXPECT_EQ(read(kMembers.substr(0, kGzip.size() + 12)),
            kText + "3" + cut_off + "40 bytes of the file, 9 unpacked)");
  EXPECT_EQ(read(kGzip + "rubbish"),
            kText +
                "!x: the packed file is damaged: other bytes follow the packed ones (after 28 "
                "bytes of the file, 8 unpacked)");
  EXPECT_THAT(read(kGzip + std::string(3, '\0') + kGzip), HasSubstr("other bytes follow"));
  std::string changed = kMembers;
  changed[kGzip.size() - 6] ^= 1;  // of the check sum
  EXPECT_THAT(read(changed), HasSubstr("the packed file is damaged: incorrect data check (after"));
}

TEST_F(ByteSources, StayTheSameThroughManyPieces) {
  const std::string text = long_table();
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);

  EXPECT_EQ(read(packed), text);
  EXPECT_EQ(read(packed, "utf-8", 1 << 20), text);
  EXPECT_EQ(read(packed, "latin1", 1 << 20), text);
  // The bytes before the cut come first.
  const std::string cut = read(packed.substr(0, packed.size() / 2), "utf-8", 1 << 20);
  const std::size_t whole = cut.find('!');
  ASSERT_NE(whole, std::string::npos);
  EXPECT_EQ(cut.substr(0, whole), text.substr(0, whole));
  EXPECT_GT(whole, text.size() / 3);
  EXPECT_THAT(cut.substr(whole), HasSubstr(", " + std::to_string(whole) + " unpacked)"));
  // A source may be left at any place, and waits for nobody.
  for (const int pieces : {0, 1, 2, 9}) {
    const auto source = open(packed);
    std::string part(1 << 18, '\0');
    for (int i = 0; i < pieces; ++i)
      EXPECT_EQ(source->read(part.data(), part.size()), part.size());
  }
}

// 64 MiB of one byte in 64 KiB of gzip.
TEST_F(ByteSources, RefuseWhatUnpacksToManyTimesItsSize) {
  std::string packed(1 << 20, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  std::string zeros(1 << 20, '0');
  for (int i = 0; i < 64; ++i) {
    stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
    stream.avail_in = static_cast<uInt>(zeros.size());
    deflate(&stream, i == 63 ? Z_FINISH : Z_NO_FLUSH);
  }
  packed.resize(stream.total_out);
  deflateEnd(&stream);

  EXPECT_EQ(read(packed).size(), std::size_t{64} << 20);
  const std::string refused = read(packed, "utf-8", 1 << 16, {std::size_t{4} << 20, 1000});
  const std::size_t size = refused.find('!');
  EXPECT_GE(size, std::size_t{4} << 20);
  EXPECT_LT(size, std::size_t{5} << 20);
  EXPECT_THAT(refused.substr(size), HasSubstr("the file unpacks to more than 1000 times its size"));
  EXPECT_EQ(read(packed, "utf-8", 1 << 16, {std::size_t{4} << 20, 1100}).size(),
            std::size_t{64} << 20);
}
#else
TEST_F(ByteSources, NameThePackageThatUnpacksGzip) {
  EXPECT_EQ(read(kGzip),
            "!x: is packed with gzip, which this build of Treadle cannot unpack; unpack the file, "
            "or install zlib1g-dev and build again");
}
#endif

#ifdef TREADLE_HAS_ZSTD
TEST_F(ByteSources, UnpackZstandardWithAnyNumberOfFrames) {
  for (const std::size_t piece : {1, 2, 7, 1 << 20})
    EXPECT_EQ(read(kFrames, "utf-8", piece), kBothTexts);
  // A frame to be passed over: RFC 8878, 3.1.2.
  EXPECT_EQ(read(kFrames + from_hex("502a4d1803000000616263")), kBothTexts);
}

TEST_F(ByteSources, SayWhereZstandardIsDamaged) {
  const std::string first = kFrames.substr(0, 21);
  ASSERT_EQ(read(first), kText);
  for (std::size_t size = 5; size < first.size(); ++size) {
    EXPECT_THAT(read(first.substr(0, size)), HasSubstr("!x: the packed file ends too early"))
        << size;
  }
  EXPECT_EQ(read(kFrames.substr(0, 26)),
            kText +
                "!x: the packed file ends too early: it was cut off; copy or download it again "
                "(after 26 bytes of the file, 8 unpacked)");
  EXPECT_THAT(read(first + "rubbish"),
              HasSubstr("the packed file is damaged: other bytes follow the packed ones"));
  std::string changed = first;
  changed[changed.size() - 1] ^= 1;
  EXPECT_THAT(read(changed), HasSubstr("the packed file is damaged: "));
}

// A decoder needs memory for a whole window.
TEST_F(ByteSources, RefuseLargeWindowsOfZstandard) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 28);
  std::string packed(256, '\0');
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  ZSTD_inBuffer in{kText.data(), kText.size(), 0};
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush), 0U);
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0U);
  ZSTD_freeCCtx(context);

  EXPECT_THAT(read(packed.substr(0, out.pos)),
              HasSubstr("its window is larger than 128 MiB; pack it without --long"));
}
#else
TEST_F(ByteSources, NameThePackageThatUnpacksZstandard) {
  EXPECT_THAT(read(kFrames), HasSubstr("install libzstd-dev and build again"));
}
#endif

TEST_F(ByteSources, ConvertTextToUtf8) {
  const std::string text = "n,\xC3\xA4\n\xE2\x82\xAC,\xF0\x9F\x98\x80\n";
  const std::string utf16 = from_hex("fffe6e002c00e4000a00ac202c003dd800de0a00");
  const std::string utf32 =
      from_hex("fffe00006e0000002c000000e40000000a000000ac2000002c00000000f601000a000000");
  for (const std::size_t piece : {1, 5, 1 << 16}) {
    EXPECT_EQ(read(utf16, "utf-8", piece), text);  // by its mark
    EXPECT_EQ(read(utf32, "utf-8", piece), text);  // likewise
    EXPECT_EQ(read(utf16, "utf-16", piece), text);
    EXPECT_EQ(read(from_hex("006e002c00e4000a20ac002cd83dde00000a"), "utf-16be", piece), text);
    EXPECT_EQ(read(from_hex("6e2c81308a310aa2e32c9439fc360a"), "gb18030", piece), text);
  }
  EXPECT_EQ(read(from_hex("6e2ce40a802c310a"), "windows-1252"), "n,\xC3\xA4\n\xE2\x82\xAC,1\n");
  EXPECT_EQ(read(from_hex("6e2c1b2442467c1b28420a"), "iso-2022-jp"), "n,\xE6\x97\xA5\n");
  EXPECT_TRUE(is_encoding("Latin1"));
  EXPECT_TRUE(is_encoding("UTF8"));
  EXPECT_FALSE(is_encoding("latin1//TRANSLIT"));
  EXPECT_FALSE(is_encoding("utf-9"));
  EXPECT_FALSE(is_encoding(""));
}

TEST_F(ByteSources, NameTheByteThatIsNoText) {
  EXPECT_EQ(read("a,y\n1,\x82\xA0\n2,\x80", "shift_jis"),
            "a,y\n1,\xE3\x81\x82\n2,!x: is not text in shift_jis (byte 0x80); set \"encoding\" to "
            "the one that the file was written in");
  EXPECT_EQ(read(std::string("a\0,\0y", 5), "utf-16le"),
            "a,!x: the text ends in the middle of a character of utf-16le; was the file cut off, "
            "or is \"encoding\" wrong?");
}

TEST_F(ByteSources, GuessTheEncodingOfText) {
  EXPECT_EQ(likely_encoding("\xFC"
                            "ber,1\n"),
            "windows-1252");
  EXPECT_EQ(likely_encoding(std::string_view("a\0,\0y\0\n\0", 8)), "utf-16le");
  EXPECT_EQ(likely_encoding(std::string_view("\0a\0,\0y\0\n", 8)), "utf-16be");
}

}  // namespace
}  // namespace treadle::table
